//! What a run executed of the coprocessor: instructions and modes, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write;
use tilework_abi::tensix::insn::{Kind, Mode, Unit, format_name};

/// How often the coprocessors of a chip executed which instruction in which mode.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage(BTreeMap<Mode, u64>);

impl Coverage {
    /// Of a chip that has executed nothing.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds what another chip has executed.
    pub fn merge(&mut self, other: &Self) {
        self.add(&other.0);
    }

    pub(crate) fn add(&mut self, counts: &BTreeMap<Mode, u64>) {
        for (mode, count) in counts {
            *self.0.entry(*mode).or_default() += count;
        }
    }

    /// The modes and how often each was executed, by unit and opcode.
    pub fn iter(&self) -> impl Iterator<Item = (Unit, Mode, u64)> {
        let of_unit = |unit| {
            let all = self.0.iter().map(move |(mode, count)| (unit, *mode, *count));
            all.filter(move |(_, mode, _)| mode.row().is_some_and(|row| row.unit == unit))
        };
        Unit::ALL.into_iter().flat_map(of_unit)
    }

    /// A line for each mode, below the name of its unit: the count and the instruction.
    pub fn text(&self) -> String {
        let (mut text, mut last) = (String::new(), None);
        for (unit, mode, count) in self.iter() {
            // Writing to a string does not fail.
            if last.replace(unit) != Some(unit) {
                let _ = writeln!(text, "{}:", unit.name());
            }
            let _ = writeln!(text, "{count:>12}  {mode}");
        }
        text
    }

    /// One JSON object: `instructions` with `unit`, `instruction`, `mode` and `count` each.
    pub fn json(&self) -> String {
        let line = |(unit, mode, count): (Unit, Mode, u64)| {
            let instruction = mode.row().map_or("", |row| row.mnemonic);
            let values = mode.values().map(|(field, value)| match field.kind {
                Kind::Flag => format!("\"{}\": {}", field.name, value != 0),
                Kind::Format => format!("\"{}\": \"{}\"", field.name, format_name(value).unwrap_or("none")),
                _ => format!("\"{}\": {value}", field.name),
            });
            let values = values.collect::<Vec<_>>().join(", ");
            format!(
                "    {{\"unit\": \"{}\", \"instruction\": \"{instruction}\", \"mode\": {{{values}}}, \"count\": {count}}}",
                unit.name()
            )
        };
        let lines = self.iter().map(line).collect::<Vec<_>>().join(",\n");
        format!("{{\n  \"schema\": 1,\n  \"instructions\": [\n{lines}\n  ]\n}}\n")
    }
}
