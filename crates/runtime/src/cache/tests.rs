//! Launches against a model of the workers: what they find when they are started is what the plain
//! lowering would have sent, and nothing that a program uses changes while it runs.

mod dram;
mod lanes;
mod over;
mod traces;

use super::*;
use crate::elf::KernelImage;
use crate::elf::tests::kernel_of;
use crate::memory::Allocator;
use crate::program::{ArgSet, CircularBuffer, Cores, Layout, Role, UniqueArgs};
use crate::queue::Sent;
use proptest::prelude::*;
use std::ops::Range;
use tilework_abi::addr::{L1Addr, PageCount};
use tilework_abi::board::Board;
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap, WORKER};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_cq::decode::InnerCommand;
use tilework_cq::dispatch::{PackedTargets, Packets};
use tilework_cq::{DispatchCommand, PrefetchCommand, decode_stream};
use zerocopy::FromBytes;

/// Workers of the model: three columns, the last of them not whole.
const WORKERS: usize = 26;

fn workers() -> Vec<NocXy> {
    Board::P100.workers().take(WORKERS).collect()
}
fn l1() -> Allocator<L1Addr> {
    Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64)
}
/// A map whose text cache holds few programs.
fn small() -> MemoryMap {
    MemoryMap { text_cache_size: WORKER.kernel_config_size, ..WORKER }
}
fn launcher(map: &MemoryMap) -> Launcher {
    launcher_in(DispatchLayout::Dispatcher, map)
}
fn launcher_in(layout: DispatchLayout, map: &MemoryMap) -> Launcher {
    Launcher::new(Board::P100, layout, map, &workers()).unwrap()
}
fn kernel(words: usize, seed: u32) -> Arc<KernelImage> {
    // `addi x0, x0, imm`: harmless, and different for each seed.
    let words: Vec<u32> = (0..words).map(|i| 0x13 | (seed.wrapping_add(i as u32) & 0x7FF) << 20).collect();
    kernel_of(&words, Processor::Brisc)
}
fn empty(cores: usize, seed: u32) -> Program {
    Program::new("p", Cores::Count(cores)).role(Role::all().kernel(Processor::Brisc, kernel(8, seed)))
}

/// A worker as its firmware sees it.
#[derive(Clone)]
struct Worker {
    l1: Vec<u8>,
    /// Bytes that its program in flight uses.
    used: Vec<Range<u32>>,
}

/// The workers, and what has been started.
struct Model {
    map: MemoryMap,
    workers: Vec<NocXy>,
    state: Vec<Worker>,
    table: Vec<u32>,
    started: Vec<usize>,
    /// Workers that have ended since the stream was cleared.
    ended: usize,
    /// Bytes written with kernel text in them.
    text: usize,
    /// Go signals that the dispatcher has allowed the subordinate.
    allowed: usize,
    dram: dram::Dram,
}

