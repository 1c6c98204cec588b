//! Events of a tile at known cycles: packets that arrive and requests that leave.

use crate::noc::{Packet, Start};

/// An event of a tile.
#[derive(Clone)]
pub(super) enum Event {
    /// A packet's last flit arrives.
    Packet(Box<Packet>),
    /// A request of the tile leaves its NIU.
    Depart(u8, Box<Start>),
}
