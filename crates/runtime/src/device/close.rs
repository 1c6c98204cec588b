//! Closing a device, and giving its chip back.

use super::Device;
use crate::RuntimeError;
use crate::log::DEVICE;
use crate::memory::Leaks;
use crate::trace::CallSite;
use tilework_driver::HostLink;
use tracing::info;

impl<C: HostLink> Device<C> {
    /// Waits for everything that was enqueued; then the device takes no further calls, and its chip
    /// can be opened again ([`Device::into_chip`]). The queue's kernels stay where they are and
    /// wait for commands: the next start holds all cores first. A device that is dropped without
    /// this is left as it is, and who still waits is told [`RuntimeError::Closed`].
    ///
    /// Returns what is still allocated, with its owners: leaks, where everything should have been
    /// freed.
    ///
    /// # Errors
    /// What stopped the device; a capture under way, which is given up.
    #[track_caller]
    pub fn close(&mut self) -> Result<Leaks, RuntimeError> {
        if !matches!(self.lost, Some(RuntimeError::Closed)) {
            self.outside_capture("close", CallSite::here())?;
            self.finish_everything()?;
            self.memory.free_text();
            self.lost = Some(RuntimeError::Closed);
            info!(target: DEVICE, "closed");
        }
        Ok(self.memory.leaks())
    }

    /// The chip, as it is now.
    pub fn into_chip(self) -> C {
        self.card.into_link()
    }
}
