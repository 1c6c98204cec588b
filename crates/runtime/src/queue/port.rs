//! The prefetch queue's entries, through a window onto the prefetch core.

use tilework_abi::addr::L1Addr;
use tilework_abi::convert::usize_of;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q, PREFETCH_Q_ENTRIES, PREFETCH_Q_ENTRY_SIZE};
use tilework_abi::noc::NocXy;
use tilework_cq::PrefetchPort;
use tilework_driver::{Card, DriverError, HostLink, Target};

/// Entries that one load brings: 64 bytes of them, as many as a host load takes in one round trip.
const CHUNK: u32 = 64 / PREFETCH_Q_ENTRY_SIZE;

/// The entries, for one look at them or one write. Those that a look has read are remembered: a
/// load over PCIe takes as long for one entry as for 32.
pub(super) struct Entries<'a, C> {
    card: &'a mut Card<C>,
    core: NocXy,
    /// The chunk that was read last, and its entries.
    chunk: Option<(u32, Vec<u8>)>,
}

impl<'a, C: HostLink> Entries<'a, C> {
    pub(super) fn new(card: &'a mut Card<C>, core: NocXy) -> Self {
        Self { card, core, chunk: None }
    }

    fn load(&mut self, chunk: u32) -> Result<&[u8], DriverError> {
        let fresh = match self.chunk.take() {
            Some(read) if read.0 == chunk => read,
            _ => {
                let entries = CHUNK.min(PREFETCH_Q_ENTRIES - chunk * CHUNK);
                let mut bytes = vec![0; usize_of(u64::from(entries * PREFETCH_Q_ENTRY_SIZE))];
                self.card.read(&Target::tile(self.core), entry_address(chunk * CHUNK), &mut bytes)?;
                (chunk, bytes)
            }
        };
        Ok(&self.chunk.insert(fresh).1)
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
