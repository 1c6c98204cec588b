//! The examples give what plain arithmetic gives, on both architectures, under all protocols,
//! whatever the timing.

use proptest::prelude::*;
use tilework_pto::examples::{Attention, DequantMatmul, Example, Form, Head, MatmulBias, Matrix, RoundTrip, Setting};
use tilework_pto::{Arch, Config, DType, Direction, EventKind, Fault, Profile, Split};

fn setting(arch: Arch, seed: u64, slots: u32) -> Setting {
    Setting { slots, ..Setting::new(Config::new(arch, seed)) }
}

/// Runs an example and gives its error, which must be within its tolerance.
fn right(example: Example, setting: &Setting) -> f32 {
    let compared = example.run(setting).outcome.unwrap_or_else(|fault| panic!("{example:?}, {setting:?}: {fault}"));
    assert!(compared.is_right(), "{example:?}, {setting:?}: off by {}", compared.error);
    assert_eq!(compared.report.leftovers, [], "{example:?}, {setting:?}");
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
    // Half an ulp of a half is 2^-11 of its value; the weights of a row sum up to 1, elements of V
    // are at most 1.
    assert!(largest < 1.0 / 2048.0, "{largest:e}");
    assert!(largest > 1e-5, "so close that P was not rounded: {largest:e}");
}

#[test]
fn the_other_protocols_compute_the_same() {
    for arch in Arch::ALL {
        // Per-tag flags: three rings of four slots take twelve ids. The headers are sound on A2A3
        // with an even number.
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
            assert!(run(7) == run(7), "{example:?}");
            assert!(run(7).1 != run(8).1, "{example:?}");
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

#[test]
fn inputs_that_do_not_fit_are_refused() {
    let setting = setting(Arch::A5, 1, 2);
    let wide = Matrix::from_fn(1, 3, |_, _| 0.0);
    let bias = MatmulBias::of_seed(1);
    let dequant = DequantMatmul::of_seed(1);
    let trip = RoundTrip::of_seed(1);
    let flash = Attention::of_seed(1, DType::F16);
    let odd = Head { k: wide.clone(), ..flash.heads[0].clone() };
    for (ran, says) in [
        (MatmulBias { b: wide.clone(), ..bias.clone() }.run(&setting), "as many columns as B"),
        (MatmulBias { bias: wide.clone(), ..bias.clone() }.run(&setting), "the bias"),
        (MatmulBias { tile_rows: 0, ..bias.clone() }.run(&setting), "rows of a tile"),
        (MatmulBias { tile_rows: 24, ..bias.clone() }.run(&setting), "rows of a tile"),
        (MatmulBias { form: Form::Parts(0), ..bias.clone() }.run(&setting), "parts"),
        (MatmulBias { form: Form::Parts(2), ..bias }.run(&setting), "global memory"),
        (DequantMatmul { a: wide.clone(), ..dequant.clone() }.run(&setting), "as many columns as W"),
        (DequantMatmul { scale: wide.clone(), ..dequant.clone() }.run(&setting), "scales"),
        (DequantMatmul { tile_rows: 0, ..dequant }.run(&setting), "rows of a tile"),
        (RoundTrip { b: wide.clone(), ..trip.clone() }.run(&setting), "A and B"),
        (RoundTrip { d: wide.clone(), ..trip.clone() }.run(&setting), "D needs"),
        (RoundTrip { f: wide, ..trip.clone() }.run(&setting), "F needs"),
        (RoundTrip { tile_rows: 7, ..trip }.run(&setting), "rows of a tile"),
        (Attention { heads: Vec::new(), ..flash.clone() }.run(&setting), "a head"),
        (Attention { heads: vec![flash.heads[0].clone(), odd.clone()], ..flash.clone() }.run(&setting), "same shape"),
        (Attention { heads: vec![odd], ..flash.clone() }.run(&setting), "K needs"),
        (Attention { rows: 0, ..flash.clone() }.run(&setting), "rows of a tile"),
        (Attention { cols: 24, ..flash }.run(&setting), "columns of a tile"),
    ] {
        let fault = ran.outcome.unwrap_err().to_string();
        assert!(fault.contains(says), "{says}: {fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any shape, any share of the tiles, any timing: what comes out is the plain product,
    /// bit for bit.
    #[test]
    fn products_with_bias_are_right_in_any_shape(
        (tiles, tile_rows, k, half) in (1_usize..7, 1_usize..9, 1_usize..9, 1_usize..5),
        split in prop::sample::select(Split::ALL.to_vec()),
        (gm, slots, seed, jitter, slow) in (any::<bool>(), 1_u32..16, any::<u64>(), 0_u64..400, 0_u64..2000),
    ) {
        let odd = usize::from(split.is_odd());
        let (tile_rows, n) = match split {
            Split::None => (tile_rows, 2 * half),
            Split::UpDown | Split::UpDownOdd => (2 * tile_rows - odd, 2 * half),
            // On A5 the columns of a tile in UBs are multiples of 32 (`pto-isa`,
            // `include/pto/npu/a5/TPush.hpp`).
            Split::LeftRight => (tile_rows, 32 * half),
            Split::LeftRightOdd => (tile_rows, 32 * half - 1),
        };
        let mut next = seed;
        let mut draw = |rows, cols| Matrix::from_fn(rows, cols, |_, _| {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (next >> 60) as f32 - 7.5
        });
        let (a, b, bias) = (draw(tiles * tile_rows, k), draw(k, n), draw(1, n));
        for arch in Arch::ALL {
            let through_memory = gm || split.is_odd();
            let direction = if arch == Arch::A5 && through_memory { Direction::C2vGm } else { Direction::C2V };
            let (a, b, bias) = (a.clone(), b.clone(), bias.clone());
            let example = MatmulBias { a, b, bias, tile_rows, split, direction, form: Form::Tiles };
            let config = Config { jitter_percent: jitter, ..Config::new(arch, seed) };
            let done = example.run(&Setting { slots, consumer_cycles: slow, ..Setting::new(config) }).outcome;
            let done = done.map_err(|fault| TestCaseError::fail(fault.to_string()))?;
            prop_assert_eq!(done.result, example.expected());
            prop_assert!(done.report.leftovers.is_empty());
        }
    }
}
