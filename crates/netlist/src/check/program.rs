//! Rules of programs: variables, loops, allocations and queue settings (tt-budabackend,
//! `docs/public/netlist.md`, section Programs, and `netlist/netlist_program.cpp`).
//!
//! Variables are evaluated in one pass over the instructions, as in the first run of a program.

use super::Check;
use super::pointers::{self, Trace, Use};
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::read::fields::suggest;
use crate::tree::{Entry, Node, Span};
use crate::types::{
    GraphId, Instruction, InstructionKind, Producer, Program, Queue, QueueId, QueueKind, QueueSettings, Source, Value,
    VarOp, Variable,
};
use std::collections::{HashMap, HashSet};

/// Queues that a graph uses.
#[derive(Default)]
struct Io {
    /// Queues that its operations read or write.
    all: HashSet<QueueId>,
    /// Queues that must have settings, in the file's order.
    needed: Vec<QueueId>,
    /// Whether that is all of them: false if an operation is broken, which may use others.
    whole: bool,
}

/// Checks all programs.
pub(crate) fn check(check: &mut Check<'_, '_>) {
    let ios = ios(check);
    let mut executed: HashSet<GraphId> = HashSet::new();
    let mut traces = Vec::new();
    for (index, program) in check.net.programs.iter().enumerate() {
        let (values, loops, trace) = (HashMap::new(), Vec::new(), Trace::default());
        let mut pass = Pass { check, program, index, ios: &ios, values, loops, trace };
        pass.run(&mut executed);
        traces.push(pass.trace);
    }
    let whole = check.src.broken.instructions.is_empty() && !check.net.programs.is_empty();
    if whole {
        pointers::check(check, &traces);
    }
    for (id, graph) in check.graphs().filter(|(id, _)| whole && !executed.contains(id)) {
        let at = check.src.graphs[id.0].at;
        check.warn(code::UNEXECUTED, at, format!("no program executes graph `{}`", graph.name), "");
    }
}

fn ios(check: &Check<'_, '_>) -> Vec<Io> {
    let mut ios: Vec<Io> = check.graphs().map(|_| Io { whole: true, ..Io::default() }).collect();
    for (id, graph) in check.graphs() {
        let io = &mut ios[id.0];
        io.whole = !check.src.broken.ops.iter().any(|op| op.graph == id);
        for input in graph.ops.iter().flat_map(|op| &op.inputs) {
            let Source::Queue(queue) = input.source else { continue };
            let fed = check.queue(queue).is_some_and(|q| q.kind == QueueKind::Queue && q.producer == Producer::Host);
            if io.all.insert(queue) && fed {
                io.needed.push(queue);
            }
        }
    }
    for (index, queue) in check.net.queues.iter().enumerate() {
        let Producer::Op(op) = queue.producer else { continue };
        let gradient = check.op(op).is_some_and(|op| op.gradient_op);
        let io = &mut ios[op.graph.0];
        if io.all.insert(QueueId(index)) && gradient {
            io.needed.push(QueueId(index));
        }
    }
    ios
}

struct Pass<'c, 'a, 't> {
    check: &'c mut Check<'a, 't>,
    program: &'a Program,
    index: usize,
    ios: &'c [Io],
    /// Variables and, if known, their values in the first run.
    values: HashMap<&'a str, Option<i64>>,
    /// Positions of the open loops, and whether they run more than once, as far as is known.
    loops: Vec<(Span, bool)>,
    trace: Trace<'a>,
}

impl<'a> Pass<'_, 'a, '_> {
    fn run(&mut self, executed: &mut HashSet<GraphId>) {
        let mut allocated: HashMap<QueueId, bool> = HashMap::new();
        let mut ended = false;
        let program = self.program;
        for (place, instruction) in program.instructions.iter().enumerate() {
            if let InstructionKind::Execute { graph, .. } = instruction.kind {
                executed.insert(graph);
            }
            if self.check.src.broken.instructions.contains(&(self.index, place)) {
                self.declare_broken(instruction);
                continue;
            }
            if ended && instruction.kind != InstructionKind::EndProgram {
                let at = self.at(place);
                self.check.warn(code::AFTER_END, at, "nothing behind `endprogram` is reached", "");
                ended = false;
            }
            match &instruction.kind {
                InstructionKind::Var(list) | InstructionKind::StaticVar(list) => self.declare(place, list),
                InstructionKind::Param(list) => self.params(place, list),
                InstructionKind::VarInst { out, op, args } => self.varinst(place, out, *op, args),
                InstructionKind::AllocateQueue(list) => self.allocate(place, list, true, &mut allocated),
                InstructionKind::DeallocateQueue(list) => self.allocate(place, list, false, &mut allocated),
                InstructionKind::Loop(count) => self.open_loop(place, count),
                InstructionKind::EndLoop => self.close_loop(place),
                InstructionKind::Execute { graph, settings } => self.execute(place, *graph, settings),
                InstructionKind::EndProgram => ended = true,
            }
        }
        for (at, _) in std::mem::take(&mut self.loops) {
            self.check.error(code::LOOP_BALANCE, at, "this loop has no end", "add `endloop`");
        }
    }

