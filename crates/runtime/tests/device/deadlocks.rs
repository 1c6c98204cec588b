//! What cannot go on is named at once: who waits for what, in which program, and who could end it.

use crate::common::{Device, empty, kernel};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{SEMAPHORE_OFFSET, prefetch_core};
use tilework_abi::msg::MODE_DEV;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_cq::DispatchCommand;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, DeadlockReport, DeviceConfig, Dispatch, Names, Program, Role, RuntimeError,
    UniqueArgs, default_cycles, lower,
};

fn open(dispatch: Dispatch) -> Device {
    crate::common::open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) })
}

fn deadlock(device: &mut Device, programs: &[Program]) -> DeadlockReport {
    match device.run(programs) {
        Err(RuntimeError::Deadlock(report)) => *report,
        other => panic!("expected a deadlock, found {other:?}"),
    }
}

/// Checks that the report says of every awaited word who could write it.
fn assert_writers_are_named(text: &str) {
    let (_, waiters) = text.split_once("\nwaiting (").unwrap_or_else(|| panic!("no list of waiters: {text}"));
    let lines: Vec<&str> = waiters.lines().collect();
    let awaited = |line: &&str| line.starts_with("    waits for ");
    assert!(lines.iter().any(awaited), "{text}");
    for pair in lines.windows(2).filter(|pair| awaited(&pair[0])) {
        let writer = pair[1].strip_prefix("      written by ");
        assert!(writer.is_some_and(|who| !who.is_empty()), "{:?} is followed by {:?} in {text}", pair[0], pair[1]);
    }
    assert!(!lines.last().is_some_and(awaited), "{text}");
}

