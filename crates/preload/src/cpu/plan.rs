//! What is found out about an instruction once, when it is decoded.

use super::Context;
use super::vectors::VectorMove;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// What is found out about an instruction once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub class: Class,
    /// It may have to be atomic.
    pub locks: bool,
    /// Its operand in memory, if that is an ordinary one.
    pub memory: Option<Place>,
}

/// Instructions whose kind takes long to find out.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    /// `jcc`, with the number of its condition.
    Branch(u8),
    /// `movs` and its kin.
    String,
    /// `setcc` (true) and `cmovcc`.
    Conditional(bool, u8),
    Vector(VectorMove),
    Other,
}

/// The address of an operand: two general registers, by their numbers, and a displacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    base: Option<u8>,
    index: Option<(u8, u8)>,
    displacement: u64,
}

impl Plan {
    pub(super) fn of(instruction: &Instruction) -> Self {
        let mnemonic = instruction.mnemonic();
        let class = if instruction.is_jcc_short_or_near() {
            // The numbers of the library are one behind the processor's.
            (instruction.condition_code() as u8).checked_sub(1).map_or(Class::Other, Class::Branch)
        } else if instruction.is_string_instruction() {
            Class::String
        } else if let Some((set, condition)) = condition_of(mnemonic) {
            Class::Conditional(set, condition)
        } else {
            VectorMove::of(instruction).map_or(Class::Other, Class::Vector)
        };
        let has_memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
        let locks = has_memory && (instruction.has_lock_prefix() || mnemonic == Mnemonic::Xchg);
        Self { class, locks, memory: if has_memory { Place::of(instruction) } else { None } }
    }
}

impl Place {
    fn of(instruction: &Instruction) -> Option<Self> {
        let number = |register: Register| (register.is_gpr64()).then(|| register.number() as u8);
        let segment = matches!(instruction.memory_segment(), Register::DS | Register::SS);
        let base = match instruction.memory_base() {
            // The displacement is the address then.
            Register::None | Register::RIP => None,
            register => Some(number(register)?),
        };
        let index = match instruction.memory_index() {
            Register::None => None,
            register => Some((number(register)?, instruction.memory_index_scale().trailing_zeros() as u8)),
        };
        segment.then(|| Self { base, index, displacement: instruction.memory_displacement64() })
    }

    #[inline]
    pub(super) fn address(self, context: &Context) -> usize {
        let base = self.base.map_or(0, |number| context.numbered(number));
        let index = self.index.map_or(0, |(number, shift)| context.numbered(number) << shift);
        base.wrapping_add(index).wrapping_add(self.displacement) as usize
    }
}

/// Whether a mnemonic is `setcc` (or else `cmovcc`), and the number of its condition.
fn condition_of(mnemonic: Mnemonic) -> Option<(bool, u8)> {
    use Mnemonic as M;
    const SET: [Mnemonic; 16] = [
        M::Seto,
        M::Setno,
        M::Setb,
        M::Setae,
        M::Sete,
        M::Setne,
        M::Setbe,
        M::Seta,
        M::Sets,
        M::Setns,
        M::Setp,
        M::Setnp,
        M::Setl,
        M::Setge,
        M::Setle,
        M::Setg,
    ];
    const MOVE: [Mnemonic; 16] = [
        M::Cmovo,
        M::Cmovno,
        M::Cmovb,
        M::Cmovae,
        M::Cmove,
        M::Cmovne,
        M::Cmovbe,
        M::Cmova,
        M::Cmovs,
        M::Cmovns,
        M::Cmovp,
        M::Cmovnp,
        M::Cmovl,
        M::Cmovge,
        M::Cmovle,
        M::Cmovg,
    ];
    let find = |table: &[Mnemonic; 16]| table.iter().position(|&other| other == mnemonic).map(|at| at as u8);
    find(&SET).map(|at| (true, at)).or_else(|| find(&MOVE).map(|at| (false, at)))
}
