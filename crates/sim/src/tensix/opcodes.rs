//! Names of Tensix instructions, and the unit that executes each.
//!
//! The opcode is in bits 31..24 of the instruction word. Names and numbers are those of the public Blackhole header `ckernel_ops.h`; units
//! and block bits are those of BlackholeA0/TensixTile/TensixCoprocessor/STALLWAIT.md ("Block mask").

/// What executes an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    /// The front end itself: never reaches the wait gate.
    FrontEnd,
    /// `NOP`.
    Nop,
    /// Sync unit: semaphores and mutexes.
    Sync,
    /// Sync unit: latches a wait instruction at the wait gate.
    Wait,
    /// Configuration unit.
    Config,
    /// Scalar unit (ThCon).
    Scalar,
    /// Mover.
    Mover,
    /// Miscellaneous unit.
    Misc,
    /// Matrix unit (FPU).
    Matrix,
    /// Vector unit (SFPU).
    Vector,
    /// Packers.
    Packer,
    /// Unpackers.
    Unpacker,
}

/// All nine block bits.
pub(crate) const BLOCK_ALL: u16 = 0x1FF;

impl Unit {
    /// The bits of a block mask, any of which keeps an instruction of this unit from starting. `NOP` is special: only all bits
    /// together block it.
    pub(crate) fn block_bits(self) -> u16 {
        match self {
            Self::FrontEnd | Self::Nop => 0,
            Self::Misc => 0b0_0000_0001,
            Self::Sync => 0b0_0000_0010,
            Self::Packer => 0b0_0000_0101,
            Self::Unpacker => 0b0_0000_1001,
            Self::Mover => 0b0_0001_0001,
            Self::Scalar => 0b0_0010_0001,
            Self::Matrix => 0b0_0100_0000,
            Self::Config => 0b0_1000_0000,
            Self::Vector => 0b1_0000_0000,
            Self::Wait => BLOCK_ALL,
        }
    }
    /// Whether a latched wait with `mask` keeps an instruction of this unit from starting.
    pub(crate) fn is_blocked_by(self, mask: u16) -> bool {
        if self == Self::Nop { mask == BLOCK_ALL } else { self.block_bits() & mask != 0 }
    }
}

/// The unit of an instruction word; `None` for an opcode that does not exist.
pub(crate) fn unit(word: u32) -> Option<Unit> {
    mnemonic(word)?;
    Some(match word >> 24 {
        0x01 | 0x03..=0x05 => Unit::FrontEnd,
        0x02 => Unit::Nop,
        0x08..=0x18 | 0x21..=0x3A => Unit::Matrix,
        0x40 => Unit::Mover,
        0x41 | 0x4A => Unit::Packer,
        0x42 | 0x43 => Unit::Unpacker,
        0x45..=0x49 | 0x58..=0x5D | 0x60..=0x68 => Unit::Scalar,
        0x70..=0x99 => Unit::Vector,
        0xA0 | 0xA1 | 0xA3..=0xA5 => Unit::Sync,
        0xA2 | 0xA6 | 0xA7 => Unit::Wait,
        0xB0..=0xB8 => Unit::Config,
        _ => Unit::Misc,
    })
}