/// A program whose only worker waits for a word that nobody writes.
fn spin(device: &mut Device, core: NocXy) -> Program {
    let word = device.alloc_l1("spin word", 64).unwrap();
    Program::new("spin", Cores::List(vec![core]))
        .role(Role::all().kernel(Processor::Brisc, kernel("spin", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![word.address.get()]))
}

#[test]
fn a_kernel_that_never_ends_is_named_with_its_word_and_line() {
    let mut device = open(Dispatch::Fast);
    let core = device.workers()[7];
    let program = spin(&mut device, core);
    let report = deadlock(&mut device, &[empty(Cores::All), program]);
    let text = report.to_string();
    assert_eq!(report.programs, ["spin"]);
    let chain: Vec<&str> = report.chain.iter().map(|link| link.who.as_str()).collect();
    assert_eq!(chain, ["the host", "the dispatcher", "BRISC of (1,9)"]);
    assert!(text.contains("stream 48: 0 of 1 workers done"), "{text}");
    assert!(text.contains("the workers that are not done: (1,9)"), "{text}");
    assert!(text.contains("kernel spin of program spin"), "{text}");
    assert!(text.contains("a word in L1 buffer spin word"), "{text}");
    assert!(text.contains("spin/src/main.rs:"), "{text}");
    assert!(text.contains("WAIT until stream 48 >= 1"), "{text}");
    assert_writers_are_named(&text);
    // The device is lost, and says so.
    let again = device.run(&[]).unwrap_err().to_string();
    assert!(again.starts_with("the device stopped earlier (deadlock at cycle"), "{again}");
}

#[test]
fn slow_dispatch_names_the_same_kernel() {
    let mut device = open(Dispatch::Slow);
    let core = device.workers()[7];
    let program = spin(&mut device, core);
    let report = deadlock(&mut device, &[empty(Cores::All), program]);
    let text = report.to_string();
    assert_eq!(report.programs, ["spin"]);
    assert!(text.contains("kernel spin of program spin"), "{text}");
    assert!(text.contains("the host waits for the go messages to say DONE"), "{text}");
    assert!(text.contains("BRISC of (1,9) waits for a word in L1 buffer spin word"), "{text}");
    assert_writers_are_named(&text);
}

#[test]
fn a_lost_credit_is_a_circle_of_prefetcher_and_dispatcher() {
    let mut device = open(Dispatch::Fast);
    let prefetch = device.board().prefetch_core();
    // Credits vanish: the prefetcher believes that the dispatcher has no pages left.
    let semaphores = device.memory_map().kernel_config.get() + SEMAPHORE_OFFSET;
    let credits = prefetch_core::SEM_DISPATCH_PAGES.addr(semaphores);
    device.write_l1(prefetch, L1Addr::new(credits), &0u32.to_le_bytes()).unwrap();
    let report = deadlock(&mut device, &[empty(Cores::All)]);
    let text = report.to_string();
    let chain: Vec<&str> = report.chain.iter().map(|link| link.who.as_str()).collect();
    assert_eq!(chain, ["the host", "the dispatcher", "the prefetcher"]);
    assert_eq!(report.circle, Some(1));
    assert!(text.contains("dispatch CB credits (semaphore 0)"), "{text}");
    assert!(text.contains("dispatch CB pages (semaphore 0)"), "{text}");
    assert!(text.contains("<- the dispatcher: a circle"), "{text}");
}

#[test]
fn a_dispatcher_that_waits_for_one_worker_too_many_is_told_apart_from_a_worker_that_hangs() {
    let mut device = open(Dispatch::Fast);
    let program = empty(Cores::All);
    let layout = device.layout(&program).unwrap();
    let ir = lower::build_ir(&program, &layout, device.memory_map(), MODE_DEV).unwrap();
    let mut commands = lower::commands(&ir, lower::go_word(device.board().dispatch_core()));
    let Some(DispatchCommand::Wait(wait)) = commands.last_mut() else { panic!("a launch ends with a wait") };
    wait.count += 1;
    let Err(RuntimeError::Deadlock(report)) = device.run_commands(&commands) else { panic!("expected a deadlock") };
    let text = report.to_string();
    assert!(text.contains("stream 48: 118 of 119 workers done"), "{text}");
    assert!(text.contains("written by nobody: 118 workers were started and all are done, 119 are expected"), "{text}");
    assert!(text.contains("WAIT until stream 48 >= 119"), "{text}");
    let chain: Vec<&str> = report.chain.iter().map(|link| link.who.as_str()).collect();
    assert_eq!(chain, ["the host", "the dispatcher"]);
}

#[test]
fn a_circular_buffer_without_a_producer_names_the_counter() {
    let mut device = open(Dispatch::Fast);
    let y = device.alloc_dram("y", &[64], DType::U8, 64).unwrap();
    let program = Program::new("half a pipeline", Cores::Count(2))
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer(CircularBuffer { index: 5, page_size: 64, pages: PageCount::new(2) })
        // The reader brings one page, the writer expects two.
        .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(vec![y.address.word(), 0, 1, 64, 5]))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![y.address.word(), 0, 2, 64, 5]));
    let text = deadlock(&mut device, &[program]).to_string();
    assert!(text.contains("CB 5 pages received (1)"), "{text}");
    let nobody =
        "written by nobody: no kernel of this program writes it any more; on the same tile that of NCRISC has ended";
    assert!(text.contains(nobody), "{text}");
    assert!(text.contains("BRISC of (1,2) (1,3) (2 tiles), kernel writer of program half a pipeline"), "{text}");
}

/// A writer that expects pages in circular buffer 5, and other kernels of its tile.
fn writer(name: &str, more: impl FnOnce(Role) -> Role) -> Program {
    let names = Names { circular_buffers: [(5, "tiles".into())].into(), semaphores: [(0, "go".into())].into() };
    Program::new(name, Cores::Count(1))
        .role(more(Role::all().named("copy").kernel(Processor::Brisc, kernel("writer", Processor::Brisc))))
        .circular_buffer(CircularBuffer { index: 5, page_size: 64, pages: PageCount::new(2) })
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![0x40, 0, 1, 64, 5]))
        .semaphore(0)
        .names(names)
}

#[test]
fn a_counter_that_no_kernel_writes_is_said_to_have_no_writer() {
    let mut device = open(Dispatch::Fast);
    let text = deadlock(&mut device, &[writer("alone", |role| role)]).to_string();
    assert!(text.contains("CB 5 \"tiles\" pages received (0); nobody has written it so far"), "{text}");
    assert!(text.contains("written by nobody: no kernel of this program writes it\n"), "{text}");
    assert!(text.contains("kernel writer of program alone, role copy\n"), "{text}");
}

#[test]
fn a_kernel_that_could_write_a_counter_is_not_said_to_do_so() {
    let mut device = open(Dispatch::Fast);
    let word = device.alloc_l1("word", 64).unwrap().address.get();
    let spin = |role: Role| role.kernel(Processor::Ncrisc, kernel("spin", Processor::Ncrisc));
    let program = writer("aside", spin).unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(vec![word]));
    let text = deadlock(&mut device, &[program]).to_string();
    let one = "written by NCRISC of the same tile, if by any: no other kernel still runs there";
    assert!(text.contains(one) && !text.contains("producer"), "{text}");
}

