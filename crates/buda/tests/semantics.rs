//! Queues, programs and epochs on the project's own netlists: the effect of each construct,
//! and its errors.

mod common;

use common::{fails, load, memory, pointers, push, ready, run};
use std::time::Duration;
use tilework_buda::Tensor;
use tilework_buda::backend::{BackendError, BackendOptions, Status};
use tilework_buda::epoch::{Deadline, EngineOptions, EpochError, Uninitialised};
use tilework_buda::loader::{Command, LoaderConfig, LoaderStats, StallReason, Unrolled};
use tilework_buda::program::Limits;
use tilework_buda::queue::Fullness;
use tilework_netlist::types::{Shape, Size};

fn backend(name: &str) -> tilework_buda::backend::Backend {
    ready(&load(name), BackendOptions::default())
}

#[test]
fn pointers_wrap_at_twice_the_entries_and_static_variables_last() {
    let backend = backend("ring.yaml");
    let out = backend.queue("out").unwrap();
    let mut popped = Vec::new();
    push(&backend, "in", &[0.0, 1.0, 2.0, 3.0]);
    for turn in 0..9 {
        run(&backend, "once", &[]).unwrap();
        popped.extend(common::numbers(&backend.pop_output(out, None).unwrap()));
        push(&backend, "in", &[turn as f32 + 4.0]);
    }
    assert_eq!(popped, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!((pointers(&backend, "in"), pointers(&backend, "out")), ((1, 5), (1, 1)));
    run(&backend, "thrice", &[]).unwrap();
    assert_eq!(pointers(&backend, "in"), (3, 5), "static variables are a program's own: thrice has begun at 0");
}

#[test]
fn a_local_pointer_reads_ahead_and_pops_nothing() {
    let backend = backend("ring.yaml");
    push(&backend, "in", &[0.0, 1.0, 2.0, 3.0]);
    run(&backend, "peek", &[]).unwrap();
    assert_eq!((memory(&backend, "out"), pointers(&backend, "in")), (vec![2.0], (0, 4)));
}

#[test]
fn pointers_beyond_the_range_are_taken_modulo_with_a_warning_and_negative_ones_refused() {
    let backend = backend("ring.yaml");
    push(&backend, "in", &[0.0, 1.0, 2.0, 3.0]);
    run(&backend, "beyond", &[]).unwrap();
    assert_eq!((memory(&backend, "out"), pointers(&backend, "in")), (vec![1.0], (0, 4)));
    let warnings: Vec<String> = backend.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("queue in") && warnings[0].contains("modulo"), "{warnings:?}");
    let said = fails(&backend, "negative", &[]);
    assert!(said.contains("queue in") && said.contains("-1 is no pointer"), "{said}");
}