/// The mnemonic of an instruction word; `None` for an opcode that does not exist.
pub(crate) fn mnemonic(word: u32) -> Option<&'static str> {
    Some(match word >> 24 {
        0x01 => "MOP",
        0x02 => "NOP",
        0x03 => "MOP_CFG",
        0x04 => "REPLAY",
        0x05 => "RESOURCEDECL",
        0x08 => "MOVD2A",
        0x09 => "MOVDBGA2D",
        0x0A => "MOVD2B",
        0x0B => "MOVB2A",
        0x0C => "MOVDBGB2D",
        0x10 => "ZEROACC",
        0x11 => "ZEROSRC",
        0x12 => "MOVA2D",
        0x13 => "MOVB2D",
        0x14 => "TRNSPSRCA",
        0x15 => "RAREB",
        0x16 => "TRNSPSRCB",
        0x17 => "SHIFTXA",
        0x18 => "SHIFTXB",
        0x1A => "SETASHRMH0",
        0x1B => "SETASHRMH1",
        0x1C => "SETASHRMV",
        0x1D => "SETPKEDGOF",
        0x1E => "SETASHRMH",
        0x21 => "CLREXPHIST",
        0x22 => "CONV3S1",
        0x23 => "CONV3S2",
        0x24 => "MPOOL3S1",
        0x25 => "APOOL3S1",
        0x26 => "MVMUL",
        0x27 => "ELWMUL",
        0x28 => "ELWADD",
        0x29 => "DOTPV",
        0x30 => "ELWSUB",
        0x31 => "MPOOL3S2",
        0x32 => "APOOL3S2",
        0x33 => "GMPOOL",
        0x34 => "GAPOOL",
        0x35 => "GATESRCRST",
        0x36 => "CLEARDVALID",
        0x37 => "SETRWC",
        0x38 => "INCRWC",
        0x39 => "SETIBRWC",
        0x3A => "MFCONV3S1",
        0x40 => "XMOV",
        0x41 => "PACR",
        0x42 => "UNPACR",
        0x43 => "UNPACR_NOP",
        0x44 => "RSTDMA",
        0x45 => "SETDMAREG",
        0x46 => "FLUSHDMA",
        0x48 => "REG2FLOP",
        0x49 => "LOADIND",
        0x4A => "PACR_SETREG",
        0x4B => "TBUFCMD",
        0x50 => "SETADC",
        0x51 => "SETADCXY",
        0x52 => "INCADCXY",
        0x53 => "ADDRCRXY",
        0x54 => "SETADCZW",
        0x55 => "INCADCZW",
        0x56 => "ADDRCRZW",
        0x57 => "SETDVALID",
        0x58 => "ADDDMAREG",
        0x59 => "SUBDMAREG",
        0x5A => "MULDMAREG",
        0x5B => "BITWOPDMAREG",
        0x5C => "SHIFTDMAREG",
        0x5D => "CMPDMAREG",
        0x5E => "SETADCXX",
        0x60 => "DMANOP",
        0x61 => "ATINCGET",
        0x62 => "ATINCGETPTR",
        0x63 => "ATSWAP",
        0x64 => "ATCAS",
        0x66 => "STOREIND",
        0x67 => "STOREREG",
        0x68 => "LOADREG",
        0x70 => "SFPLOAD",
        0x71 => "SFPLOADI",
        0x72 => "SFPSTORE",
        0x73 => "SFPLUT",
        0x74 => "SFPMULI",
        0x75 => "SFPADDI",
        0x76 => "SFPDIVP2",
        0x77 => "SFPEXEXP",
        0x78 => "SFPEXMAN",
        0x79 => "SFPIADD",
        0x7A => "SFPSHFT",
        0x7B => "SFPSETCC",
        0x7C => "SFPMOV",
        0x7D => "SFPABS",
        0x7E => "SFPAND",
        0x7F => "SFPOR",
        0x80 => "SFPNOT",
        0x81 => "SFPLZ",
        0x82 => "SFPSETEXP",
        0x83 => "SFPSETMAN",
        0x84 => "SFPMAD",
        0x85 => "SFPADD",
        0x86 => "SFPMUL",
        0x87 => "SFPPUSHC",
        0x88 => "SFPPOPC",
        0x89 => "SFPSETSGN",
        0x8A => "SFPENCC",
        0x8B => "SFPCOMPC",
        0x8C => "SFPTRANSP",
        0x8D => "SFPXOR",
        0x8E => "SFP_STOCH_RND",
        0x8F => "SFPNOP",
        0x90 => "SFPCAST",
        0x91 => "SFPCONFIG",
        0x92 => "SFPSWAP",
        0x93 => "SFPLOADMACRO",
        0x94 => "SFPSHFT2",
        0x95 => "SFPLUTFP32",
        0x96 => "SFPLE",
        0x97 => "SFPGT",
        0x98 => "SFPMUL24",
        0x99 => "SFPARECIP",
        0xA0 => "ATGETM",
        0xA1 => "ATRELM",
        0xA2 => "STALLWAIT",
        0xA3 => "SEMINIT",
        0xA4 => "SEMPOST",
        0xA5 => "SEMGET",
        0xA6 => "SEMWAIT",
        0xA7 => "STREAMWAIT",
        0xB0 => "WRCFG",
        0xB1 => "RDCFG",
        0xB2 => "SETC16",
        0xB3 => "RMWCIB0",
        0xB4 => "RMWCIB1",
        0xB5 => "RMWCIB2",
        0xB6 => "RMWCIB3",
        0xB7 => "STREAMWRCFG",
        0xB8 => "CFGSHIFTMASK",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::mnemonic;

    #[test]
    fn the_opcode_is_the_top_byte() {
        assert_eq!(mnemonic(0x0200_0000), Some("NOP"));
        assert_eq!(mnemonic(0xA4FF_FFFF), Some("SEMPOST"));
        assert_eq!(mnemonic(0x2600_0001), Some("MVMUL"));
        assert_eq!(mnemonic(0x0000_0002), None);
        // `.ttinsn` cannot encode words from 0xC0000000 on.
        assert!((0xC0..=0xFF).all(|op: u32| mnemonic(op << 24).is_none()));
    }
}
