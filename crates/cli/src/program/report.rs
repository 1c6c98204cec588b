//! The report of a kernel program's run.

use super::execute::StepReport;
use super::findings::ChecksReport;
use super::prints::PrintsReport;
use crate::array::shape_text;
use crate::bundle;
use crate::output::OutputFile;
use serde::Serialize;
use std::collections::BTreeMap;
use tilework_abi::board::AICLK_MHZ;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_runtime::CacheCounts;

/// What the cycle counts are worth. Every report carries it (design decision 5).
pub const TIMING_MODEL: &str = "modelled: instruction, L1, NoC, DRAM and PCIe latency and bandwidth as in docs/timing.md; \
                                cycle counts are estimates, results are exact";

/// The same for the chip of a library.
pub const LIBRARY_TIMING: &str = "the library's: its documents say what its cycle counts are worth; results are exact";

/// The same for a card.
pub const CARD_TIMING: &str = "the card's: cycles are those of its own counters, at whatever clock it had";

/// The report of a run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct KernelReport {
    /// The program's name.
    pub program: String,
    /// The board.
    pub board: &'static str,
    /// Which chip ran: built-in, libttsim and the library's file, or tt-kmd and the card's. What
    /// only the built-in chip can tell is null for others.
    pub chip: String,
    /// fast or slow.
    pub dispatch: &'static str,
    /// The dispatch layout; null with slow dispatch.
    pub dispatch_layout: Option<&'static str>,
    /// The folder of the worker firmware; prebuilt for our own.
    pub firmware: String,
    /// The folder of the queue's kernels; absent for our own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cq_firmware: Option<String>,
    /// AI clock cycles from the moment the host hands the program over until it knows that the
    /// program is done.
    pub cycles: Option<u64>,
    /// The same in seconds of the chip.
    pub simulated_seconds: Option<f64>,
    /// Seconds of this machine for the same span.
    pub host_seconds: f64,
    /// Cycles between the device's own time stamps before the first launch and after the last,
    /// where it took them.
    pub program_cycles: Option<u64>,
    /// The same of each launch, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launch_cycles: Vec<Option<u64>>,
    /// Instructions that cores executed in the span.
    pub instructions: Option<u64>,
    /// Instructions of polling loops that were accounted for without executing them. A core's are
    /// counted when it wakes, so that those of its wait before the program are among them.
    pub skipped_instructions: Option<u64>,
    /// Million executed instructions per second of this machine.
    pub mips: Option<f64>,
    /// Launches.
    pub programs: u64,
    /// Dispatch commands sent; 0 with slow dispatch.
    pub commands: u64,
    /// Records of the command queue, and their bytes.
    pub records: u64,
    pub record_bytes: u64,
    /// What was found of programs and kernel text; null where programs are not cached.
    pub cache: Option<CacheReport>,
    /// Bytes over PCIe in both directions.
    pub pcie_bytes: Option<u64>,
    /// Bytes that packets carried over both NoCs.
    pub noc_bytes: Option<u64>,
    /// Tiles that may run programs.
    pub workers: usize,
    /// Workers that ran kernels.
    pub cores: usize,
    /// What became of each step, of a program that has some.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<StepReport>,
    /// Kernel time of each core, when measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_timing: Option<Vec<CoreTime>>,
    /// The whole session: start of the board, transfers of arrays, the program. The counts above
    /// are the program's alone.
    pub session: SessionCounts,
    /// What was found; absent where nothing was looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<ChecksReport>,
    /// The bundle of the run, if one was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// What kernels printed.
    #[serde(skip_serializing_if = "PrintsReport::is_empty")]
    pub prints: PrintsReport,
    /// The output arrays by name.
    pub outputs: BTreeMap<String, OutputFile>,
    /// What the cycle counts are worth.
    pub timing_model: &'static str,
}

/// What was found of programs and kernel text, of those that a run needed.
#[derive(Serialize, Debug)]
pub struct CacheReport {
    /// Launches whose commands were there already.
    pub programs_found: u64,
    /// Launches whose commands were made.
    pub programs_compiled: u64,
    /// Programs that made room for others.
    pub evictions: u64,
    /// Launches whose kernel text was on all of their workers.
    pub text_found: u64,
    /// Launches that sent kernel text.
    pub text_sent: u64,
    /// Those of them that sent it from DRAM.
    pub text_from_dram: u64,
}

impl CacheReport {
    /// The counts of a run, which has at least one launch; none without a cache.
    pub fn of(counts: &CacheCounts) -> Option<Self> {
        let CacheCounts { hits, misses, evictions, text_sent, text_resident, text_from_dram } = *counts;
        let used = hits + misses > 0;
        used.then_some(Self {
            programs_found: hits,
            programs_compiled: misses,
            evictions,
            text_found: text_resident,
            text_sent,
            text_from_dram,
        })
    }

