//! Reads programs (tt-budabackend, `docs/public/netlist.md`, section Programs).

use super::Broken;
use super::fields::{Fields, choice, flag, integer, list, parse_flag, parse_integer, short, suggest, text};
use super::names::Names;
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Entry, Node, Value as TreeValue};
use crate::types::{Instruction, InstructionKind, Program, Queue, QueueId, QueueSettings, Value, VarOp, Variable};
use std::collections::HashMap;

/// Instructions with an argument, and those that may stand alone.
const OPCODES: [&str; 10] = [
    "var",
    "staticvar",
    "param",
    "varinst",
    "allocate_queue",
    "deallocate_queue",
    "loop",
    "execute",
    "endloop",
    "endprogram",
];

/// Fields of a queue's settings.
const SETTINGS: [&str; 10] = [
    "prologue",
    "epilogue",
    "zero",
    "rd_ptr_local",
    "rd_ptr_global",
    "wr_ptr_global",
    "rd_ptr_autoinc",
    "global_rdptr_autoinc",
    "global_wrptr_autoinc",
    "read_only",
];

const VAR_OPS: [(&str, VarOp); 5] =
    [("set", VarOp::Set), ("add", VarOp::Add), ("mul", VarOp::Mul), ("inc", VarOp::Inc), ("incwrap", VarOp::IncWrap)];

/// Numbers in programs have 32 bits.
const NUMBERS: std::ops::RangeInclusive<i64> = i32::MIN as i64..=i32::MAX as i64;

/// Reads all programs, with the nodes of their instructions.
pub fn read<'t>(
    section: Option<&'t Entry<'t>>,
    names: &mut Names<'_>,
    queues: &[Queue],
    broken: &mut Broken,
    sink: &mut Diagnostics,
) -> (Vec<Program>, Vec<Vec<&'t Node<'t>>>) {
    let (mut programs, mut nodes) = (Vec::new(), Vec::new());
    let mut seen: HashMap<&str, &Entry> = HashMap::new();
    let items = section.filter(|entry| !entry.value.is_null());
    for item in items.and_then(|entry| list(&entry.value, "programs", sink)).unwrap_or_default() {
        let Some([entry]) = item.map() else {
            let message = "an item of `programs` is a map with one entry: a name and its instructions";
            sink.push(Diagnostic::new(code::WRONG_KIND, item.span, message));
            continue;
        };
        if let Some(first) = seen.insert(&entry.key, entry) {
            let message = format!("there is another program `{}`", short(&entry.key));
            sink.push(Diagnostic::new(code::DUPLICATE_NAME, entry.at, message).context(Some(first.at), "here"));
        }
        let mut reader = Reader { names, queues, program: programs.len(), instructions: Vec::new(), nodes: Vec::new() };
        // An empty program does nothing, which is no error.
        let body = if entry.value.is_null() { None } else { list(&entry.value, "program", sink) };
        for node in body.unwrap_or_default() {
            reader.instruction(node, broken, sink);
        }
        programs.push(Program { name: entry.key.to_string(), at: entry.at.start, instructions: reader.instructions });
        nodes.push(reader.nodes);
    }
    (programs, nodes)
}

struct Reader<'a, 'n, 't> {
    names: &'a mut Names<'n>,
    queues: &'a [Queue],
    program: usize,
    instructions: Vec<Instruction>,
    nodes: Vec<&'t Node<'t>>,
}