    /// The node of an instruction's argument.
    fn argument(&self, place: usize) -> Option<&'a Node<'a>> {
        let source: &'a crate::read::Source<'_> = self.check.src;
        let node = source.instructions[self.index].get(place)?;
        node.map().and_then(|entries| entries.first()).map(|entry| &entry.value)
    }

    fn at(&self, place: usize) -> Span {
        let node = self.check.src.instructions[self.index].get(place);
        match node.and_then(|node| node.map()?.first()) {
            Some(entry) => entry.at,
            None => node.map_or_else(Span::default, |node| node.span),
        }
    }

    fn item_at(&self, place: usize, index: usize) -> Span {
        let item = self.argument(place).and_then(|node| node.list()?.get(index));
        item.map_or_else(|| self.at(place), |node| node.span)
    }

    /// Declares the variables that a broken instruction may declare.
    fn declare_broken(&mut self, instruction: &'a Instruction) {
        match &instruction.kind {
            InstructionKind::Var(list) | InstructionKind::StaticVar(list) => {
                self.values.extend(list.iter().map(|(name, _)| (name.as_str(), None)));
            }
            InstructionKind::VarInst { out, .. } => drop(self.values.insert(out, None)),
            InstructionKind::Loop(_) => self.loops.push((Span::default(), true)),
            InstructionKind::EndLoop => drop(self.loops.pop()),
            _ => {}
        }
    }

    fn declare(&mut self, place: usize, list: &'a [(Variable, i64)]) {
        for (index, (name, value)) in list.iter().enumerate() {
            if self.values.insert(name, Some(*value)).is_some() {
                let message = format!("`{name}` is declared already");
                let at = self.name_at(place, index, name);
                self.check.error(code::SHADOW, at, message, "give it another name, or use `varinst` to set it");
            }
        }
    }

    fn name_at(&self, place: usize, index: usize, name: &str) -> Span {
        let entries = self.argument(place).and_then(Node::map);
        let entry = entries.and_then(|entries| entries.iter().find(|entry| &*entry.key == name));
        entry.map_or_else(|| self.item_at(place, index), |entry| entry.at)
    }

    fn params(&mut self, place: usize, list: &'a [Variable]) {
        if place != 0 {
            let at = self.at(place);
            self.check.error(code::PARAM_FIRST, at, "`param` is not the first instruction", "move it to the start");
        }
        for (index, name) in list.iter().enumerate() {
            if self.values.insert(name, None).is_some() {
                let at = self.item_at(place, index);
                self.check.error(code::SHADOW, at, format!("`{name}` is declared already"), "");
            }
            self.trace.given.insert(name);
        }
    }

    /// Returns a value if it is known; reports an undeclared variable.
    fn value(&mut self, value: &'a Value, at: Span) -> Option<i64> {
        match value {
            Value::Immediate(number) => Some(*number),
            Value::Variable(name) => match self.values.get(name.as_str()) {
                Some(value) => *value,
                None => {
                    let mut known: Vec<&str> = self.values.keys().copied().collect();
                    known.sort_unstable();
                    let message = format!("`{name}` is used before it is declared or set");
                    let finding = Diagnostic::new(code::UNDECLARED, at, message);
                    self.check.sink.push(suggest(finding, name, &known));
                    // Declare it, so that it is reported once for each program.
                    self.values.insert(name, None);
                    None
                }
            },
        }
    }