impl Model {
    fn new(map: &MemoryMap) -> Self {
        let worker = Worker { l1: vec![0xEE; 0x37000], used: Vec::new() };
        let mut model = Self {
            map: *map,
            workers: workers(),
            state: vec![worker; WORKERS],
            table: Vec::new(),
            started: Vec::new(),
            ended: 0,
            text: 0,
            allowed: 0,
            dram: dram::Dram::default(),
        };
        // The firmware has started: the next launch message is the first.
        (0..WORKERS).for_each(|i| model.set_word(i, map.launch_rd_ptr(), 0));
        model
    }
    fn set_word(&mut self, worker: usize, at: L1Addr, word: u32) {
        self.state[worker].l1[at.get() as usize..][..4].copy_from_slice(&word.to_le_bytes());
    }
    fn word(&self, worker: usize, at: L1Addr) -> u32 {
        u32::from_le_bytes(self.bytes(worker, at, 4).try_into().unwrap())
    }
    fn bytes(&self, worker: usize, at: L1Addr, len: usize) -> &[u8] {
        &self.state[worker].l1[at.get() as usize..][..len]
    }
    fn write(&mut self, worker: usize, at: u32, data: &[u8]) {
        let end = at + data.len() as u32;
        for used in &self.state[worker].used {
            assert!(end <= used.start || used.end <= at, "{at:#x}..{end:#x} is in use: {used:x?}");
        }
        self.state[worker].l1[at as usize..end as usize].copy_from_slice(data);
        if at >= self.map.text_cache.get() {
            self.text += data.len();
        }
    }
    fn inside(&self, rect: u32) -> Vec<usize> {
        // NoC 1: the larger corner is the start.
        let (end, start) = (NocXy::decode(rect >> 12), NocXy::decode(rect));
        let inside = |c: &NocXy| (start.x..=end.x).contains(&c.x) && (start.y..=end.y).contains(&c.y);
        (0..WORKERS).filter(|&i| inside(&self.workers[i])).collect()
    }
    /// Executes commands; returns whether one of them was a go signal.
    fn execute(&mut self, records: &[Encoded]) -> bool {
        let mut went = false;
        for (record, sent) in records {
            self.execute_bytes(record.bytes(), sent, |_| went = true);
        }
        went
    }
    /// Executes commands that are described by `sent`; calls `gone` behind each go signal.
    fn execute_bytes(&mut self, bytes: &[u8], sent: &[Sent], mut gone: impl FnMut(&mut Self)) {
        let mut sent = sent.iter();
        for relay in decode_stream(bytes).map(Result::unwrap) {
            let (subordinate, commands) = match &relay.command {
                PrefetchCommand::RelayInline(inline) => {
                    let whole = relay.inner.into_iter().map(|inner| match inner.command {
                        InnerCommand::Whole(command) => command,
                        head => panic!("a part of a command: {head:?}"),
                    });
                    (inline.dispatcher == DispatcherSelect::Subordinate, whole.collect())
                }
                other => (false, Vec::from_iter(self.dram.execute(other))),
            };
            for command in commands {
                let went = if subordinate {
                    self.subordinate(command)
                } else {
                    if let Some(described) = sent.next().expect("each command is described").what.command() {
                        assert_eq!(&command, described);
                    }
                    self.command(command)
                };
                if went {
                    gone(self);
                }
            }
        }
        assert!(sent.next().is_none(), "each description has its command");
    }
    /// Executes a command of the subordinate, whose wait is for what the dispatcher has waited for.
    fn subordinate(&mut self, command: DispatchCommand) -> bool {
        match command {
            DispatchCommand::Wait(_) => {
                assert!(self.started.is_empty(), "the dispatcher has waited");
                false
            }
            DispatchCommand::SendGoSignal(_) => {
                self.allowed = self.allowed.checked_sub(1).expect("the dispatcher has allowed it");
                self.command(command)
            }
            command => self.command(command),
        }
    }
    fn command(&mut self, command: DispatchCommand) -> bool {
        match command {
            DispatchCommand::WritePackedLarge(write) => {
                for sub in write.subs {
                    let inside = self.inside(sub.noc_xy);
                    assert_eq!(inside.len(), usize::from(sub.num_mcast_dests));
                    inside.into_iter().for_each(|i| self.write(i, sub.addr, &sub.data));
                }
            }
            DispatchCommand::WritePacked(write) => {
                let (PackedTargets::Unicast(targets), Packets::PerTarget(packets)) = (write.targets, write.packets)
                else {
                    panic!("arguments go to each core alone")
                };
                for (target, packet) in targets.into_iter().zip(packets) {
                    let i = self.workers.iter().position(|w| w.encode() == target).unwrap();
                    self.write(i, write.addr, &packet);
                }
            }
            DispatchCommand::SetGoSignalNocData(table) => self.table = table,
            DispatchCommand::Wait(wait) if wait.flags.contains(WaitFlags::NOTIFY_PREFETCH) => {}
            DispatchCommand::Wait(wait) => {
                self.end(wait.count);
                if wait.flags.contains(WaitFlags::CLEAR_STREAM) {
                    self.ended = 0;
                }
            }
            DispatchCommand::SendGoSignal(go) => {
                if go.wait_count != 0 {
                    self.end(go.wait_count);
                }
                assert!(self.started.is_empty(), "the program before has ended");
                assert_eq!(go.multicast_go_offset, None, "the model has not all workers of the board");
                let targets = &self.table[go.noc_data_start_index.into()..][..go.num_unicast_txns.into()];
                let position = |target: &u32| self.workers.iter().position(|w| w.encode() == *target).unwrap();
                self.started = targets.iter().map(position).collect();
                return true;
            }
            DispatchCommand::NotifySubordinateGoSignal(notify) => {
                assert!(notify.wait && notify.index_bitmask == 1);
                self.allowed += 1;
            }
            DispatchCommand::WritePaged(write) => self.dram.write(write),
            DispatchCommand::Timestamp(_) => {}
            other => panic!("unexpected {other}"),
        }
        false
    }

