//! Moves between vector registers and memory, whole or masked.

use super::Stop;
use super::exec::Cpu;
use super::plan::Plan;
use super::table::Table;
use crate::{client, combine};
use iced_x86::{EncodingKind, Instruction, Mnemonic, OpKind};

/// The most bytes of a vector register.
const WIDEST: usize = 64;

/// A move between a vector register and memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct VectorMove {
    /// The register.
    number: u8,
    bytes: u8,
    stores: bool,
    /// It traps where its operand is not aligned.
    aligned: bool,
    masked: bool,
    /// What is above the operand is cleared, beyond the low half of the register as well: a VEX
    /// prefix. A move to a part of the low half clears the rest of that in any case.
    clears: bool,
}

impl VectorMove {
    /// What an instruction moves, if it is such a move.
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        let mnemonic = instruction.mnemonic();
        if !is_vector_move(mnemonic) || instruction.op_count() != 2 {
            return None;
        }
        let is_memory = |op| instruction.op_kind(op) == OpKind::Memory;
        let bytes = instruction.memory_size().size();
        if !(is_memory(0) || is_memory(1)) || bytes == 0 || bytes > WIDEST {
            return None;
        }
        let register = instruction.op_register(u32::from(is_memory(0)));
        let known = register.is_vector_register() && !register.is_mm();
        known.then(|| Self {
            number: register.number() as u8,
            bytes: bytes as u8,
            stores: is_memory(0),
            aligned: is_aligned_move(mnemonic),
            masked: instruction.has_op_mask(),
            clears: !matches!(instruction.encoding(), EncodingKind::Legacy),
        })
    }
}

impl Cpu<'_> {
    /// Moves of vector registers, whole or their lowest word.
    pub(super) fn vector(&mut self, table: &Table, plan: &Plan, place: usize, what: VectorMove) -> Result<(), Stop> {
        let VectorMove { number, bytes, stores, aligned, masked, clears } = what;
        let (number, bytes) = (usize::from(number), usize::from(bytes));
        let at = self.at(plan)?;
        // An aligned move that is not aligned traps on the processor.
        if aligned && at & (bytes - 1) != 0 {
            return Err(Stop::Unknown);
        }
        if masked {
            let instruction = table.instruction(place).ok_or(Stop::Unknown)?;
            return self.masked(instruction, stores, at, bytes);
        }
        match bytes {
            16 => self.whole::<16>(number, stores, at, clears),
            32 => self.whole::<32>(number, stores, at, clears),
            64 => self.whole::<64>(number, stores, at, clears),
            _ if stores => {
                let mut data = [0; WIDEST];
                self.context.vector(number, &mut data[..bytes]).ok_or(Stop::Unknown)?;
                self.store(at, &data[..bytes])
            }
            _ => {
                let mut data = [0; WIDEST];
                self.load(at, &mut data[..bytes])?;
                self.context.set_vector(number, &data[..bytes.max(16)], clears).ok_or(Stop::Unknown)
            }
        }
    }

    /// A move of `N` bytes, which are all of a register: what copies are made of.
    #[inline]
    fn whole<const N: usize>(&mut self, number: usize, stores: bool, at: usize, clears: bool) -> Result<(), Stop> {
        if self.is_plain(at, N)
            && let Some(done) = self.plain(number, N, stores, at, clears)
        {
            return done;
        }
        let mut data = [0; N];
        if stores {
            self.context.whole(number, &mut data).ok_or(Stop::Unknown)?;
            if combine::append(self.state, at, &data) {
                self.touched = true;
                return Ok(());
            }
            return self.store(at, &data);
        }
        if combine::take(self.state, at, &mut data) {
            self.touched = true;
        } else {
            self.load(at, &mut data)?;
        }
        self.context.set_whole(number, &data, clears).ok_or(Stop::Unknown)
    }

    /// A move of `bytes` bytes to or from the program's own memory, without a copy between. `None`
    /// if it is to be done in the general way.
    #[inline(always)]
    fn plain(
        &mut self,
        number: usize,
        bytes: usize,
        stores: bool,
        at: usize,
        clears: bool,
    ) -> Option<Result<(), Stop>> {
        let both = bytes == 32;
        let done = if stores {
            let places = self.context.places(number, bytes)?;
            self.stored(at, bytes);
            // SAFETY: the places are those of the saved state.
            unsafe { client::store_halves(at, places, both) }
        } else {
            let places = self.context.places_to_set(number, bytes, clears)?;
            // SAFETY: as above.
            unsafe { client::load_halves(at, places, both) }
        };
        Some(if done { Ok(()) } else { Err(Stop::Memory) })
    }

    /// A move of the elements that a mask register names, between a vector register and `bytes`
    /// bytes at `at`. Neighbours are moved by one access.
    fn masked(&mut self, instruction: &Instruction, stores: bool, at: usize, bytes: usize) -> Result<(), Stop> {
        let register = instruction.op_register(u32::from(stores));
        let element = instruction.memory_size().element_size();
        if element == 0 || !bytes.is_multiple_of(element) {
            return Err(Stop::Unknown);
        }
        let mask = self.context.mask(instruction.op_mask().number()).ok_or(Stop::Unknown)?;
        let mut data = [0; WIDEST];
        if stores || !instruction.zeroing_masking() {
            self.context.vector(register.number(), &mut data[..bytes]).ok_or(Stop::Unknown)?;
        }
        let count = bytes / element;
        let is_named = |index: usize| index < count && mask >> index & 1 != 0;
        let mut from = 0;
        while from < count {
            let run = (from..count).take_while(|&index| is_named(index)).count();
            if run > 0 {
                let (start, end) = (from * element, (from + run) * element);
                if stores {
                    self.store(at + start, &data[start..end])?;
                } else {
                    self.load(at + start, &mut data[start..end])?;
                }
            }
            from += run.max(1);
        }
        if stores {
            return Ok(());
        }
        self.context.set_vector(register.number(), &data[..bytes.max(16)], true).ok_or(Stop::Unknown)
    }
}

fn is_aligned_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Movaps
            | M::Movapd
            | M::Movdqa
            | M::Movntdq
            | M::Movntps
            | M::Movntpd
            | M::Movntdqa
            | M::Vmovaps
            | M::Vmovapd
            | M::Vmovdqa
            | M::Vmovdqa32
            | M::Vmovdqa64
            | M::Vmovntdq
            | M::Vmovntps
            | M::Vmovntpd
            | M::Vmovntdqa
    )
}

fn is_vector_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    is_aligned_move(mnemonic)
        || matches!(
            mnemonic,
            M::Movups
                | M::Movupd
                | M::Movdqu
                | M::Lddqu
                | M::Movd
                | M::Movq
                | M::Vmovups
                | M::Vmovupd
                | M::Vmovdqu
                | M::Vlddqu
                | M::Vmovdqu8
                | M::Vmovdqu16
                | M::Vmovdqu32
                | M::Vmovdqu64
                | M::Vmovd
                | M::Vmovq
        )
}
