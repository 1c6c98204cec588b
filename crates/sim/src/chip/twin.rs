//! Twins: a second chip in the state of the first, for those who go back in time.

use super::Chip;
use super::node::tiles_mut;
use crate::probe::Observer;

impl Chip {
    /// A chip in the same state as this one, with all that is under way, or none if the memory of
    /// its host is that of another program ([`Chip::attach_host_bus`]), which cannot be kept. It
    /// does from now on what this one does, cycle by cycle. `observers` take the place of this
    /// one's and want what those want.
    ///
    /// It costs a look at all memory, and memory for what has been written of L1 and of the host's;
    /// pages of DRAM are shared until one of the chips writes to them.
    pub fn twin(&self, observers: Vec<Box<dyn Observer>>) -> Option<Self> {
        if self.pcie().has_foreign_memory() {
            return None;
        }
        let mut nodes = self.nodes.clone();
        // The new observers know nothing of what the others knew.
        for tile in tiles_mut(&mut nodes) {
            tile.forget_known(self.now());
        }
        Some(Self {
            config: self.config,
            nodes,
            pcie: self.pcie,
            scheduler: self.scheduler.twin(),
            host: self.host,
            fault: self.fault.clone(),
            grid: self.grid.clone(),
            ended: self.ended,
            hub: self.hub.as_ref().map(|hub| Box::new(hub.twin(observers))),
        })
    }
}
