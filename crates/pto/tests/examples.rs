//! The examples give what plain arithmetic gives, on both architectures, under all protocols, whatever the timing.

use tilework_pto::examples::{Attention, Example, MatmulBias, Setting};
use tilework_pto::{Arch, Config, DType, EventKind, Fault, Profile};

fn setting(arch: Arch, seed: u64, slots: u32) -> Setting {
    Setting { slots, ..Setting::new(Config::new(arch, seed)) }
}

/// Runs an example and gives its error, which must be within its tolerance.
fn right(example: Example, setting: &Setting) -> f32 {
    let compared =
        example.run(setting).outcome.unwrap_or_else(|fault| panic!("{}, {setting:?}: {fault}", example.name()));
    assert!(compared.is_right(), "{}, {setting:?}: off by {}", example.name(), compared.error);
    assert_eq!(compared.report.leftovers, [], "{}, {setting:?}", example.name());
    compared.error
}

#[test]
fn every_example_is_right_with_every_number_of_slots() {
    for arch in Arch::ALL {
        for slots in 1..=15 {
            for example in Example::ALL {
                right(example, &setting(arch, u64::from(slots), slots));
            }
        }
    }
}

#[test]
fn flash_attention_agrees_with_single_precision_for_100_seeds() {
    for arch in Arch::ALL {
        let errors = (0..100).map(|seed| right(Example::FlashF32, &setting(arch, seed, 8)));
        let largest = errors.fold(0.0, f32::max);
        println!("{arch}: largest error {largest:e}");
        assert!(largest > 0.0, "blocks with a running maximum round elsewhere than the formula");
    }
}

#[test]
fn flash_attention_with_halves_agrees_with_what_rounds_alike_for_100_seeds() {
    for arch in Arch::ALL {
        let errors = (0..100).map(|seed| right(Example::Flash, &setting(arch, seed, 8)));
        println!("{arch}: largest error {:e}", errors.fold(0.0, f32::max));
    }
}

#[test]
fn weights_in_halves_cost_no_more_than_their_precision() {
    let mut largest = 0.0_f32;
    for seed in 0..10 {
        let example = Attention::of_seed(seed, DType::F16);
        let done = example.run(&setting(Arch::A5, seed, 8)).outcome.unwrap();
        largest = largest.max(done.result.largest_error(&example.unrounded()));
    }
    // Half an ulp of a half is 2^-11 of its value; the weights of a row sum up to 1, elements of V are at most 1.
    assert!(largest < 1.0 / 2048.0, "{largest:e}");
    assert!(largest > 1e-5, "so close that P was not rounded: {largest:e}");
}

#[test]
fn the_other_protocols_compute_the_same() {
    for arch in Arch::ALL {
        // Per-tag flags: three rings of four slots take twelve ids. The headers are sound on A2A3 with an even number.
        let mut runs = vec![(Profile::PerTagFlags, 4)];
        if arch == Arch::A2A3 {
            runs.extend([(Profile::SparseCredits, 4), (Profile::SparseCredits, 8)]);
        }
        for (profile, slots) in runs {
            for example in Example::ALL {
                for seed in 0..5 {
                    right(example, &Setting { profile, ..setting(arch, seed, slots) });
                }
            }
        }
    }
}

#[test]
fn a_run_is_a_function_of_its_setting() {
    for arch in Arch::ALL {
        for example in Example::ALL {
            let run = |seed| {
                let run = example.run(&setting(arch, seed, 4));
                let done = run.outcome.unwrap();
                (run.events, done.report.cycles, done.result)
            };
            assert!(run(7) == run(7), "{}", example.name());
            assert!(run(7).1 != run(8).1, "{}", example.name());
        }
    }
}

#[test]
fn round_trips_have_tiles_on_both_ways_at_once() {
    let run = Example::RoundTrip.run(&setting(Arch::A5, 7, 4));
    let span = |kind: EventKind, way: &str| {
        let of = run.events.iter().filter(|e| e.kind == kind && e.name.contains(way));
        of.map(|e| (e.tile.unwrap(), e.end)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let names: std::collections::BTreeSet<_> = run.events.iter().map(|e| e.name.to_string()).collect();
    assert!(names.len() >= 2, "{names:?}");
    let (up, down) = (span(EventKind::Push, "V2C"), span(EventKind::Pop, "C2V"));
    let crossing =
        down.iter().filter(|(tile, popped)| up.get(&(*tile + 1)).is_some_and(|pushed| pushed < *popped)).count();
    assert!(crossing >= 6, "{crossing} of {} tiles cross, {names:?}", down.len());
}

#[test]
fn a_ring_that_cannot_be_made_is_refused_by_name() {
    let refused = |setting: &Setting| Example::Flash.run(setting).outcome.unwrap_err();
    for (slots, profile) in [(0, Profile::Counting), (16, Profile::Counting), (9, Profile::PerTagFlags)] {
        let fault = refused(&Setting { profile, ..setting(Arch::A5, 1, slots) });
        assert!(matches!(fault, Fault::Ring(_)) && fault.to_string().contains("ring `QK`"), "{fault}");
    }
    // Three rings of five slots need fifteen ids, twelve are there.
    let fault = refused(&Setting { profile: Profile::PerTagFlags, ..setting(Arch::A5, 1, 5) });
    assert!(fault.to_string().contains("ring `PV` takes semaphore ids 10 to 14"), "{fault}");
}

#[test]
fn a_wrong_result_is_seen() {
    let example = MatmulBias::of_seed(1);
    let mut other = example.clone();
    other.bias.row_mut(0)[63] += 1.0;
    let done = example.run(&setting(Arch::A2A3, 1, 2)).outcome.unwrap();
    assert_eq!(done.result.largest_error(&example.expected()), 0.0);
    assert_eq!(done.result.largest_error(&other.expected()), 1.0);
}
