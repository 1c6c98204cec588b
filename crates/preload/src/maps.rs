//! Mappings of the card: where the program sees BARs.
//!
//! They lie in one reservation of addresses, so that whether an address is a BAR's is one
//! comparison ([`is_card`]); where the program wants one elsewhere, it is elsewhere, and `OUTSIDE`
//! counts it.

use crate::real::real;
use crate::state::OpenFile;
use crate::{tell, watch};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilework_abi::tlb::Bar;
use tilework_kmd::{Mapping, PAGE, Target};

/// Bytes of the reservation: BAR4 is 32 GiB, and a program may map it more than once.
const ARENA: usize = 1 << 39;
static START: AtomicUsize = AtomicUsize::new(0);
/// Mappings outside.
static OUTSIDE: AtomicUsize = AtomicUsize::new(0);
/// Mappings of DMA buffers.
static BUFFERS: AtomicUsize = AtomicUsize::new(0);

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub start: usize,
    pub len: usize,
    pub file: OpenFile,
    pub mapping: Mapping,
}

/// All mappings, by their start; and the free parts of the reservation.
#[derive(Default, Debug)]
pub(crate) struct Maps {
    maps: BTreeMap<usize, Map>,
    /// Mappings of DMA buffers, which are memory.
    buffers: BTreeMap<usize, Map>,
    free: Vec<(usize, usize)>,
    used: usize,
    /// The mapping that was found last.
    last: Cell<Option<Map>>,
}

/// Whether `len` bytes at `at` may touch a BAR: false is certain.
#[inline]
pub(crate) fn is_card(at: usize, len: usize) -> bool {
    let start = START.load(Ordering::Relaxed);
    let near = start != 0 && at.wrapping_add(len) > start && at < start + ARENA;
    near || OUTSIDE.load(Ordering::Relaxed) != 0
}

/// Whether `len` bytes at `at` may be mapped by the card: false is certain.
pub(crate) fn may_be_mapped(at: usize, len: usize) -> bool {
    is_card(at, len) || BUFFERS.load(Ordering::Relaxed) != 0
}

type Mmap = unsafe extern "C" fn(*mut c_void, usize, i32, i32, i32, i64) -> *mut c_void;
type Munmap = unsafe extern "C" fn(*mut c_void, usize) -> i32;

pub(crate) fn real_mmap(at: usize, len: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> Option<usize> {
    // SAFETY: the caller says where; `MAP_FIXED` is used for ranges that are the caller's only.
    let found =
        unsafe { real!(mmap as Mmap)(std::ptr::with_exposed_provenance_mut(at), len, protection, flags, fd, offset) };
    (found != libc::MAP_FAILED).then(|| found.expose_provenance())
}

pub(crate) fn real_munmap(at: usize, len: usize) -> i32 {
    // SAFETY: the range is the caller's.
    unsafe { real!(munmap as Munmap)(std::ptr::with_exposed_provenance_mut(at), len) }
}

const NOTHING: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;

/// `len` bytes of the process that others may map a second time: a DMA buffer.
pub(crate) fn shared_memory(len: usize) -> Option<usize> {
    real_mmap(0, len, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0)
}

pub(crate) fn free_shared_memory(at: usize, len: usize) {
    real_munmap(at, len);
}

/// Mappings of the process: first address, end, and the rest of the line of the kernel's table.
fn lines(table: &str) -> impl Iterator<Item = (usize, usize, &str)> {
    table.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?, rest))
    })
}

/// Has the allocator's memory in pages of 4 KiB. It asks for pages of 2 MiB, of which a chip with
/// its many memories that stay empty would fill a hundred with zeros before the first access.
pub(crate) fn without_large_pages() {
    let probe = vec![0u8; 1 << 20];
    let at = probe.as_ptr().addr();
    let Ok(table) = std::fs::read_to_string("/proc/self/maps") else { return };
    if let Some((from, to, _)) = lines(&table).find(|&(from, to, _)| from <= at && at < to) {
        // SAFETY: advice for memory that the allocator has mapped: what is in it stays. A kernel
        // that has no such pages refuses it, which changes nothing.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(from), to - from, libc::MADV_NOHUGEPAGE) };
    }
}

