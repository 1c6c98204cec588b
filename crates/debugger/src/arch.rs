//! The cores as gdb knows them: RV32 with 32 registers and a program counter.
//!
//! Follows the GDB manual, "RISC-V Features". The description names no operating system: without
//! that, a gdb that was built for Linux would look for its dynamic linker instead of the list of
//! libraries, by which the debugger tells where kernels are.

use gdbstub::arch::{Arch, RegId, Registers};
use std::num::NonZeroUsize;

/// The architecture.
#[derive(Debug)]
pub(crate) enum Rv32 {}

/// The registers of one core.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Rv32Registers {
    /// x0 to x31.
    pub(crate) x: [u32; 32],
    /// The next instruction.
    pub(crate) pc: u32,
}

/// A register by gdb's number: 32 is the program counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rv32Register(pub(crate) usize);

/// gdb's number of the program counter.
pub(crate) const PC: usize = 32;

impl Arch for Rv32 {
    type Usize = u32;
    type Registers = Rv32Registers;
    type BreakpointKind = usize;
    type RegId = Rv32Register;

    fn target_description_xml() -> Option<&'static str> {
        Some(
            "<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">\
             <architecture>riscv:rv32</architecture><osabi>none</osabi></target>",
        )
    }
}

impl RegId for Rv32Register {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        (id <= PC).then_some((Self(id), NonZeroUsize::new(4)))
    }
}

impl Registers for Rv32Registers {
    type ProgramCounter = u32;

    fn pc(&self) -> u32 {
        self.pc
    }

    fn gdb_serialize(&self, mut write_byte: impl FnMut(Option<u8>)) {
        let words = self.x.iter().chain([&self.pc]);
        words.flat_map(|word| word.to_le_bytes()).for_each(|byte| write_byte(Some(byte)));
    }

    fn gdb_deserialize(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let words = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let places = self.x.iter_mut().chain([&mut self.pc]);
        let set = places.zip(words).map(|(place, word)| *place = word).count();
        if set == PC + 1 { Ok(()) } else { Err(()) }
    }
}
