//! Pinned host memory with an address on the NoC.

use crate::OpenError;
use crate::kernel::{Kernel, Mapped, Pages};
use crate::window::ask;
use tilework_abi::addr::PcieAddr;
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::kmd::{PIN_CONTIGUOUS, PIN_NOC, PinIn, PinOut, Request, UnpinIn};
use tilework_driver::LinkError;
use zerocopy::IntoBytes;

/// Pinned regions are whole pages.
const PAGE: usize = 4096;
/// A huge page.
const HUGE: usize = 1 << 30;

/// A region that the device reaches.
#[derive(Debug)]
pub(crate) struct Region<M> {
    memory: M,
    /// Bytes that were asked for.
    pub(crate) len: usize,
    /// Bytes that are pinned.
    pinned: usize,
    /// What the host wished for it: the region is found again by that.
    pub(crate) wish: PcieAddr,
    /// Where the device finds it.
    pub(crate) first: PcieAddr,
}

fn pin_at<K: Kernel>(kernel: &mut K, address: u64, size: usize, flags: u32) -> Result<PinOut, OpenError> {
    let output_size_bytes = u32_of(size_of::<PinOut>());
    let wanted = PinIn { output_size_bytes, flags, virtual_address: address, size: size as u64 };
    ask(kernel, Request::PinPages, &wanted)
}

impl<M: Mapped> Region<M> {
    /// Pins `len` bytes. Usual pages will do where an IOMMU puts them side by side for the device;
    /// elsewhere the driver refuses them, and a huge page is asked for.
    ///
    /// # Errors
    /// There is no memory, or the driver refused both.
    pub(crate) fn pin<K: Kernel<Mapping = M>>(kernel: &mut K, len: usize, wish: PcieAddr) -> Result<Self, LinkError> {
        let failed = |what: String| LinkError::Failed(format!("{len} bytes of host memory cannot be pinned: {what}"));
        if len == 0 || len > HUGE {
            return Err(failed(format!("expected 1 to {HUGE} bytes")));
        }
        let size = len.next_multiple_of(PAGE);
        let memory = kernel.memory(size, Pages::Usual).map_err(|error| failed(error.to_string()))?;
        let (memory, pinned, out) = match pin_at(kernel, memory.address(), size, PIN_NOC) {
            Ok(out) => (memory, size, out),
            Err(usual) => {
                drop(memory);
                let huge = |error: &dyn std::fmt::Display| {
                    failed(format!(
                        "{usual}; without an IOMMU that translates, a free huge page of 1 GiB is needed \
                         (hugepagesz=1G hugepages=1 on the kernel's command line): {error}"
                    ))
                };
                let memory = kernel.memory(HUGE, Pages::Huge).map_err(|error| huge(&error))?;
                let out = pin_at(kernel, memory.address(), size, PIN_NOC | PIN_CONTIGUOUS);
                let out = out.map_err(|error| huge(&error))?;
                (memory, size, out)
            }
        };
        Ok(Self { memory, len, pinned, wish, first: PcieAddr::new(out.noc_address) })
    }

    /// Where `len` bytes at `address` lie in it.
    fn at(&self, address: PcieAddr, len: usize) -> Option<usize> {
        let offset = usize_of(address.offset_from(self.first)?);
        (offset.checked_add(len)? <= self.len).then_some(offset)
    }

    /// Reads pinned bytes; false if not all of them are this region's.
    pub(crate) fn read(&self, address: PcieAddr, out: &mut [u8]) -> bool {
        let Some(at) = self.at(address, out.len()) else { return false };
        self.memory.read(at, out);
        true
    }

    /// Writes pinned bytes; false if not all of them are this region's.
    pub(crate) fn write(&self, address: PcieAddr, data: &[u8]) -> bool {
        let Some(at) = self.at(address, data.len()) else { return false };
        self.memory.write(at, data);
        true
    }

    /// Sets all its bytes to zero.
    pub(crate) fn clear(&self) {
        let zeros = [0; PAGE];
        for at in (0..self.len).step_by(PAGE) {
            self.memory.write(at, &zeros[..PAGE.min(self.len - at)]);
        }
    }

    /// Ends the pin, and frees the memory. False if the driver did not end it.
    pub(crate) fn unpin<K: Kernel>(self, kernel: &mut K) -> bool {
        let size = self.pinned as u64;
        let mut wanted = UnpinIn { virtual_address: self.memory.address(), size, reserved: 0 };
        kernel.request(Request::UnpinPages, wanted.as_mut_bytes()).is_ok()
    }
}
