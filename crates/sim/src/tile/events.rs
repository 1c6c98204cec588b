//! What happens in a tile at known cycles: packets that arrive and requests that leave.

use crate::noc::{Packet, Start};

/// Something that happens.
pub(super) enum Event {
    /// A packet's last flit arrives.
    Packet(Packet),
    /// A request of the tile's own leaves the NIU.
    Depart(u8, Start),
}
