//! What a program has on a board, for people.

use super::overview::{CircularBufferView, KernelView, ProgramOverview, RangeView, RoleView, StepView};
use crate::array::shape_text;
use std::io::{Result, Write};

/// Cores whose arguments are listed one by one.
const LISTED: usize = 4;

impl ProgramOverview {
    /// The whole overview.
    pub fn text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{} on a {}: {}", self.program, self.board, self.counts())?;
        for b in &self.buffers {
            let memory = match b.location {
                "dram" => "DRAM",
                "l1-interleaved" => "L1 of all workers",
                "l1-sharded" => "L1, sharded",
                _ => "L1",
            };
            let shape = shape_text(&b.shape);
            let (name, pages, page_size) = (&b.name, b.pages, b.page_size);
            writeln!(out, "  {} {name} {} {shape}: {pages} x {page_size} bytes in {memory}", b.r#use, b.dtype)?;
        }
        for CircularBufferView { index, name, pages, page_size, .. } in &self.circular_buffers {
            let name = name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
            writeln!(out, "  circular buffer {index}{name}: {pages} x {page_size} bytes")?;
        }
        if self.semaphores > 0 {
            writeln!(out, "  {} semaphores", self.semaphores)?;
        }
        if self.launches > 1 {
            writeln!(out, "  {} launches; arguments of the first:", self.launches)?;
        }
        if !self.queue.is_empty() {
            let two = self.queue.iter().any(|step| step.queue > Some(0));
            let text = |step: &StepView| match step.queue.filter(|_| two) {
                Some(queue) => format!("{} on queue {queue}", step.text()),
                None => step.text(),
            };
            let steps: Vec<String> = self.queue.iter().map(text).collect();
            writeln!(out, "  steps: {}", steps.join(", "))?;
        }
        for role in &self.roles {
            self.role(role, out)?;
        }
        for common in &self.common_arguments {
            writeln!(out, "  common arguments of {}: {}", common.set, words(&common.arguments))?;
        }
        table(out, "DRAM, each bank", &self.dram)?;
        table(out, "L1 of each core", &self.l1)
    }

    fn role(&self, role: &RoleView, out: &mut dyn Write) -> Result<()> {
        let kernels: Vec<String> = role.kernels.iter().map(|k| format!("{} {}", k.core, k.elf)).collect();
        writeln!(out, "  role {} on {} cores: {}", role.name, role.cores.len(), kernels.join(", "))?;
        for KernelView { core, arguments, .. } in &role.kernels {
            let all_alike = arguments.windows(2).all(|pair| pair[0] == pair[1]);
            let Some(first) = arguments.first().filter(|first| !first.is_empty()) else { continue };
            if all_alike {
                writeln!(out, "    arguments of {core}: {}", words(first))?;
                continue;
            }
            for (at, list) in role.cores.iter().zip(arguments).take(LISTED) {
                writeln!(out, "    arguments of {core} on ({}, {}): {}", at.x, at.y, words(list))?;
            }
            if let Some(more) = arguments.len().checked_sub(LISTED).filter(|more| *more > 0) {
                writeln!(out, "    and on {more} more cores (--report json has them)")?;
            }
        }
        Ok(())
    }
}

impl StepView {
    /// The step in few words.
    fn text(&self) -> String {
        let Self { action, name, buffer, launches, times, .. } = self;
        match buffer {
            Some(buffer) if buffer != name && *action == "write" => format!("write {buffer} from {name}"),
            Some(buffer) if buffer != name => format!("{action} {buffer} as {name}"),
            _ if !launches.is_empty() => format!("trace {name} of {}", launches.join(" and ")),
            _ => match times {
                Some(times) if *times > 1 => format!("{action} {name} {times} times"),
                _ => format!("{action} {name}"),
            },
        }
    }
}

/// Arguments: small ones as people count, addresses and the like in hexadecimal.
fn words(list: &[u32]) -> String {
    let word = |&word: &u32| if word < 0x1000 { word.to_string() } else { format!("{word:#x}") };
    list.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn table(out: &mut dyn Write, title: &str, rows: &[RangeView]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{title}\n        from          to     bytes")?;
    for RangeView { start, end, what } in rows {
        writeln!(out, "  {start:#010x}  {end:#010x}  {:>8}  {what}", end - start)?;
    }
    Ok(())
}
