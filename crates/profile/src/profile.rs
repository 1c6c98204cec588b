//! The profile: what each kernel did, added up, with exact counts by instruction.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Activity, Kernel, Link, Listener, Place, Why, links_of};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_sim::{PacketEvent, PacketKind, PcCount, Request, RequestKind, Spot, Wants, Way};

/// A kernel of a role of a program, on one kind of core.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KernelKey {
    /// The program.
    pub program: Arc<str>,
    /// The role.
    pub role: Arc<str>,
    /// The core.
    pub core: Processor,
    /// The kernel.
    pub name: Arc<str>,
}

/// What an instruction took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CodeCounts {
    /// How often it was executed.
    pub executed: u64,
    /// Cycles until the next one.
    pub cycles: u64,
    /// Cycles in which its core waited there.
    pub waiting: u64,
}

/// What a kernel did on all of its cores together.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KernelTotals {
    /// How often cores started it.
    pub runs: u64,
    /// Cycles from start to end.
    pub cycles: u64,
    /// Cycles of them in which it waited, by reason.
    pub waiting: BTreeMap<&'static str, u64>,
    /// Instructions of its own code.
    pub instructions: u64,
    /// Requests that it started.
    pub requests: u64,
    /// Bytes that it asked for.
    pub read: u64,
    /// Bytes that it sent, counted once for each receiver.
    pub written: u64,
    /// Counts of its instructions by their offset in its text.
    pub code: BTreeMap<u32, CodeCounts>,
    /// Cycles, waiting cycles and instructions on each tile.
    pub tiles: BTreeMap<NocXy, [u64; 3]>,
}

/// What a DRAM bank, or the host, was asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BankTotals {
    /// Requests.
    pub requests: u64,
    /// Bytes read there.
    pub read: u64,
    /// Bytes written there.
    pub written: u64,
}

/// Adds up what a run does.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The kernels.
    pub kernels: BTreeMap<KernelKey, KernelTotals>,
    /// Instructions outside of kernels, by core and address.
    pub firmware: BTreeMap<(Processor, u32), CodeCounts>,
    /// DRAM banks and the host.
    pub banks: BTreeMap<Spot, BankTotals>,
    /// Cycles in which each link carried flits of unicasts.
    pub links: BTreeMap<Link, u64>,
    /// Flits of multicasts, whose trees are not among the links, by NoC.
    pub multicasts: [u64; 2],
    /// Kernels and waits that have not ended.
    open: BTreeMap<Place, (Arc<Kernel>, Cycle)>,
    waits: BTreeMap<Place, (Arc<Kernel>, Why, u32, Cycle)>,
    /// The launches that it has seen.
    pub launches: BTreeSet<u64>,
}

impl Profile {
    fn kernel(&mut self, place: Place, kernel: &Kernel) -> &mut KernelTotals {
        let Kernel { program, role, name, .. } = kernel;
        let key = KernelKey { program: program.clone(), role: role.clone(), core: place.core, name: name.clone() };
        self.kernels.entry(key).or_default()
    }

    fn starts(&mut self, at: Cycle, place: Place, kernel: &Arc<Kernel>) {
        self.kernel(place, kernel).runs += 1;
        self.launches.extend(kernel.launch);
        self.open.insert(place, (kernel.clone(), at));
    }

    fn ends(&mut self, at: Cycle, place: Place, kernel: &Kernel, since: Cycle) {
        self.open.remove(&place);
        let totals = self.kernel(place, kernel);
        let cycles = at.saturating_sub(since);
        totals.cycles += cycles;
        totals.tiles.entry(place.tile).or_default()[0] += cycles;
    }

    fn waited(&mut self, at: Cycle, place: Place, kernel: &Kernel, why: &Why, pc: u32, since: Cycle) {
        self.waits.remove(&place);
        let totals = self.kernel(place, kernel);
        let cycles = at.saturating_sub(since);
        *totals.waiting.entry(why.kind).or_default() += cycles;
        totals.tiles.entry(place.tile).or_default()[1] += cycles;
        let counts = match kernel.text.contains(&pc) {
            true => totals.code.entry(pc - kernel.text.start).or_default(),
            false => self.firmware.entry((place.core, pc)).or_default(),
        };
        counts.waiting += cycles;
    }

    fn counted(&mut self, place: Place, kernel: Option<&Arc<Kernel>>, counts: &[PcCount]) {
        for count in counts {
            let entry = match kernel.filter(|kernel| kernel.text.contains(&count.pc)) {
                Some(kernel) => {
                    let totals = self.kernel(place, kernel);
                    totals.instructions += count.executed;
                    totals.tiles.entry(place.tile).or_default()[2] += count.executed;
                    totals.code.entry(count.pc - kernel.text.start).or_default()
                }
                None => self.firmware.entry((place.core, count.pc)).or_default(),
            };
            entry.executed += count.executed;
            entry.cycles += count.cycles;
        }
    }

    fn request(&mut self, place: Place, kernel: Option<&Arc<Kernel>>, request: &Request) {
        let Some(kernel) = kernel else { return };
        let totals = self.kernel(place, kernel);
        totals.requests += 1;
        match request.kind {
            RequestKind::Read => totals.read += request.len,
            _ => totals.written += request.len.saturating_mul(request.receivers.max(1).into()),
        }
    }

    fn packet(&mut self, spot: Spot, noc: u8, leaves: bool, packet: &PacketEvent) {
        if leaves {
            match packet.way.map(Way::ends) {
                Some([from, to]) => links_of(noc, from, to).for_each(|link| {
                    *self.links.entry(link).or_default() += u64::from(packet.flits);
                }),
                None => self.multicasts[usize::from(noc & 1)] += u64::from(packet.flits),
            }
        } else if matches!(spot, Spot::Dram(_) | Spot::Pcie) {
            let (read, written) = match packet.kind {
                PacketKind::ReadRequest => (packet.len, 0),
                PacketKind::WriteRequest | PacketKind::AtomicRequest => (0, packet.len),
                _ => return,
            };
            let bank = self.banks.entry(spot).or_default();
            bank.requests += 1;
            bank.read += u64::from(read);
            bank.written += u64::from(written);
        }
    }

    /// Ends what has not ended, at the end of the run.
    pub fn finish(&mut self, at: Cycle) {
        for (place, (kernel, why, pc, since)) in std::mem::take(&mut self.waits) {
            self.waited(at, place, &kernel, &why, pc, since);
        }
        for (place, (kernel, since)) in std::mem::take(&mut self.open) {
            self.ends(at, place, &kernel, since);
        }
    }
}

impl Listener for Profile {
    fn wants(&self) -> Wants {
        Wants::COUNTS
    }

    fn hear(&mut self, at: Cycle, activity: &Activity<'_>) {
        match *activity {
            Activity::KernelStarts(place, kernel) => self.starts(at, place, kernel),
            Activity::KernelEnds(place, kernel, since) => self.ends(at, place, kernel, since),
            Activity::WaitStarts(place, kernel, why, pc) => {
                self.waits.insert(place, (kernel.clone(), why.clone(), pc, at));
            }
            Activity::WaitEnds(place, kernel, why, pc, since) => self.waited(at, place, kernel, why, pc, since),
            Activity::Counted(place, kernel, counts) => self.counted(place, kernel, counts),
            Activity::RequestStarts(place, kernel, request) => self.request(place, kernel, request),
            Activity::Packet(spot, noc, leaves, packet) => self.packet(spot, noc, leaves, packet),
            _ => {}
        }
    }
}
