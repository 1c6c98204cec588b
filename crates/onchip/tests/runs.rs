//! Runs of small compiled programs, one after the other: times, kept results, traces.

use crate::chip::common;
use std::path::{Path, PathBuf};

use crate::chip::common::build::{add, model as built, program, tensor};
use tilework_abi::board::Board;
use tilework_engine::{Comparison, Engine, Event, Observer, Options, Rounding, Session, Tolerance, Value};
use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::fused::{UnaryOpType, UnaryWithParam};
use tilework_model::ttnn::{Op, OpKind};
use tilework_onchip::{Carried, OnChip, Record, memory_plan};
use tilework_ops::{DType, Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

type Runs<'m> = Session<'m, OnChip<Chip>>;

/// A program of the project's own tests, such as `0.1.3-trace`.
fn model(case: &str) -> Model {
    let (version, name) = case.split_once('-').unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/data");
    Model::open(tests.join(version).join(format!("{name}.ttnn"))).unwrap()
}

fn data(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/data").join(case)
}

fn session(model: &Model) -> Runs<'_> {
    rounded(model, Rounding::Operations)
}

fn rounded(model: &Model, rounding: Rounding) -> Runs<'_> {
    let board = Board::P100;
    let chip = Chip::new(ChipConfig::new(board)).unwrap();
    let device = Device::open(chip, DeviceConfig::new(board)).unwrap();
    Session::on(model, Options { rounding, ..Options::default() }, OnChip::new(device, false)).unwrap()
}

fn values(arrays: &[Tensor]) -> Vec<Value> {
    arrays.iter().cloned().map(Value::from).collect()
}

/// Counts operations that begin.
#[derive(Default)]
struct Begun(Vec<(usize, OpKind)>);

impl Observer for Begun {
    fn before(&mut self, event: &Event<'_>) {
        self.0.push((event.program, event.kind()));
    }
    fn wants_results(&self, _: &Event<'_>) -> bool {
        false
    }
}

fn expect(model: &Model, found: &Value, expected: &Tensor) {
    let comparison = Comparison::of(found.on(0), expected, Tolerance::of(&model.programs()[0], 0)).unwrap();
    assert!(comparison.passes(), "{comparison}");
}

/// A chain whose program finds no room on the workers is the host's, which says why.
#[test]
fn a_chain_without_room_is_carried_out_by_the_host() {
    let [x, y, z] = [1, 2, 3].map(|id| tensor(id, DataType::BFloat16, &[40, 40]));
    let mut sum = add(&x, &y, &z);
    let Op::EltwiseBinary(op) = &mut sum.op else { unreachable!("a sum") };
    op.activations = vec![UnaryWithParam { op_type: UnaryOpType::LeakyRelu, params: vec![0.5] }; 150];
    let model = built(vec![program("main", &[&x, &y], &[&z], vec![sum])]);
    let array = |seed: f32| {
        let shape = Shape::new([40, 40]).unwrap();
        let numbers: Vec<f32> = (0..1600_i16).map(|i| (f32::from(i) * seed).sin()).collect();
        Value::from(Tensor::from_f32(DType::BF16, shape, &numbers).unwrap())
    };
    let inputs = || vec![array(0.3), array(0.7)];
    let native = Engine::native(Options::default()).session(&model).unwrap().run(0, inputs(), &mut ()).unwrap();
    let mut session = session(&model);
    let found = session.run(0, inputs(), &mut ()).unwrap();
    expect(&model, &found.outputs[0], native.outputs[0].on(0));
    let [record] = session.machine().records() else { panic!("one operation") };
    let Carried::Host(why) = &record.carried else { panic!("{:?}", record.carried) };
    assert!(why.contains("no room in the kernel configuration space"), "{why}");
}

/// Each operation's times are the dispatcher's: none begins before the one before it has ended, and
/// what takes part in it is between.
#[test]
fn operations_follow_one_another_and_the_host_does_not_wait() {
    let case = "0.1.2-softplus";
    let model = model(case);
    let mut runs = session(&model);
    let result = runs.run(0, values(&common::arrays(&data(case), "in")), &mut ()).unwrap();
    expect(&model, &result.outputs[0], &common::arrays(&data(case), "out")[0]);
    let records: Vec<&Record> = runs.machine().records().iter().filter(|record| !record.stages.is_empty()).collect();
    assert!(records.len() > 3, "{records:?}");
    let times: Vec<[u64; 2]> = records.iter().map(|record| record.times().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0][1] <= pair[1][0]), "{times:?}");
    for record in records {
        assert_eq!(record.busy() > 0, record.carried == Carried::Chip, "{record:?}");
        assert!(record.busy() <= record.cycles(), "{record:?}");
        assert!(record.stages.iter().all(|stage| stage.times.is_some()), "{record:?}");
    }
}

