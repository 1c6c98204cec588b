//! Launches of two queues on two sub-devices each: programs on different workers are in flight at
//! the same time, and what one of them uses stays as it is until its own end.

use super::*;
use crate::device::SubDeviceId;
use crate::lower::go_word;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::{DONE_STREAM, QueueId};

/// A queue and a sub-device, of which the model keeps apart what their dispatcher and their stream
/// know.
#[derive(Default)]
struct Lane {
    started: Vec<usize>,
    ended: usize,
    /// The workers of the program in flight.
    busy: Vec<NocXy>,
}

const LANES: usize = 4;

/// The queue and the sub-device of a lane.
fn place(lane: usize) -> (QueueId, SubDeviceId) {
    (QueueId::ALL[lane / 2], SubDeviceId::new((lane % 2) as u8).unwrap())
}

/// The workers, and the launcher of a device with two queues.
struct Device {
    launcher: Launcher,
    model: Model,
    lanes: [Lane; LANES],
    tables: [Vec<u32>; QueueId::ALL.len()],
}

impl Device {
    fn new(map: &MemoryMap) -> Self {
        let mut launcher = launcher(map);
        launcher.serve(Board::P100, DispatchLayout::Dispatcher.queues(2)).unwrap();
        Self { launcher, model: Model::new(map), lanes: Default::default(), tables: Default::default() }
    }

    /// Does `f` with the launcher speaking of a lane, and executes the records on it.
    fn on(&mut self, lane: usize, f: impl FnOnce(&mut Launcher) -> Vec<Encoded>) -> bool {
        let (queue, sub) = place(lane);
        self.launcher.select(queue, sub).unwrap();
        let records = f(&mut self.launcher);
        check_reports(&records, lane);
        self.exchange(lane);
        let went = self.model.execute(&records);
        self.exchange(lane);
        went
    }
    fn exchange(&mut self, lane: usize) {
        let own = &mut self.lanes[lane];
        std::mem::swap(&mut self.model.started, &mut own.started);
        std::mem::swap(&mut self.model.ended, &mut own.ended);
        std::mem::swap(&mut self.model.table, &mut self.tables[place(lane).0.index()]);
    }
    fn settle(&mut self, lane: usize) {
        self.on(lane, |launcher| launcher.settle().unwrap());
        assert!(self.lanes[lane].started.is_empty());
        self.lanes[lane].busy.clear();
    }

    /// Launches a program on a lane, behind the programs of other lanes that have its workers.
    fn launch(&mut self, lane: usize, program: &Program, l1: &Allocator<L1Addr>) {
        let layout = program.layout(&workers(), &self.model.map, l1).unwrap();
        let meets = |other: &Lane| other.busy.iter().any(|core| layout.cores.contains(core));
        let others: Vec<usize> = (0..LANES).filter(|&other| other != lane && meets(&self.lanes[other])).collect();
        others.into_iter().for_each(|other| self.settle(other));
        let mut reported = None;
        let went = self.on(lane, |launcher| {
            let prepared = launcher.prepare(program, l1).unwrap();
            let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
            reported = Some(launched.layout);
            launched.records
        });
        assert!(went);
        self.exchange(lane);
        self.model.check(program, &layout, &reported.unwrap());
        self.exchange(lane);
        self.lanes[lane].busy = layout.cores;
    }
}

/// Waits are for the lane's stream, and workers report to it on the tile of its queue.
fn check_reports(records: &[Encoded], lane: usize) {
    let (queue, sub) = place(lane);
    let stream = DONE_STREAM + u32::from(sub.number());
    let tile = DispatchLayout::Dispatcher.queue(queue).dispatch_tile(Board::P100);
    for (record, _) in records {
        for inner in decode_stream(record.bytes()).flat_map(|relay| relay.unwrap().inner) {
            match inner.command {
                InnerCommand::Whole(DispatchCommand::Wait(wait)) => assert_eq!(u32::from(wait.stream), stream),
                InnerCommand::Whole(DispatchCommand::SendGoSignal(go)) => {
                    assert_eq!(go.go_signal, go_word(tile) | u32::from(sub.number()));
                    assert_eq!(go.wait_stream, stream);
                }
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Random programs on random lanes: each finds what it needs, and nothing that one uses is
    /// written while it runs.
    #[test]
    fn every_launch_of_every_lane_finds_what_it_needs(
        pool in prop::collection::vec(programs(), 2..6),
        steps in prop::collection::vec((0usize..6, 0usize..LANES, 0u8..16), 1..60),
        keeps in any::<bool>(),
    ) {
        let (mut device, l1) = (Device::new(&MemoryMap { keeps_launch: keeps, ..small() }), l1());
        for (i, lane, what) in steps {
            if what < 2 {
                (0..LANES).for_each(|lane| device.settle(lane));
            }
            if what == 0 {
                // The host writes anywhere: nothing is known any more.
                device.launcher.forget();
                device.model.state.iter_mut().for_each(|w| w.l1[0x8000..].fill(0xDD));
            }
            device.launch(lane, &pool[i % pool.len()], &l1);
        }
    }
}

/// The text of a program in flight keeps its place when programs of another queue have pushed it
/// out of the account: its own queue's next program does not go there before its end.
#[test]
fn text_in_use_is_not_overwritten_though_other_queues_have_replaced_it() {
    const LONG: usize = 3500;
    const SHORT: usize = 300;
    let l1 = l1();
    let on = |range: Range<usize>, words: usize, seed: usize| {
        let cores = workers()[range].to_vec();
        Program::new("p", Cores::List(cores)).role(Role::all().kernel(Processor::Brisc, kernel(words, u32_of(seed))))
    };
    // Programs of the other queue, on other workers, that fill the cache behind the first program's
    // text; then some that lie at its start.
    let fill = (small().text_cache_size as usize / 4 - LONG) / SHORT;
    for more in fill.saturating_sub(2)..fill + 12 {
        let mut device = Device::new(&small());
        device.launch(0, &on(0..4, LONG, 1), &l1);
        (0..more).for_each(|i| device.launch(2, &on(8..12, SHORT, 100 + i), &l1));
        // The model fails if this writes where the first one's text is, which still runs.
        device.launch(0, &on(0..4, LONG, 2), &l1);
        (0..LANES).for_each(|lane| device.settle(lane));
    }
}