    fn varinst(&mut self, place: usize, out: &'a Variable, op: VarOp, args: &'a [Value]) {
        let values: Vec<Option<i64>> =
            args.iter().enumerate().map(|(index, arg)| self.value(arg, self.item_at(place, index + 2))).collect();
        let at = self.item_at(place, 0);
        self.trace.moving.insert(out);
        if let (VarOp::IncWrap, Some(wrap)) = (op, values.get(1).copied().flatten()) {
            let at = self.item_at(place, 3);
            self.trace.wraps.entry(out).or_default().entry(wrap).or_insert(at);
        }
        let old = match op {
            VarOp::Inc | VarOp::IncWrap => self.read_out(out, at),
            VarOp::Set | VarOp::Add | VarOp::Mul => None,
        };
        if op == VarOp::IncWrap && values.get(1).copied().flatten().is_some_and(|wrap| wrap <= 0) {
            let at = self.item_at(place, 3);
            self.check.error(code::WRAP, at, "an increment wraps at 1 or more", "write twice the queue's entries");
        }
        // Before the first loop, constants are computed from parameters and from one another.
        if out.starts_with("$c_") && op != VarOp::Set && !self.loops.is_empty() {
            let message = format!("`{out}` is changed, though its name calls it constant");
            self.check.warn(code::CONSTANT, at, message, "names of constants start with `$c_`");
        }
        let pair = |f: fn(i64, i64) -> Option<i64>| {
            values.first().copied().flatten().zip(values.get(1).copied().flatten()).and_then(|(a, b)| f(a, b))
        };
        let new = match op {
            VarOp::Set => values.first().copied().flatten(),
            VarOp::Add => pair(i64::checked_add),
            VarOp::Mul => pair(i64::checked_mul),
            VarOp::Inc => old.zip(values.first().copied().flatten()).and_then(|(a, b)| a.checked_add(b)),
            VarOp::IncWrap => pair(|_, wrap| Some(wrap).filter(|wrap| *wrap > 0))
                .zip(old.zip(values.first().copied().flatten()))
                .and_then(|(wrap, (old, inc))| Some(old.checked_add(inc)?.rem_euclid(wrap))),
        };
        self.values.insert(out, new);
    }

    fn read_out(&mut self, out: &'a Variable, at: Span) -> Option<i64> {
        if let Some(value) = self.values.get(out.as_str()) {
            return *value;
        }
        let message = format!("`{out}` is incremented before it is declared or set");
        self.check.error(code::UNDECLARED, at, message, "declare it with `var` or `staticvar`");
        None
    }

    fn allocate(&mut self, place: usize, list: &[QueueId], take: bool, allocated: &mut HashMap<QueueId, bool>) {
        for (index, queue) in list.iter().enumerate() {
            let before = allocated.insert(*queue, take);
            let name = &self.check.net.queue(*queue).name;
            let at = self.item_at(place, index);
            match (take, before) {
                (true, Some(true)) => {
                    let message = format!("`{name}` is allocated already");
                    self.check.error(code::ALLOCATION, at, message, "free it first");
                }
                (false, None | Some(false)) => {
                    let message = format!("`{name}` is freed, but not allocated in this program");
                    self.check.error(code::ALLOCATION, at, message, "allocate it first");
                }
                _ => {}
            }
        }
    }

    fn open_loop(&mut self, place: usize, count: &'a Value) {
        let loop_at = self.at(place);
        let at = self.argument(place).map_or(loop_at, |node| node.span);
        let count = self.value(count, at);
        self.loops.push((loop_at, count != Some(1)));
        if let Some(count) = count.filter(|count| *count < 1) {
            let message = format!("this loop runs {count} times");
            self.check.error(code::LOOP_COUNT, at, message, "a loop runs at least once");
        }
    }

    fn close_loop(&mut self, place: usize) {
        if self.loops.pop().is_none() {
            let at = self.at(place);
            self.check.error(code::LOOP_BALANCE, at, "this `endloop` ends no loop", "remove it, or add `loop`");
        }
    }

