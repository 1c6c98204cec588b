//! What must hold of the loader whatever the program: checked on its events, for random programs,
//! levels and sizes.

mod common;
#[path = "common/numbers.rs"]
mod numbers;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::sync::LazyLock;
use tilework_buda::backend::{Backend, BackendOptions, Call};
use tilework_buda::loader::timing::EPOCH_ID_WINDOW;
use tilework_buda::loader::{Command, EventKind, LoaderConfig, LoaderEvent, LoaderStats, StallReason, Unrolled};
use tilework_buda::queue::StdMonitor;
use tilework_netlist::types::{Arch, GraphId, Instruction, InstructionKind, Netlist, Position, Program, Value, VarOp};

const GRAPHS: usize = 36;

/// 36 graphs on two devices, each from one ram into a ram of its own; graph 0 takes longer than it
/// takes the host to read all read pointers.
static NETLIST: LazyLock<Netlist> = LazyLock::new(|| {
    let shape = "grid_size: [1, 1], t: 1, mblock: [1, 1], ublock: [1, 1]";
    let formats = "in_df: [Float32], acc_df: Float32, out_df: Float32, intermed_df: Float32";
    let mut text = String::from("devices:\n  arch: wormhole_b0\nqueues:\n");
    for device in 0..2 {
        let memory = format!("target_device: {device}, loc: dram, dram: [[0, 0x10000000]]");
        writeln!(text, "  in{device}: {{type: ram, input: HOST, entries: 1, {shape}, df: Float32, {memory}}}").unwrap();
    }
    for graph in 0..GRAPHS {
        let memory =
            format!("target_device: {}, loc: dram, dram: [[1, {:#x}]]", graph % 2, 0x1000_0000 + graph * 0x10000);
        writeln!(text, "  out{graph}: {{type: ram, input: op{graph}, entries: 1, {shape}, df: Float32, {memory}}}")
            .unwrap();
    }
    text.push_str("graphs:\n");
    for graph in 0..GRAPHS {
        let (device, row, column) = (graph % 2, graph % 3, graph % 5);
        let inputs = if graph == 0 { 300 } else { 1 + graph % 4 };
        writeln!(text, "  g{graph}:\n    target_device: {device}\n    input_count: {inputs}").unwrap();
        let op = format!("type: exp, grid_loc: [{row}, {column}], inputs: [in{device}], {shape}, {formats}");
        writeln!(text, "    op{graph}: {{{op}, ublock_order: r, buf_size_mb: 2, math_fidelity: HiFi4}}").unwrap();
    }
    text.push_str("programs:\n  - none:\n      - var: {$v: 0}\n");
    common::parse("random.yaml", &text)
});

#[derive(Debug, Clone)]
enum Tree {
    Run(usize),
    Change,
    Loop(i64, Vec<Tree>),
}

fn trees() -> impl Strategy<Value = Vec<Tree>> {
    // Graphs 0 and 31 to 35 and 4 share ids; small numbers come often enough to hit the cache.
    let graph = prop_oneof![0..6usize, 0..GRAPHS, 30..GRAPHS];
    let leaf = prop_oneof![5 => graph.prop_map(Tree::Run), 1 => Just(Tree::Change)];
    let tree = leaf.prop_recursive(3, 30, 8, |inner| {
        (1i64..4, proptest::collection::vec(inner, 0..8)).prop_map(|(count, body)| Tree::Loop(count, body))
    });
    proptest::collection::vec(tree, 1..30)
}

fn flatten(trees: &[Tree], out: &mut Vec<Instruction>) {
    let instruction = |kind| Instruction { at: Position::default(), kind };
    for tree in trees {
        match tree {
            Tree::Run(graph) => {
                out.push(instruction(InstructionKind::Execute { graph: GraphId(*graph), settings: Vec::new() }));
            }
            Tree::Change => {
                let args = vec![Value::Immediate(1)];
                out.push(instruction(InstructionKind::VarInst { out: "$v".into(), op: VarOp::Set, args }));
            }
            Tree::Loop(count, body) => {
                out.push(instruction(InstructionKind::Loop(Value::Immediate(*count))));
                flatten(body, out);
                out.push(instruction(InstructionKind::EndLoop));
            }
        }
    }
}

