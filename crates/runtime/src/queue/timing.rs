//! What the host's side of the command queue costs, in cycles of the AI clock (docs/timing.md).
//!
//! The host computes in no time unless a profile says otherwise ([`HostCost`]): chip time moves in
//! the host's accesses and waits.

use tilework_abi::addr::Cycle;

/// Enqueueing under `HostCost::None`, the usual profile: the host's computation takes no time.
pub const ENQUEUE_NONE: Cycle = 0;
/// Enqueueing under `HostCost::Tilework`: 3.7 us, measured for our own runtime: a program on 118
/// workers with 16 arguments that is found in the cache (`--example enqueue`, docs/protocol.md).
pub const ENQUEUE_TILEWORK: Cycle = 4_995;
/// Enqueueing under `HostCost::TtMetal`: 15.2 us, tt-metal's golden for a program (docs/sources.md,
/// figures).
pub const ENQUEUE_TT_METAL: Cycle = 20_520;
/// Between two looks of a host at a word of the device, for room in the queue for instance: 1.5 us
/// (estimate: two round trips over PCIe, so that looking does not hinder).
pub const LOOK_AGAIN: Cycle = 2_000;
/// Between two reports of progress of a waiting host: a quarter of a second of a machine on which
/// all cores of a board are busy. It changes no result.
pub const PROGRESS: Cycle = 200_000;

/// What one call that enqueues costs the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HostCost {
    /// Nothing.
    #[default]
    None,
    /// What our own runtime costs.
    Tilework,
    /// What tt-metal's runtime costs.
    TtMetal,
}

impl HostCost {
    /// Cycles of one call.
    pub const fn cycles(self) -> Cycle {
        match self {
            Self::None => ENQUEUE_NONE,
            Self::Tilework => ENQUEUE_TILEWORK,
            Self::TtMetal => ENQUEUE_TT_METAL,
        }
    }
}