/// Reserves what is free between two addresses.
pub(crate) fn fill_holes(start: usize, end: usize) {
    let Ok(table) = std::fs::read_to_string("/proc/self/maps") else { return };
    let mut next = start;
    for (from, to, _) in lines(&table).filter(|&(from, to, _)| to > start && from < end) {
        if from > next {
            real_mmap(next, from - next, libc::PROT_NONE, NOTHING | libc::MAP_FIXED_NOREPLACE, -1, 0);
        }
        next = to.max(next);
    }
}

/// Whether all of a range is memory of the process; `mincore` fails for holes.
pub(crate) fn is_memory(at: usize, len: usize, writable: bool) -> bool {
    if is_card(at, len) || len == 0 {
        return false;
    }
    // The kernel's table of mappings says what may be written.
    let Ok(table) = std::fs::read_to_string("/proc/self/maps") else { return false };
    let mut next = at;
    for (from, to, rest) in lines(&table) {
        if from <= next && next < to {
            // Pages that are pinned already may be without rights for now.
            let watched = rest.starts_with("---") && watch::covers(next);
            if !watched && !rest.starts_with(if writable { "rw" } else { "r" }) {
                return false;
            }
            next = to;
            if next - at >= len {
                return true;
            }
        }
    }
    false
}

impl Maps {
    /// Addresses for `len` bytes of the reservation.
    fn take(&mut self, len: usize) -> Option<usize> {
        if let Some(found) = self.free.iter().position(|&(_, size)| size == len) {
            return Some(self.free.swap_remove(found).0);
        }
        let mut start = START.load(Ordering::Relaxed);
        if start == 0 {
            start = real_mmap(0, ARENA, libc::PROT_NONE, NOTHING, -1, 0)?;
            START.store(start, Ordering::Relaxed);
        }
        // A window of 2 MiB at a multiple of 2 MiB, as on a card.
        let at = self.used.next_multiple_of(if len >= 2 << 20 { 2 << 20 } else { PAGE as usize });
        if at + len > ARENA {
            return None;
        }
        self.used = at + len;
        Some(start + at)
    }

    /// Makes a mapping of `len` bytes, at `hint` if `fixed`.
    pub(crate) fn make(
        &mut self,
        (hint, fixed): (usize, bool),
        len: usize,
        file: OpenFile,
        mapping: Mapping,
        protection: i32,
    ) -> Option<usize> {
        if let Target::Memory(address) = mapping.target {
            let flags = libc::MREMAP_MAYMOVE | if fixed { libc::MREMAP_FIXED } else { 0 };
            // SAFETY: with an old size of zero this maps shared memory a second time; a fixed place
            // is the program's own choice.
            let second = unsafe {
                libc::mremap(
                    std::ptr::with_exposed_provenance_mut(address as usize),
                    0,
                    len,
                    flags,
                    std::ptr::with_exposed_provenance_mut::<c_void>(hint),
                )
            };
            if second == libc::MAP_FAILED {
                return None;
            }
            let start = second.expose_provenance();
            self.buffers.insert(start, Map { start, len, file, mapping });
            BUFFERS.fetch_add(1, Ordering::Relaxed);
            return Some(start);
        }
        let _ = protection;
        let start = if fixed {
            OUTSIDE.fetch_add(1, Ordering::Relaxed);
            real_mmap(hint, len, libc::PROT_NONE, NOTHING | libc::MAP_FIXED, -1, 0)?
        } else {
            self.take(len)?
        };
        self.maps.insert(start, Map { start, len, file, mapping });
        Some(start)
    }

    /// The mapping that holds address `at`.
    pub(crate) fn find(&self, at: usize) -> Option<Map> {
        let holds = |map: &Map| at.wrapping_sub(map.start) < map.len;
        let last = self.last.get().filter(holds);
        last.or_else(|| {
            let found = self.maps.range(..=at).next_back().map(|(_, &map)| map).filter(holds);
            self.last.set(found);
            found
        })
    }

