//! Atomic operations on L1, as the receiving NIU performs them.
//!
//! Follows WormholeB0/NoC/Atomics.md (Blackhole links to the same page): opcode in bits 12..15 of
//! `NOC_AT_LEN_BE`, operands below. An operation works within the aligned 16 bytes around its
//! address and returns the word at the address itself.

use super::Touch;
use crate::{Cycle, Fault, FaultClass, Memory};
use tilework_abi::noc::atomic;

const READ: &str = "WormholeB0/NoC/Atomics.md";
/// Bytes that an operation works within.
const UNIT: u64 = 16;
const OP_MASK: u32 = 0xF;
/// Index variant of the swap with the offset in bits 0..2 and bit 2 set.
const SWAP_INDEX6: u32 = 0x6;

/// A decoded operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Op {
    /// Adds within the low bits of a word.
    Increment { offset: u64, mask: u32 },
    /// Sets a word to a 4-bit value if it equals another.
    CompareSwap { offset: u64, compare: u32, set: u32 },
    /// Writes the 16-bit lanes that a mask selects.
    SwapLanes { mask: u8 },
    /// Writes a word.
    SwapWord { offset: u64 },
}

impl Op {
    /// Decodes `NOC_AT_LEN_BE`.
    ///
    /// # Errors
    /// An opcode that the page does not describe.
    pub(super) fn decode(len_be: u32) -> Result<Self, Fault> {
        let offset = u64::from(len_be & 3) * 4;
        match len_be >> atomic::OP_SHIFT & OP_MASK {
            atomic::INCR_GET => {
                let width = len_be >> atomic::WRAP_SHIFT & 0x1F;
                // (2 << 31) - 1 is all ones in 32-bit arithmetic.
                Ok(Self::Increment { offset, mask: (2u64 << width).wrapping_sub(1) as u32 })
            }
            atomic::CAS => Ok(Self::CompareSwap { offset, compare: len_be >> 2 & 0xF, set: len_be >> 6 & 0xF }),
            atomic::SWAP => Ok(Self::SwapLanes { mask: (len_be >> 2) as u8 }),
            SWAP_INDEX6 if len_be & 1 << 2 != 0 => Ok(Self::SwapWord { offset }),
            atomic::SWAP_4B => Ok(Self::SwapWord { offset: u64::from(len_be >> 2 & 3) * 4 }),
            op => Err(Fault::new(
                FaultClass::MissingSpecification,
                format!("atomic opcode {op:#x} (NOC_AT_LEN_BE {len_be:#x})"),
                READ,
            )),
        }
    }

    /// The bytes that the operation may change, relative to the aligned 16 bytes.
    fn span(self) -> (u64, u64) {
        match self {
            Self::Increment { offset, .. } | Self::CompareSwap { offset, .. } | Self::SwapWord { offset } => {
                (offset, 4)
            }
            Self::SwapLanes { .. } => (0, UNIT),
        }
    }
}

/// The bytes that an atomic on `addr` may change.
pub(super) fn touched(addr: u64, len_be: u32) -> Touch {
    let (offset, len) = Op::decode(len_be).map_or((0, UNIT), Op::span);
    Touch { addr: (addr & !(UNIT - 1)) + offset, len }
}

/// Whether adding to a count within `mask` goes past its end. What has the highest bit of the mask
/// is subtracted: beyond zero, too.
pub(crate) fn wraps(old: u32, added: u32, mask: u32) -> bool {
    let (old, added) = (old & mask, added & mask);
    if added > mask >> 1 { old < (added.wrapping_neg() & mask) } else { mask - old < added }
}

/// What an atomic on L1 will count past its width, if it does: the address, the old value and what
/// is added.
pub(crate) fn wrapped(addr: u64, len_be: u32, data: u32, l1: &[u8]) -> Option<(u32, u32, u32)> {
    let Ok(Op::Increment { offset, mask }) = Op::decode(len_be) else { return None };
    let at = u32::try_from((addr & !(UNIT - 1)) + offset).ok()?;
    let bytes = l1.get(at as usize..)?.first_chunk()?;
    let old = u32::from_le_bytes(*bytes);
    wraps(old, data, mask).then_some((at, old & mask, data & mask))
}

/// Performs an atomic on L1 at cycle `at` and returns the old word at `addr`.
///
/// # Errors
/// An unknown opcode, an address that is not a word of L1, or a fault of the memory.
pub(super) fn perform(
    at: Cycle,
    addr: u64,
    len_be: u32,
    data: u32,
    mem: &mut (impl Memory + ?Sized),
) -> Result<u32, Fault> {
    let op = Op::decode(len_be)?;
    check_address(addr, mem.is_l1(addr))?;
    let base = addr & !(UNIT - 1);
    let mut unit = [0u8; UNIT as usize];
    mem.read(at, base, &mut unit)?;
    let result = word(&unit, addr - base);
    match op {
        Op::Increment { offset, mask } => {
            let old = word(&unit, offset);
            let new = old.wrapping_add(data) & mask | old & !mask;
            mem.write(at, base + offset, &new.to_le_bytes())?;
        }
        Op::CompareSwap { offset, compare, set } => {
            if word(&unit, offset) == compare {
                mem.write(at, base + offset, &set.to_le_bytes())?;
            }
        }
        Op::SwapLanes { mask } => {
            let lanes = data.to_le_bytes();
            for i in (0..8u64).filter(|i| mask & 1 << i != 0) {
                let half = if i & 1 == 0 { &lanes[..2] } else { &lanes[2..] };
                mem.write(at, base + 2 * i, half)?;
            }
        }
        Op::SwapWord { offset } => mem.write(at, base + offset, &data.to_le_bytes())?,
    }
    Ok(result)
}

/// Checks that an atomic on `addr` is on a word of L1.
///
/// # Errors
/// `NOC_CMD_AT` outside L1 (NoC/MemoryMap.md, `NOC_CTRL`), or an unaligned address.
pub(super) fn check_address(addr: u64, is_l1: bool) -> Result<(), Fault> {
    if !is_l1 {
        return Err(Fault::new(
            FaultClass::UndefinedBehavior,
            "an atomic request to an address outside L1",
            "BlackholeA0/NoC/MemoryMap.md, NOC_CTRL",
        )
        .at_addr(addr));
    }
    if !addr.is_multiple_of(4) {
        return Err(Fault::new(
            FaultClass::UndefinedBehavior,
            "an atomic request to an address that is not a multiple of 4",
            READ,
        )
        .at_addr(addr));
    }
    Ok(())
}

/// The little-endian word at `offset`, which is a multiple of 4 below 16.
fn word(unit: &[u8; UNIT as usize], offset: u64) -> u32 {
    let i = (offset & 12) as usize;
    u32::from_le_bytes([unit[i], unit[i + 1], unit[i + 2], unit[i + 3]])
}
