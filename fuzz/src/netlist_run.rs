//! Netlists with arbitrary programs, settings, pointers and links, including those that the checker
//! refuses: the backend must end within its limits, with or without an error, and never panic.
//!
//! Entries are bytes in place of tensors, so that the fuzzer's time goes into queues, programs,
//! epochs and the loader.

use std::sync::{Arc, LazyLock};
use tilework_buda::backend::drive::{self, Inputs, Popping};
use tilework_buda::backend::{Backend, BackendError, BackendOptions, Call, parameters};
use tilework_buda::epoch::{Arithmetic, ArithmeticError, EngineOptions, EpochError, Uninitialised};
use tilework_buda::loader::LoaderConfig;
use tilework_buda::op::Notes;
use tilework_buda::program::{Limits, ProgramError, ProgramProblem};
use tilework_buda::queue::{Entry, Fullness, StdMonitor};
use tilework_netlist::types::{
    GraphId, Instruction, InstructionKind, Netlist, OpId, Position, Producer, QueueId, QueueKind, QueueSettings,
    Source, Value, VarOp,
};

use crate::Input;

/// The most instructions and operations of a run.
const STEPS: u64 = 2000;
/// The most bytes of all entries, and of all pending results.
const BYTES: u64 = 4096;
const NAMES: [&str; 4] = ["$a", "$b", "$s", "$p"];

/// Three graphs on two devices, one of them linked to another; queues, rams and a view.
static BASE: LazyLock<Netlist> = LazyLock::new(|| {
    let queue = |name: &str, kind: &str, input: &str, entries: u32, address: u32, more: &str| {
        format!(
            "  {name}: {{type: {kind}, input: {input}, entries: {entries}, grid_size: [1, 1], t: 1, mblock: [1, 1], \
             ublock: [1, 1], df: Float32, target_device: 0, loc: dram, dram: [[0, {address:#x}]]{more}}}\n"
        )
    };
    let op = |name: &str, kind: &str, inputs: &str, column: u32| {
        let formats = vec!["Float32"; inputs.split(',').count()].join(", ");
        format!(
            "    {name}: {{type: {kind}, grid_loc: [0, {column}], grid_size: [1, 1], inputs: [{inputs}], \
             in_df: [{formats}], acc_df: Float32, out_df: Float32, \
             intermed_df: Float32, ublock_order: r, buf_size_mb: 2, math_fidelity: HiFi4, \
             untilize_output: false, t: 1, mblock: [1, 1], ublock: [1, 1]}}\n"
        )
    };
    let text = [
        "devices:\n  arch: wormhole_b0\nqueues:\n".into(),
        queue("in", "queue", "HOST", 4, 0x1000_0000, ""),
        queue("weights", "ram", "HOST", 2, 0x1010_0000, ""),
        queue("relay", "queue", "head", 2, 0x1020_0000, ""),
        queue("sums", "ram", "tail", 2, 0x1030_0000, ""),
        queue("view", "ram", "HOST", 1, 0x1030_0000, ", alias: sums").replace("t: 1", "t: 2"),
        queue("out", "queue", "far", 4, 0x1040_0000, ""),
        queue("late", "queue", "back", 4, 0x1050_0000, ""),
        "graphs:\n  near:\n    target_device: 0\n    input_count: 2\n".into(),
        op("head", "add", "in, weights", 0),
        op("tail", "nop", "relay", 1),
        op("link", "nop", "in", 2),
        "  other:\n    target_device: 1\n    input_count: 2\n".into(),
        op("far", "square", "link", 0),
        "  alone:\n    target_device: 0\n    input_count: 2\n".into(),
        op("back", "nop", "relay", 0),
        "programs:\n  - p:\n      - var: {$a: 0}\n  - q:\n      - var: {$a: 0}\n".into(),
    ];
    tilework_netlist::read("base.yaml", &text.concat()).unwrap_or_else(|errors| panic!("{errors}"))
});

/// An entry: a byte, or several along t.
#[derive(Debug, Clone)]
struct Bytes(Vec<u8>);

impl Entry for Bytes {
    fn stack(parts: &[Self]) -> Option<Self> {
        Some(Self(parts.iter().flat_map(|part| part.0.iter().copied()).take(64).collect()))
    }

    fn split(&self, parts: usize) -> Option<Vec<Self>> {
        let whole = self.0.len().checked_rem(parts) == Some(0) && !self.0.is_empty();
        whole.then(|| self.0.chunks(self.0.len() / parts).map(|part| Self(part.to_vec())).collect())
    }

    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }
}

