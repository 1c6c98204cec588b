//! Events of a tile at known cycles: packets that arrive and requests that leave.

use crate::noc::{Leaving, Packet};

/// An event of a tile.
#[derive(Clone)]
pub(super) enum Event {
    /// A packet's last flit arrives.
    Packet(Box<Packet>),
    /// A request of the tile leaves the NIU of this NoC.
    Depart(u8, Leaving),
}
