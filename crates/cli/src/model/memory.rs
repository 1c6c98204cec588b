//! `tilework show --memory`: the memory that programs need on the chip over time.

use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tilework_abi::board::Board;
use tilework_engine::Rounding;
use tilework_model::{Contents, Model};
use tilework_onchip::{MemoryPlan, MemoryStep, memory_plan};
use tilework_runtime::DeviceConfig;
use tilework_text::plain;

/// Holders of a peak that are shown to people.
const HOLDERS: usize = 8;

/// The memory of all programs. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct Memory {
    board: &'static str,
    programs: Vec<ProgramMemory>,
}

#[derive(Serialize, Debug)]
struct ProgramMemory {
    program: usize,
    name: String,
    /// DRAM and L1 at their fullest.
    peaks: Vec<PeakMemory>,
    /// After each operation that takes or gives memory.
    steps: Vec<StepMemory>,
    /// The first tensor that does not fit, and who holds what then.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// Tensors that the device has no form for, which are in the host's memory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    on_host: BTreeMap<String, String>,
}

#[derive(Serialize, Debug)]
struct PeakMemory {
    memory: String,
    /// Bytes of each bank: those that can be allocated, and those that are.
    bank_bytes: u64,
    peak: u64,
    /// The operation; absent of the inputs alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<usize>,
    holders: Vec<Holder>,
}

#[derive(Serialize, Debug)]
struct Holder {
    tensor: String,
    bytes: u64,
}

#[derive(Serialize, Debug)]
struct StepMemory {
    operation: usize,
    kind: &'static str,
    dram: u64,
    l1: u64,
}

/// Plans the memory of a model's programs.
pub fn show(model: &Model, board: Board, file: &Path) -> Outcome<Answer> {
    let Contents::Ttnn(root) = &model.contents else {
        let is = format_args!(" is for TTNN programs (.ttnn); {} has none", file.display());
        return Err(Failure::option("--memory", is));
    };
    let config = DeviceConfig::new(board);
    let programs = root.programs.iter().enumerate();
    let plan = |program| memory_plan(&config, program, Rounding::Operations);
    let programs = programs.map(|(index, program)| ProgramMemory::of(index, &program.name, plan(program)));
    let memory = Memory { board: board.name(), programs: programs.collect() };
    Ok(Answer::new(memory, Memory::text))
}

impl ProgramMemory {
    fn of(program: usize, name: &str, plan: MemoryPlan) -> Self {
        let holder = |(tensor, bytes): (String, u64)| Holder { tensor, bytes };
        let peaks = plan.peaks.into_iter().map(|peak| PeakMemory {
            memory: peak.memory.to_string(),
            bank_bytes: peak.total,
            peak: peak.allocated,
            operation: peak.at,
            holders: peak.holders.into_iter().map(holder).collect(),
        });
        let step = |step: MemoryStep| {
            let MemoryStep { operation, kind, dram, l1 } = step;
            StepMemory { operation, kind: kind.name(), dram, l1 }
        };
        Self {
            program,
            name: name.to_owned(),
            peaks: peaks.collect(),
            steps: plan.steps.into_iter().map(step).collect(),
            refused: plan.refused,
            on_host: plan.on_host,
        }
    }
}

impl Memory {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "bytes of each DRAM bank and of each worker's L1 on a {}", self.board)?;
        self.programs.iter().try_for_each(|program| program.text(out))
    }
}

impl ProgramMemory {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "\nprogram {} {}", self.program, plain(&self.name))?;
        if !self.steps.is_empty() {
            writeln!(out, "  {:>5} {:<30} {:>12} {:>10}", "after", "kind", "DRAM", "L1")?;
        }
        for StepMemory { operation, kind, dram, l1 } in &self.steps {
            writeln!(out, "  {operation:>5} {kind:<30} {dram:>12} {l1:>10}")?;
        }
        for PeakMemory { memory, bank_bytes, peak, operation, holders } in &self.peaks {
            let at = operation.map_or_else(|| "the inputs".to_owned(), |index| format!("operation {index}"));
            writeln!(out, "  peak of {memory}: {peak} of {bank_bytes} bytes, with {at}")?;
            for Holder { tensor, bytes } in holders.iter().take(HOLDERS) {
                writeln!(out, "    {bytes:>12} {tensor}")?;
            }
            if holders.len() > HOLDERS {
                writeln!(out, "    and {} others", holders.len() - HOLDERS)?;
            }
        }
        for (tensor, why) in &self.on_host {
            writeln!(out, "  on the host: {tensor}: {why}")?;
        }
        self.refused.iter().try_for_each(|why| writeln!(out, "  does not fit: {why}"))
    }
}