fn executes(trees: &[Tree]) -> u64 {
    trees
        .iter()
        .map(|tree| match tree {
            Tree::Run(_) => 1,
            Tree::Change => 0,
            Tree::Loop(count, body) => *count as u64 * executes(body),
        })
        .sum()
}

/// Graphs in the order of the file, each once for each `execute`.
fn written(trees: &[Tree], out: &mut Vec<usize>) {
    for tree in trees {
        match tree {
            Tree::Run(graph) => out.push(*graph),
            Tree::Change => {}
            Tree::Loop(_, body) => written(body, out),
        }
    }
}

/// The temporal epoch of each graph: sets that grow while what is executed next is on
/// other devices.
fn epochs(trees: &[Tree], arch: Arch) -> Vec<usize> {
    let mut sets: Vec<BTreeSet<usize>> = (0..GRAPHS).map(|graph| BTreeSet::from([graph])).collect();
    let mut executed = Vec::new();
    if arch != Arch::Grayskull {
        written(trees, &mut executed);
    }
    let find = |sets: &[BTreeSet<usize>], graph| sets.iter().position(|set| set.contains(&graph)).unwrap();
    for next in 1..executed.len() {
        let (last, this) = (find(&sets, executed[next - 1]), find(&sets, executed[next]));
        let shared = sets[last].iter().any(|a| sets[this].iter().any(|b| a % 2 == b % 2));
        if last != this && !shared {
            let more = std::mem::take(&mut sets[this]);
            sets[last].extend(more);
        }
    }
    sets.retain(|set| !set.is_empty());
    (0..GRAPHS).map(|graph| find(&sets, graph)).collect()
}

/// Graphs in the order of execution; none where something else comes between two of them.
fn trace(trees: &[Tree], out: &mut Vec<Option<usize>>) {
    for tree in trees {
        match tree {
            Tree::Run(graph) => out.push(Some(*graph)),
            Tree::Change => out.push(None),
            Tree::Loop(count, body) => {
                out.push(None);
                for _ in 0..*count {
                    trace(body, out);
                    out.push(None);
                }
            }
        }
    }
}

/// Which graphs are launched together when no loop runs on the devices and the host does not
/// wait for each.
fn together(trees: &[Tree], epochs: &[usize]) -> Vec<Vec<usize>> {
    let mut steps = Vec::new();
    trace(trees, &mut steps);
    let (mut launches, mut open) = (Vec::<Vec<usize>>::new(), false);
    for step in steps {
        match (step, launches.last_mut()) {
            (None, _) => open = false,
            (Some(graph), Some(last))
                if open && last.iter().all(|&other| epochs[other] == epochs[graph] && other % 2 != graph % 2) =>
            {
                last.push(graph);
            }
            (Some(graph), _) => {
                launches.push(vec![graph]);
                open = true;
            }
        }
    }
    launches
}

/// Graphs of the epochs in the order of events, those with commands of the same time together.
fn launched(events: &[LoaderEvent]) -> Vec<Vec<usize>> {
    let mut launches: Vec<(u64, Vec<usize>)> = Vec::new();
    for event in events {
        let EventKind::Epoch { graph, issued, .. } = event.kind else { continue };
        match launches.last_mut() {
            Some((at, graphs)) if *at == issued => graphs.push(graph.0),
            _ => launches.push((issued, vec![graph.0])),
        }
    }
    launches.into_iter().map(|(_, graphs)| graphs).collect()
}

fn run(trees: &[Tree], loader: LoaderConfig) -> (LoaderStats, Vec<LoaderEvent>) {
    let mut netlist = NETLIST.clone();
    let mut instructions = Vec::new();
    flatten(trees, &mut instructions);
    netlist.programs = vec![Program { name: "random".into(), at: Position::default(), instructions }];
    let options = BackendOptions { loader, ..BackendOptions::default() };
    let backend: Backend<_, StdMonitor<_>> = Backend::with(Arc::new(netlist), numbers::Numbers, options);
    backend.initialize().unwrap();
    backend.run_program(&Call { program: "random".into(), parameters: Default::default() }).unwrap();
    backend.finish().unwrap();
    backend.loader(|loader| (loader.stats(), loader.events().to_vec()))
}