    /// Ends the program in flight: a wait for `count` workers since the stream was cleared.
    fn end(&mut self, count: u32) {
        self.ended += self.started.len();
        assert_eq!(count as usize, self.ended, "as many as were started");
        for i in std::mem::take(&mut self.started) {
            let next = (self.word(i, self.map.launch_rd_ptr()) + 1) % LAUNCH_ENTRIES;
            self.set_word(i, self.map.launch_rd_ptr(), next);
            self.state[i].used.clear();
        }
    }

    /// Checks what every core of `program` finds, and notes that it uses it.
    fn check(&mut self, program: &Program, layout: &Layout, reported: &Layout) {
        let cores: Vec<usize> =
            layout.cores.iter().map(|c| self.workers.iter().position(|w| w == c).unwrap()).collect();
        assert_eq!(self.started, cores, "the program's cores are started");
        for (number, role) in layout.roles.iter().enumerate() {
            for (core, &i) in cores.iter().enumerate().filter(|(core, _)| role.cores.contains(&layout.cores[*core])) {
                let index = self.word(i, self.map.launch_rd_ptr());
                let at = self.map.launch.offset(index * LAUNCH_MSG_BYTES as u32);
                let message = LaunchMsg::read_from_bytes(self.bytes(i, at, LAUNCH_MSG_BYTES)).unwrap();
                let base = L1Addr::new(message.kernel_config_base[0].get());
                assert_eq!(base, reported.base);
                let plain = crate::lower::launch_msg(program, layout, number, tilework_abi::msg::MODE_DEV);
                // Only the places differ from the plain lowering.
                let mut moved = message;
                (moved.kernel_config_base, moved.kernel_text_offset) =
                    (plain.kernel_config_base, plain.kernel_text_offset);
                assert_eq!(moved, plain);
                let private = program.private_bytes(layout, core);
                assert_eq!(self.bytes(i, base, private.len()), private, "arguments of core {core}");
                let shared = program.config_bytes(layout, &layout.cbs);
                assert_eq!(self.bytes(i, base.offset(layout.cb_offset), shared.len()), shared, "shared of core {core}");
                let (first, _) = role.text.iter().enumerate().find(|(p, _)| role.enables >> p & 1 != 0).unwrap();
                let text = base.get().wrapping_add(message.kernel_text_offset[first].get());
                let expected = program.text_bytes(layout, number, &self.map, L1Addr::new(text)).unwrap();
                assert_eq!(self.bytes(i, L1Addr::new(text), expected.len()), expected, "text of core {core}");
                assert_eq!(reported.base.get().wrapping_add(reported.roles[number].text[first]), text);
                let ranges = [
                    (at.get(), LAUNCH_MSG_BYTES as u32),
                    (base.get(), layout.text_offset),
                    (text, expected.len() as u32),
                ];
                self.state[i].used = ranges.map(|(at, bytes)| at..at + bytes).into();
                // The words of the mailbox are looked at as long as the program runs.
                for word in [self.map.launch_rd_ptr(), self.map.go_index, self.map.profiler_control] {
                    self.state[i].used.push(word.get()..word.get() + 4);
                }
                assert_eq!((self.word(i, self.map.go_index), self.word(i, self.map.profiler_control)), (0, 0));
            }
        }
    }
}

