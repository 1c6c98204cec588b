//! What the chip itself knows to be wrong, or nearly: each is an event of its own, and rare.

use crate::catalogue::{Row, protocol};
use crate::finding::Agent;
use crate::shadow::observer::CheckObserver;
use crate::shadow::report::Actor;
use crate::shadow::tile::Tile;
use tilework_abi::L1_ALIGN;
use tilework_abi::tensix::Processor;
use tilework_sim::{RequestKind, Spot, What};

/// A core, or the NIU of a NoC.
#[derive(Clone, Copy)]
pub(crate) enum By {
    /// This core, at the actor's instruction.
    Core(Processor),
    /// The NIU, for a request of some core.
    Niu(u8),
}

impl CheckObserver {
    /// An event that is a mistake by itself, if a kernel does it.
    #[cold]
    pub(crate) fn rare(&mut self, tile: &mut Tile, by: By, actor: Actor, what: &What) {
        if let What::Wrapped { addr, value, added } = *what {
            return self.wrapped(tile, by, actor, addr, (value, added));
        }
        let By::Core(core) = by else { return };
        let (row, what): (&'static Row, String) = match what {
            // Also behind the kernel's text, where a kernel may have stored code.
            What::StaleCode if tile.launch.is_some() => (
                &protocol::MISSING_FENCE_I,
                "executes what was written since the core last emptied its instruction cache".into(),
            ),
            What::PostLost { semaphore } if tile.in_kernel(core, actor) => {
                (&protocol::SEM_OVERFLOW, format!("posts semaphore {semaphore} of the coprocessor, which is at 15"))
            }
            What::Misaligned(words) if tile.in_kernel(core, actor) => (&protocol::NOC_MISALIGNED, words.to_string()),
            _ => return,
        };
        self.reports.report(row, actor, None, || (what, None));
    }

    /// A semaphore of the program is counted past its width.
    fn wrapped(&mut self, tile: &mut Tile, by: By, actor: Actor, addr: u32, (value, added): (u32, u32)) {
        let actor = match by {
            By::Core(core) if tile.in_kernel(core, actor) => actor,
            By::Core(_) => return,
            By::Niu(noc) => match self.in_flight.atomic(tile.xy, noc, addr) {
                Some(issued) => issued.actor.by(Agent::NocAtomic(noc)),
                None => return,
            },
        };
        let Some(launch) = &tile.launch else { return };
        let end = launch.semaphores.saturating_add(L1_ALIGN.saturating_mul(launch.semaphore_count));
        if !(launch.semaphores..end).contains(&addr) {
            return;
        }
        let number = (addr - launch.semaphores) / L1_ALIGN;
        let xy = tile.xy;
        self.reports.report(&protocol::SEM_OVERFLOW, actor, None, || {
            let change = match added.cast_signed() {
                less if less < 0 => format!("takes {} from", less.unsigned_abs()),
                _ => format!("adds {added} to"),
            };
            (format!("{change} semaphore {number} of {xy}, which is {value}"), None)
        });
    }
}

impl super::InFlight {
    /// The first request that is an atomic of NoC `noc` on the word at `addr` of a tile.
    fn atomic(&self, tile: tilework_abi::noc::NocXy, noc: u8, addr: u32) -> Option<&super::Issued> {
        let is_it = |issued: &&super::Issued| {
            let request = &issued.request;
            request.kind == RequestKind::Atomic
                && request.noc == noc
                && request.remote == Spot::Tensix(tile)
                && request.remote_addr & !0xF == u64::from(addr) & !0xF
        };
        // By number: the order of the map is no order.
        self.requests
            .iter()
            .flatten()
            .map(|(_, issued, _)| &**issued)
            .filter(is_it)
            .min_by_key(|issued| issued.request.id)
    }
}
