//! What is found out about an instruction once, when it is decoded.

use super::context::{Context, NONE};
use super::native::Usage;
use super::vectors::VectorMove;
use iced_x86::{Code as C, Instruction, Mnemonic, OpKind, Register};

/// What is found out about an instruction once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub class: Class,
    /// The first operand, which is the destination of most, and its bytes.
    pub a: Operand,
    pub a_bytes: u8,
    /// The second.
    pub b: Operand,
    pub b_bytes: u8,
    /// There is a third, which is an immediate.
    pub third: bool,
    pub immediate: u64,
    /// The operand in memory, if there is an ordinary one.
    pub memory: Option<Place>,
    /// Its bytes.
    pub len: u8,
}

/// What an instruction does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Class {
    /// `mov` and its kin: what is narrower is zero-extended.
    Move,
    /// `mov` to the stack pointer, which may lead to another stack.
    MoveStack,
    SignExtend,
    Lea,
    Arithmetic(Arithmetic),
    Increment,
    Decrement,
    Negate,
    Not,
    Shift(Shift),
    Push,
    Pop,
    Call,
    Return,
    Leave,
    Jump,
    /// `jcc`, with the number of its condition.
    Branch(u8),
    /// `setcc`
    Set(u8),
    /// `cmovcc`
    MoveIf(u8),
    /// Signed, with two or three operands.
    Multiply,
    /// Division of the register pair; true: signed.
    Divide(bool),
    Nothing,
    Fence,
    ClearUpper,
    /// `movs` and its kin.
    String,
    Vector(VectorMove),
    /// The processor carries it out, with the program's registers.
    Native(Usage),
    Unknown,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arithmetic {
    Add,
    Sub,
    Compare,
    And,
    Or,
    Xor,
    Test,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shift {
    Left,
    Right,
    Signed,
}

/// An operand of an instruction on general registers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    None,
    /// The low bytes of a general register, by its number.
    Register(u8),
    /// Its second byte.
    High(u8),
    Immediate,
    Memory,
}

/// The address of an operand: two general registers, by their numbers, or [`NONE`], and a
/// displacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    displacement: u64,
    base: u8,
    index: u8,
    shift: u8,
    /// The thread's own memory: `FS`.
    of_thread: bool,
}

impl Operand {
    /// Operand `op`, and its bytes; `None` if it is none of these.
    fn of(instruction: &Instruction, op: u32, place: Option<Place>) -> Option<(Self, u8)> {
        if op >= instruction.op_count() {
            return Some((Self::None, 0));
        }
        match instruction.op_kind(op) {
            OpKind::Register => {
                let register = instruction.op_register(op);
                let number = register.full_register().number() as u8;
                let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
                let operand = if is_high { Self::High(number) } else { Self::Register(number) };
                register.is_gpr().then_some((operand, register.size() as u8))
            }
            OpKind::Memory => {
                let bytes = instruction.memory_size().size();
                // `lea` has an operand without bytes.
                (place.is_some() && matches!(bytes, 0 | 1 | 2 | 4 | 8)).then_some((Self::Memory, bytes as u8))
            }
            OpKind::NearBranch64 => Some((Self::Immediate, 8)),
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Some((Self::Immediate, 0)),
            _ => None,
        }
    }
}

impl Plan {
    /// Of no instruction.
    pub(super) const NOTHING: Self = Self {
        class: Class::Unknown,
        a: Operand::None,
        a_bytes: 0,
        b: Operand::None,
        b_bytes: 0,
        third: false,
        immediate: 0,
        memory: None,
        len: 0,
    };

    pub(super) fn of(instruction: &Instruction) -> Self {
        let operands = 0..instruction.op_count();
        let has_memory = operands.clone().any(|op| instruction.op_kind(op) == OpKind::Memory);
        let memory = if has_memory { Place::of(instruction) } else { None };
        let plan = Self { memory, len: instruction.len() as u8, ..Self::NOTHING };
        let kinds = Operand::of(instruction, 0, memory).zip(Operand::of(instruction, 1, memory));
        // A locked instruction is atomic where the processor does it.
        if let Some(((a, a_bytes), (b, b_bytes))) = kinds
            && !instruction.has_lock_prefix()
            && let Some(class) = Class::of_integers(instruction)
        {
            let immediate = if instruction.op0_kind() == OpKind::NearBranch64 {
                instruction.near_branch64()
            } else {
                operands.rev().find_map(|op| instruction.try_immediate(op).ok()).unwrap_or(0)
            };
            let third = instruction.op_count() == 3;
            return Self { class, a, a_bytes, b, b_bytes, third, immediate, ..plan };
        }
        let class = if instruction.is_string_instruction() {
            Class::String
        } else {
            let native = || Usage::of(instruction).map_or(Class::Unknown, Class::Native);
            VectorMove::of(instruction).map_or_else(native, Class::Vector)
        };
        Self { class, ..plan }
    }
}