/// A program of the random test: kernels from a few, so that some come again.
fn programs() -> impl Strategy<Value = Program> {
    let cores = prop_oneof![
        Just((0..WORKERS).collect::<Vec<usize>>()),
        (1..WORKERS).prop_map(|n| (0..n).collect()),
        prop::sample::subsequence((0..WORKERS).collect::<Vec<usize>>(), 1..WORKERS),
    ];
    let sizes = prop_oneof![Just(3usize), Just(40), Just(900), Just(3500)];
    let shape = (cores, prop::collection::vec((sizes, 0u32..3), 1..3), 0usize..3, 0usize..3);
    let values = (0usize..700, 0usize..5, any::<bool>(), any::<u32>());
    (shape, values).prop_map(|((cores, kernels, semaphores, cbs), (args, common, unique, seed))| {
        let list: Vec<NocXy> = cores.iter().map(|&i| workers()[i]).collect();
        let args = args * args / 200;
        let value = |core: usize, i: usize| seed.wrapping_mul(31).wrapping_add((core * 7919 + i) as u32);
        let mut program = Program::new("random", Cores::List(list.clone()));
        let split = if kernels.len() == 2 { list.len() / 2 } else { 0 };
        for (number, &(size, seed)) in kernels.iter().enumerate() {
            let cores = if number == 0 { list[split..].to_vec() } else { list[..split].to_vec() };
            if !cores.is_empty() {
                program = program.role(Role::on(cores).kernel(Processor::Brisc, kernel(size, seed)));
            }
        }
        for i in 0..semaphores {
            program = program.semaphore(value(99, i));
        }
        for index in 0..cbs as u32 {
            let cb = CircularBuffer { index, page_size: 64, pages: PageCount::new(seed % 3 + 1) };
            // Programs that differ in nothing else lie over different buffers, or over none.
            program = match seed >> 8 & 3 {
                0 => program.circular_buffer(cb),
                n => program.circular_buffer_over(cb, over::range(0x10_0000 + 0x400 * n, 192, None)),
            };
        }
        let lists = (0..list.len()).map(|core| (0..args).map(|i| value(if unique { core } else { 0 }, i)).collect());
        program
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(lists.collect()))
            .common_args(ArgSet::Brisc, (0..common).map(|i| value(50, i)).collect())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Random programs one behind the other, some again and again, with other things in between.
    #[test]
    fn every_launch_finds_what_it_needs(
        pool in prop::collection::vec(programs(), 1..5),
        steps in prop::collection::vec((0usize..5, 0u8..24), 1..40),
        keeps in any::<bool>(),
        layout in prop::sample::select(&DispatchLayout::ALL),
        in_dram in any::<bool>(),
    ) {
        let map = MemoryMap { keeps_launch: keeps, ..small() };
        let launcher = if in_dram { dram::keeping } else { launcher_in };
        let (mut launcher, mut model, l1) = (launcher(layout, &map), Model::new(&map), l1());
        for (i, what) in steps {
            match what {
                0 => {
                    let records = launcher.settle().unwrap();
                    model.execute(&records);
                    // The host writes anywhere: nothing is known any more.
                    launcher.forget();
                    model.state.iter_mut().for_each(|w| w.l1[0x8000..].fill(0xDD));
                }
                1 => {
                    let records = launcher.settle().unwrap();
                    model.execute(&records);
                    prop_assert!(model.started.is_empty());
                }
                _ => {}
            }
            let program = &pool[i % pool.len()];
            let layout = program.layout(&workers(), &map, &l1).unwrap();
            let prepared = launcher.prepare(program, &l1).unwrap();
            let foreseen = launcher.layout(program, layout.clone()).unwrap();
            let launch = Launch { tag: Some(i), stamps: (what % 2 == 0).then_some((0, 1)), timing: None };
            let launched = launcher.launch(&prepared, &launch).unwrap();
            prop_assert_eq!(&foreseen, &*launched.layout);
            prop_assert!(model.execute(&launched.records));
            model.check(program, &layout, &launched.layout);
        }
    }

    /// Arguments set one by one give the records that a program with these arguments gives.
    #[test]
    fn patched_arguments_are_those_of_a_fresh_lowering(
        program in programs(),
        values in prop::collection::vec(any::<u32>(), 1..50),
    ) {
        let l1 = l1();
        let cores = program.cores.resolve(&workers()).unwrap().len();
        let value = |core: usize, i: usize| values[(core + i) % values.len()].wrapping_add((core * 1000 + i) as u32);
        let words = program.longest(ArgSet::Brisc);
        let common: Vec<u32> = (0..program.common_args[0].len()).map(|i| value(7, i)).collect();
        let lists: Vec<Vec<u32>> = (0..cores).map(|core| (0..words).map(|i| value(core, i)).collect()).collect();
        let mut fresh = program.clone().common_args(ArgSet::Brisc, common.clone());
        fresh.semaphores = (0..program.semaphores.len()).map(|i| value(3, i)).collect();
        let fresh = fresh.unique_args(ArgSet::Brisc, UniqueArgs::PerCore(lists.clone()));

        let (mut one, mut other) = (launcher(&small()), launcher(&small()));
        let mut patched = one.prepare(&program, &l1).unwrap();
        patched.set_common_args(ArgSet::Brisc, &common).unwrap();
        for (core, list) in lists.iter().enumerate() {
            patched.set_args(ArgSet::Brisc, core, list).unwrap();
        }
        for (id, &value) in (0..).zip(&fresh.semaphores) {
            patched.set_semaphore(id, value).unwrap();
        }
        let fresh = other.prepare(&fresh, &l1).unwrap();
        for _ in 0..3 {
            let bytes = |launcher: &mut Launcher, prepared: &Prepared| {
                let records = launcher.launch(prepared, &Launch::default()).unwrap().records;
                records.into_iter().map(|(record, _)| record.into_bytes()).collect::<Vec<_>>()
            };
            prop_assert_eq!(bytes(&mut one, &patched), bytes(&mut other, &fresh));
        }
        prop_assert_eq!(one.counts().misses, 1);
    }
}

#[test]
fn what_shapes_the_bytes_is_the_key_and_nothing_else() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let base = empty(3, 1).unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, 2])).semaphore(4);
    launcher.prepare(&base, &l1).unwrap();
    let again = [
        base.clone(),
        Program { name: "another name".into(), ..base.clone() },
        base.clone().unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![3, 4])),
        base.clone().unique_args(ArgSet::Brisc, UniqueArgs::PerCore(vec![vec![1, 2], vec![], vec![3]])),
        Program { semaphores: vec![7], ..base.clone() },
        // The same kernel, loaded again.
        empty(3, 1).unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, 2])).semaphore(4),
    ];
    for program in &again {
        launcher.prepare(program, &l1).unwrap();
    }
    assert_eq!((launcher.counts().hits, launcher.counts().misses), (6, 1));
    let cb = CircularBuffer { index: 0, page_size: 64, pages: PageCount::new(1) };
    let others = [
        Program { cores: Cores::Count(4), ..base.clone() },
        Program { cores: Cores::All, ..base.clone() },
        Program { roles: empty(3, 2).roles, ..base.clone() },
        base.clone().unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, 2, 3])),
        base.clone().unique_args(ArgSet::Compute, UniqueArgs::Uniform(vec![1])),
        base.clone().common_args(ArgSet::Brisc, vec![1]),
        base.clone().semaphore(4),
        base.clone().circular_buffer(cb),
        Program { host_assigned_id: 1, ..base.clone() },
    ];
    for program in &others {
        launcher.prepare(program, &l1).unwrap();
    }
    assert_eq!((launcher.counts().hits, launcher.counts().misses), (6, 10));
}

