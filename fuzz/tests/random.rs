//! The fuzz targets as plain tests: a few seconds of random inputs from fixed seeds, and every
//! input that ever failed.

use std::path::Path;
use std::time::{Duration, Instant};

/// The longest run of each target.
const SECONDS: Duration = Duration::from_secs(4);
/// Inputs that run regardless of the time, so that slow machines test something as well.
const LEAST: u64 = 8;

/// Random bytes of a seed (SplitMix64).
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    };
    let len = next() % 1500;
    (0..len).map(|_| (next() >> 56) as u8).collect()
}

/// Runs the stored inputs of `target`, then random ones. The seed of a failing input is printed.
fn play(target: &str, run: fn(&[u8])) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target);
    let mut names: Vec<_> = std::fs::read_dir(&kept).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    for name in names {
        println!("{}", name.display());
        run(&std::fs::read(&name).unwrap());
    }
    let started = Instant::now();
    let mut seed = 0;
    while seed < LEAST || started.elapsed() < SECONDS {
        println!("seed {seed}");
        run(&bytes(seed));
        seed += 1;
    }
}

#[test]
fn any_bar_access_is_answered_or_refused() {
    play("bar", tilework_fuzz::bar::run);
}

#[test]
fn any_firmware_runs_or_faults_the_same_asleep_and_awake() {
    play("firmware", tilework_fuzz::firmware::run);
}

#[test]
fn any_noc_request_is_carried_out_or_refused() {
    play("noc", tilework_fuzz::noc::run);
}

#[test]
fn any_text_is_a_netlist_or_refused_with_findings() {
    play("netlist", tilework_fuzz::netlist::run);
}

#[test]
fn any_netlist_runs_or_says_why_not() {
    play("netlist_run", tilework_fuzz::netlist_run::run);
}
