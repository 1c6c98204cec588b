//! How an image starts.
//!
//! [`firmware!`](crate::firmware!) is for code that starts at reset: it sets the stack pointer and
//! the core's configuration, copies the initialisers of the local data from L1 and clears the rest.
//! [`kernel!`](crate::kernel!) is for code that firmware calls at its first byte, on the firmware's
//! stack: it does the same with the kernel's part of local RAM, and reads what the kernel wants to
//! know ([`crate::context`]). The symbols come from the linker scripts (`firmware/link`).
//!
//! A kernel finds its initialisers relative to its own pc, and everything in local RAM at addresses
//! that the loader adjusts, so it runs wherever it is put.

use tilework_abi::kernel::{BINDING_WORDS, Binding};
use tilework_abi::l1::WORKER;
use tilework_abi::tensix::Processor;

/// Defines the start of a firmware image: `firmware!(main)` where `fn main() -> !`.
#[macro_export]
macro_rules! firmware {
    ($main:path) => {
        /// Entered from the start code with stack and data set up.
        #[unsafe(no_mangle)]
        extern "C" fn firmware_main() -> ! {
            $main()
        }

        // No random flushes of the L0 data cache (BabyRISCV/CSRs.md). They are of no use to code
        // that fences where it must, and cost reproducible timing.
        ::core::arch::global_asm!(
            ".section .text.start, \"ax\", @progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            $crate::__load_address!("sp", "__stack_top"),
            // Nothing here uses it; kernels of tt-metal do (`tilework_abi::globals`).
            $crate::__load_address!("gp", "__global_pointer$"),
            "    lui  t0, {no_flush} >> 12",
            "    csrs {cfg0}, t0",
            $crate::__load_address!("t0", "__data_load"),
            $crate::__copy_data_and_clear_bss!(),
            "    j    firmware_main",
            ".size _start, . - _start",
            cfg0 = const $crate::abi::kernel::CFG0,
            no_flush = const $crate::abi::kernel::CFG0_NO_PERIODIC_FLUSH,
        );
    };
}

/// Defines the start of a kernel: `kernel!(main)` where `fn main(ctx: &KernelContext)`.
#[macro_export]
macro_rules! kernel {
    ($main:path) => {
        /// Entered from the start code with data set up.
        #[unsafe(no_mangle)]
        extern "C" fn kernel_main() {
            unsafe extern "C" {
                // Defined below, where the compiler cannot see its value: the loader overwrites
                // what is linked.
                safe static __tilework_binding: $crate::abi::kernel::Binding;
            }
            $main(&$crate::KernelContext::load(&__tilework_binding))
        }

        ::core::arch::global_asm!(
            ".section .rodata.tilework_binding, \"a\", @progbits",
            ".balign 4",
            ".globl __tilework_binding",
            ".type __tilework_binding, @object",
            "__tilework_binding:",
            "    .word {b0}, {b1}, {b2}, {b3}, {b4}, {b5}",
            ".size __tilework_binding, . - __tilework_binding",
            b0 = const $crate::start::LINKED[0],
            b1 = const $crate::start::LINKED[1],
            b2 = const $crate::start::LINKED[2],
            b3 = const $crate::start::LINKED[3],
            b4 = const $crate::start::LINKED[4],
            b5 = const $crate::start::LINKED[5],
        );

        ::core::arch::global_asm!(
            ".section .text.start, \"ax\", @progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            "    lla  t0, __data_load",
            $crate::__copy_data_and_clear_bss!(),
            "    j    kernel_main",
            ".size _start, . - _start",
        );
    };
}

/// The binding as kernels are linked.
#[doc(hidden)]
pub const LINKED: [u32; BINDING_WORDS] = Binding::new(&WORKER, Processor::Brisc).words();

/// Loads the address of a symbol of the linker script into a register.
#[doc(hidden)]
#[macro_export]
macro_rules! __load_address {
    ($register:literal, $symbol:literal) => {
        concat!(
            "\n    lui  ",
            $register,
            ", %hi(",
            $symbol,
            ")",
            "\n    addi ",
            $register,
            ", ",
            $register,
            ", %lo(",
            $symbol,
            ")",
        )
    };
}

/// Copies `__data_start..__data_end` from t0 and clears `__bss_start..__bss_end`; uses t0 to t3.
#[doc(hidden)]
#[macro_export]
macro_rules! __copy_data_and_clear_bss {
    () => {
        concat!(
            $crate::__load_address!("t1", "__data_start"),
            $crate::__load_address!("t2", "__data_end"),
            "
    beq  t1, t2, 2f
1:  lw   t3, 0(t0)
    addi t0, t0, 4
    sw   t3, 0(t1)
    addi t1, t1, 4
    bne  t1, t2, 1b
2:",
            $crate::__load_address!("t1", "__bss_start"),
            $crate::__load_address!("t2", "__bss_end"),
            "
    beq  t1, t2, 4f
3:  sw   zero, 0(t1)
    addi t1, t1, 4
    bne  t1, t2, 3b
4:
",
        )
    };
}