#[test]
fn argument_lists_of_a_cached_program_are_checked() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let with = |lists| empty(3, 1).unique_args(ArgSet::Brisc, UniqueArgs::PerCore(lists));
    launcher.prepare(&with(vec![vec![1]; 3]), &l1).unwrap();
    let error = launcher.prepare(&with(vec![vec![1]; 2]), &l1).unwrap_err().to_string();
    assert_eq!(error, "program p: BRISC arguments: found lists for 2 cores, expected 3");
}

#[test]
fn a_cached_program_knows_how_many_arguments_each_core_is_given() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let with = |args| empty(3, 1).unique_args(ArgSet::Brisc, args);
    let uniform = launcher.prepare(&with(UniqueArgs::Uniform(vec![1, 2])), &l1).unwrap();
    let lists = UniqueArgs::PerCore(vec![vec![1, 2], vec![], vec![3]]);
    let mut shorter = launcher.prepare(&with(lists), &l1).unwrap();
    assert_eq!(launcher.counts().hits, 1);
    let words = |prepared: &Prepared| ArgSet::ALL.map(|set| prepared.unique_words(set));
    assert_eq!(words(&uniform), [vec![2], vec![0], vec![0]]);
    assert_eq!(words(&shorter), [vec![2, 0, 1], vec![0], vec![0]]);
    shorter.set_args(ArgSet::Brisc, 1, &[7]).unwrap();
    assert_eq!(words(&shorter)[0], [2, 1, 1], "fewer leave the last ones as they were");
    shorter.set_args_everywhere(ArgSet::Brisc, &[8, 9]).unwrap();
    assert_eq!(words(&shorter)[0], [2, 2, 2]);
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let program = empty(3, 1).unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, 2])).semaphore(4);
    let mut prepared = launcher.prepare(&program, &l1).unwrap();
    let error = prepared.set_args(ArgSet::Brisc, 0, &[1, 2, 3]).unwrap_err().to_string();
    assert_eq!(error, "program p: found 3 BRISC arguments, expected at most 2, as it was prepared");
    assert!(
        prepared.set_args(ArgSet::Brisc, 3, &[1]).unwrap_err().to_string().contains("core number 3, expected one of 3")
    );
    assert!(prepared.set_common_args(ArgSet::Brisc, &[1]).is_err());
    assert!(prepared.set_semaphore(1, 0).unwrap_err().to_string().contains("semaphore 1, expected one of 1"));
    prepared.set_args(ArgSet::Brisc, 2, &[9]).unwrap();
}

