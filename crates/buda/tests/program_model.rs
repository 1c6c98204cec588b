//! The interpreter against one that is written differently: a tree of blocks, walked by recursion,
//! with numbers of 128 bits.

mod common;

use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::LazyLock;
use tilework_buda::program::{Interpreter, Limits, Parameters, ProgramProblem, Statics, Step};
use tilework_netlist::types::{
    GraphId, Instruction, InstructionKind, Netlist, Position, Program, QueueId, QueueSettings, Value, VarOp,
};

static NETLIST: LazyLock<Netlist> = LazyLock::new(|| common::load("ring.yaml"));

const NAMES: [&str; 5] = ["$a", "$b", "$c", "$s", "$p"];

/// What a program does to the outside.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    /// A graph runs with these local and global read pointers.
    Run(i64, i64),
    /// A variable moves the global read pointer.
    Moves(i64),
}

/// How a program ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Well,
    Uninitialised,
    Shadows,
    Overflow,
    Wrap,
    LoopCount,
}

/// A program as a tree.
#[derive(Debug, Clone)]
enum Tree {
    Var(usize, i64),
    Static(usize, i64),
    Param(usize),
    Change(usize, VarOp, Value, Value),
    Loop(Value, Vec<Tree>),
    Run(Value, Value),
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => (0..NAMES.len()).prop_map(|name| Value::Variable(NAMES[name].into())),
        2 => (-3i64..9).prop_map(Value::Immediate),
        1 => prop_oneof![Just(i64::MAX), Just(i64::MIN), Just(1 << 62)].prop_map(Value::Immediate),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    let op = prop_oneof![
        1 => Just(VarOp::Set),
        1 => Just(VarOp::Add),
        1 => Just(VarOp::Mul),
        1 => Just(VarOp::Inc),
        3 => Just(VarOp::IncWrap),
    ];
    let leaf = prop_oneof![
        2 => (0..3usize, -2i64..6).prop_map(|(name, value)| Tree::Var(name, value)),
        1 => (2..4usize, -2i64..6).prop_map(|(name, value)| Tree::Static(name, value)),
        1 => (3..5usize).prop_map(Tree::Param),
        6 => (0..NAMES.len(), op, value(), value()).prop_map(|(out, op, a, b)| Tree::Change(out, op, a, b)),
        3 => (value(), value()).prop_map(|(local, global)| Tree::Run(local, global)),
    ];
    leaf.prop_recursive(3, 40, 6, |inner| {
        let count = prop_oneof![4 => (1i64..4).prop_map(Value::Immediate), 1 => value()];
        (count, proptest::collection::vec(inner, 0..6)).prop_map(|(count, body)| Tree::Loop(count, body))
    })
}

/// The usual start, so that most programs get far, and then anything.
fn trees() -> impl Strategy<Value = Vec<Tree>> {
    let start = vec![Tree::Param(4), Tree::Static(3, 2), Tree::Var(0, 1), Tree::Var(1, 2), Tree::Var(2, 3)];
    (any::<bool>(), proptest::collection::vec(tree(), 1..12)).prop_map(move |(usual, rest)| {
        let mut all = if usual { start.clone() } else { Vec::new() };
        all.extend(rest);
        all
    })
}

/// The tree as instructions.
fn flatten(trees: &[Tree], out: &mut Vec<Instruction>) {
    for tree in trees {
        let kind = match tree.clone() {
            Tree::Var(name, value) => InstructionKind::Var(vec![(NAMES[name].into(), value)]),
            Tree::Static(name, value) => InstructionKind::StaticVar(vec![(NAMES[name].into(), value)]),
            Tree::Param(name) => InstructionKind::Param(vec![NAMES[name].into()]),
            Tree::Change(name, op, a, b) => {
                let args = if matches!(op, VarOp::Set | VarOp::Inc) { vec![a] } else { vec![a, b] };
                InstructionKind::VarInst { out: NAMES[name].into(), op, args }
            }
            Tree::Loop(count, body) => {
                out.push(Instruction { at: Position::default(), kind: InstructionKind::Loop(count) });
                flatten(&body, out);
                InstructionKind::EndLoop
            }
            Tree::Run(local, global) => {
                let mut settings = settings();
                (settings.rd_ptr_local, settings.rd_ptr_global) = (Some(local), Some(global));
                InstructionKind::Execute { graph: GraphId(0), settings: vec![settings] }
            }
        };
        out.push(Instruction { at: Position::default(), kind });
    }
}