/// Plays the events and looks for what must not be.
fn check(events: &[LoaderEvent], epochs: &[usize]) -> Result<(), String> {
    let mut slots: BTreeMap<(u32, usize), GraphId> = BTreeMap::new();
    let mut passed_at: BTreeMap<(u32, usize), u64> = BTreeMap::new();
    let mut pinned: BTreeSet<GraphId> = BTreeSet::new();
    let mut flights: Vec<(usize, u64, u64)> = Vec::new();
    for LoaderEvent { start, end, kind } in events {
        if end < start {
            return Err(format!("{kind:?} ends before it starts"));
        }
        match kind {
            EventKind::Binary { device, graph, slot, evicted, .. } => {
                let old = slots.insert((*device, *slot), *graph);
                if old != *evicted {
                    return Err(format!("{kind:?} takes the place of {old:?}"));
                }
                if evicted.is_some_and(|evicted| pinned.contains(&evicted)) {
                    return Err(format!("{kind:?} evicts a pinned binary"));
                }
                if passed_at.get(&(*device, *slot)).is_some_and(|passed| passed > start) {
                    return Err(format!("{kind:?} overwrites a binary in flight"));
                }
            }
            EventKind::Epoch { device, graph, epoch, slot, issued, passed } => {
                if *epoch != epochs[graph.0] {
                    return Err(format!("{kind:?} is of temporal epoch {}", epochs[graph.0]));
                }
                if slots.get(&(*device, *slot)) != Some(graph) {
                    return Err(format!("{kind:?} runs what is not there"));
                }
                if !(issued <= start && end <= passed) {
                    return Err(format!("{kind:?} runs before it was issued or after it was passed"));
                }
                let last = passed_at.entry((*device, *slot)).or_default();
                *last = (*last).max(*passed);
                flights.push((*epoch, *issued, *passed));
            }
            EventKind::LoopStart { graphs } => pinned.extend(graphs),
            EventKind::LoopEnd => {
                // No core has published that it passed the loop's commands before.
                flights.extend(pinned.iter().map(|graph| (epochs[graph.0], *start, *end)));
                pinned.clear();
            }
            EventKind::Stall(_) | EventKind::Level { .. } => {}
        }
    }
    for (i, (epoch, issued, passed)) in flights.iter().enumerate() {
        let alias = |(other, from, to): &&(usize, u64, u64)| {
            other != epoch && other % EPOCH_ID_WINDOW == epoch % EPOCH_ID_WINDOW && from < passed && issued < to
        };
        if let Some(other) = flights[..i].iter().find(alias) {
            return Err(format!("epochs {epoch} and {} are in flight together", other.0));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn what_must_hold_holds(
        trees in trees(),
        opt_level in 0u8..5,
        binary_slots in 1usize..8,
        command_slots in 2usize..24,
        arch in prop_oneof![Just(Arch::Grayskull), Just(Arch::WormholeB0)],
    ) {
        let config = LoaderConfig {
            opt_level,
            arch: Some(arch),
            command_slots: Some(command_slots),
            binary_slots,
            ..Default::default()
        };
        let (stats, events) = run(&trees, config);
        let epochs = epochs(&trees, arch);
        prop_assert_eq!(check(&events, &epochs), Ok(()));
        if stats.device_loops == 0 {
            let expected = match opt_level {
                0 => together(&trees, &epochs).concat().into_iter().map(|graph| vec![graph]).collect(),
                _ => together(&trees, &epochs),
            };
            prop_assert_eq!(stats.epochs, expected.len() as u64);
            prop_assert_eq!(stats.merged_epochs, expected.iter().filter(|graphs| graphs.len() > 1).count() as u64);
            prop_assert_eq!(launched(&events), expected);
        }
        prop_assert_eq!(stats.hits + stats.misses, executes(&trees));
        prop_assert!(stats.deepest_queue <= command_slots);
        prop_assert_eq!(stats.full_syncs, stats.full_syncs.min(executes(&trees)));
        let loops = |trees: &[Tree]| trees.iter().any(|tree| matches!(tree, Tree::Loop(..)));
        let seen = stats.device_loops + stats.unrolled_loops.values().sum::<u64>();
        prop_assert_eq!(seen > 0, opt_level == 4 && loops(&trees));
        let waited: u64 = stats.stalls.values().map(|stalls| stalls.cycles).sum();
        prop_assert!(waited <= stats.host_cycles);
    }
}

/// Programs whose statistics can be counted by hand.
#[test]
fn levels_do_what_the_table_says() {
    let level = |opt_level| LoaderConfig { opt_level, ..Default::default() };
    let all: Vec<Tree> = (0..GRAPHS).map(Tree::Run).collect();
    let twice: Vec<Tree> = all.iter().chain(&all).cloned().collect();

    // 18 graphs on each device fit into 32 slots: every binary is preloaded, except at level 0.
    let counts = |stats: &LoaderStats| (stats.preloads, stats.hits, stats.misses, stats.evictions);
    assert_eq!(counts(&run(&twice, level(0)).0), (0, 0, 72, 8));
    for opt_level in 1..5 {
        assert_eq!(counts(&run(&twice, level(opt_level)).0), (36, 72, 0, 0), "{opt_level}");
    }
    let (blocking, _) = run(&all, level(0));
    assert_eq!(blocking.stalls[&StallReason::Blocking].count, 36);
    let cores = 2 * 80;
    assert_eq!(blocking.commands[&Command::EndProgram], cores);
    // A command for each core of the device that runs the graph.
    assert_eq!(blocking.commands[&Command::Valid] + blocking.commands[&Command::NotValid], 36 * 80);
    assert_eq!(blocking.commands[&Command::Valid], 36);
}

#[test]
fn policies_differ_when_the_program_goes_round_more_than_the_cache_holds() {
    let config = |opt_level| LoaderConfig { opt_level, binary_slots: 4, ..Default::default() };
    // Six graphs of device 0, round and round.
    let round = |count| vec![Tree::Loop(count, (0..6).map(|i| Tree::Run(2 * i)).collect())];
    let (lru, _) = run(&round(10), config(1));
    assert_eq!(
        (lru.preloads, lru.hits, lru.misses),
        (8, 4, 56),
        "after the preload each is evicted before it comes again"
    );
    let (backtrace, _) = run(&round(10), config(2));
    assert!(backtrace.misses < lru.misses, "{backtrace:?}");
    assert!(lru.stalls.contains_key(&StallReason::BinaryInFlight), "{lru:?}");
    // Four graphs fit; then the loop can be the device's.
    let (device, _) = run(&[Tree::Loop(10, (0..4).map(|i| Tree::Run(2 * i)).collect())], config(4));
    assert_eq!((device.device_loops, device.hits, device.misses), (1, 40, 0));
    assert_eq!(device.commands[&Command::LoopStart], 160);
    assert_eq!(device.commands[&Command::Valid], 4, "the first turn's commands serve for all");
    let (unrolled, _) = run(&round(10), config(4));
    assert_eq!(unrolled.unrolled_loops, BTreeMap::from([(Unrolled::BinaryCache, 1)]));
}

#[test]
fn loops_that_do_not_fit_the_device_are_unrolled_for_a_reason() {
    let reason = |body: Vec<Tree>, config: LoaderConfig| run(&[Tree::Loop(2, body)], config).0.unrolled_loops;
    let apart = LoaderConfig { arch: Some(Arch::Grayskull), ..Default::default() };
    let short = LoaderConfig { command_slots: Some(4), ..Default::default() };
    let three = vec![Tree::Run(0), Tree::Run(2), Tree::Run(4)];
    assert_eq!(reason(three, short), BTreeMap::from([(Unrolled::CommandQueue, 1)]));
    let alias = vec![Tree::Run(1), Tree::Run(32)];
    assert_eq!(reason(alias.clone(), apart), BTreeMap::from([(Unrolled::EpochIds, 1)]));
    // Where they are one epoch they have one id.
    assert_eq!(reason(alias, LoaderConfig::default()), BTreeMap::new());
}

#[test]
fn graphs_on_different_devices_that_follow_one_another_are_one_epoch() {
    let runs = |graphs: &[usize]| graphs.iter().map(|graph| Tree::Run(*graph)).collect::<Vec<_>>();
    let counted = |trees: &[Tree], config: LoaderConfig| {
        let stats = run(trees, config).0;
        (stats.epochs, stats.merged_epochs)
    };
    let four = runs(&[0, 1, 2, 3]);
    // 0 and 1 fit, 2 meets 0, 3 joins 2.
    assert_eq!(counted(&four, LoaderConfig::default()), (2, 2));
    let epochs_of = |trees: &[Tree]| {
        let mut epochs = BTreeMap::new();
        for event in run(trees, LoaderConfig::default()).1 {
            if let EventKind::Epoch { graph, epoch, .. } = event.kind {
                epochs.insert(graph.0, epoch);
            }
        }
        epochs
    };
    assert_eq!(epochs_of(&four), BTreeMap::from([(0, 0), (1, 0), (2, 1), (3, 1)]));
    // Grayskull has one chip, level 0 waits for each graph.
    assert_eq!(counted(&four, LoaderConfig { arch: Some(Arch::Grayskull), ..Default::default() }), (4, 0));
    assert_eq!(counted(&four, LoaderConfig { opt_level: 0, ..Default::default() }), (4, 0));
    // A variable between two of them is changed before the second: one number, but not one launch.
    let apart = [Tree::Run(0), Tree::Change, Tree::Run(1)];
    assert_eq!(counted(&apart, LoaderConfig::default()), (2, 0));
    assert_eq!(epochs_of(&apart), BTreeMap::from([(0, 0), (1, 0)]));
    // Commands that go out together do not wait for the other device's.
    let end = |trees: &[Tree]| run(trees, LoaderConfig { opt_level: 3, ..Default::default() }).0.device_cycles;
    assert!(end(&runs(&[2, 1])) <= end(&[Tree::Run(2), Tree::Change, Tree::Run(1)]));
}

#[test]
fn epochs_of_equal_id_wait_for_each_other_and_only_those() {
    // Where graphs on different devices are epochs of their own.
    let config = LoaderConfig { opt_level: 2, arch: Some(Arch::Grayskull), ..Default::default() };
    let stalls =
        |graphs: [usize; 2]| run(&graphs.map(Tree::Run), config).0.stalls.contains_key(&StallReason::EpochIdAlias);
    assert!(stalls([0, 31]));
    assert!(stalls([33, 2]));
    assert!(!stalls([0, 30]) && !stalls([0, 0]));
}

#[test]
fn a_short_command_queue_holds_the_host() {
    let config = LoaderConfig { opt_level: 3, command_slots: Some(2), ..Default::default() };
    let (stats, _) = run(&(0..8).map(|_| Tree::Run(0)).collect::<Vec<_>>(), config);
    assert!(stats.stalls[&StallReason::CommandQueueFull].count >= 4, "{stats:?}");
    assert!(stats.rd_ptr_reads > 0 && stats.deepest_queue == 2);
}

/// A loop of two graphs is four commands, which is all there is room for until the loop is over.
#[test]
fn a_loop_on_the_devices_holds_its_slots_to_its_end() {
    let config = LoaderConfig { opt_level: 4, command_slots: Some(4), ..Default::default() };
    let body = |count| Tree::Loop(count, vec![Tree::Run(2), Tree::Run(4)]);
    let trees = |count| vec![body(count), Tree::Run(6)];
    let stats = |count| run(&trees(count), config).0;
    let (short, long) = (stats(100), stats(1000));
    assert_eq!(long.device_loops, 1);
    assert!(!short.stalls.contains_key(&StallReason::CommandQueueFull) && short.deepest_queue == 4, "{short:?}");
    // What the host waits is what the loop takes longer.
    let waited = |stats: &LoaderStats| stats.stalls[&StallReason::WriteBack].cycles;
    assert_eq!(waited(&long) - waited(&short), long.device_cycles - short.device_cycles);
    // The same graphs without a loop free their slots one by one.
    let unrolled: Vec<Tree> = (0..1000).flat_map(|_| [Tree::Run(2), Tree::Run(4)]).collect();
    assert!(!run(&unrolled, config).0.stalls.contains_key(&StallReason::WriteBack));
}

#[test]
fn the_same_program_gives_the_same_counts_and_events() {
    let trees: Vec<Tree> = (0..30).map(|i| Tree::Loop(1 + i % 3, vec![Tree::Run(i as usize), Tree::Change])).collect();
    assert_eq!(run(&trees, LoaderConfig::default()), run(&trees, LoaderConfig::default()));
}
