//! Closing a device, and giving its chip back.

use super::Device;
use crate::RuntimeError;
use tilework_driver::HostLink;

impl<C: HostLink> Device<C> {
    /// Waits for everything that was enqueued; then the device takes no further calls, and its chip
    /// can be opened again ([`Device::into_chip`]). The queue's kernels stay where they are and wait
    /// for commands: the next start holds all cores first. A device that is dropped without this
    /// is left as it is, and who still waits is told [`RuntimeError::Closed`].
    ///
    /// # Errors
    /// What stopped the device.
    pub fn close(&mut self) -> Result<(), RuntimeError> {
        if matches!(self.lost, Some(RuntimeError::Closed)) {
            return Ok(());
        }
        self.finish()?;
        self.lost = Some(RuntimeError::Closed);
        Ok(())
    }

    /// The chip, as it is now.
    pub fn into_chip(self) -> C {
        self.card.into_link()
    }
}
