//! The program's registers, as the kernel has saved them.

use super::exec::{RBP, RSP};
use super::flags::Flags;
use crate::ahead::Kept;
use libc::ucontext_t;

/// Offset in the saved vector state of the bytes that software may use, with their first word; then
/// the bytes of all of it (the kernel's `struct _fpx_sw_bytes`).
const SOFTWARE: usize = 464;
const MAGIC: u32 = 0x4650_5853;
/// Offset of the mask of parts that are saved and not in their initial state.
const HEADER: usize = 512;
/// Offset of the low halves of the vector registers.
const XMM: usize = 160;

/// Parts of the vector state (Intel SDM 1, 13.1).
#[derive(Clone, Copy)]
enum Part {
    Sse = 1,
    Avx = 2,
    Masks = 5,
    Zmm = 6,
    HighZmm = 7,
}

impl Part {
    const fn bit(self) -> u64 {
        1 << self as u32
    }
}

/// Numbers of general registers, and behind them those of none, which are zero.
const NUMBERS: usize = 32;
/// The number of no register.
pub(super) const NONE: u8 = 16;

/// The number of `rbx`.
const RBX: u8 = 3;
/// Flags of a program behind a call: none of arithmetic is set, and interrupts come.
const FLAGS: u64 = 1 << 1 | 1 << 9;

/// The registers.
pub(crate) struct Context {
    /// By their numbers in instructions.
    pub(super) general: [u64; NUMBERS],
    rip: u64,
    pub(super) flags: Flags,
    /// Where they came from.
    saved: *mut libc::greg_t,
    vector: *mut u8,
    /// Whether more than the low halves of the vector registers is there.
    extended: bool,
    /// Offset of the upper halves of the first sixteen registers of 32 bytes.
    avx: usize,
}