    fn execute(&mut self, place: usize, graph: GraphId, settings: &'a [QueueSettings]) {
        let io = &self.ios[graph.0];
        let at = self.at(place);
        self.trace.graphs.insert(graph);
        let mut set: HashSet<QueueId> = HashSet::new();
        let written = self.argument(place).and_then(|node| node.get("queue_settings")?.map()).unwrap_or_default();
        let written: HashMap<&str, &'a Entry<'a>> = written.iter().map(|entry| (&*entry.key, entry)).collect();
        for one in settings {
            set.insert(one.queue);
            let Some(queue) = self.check.queue(one.queue) else { continue };
            // In settings, a queue that exists on several devices is named without the device.
            let short = queue.name.rsplit_once('.').map_or("", |(name, _)| name);
            let entry = written.get(queue.name.as_str()).or_else(|| written.get(short));
            let at = entry.map_or((at, None), |entry| (entry.at, Some(&entry.value)));
            if io.whole && !io.all.contains(&one.queue) {
                let message = format!(
                    "graph `{}` has nothing to do with queue `{}`",
                    self.check.net.graph(graph).name,
                    queue.name
                );
                self.check.error(code::SETTINGS_STRANGER, at.0, message, "remove these settings");
            }
            let pointer = at.1.and_then(|map| map.get("rd_ptr_global")).map_or(at.0, |node| node.span);
            self.trace.uses.push(Use {
                graph,
                settings: one,
                again: self.loops.iter().any(|(_, again)| *again),
                at: pointer,
            });
            self.settings(one, queue, at);
        }
        for queue in io.needed.iter().filter(|queue| !set.contains(queue)) {
            let message = format!(
                "graph `{}` is executed without settings of queue `{}`",
                self.check.net.graph(graph).name,
                self.check.net.queue(*queue).name
            );
            let help = "queues that the host fills, and those of gradients, need settings";
            self.check.error(code::SETTINGS_MISSING, at, message, help);
        }
    }

    fn settings(&mut self, settings: &'a QueueSettings, queue: &Queue, (at, map): (Span, Option<&'a Node<'a>>)) {
        let field = |name: &str| map.and_then(|map| map.get(name)).map_or(at, |node| node.span);
        let name = &queue.name;
        let pointers = [
            ("zero", &settings.zero),
            ("rd_ptr_local", &settings.rd_ptr_local),
            ("rd_ptr_global", &settings.rd_ptr_global),
            ("wr_ptr_global", &settings.wr_ptr_global),
            ("rd_ptr_autoinc", &settings.rd_ptr_autoinc),
            ("global_rdptr_autoinc", &settings.global_rdptr_autoinc),
            ("global_wrptr_autoinc", &settings.global_wrptr_autoinc),
            ("read_only", &settings.read_only),
        ];
        for (pointer, value) in pointers {
            if let Some(value) = value {
                self.value(value, field(pointer));
            }
        }
        let (kind, needed, forbidden) = match queue.kind {
            QueueKind::Queue => ("queue", ["rd_ptr_local", "rd_ptr_global"], "wr_ptr_global"),
            QueueKind::Ram => ("ram", ["rd_ptr_global", "wr_ptr_global"], "rd_ptr_local"),
        };
        let given = |wanted: &str| pointers.iter().any(|(pointer, value)| *pointer == wanted && value.is_some());
        for pointer in needed.into_iter().filter(|pointer| !given(pointer)) {
            let message = format!("`{name}` is a {kind}, whose settings need `{pointer}`");
            self.check.error(code::POINTER_MISSING, at, message, &format!("add `{pointer}: $NAME`"));
        }
        if given(forbidden) {
            let message = format!("`{name}` is a {kind}, which has no `{forbidden}`");
            self.check.error(code::POINTER_FORBIDDEN, field(forbidden), message, "remove it");
        }
        if queue.kind == QueueKind::Queue && settings.epilogue && queue.producer != Producer::Host {
            let message = format!("`{name}` is a queue that an operation fills, which has no epilogue");
            self.check.error(code::EPILOGUE, field("epilogue"), message, "write epilogue: false, or make it a ram");
        }
        if settings.zero == Some(Value::Immediate(1)) && !settings.prologue {
            let message = format!("`{name}` is to be zeroed, but not read in a prologue");
            self.check.error(code::ZERO, field("zero"), message, "write prologue: true");
        }
        self.autoinc(settings, queue, field("rd_ptr_autoinc"));
    }

    /// Checks that both read pointers advance by the same amount if both do.
    fn autoinc(&mut self, settings: &QueueSettings, queue: &Queue, at: Span) {
        let default = i64::from(queue.kind == QueueKind::Queue);
        let local = settings.rd_ptr_autoinc.clone().unwrap_or(Value::Immediate(default));
        let global = settings.global_rdptr_autoinc.clone().unwrap_or(Value::Immediate(0));
        let zero = Value::Immediate(0);
        if local != zero && global != zero && local != global {
            let show = |value: &Value| match value {
                Value::Immediate(number) => number.to_string(),
                Value::Variable(name) => name.clone(),
            };
            let message = format!(
                "the local read pointer of `{}` advances by {}, the global one by {}",
                queue.name,
                show(&local),
                show(&global)
            );
            self.check.error(code::AUTOINC, at, message, "give both the same, or 0 to one");
        }
    }
}
