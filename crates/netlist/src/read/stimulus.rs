//! How a netlist's own test makes its inputs: `stimulus-config` in the section test-config. Everything else of that section is kept as it
//! stands.

use super::fields::{Fields, real, short, text};
use super::names::Names;
use crate::diagnostic::Diagnostics;
use crate::tree::Node;
use crate::types::{Stimulus, StimulusKind};

/// Reads it, if it is there.
pub fn read(section: &Node, names: &Names<'_>, sink: &mut Diagnostics) -> Option<Stimulus> {
    let node = section.get("stimulus-config").filter(|node| !node.is_null())?;
    let fields = Fields::of("stimulus-config".into(), node.span, node, &[], |_| true, sink)?;
    let default = fields.get("type").and_then(|_| kind(&fields, sink));
    let mut overrides = Vec::new();
    for entry in fields.get("overrides").and_then(Node::map).unwrap_or_default() {
        let what = format!("stimulus of `{}`", short(&entry.key));
        let Some(fields) = Fields::of(what, entry.at, &entry.value, &[], |_| true, sink) else { continue };
        let Some(kind) = kind(&fields, sink) else { continue };
        // A test configuration may speak of queues that the netlist does not have.
        overrides.extend(names.queues(&entry.key).into_iter().map(|queue| (queue, kind.clone())));
    }
    Some(Stimulus { default, overrides })
}

fn kind(fields: &Fields<'_>, sink: &mut Diagnostics) -> Option<StimulusKind> {
    let name = fields.need("type", sink).and_then(|node| text(node, "type", sink))?;
    let number = |name: &str, default: f32, sink: &mut Diagnostics| match fields.get(name) {
        Some(node) => real(node, name, sink),
        None => Some(default),
    };
    Some(match name {
        "Uniform" => {
            StimulusKind::Uniform(number("uniform_lower_bound", 0.0, sink)?, number("uniform_upper_bound", 1.0, sink)?)
        }
        "Normal" => StimulusKind::Normal(number("normal_mean", 0.0, sink)?, number("normal_stddev", 1.0, sink)?),
        "Constant" => StimulusKind::Constant(number("constant_value", 0.0, sink)?),
        "DebugTileId" => StimulusKind::DebugTileId(
            number("debug_tile_id_base", 0.0, sink)?,
            number("debug_tile_id_step", 1.0, sink)?,
        ),
        other => StimulusKind::Other(other.to_owned()),
    })
}