#[test]
fn a_producer_whose_consumer_has_ended_is_told_so() {
    let mut device = open(Dispatch::Fast);
    let x = device.alloc_dram("x", &[256], DType::U8, 64).unwrap();
    // The reader brings four pages into a buffer of two; the writer expects none.
    let program = writer("full", |role| role.kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc)))
        .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(vec![x.address.word(), 0, 4, 64, 5]))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![x.address.word(), 0, 0, 64, 5]));
    let text = deadlock(&mut device, &[program]).to_string();
    assert!(text.contains("CB 5 \"tiles\" pages acknowledged (0); nobody has written it so far"), "{text}");
    assert!(text.contains("no kernel of this program writes it any more"), "{text}");
}

#[test]
fn a_semaphore_is_called_by_its_name() {
    let mut device = open(Dispatch::Fast);
    let program = writer("signal", |role| role);
    // The word that the kernel `spin` waits for is the semaphore.
    let layout = device.layout(&program).unwrap();
    let word = layout.base.get() + layout.sem_offset;
    let program = Program::new("signal", Cores::Count(1))
        .role(Role::all().named("one").kernel(Processor::Brisc, kernel("spin", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![word; 5]))
        .semaphore(0)
        .names(program.names);
    let text = deadlock(&mut device, &[program]).to_string();
    assert!(text.contains("semaphore 0 \"go\""), "{text}");
    assert!(text.contains("written by nobody: no other kernel of program signal runs any more"), "{text}");
}

#[test]
fn a_program_that_runs_for_ever_ends_with_its_budget() {
    let mut device = crate::common::open(DeviceConfig { max_cycles: Some(200_000), ..DeviceConfig::new(Board::P100) });
    let word = device.alloc_l1("result", 64).unwrap();
    let program = Program::new("busy", Cores::Count(3))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![u32::MAX, word.address.get()]));
    let error = device.run(&[program]).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, RuntimeError::Budget(_)));
    assert!(text.starts_with("still running after 200000 cycles; busy:\n  BRISC of (1,"), "{text}");
    // Cores at different instructions of the loop are different entries; none is left out.
    let busy = text.split("command queue:").next().unwrap();
    assert!(["(1,2)", "(1,3)", "(1,4)"].iter().all(|tile| busy.matches(tile).count() == 1), "{text}");
    assert!(busy.contains("), kernel busy of program busy\n    at "), "{text}");
    assert!(text.contains("busy/src/main.rs:"), "{text}");
}

#[test]
fn a_caller_ends_a_run_with_the_report_of_an_exhausted_budget() {
    let mut device = open(Dispatch::Fast);
    let word = device.alloc_l1("result", 64).unwrap();
    let program = Program::new("busy", Cores::Count(3))
        .role(Role::all().named("loop").kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![u32::MAX, word.address.get()]));
    let (mut calls, budget) = (0, Rc::new(Cell::new(0)));
    let seen = Rc::clone(&budget);
    device.on_progress(move |progress| {
        seen.set(progress.until - progress.cycles);
        calls += 1;
        if calls == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let error = device.run(&[program]).unwrap_err();
    let RuntimeError::Interrupted(report) = &error else { panic!("{error}") };
    // Three kernels have a third of what one has.
    assert_eq!(report.cycles + budget.get(), 4_000_000_000);
    let text = error.to_string();
    assert!(report.interrupted && text.starts_with(&format!("interrupted after {} cycles; busy:\n", report.cycles)));
    assert!(text.contains("kernel busy of program busy, role loop\n    at "), "{text}");
    let again = device.run(&[]).unwrap_err().to_string();
    assert!(again.starts_with("the device stopped earlier (interrupted after"), "{again}");
}

#[test]
fn the_usual_budget_is_shared_among_the_kernels_of_a_program() {
    assert_eq!(default_cycles([1]), 12_000_000_000);
    assert_eq!(default_cycles([118]), 12_000_000_000 / 118);
    assert_eq!(default_cycles([590]), 100_000_000);
    assert_eq!(default_cycles([590, 590, 12]), 1_200_000_000);
    assert_eq!(default_cycles([]), 100_000_000);
}
