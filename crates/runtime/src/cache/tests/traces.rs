//! Captures and replays against the model of the workers: a replay finds what it needs whatever was
//! launched, replayed or overwritten before it, and what comes behind it does, too.

use super::*;
use crate::queue::Sequence;

/// A program with where it lies, as the plain lowering says and as its launch says.
type Placed = (Program, Layout, Arc<Layout>);

/// A trace with what its go signals start.
struct Recorded {
    sequence: Sequence,
    captured: Captured,
    programs: Vec<Placed>,
}

/// The launcher, the workers, and the traces that there are.
struct Rig {
    launcher: Launcher,
    model: Model,
    l1: Allocator<L1Addr>,
    traces: Vec<Recorded>,
}

impl Rig {
    fn new(layout: DispatchLayout, map: &MemoryMap) -> Self {
        Self { launcher: launcher_in(layout, map), model: Model::new(map), l1: l1(), traces: Vec::new() }
    }
    fn settle(&mut self) {
        let records = self.launcher.settle().unwrap();
        self.model.execute(&records);
        assert!(self.model.started.is_empty());
    }
    fn launch(&mut self, program: &Program) {
        let layout = program.layout(&workers(), &self.model.map, &self.l1).unwrap();
        let prepared = self.launcher.prepare(program, &self.l1).unwrap();
        let launched = self.launcher.launch(&prepared, &Launch::default()).unwrap();
        assert!(self.model.execute(&launched.records));
        self.model.check(program, &layout, &launched.layout);
    }
    /// Captures programs that are on the workers; says whether all of them were.
    fn capture(&mut self, programs: &[&Program]) -> bool {
        let mut capture = self.launcher.begin_trace();
        let mut placed = Vec::new();
        for (number, &program) in programs.iter().enumerate() {
            let layout = program.layout(&workers(), &self.model.map, &self.l1).unwrap();
            let prepared = self.launcher.prepare(program, &self.l1).unwrap();
            match self.launcher.capture(&mut capture, &prepared, number) {
                Ok(reported) => placed.push((program.clone(), layout, reported)),
                // Its text has made room for another's.
                Err(_) => return false,
            }
        }
        let (sequence, captured) = self.launcher.end_trace(capture).unwrap();
        self.traces.push(Recorded { sequence, captured, programs: placed });
        true
    }
    fn replay(&mut self, number: usize) {
        let Self { launcher, model, traces, .. } = self;
        let trace = &traces[number];
        let records = launcher.replay(number as u64, &trace.captured).unwrap();
        model.execute(&records);
        assert!(model.started.is_empty(), "the program before has ended");
        let mut programs = trace.programs.iter();
        model.execute_bytes(&trace.sequence.bytes, &trace.sequence.sent, |model| {
            let (program, layout, reported) = programs.next().expect("a program for each go signal");
            model.check(program, layout, reported);
        });
        assert!(programs.next().is_none(), "a go signal for each program");
        assert!(model.started.is_empty() && model.ended == 0, "nothing is in flight behind a replay");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_replay_finds_what_it_needs(
        pool in prop::collection::vec(programs(), 1..5),
        steps in prop::collection::vec((0usize..20, 0u8..12), 1..40),
        keeps in any::<bool>(),
        layout in prop::sample::select(&DispatchLayout::ALL),
    ) {
        let mut rig = Rig::new(layout, &MemoryMap { keeps_launch: keeps, ..small() });
        for (i, what) in steps {
            match what {
                0 => {
                    rig.settle();
                    // The host writes anywhere: nothing is known any more.
                    rig.launcher.forget();
                    rig.model.state.iter_mut().for_each(|w| w.l1[0x8000..].fill(0xDD));
                }
                1 => rig.settle(),
                2..=4 => {
                    let programs: Vec<&Program> = (0..1 + i % 12).map(|n| &pool[(i + n * n) % pool.len()]).collect();
                    programs.iter().for_each(|program| rig.launch(program));
                    rig.capture(&programs);
                }
                5..=8 if !rig.traces.is_empty() => rig.replay(i % rig.traces.len()),
                _ => rig.launch(&pool[i % pool.len()]),
            }
        }
    }
}

/// A trace of an empty program is one command for each launch, but for the first eight, which bring
/// the launch messages.
#[test]
fn an_empty_program_is_one_command_of_a_trace() {
    let mut rig = Rig::new(DispatchLayout::Dispatcher, &WORKER);
    let program = empty(3, 1);
    rig.launch(&program);
    assert!(rig.capture(&[&program; 30]));
    let sent = &rig.traces[0].sequence.sent;
    let names: Vec<String> = sent.iter().map(|sent| sent.what.to_string()).collect();
    let last = &names[names.len() - 23..];
    assert!(last[..22].iter().all(|name| name.starts_with("SEND_GO_SIGNAL")), "{names:?}");
    assert!(last[22].starts_with("WAIT until stream 48 >= 90, clear"), "{names:?}");
    rig.replay(0);
    rig.launch(&program);
    rig.replay(0);
}

/// The count of the stream has seventeen bits: a trace that starts more workers passes its wrap.
#[test]
fn the_count_of_started_workers_passes_the_wrap_of_the_stream() {
    let mut rig = Rig::new(DispatchLayout::Dispatcher, &WORKER);
    let program = empty(WORKERS, 1);
    rig.launch(&program);
    assert!(rig.capture(&vec![&program; (1 << 17) / WORKERS + 2]));
    rig.replay(0);
}