fn settings() -> QueueSettings {
    QueueSettings {
        queue: QueueId(0),
        at: Position::default(),
        prologue: false,
        epilogue: false,
        zero: None,
        rd_ptr_local: None,
        rd_ptr_global: None,
        wr_ptr_global: None,
        rd_ptr_autoinc: None,
        global_rdptr_autoinc: None,
        global_wrptr_autoinc: None,
        read_only: None,
    }
}

/// The other interpreter.
#[derive(Default)]
struct Walker {
    values: HashMap<&'static str, i128>,
    kinds: HashMap<&'static str, char>,
    kept: HashMap<&'static str, i128>,
    /// The variable that the global pointer follows.
    follows: Option<String>,
    events: Vec<Event>,
    parameter: i128,
}

impl Walker {
    fn get(&self, value: &Value) -> Result<i128, End> {
        match value {
            Value::Immediate(value) => Ok((*value).into()),
            Value::Variable(name) => self.values.get(name.as_str()).copied().ok_or(End::Uninitialised),
        }
    }

    fn declare(&mut self, name: &'static str, kind: char, value: i128) -> Result<(), End> {
        if *self.kinds.entry(name).or_insert(kind) != kind {
            return Err(End::Shadows);
        }
        self.values.insert(name, value);
        Ok(())
    }

    fn walk(&mut self, trees: &[Tree]) -> Result<(), End> {
        for tree in trees {
            match tree {
                Tree::Var(name, value) => self.declare(NAMES[*name], 'v', (*value).into())?,
                Tree::Static(name, value) => {
                    let name = NAMES[*name];
                    let now = match self.kinds.get(name) {
                        Some('s') => self.values[name],
                        _ => self.kept.get(name).copied().unwrap_or((*value).into()),
                    };
                    self.declare(name, 's', now)?;
                }
                Tree::Param(name) => self.declare(NAMES[*name], 'p', self.parameter)?,
                Tree::Change(name, op, a, b) => self.change(NAMES[*name], *op, a, b)?,
                Tree::Loop(count, body) => {
                    let count = self.get(count)?;
                    if count < 1 {
                        return Err(End::LoopCount);
                    }
                    for _ in 0..count {
                        self.walk(body)?;
                    }
                }
                Tree::Run(local, global) => {
                    let (l, g) = (self.get(local)?, self.get(global)?);
                    self.events.push(Event::Run(l as i64, g as i64));
                    self.follows = match global {
                        Value::Variable(name) => Some(name.clone()),
                        Value::Immediate(_) => None,
                    };
                }
            }
        }
        Ok(())
    }