    /// Whether a mapping of a BAR overlaps a range.
    pub(crate) fn overlaps(&self, at: usize, len: usize) -> bool {
        if self.last.get().is_some_and(|map| at.wrapping_sub(map.start) < map.len) {
            return true;
        }
        let last = self.maps.range(..at.saturating_add(len)).next_back();
        last.is_some_and(|(_, map)| at < map.start + map.len)
    }

    /// Whether a mapping of the card's, memory included, overlaps a range.
    pub(crate) fn touches(&self, at: usize, len: usize) -> bool {
        let last = self.buffers.range(..at.saturating_add(len)).next_back();
        self.overlaps(at, len) || last.is_some_and(|(_, map)| at < map.start + map.len)
    }

    fn overlapping(&self, at: usize, len: usize) -> impl Iterator<Item = Map> {
        let touch = move |map: &&Map| map.start < at.saturating_add(len) && at < map.start + map.len;
        let (bars, buffers) = (self.maps.values().filter(touch), self.buffers.values().filter(touch));
        bars.chain(buffers).copied().collect::<Vec<_>>().into_iter()
    }

    /// Takes the mappings of a range away, and gives those that are whole gone. Of others a part
    /// stays. `Err` if a window would be split, which the driver does not allow.
    pub(crate) fn remove(&mut self, at: usize, len: usize) -> Result<Vec<Map>, ()> {
        self.last.take();
        let end = at.saturating_add(len);
        let found: Vec<_> = self.overlapping(at, len).collect();
        let whole = |map: &Map| at <= map.start && map.start + map.len <= end;
        if found.iter().any(|map| matches!(map.mapping.target, Target::Window(..)) && !whole(map)) {
            return Err(());
        }
        let mut gone = Vec::new();
        for map in found {
            let table =
                if matches!(map.mapping.target, Target::Memory(_)) { &mut self.buffers } else { &mut self.maps };
            table.remove(&map.start);
            let map_end = map.start + map.len;
            if map.start < at {
                table.insert(map.start, Map { len: at - map.start, ..map });
            }
            if end < map_end {
                table.insert(
                    end,
                    Map { start: end, len: map_end - end, mapping: behind(map.mapping, end - map.start), ..map },
                );
            }
            if whole(&map) {
                gone.push(map);
            }
            let (from, to) = (map.start.max(at), map_end.min(end));
            if matches!(map.mapping.target, Target::Memory(_)) {
                real_munmap(from, to - from);
            } else {
                self.give_back(from, to - from);
            }
        }
        Ok(gone)
    }

    /// Gives addresses back to the reservation, or to the process.
    fn give_back(&mut self, at: usize, len: usize) {
        let start = START.load(Ordering::Relaxed);
        if start != 0 && (start..start + ARENA).contains(&at) {
            self.free.push((at, len));
        } else {
            OUTSIDE.fetch_sub(1, Ordering::Relaxed);
            real_munmap(at, len);
        }
    }
}

/// The mapping that begins `by` bytes later.
fn behind(mapping: Mapping, by: usize) -> Mapping {
    let target = match mapping.target {
        Target::Bar(bar, at) => Target::Bar(bar, at + by as u64),
        Target::Window(id, bar, at) => Target::Window(id, bar, at + by as u64),
        Target::Memory(at) => Target::Memory(at + by as u64),
    };
    Mapping { target, ..mapping }
}

impl Map {
    /// The BAR and the offset of address `at`, and the bytes from there to the mapping's end.
    pub(crate) fn place(&self, at: usize) -> (Bar, u64, usize) {
        let within = at - self.start;
        let (bar, offset) = match self.mapping.target {
            Target::Bar(bar, offset) | Target::Window(_, bar, offset) => (bar, offset),
            Target::Memory(_) => {
                tell::say("a mapping of memory was taken for one of a BAR: this is a defect");
                tell::end()
            }
        };
        (bar, offset + within as u64, self.len - within)
    }
}