/// A second run finds every program in the cache and does not compute again what depends on
/// constants only.
#[test]
fn runs_of_placed_inputs_find_what_the_first_has_made() {
    let case = "0.1.2-softplus";
    let model = model(case);
    let mut runs = session(&model);
    let placed = runs.place(0, values(&common::arrays(&data(case), "in"))).unwrap();
    let mut begun = [Begun::default(), Begun::default()];
    let mut misses = Vec::new();
    let mut outputs = Vec::new();
    for begun in &mut begun {
        outputs.push(runs.run_placed(&placed, begun).unwrap().outputs.swap_remove(0));
        misses.push(runs.machine().device().statistics().cache.misses);
    }
    expect(&model, &outputs[0], &common::arrays(&data(case), "out")[0]);
    assert_eq!(outputs[0].on(0).to_le_bytes(), outputs[1].on(0).to_le_bytes());
    assert!(misses[0] > 0 && misses[1] == misses[0], "{misses:?}");
    let kept = |begun: &Begun| begun.0.iter().filter(|(program, _)| *program != 0).count();
    let calls = begun[0].0.iter().filter(|(_, kind)| *kind == OpKind::LoadCached).count();
    assert!(calls > 0 && kept(&begun[0]) > 0 && kept(&begun[1]) == 0, "{begun:?}", begun = begun.map(|b| b.0));
}

/// The second and third call are replays of what the first has captured, with inputs of their own;
/// results are those of a fresh session.
#[test]
fn traced_calls_are_replayed() {
    for case in ["0.1.0-trace", "0.1.3-trace"] {
        let model = model(case);
        let inputs = common::arrays(&data(case), "in");
        let doubled = inputs[0].to_f32().into_iter().map(|x| 2.0 * x).collect();
        let other = Tensor::new(inputs[0].shape().clone(), doubled).unwrap();
        let fresh = session(&model).run(0, values(std::slice::from_ref(&other)), &mut ()).unwrap();
        let mut runs = session(&model);
        for (input, replays) in [(&inputs[0], 0), (&other, 1), (&inputs[0], 2)] {
            let result = runs.run(0, values(std::slice::from_ref(input)), &mut ()).unwrap();
            if std::ptr::eq(input, &other) {
                assert_eq!(result.outputs[0].on(0).to_le_bytes(), fresh.outputs[0].on(0).to_le_bytes(), "{case}");
            } else {
                expect(&model, &result.outputs[0], &common::arrays(&data(case), "out")[0]);
            }
            let counts = runs.machine().traces();
            assert_eq!((counts.captured, counts.replays), (1, replays), "{case}: {counts:?}");
        }
        let last = runs.machine().records().iter().rfind(|record| record.place.kind == OpKind::CaptureOrExecuteTrace);
        assert!(last.is_some_and(|record| record.busy() > 0 && record.written > 0), "{case}: {last:?}");
    }
}

/// The plan's peak is what the device has at most, by hand: two tensors of 32 x 32 in bfloat16
/// tiles and their rows take a page of 2048 bytes of a bank each, but the rows pages of 64 bytes.
#[test]
fn memory_over_time_is_planned_by_the_file() {
    let model = model("0.1.0-atan2");
    let program = &model.programs()[0];
    let plan = memory_plan(&DeviceConfig::new(Board::P100), program, Rounding::Operations);
    let [dram, l1] = &plan.peaks;
    assert!(plan.refused.is_none() && plan.on_host.is_empty(), "{plan:?}");
    assert_eq!(l1.allocated, 0);
    let held: u64 = dram.holders.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(held, dram.allocated);
    assert!(dram.holders.iter().any(|(name, bytes)| name.contains("ToLayout") && *bytes == 2048), "{plan:?}");
    // The output is all that is left.
    assert_eq!(plan.steps.last().map(|step| step.dram), Some(2048));
}

/// 16 GiB are 2.5 GB of each of seven banks.
#[test]
fn what_does_not_fit_says_who_holds_what() {
    let [x, sum] = [0, 1].map(|id| common::build::f32(id, &[65536, 65536]));
    let program = common::build::program("main", &[&x], &[&sum], vec![common::build::add(&x, &x, &sum)]);
    let plan = memory_plan(&DeviceConfig::new(Board::P100), &program, Rounding::Operations);
    let refused = plan.refused.unwrap();
    assert!(refused.contains("%1 of EltwiseBinaryOp needs") && refused.contains("%0 of the inputs"), "{refused}");
}

/// 256 and 0.75 are 256 in bfloat16, to which 0.75 more adds nothing; in float32 all are 257.5,
/// next to which bfloat16 has 258.
#[test]
fn floats_are_rounded_where_it_is_asked_for() {
    let [x, y, sum, both] = [0, 1, 2, 3].map(|id| tensor(id, DataType::BFloat16, &[64, 32]));
    let operations = vec![add(&x, &y, &sum), add(&sum, &y, &both)];
    let model = built(vec![program("main", &[&x, &y], &[&both], operations)]);
    let array = |value: f32| Tensor::from_f32(DType::BF16, Shape::new(vec![64, 32]).unwrap(), &[value; 2048]).unwrap();
    for (rounding, expected) in [(Rounding::Operations, 256.0), (Rounding::Ends, 258.0)] {
        let mut session = rounded(&model, rounding);
        let result = session.run(0, values(&[array(256.0), array(0.75)]), &mut ()).unwrap();
        let found = result.outputs[0].single().unwrap();
        assert_eq!(found.dtype(), DType::BF16);
        assert!(found.to_f32().iter().all(|&value| value == expected), "{rounding:?}: {}", found.to_f32()[0]);
        assert!(session.machine().records().iter().all(|record| record.carried == Carried::Chip));
    }
}