impl<'t> Reader<'_, '_, 't> {
    fn instruction(&mut self, node: &'t Node<'t>, broken: &mut Broken, sink: &mut Diagnostics) {
        let (before, first) = (sink.errors(), self.instructions.len());
        match &node.value {
            TreeValue::Scalar(_) => match node.text().unwrap_or_default() {
                "endloop" => self.push(node, InstructionKind::EndLoop),
                "endprogram" => self.push(node, InstructionKind::EndProgram),
                other => unknown(node, other, sink),
            },
            TreeValue::Map(entries) if entries.len() == 1 => self.with_argument(node, &entries[0], sink),
            _ => {
                let message = "an instruction is a name, or a map with one entry: its name and its arguments";
                sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message));
            }
        }
        if sink.errors() > before {
            broken.instructions.extend((first..self.instructions.len().max(first + 1)).map(|i| (self.program, i)));
        }
    }

    fn push(&mut self, node: &'t Node<'t>, kind: InstructionKind) {
        self.instructions.push(Instruction { at: node.span.start, kind });
        self.nodes.push(node);
    }

    fn with_argument(&mut self, node: &'t Node<'t>, entry: &'t Entry<'t>, sink: &mut Diagnostics) {
        let argument = &entry.value;
        let kind = match &*entry.key {
            "var" => declarations(argument, "var", sink).map(InstructionKind::Var),
            "staticvar" => declarations(argument, "staticvar", sink).map(InstructionKind::StaticVar),
            "param" => params(argument, sink).map(InstructionKind::Param),
            "varinst" => varinst(argument, sink),
            "allocate_queue" => self.queue_list(argument, &entry.key, sink).map(InstructionKind::AllocateQueue),
            "deallocate_queue" => self.queue_list(argument, &entry.key, sink).map(InstructionKind::DeallocateQueue),
            "loop" => value(argument, "loop", sink).map(InstructionKind::Loop),
            "endloop" => Some(InstructionKind::EndLoop),
            "endprogram" => Some(InstructionKind::EndProgram),
            "execute" => return self.execute(node, entry, sink),
            other => {
                let finding = Diagnostic::new(
                    code::UNKNOWN_VALUE,
                    entry.at,
                    format!("there is no instruction `{}`", short(other)),
                );
                sink.push(suggest(finding, other, &OPCODES));
                None
            }
        };
        // A placeholder for an instruction that cannot be read keeps loops balanced.
        let broken = if &*entry.key == "loop" {
            InstructionKind::Loop(Value::Immediate(1))
        } else {
            InstructionKind::Var(Vec::new())
        };
        self.push(node, kind.unwrap_or(broken));
    }

    fn queue_list(&self, node: &Node, name: &str, sink: &mut Diagnostics) -> Option<Vec<QueueId>> {
        let mut queues = Vec::new();
        for item in list(node, name, sink)? {
            let Some(text) = text(item, name, sink) else { continue };
            let found = self.names.queues(text);
            if found.is_empty() {
                let message = format!("`{name}`: no queue is named `{}`", short(text));
                self.names.unknown(item.span, message, text, false, sink);
            }
            queues.extend(found);
        }
        Some(queues)
    }

    fn execute(&mut self, node: &'t Node<'t>, entry: &'t Entry<'t>, sink: &mut Diagnostics) {
        let known = ["graph_name", "queue_settings"];
        let fields = Fields::of("execute".into(), entry.at, &entry.value, &known, |_| false, sink);
        let Some(fields) = fields else { return };
        let graph = fields.need("graph_name", sink).and_then(|node| Some((node, text(node, "graph_name", sink)?)));
        let Some((graph_node, graph_name)) = graph else { return };
        let graphs = self.names.graphs(graph_name);
        if graphs.is_empty() {
            let known: Vec<&str> = self.names.graph_list.iter().map(|graph| &*graph.name).collect();
            let message = format!("no graph is named `{}`", short(graph_name));
            sink.push(suggest(Diagnostic::new(code::UNKNOWN_NAME, graph_node.span, message), graph_name, &known));
        }
        let written = fields.get("queue_settings").filter(|node| !node.is_null());
        let written = written.and_then(|node| {
            if node.map().is_none() {
                let message = format!("`queue_settings` is {}, not a map of queues", node.kind());
                sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message));
            }
            node.map()
        });
        let mut read = Vec::new();
        for entry in written.unwrap_or_default() {
            read.extend(settings(entry, sink).map(|settings| (entry, settings)));
        }
        for graph in graphs {
            let device = self.names.graph_list[graph.0].device;
            if device.is_some() && !self.names.room(1 + read.len(), entry.at, sink) {
                return;
            }
            let mut all = Vec::new();
            for (entry, settings) in &read {
                let here = device.and_then(|device| self.names.queue(&entry.key, Some(device)));
                let queues = here.map_or_else(|| self.names.queues(&entry.key), |queue| vec![queue]);
                if queues.is_empty() {
                    let message = format!("settings of `{}`, but no queue has this name", short(&entry.key));
                    self.names.unknown(entry.at, message, &entry.key, false, sink);
                }
                all.extend(queues.into_iter().map(|queue| QueueSettings { queue, ..settings.clone() }));
            }
            debug_assert!(all.iter().all(|settings| settings.queue.0 < self.queues.len()));
            self.push(node, InstructionKind::Execute { graph, settings: all });
        }
    }
}

fn unknown(node: &Node, name: &str, sink: &mut Diagnostics) {
    let finding = if OPCODES.contains(&name) {
        let message = format!("`{name}` has arguments");
        Diagnostic::new(code::WRONG_KIND, node.span, message).help(format!("write `{name}: ...`"))
    } else {
        let message = format!("there is no instruction `{}`", short(name));
        suggest(Diagnostic::new(code::UNKNOWN_VALUE, node.span, message), name, &OPCODES)
    };
    sink.push(finding);
}

/// A variable's name: it starts with `$`.
fn variable(text: &str, node: &Node, sink: &mut Diagnostics) -> Option<Variable> {
    if text.len() > 1 && text.starts_with('$') {
        return Some(text.to_owned());
    }
    let message = format!("`{}` is no variable", short(text));
    let finding = Diagnostic::new(code::UNKNOWN_NAME, node.span, message);
    sink.push(finding.help("names of variables start with `$`"));
    None
}