    fn text(&self) -> String {
        let [found, compiled] = [self.programs_found, self.programs_compiled].map(grouped);
        let [resident, sent] = [self.text_found, self.text_sent].map(grouped);
        let left = match self.evictions {
            0 => String::new(),
            n => format!(", {} evicted", grouped(n)),
        };
        let dram = match self.text_from_dram {
            0 => String::new(),
            n => format!(" ({} from DRAM)", grouped(n)),
        };
        format!(
            "  launches: {compiled} compiled, {found} found in the program cache{left}; kernel text sent for \
             {sent}{dram}, found on the workers for {resident}\n"
        )
    }
}

/// Counts from the start of the board to the last output.
#[derive(Serialize, Debug)]
pub struct SessionCounts {
    /// AI clock cycles.
    pub cycles: Option<u64>,
    /// Seconds of this machine, reading and checking of files included.
    pub host_seconds: f64,
    /// Instructions that cores executed.
    pub instructions: Option<u64>,
    /// Bytes over PCIe in both directions.
    pub pcie_bytes: Option<u64>,
    /// Bytes that packets carried over both NoCs.
    pub noc_bytes: Option<u64>,
}

/// When a core's BRISC kernel ran.
#[derive(Serialize, Debug)]
pub struct CoreTime {
    /// The launch, from 0.
    pub launch: usize,
    /// Column.
    pub x: u8,
    /// Row.
    pub y: u8,
    /// The core whose clock it is: BRISC, which waits for the kernels of the others.
    pub core: &'static str,
    /// First cycle.
    pub start: u64,
    /// Last cycle.
    pub end: u64,
    /// The core's role.
    pub role: String,
}

impl KernelReport {
    /// Seconds of the chip for a number of cycles.
    pub fn seconds(cycles: u64) -> f64 {
        cycles as f64 / (f64::from(AICLK_MHZ) * 1e6)
    }

    /// The form for people.
    pub fn text(&self) -> String {
        let plural = if self.cores == 1 { "core" } else { "cores" };
        let firmware = match self.firmware.as_str() {
            "prebuilt" => String::new(),
            folder => format!(", firmware of {folder}"),
        };
        let queue = self.cq_firmware.as_ref().map_or(String::new(), |folder| format!(", queue of {folder}"));
        let layout = match self.dispatch_layout {
            Some(name) if name != DispatchLayout::default().name() => format!(" ({name})"),
            _ => String::new(),
        };
        let chip = if self.chip == BUILT_IN { String::new() } else { format!(" ({})", self.chip) };
        let mut out = format!(
            "{} on a {}{chip}, {} dispatch{layout}{firmware}{queue}, {} {plural}\n",
            self.program, self.board, self.dispatch, self.cores
        );
        out += &self.counts_text().unwrap_or_else(|| self.outside_text());
        if let Some(cache) = &self.cache {
            out += &cache.text();
        }
        if let Some(times) = &self.core_timing {
            out += &core_timing_text(times);
        }
        out += &self.steps_text();
        out += &format!("  {}\n", self.timing_model);
        for (name, output) in &self.outputs {
            let shape = shape_text(&output.shape);
            out += &format!("  {name} -> {} {} {shape} sha256 {}\n", output.file, output.dtype, &output.sha256[..16]);
        }
        out += self.checks.as_ref().map_or("", ChecksReport::text);
        if let Some(file) = &self.bundle {
            out += &format!("{}\n", bundle::told(file.as_ref()));
        }
        out
    }
}

/// The name of the simulated chip that is a part of this command.
pub const BUILT_IN: &str = "built-in";

impl KernelReport {
    /// What the built-in chip counted; nothing for one that cannot be looked into.
    fn counts_text(&self) -> Option<String> {
        let mut out = format!(
            "  {} cycles = {} simulated, {} host time{}\n",
            grouped(self.cycles?),
            duration(self.simulated_seconds?),
            duration(self.host_seconds),
            slowdown(self.simulated_seconds?, self.host_seconds),
        );
        out += &format!(
            "  {} instructions, {:.1} MIPS ({} more skipped in polling loops of cores that woke)\n",
            grouped(self.instructions?),
            self.mips?,
            grouped(self.skipped_instructions?)
        );
        out += &format!(
            "  {} over PCIe, {} over the NoC, {}\n",
            size(self.pcie_bytes?),
            size(self.noc_bytes?),
            self.commands_text()
        );
        out += &format!(
            "  with start of the board and transfers: {} cycles, {} host time, {} over PCIe\n",
            grouped(self.session.cycles?),
            duration(self.session.host_seconds),
            size(self.session.pcie_bytes?)
        );
        Some(out)
    }