/// Where the kernel keeps a register, by its number in instructions.
const PLACES: [i32; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// Bytes of a saved vector state.
///
/// # Safety
/// It is the kernel's.
pub(crate) unsafe fn saved_bytes(vector: *const u8) -> usize {
    // SAFETY: the caller's promise; the words are there in any case.
    unsafe {
        let words = vector.add(SOFTWARE).cast::<u32>();
        if words.read_unaligned() == MAGIC { words.add(1).read_unaligned() as usize } else { HEADER }
    }
}

/// Offset and size of a part, as the processor says.
fn part_place(part: Part) -> (usize, usize) {
    use std::sync::OnceLock;
    static PLACES: OnceLock<[(usize, usize); 8]> = OnceLock::new();
    PLACES.get_or_init(|| {
        std::array::from_fn(|index| {
            let found = std::arch::x86_64::__cpuid_count(0xD, index as u32);
            (found.ebx as usize, found.eax as usize)
        })
    })[part as usize]
}

impl Context {
    /// # Safety
    /// The context is the kernel's, or a copy of it, and is used by nobody else.
    pub(crate) unsafe fn new(context: *mut ucontext_t) -> Self {
        // SAFETY: the caller's promise. The saved vector state is where the kernel says.
        unsafe {
            let machine = &mut (*context).uc_mcontext;
            let vector = machine.fpregs.cast::<u8>();
            let extended = !vector.is_null() && vector.add(SOFTWARE).cast::<u32>().read_unaligned() == MAGIC;
            let avx = part_place(Part::Avx).0;
            let saved = |place: i32| machine.gregs[place as usize] as u64;
            let general = std::array::from_fn(|number| PLACES.get(number).map_or(0, |&place| saved(place)));
            let (rip, flags) = (saved(libc::REG_RIP), Flags::new(saved(libc::REG_EFL)));
            Self { general, rip, flags, saved: machine.gregs.as_mut_ptr(), vector, extended, avx }
        }
    }

    /// The registers of the caller to whom a function gives back, which has kept these. There are
    /// no vector registers.
    pub(crate) fn behind_call(kept: &Kept) -> Self {
        let mut general = [0; NUMBERS];
        let stack = std::ptr::from_ref(kept).addr() + size_of::<Kept>();
        general[usize::from(RSP)] = stack as u64;
        general[usize::from(RBP)] = kept.rbp;
        general[usize::from(RBX)] = kept.rbx;
        general[12..16].copy_from_slice(&[kept.r12, kept.r13, kept.r14, kept.r15]);
        let (saved, vector) = (std::ptr::null_mut(), std::ptr::null_mut());
        Self { general, rip: kept.back, flags: Flags::new(FLAGS), saved, vector, extended: false, avx: 0 }
    }

    /// The general registers by their numbers but the stack pointer, the flags, and where the
    /// program goes on.
    pub(crate) fn frame(&self) -> [u64; 17] {
        let mut frame = [self.rip; 17];
        frame[..4].copy_from_slice(&self.general[..4]);
        frame[4..15].copy_from_slice(&self.general[5..16]);
        frame[15] = self.flags.word();
        frame
    }

    pub(crate) fn stack_pointer(&self) -> u64 {
        self.numbered(RSP)
    }

    /// Whether the vector registers are there.
    pub(super) fn has_vectors(&self) -> bool {
        !self.vector.is_null()
    }

    /// Puts the registers where they came from.
    pub(crate) fn save(&self) {
        let set = |place: i32, value: u64| {
            // SAFETY: the places are the kernel's, all within its array.
            unsafe { self.saved.add(place as usize).write(value as i64) }
        };
        for (place, value) in PLACES.into_iter().zip(self.general) {
            set(place, value);
        }
        set(libc::REG_RIP, self.rip);
        set(libc::REG_EFL, self.flags.word());
    }

    pub(crate) fn rip(&self) -> u64 {
        self.rip
    }
    pub(crate) fn set_rip(&mut self, rip: u64) {
        self.rip = rip;
    }

    /// The whole general register with that number.
    #[inline]
    pub(crate) fn numbered(&self, number: u8) -> u64 {
        self.general[usize::from(number) % NUMBERS]
    }

    /// Sets the low bytes of a general register: four clear the upper half, fewer keep the rest.
    #[inline]
    pub(crate) fn set_numbered(&mut self, number: u8, bytes: u8, value: u64) {
        let register = &mut self.general[usize::from(number) % NUMBERS];
        *register = match bytes {
            8 => value,
            4 => value & 0xFFFF_FFFF,
            2 => *register & !0xFFFF | value & 0xFFFF,
            _ => *register & !0xFF | value & 0xFF,
        };
    }

    /// Sets the second byte of a general register.
    pub(crate) fn set_high(&mut self, number: u8, value: u64) {
        let register = &mut self.general[usize::from(number) % NUMBERS];
        *register = *register & !0xFF00 | (value & 0xFF) << 8;
    }

    /// The area of the vector registers, and the parts that are in it; `None` if it has only the
    /// low halves.
    pub(super) fn vector_area(&self) -> Option<(*mut u8, u64)> {
        // SAFETY: the features that the kernel saves follow the magic number.
        self.extended.then(|| (self.vector, unsafe { self.vector.add(SOFTWARE + 8).cast::<u64>().read_unaligned() }))
    }

    /// The parts that are in the saved state, a bit each.
    #[inline]
    fn parts(&self) -> u64 {
        if !self.extended {
            return Part::Sse.bit();
        }
        // SAFETY: the header is there when the state is extended.
        unsafe { self.vector.add(HEADER).cast::<u64>().read_unaligned() }
    }

    /// Whether a part is in the saved state.
    fn has(&self, part: Part) -> bool {
        self.parts() & part.bit() != 0
    }

    /// Whether the processor and the kernel save a part.
    fn knows(&self, part: Part) -> bool {
        // SAFETY: the features that the kernel saves follow the magic number.
        self.extended && unsafe { self.vector.add(SOFTWARE + 8).cast::<u64>().read_unaligned() } >> part as u32 & 1 != 0
    }

    /// Takes a part into the saved state, all zero, if it is in its initial state.
    fn wake(&mut self, part: Part) {
        if !self.extended || self.has(part) {
            return;
        }
        // SAFETY: the part's place is within the saved state, as the processor says.
        unsafe {
            let mask = self.vector.add(HEADER).cast::<u64>();
            mask.write_unaligned(mask.read_unaligned() | 1 << part as u32);
            let (offset, size) = if matches!(part, Part::Sse) { (XMM, 256) } else { part_place(part) };
            self.vector.add(offset).write_bytes(0, size);
        }
    }

    /// Puts what is above the low halves of the first sixteen vector registers into its initial
    /// state, which is zero.
    pub(crate) fn clear_upper(&mut self) {
        if self.extended {
            // SAFETY: the header is there when the state is extended.
            unsafe {
                let mask = self.vector.add(HEADER).cast::<u64>();
                mask.write_unaligned(mask.read_unaligned() & !(1 << Part::Avx as u32 | 1 << Part::Zmm as u32));
            }
        }
    }

    /// The pieces of vector register `number` in the saved state: part, offset, bytes.
    fn pieces(number: usize) -> [(Part, usize, usize); 3] {
        if number < 16 {
            [
                (Part::Sse, XMM + 16 * number, 16),
                (Part::Avx, part_place(Part::Avx).0 + 16 * number, 16),
                (Part::Zmm, part_place(Part::Zmm).0 + 32 * number, 32),
            ]
        } else {
            let at = part_place(Part::HighZmm).0 + 64 * (number - 16);
            [(Part::HighZmm, at, 16), (Part::HighZmm, at + 16, 16), (Part::HighZmm, at + 32, 32)]
        }
    }

    /// The mask register `number`; `None` where there is none.
    pub(crate) fn mask(&self, number: usize) -> Option<u64> {
        if self.vector.is_null() || !self.knows(Part::Masks) {
            return None;
        }
        if !self.has(Part::Masks) {
            return Some(0);
        }
        let (offset, size) = part_place(Part::Masks);
        // SAFETY: the place is within the saved state.
        (8 * number < size).then(|| unsafe { self.vector.add(offset + 8 * number).cast::<u64>().read_unaligned() })
    }

    /// Where the one or two halves of the `bytes` (16 or 32) lowest bytes of a register are, if
    /// they are all in the saved state and nothing is of those parts: the usual case.
    #[inline]
    fn halves(&self, number: usize, bytes: usize, without: u64) -> Option<[usize; 2]> {
        let wanted = match bytes {
            16 => Part::Sse.bit(),
            32 => Part::Sse.bit() | Part::Avx.bit(),
            _ => return None,
        };
        let simple = number < 16 && self.parts() & (wanted | without) == wanted;
        (simple && !self.vector.is_null()).then_some([XMM + 16 * number, self.avx + 16 * number])
    }

    /// Where the saved state has the one or two halves of the lowest 16 or 32 bytes of a register.
    /// `None` unless they can be copied as they are.
    #[inline]
    pub(super) fn places(&self, number: usize, bytes: usize) -> Option<[*mut u8; 2]> {
        let places = self.halves(number, bytes, 0)?;
        // SAFETY: the places are within the saved state.
        Some(places.map(|place| unsafe { self.vector.add(place) }))
    }

    /// The same for what is to be loaded there: `clears` all above it.
    #[inline]
    pub(super) fn places_to_set(&mut self, number: usize, bytes: usize, clears: bool) -> Option<[*mut u8; 2]> {
        if bytes == 32 && self.extended && !self.has(Part::Avx) {
            self.wake(Part::Avx);
        }
        let places = self.halves(number, bytes, Self::above(bytes, clears))?;
        // SAFETY: the places are within the saved state.
        Some(places.map(|place| unsafe { self.vector.add(place) }))
    }

    /// The lowest `N` bytes of a vector register ([`Self::vector`]).
    #[inline]
    pub(super) fn whole<const N: usize>(&self, number: usize, out: &mut [u8; N]) -> Option<()> {
        let Some([low, high]) = self.places(number, N) else { return self.vector(number, out) };
        // SAFETY: the places have 16 bytes each, and `places` gives them for 16 and 32 bytes only.
        unsafe {
            out.as_mut_ptr().copy_from_nonoverlapping(low, 16);
            if N == 32 {
                out.as_mut_ptr().add(16).copy_from_nonoverlapping(high, 16);
            }
        }
        Some(())
    }

    /// Sets them ([`Self::set_vector`]).
    #[inline]
    pub(super) fn set_whole<const N: usize>(&mut self, number: usize, data: &[u8; N], clears: bool) -> Option<()> {
        let Some([low, high]) = self.places_to_set(number, N, clears) else {
            return self.set_vector(number, data, clears);
        };
        // SAFETY: as in `whole`.
        unsafe {
            low.copy_from_nonoverlapping(data.as_ptr(), 16);
            if N == 32 {
                high.copy_from_nonoverlapping(data.as_ptr().add(16), 16);
            }
        }
        Some(())
    }

    /// The parts above the lowest bytes of a register, if these are cleared.
    #[inline]
    const fn above(bytes: usize, clears: bool) -> u64 {
        match bytes {
            _ if !clears => 0,
            32 => Part::Zmm.bit(),
            _ => Part::Zmm.bit() | Part::Avx.bit(),
        }
    }

    /// The bytes of a vector register, the lowest first. `None` where there is no such register.
    #[inline]
    pub(crate) fn vector(&self, number: usize, out: &mut [u8]) -> Option<()> {
        if let Some(places) = self.halves(number, out.len(), 0) {
            for (half, place) in out.chunks_exact_mut(16).zip(places) {
                // SAFETY: the places are within the saved state.
                unsafe { half.as_mut_ptr().copy_from_nonoverlapping(self.vector.add(place), 16) };
            }
            return Some(());
        }
        let mut at = 0;
        for (part, offset, bytes) in Self::pieces(number) {
            if at >= out.len() {
                break;
            }
            let bytes = bytes.min(out.len() - at);
            if self.vector.is_null() || !(self.knows(part) || matches!(part, Part::Sse)) {
                return None;
            }
            if self.has(part) {
                // SAFETY: the place is within the saved state.
                unsafe { out[at..at + bytes].as_mut_ptr().copy_from_nonoverlapping(self.vector.add(offset), bytes) };
            } else {
                out[at..at + bytes].fill(0);
            }
            at += bytes;
        }
        Some(())
    }

    /// Sets the lowest bytes of a vector register, and clears all others of it if `clears`. `None`
    /// where there is no such register.
    #[inline]
    pub(crate) fn set_vector(&mut self, number: usize, data: &[u8], clears: bool) -> Option<()> {
        if let Some(places) = self.halves(number, data.len(), Self::above(data.len(), clears)) {
            for (half, place) in data.chunks_exact(16).zip(places) {
                // SAFETY: the places are within the saved state.
                unsafe { self.vector.add(place).copy_from_nonoverlapping(half.as_ptr(), 16) };
            }
            return Some(());
        }
        let mut at = 0;
        for (part, offset, bytes) in Self::pieces(number) {
            let given = bytes.min(data.len().saturating_sub(at));
            let known = !self.vector.is_null() && (self.knows(part) || matches!(part, Part::Sse));
            if given > 0 && !known {
                return None;
            }
            // What is in its initial state is clear.
            if given > 0 {
                self.wake(part);
            }
            if known && (given > 0 || (clears && self.has(part))) {
                // SAFETY: the place is within the saved state.
                unsafe {
                    let place = self.vector.add(offset);
                    place.copy_from_nonoverlapping(data[at.min(data.len())..].as_ptr(), given);
                    if clears && given < bytes {
                        place.add(given).write_bytes(0, bytes - given);
                    }
                }
            }
            at += bytes;
        }
        Some(())
    }
}