struct Sums;

impl Arithmetic for Sums {
    type Entry = Bytes;

    fn zeros(&self, netlist: &Netlist, queue: QueueId) -> Result<Bytes, ArithmeticError> {
        Ok(Bytes(vec![0; netlist.queue(queue).blocks.t.clamp(1, 64) as usize]))
    }

    fn execute(
        &self,
        _: &Netlist,
        _: OpId,
        inputs: &[Bytes],
        previous: Option<&Bytes>,
    ) -> Result<(Bytes, Notes), ArithmeticError> {
        let all = inputs.iter().chain(previous).flat_map(|input| input.0.iter());
        Ok((Bytes(vec![all.fold(0, |sum: u8, value| sum.wrapping_add(*value))]), Notes::default()))
    }
}

/// Runs `input`; panics if the backend violates an invariant.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let options = options(&mut input);
    let mut netlist = BASE.clone();
    change(&mut netlist, &mut input);
    for program in 0..netlist.programs.len() {
        netlist.programs[program].instructions = instructions(&netlist, &mut input);
    }
    let calls: Vec<Call> = (0..1 + input.byte() % 4)
        .map(|_| {
            let program = &netlist.programs[usize::from(input.byte()) % netlist.programs.len()];
            let declared = parameters(program).into_iter().map(|name| (name.to_string(), number(&mut input)));
            Call { program: program.name.clone(), parameters: declared.collect() }
        })
        .collect();
    let backend: Backend<Sums, StdMonitor<_>> = Backend::with(Arc::new(netlist), Sums, options);
    backend.initialize().unwrap_or_else(|error| panic!("{error}"));
    let inputs = inputs(&backend, &mut input);
    let before = backend.loader(|loader| loader.stats().host_cycles);
    let popping = input.pick(&[Popping::Never, Popping::WhenFull]);
    match drive::sequential(&backend, inputs, &calls, popping) {
        Ok(outcome) => {
            for queue in (0..backend.netlist().queues.len()).map(QueueId) {
                let _ = drive::collected(&backend, &outcome, queue);
            }
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            let instructions = |error: &ProgramError| error.problem == ProgramProblem::Budget(STEPS);
            let limit = matches!(&error, BackendError::Program(error) if instructions(error))
                || matches!(error, BackendError::Epoch(EpochError::Budget(STEPS)));
            assert!(limit || !error.to_string().contains("more than 2000"), "{error}");
        }
    }
    backend.finish().unwrap_or_else(|error| panic!("{error}"));
    backend.loader(|loader| {
        assert!(loader.stats().host_cycles >= before);
        assert!(loader.events().iter().all(|event| event.start <= event.end));
    });
}

fn options(input: &mut Input<'_>) -> BackendOptions {
    let choice = input.byte();
    BackendOptions {
        fullness: if choice & 1 == 0 { Fullness::Strict } else { Fullness::GoldenCompat },
        limits: Limits { instructions: STEPS, depth: 4 },
        engine: EngineOptions {
            timeout: None,
            deadline: None,
            uninitialised: if choice & 2 == 0 { Uninitialised::Zeros } else { Uninitialised::Fault },
            operations: STEPS,
            result_bytes: BYTES,
        },
        loader: LoaderConfig {
            opt_level: choice >> 2 & 7,
            arch: None,
            command_slots: Some(usize::from(input.byte() % 12)),
            binary_slots: usize::from(input.byte() % 4),
            events: 1 << 12,
        },
        most_bytes: BYTES,
        levels: choice & 0x80 != 0,
    }
}

/// Changes queues and graphs, also to what the checker would refuse.
fn change(netlist: &mut Netlist, input: &mut Input<'_>) {
    for _ in 0..input.byte() % 8 {
        let queue = QueueId(usize::from(input.byte()) % netlist.queues.len());
        let graph = usize::from(input.byte()) % netlist.graphs.len();
        let op = usize::from(input.byte()) % netlist.graphs[graph].ops.len();
        let id = OpId { graph: GraphId(graph), op };
        match input.byte() % 9 {
            0 => netlist.queues[queue.0].entries = input.pick(&[0, 1, 2, 3, 5, 1 << 16, u32::MAX]),
            1 => netlist.queues[queue.0].kind = input.pick(&[QueueKind::Queue, QueueKind::Ram]),
            2 => netlist.queues[queue.0].producer = input.pick(&[Producer::Host, Producer::Op(id)]),
            3 => {
                let other = usize::from(input.byte()) % netlist.queues.len();
                netlist.queues[queue.0].alias = input.pick(&[None, Some(QueueId(other))]);
            }
            4 => netlist.graphs[graph].input_count = input.pick(&[0, 1, 2, 3, 4, 64, u32::MAX]),
            5 => netlist.graphs[graph].target_device = u32::from(input.byte() % 3),
            6 => netlist.graphs[graph].ops[op].gradient_op ^= true,
            _ => {
                let other = usize::from(input.byte()) % netlist.graphs.len();
                let producer = usize::from(input.byte()) % netlist.graphs[other].ops.len();
                let producer = OpId { graph: GraphId(other), op: producer };
                let source = input.pick(&[Source::Queue(queue), Source::Op(producer)]);
                let inputs = &mut netlist.graphs[graph].ops[op].inputs;
                let operand = usize::from(input.byte()) % inputs.len();
                inputs[operand].source = source;
            }
        }
    }
}

