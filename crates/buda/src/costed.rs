//! Settings of operations that values do not depend on, though they do on a device: there the
//! operation only costs the time that the netlist asks for.

use crate::op::Precision;
use tilework_netlist::types::{Netlist, Op, OpKind, UnaryKind};

/// An operation and the settings that no value depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Costed {
    /// The operation.
    pub op: String,
    /// The settings, as the netlist names them.
    pub settings: Vec<&'static str>,
}

/// Operations with such settings, in the order of the file.
pub fn costed(netlist: &Netlist, precision: Precision) -> Vec<Costed> {
    let ops = netlist.graphs.iter().flat_map(|graph| &graph.ops);
    let of = |op: &Op| Costed { op: op.name.clone(), settings: settings(netlist, op, precision) };
    ops.map(of).filter(|costed| !costed.settings.is_empty()).collect()
}

fn settings(netlist: &Netlist, op: &Op, precision: Precision) -> Vec<&'static str> {
    let mut settings = Vec::new();
    let moves = matches!(op.kind, OpKind::EthernetDatacopy | OpKind::Drainer);
    match (&op.kind, precision) {
        _ if moves => {}
        // Without formats this holds for every operation, and need not be said of each.
        (_, Precision::Exact) => {}
        (OpKind::TopK { .. }, _) => settings.extend(["acc_df", "intermed_df", "math_fidelity"]),
        // A maximum is kept between blocks, and never rounded there.
        (OpKind::Reduce { k: Some((2.., _)), .. }, _) if op.intermed_format != op.acc_format => {
            settings.push("intermed_df");
        }
        _ => {}
    }
    if op.hints.approximate && has_functions(netlist, &op.kind) {
        settings.push("approximate_mode");
    }
    if op.hints.stochastic_rounding.is_some() && !moves {
        settings.push("stoch_rnd_mode");
    }
    settings
}

/// Whether an operation computes functions that a device can approximate.
fn has_functions(netlist: &Netlist, kind: &OpKind) -> bool {
    match kind {
        OpKind::Unary(kind) => !matches!(kind, UnaryKind::Copy | UnaryKind::Abs | UnaryKind::Square),
        OpKind::Matmul(matmul) => matmul.gelu,
        OpKind::Fused(id) => {
            let mut steps = netlist.fused_ops.get(id.0).into_iter().flat_map(|fused| fused.schedules.iter().flatten());
            steps.any(|step| !matches!(step.kind, OpKind::Fused(_)) && has_functions(netlist, &step.kind))
        }
        _ => false,
    }
}
