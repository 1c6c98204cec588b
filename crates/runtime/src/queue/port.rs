//! The prefetch queue's entries, through a window onto the prefetch core.

use tilework_abi::addr::L1Addr;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q, PREFETCH_Q_ENTRIES, PREFETCH_Q_ENTRY_SIZE};
use tilework_abi::noc::NocXy;
use tilework_cq::PrefetchPort;
use tilework_driver::{Card, DriverError, HostLink, Target};

/// Entries that one load brings: 64 bytes of them, as many as a host load takes in one round trip.
const CHUNK: u32 = 64 / PREFETCH_Q_ENTRY_SIZE;
const CHUNK_BYTES: usize = (CHUNK * PREFETCH_Q_ENTRY_SIZE) as usize;

/// The entries, for one look at them or one write. Those that a look has read are remembered: a
/// load over PCIe takes as long for one entry as for 32.
pub(super) struct Entries<'a, C> {
    card: &'a mut Card<C>,
    core: NocXy,
    /// The chunk that was read last, and its entries.
    chunk: Option<u32>,
    bytes: [u8; CHUNK_BYTES],
}

impl<'a, C: HostLink> Entries<'a, C> {
    pub(super) fn new(card: &'a mut Card<C>, core: NocXy) -> Self {
        Self { card, core, chunk: None, bytes: [0; CHUNK_BYTES] }
    }

    fn load(&mut self, chunk: u32) -> Result<&[u8], DriverError> {
        if self.chunk != Some(chunk) {
            let entries = CHUNK.min(PREFETCH_Q_ENTRIES - chunk * CHUNK);
            let bytes = &mut self.bytes[..(entries * PREFETCH_Q_ENTRY_SIZE) as usize];
            self.chunk = None;
            self.card.read(&Target::tile(self.core), entry_address(chunk * CHUNK), bytes)?;
            self.chunk = Some(chunk);
        }
        Ok(&self.bytes)
    }
}

/// Where entry `index` of the prefetch queue lies in the prefetch core's L1.
fn entry_address(index: u32) -> L1Addr {
    PREFETCH_Q.base().offset(index * PREFETCH_Q_ENTRY_SIZE)
}

impl<C: HostLink> PrefetchPort for Entries<'_, C> {
    type Error = DriverError;

    fn read_slot(&mut self, index: u32) -> Result<u16, DriverError> {
        let at = (index % CHUNK * PREFETCH_Q_ENTRY_SIZE) as usize;
        let bytes = self.load(index / CHUNK)?;
        Ok(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
    }
    fn write_slot(&mut self, index: u32, entry: u16) -> Result<(), DriverError> {
        self.card.write(&Target::tile(self.core), entry_address(index), &entry.to_le_bytes())
    }
}
