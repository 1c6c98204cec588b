//! The tests of the interpreter's table of instructions, of its limits and of what leads to
//! accesses, which stand in their files. The library itself cannot be linked into a test, because
//! its functions have the names of the C library's.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

#[path = "../src/client.rs"]
#[allow(dead_code, reason = "the table reads the program's memory, and no more")]
mod client;
#[path = "../src/cpu/leads.rs"]
mod leads;
#[path = "../src/cpu/limits.rs"]
mod limits;
#[path = "../src/cpu/table.rs"]
#[allow(dead_code, reason = "the interpreter uses the rest")]
mod table;

/// What the table keeps of an instruction besides its bytes: here, its second operand.
mod plan {
    use iced_x86::Instruction;

    #[derive(Clone, Copy)]
    pub(super) struct Plan {
        pub immediate: u64,
    }

    impl Plan {
        pub(super) const NOTHING: Self = Self { immediate: 0 };

        pub(super) fn of(instruction: &Instruction) -> Self {
            Self { immediate: if instruction.op_count() == 2 { instruction.immediate(1) } else { 0 } }
        }
    }
}