impl Class {
    /// Of an instruction whose operands are of [`Operand`].
    fn of_integers(instruction: &Instruction) -> Option<Self> {
        use Mnemonic as M;
        let mnemonic = instruction.mnemonic();
        let sets_stack = instruction.op_count() > 0 && instruction.op0_register() == Register::RSP;
        Some(match mnemonic {
            M::Mov if sets_stack => Self::MoveStack,
            M::Movsxd | M::Pop if sets_stack => return None,
            M::Mov | M::Movnti | M::Movzx => Self::Move,
            M::Movsx | M::Movsxd => Self::SignExtend,
            M::Lea if is_plain(instruction) => Self::Lea,
            M::Add => Self::Arithmetic(Arithmetic::Add),
            M::Sub => Self::Arithmetic(Arithmetic::Sub),
            M::Cmp => Self::Arithmetic(Arithmetic::Compare),
            M::And => Self::Arithmetic(Arithmetic::And),
            M::Or => Self::Arithmetic(Arithmetic::Or),
            M::Xor => Self::Arithmetic(Arithmetic::Xor),
            M::Test => Self::Arithmetic(Arithmetic::Test),
            M::Inc => Self::Increment,
            M::Dec => Self::Decrement,
            M::Neg => Self::Negate,
            M::Not => Self::Not,
            M::Shl => Self::Shift(Shift::Left),
            M::Shr => Self::Shift(Shift::Right),
            M::Sar => Self::Shift(Shift::Signed),
            M::Push if matches!(instruction.code(), C::Push_r64 | C::Push_rm64 | C::Pushq_imm8 | C::Pushq_imm32) => {
                Self::Push
            }
            M::Pop if instruction.code() == C::Pop_r64 => Self::Pop,
            M::Call if matches!(instruction.code(), C::Call_rel32_64 | C::Call_rm64) => Self::Call,
            // A shadow stack would not know of it.
            M::Ret if instruction.op_count() == 0 => Self::Return,
            M::Leave if instruction.code() == C::Leaveq => Self::Leave,
            M::Jmp if instruction.is_jmp_short_or_near() || instruction.code() == C::Jmp_rm64 => Self::Jump,
            M::Imul if instruction.op_count() > 1 => Self::Multiply,
            M::Div => Self::Divide(false),
            M::Idiv => Self::Divide(true),
            M::Nop | M::Pause | M::Endbr64 => Self::Nothing,
            M::Sfence | M::Lfence | M::Mfence => Self::Fence,
            M::Vzeroupper => Self::ClearUpper,
            // The numbers of the library are one behind the processor's.
            _ if instruction.is_jcc_short_or_near() => {
                Self::Branch((instruction.condition_code() as u8).checked_sub(1)?)
            }
            _ => {
                let (sets, condition) = condition_of(mnemonic).filter(|_| !sets_stack)?;
                if sets { Self::Set(condition) } else { Self::MoveIf(condition) }
            }
        })
    }
}

impl Place {
    fn of(instruction: &Instruction) -> Option<Self> {
        let number = |register: Register| match register {
            // The displacement is the address then.
            Register::None | Register::RIP => Some(NONE),
            _ => register.is_gpr64().then(|| register.number() as u8),
        };
        let (base, index) = (number(instruction.memory_base())?, number(instruction.memory_index())?);
        let shift = instruction.memory_index_scale().trailing_zeros() as u8;
        let segment = instruction.memory_segment();
        let of_thread = segment == Register::FS;
        let displacement = instruction.memory_displacement64();
        (segment != Register::GS).then_some(Self { displacement, base, index, shift, of_thread })
    }

    #[inline]
    pub(super) fn address(self, context: &Context) -> usize {
        let (base, index) = (context.numbered(self.base), context.numbered(self.index) << self.shift);
        let of_thread = if self.of_thread { thread_base() } else { 0 };
        base.wrapping_add(index).wrapping_add(self.displacement).wrapping_add(of_thread) as usize
    }
}

/// What `FS` adds.
fn thread_base() -> u64 {
    let base: u64;
    // SAFETY: the C library keeps the base of FS in its first word, and this thread is one of the
    // C library's.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly)) };
    base
}

/// Whether an operand has its address by itself: for `lea` no segment counts, and the width of the
/// address is that of its registers.
fn is_plain(instruction: &Instruction) -> bool {
    let narrow = [instruction.memory_base(), instruction.memory_index()].iter().any(|register| register.size() == 4);
    !narrow && instruction.memory_segment() != Register::FS
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
