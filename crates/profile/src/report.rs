//! The profile as data: JSON and CSV.

use serde::Serialize;

use crate::Profile;
use crate::profile::KernelTotals;

/// A profile.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProfileReport {
    /// Cycles from power-on to the end of the run.
    pub cycles: u64,
    /// Kernels, by program, role and core.
    pub kernels: Vec<KernelReport>,
    /// DRAM banks and the host.
    pub memory: Vec<BankReport>,
    /// Links of the NoCs that carried something, the busiest first.
    pub links: Vec<LinkReport>,
    /// Flits of multicasts by NoC, which are not among those of the links.
    pub multicast_flits: [u64; 2],
    /// Instructions of firmware and of other code that is no kernel.
    pub firmware_instructions: u64,
}

/// A kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelReport {
    /// The program.
    pub program: String,
    /// The role.
    pub role: String,
    /// brisc, ncrisc, trisc0, trisc1 or trisc2.
    pub core: String,
    /// The kernel.
    pub kernel: String,
    /// How often cores started it.
    pub runs: u64,
    /// Cycles from start to end, of all cores together.
    pub cycles: u64,
    /// Cycles of them in which it waited.
    pub waiting: u64,
    /// The same by reason, the longest first.
    pub waits: Vec<WaitReport>,
    /// Instructions of its own code.
    pub instructions: u64,
    /// Requests.
    pub requests: u64,
    /// Bytes asked for.
    pub read_bytes: u64,
    /// Bytes sent, once for each receiver.
    pub written_bytes: u64,
    /// What it did on each tile.
    pub tiles: Vec<CoreReport>,
}

/// Waiting for one kind of reason.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WaitReport {
    /// The kind.
    pub reason: &'static str,
    /// Cycles.
    pub cycles: u64,
}

/// A kernel on one tile.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CoreReport {
    /// Column.
    pub x: u8,
    /// Row.
    pub y: u8,
    /// Cycles from start to end.
    pub cycles: u64,
    /// Cycles of them in which it waited.
    pub waiting: u64,
    /// Instructions.
    pub instructions: u64,
}

/// A DRAM bank, or the host.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BankReport {
    /// Which.
    pub memory: String,
    /// Requests.
    pub requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A link.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinkReport {
    /// The NoC.
    pub noc: u8,
    /// Physical column of the router that it leads away from.
    pub x: u8,
    /// Physical row.
    pub y: u8,
    /// up, down, left or right.
    pub direction: &'static str,
    /// Cycles in which it carried a flit.
    pub busy: u64,
}

impl Profile {
    /// The profile as data, of a run that ended at a cycle ([`Profile::finish`]).
    pub fn report(&self, cycles: u64) -> ProfileReport {
        let kernels = self.kernels.iter().map(|(key, totals)| {
            let names = [&key.program, &key.role, &key.name].map(|name| name.to_string());
            kernel_report(names, key.core.name().to_lowercase(), totals)
        });
        let memory = self.banks.iter().map(|(spot, bank)| BankReport {
            memory: spot.to_string(),
            requests: bank.requests,
            read_bytes: bank.read,
            written_bytes: bank.written,
        });
        let mut links: Vec<LinkReport> = self
            .links
            .iter()
            .map(|(link, &busy)| LinkReport { noc: link.noc, x: link.x, y: link.y, direction: link.direction(), busy })
            .collect();
        links.sort_by_key(|link| std::cmp::Reverse(link.busy));
        ProfileReport {
            cycles,
            kernels: kernels.collect(),
            memory: memory.collect(),
            links,
            multicast_flits: self.multicasts,
            firmware_instructions: self.firmware.values().map(|counts| counts.executed).sum(),
        }
    }
}

fn kernel_report([program, role, kernel]: [String; 3], core: String, totals: &KernelTotals) -> KernelReport {
    let mut waits: Vec<WaitReport> =
        totals.waiting.iter().map(|(&reason, &cycles)| WaitReport { reason, cycles }).collect();
    waits.sort_by_key(|wait| std::cmp::Reverse(wait.cycles));
    let tiles = totals.tiles.iter().map(|(tile, &[cycles, waiting, instructions])| CoreReport {
        x: tile.x,
        y: tile.y,
        cycles,
        waiting,
        instructions,
    });
    KernelReport {
        program,
        role,
        core,
        kernel,
        runs: totals.runs,
        cycles: totals.cycles,
        waiting: totals.waiting.values().sum(),
        waits,
        instructions: totals.instructions,
        requests: totals.requests,
        read_bytes: totals.read,
        written_bytes: totals.written,
        tiles: tiles.collect(),
    }
}

impl ProfileReport {
    /// A line for each kernel on each tile, with a heading; names are quoted.
    pub fn csv(&self) -> String {
        let mut out = String::from("program,role,core,kernel,x,y,cycles,waiting,instructions\n");
        let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
        for kernel in &self.kernels {
            let names = [&kernel.program, &kernel.role, &kernel.core, &kernel.kernel].map(|name| quoted(name));
            for tile in &kernel.tiles {
                let CoreReport { x, y, cycles, waiting, instructions } = tile;
                out += &format!("{},{x},{y},{cycles},{waiting},{instructions}\n", names.join(","));
            }
        }
        out
    }
}
