//! A TLB window of the kernel driver's: taken, mapped, aimed, given back.

use crate::OpenError;
use crate::kernel::{Kernel, Mapped};
use tilework_abi::convert::usize_of;
use tilework_abi::kmd::{AllocateTlbIn, AllocateTlbOut, ConfigureTlbIn, FreeTlbIn, Request};
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::{self, Ordering, WindowSize};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Whether stores may be combined on their way ([`Slot::aim`]). Only where a fence of the language
/// is known to wait for them: elsewhere all accesses are uncached.
const COMBINES: bool = cfg!(target_arch = "x86_64");

/// A request whose answer follows its argument.
pub(crate) fn ask<K: Kernel, In, Out>(kernel: &mut K, request: Request, argument: &In) -> Result<Out, OpenError>
where
    In: IntoBytes + Immutable,
    Out: FromBytes + IntoBytes,
{
    let mut bytes = argument.as_bytes().to_vec();
    let at = bytes.len();
    bytes.resize(at + size_of::<Out>(), 0);
    kernel.request(request, &mut bytes).map_err(|error| OpenError::Refused { request, error })?;
    let mut out = Out::new_zeroed();
    out.as_mut_bytes().copy_from_slice(&bytes[at..]);
    Ok(out)
}

/// A window.
#[derive(Debug)]
pub(crate) struct Slot<M> {
    id: u32,
    size: WindowSize,
    uncached: M,
    /// The same bytes, through which stores may be combined.
    combining: Option<M>,
    /// Whether stores through it may be combined as it is aimed now.
    relaxed: bool,
    aimed: bool,
}

impl<M: Mapped> Slot<M> {
    /// Takes a window of `size` and maps it.
    ///
    /// # Errors
    /// None is left, or it cannot be mapped.
    pub(crate) fn take<K: Kernel<Mapping = M>>(kernel: &mut K, size: WindowSize) -> Result<Self, OpenError> {
        let wanted = AllocateTlbIn { size: size.bytes(), reserved: 0 };
        let given: AllocateTlbOut = ask(kernel, Request::AllocateTlb, &wanted)?;
        let mut map = |offset| kernel.map(offset, usize_of(size.bytes())).map_err(OpenError::Map);
        let maps = map(given.mmap_offset_uc).and_then(|uncached| {
            let combining = if COMBINES { Some(map(given.mmap_offset_wc)?) } else { None };
            Ok((uncached, combining))
        });
        let (uncached, combining) = match maps {
            Ok(maps) => maps,
            Err(error) => {
                free(kernel, given.id);
                return Err(error);
            }
        };
        Ok(Self { id: given.id, size, uncached, combining, relaxed: false, aimed: false })
    }

    /// Aims the window. Of its stores those without an order may be combined.
    ///
    /// # Errors
    /// The driver refused it.
    pub(crate) fn aim<K: Kernel>(&mut self, kernel: &mut K, at: tlb::Window) -> Result<(), OpenError> {
        // Unknown until the driver says that it is done.
        self.aimed = false;
        let both = |xy: NocXy| (u16::from(xy.x), u16::from(xy.y));
        let ((x_end, y_end), (x_start, y_start)) = (both(at.end), both(at.start));
        let ordering = at.ordering.unwrap_or_default();
        let config = ConfigureTlbIn {
            id: self.id,
            addr: at.address,
            x_end,
            y_end,
            x_start,
            y_start,
            noc: at.noc,
            mcast: at.multicast.into(),
            ordering: ordering.bits().to_le_bytes()[0],
            linked: at.linked.into(),
            static_vc: at.use_static_vc.into(),
            ..ConfigureTlbIn::default()
        };
        ask::<K, _, u64>(kernel, Request::ConfigureTlb, &config)?;
        self.relaxed = ordering != Ordering::Strict;
        self.aimed = true;
        Ok(())
    }

    /// Whether it shows something.
    pub(crate) fn is_aimed(&self) -> bool {
        self.aimed
    }

    /// Writes `data` at `at`. It has left the processor when this returns.
    pub(crate) fn write(&self, at: u64, data: &[u8]) {
        match &self.combining {
            Some(combining) if self.relaxed => {
                combining.write(usize_of(at), data);
                combining.flush();
            }
            _ => self.uncached.write(usize_of(at), data),
        }
    }

    /// Reads from `at` on.
    pub(crate) fn read(&self, at: u64, out: &mut [u8]) {
        self.uncached.read(usize_of(at), out);
    }

    /// Bytes of the window.
    pub(crate) fn bytes(&self) -> u64 {
        self.size.bytes()
    }

    /// Unmaps the window and gives it back. False if the driver did not take it.
    pub(crate) fn give_back<K: Kernel>(self, kernel: &mut K) -> bool {
        let id = self.id;
        // A window that is mapped is not taken back.
        drop(self);
        free(kernel, id)
    }
}

fn free<K: Kernel>(kernel: &mut K, id: u32) -> bool {
    kernel.request(Request::FreeTlb, FreeTlbIn { id }.as_mut_bytes()).is_ok()
}