    fn change(&mut self, name: &'static str, op: VarOp, a: &Value, b: &Value) -> Result<(), End> {
        let old = self.values.get(name).copied();
        let narrow = |value: i128| i64::try_from(value).map(i128::from).map_err(|_| End::Overflow);
        let result = match op {
            VarOp::Set => self.get(a)?,
            VarOp::Add => self.get(a)? + self.get(b)?,
            VarOp::Mul => self.get(a)? * self.get(b)?,
            VarOp::Inc => old.ok_or(End::Uninitialised)? + self.get(a)?,
            VarOp::IncWrap => {
                let (sum, wrap) = (old.ok_or(End::Uninitialised)? + self.get(a)?, self.get(b)?);
                if wrap < 1 {
                    return Err(End::Wrap);
                }
                // The smallest multiple of the wrap that makes the sum positive is added first.
                let sum = narrow(sum)?;
                let offset = if sum < 0 { (-sum + wrap - 1) / wrap * wrap } else { 0 };
                (sum + offset) % wrap
            }
        };
        let result = narrow(result)?;
        match self.kinds.get(name) {
            Some('p') => return Err(End::Shadows),
            Some(_) => {}
            None => _ = self.kinds.insert(name, 'v'),
        }
        self.values.insert(name, result);
        if self.follows.as_deref() == Some(name) {
            self.events.push(Event::Moves(result as i64));
        }
        Ok(())
    }
}

fn interpret(
    netlist: &Netlist,
    program: &Program,
    parameters: &Parameters,
    kept: Statics,
) -> (Vec<Event>, End, Statics) {
    let limits = Limits { instructions: 1 << 20, depth: 8 };
    let mut interpreter = Interpreter::new(netlist, program, parameters, kept, limits);
    let mut events = Vec::new();
    let end = loop {
        match interpreter.step() {
            Ok(None) => break End::Well,
            Ok(Some(Step::Execute(launch))) => {
                let settings = launch.settings[0];
                events.push(Event::Run(settings.rd_ptr_local.unwrap(), settings.rd_ptr_global.unwrap()));
            }
            Ok(Some(Step::Changed { effects, .. })) => events.extend(effects.iter().map(|e| Event::Moves(e.value))),
            Ok(Some(_)) => {}
            Err(error) => {
                break match error.problem {
                    ProgramProblem::Uninitialised(_) => End::Uninitialised,
                    ProgramProblem::Shadows(_) => End::Shadows,
                    ProgramProblem::Overflow { .. } => End::Overflow,
                    ProgramProblem::Wrap { .. } => End::Wrap,
                    ProgramProblem::LoopCount(_) => End::LoopCount,
                    other => panic!("{other}"),
                };
            }
        }
    };
    (events, end, interpreter.into_statics())
}

/// Loops that would take too long for a test: also those whose count is not known before.
fn is_long(trees: &[Tree]) -> bool {
    fn turns(trees: &[Tree]) -> u64 {
        let of = |tree: &Tree| match tree {
            Tree::Loop(Value::Immediate(count), body) if *count < 9 => (*count).max(0) as u64 * (1 + turns(body)),
            Tree::Loop(..) => 1 << 30,
            _ => 1,
        };
        trees.iter().map(of).fold(0, u64::saturating_add)
    }
    turns(trees) > 1 << 14
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, max_global_rejects: 20_000, ..ProptestConfig::default() })]
    #[test]
    fn two_interpreters_agree(trees in trees(), parameter in -1i64..4) {
        let mut walker = Walker { parameter: parameter.into(), ..Walker::default() };
        prop_assume!(!is_long(&trees));
        let mut instructions = Vec::new();
        flatten(&trees, &mut instructions);
        let program = Program { name: "random".into(), at: Position::default(), instructions };
        let parameters: Parameters = NAMES.iter().map(|name| (name.to_string(), parameter)).collect();
        let mut kept = Statics::new();
        // Twice, for static variables.
        for _ in 0..2 {
            let end = walker.walk(&trees).err().unwrap_or(End::Well);
            let (events, found, statics) = interpret(&NETLIST, &program, &parameters, kept);
            prop_assert_eq!(&events, &walker.events);
            prop_assert_eq!(&found, &end);
            if end != End::Well {
                break;
            }
            kept = statics;
            let was = std::mem::take(&mut walker);
            let statics = was.kinds.iter().filter(|(_, kind)| **kind == 's').map(|(name, _)| (*name, was.values[name]));
            walker.kept = was.kept.clone();
            walker.kept.extend(statics);
            walker.parameter = was.parameter;
        }
    }
}
