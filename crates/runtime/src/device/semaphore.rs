//! Global semaphores of a device: words of L1 that are allocated and set by the host.

use super::Device;
use crate::RuntimeError;
use crate::memory::{GlobalSemaphore, GlobalSemaphoreConfig};
use crate::queue::Waited;
use crate::trace::CallSite;
use tilework_driver::{HostLink, Target};

impl<C: HostLink> Device<C> {
    /// Allocates a global semaphore and sets it to its initial value on all of its cores.
    ///
    /// # Errors
    /// No room; cores that are no workers; a device that stopped.
    pub fn create_global_semaphore(&mut self, config: &GlobalSemaphoreConfig) -> Result<GlobalSemaphore, RuntimeError> {
        let semaphore = self.memory()?.alloc_global_semaphore(config)?;
        self.reset_global_semaphore(&semaphore, semaphore.initial)?;
        Ok(semaphore)
    }

    /// Sets a global semaphore to `value` on all of its cores; no program that uses it may run
    /// meanwhile.
    ///
    /// # Errors
    /// A device that stopped.
    #[track_caller]
    pub fn reset_global_semaphore(&mut self, semaphore: &GlobalSemaphore, value: u32) -> Result<(), RuntimeError> {
        self.outside_capture("reset_global_semaphore", CallSite::here())?;
        self.alive()?;
        let result = self.set_words(semaphore, value);
        result.map_err(|e| self.explain(e, &[]))
    }

    fn set_words(&mut self, semaphore: &GlobalSemaphore, value: u32) -> Result<(), Waited> {
        self.card.write_all(&semaphore.cores, semaphore.address, &value.to_le_bytes())?;
        // A read waits for the writes before it: a program that starts afterwards sees the value.
        for &core in &semaphore.cores {
            self.card.read32(&Target::tile(core), semaphore.address)?;
        }
        Ok(())
    }

    /// Frees the memory of a global semaphore.
    ///
    /// # Errors
    /// One that was freed before; a device that stopped.
    pub fn free_global_semaphore(&mut self, semaphore: &GlobalSemaphore) -> Result<(), RuntimeError> {
        Ok(self.memory()?.free_global_semaphore(semaphore)?)
    }
}