#[test]
fn the_program_used_longest_ago_makes_room() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let n = CACHED_PROGRAMS as u32;
    let program = |i: u32| Program { host_assigned_id: i, ..empty(1, 0) };
    for i in 0..n {
        launcher.prepare(&program(i), &l1).unwrap();
    }
    launcher.prepare(&program(0), &l1).unwrap();
    launcher.prepare(&program(n), &l1).unwrap();
    assert_eq!(
        launcher.counts(),
        CacheCounts { hits: 1, misses: u64::from(n) + 1, evictions: 1, ..CacheCounts::default() }
    );
    assert_eq!(launcher.cache_len(), CACHED_PROGRAMS);
    launcher.prepare(&program(0), &l1).unwrap();
    assert_eq!(launcher.counts().hits, 2, "0 was used again, 1 had to go");
    launcher.prepare(&program(1), &l1).unwrap();
    assert_eq!((launcher.counts().hits, launcher.counts().evictions), (2, 2));
}

/// Launches, and gives the commands that go out.
fn sent(launcher: &mut Launcher, prepared: &Prepared) -> Vec<String> {
    let launched = launcher.launch(prepared, &Launch::default()).unwrap();
    launched.records.iter().flat_map(|(_, sent)| sent).map(|sent| sent.what.to_string()).collect()
}

#[test]
fn a_launch_sends_only_what_the_workers_lack() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let plain = launcher.prepare(&empty(3, 1), &l1).unwrap();
    let names = |sent: &[String]| sent.iter().map(|s| s.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    let first = sent(&mut launcher, &plain);
    // Text; go index; times; index of the launch message; message; go targets; go.
    assert_eq!(names(&first)[0], "WAIT");
    assert_eq!(names(&first)[1..4], ["WRITE_PACKED_LARGE"; 3]);
    assert_eq!(names(&first)[4..], ["write", "SET_GO_SIGNAL_NOC_DATA", "SEND_GO_SIGNAL"]);
    // Each of the eight messages is written once for one of the two slots in use.
    for _ in 1..8 {
        assert_eq!(names(&sent(&mut launcher, &plain)), ["write", "WAIT", "SEND_GO_SIGNAL"]);
    }
    for _ in 0..20 {
        assert_eq!(names(&sent(&mut launcher, &plain)), ["WAIT", "SEND_GO_SIGNAL"]);
    }
    // More cores: those that lack the text get it; the messages' indices disagree.
    let more = launcher.prepare(&empty(5, 1), &l1).unwrap();
    let text = sent(&mut launcher, &more);
    assert_eq!(
        names(&text),
        ["WAIT", "WRITE_PACKED_LARGE", "WRITE_PACKED_LARGE", "WRITE_PACKED_LARGE", "write", "SEND_GO_SIGNAL"]
    );
    assert!(text[1].contains("1 packets; to (1,5)..(1,6) (2 nodes)"), "{text:?}");
    assert_eq!((launcher.counts().text_sent, launcher.counts().text_resident), (2, 27));
}