fn number(input: &mut Input<'_>) -> i64 {
    match input.byte() {
        choice @ 0..=200 => i64::from(choice % 12) - 2,
        _ => input.pick(&[i64::MAX, i64::MIN, i64::from(u32::MAX), 1 << 31, -1, 1 << 20]),
    }
}

fn value(input: &mut Input<'_>) -> Value {
    match input.byte() & 1 {
        0 => Value::Immediate(number(input)),
        _ => Value::Variable(input.pick(&NAMES).to_string()),
    }
}

fn instructions(netlist: &Netlist, input: &mut Input<'_>) -> Vec<Instruction> {
    let mut all = Vec::new();
    for _ in 0..input.byte() % 40 {
        let name = input.pick(&NAMES).to_string();
        let queue = QueueId(usize::from(input.byte()) % netlist.queues.len());
        let kind = match input.byte() % 16 {
            0 => InstructionKind::Var(vec![(name, number(input))]),
            1 => InstructionKind::StaticVar(vec![(name, number(input))]),
            2 => InstructionKind::Param(vec![name]),
            3..=5 => {
                let op = input.pick(&[VarOp::Set, VarOp::Add, VarOp::Mul, VarOp::Inc, VarOp::IncWrap]);
                let args = (0..input.byte() % 3).map(|_| value(input)).collect();
                InstructionKind::VarInst { out: name, op, args }
            }
            6 => InstructionKind::AllocateQueue(vec![queue]),
            7 => InstructionKind::DeallocateQueue(vec![queue]),
            8 => InstructionKind::Loop(value(input)),
            9 | 10 => InstructionKind::EndLoop,
            11 => InstructionKind::EndProgram,
            _ => {
                let graph = GraphId(usize::from(input.byte()) % netlist.graphs.len());
                let settings = (0..input.byte() % 4).map(|_| settings(netlist, input)).collect();
                InstructionKind::Execute { graph, settings }
            }
        };
        all.push(Instruction { at: Position::default(), kind });
    }
    all
}

fn settings(netlist: &Netlist, input: &mut Input<'_>) -> QueueSettings {
    let queue = QueueId(usize::from(input.byte()) % netlist.queues.len());
    let flags = input.half();
    let mut some = |bit: u16| (flags >> bit & 1 == 1).then(|| value(input));
    QueueSettings {
        queue,
        at: Position::default(),
        prologue: flags & 1 == 1,
        epilogue: flags & 2 == 2,
        zero: some(2),
        rd_ptr_local: some(3),
        rd_ptr_global: some(4),
        wr_ptr_global: some(5),
        rd_ptr_autoinc: some(6),
        global_rdptr_autoinc: some(7),
        global_wrptr_autoinc: some(8),
        read_only: some(9),
    }
}

/// A few entries for each queue that the host fills.
fn inputs(
    backend: &Backend<Sums, StdMonitor<tilework_buda::queue::shared::Guarded<Bytes>>>,
    input: &mut Input<'_>,
) -> Inputs<Bytes> {
    let queues = backend.netlist().queues.iter().enumerate();
    let host = queues.filter(|(_, queue)| queue.producer == Producer::Host);
    let entries = host.map(|(i, queue)| {
        let count = u32::from(input.byte() % 6).min(queue.entries);
        // A ram in another memory is a known error, which is not tested here.
        let usable = queue.kind == QueueKind::Queue || queue.alias.is_none();
        let bytes = || Bytes(vec![i as u8 + 1; queue.blocks.t.clamp(1, 64) as usize]);
        (QueueId(i), (0..if usable { count } else { 0 }).map(|_| bytes()).collect())
    });
    entries.collect()
}
