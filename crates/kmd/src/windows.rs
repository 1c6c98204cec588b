//! TLB windows: who owns them, and their registers (`tlb.c`, `blackhole.c`).

use crate::layout::ConfigureTlbIn;
use crate::{Card, Errno, FileId};
use tilework_abi::tlb::{
    self, Bar, COUNT, COUNT_2M, COUNT_4G, KERNEL_WINDOW, REG_BYTES, REGS, SIZE_2M, SIZE_4G, STRIDED_REGS, WindowSize,
};

/// First windows, whose multicast can be strided (`TLB_STRIDED_COUNT`).
const STRIDED: u32 = 32;

/// Which file owns which window.
#[derive(Debug)]
pub(crate) struct Windows {
    owners: Vec<Option<FileId>>,
}

impl Default for Windows {
    fn default() -> Self {
        Self { owners: vec![None; COUNT as usize] }
    }
}

impl Windows {
    /// Takes a free window of `size` bytes, the lowest.
    ///
    /// # Errors
    /// No window has that size; all are taken.
    pub(crate) fn allocate(&mut self, file: FileId, size: u64) -> Result<u32, Errno> {
        let (first, count) = match size {
            SIZE_2M => (0, COUNT_2M),
            SIZE_4G => (COUNT_2M, COUNT_4G),
            _ => return Err(Errno::Invalid),
        };
        let free = (first..first + count).find(|&id| id != KERNEL_WINDOW && self.owners[id as usize].is_none());
        let id = free.ok_or(Errno::NoMemory)?;
        self.owners[id as usize] = Some(file);
        Ok(id)
    }

    /// Gives a window back.
    pub(crate) fn free(&mut self, id: u32) {
        if let Some(owner) = self.owners.get_mut(id as usize) {
            *owner = None;
        }
    }
}

/// Aims window `id`.
///
/// # Errors
/// The address is no multiple of the window's size.
pub(crate) fn configure(card: &mut dyn Card, id: u32, config: &ConfigureTlbIn) -> Result<(), Errno> {
    let size = WindowSize::of_window(id);
    if !config.addr.is_multiple_of(size.bytes()) {
        return Err(Errno::Invalid);
    }
    let address = u128::from(config.addr >> size.bytes().trailing_zeros());
    let address_bits = if size.bytes() == SIZE_2M { 43 } else { 32 };
    // The fields behind the address, with their bits (`TLB_2M_REG`).
    let fields: [(u16, u32); 9] = [
        (config.x_end, 6),
        (config.y_end, 6),
        (config.x_start, 6),
        (config.y_start, 6),
        (config.noc.into(), 2),
        (config.mcast.into(), 1),
        (config.ordering.into(), 2),
        (config.linked.into(), 1),
        (config.static_vc.into(), 1),
    ];
    let mut value = address & ((1 << address_bits) - 1);
    let mut at = address_bits;
    for (field, bits) in fields {
        value |= (u128::from(field) & ((1 << bits) - 1)) << at;
        at += bits;
    }
    let registers = REGS + u64::from(id) * REG_BYTES;
    for (word, bytes) in (0u64..3).zip(value.to_le_bytes().chunks_exact(4)) {
        card.write(Bar::Bar0, registers + 4 * word, bytes);
    }
    if id < STRIDED {
        card.write32(Bar::Bar0, STRIDED_REGS + 4 * u64::from(id), 0);
    }
    Ok(())
}

/// The BAR and the offset of window `id`.
pub(crate) fn place(id: u32) -> (Bar, u64) {
    (WindowSize::of_window(id).bar(), tlb::window_offset(id))
}

/// A word of the tile at `x`, `y` through the driver's own window: the address that it lies at in
/// BAR0 once the window is aimed.
pub(crate) fn aim(card: &mut dyn Card, (x, y): (u16, u16), addr: u64, noc: u8) -> u64 {
    let config =
        ConfigureTlbIn { addr: addr & !(SIZE_2M - 1), x_end: x, y_end: y, ordering: 1, noc, ..Default::default() };
    // A rounded address is never refused.
    let _ = configure(card, KERNEL_WINDOW, &config);
    tlb::window_offset(KERNEL_WINDOW) + addr % SIZE_2M
}