/// A variable or a number; true is 1.
fn value(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<Value> {
    let text = text(node, name, sink)?;
    if text.starts_with('$') {
        return variable(text, node, sink).map(Value::Variable);
    }
    if let Some(flag) = parse_flag(text) {
        return Some(Value::Immediate(i64::from(flag)));
    }
    if parse_integer(text).is_some() {
        return integer(node, name, NUMBERS, sink).map(Value::Immediate);
    }
    let message = format!("`{name}` is `{}`, neither a number nor a variable", short(text));
    sink.push(Diagnostic::new(code::BAD_NUMBER, node.span, message).help("names of variables start with `$`"));
    None
}

fn declarations(node: &Node, name: &str, sink: &mut Diagnostics) -> Option<Vec<(Variable, i64)>> {
    let mut all = Vec::new();
    match &node.value {
        TreeValue::Map(entries) => {
            for entry in entries {
                let key = Node { span: entry.at, value: TreeValue::List(Vec::new()) };
                let variable = variable(&entry.key, &key, sink);
                let start = integer(&entry.value, &entry.key, NUMBERS, sink);
                all.extend(variable.zip(start));
            }
        }
        TreeValue::List(items) => {
            for item in items {
                let found = text(item, name, sink).and_then(|text| variable(text, item, sink));
                all.extend(found.map(|variable| (variable, 0)));
            }
        }
        TreeValue::Scalar(_) => {
            let message = format!("`{name}` is {}, not a list or a map of variables", node.kind());
            sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message));
            return None;
        }
    }
    if all.is_empty() {
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, format!("`{name}` declares nothing")).warning());
    }
    Some(all)
}

fn params(node: &Node, sink: &mut Diagnostics) -> Option<Vec<Variable>> {
    let mut all = Vec::new();
    for item in list(node, "param", sink)? {
        all.extend(text(item, "param", sink).and_then(|text| variable(text, item, sink)));
    }
    Some(all)
}

fn varinst(node: &Node, sink: &mut Diagnostics) -> Option<InstructionKind> {
    let items = list(node, "varinst", sink)?;
    let [out, op, args @ ..] = items else {
        let message = format!("`varinst` has {} values: it needs a variable, what to do and with what", items.len());
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message).help("write [$out, set, 1]"));
        return None;
    };
    let out = text(out, "varinst", sink).and_then(|name| variable(name, out, sink));
    let op = choice(op, "varinst", &VAR_OPS, sink);
    let args: Vec<_> = args.iter().map(|arg| value(arg, "varinst", sink)).collect();
    if let Some(op) = op {
        let wanted = match op {
            VarOp::Set | VarOp::Inc => 1,
            VarOp::Add | VarOp::Mul | VarOp::IncWrap => 2,
        };
        if args.len() != wanted {
            let name = VAR_OPS.iter().find(|(_, known)| *known == op).map_or("", |(name, _)| name);
            let message = format!("`{name}` has {wanted} arguments, not {}", args.len());
            sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message));
            return None;
        }
    }
    Some(InstructionKind::VarInst { out: out?, op: op?, args: args.into_iter().collect::<Option<_>>()? })
}

fn settings(entry: &Entry, sink: &mut Diagnostics) -> Option<QueueSettings> {
    let what = format!("settings of `{}`", short(&entry.key));
    let fields = Fields::of(what, entry.at, &entry.value, &SETTINGS, |_| false, sink)?;
    let constant = |name: &str, sink: &mut Diagnostics| match fields.get(name) {
        Some(node) if node.text().is_some_and(|text| text.starts_with('$')) => {
            let message = format!("`{name}` cannot be a variable");
            sink.push(Diagnostic::new(code::STATIC_SETTING, node.span, message).help("write true or false"));
            false
        }
        Some(node) => flag(node, name, sink).unwrap_or(false),
        None => false,
    };
    let (prologue, epilogue) = (constant("prologue", sink), constant("epilogue", sink));
    let mut of = |name: &str| fields.get(name).and_then(|node| value(node, name, sink));
    Some(QueueSettings {
        queue: QueueId(0),
        at: entry.at.start,
        prologue,
        epilogue,
        zero: of("zero"),
        rd_ptr_local: of("rd_ptr_local"),
        rd_ptr_global: of("rd_ptr_global"),
        wr_ptr_global: of("wr_ptr_global"),
        rd_ptr_autoinc: of("rd_ptr_autoinc"),
        global_rdptr_autoinc: of("global_rdptr_autoinc"),
        global_wrptr_autoinc: of("global_wrptr_autoinc"),
        read_only: of("read_only"),
    })
}