#[test]
fn launch_messages_are_taken_in_turn_and_begin_again_after_eight() {
    let map = MemoryMap { keeps_launch: false, ..WORKER };
    let (mut launcher, mut model, l1) = (launcher(&map), Model::new(&map), l1());
    let program = empty(2, 1);
    let layout = program.layout(&workers(), &map, &l1).unwrap();
    let prepared = launcher.prepare(&program, &l1).unwrap();
    for i in 0..20 {
        assert_eq!(model.word(0, map.launch_rd_ptr()), if i == 0 { 0 } else { (i - 1) % 8 });
        let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
        assert!(model.execute(&launched.records));
        model.check(&program, &layout, &launched.layout);
        assert_eq!(model.word(0, map.launch_rd_ptr()), i % 8);
    }
}

#[test]
fn what_the_program_in_flight_uses_is_waited_for() {
    let map = small();
    let (mut launcher, l1) = (launcher(&map), l1());
    // Each of them takes more than half of the text cache.
    let [a, b] = [1, 2].map(|seed| {
        let role = Role::all().kernel(Processor::Brisc, kernel(5000, seed));
        launcher.prepare(&Program::new("large", Cores::Count(2)).role(role), &l1).unwrap()
    });
    sent(&mut launcher, &a);
    let commands = sent(&mut launcher, &b);
    assert!(commands[0].starts_with("WAIT until stream 48 >= 2"), "the text of the first is overwritten: {commands:?}");
    assert_eq!(commands.iter().filter(|c| c.starts_with("WAIT")).count(), 1);
    // A small one beside it does not wait before its data.
    let small = launcher.prepare(&empty(2, 3), &l1).unwrap();
    let commands = sent(&mut launcher, &small);
    assert!(commands[0].starts_with("WRITE_PACKED_LARGE"), "{commands:?}");
}

#[test]
fn memory_stays_flat_over_a_hundred_thousand_programs() {
    let (mut launcher, l1) = (launcher(&WORKER), l1());
    let kernels: Vec<_> = (0..3).map(|seed| kernel(8, seed)).collect();
    for i in 0..100_000u32 {
        let role = Role::all().kernel(Processor::Brisc, Arc::clone(&kernels[i as usize % 3]));
        let program = Program { host_assigned_id: i % 1000, ..Program::new("p", Cores::Count(1)).role(role) };
        let prepared = launcher.prepare(&program, &l1).unwrap();
        let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
        launched.records.into_iter().for_each(|(record, _)| launcher.reuse(record));
        assert!(launcher.cache_len() <= CACHED_PROGRAMS);
    }
    // A thousand shapes in turn: none is there when it comes again.
    assert_eq!((launcher.counts().misses, launcher.counts().evictions), (100_000, 100_000 - CACHED_PROGRAMS as u64));
    assert_eq!((launcher.counts().text_sent, launcher.counts().text_resident), (3, 99_997));
}

#[test]
fn arguments_that_lie_where_another_program_had_its_circular_buffers_make_it_send_them_again() {
    let (mut launcher, mut model, l1) = (launcher(&WORKER), Model::new(&WORKER), l1());
    let cb = CircularBuffer { index: 0, page_size: 64, pages: PageCount::new(1) };
    let first = empty(2, 1).circular_buffer(cb);
    let second = empty(2, 2).unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![7; 100]));
    for program in [&first, &second, &first] {
        // Each alone, so that all of them take the first slot.
        let records = launcher.settle().unwrap();
        model.execute(&records);
        let layout = program.layout(&workers(), &WORKER, &l1).unwrap();
        let prepared = launcher.prepare(program, &l1).unwrap();
        let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
        assert_eq!(launched.layout.base, WORKER.kernel_config);
        assert!(model.execute(&launched.records));
        model.check(program, &layout, &launched.layout);
    }
}
