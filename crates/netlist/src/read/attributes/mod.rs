//! Attributes of operations, and the kind of an operation from its type and attributes.

mod table;

use super::fields::{Fields, choice, count, flag, integer, list, natural, naturals, real, short, suggest};
use super::names::Names;
use crate::code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::tree::{Entry, Node, Span};
use crate::types::{
    Ethernet, Granularity, Hints, Identity, KernelBroadcast, Matmul, OpKind, Piece, Post, ReduceDim, Relu, ReluMode,
    TopKOutput, UnaryKind, VectorMode,
};
use table::{ATTRIBUTES, On, STEP, TYPES, Type};

pub use table::type_name;

/// The attributes of one operation or step.
pub struct Attributes<'t> {
    what: &'t str,
    at: Span,
    entries: &'t [Entry<'t>],
}

impl<'t> Attributes<'t> {
    /// Reads the field `attributes`, if present; attributes that the operation does not have
    /// are reported.
    pub fn of(
        what: &'t str,
        at: Span,
        node: Option<&'t Node<'t>>,
        kind: &str,
        step: bool,
        sink: &mut Diagnostics,
    ) -> Self {
        let entries = match node {
            None => &[],
            Some(node) => node.map().unwrap_or_else(|| {
                let message = format!("`attributes` is {}, not a map", node.kind());
                sink.push(Diagnostic::new(code::WRONG_KIND, node.span, message));
                &[]
            }),
        };
        let attributes = Self { what, at, entries };
        for entry in entries {
            attributes.known(entry, kind, step, sink);
        }
        attributes
    }

    fn known(&self, entry: &Entry, kind: &str, step: bool, sink: &mut Diagnostics) {
        let name = &*entry.key;
        if kind == "splice" && splice_input(name).is_some() {
            return;
        }
        let row = ATTRIBUTES.iter().find(|(known, _)| *known == name).filter(|_| !step || STEP.contains(&name));
        let belongs = |kinds: &[&str]| kinds.contains(&kind);
        match row {
            None => {
                let known: Vec<&str> = match step {
                    true => STEP.to_vec(),
                    false => ATTRIBUTES.iter().map(|(known, _)| *known).collect(),
                };
                let message = format!("{} has no attribute `{}`", self.what, short(name));
                sink.push(suggest(Diagnostic::new(code::UNKNOWN_FIELD, entry.at, message), name, &known));
            }
            Some((_, On::All)) => {}
            // The type is not known, which is reported.
            _ if kind.is_empty() => {}
            Some((_, On::Some(kinds) | On::Only(kinds))) if belongs(kinds) => {}
            Some((_, On::Some(kinds))) => self.elsewhere(entry, kind, kinds, true, sink),
            Some((_, On::Only(kinds))) => self.elsewhere(entry, kind, kinds, kind == "fused_op", sink),
        }
    }

    fn elsewhere(&self, entry: &Entry, kind: &str, kinds: &[&str], harmless: bool, sink: &mut Diagnostics) {
        let message = format!("the attribute `{}` has no meaning for {kind}", entry.key);
        let finding = Diagnostic::new(code::ATTRIBUTE_PLACE, entry.at, message)
            .help(format!("it belongs to {}", kinds.join(", ")));
        sink.push(if harmless { finding.warning() } else { finding });
    }

    fn get(&self, name: &str) -> Option<&'t Node<'t>> {
        self.entries.iter().find(|entry| &*entry.key == name).map(|entry| &entry.value)
    }

