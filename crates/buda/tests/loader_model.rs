//! What must hold of the loader whatever the program: checked on its events, for random programs, levels and sizes.

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
use tilework_netlist::types::{GraphId, Instruction, InstructionKind, Netlist, Position, Program, Value, VarOp};

const GRAPHS: usize = 36;

/// 36 graphs on two devices, each from one ram into a ram of its own; graph 0 takes longer than it takes the host
/// to read all read pointers.
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
fn check(events: &[LoaderEvent]) -> Result<(), String> {
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
                flights.extend(pinned.iter().map(|graph| (graph.0, *start, *end)));
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
    ) {
        let config = LoaderConfig { opt_level, binary_slots, command_slots: Some(command_slots), ..Default::default() };
        let (stats, events) = run(&trees, config);
        prop_assert_eq!(check(&events), Ok(()));
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
    let short = LoaderConfig { command_slots: Some(4), ..Default::default() };
    let three = vec![Tree::Run(0), Tree::Run(2), Tree::Run(4)];
    assert_eq!(reason(three, short), BTreeMap::from([(Unrolled::CommandQueue, 1)]));
    let alias = vec![Tree::Run(1), Tree::Run(32)];
    assert_eq!(reason(alias, LoaderConfig::default()), BTreeMap::from([(Unrolled::EpochIds, 1)]));
}

#[test]
fn epochs_of_equal_id_wait_for_each_other_and_only_those() {
    let config = LoaderConfig { opt_level: 2, ..Default::default() };
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

#[test]
fn the_same_program_gives_the_same_counts_and_events() {
    let trees: Vec<Tree> = (0..30).map(|i| Tree::Loop(1 + i % 3, vec![Tree::Run(i as usize), Tree::Change])).collect();
    assert_eq!(run(&trees, LoaderConfig::default()), run(&trees, LoaderConfig::default()));
}
