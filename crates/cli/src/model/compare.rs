//! `tilework run --compare`: the chip beside host arithmetic.

use super::args::CompareName;
use super::engine::AnyMachine;
use super::tensors;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_engine::beside::{Difference, Evidence, Findings};
use tilework_model::ttnn::OpKind;

/// What the comparison has found. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct CompareReport {
    /// What the chip's operations had read: `own` results or those of `native` arithmetic.
    inputs: &'static str,
    /// Results that were compared.
    compared: usize,
    /// Those that differ too much.
    departed: usize,
    /// The first of them in the order of execution.
    departures: Vec<Departed>,
}

/// A result that differs too much.
#[derive(Serialize, Debug)]
struct Departed {
    program: usize,
    operation: usize,
    kind: OpKind,
    name: Option<String>,
    loc: String,
    result: usize,
    /// The device of the mesh.
    device: usize,
    /// Absent where shapes differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pcc: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_abs: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    of_range: Option<f64>,
    #[serde(skip)]
    text: String,
}

impl CompareReport {
    /// What a machine has found, if it was compared.
    pub fn of(with: CompareName, machine: &AnyMachine) -> Option<Self> {
        let Findings { compared, departed, differences, .. } = machine.findings()?;
        let departures = differences.iter().map(Departed::of).collect();
        Some(Self { inputs: with.inputs(), compared: *compared, departed: *departed, departures })
    }

    /// The first departure as a failed run.
    pub fn failure(&self) -> Option<Failure> {
        let first = self.departures.first()?;
        let mut what = format!("{}: what it read and made is in departure_*.npy", first.text);
        if self.inputs == CompareName::Native.inputs() {
            what += ". Its inputs are the chip's own, in which roundings add up: with --compare native-inputs each \
                     operation is judged by itself";
        }
        Some(Failure::failed("mismatch", what))
    }

    pub fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { inputs, compared, departed, departures } = self;
        writeln!(out, "  beside native    {compared} results, {departed} beyond tolerance; inputs {inputs}")?;
        departures.iter().try_for_each(|departed| writeln!(out, "    {}", departed.text))
    }
}

impl Departed {
    fn of(difference: &Difference) -> Self {
        let Difference { place, output, device, what } = difference;
        let numbers = what.as_ref().ok();
        let said = what.as_ref().map_or_else(Clone::clone, ToString::to_string);
        let on = if *device > 0 { format!(" on device {device}") } else { String::new() };
        Self {
            program: place.program,
            operation: place.operation,
            kind: place.kind,
            name: place.name.clone(),
            loc: place.loc.clone(),
            result: *output,
            device: *device,
            pcc: numbers.map(|comparison| comparison.pcc),
            max_abs: numbers.map(|comparison| comparison.max_abs),
            of_range: numbers.map(tilework_engine::Comparison::of_range),
            text: format!("{place}: result {output}{on}: {said}"),
        }
    }
}

/// Writes what the first operation that departs has read and made.
pub fn save(evidence: &Evidence, folder: &Path) -> Outcome<()> {
    let write = |name: &str, tensor| tensors::array(tensor).write(&folder.join(format!("departure_{name}.npy")));
    for (index, input) in evidence.inputs.iter().enumerate() {
        write(&format!("in{index}"), input)?;
    }
    write("native", &evidence.native)?;
    write("chip", &evidence.found)
}

/// Whether [`save`] makes such names.
pub fn is_saved(name: &str) -> bool {
    let what = name.strip_prefix("departure_").and_then(|rest| rest.strip_suffix(".npy"));
    what.is_some_and(|what| match what.strip_prefix("in") {
        Some(index) => !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()),
        None => what == "native" || what == "chip",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_ops::{Shape, Tensor};

    #[test]
    fn what_departs_is_written_under_names_that_are_known() {
        let array = |value: f32| Tensor::new(Shape::new([1]).unwrap(), vec![value]).unwrap();
        let evidence = Evidence { inputs: vec![array(1.0), array(2.0)], native: array(3.0), found: array(4.0) };
        let folder = tempfile::tempdir().unwrap();
        save(&evidence, folder.path()).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let expected = ["chip", "in0", "in1", "native"].map(|name| format!("departure_{name}.npy"));
        assert_eq!(names, expected);
        assert!(names.iter().all(|name| is_saved(name)));
        assert!(!is_saved("departure_inx.npy") && !is_saved("departure_in0.txt") && !is_saved("departure_other.npy"));
    }
}
