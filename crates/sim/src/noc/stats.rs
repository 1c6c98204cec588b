//! Totals of traffic, for the report at the end of a run.

use super::{Body, Packet};

/// Traffic that was put on a NoC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct NocStats {
    /// Packets; a multicast counts once.
    pub packets: u64,
    /// Flits, headers included.
    pub flits: u64,
    /// Payload bytes.
    pub bytes: u64,
}

impl NocStats {
    /// One packet.
    #[inline]
    pub(crate) fn of(packet: &Packet) -> Self {
        let bytes = packet.body.payload_bytes();
        Self { packets: 1, flits: Body::flits_for(bytes), bytes }
    }
}

impl core::ops::AddAssign for NocStats {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.flits += other.flits;
        self.bytes += other.bytes;
    }
}

impl core::ops::Sub for NocStats {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { packets: self.packets - other.packets, flits: self.flits - other.flits, bytes: self.bytes - other.bytes }
    }
}
