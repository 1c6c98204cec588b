//! Moves between vector registers and memory, whole or masked.

use super::Stop;
use super::exec::Cpu;
use iced_x86::{EncodingKind, Mnemonic, OpKind, Register};

/// The most bytes of a vector register.
const WIDEST: usize = 64;

impl Cpu<'_> {
    /// Moves of vector registers, whole or their lowest word.
    pub(super) fn vector(&mut self, mnemonic: Mnemonic) -> Result<(), Stop> {
        let instruction = self.instruction;
        if !is_vector_move(mnemonic) || instruction.op_count() != 2 {
            return Err(Stop::Unknown);
        }
        let mut data = [0; WIDEST];
        let memory_bytes = instruction.memory_size().size();
        let is_memory = |op| instruction.op_kind(op) == OpKind::Memory;
        let bytes = if is_memory(0) || is_memory(1) { memory_bytes } else { return Err(Stop::Unknown) };
        if bytes == 0 || bytes > WIDEST {
            return Err(Stop::Unknown);
        }
        let at = self.at()?;
        let register = instruction.op_register(u32::from(is_memory(0)));
        if !register.is_vector_register() || register.is_mm() {
            return Err(Stop::Unknown);
        }
        // An aligned move that is not aligned traps on the processor.
        if is_aligned_move(mnemonic) && !at.is_multiple_of(bytes) {
            return Err(Stop::Unknown);
        }
        if instruction.has_op_mask() {
            return self.masked(register, is_memory(0), at, bytes);
        }
        if is_memory(0) {
            self.context.vector(register.number(), &mut data[..bytes]).ok_or(Stop::Unknown)?;
            return self.store(at, &data[..bytes]);
        }
        self.load(at, &mut data[..bytes])?;
        // A move to a part of the low half clears the rest of it; one with a VEX prefix, all above.
        let legacy = matches!(instruction.encoding(), EncodingKind::Legacy);
        let len = bytes.max(16);
        self.context.set_vector(register.number(), &data[..len], !legacy).ok_or(Stop::Unknown)
    }

    /// A move of the elements that a mask register names, between a vector register and `bytes`
    /// bytes at `at`. Neighbours are moved by one access.
    fn masked(&mut self, register: Register, stores: bool, at: usize, bytes: usize) -> Result<(), Stop> {
        let instruction = self.instruction;
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

    /// `vzeroupper`: what is above the low halves of the first sixteen vector registers is zero.
    pub(super) fn clear_upper(&mut self) -> Result<(), Stop> {
        for number in 0..16 {
            let mut low = [0; 16];
            self.context.vector(number, &mut low).ok_or(Stop::Unknown)?;
            self.context.set_vector(number, &low, true).ok_or(Stop::Unknown)?;
        }
        Ok(())
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