#[test]
fn a_program_without_inputs_says_what_it_waits_for() {
    let backend = backend("ring.yaml");
    push(&backend, "in", &[5.0]);
    let error = run(&backend, "peek", &[]).unwrap_err();
    assert_eq!(error.status(), Status::RuntimeError);
    let said = error.to_string();
    for part in ["run thread", "epoch one", "op copy", "input 1 of 1", "entry 2 of queue in", "rd 0, wr 1, 4 entries"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_relay_of_one_entry_passes_all_inputs() {
    let backend = backend("relay.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    let record = run(&backend, "run", &[]).unwrap();
    assert_eq!((record.executes, record.epochs, record.operations), (1, 1, 8));
    assert_eq!(memory(&backend, "out"), [1.0, 4.0, 9.0, 16.0]);
    assert_eq!((pointers(&backend, "in"), pointers(&backend, "relay")), ((4, 4), (0, 0)));
}

#[test]
fn a_relay_that_is_never_popped_is_full_and_says_so() {
    let backend = backend("relay.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    let said = fails(&backend, "stuck", &[]);
    assert!(said.contains("op first, input 2 of 4, waits for space in queue relay (rd 0, wr 1, 1 entries)"), "{said}");
}

#[test]
fn a_constant_is_read_once_or_with_a_stride_of_zero() {
    for program in ["prologue", "stride"] {
        let backend = backend("constants.yaml");
        push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
        push(&backend, "constant", &[100.0, 200.0]);
        run(&backend, program, &[]).unwrap();
        assert_eq!(memory(&backend, "out"), [201.0, 202.0, 203.0, 204.0], "{program}");
    }
    let backend = backend("constants.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    push(&backend, "constant", &[100.0, 200.0]);
    let said = fails(&backend, "moving", &[]);
    assert!(said.contains("input 3 of 4") && said.contains("entry 2 of queue constant"), "{said}");
}

#[test]
fn a_view_shows_the_memory_of_its_ram() {
    let backend = backend("views.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    run(&backend, "fill", &[("$at", 0)]).unwrap();
    run(&backend, "fill", &[("$at", 2)]).unwrap();
    assert_eq!(memory(&backend, "base"), [1.0, 2.0, 3.0, 4.0]);
    run(&backend, "look", &[]).unwrap();
    assert_eq!(memory(&backend, "out"), [1.0, 2.0, 3.0, 4.0]);
    // Two writes from entry 2 on have come round; two reads of a view of two, too.
    assert_eq!((pointers(&backend, "base"), pointers(&backend, "view")), ((0, 0), (0, 0)));

    let view = backend.queue("view").unwrap();
    backend.push_input(view, &common::tensor(&[7.0, 8.0]), None, Some(1)).unwrap();
    assert_eq!(memory(&backend, "base"), [1.0, 2.0, 7.0, 8.0]);
    let got = backend.get_output(view, None, Some(0)).unwrap();
    assert_eq!(common::numbers(&got), [1.0, 2.0]);

    run(&backend, "strided", &[]).unwrap();
    assert_eq!(memory(&backend, "base"), [1.0, 1.0, 7.0, 2.0]);
    assert_eq!(pointers(&backend, "base"), (0, 1));
    run(&backend, "counted", &[]).unwrap();
    assert_eq!(pointers(&backend, "view"), (2, 0), "the loop has counted past the last entry, and nobody reads there");
    let said = fails(&backend, "outside", &[]);
    assert!(said.contains("queue view: the ram has entries 0 to 1, not 2"), "{said}");
}

#[test]
fn unwritten_rams_are_zeros_with_a_warning_or_an_error() {
    let netlist = load("views.yaml");
    let backend = ready(&netlist, BackendOptions::default());
    run(&backend, "look", &[]).unwrap();
    assert_eq!(memory(&backend, "out"), [0.0; 4]);
    assert!(backend.warnings().iter().any(|warning| warning.to_string().contains("ram view is read before")));

    let engine = EngineOptions { uninitialised: Uninitialised::Fault, ..EngineOptions::default() };
    let backend = ready(&netlist, BackendOptions { engine, ..BackendOptions::default() });
    let said = fails(&backend, "look", &[]);
    assert!(said.contains("queue view: entry 0 of the ram was never written"), "{said}");
}

/// Between instructions, and between operations; a wait does not outlast it either.
#[test]
fn a_run_ends_when_its_time_is_over() {
    let limits = Limits { instructions: u64::MAX, ..Limits::default() };
    let ready = |name: &str, limit: u64| {
        let deadline = Deadline::after(Duration::from_millis(limit));
        let engine = EngineOptions { deadline, ..EngineOptions::default() };
        ready(&load(name), BackendOptions { engine, limits, ..BackendOptions::default() })
    };
    let backend = ready("control.yaml", 50);
    let error = run(&backend, "for_ever", &[]).unwrap_err();
    assert_eq!(error.to_string(), "the run has not ended within 0.05 s, the time that it was given");
    assert_eq!(error.status(), Status::TimeoutError);
    let backend = ready("turns.yaml", 0);
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    assert!(fails(&backend, "run", &[]).contains("within 0 s"));
    let backend = ready("turns.yaml", 3_600_000);
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    run(&backend, "run", &[]).unwrap();
}

#[test]
fn operations_that_share_a_ram_take_turns() {
    let backend = backend("turns.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    run(&backend, "run", &[]).unwrap();
    assert_eq!(memory(&backend, "after"), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
fn gradients_add_up_from_zero_or_from_what_is_there() {
    for program in ["kept", "stored"] {
        let backend = backend("gradient.yaml");
        push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
        run(&backend, program, &[("$zero", 1)]).unwrap();
        assert_eq!(memory(&backend, "acc"), [10.0], "{program}");
        run(&backend, program, &[("$zero", 0)]).unwrap();
        assert_eq!(memory(&backend, "acc"), [20.0], "{program}");
        run(&backend, program, &[("$zero", 1)]).unwrap();
        assert_eq!(memory(&backend, "acc"), [10.0], "{program}");
    }
    let backend = backend("gradient.yaml");
    push(&backend, "in", &[1.0, 2.0, 3.0, 4.0]);
    let said = fails(&backend, "unprepared", &[("$zero", 1)]);
    assert!(said.contains("queue acc is to be zeroed without prologue"), "{said}");
    let said = fails(&backend, "kept", &[("$zero", 2)]);
    assert!(said.contains("$zero is 2, which is no flag"), "{said}");
    let said = fails(&backend, "kept", &[]);
    assert!(said.contains("parameters $zero are not given"), "{said}");
    let said = fails(&backend, "kept", &[("$zero", 1), ("$other", 1)]);
    assert!(said.contains("program kept has no parameter $other"), "{said}");
}

#[test]
fn dynamic_queues_begin_empty_and_share_memory_one_after_the_other() {
    let backend = backend("dynamic.yaml");
    push(&backend, "in", &[3.0, 4.0]);
    run(&backend, "one_by_one", &[]).unwrap();
    assert_eq!((memory(&backend, "out"), memory(&backend, "side")), (vec![3.0], vec![16.0]));
    run(&backend, "loops", &[]).unwrap();
    assert_eq!(memory(&backend, "out"), [3.0, 3.0, 3.0]);
    assert_eq!(pointers(&backend, "a"), (0, 1), "the second turn has begun with an empty queue");
    let said = fails(&backend, "overlap", &[]);
    assert!(said.contains("queue b: its memory overlaps that of the allocated queue a in channel 0"), "{said}");
}

#[test]
fn dynamic_queues_are_used_while_they_live_only() {
    let dead = backend("dynamic.yaml");
    push(&dead, "in", &[3.0]);
    let said = fails(&dead, "dead", &[]);
    assert!(said.contains("queue a: it is a dynamic queue that is not allocated now"), "{said}");
    let open = backend("dynamic.yaml");
    run(&open, "open", &[]).unwrap();
    let said = fails(&open, "open", &[]);
    assert!(said.contains("queue a: it is allocated already"), "{said}");
}

#[test]
fn graphs_that_hand_results_to_each_other_run_together() {
    let together = backend("temporal.yaml");
    push(&together, "in", &[2.0, 3.0]);
    let record = run(&together, "together", &[]).unwrap();
    assert_eq!((record.executes, record.epochs, record.operations), (3, 1, 6));
    assert_eq!((memory(&together, "out"), pointers(&together, "in")), (vec![6.0, 12.0], (2, 2)));

    let moved = backend("temporal.yaml");
    push(&moved, "in", &[2.0, 3.0]);
    run(&moved, "moved", &[]).unwrap();
    assert_eq!((memory(&moved, "out"), pointers(&moved, "in")), (vec![6.0, 12.0], (2, 2)));

    let interleaved = backend("temporal.yaml");
    push(&interleaved, "in", &[2.0, 3.0]);
    assert_eq!(run(&interleaved, "interleaved", &[]).unwrap().epochs, 2);
    assert_eq!((memory(&interleaved, "out"), memory(&interleaved, "pair")), (vec![6.0, 12.0], vec![4.0, 9.0]));
    assert_eq!(pointers(&interleaved, "in"), (2, 2), "the variable has moved it after both");

    let between = backend("temporal.yaml");
    push(&between, "in", &[2.0, 3.0]);
    assert_eq!(run(&between, "between", &[]).unwrap().epochs, 2);
    assert_eq!((memory(&between, "out"), memory(&between, "other")), (vec![6.0, 12.0], vec![2.0, 3.0]));
}

/// The far graph reads from where the variable points: at 0 when it changes afterwards, at 2
/// when before.
#[test]
fn graphs_without_links_are_launched_together_and_variables_between_them_keep_their_place() {
    let of = |program| {
        let backend = backend("temporal.yaml");
        push(&backend, "in", &[2.0, 3.0]);
        push(&backend, "far_in", &[5.0, 6.0, 7.0, 8.0]);
        let record = run(&backend, program, &[]).unwrap();
        assert_eq!((record.executes, record.epochs, record.operations), (4, 2, 8));
        assert_eq!((memory(&backend, "out"), pointers(&backend, "in")), (vec![6.0, 12.0], (2, 2)));
        let stats = backend.loader(|loader| loader.stats());
        (memory(&backend, "far_out"), pointers(&backend, "far_in"), stats.epochs, stats.merged_epochs)
    };
    assert_eq!(of("neighbours"), (vec![5.0, 6.0], (0, 4), 1, 1));
    assert_eq!(of("neighbours_moved"), (vec![7.0, 8.0], (0, 4), 2, 0));
    // Settings of a queue that the graphs before it use come after these.
    let between = backend("temporal.yaml");
    push(&between, "in", &[2.0, 3.0]);
    run(&between, "between", &[]).unwrap();
    let stats = between.loader(|loader| loader.stats());
    assert_eq!((stats.epochs, stats.merged_epochs), (2, 0));
}

/// Four slots are what the commands of the loop alone take: start, epoch, variable, end.
#[test]
fn a_loop_with_a_part_of_linked_graphs_is_unrolled() {
    let of = |program, slots| {
        let loader = LoaderConfig { command_slots: Some(slots), ..LoaderConfig::default() };
        let backend = ready(&load("temporal.yaml"), BackendOptions { loader, ..BackendOptions::default() });
        push(&backend, "in", &[2.0, 3.0, 4.0, 5.0]);
        run(&backend, program, &[]).unwrap();
        let stats = backend.loader(|loader| loader.stats());
        (memory(&backend, "pair"), stats.device_loops, stats.unrolled_loops.into_iter().collect::<Vec<_>>())
    };
    assert_eq!(of("half_in_a_loop", 4), (vec![4.0, 9.0], 0, vec![(Unrolled::LinkedGraphs, 1)]));
    assert_eq!(of("whole_in_a_loop", 8), (vec![4.0, 9.0, 16.0, 25.0], 1, vec![]));
    assert_eq!(of("whole_in_a_loop", 4), (vec![4.0, 9.0, 16.0, 25.0], 0, vec![(Unrolled::CommandQueue, 1)]));
}

#[test]
fn a_part_of_a_temporal_epoch_does_not_run() {
    let said = |program| {
        let backend = backend("temporal.yaml");
        push(&backend, "in", &[2.0, 3.0]);
        fails(&backend, program, &[])
    };
    let again = said("again");
    assert!(again.contains("graph chip0 is executed again before chip1, chip2"), "{again}");
    let half = said("half");
    assert!(half.contains("ends while graph chip0 waits for chip2"), "{half}");
    let blocked = said("blocked");
    assert!(blocked.contains("graph same needs device 0, on which graph chip0 waits for chip1, chip2"), "{blocked}");
}

#[test]
fn a_queue_is_full_at_its_entries_unless_the_original_is_wanted() {
    let netlist = load("full.yaml");
    let strict = ready(&netlist, BackendOptions::default());
    push(&strict, "in", &[1.0, 2.0, 3.0, 4.0, 5.0]);
    run(&strict, "run", &[("$n", 2)]).unwrap();
    let said = fails(&strict, "run", &[("$n", 1)]);
    assert!(said.contains("waits for space in queue out (rd 0, wr 2, 2 entries)"), "{said}");
    assert_eq!(memory(&strict, "out"), [1.0, 2.0]);

    let options = BackendOptions { fullness: Fullness::GoldenCompat, ..BackendOptions::default() };
    let golden = ready(&netlist, options);
    push(&golden, "in", &[1.0, 2.0, 3.0, 4.0, 5.0]);
    run(&golden, "run", &[("$n", 3)]).unwrap();
    assert_eq!((memory(&golden, "out"), pointers(&golden, "out")), (vec![3.0, 2.0], (0, 3)));
}

#[test]
fn loops_nest_and_variables_do_what_they_say() {
    let backend = backend("control.yaml");
    push(&backend, "in", &(0..16).map(|i| i as f32).collect::<Vec<_>>());
    let record = run(&backend, "nested", &[("$n", 3)]).unwrap();
    // Inner loops of 3, 4 and 5 turns, and one execution behind.
    assert_eq!(record.executes, 13);
    assert_eq!(memory(&backend, "out"), [0., 1., 2., 3., 4., 0., 1., 2., 3., 4., 0., 1., 1.]);
    run(&backend, "nested", &[("$n", 1)]).unwrap();
    assert_eq!(memory(&backend, "out")[13..], [0., 1., 2., 2.], "the static variable has counted on");
}

#[test]
fn programs_that_cannot_go_on_say_why() {
    let mut options = BackendOptions::default();
    options.limits.instructions = 10_000;
    let backend = ready(&load("control.yaml"), options);
    for (program, parameters, part) in [
        ("wrap_at", &[("$w", 0)][..], "incwrap of $l wraps at 0"),
        ("wrap_at", &[("$w", -3)], "incwrap of $l wraps at -3"),
        ("turns", &[("$n", 0)], "a loop runs 0 times"),
        ("turns", &[("$n", -1)], "a loop runs -1 times"),
        ("overflow", &[], "$x leaves the range of 64 bits"),
        ("for_ever", &[], "more than 10000 instructions have run"),
        ("absent", &[], "there is no program absent; the netlist has nested, wrap_at"),
    ] {
        let said = fails(&backend, program, parameters);
        assert!(said.contains(part), "{program}: {said}");
    }
}

#[test]
fn the_calls_of_the_original_in_their_order() {
    let backend =
        tilework_buda::backend::Backend::new(load("ring.yaml"), Default::default(), BackendOptions::default());
    let (input, out) = (backend.queue("in").unwrap(), backend.queue("out").unwrap());
    assert_eq!(run(&backend, "once", &[]), Err(BackendError::NotInitialised));
    assert_eq!(Status::of(&backend.initialize()), Status::Success);
    let one = common::tensor(&[1.0]);
    (0..4).for_each(|_| backend.push_input(input, &one, None, None).unwrap());
    let full = backend.push_input(input, &one, None, None).unwrap_err();
    assert_eq!(full.status(), Status::RuntimeError);
    assert!(full.to_string().contains("push thread waits for space in queue in (rd 0, wr 4, 4 entries)"), "{full}");
    let waited = backend.push_input(input, &one, Some(Duration::from_millis(5)), None).unwrap_err();
    assert_eq!(waited.status(), Status::TimeoutError);
    assert_eq!(Status::of(&backend.pop_output(out, Some(Duration::from_millis(5)))), Status::TimeoutError);
    run(&backend, "once", &[]).unwrap();
    backend.wait_for_idle().unwrap();
    assert_eq!(common::numbers(&backend.get_output(out, None, None).unwrap()), [1.0]);
    assert_eq!(common::numbers(&backend.pop_output(out, None).unwrap()), [1.0], "to get is not to pop");
    assert!(backend.get_output(out, None, None).is_err());
    assert!(backend.push_input(out, &one, None, None).unwrap_err().to_string().contains("op copy fills it"));
    backend.finish().unwrap();
    assert_eq!(run(&backend, "once", &[]), Err(BackendError::Finished));
}

#[test]
fn memory_is_bounded() {
    let options = BackendOptions { most_bytes: 3 * 4096, ..BackendOptions::default() };
    let backend = ready(&load("ring.yaml"), options);
    push(&backend, "in", &[1.0, 2.0]);
    run(&backend, "once", &[]).unwrap();
    let error = run(&backend, "once", &[]).unwrap_err();
    assert!(matches!(error, BackendError::Epoch(EpochError::Queue { .. })), "{error}");
    assert!(error.to_string().contains("would hold more than 12288 bytes"), "{error}");
}

#[test]
fn a_program_that_fails_in_a_loop_leaves_the_devices_usable() {
    let loader = LoaderConfig { command_slots: Some(6), ..LoaderConfig::default() };
    let backend = ready(&load("full.yaml"), BackendOptions { loader, ..BackendOptions::default() });
    push(&backend, "in", &[1.0]);
    for _ in 0..5 {
        assert!(fails(&backend, "run", &[("$n", 2)]).contains("waits for entry 1 of queue in"));
        backend.pop_output(backend.queue("out").unwrap(), None).unwrap();
    }
    push(&backend, "in", &[2.0]);
    run(&backend, "run", &[("$n", 2)]).unwrap();
    assert_eq!(backend.loader(|loader| loader.stats().device_loops), 6);
    backend.finish().unwrap();
}

/// Memory of a queue that was deallocated while its last epoch runs is not given away before
/// that has ended.
#[test]
fn allocating_over_a_queue_in_use_waits_for_the_devices() {
    let backend = backend("dynamic.yaml");
    push(&backend, "in", &[3.0, 4.0]);
    run(&backend, "one_by_one", &[]).unwrap();
    let stats = backend.loader(|loader| loader.stats());
    assert_eq!((stats.stalls[&StallReason::DynamicQueue].count, stats.full_syncs), (1, 1));
}

/// What waits for what in one program, by level (docs/buda.md).
#[test]
fn headers_are_written_by_the_host_or_by_commands() {
    let stats = |opt_level| {
        let loader = LoaderConfig { opt_level, ..LoaderConfig::default() };
        let backend = ready(&load("full.yaml"), BackendOptions { loader, ..BackendOptions::default() });
        push(&backend, "in", &[1.0, 2.0]);
        run(&backend, "run", &[("$n", 2)]).unwrap();
        backend.loader(|loader| loader.stats())
    };
    let count = |stats: &LoaderStats, command| stats.commands.get(&command).copied().unwrap_or(0);
    // Two executions, each with settings of its own, and the pointer that the loop leaves.
    let (host, cores) = (stats(1), 140);
    assert_eq!((host.header_writes, count(&host, Command::IoQueueUpdate)), (3, 0));
    assert_eq!(host.stalls[&StallReason::QueueInUse].count, 2);
    let commands = stats(3);
    assert_eq!((commands.header_writes, count(&commands, Command::IoQueueUpdate)), (0, 3 * cores));
    assert!(!commands.stalls.contains_key(&StallReason::QueueInUse));
    // On the device: one update, one epoch, two variables, the loop.
    let device = stats(4);
    let of = [Command::IoQueueUpdate, Command::Varinst, Command::LoopStart, Command::LoopEnd, Command::Valid];
    assert_eq!(of.map(|command| count(&device, command)), [cores, 2 * cores, cores, cores, 1]);
    assert_eq!((device.hits, device.misses), (2, 0));
}

/// 33 x 32 x 127 x 127 is beyond 2^24, 33 x 32 x 125 x 127 is not. What `scaled` writes is
/// small either way.
#[test]
fn integer_sums_beyond_what_float32_holds_are_a_warning_for_each_operation() {
    let (wide, tall) = (Shape { t: 1, rows: 32, columns: 1056 }, Shape { t: 1, rows: 1056, columns: 32 });
    let tile = Size { r: 32, c: 32 };
    let warned = |values: &[f32]| {
        let backend = backend("integers.yaml");
        let put = |queue, shape, value, at| {
            let entry = Tensor::full(shape, tile, value).unwrap();
            backend.push_input(backend.queue(queue).unwrap(), &entry, None, at).unwrap();
        };
        put("scale", Shape { t: 1, rows: 32, columns: 32 }, 2f32.powi(-20), Some(0));
        values.iter().for_each(|value| put("a", wide, *value, None));
        values.iter().for_each(|_| put("b", tall, 127.0, None));
        run(&backend, "run", &[]).unwrap();
        assert_eq!(memory(&backend, "sums"), values.iter().map(|v| v * 127.0 * 1056.0).collect::<Vec<_>>());
        backend.warnings().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(warned(&[1.0, 125.0, -125.0]), [""; 0]);
    for large in [127.0, -127.0] {
        let warnings = warned(&[1.0, large, large]);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("op plain, input 1: its integers exceed 2^24"), "{warnings:?}");
        assert!(warnings[1].starts_with("op scaled, input 1: "), "{warnings:?}");
    }
}