    fn commands_text(&self) -> String {
        let commands = grouped(self.commands);
        match self.records {
            0 => format!("{commands} commands"),
            records => format!("{commands} commands in {} records of {}", grouped(records), size(self.record_bytes)),
        }
    }

    /// When reads and events came: other steps end when the queue has taken them.
    fn steps_text(&self) -> String {
        let mut out = String::new();
        let last = self.queue.last().map(|step| grouped(step.returned));
        if let Some(last) = last {
            out += &format!("  {} steps, the last of which returned at cycle {last}\n", self.queue.len());
        }
        let two = self.queue.iter().any(|step| step.queue > Some(0));
        for step in &self.queue {
            let on = step.queue.filter(|_| two).map(|queue| format!(" on queue {queue}")).unwrap_or_default();
            if let Some((programs, bytes)) = step.programs.zip(step.bytes) {
                let (programs, bytes, name) = (grouped(programs as u64), grouped(bytes as u64), &step.name);
                out += &format!("    trace {name}{on}: {programs} programs, {bytes} bytes of commands\n");
            }
            let Some(noticed) = step.noticed else { continue };
            let of = match &step.buffer {
                Some(buffer) if *buffer != step.name => format!(" of {buffer}"),
                _ => String::new(),
            };
            let (returned, noticed) = (grouped(step.returned), grouped(noticed));
            let (action, name) = (step.action, &step.name);
            out += &format!("    {action} {name}{of}{on}: enqueued at cycle {returned}, noticed at {noticed}\n");
        }
        out
    }

    /// What is known of a run on a chip that cannot be looked into.
    fn outside_text(&self) -> String {
        let mut out = format!("  {} host time, {}\n", duration(self.host_seconds), self.commands_text());
        if let Some(cycles) = self.cycles {
            out += &format!("  {} cycles of the run by the device's own counter\n", grouped(cycles));
        }
        if let Some(cycles) = self.program_cycles {
            out += &format!("  {} cycles of the program by the device's own time stamps\n", grouped(cycles));
        }
        let unknown = if self.cycles.is_none() { "cycles of the run, instructions" } else { "instructions" };
        out += &format!(
            "  with start of the board and transfers: {} host time\n  {unknown} and bytes are not known: this chip \
             cannot be looked into\n",
            duration(self.session.host_seconds)
        );
        out
    }
}

fn core_timing_text(times: &[CoreTime]) -> String {
    let duration = |t: &&CoreTime| t.end.saturating_sub(t.start);
    let (Some(first), Some(shortest), Some(longest)) =
        (times.iter().map(|t| t.start).min(), times.iter().min_by_key(duration), times.iter().max_by_key(duration))
    else {
        return String::new();
    };
    let one = |t: &CoreTime| format!("{} cycles on ({}, {})", grouped(t.end.saturating_sub(t.start)), t.x, t.y);
    let mut out = format!(
        "  BRISC of {} tiles, from the go message to the end of all kernels of its tile: shortest {}, longest {}\n",
        times.len(),
        one(shortest),
        one(longest)
    );
    let several = times.iter().any(|t| t.launch > 0);
    for t in times {
        let (start, end) = (t.start.saturating_sub(first), t.end.saturating_sub(first));
        let launch = if several { format!("  launch {}", t.launch) } else { String::new() };
        let (start, end) = (grouped(start), grouped(end));
        out += &format!("    ({:>2}, {:>2})  {start:>12} .. {end:>12}  {}{launch}\n", t.x, t.y, t.role);
    }
    out
}

fn slowdown(simulated: f64, host: f64) -> String {
    if simulated > 0.0 { format!(" ({:.0} times slower than the chip)", host / simulated) } else { String::new() }
}

/// Digits in groups of three.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.2} us", s * 1e6),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 10 << 20 => format!("{:.1} MiB", b as f64 / f64::from(1 << 20)),
        b if b >= 10 << 10 => format!("{:.1} KiB", b as f64 / f64::from(1 << 10)),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1 000");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(duration(0.0125), "12.50 ms");
        assert_eq!(duration(0.00002), "20.00 us");
        assert_eq!(size(153_600), "150.0 KiB");
        assert_eq!(size(64), "64 bytes");
    }

    #[test]
    fn simulated_time_follows_the_clock() {
        assert!((KernelReport::seconds(1_350_000_000) - 1.0).abs() < 1e-12);
    }
}