    fn need(&self, name: &str, sink: &mut Diagnostics) -> Option<&'t Node<'t>> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("{} has no attribute `{name}`", self.what);
            sink.push(
                Diagnostic::new(code::MISSING_FIELD, self.at, message)
                    .help(format!("add `attributes: {{{name}: ...}}`")),
            );
        }
        found
    }

    fn flag(&self, name: &str, sink: &mut Diagnostics) -> bool {
        self.get(name).and_then(|node| flag(node, name, sink)).unwrap_or(false)
    }

    fn number(&self, name: &str, default: u32, sink: &mut Diagnostics) -> u32 {
        self.get(name).and_then(|node| natural(node, name, sink)).unwrap_or(default)
    }

    fn real(&self, name: &str, default: f32, sink: &mut Diagnostics) -> f32 {
        self.get(name).and_then(|node| real(node, name, sink)).unwrap_or(default)
    }

    fn count(&self, name: &str, sink: &mut Diagnostics) -> Option<u32> {
        self.need(name, sink).and_then(|node| count(node, name, sink))
    }

    /// What the operation computes; `None` after a reported error.
    pub fn kind(
        &self,
        node: &Node,
        names: &Names<'_>,
        cores: u64,
        step: bool,
        sink: &mut Diagnostics,
    ) -> Option<OpKind> {
        let kind = match choice(node, "type", &TYPES, sink)? {
            Type::Short(right) => {
                let message = format!("there is no operation `{}`", short(node.text().unwrap_or_default()));
                let finding = Diagnostic::new(code::UNKNOWN_VALUE, node.span, message);
                sink.push(finding.help(format!("did you mean `{right}`?")));
                return None;
            }
            Type::Fused if step => {
                let message = "a fused operation cannot hold another one";
                sink.push(Diagnostic::new(code::FUSED_NESTING, node.span, message));
                return None;
            }
            Type::Unary(kind) => OpKind::Unary(kind),
            Type::Power => OpKind::Unary(UnaryKind::Power(self.exponent(sink))),
            Type::LeakyRelu => OpKind::Unary(UnaryKind::LeakyRelu(self.real("slope", 0.01, sink))),
            Type::Dropout => OpKind::Unary(self.dropout(sink)?),
            Type::Binary(kind) => OpKind::Binary(kind),
            Type::Quant(kind) => OpKind::Quant { kind, zero_point: self.real("zero_point", 0.0, sink) },
            Type::Matmul => OpKind::Matmul(self.matmul(cores, sink)?),
            Type::Depthwise => OpKind::Depthwise(self.matmul(cores, sink)?),
            Type::Reduce => self.reduce(sink)?,
            Type::Splice => self.splice(sink)?,
            Type::Fused => {
                let node = self.need("fused_op_id", sink)?;
                let id = integer(node, "fused_op_id", 0..=i64::from(u32::MAX), sink)?;
                let found = u32::try_from(id).ok().and_then(|id| names.fused(id));
                if found.is_none() {
                    let message = format!("there is no fused operation {id}");
                    let known: Vec<String> = names.fused_list.iter().take(16).map(|(id, _)| id.to_string()).collect();
                    let finding = Diagnostic::new(code::UNKNOWN_NAME, node.span, message);
                    sink.push(finding.help(format!("the section fused_ops has: {}", known.join(", "))));
                }
                OpKind::Fused(found?)
            }
            Type::Tilizer => OpKind::Tilizer,
            Type::Embedding => OpKind::Embedding { num_indices: self.count("num_indices", sink)? },
            Type::TopK => self.topk(sink)?,
            Type::Ethernet => OpKind::EthernetDatacopy,
            Type::Drainer => OpKind::Drainer,
        };
        Some(kind)
    }

    fn exponent(&self, sink: &mut Diagnostics) -> i32 {
        let bounds = i64::from(i32::MIN)..=i64::from(i32::MAX);
        let exponent = self.get("exp").and_then(|node| integer(node, "exp", bounds, sink)).unwrap_or(0);
        i32::try_from(exponent).unwrap_or(0)
    }

    fn dropout(&self, sink: &mut Diagnostics) -> Option<UnaryKind> {
        let p = self.real("p", 0.0, sink);
        if !(0.0..=1.0).contains(&p) {
            let at = self.get("p").map_or(self.at, |node| node.span);
            sink.push(Diagnostic::new(code::BAD_NUMBER, at, format!("a probability of {p} is not between 0 and 1")));
            return None;
        }
        let seed = self.get("seed").and_then(|node| integer(node, "seed", 0..=i64::from(u32::MAX), sink));
        Some(UnaryKind::Dropout { p, seed: seed.and_then(|seed| u32::try_from(seed).ok()).unwrap_or(0) })
    }

    fn matmul(&self, cores: u64, sink: &mut Diagnostics) -> Option<Matmul> {
        let (m_k, u_kt) = (self.count("m_k", sink), self.count("u_kt", sink));
        let accumulate = self.flag("accumulate", sink).then(|| self.number("z", 0, sink));
        if let (None, Some(node)) = (accumulate, self.get("z")) {
            let message = "`z` has a meaning only with `accumulate: true`";
            sink.push(Diagnostic::new(code::ATTRIBUTE_PLACE, node.span, message));
        }
        let gelu = match self.get("sfpu_op") {
            Some(node) => choice(node, "sfpu_op", &[("gelu", true), ("invalid", false)], sink)?,
            None => false,
        };
        let identity = if self.flag("identity", sink) { Some(self.identity(cores, sink)) } else { None };
        Some(Matmul {
            m_k: m_k?,
            u_kt: u_kt?,
            bias: self.flag("bias", sink),
            accumulate,
            l1_acc: self.flag("l1_acc", sink),
            gelu,
            requant: self.flag("requant", sink),
            dequant: self.flag("dequant", sink),
            zero_point: self.real("zero_point", 0.0, sink),
            identity,
        })
    }

    fn identity(&self, cores: u64, sink: &mut Diagnostics) -> Identity {
        let strips = self.get("num_nz_strips").and_then(|node| {
            let strips = naturals(node, "num_nz_strips", sink)?;
            if node.list().is_some_and(|items| items.len() as u64 != cores) {
                let message = format!("`num_nz_strips` has {} values for {cores} cores", strips.len());
                sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message).help("give one for each core"));
            }
            Some(strips)
        });
        Identity {
            num_index_tiles: self.number("num_index_tiles", 0, sink),
            num_sparse_tiles: self.number("num_sparse_tiles", 0, sink),
            num_columns: self.number("num_columns", 0, sink),
            sparse_tile_ptr_bits: self.number("sparse_tile_ptr_bits", 0, sink),
            sparse_ublock_idx_bits: self.number("sparse_ublock_idx_bits", 0, sink),
            indices_len: self.number("indices_len", 0, sink),
            fracture_factor: self.number("fracture_factor", 1, sink),
            starting_row: self.number("starting_row", 0, sink),
            act_t: self.number("act_t", 0, sink),
            num_nz_strips: strips.unwrap_or_default(),
        }
    }

    fn reduce(&self, sink: &mut Diagnostics) -> Option<OpKind> {
        let dims = [("r", ReduceDim::R), ("c", ReduceDim::C), ("rc", ReduceDim::Rc), ("z", ReduceDim::Z)];
        let dim = self.need("dim", sink).and_then(|node| choice(node, "dim", &dims, sink));
        let kind = self.need("type", sink).and_then(|node| choice(node, "type", &[("max", ())], sink));
        if let (Some(node), Some(ReduceDim::R | ReduceDim::C | ReduceDim::Rc)) = (self.get("z"), dim) {
            let message = "`z` has a meaning only with `dim: z`";
            sink.push(Diagnostic::new(code::ATTRIBUTE_PLACE, node.span, message));
        }
        let mut of = |name: &str| self.get(name).and_then(|node| count(node, name, sink));
        let k = of("m_k").zip(of("u_kt"));
        kind?;
        Some(OpKind::Reduce { dim: dim?, k, z: self.number("z", 0, sink) })
    }

    fn splice(&self, sink: &mut Diagnostics) -> Option<OpKind> {
        let all = [("ublock", Granularity::Ublock), ("t", Granularity::T)];
        let granularity = match self.get("granularity") {
            Some(node) => choice(node, "granularity", &all, sink)?,
            None => Granularity::Ublock,
        };
        let mut pieces = Vec::new();
        let mut found: Vec<(usize, &Entry)> =
            self.entries.iter().filter_map(|entry| splice_input(&entry.key).map(|index| (index, entry))).collect();
        found.sort_by_key(|(index, _)| *index);
        for (place, (index, entry)) in found.into_iter().enumerate() {
            if index >= 8 || index != place {
                let message = if index >= 8 {
                    "a splice has at most 8 inputs, input0 to input7".to_owned()
                } else {
                    format!("there is no `input{place}` before `{}`", entry.key)
                };
                sink.push(Diagnostic::new(code::SPLICE, entry.at, message));
                return None;
            }
            pieces.push(piece(&entry.key, &entry.value, sink)?);
        }
        Some(OpKind::Splice { granularity, pieces })
    }

    fn topk(&self, sink: &mut Diagnostics) -> Option<OpKind> {
        let all = [("max", TopKOutput::Max), ("argmax", TopKOutput::ArgMax)];
        let k = self.count("k", sink);
        let sort = self.need("sort", sink).and_then(|node| choice(node, "sort", &all, sink));
        let kreduce = u32::from(self.flag("kreduce", sink));
        Some(OpKind::TopK { k: k?, sort: sort?, kreduce })
    }

    /// What is done with the result of any operation.
    pub fn post(&self, sink: &mut Diagnostics) -> Post {
        let vectors = [("r", VectorMode::R), ("c", VectorMode::C), ("rc", VectorMode::Rc)];
        let vector = self.get("vector").and_then(|node| choice(node, "vector", &vectors, sink));
        let threshold = self.real("relu_threshold", 0.0, sink);
        if threshold < 0.0 {
            let at = self.get("relu_threshold").map_or(self.at, |node| node.span);
            sink.push(Diagnostic::new(code::BAD_NUMBER, at, "`relu_threshold` is negative"));
        }
        let modes = [("min", Some(ReluMode::Min)), ("max", Some(ReluMode::Max)), ("none", None)];
        let written = self.get("relu_mode").map(|node| (node, choice(node, "relu_mode", &modes, sink)));
        let relu = self.flag("relu_en", sink).then(|| {
            if let Some((node, Some(None))) = written {
                let message = "`relu_en` is true, but `relu_mode` says none";
                sink.push(Diagnostic::new(code::UNKNOWN_VALUE, node.span, message).help("possible: min, max"));
            }
            Relu { mode: written.and_then(|(_, mode)| mode.flatten()).unwrap_or(ReluMode::Min), threshold }
        });
        Post { relu, vector }
    }

    /// Attributes that do not change results.
    pub fn hints(&self, kind: &str, sink: &mut Diagnostics) -> Hints {
        let rounding: [(&str, &str); 4] = [("none", "none"), ("fpu", "fpu"), ("pack", "pack"), ("all", "all")];
        let old = self.flag("srnd_fpu_en", sink).then_some("fpu");
        let mode = self.get("stoch_rnd_mode").and_then(|node| choice(node, "stoch_rnd_mode", &rounding, sink)).or(old);
        let threads: [(&str, &str); 2] = [("math", "math"), ("pack", "pack")];
        let thread = self.get("sfpu_execution_thread");
        let thread = thread.and_then(|node| choice(node, "sfpu_execution_thread", &threads, sink));
        let most = if kind == "depthwise" { 0 } else { 1 };
        let least = self.get("min_buffer_input");
        let least = least.and_then(|node| integer(node, "min_buffer_input", 0..=most, sink));
        Hints {
            single_tile: self.get("single_tile").is_some(),
            approximate: self.flag("approximate_mode", sink),
            stochastic_rounding: mode.filter(|mode| *mode != "none").map(str::to_owned),
            sfpu_thread: thread.map(str::to_owned),
            min_buffer_input: least.and_then(|input| u32::try_from(input).ok()),
            ethernet: (kind == "ethernet_datacopy").then(|| self.ethernet(sink)),
        }
    }

    fn ethernet(&self, sink: &mut Diagnostics) -> Ethernet {
        let mut channels = |name: &str| {
            let node = self.get(name)?;
            let channels = naturals(node, name, sink)?;
            if channels.is_empty() {
                sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, format!("`{name}` names no channel")));
            }
            Some(channels)
        };
        let (ingress, egress) = (channels("ingress_channels"), channels("egress_channels"));
        Ethernet {
            dest_device: self.get("dest_device").and_then(|node| natural(node, "dest_device", sink)),
            ingress_channels: ingress.unwrap_or_default(),
            egress_channels: egress.unwrap_or_default(),
        }
    }

    /// `kernel_broadcast`, `kernel_broadcast_per_t` and `single_tile`, for each input.
    pub fn kernel_broadcasts(&self, inputs: usize, sink: &mut Diagnostics) -> Vec<Option<KernelBroadcast>> {
        let mut all = vec![None; inputs];
        for (name, per_t) in [("kernel_broadcast", false), ("kernel_broadcast_per_t", true)] {
            let Some(node) = self.get(name) else { continue };
            let Some(fields) = Fields::of(format!("`{name}`"), node.span, node, &[], |_| true, sink) else { continue };
            for (key, at, value) in fields.entries() {
                let index = key.strip_prefix("input_").and_then(|index| index.parse::<usize>().ok());
                let Some(place) = index.and_then(|index| all.get_mut(index)) else {
                    let message = format!("`{}` is no input of {}", short(key), self.what);
                    let help = format!("the inputs are input_0 to input_{}", inputs.saturating_sub(1));
                    sink.push(Diagnostic::new(code::OPERAND_INDEX, at, message).help(help));
                    continue;
                };
                let tiles = natural(value, name, sink).filter(|tiles| *tiles > 0);
                if place.is_some() {
                    let message = format!("`{}` has two kernel broadcasts", short(key));
                    sink.push(Diagnostic::new(code::DUPLICATE_NAME, at, message));
                }
                *place = tiles.map(|tiles| KernelBroadcast { tiles, per_t });
            }
        }
        let single = self.get("single_tile").and_then(|node| list(node, "single_tile", sink)).unwrap_or_default();
        for node in single {
            let index = natural(node, "single_tile", sink);
            match index.and_then(|index| all.get_mut(index as usize)) {
                Some(place) => *place = Some(KernelBroadcast { tiles: 1, per_t: false }),
                None => {
                    let message = format!("`single_tile` names no input of {}", self.what);
                    sink.push(Diagnostic::new(code::OPERAND_INDEX, node.span, message));
                }
            }
        }
        all
    }
}

fn splice_input(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("input")?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn piece(name: &str, node: &Node, sink: &mut Diagnostics) -> Option<Piece> {
    let items = list(node, name, sink)?;
    let [index, length, stride] = items else {
        let message = format!("`{name}` has {} values, not 3: [index, length, stride]", items.len());
        sink.push(Diagnostic::new(code::WRONG_COUNT, node.span, message));
        return None;
    };
    let (index, length, stride) =
        (natural(index, "index", sink), count(length, "length", sink), count(stride, "stride", sink));
    Some(Piece { index: index?, length: length?, stride: stride? })
}
