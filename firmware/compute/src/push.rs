//! Instructions into the thread's stream.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md: a word is pushed by an
//! instruction of the core that contains it ([`ttinsn!`](crate::ttinsn!)) when it is constant, and
//! by a store ([`push`]) when it is not. Both keep their order.

use tilework_abi::tensix::cfg::{Field, Space};
use tilework_abi::tensix::insn::{Nop, Rmwcib0, Rmwcib1, Rmwcib2, Rmwcib3, Setc16, Setdmareg, Stallwait, Wrcfg};
use tilework_abi::tensix::pc_buf::TENSIX_SYNC;
use tilework_abi::tensix::{CFG_BASE, INSTRN_BUF_BASE, PC_BUF_BASE};
use tilework_rt::reg::{publish, write};

/// Pushes a constant word: `ttinsn!(Nop::build().word())`.
#[macro_export]
macro_rules! ttinsn {
    ($word:expr) => {{
        #[cfg(target_arch = "riscv32")]
        // SAFETY: the word goes to the coprocessor and changes no register of the core. Without
        // `nomem` the compiler keeps all accesses on their side of it.
        unsafe {
            ::core::arch::asm!(".4byte {word}", word = const u32::rotate_left($word, 2), options(nostack, preserves_flags))
        }
        #[cfg(not(target_arch = "riscv32"))]
        $crate::push::push($word);
    }};
}

/// Pushes a word.
#[inline(always)]
pub fn push(word: u32) {
    write(INSTRN_BUF_BASE, word);
}

/// Waits until all instructions of the thread are done.
#[inline(always)]
pub fn sync() {
    publish(PC_BUF_BASE + TENSIX_SYNC);
}

/// What `STALLWAIT` and `SEMWAIT` keep from starting (STALLWAIT.md, block mask).
pub mod block {
    /// Address counters, the scalar unit, mover, packer and unpackers.
    pub const TDMA: u32 = 1 << 0;
    /// The sync unit.
    pub const SYNC: u32 = 1 << 1;
    /// The packer.
    pub const PACK: u32 = 1 << 2;
    /// The unpackers.
    pub const UNPACK: u32 = 1 << 3;
    /// The scalar unit.
    pub const SCALAR: u32 = 1 << 5;
    /// The matrix unit.
    pub const MATH: u32 = 1 << 6;
    /// The configuration unit.
    pub const CFG: u32 = 1 << 7;
    /// The vector unit.
    pub const SFPU: u32 = 1 << 8;
}

/// What `STALLWAIT` waits for the end of (STALLWAIT.md, condition mask).
pub mod until {
    /// The scalar unit's work for the thread.
    pub const SCALAR: u32 = 1 << 0;
    /// Both unpackers' work for the thread.
    pub const UNPACK: u32 = 1 << 1 | 1 << 2;
    /// The packer's work for the thread.
    pub const PACK: u32 = 1 << 3;
    /// The matrix unit's work for the thread.
    pub const MATH: u32 = 1 << 4;
    /// SrcA's bank is the matrix unit's.
    pub const SRC_A_VALID: u32 = 1 << 7;
    /// SrcB's bank is the matrix unit's.
    pub const SRC_B_VALID: u32 = 1 << 8;
    /// Stores of the core to the configuration.
    pub const TRISC_CFG: u32 = 1 << 10;
    /// The vector unit's work for the thread.
    pub const SFPU: u32 = 1 << 11;
    /// The configuration unit's work.
    pub const CFG: u32 = 1 << 12;
}

/// The word of a `STALLWAIT`.
pub const fn stall(block: u32, until: u32) -> u32 {
    Stallwait::build().block_mask(block).condition_mask(until).word()
}

/// A word that does nothing.
pub const NOP: u32 = Nop::build().word();

/// Sets a field of the shared configuration by instructions; other fields of its word stay.
#[inline(always)]
pub fn set(field: Field, value: u32) {
    let (mask, value, index) = (field.mask(), field.put(0, value), u32::from(field.word));
    let byte = |word: u32, i: u32| word >> (8 * i) & 0xFF;
    macro_rules! byte {
        ($i:literal, $insn:ident) => {
            if byte(mask, $i) != 0 {
                push($insn::build().mask(byte(mask, $i)).new_value(byte(value, $i)).index4(index).word());
            }
        };
    }
    byte!(0, Rmwcib0);
    byte!(1, Rmwcib1);
    byte!(2, Rmwcib2);
    byte!(3, Rmwcib3);
}

/// A word of configuration, made of its fields; the others are zero.
#[derive(Clone, Copy)]
pub struct Word {
    field: Field,
    value: u32,
}

impl Word {
    /// The word of `field`, which is set to `value`.
    #[inline(always)]
    pub const fn of(field: Field, value: u32) -> Self {
        Self { field, value: field.put(0, value) }
    }
    /// Sets another field of the same word.
    #[inline(always)]
    pub const fn with(self, field: Field, value: u32) -> Self {
        debug_assert!(field.word == self.field.word);
        Self { field: self.field, value: field.put(self.value, value) }
    }
    /// The value.
    pub const fn value(self) -> u32 {
        self.value
    }
    /// Writes it: a word of the thread by an instruction, a word of the shared configuration (bank
    /// 0) by a store of the core.
    #[inline(always)]
    pub fn write(self) {
        match self.field.space {
            Space::Thread => {
                push(Setc16::build().cfg_index(u32::from(self.field.word)).new_value(self.value).word());
            }
            Space::Bank => write_word(self.field, self.value),
        }
    }
}

/// Stores the whole word of `field` in the shared configuration.
#[inline(always)]
pub fn write_word(field: Field, value: u32) {
    write(CFG_BASE + 4 * u32::from(field.word), value);
}

/// Sets GPR `gpr` of the thread.
#[inline(always)]
pub fn set_gpr(gpr: u32, value: u32) {
    push(Setdmareg::build().new_value(value & 0xFFFF).result_half_reg(2 * gpr).word());
    push(Setdmareg::build().new_value(value >> 16).result_half_reg(2 * gpr + 1).word());
}

/// Copies GPR `gpr` to the whole word of `field`, once the scalar unit is done.
#[inline(always)]
pub fn gpr_to_word(gpr: u32, field: Field) {
    ttinsn!(stall(block::CFG, until::SCALAR));
    push(Wrcfg::build().input_reg(gpr).cfg_index(u32::from(field.word)).word());
}
