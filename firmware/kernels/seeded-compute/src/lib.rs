//! The compute side of the seeded programs: small kernels in the manner of ours, from which one
//! wait, stall, semaphore or push can be left out or moved.
//!
//! Arguments:
//! 0. which program ([`main`]), of those that have a compute side;
//! 1. which bug: 0 for none, otherwise a number in the programs;
//! 2. L1 address of 4 KiB.
//!
//! Circular buffers 1 (input) and 2 (output) have two pages of a tile each.
#![no_std]

use tilework_abi::cb::{CONFIG_BYTES, COUNTER_MASK, acked_addr, received_addr};
use tilework_abi::tensix::insn::{Atgetm, Atrelm, Seminit, Storereg};
use tilework_abi::tensix::pc_buf::SEMAPHORE;
use tilework_abi::tensix::{MAILBOX_BASE, PC_BUF_BASE, cfg};
use tilework_compute::push::{block, push, set, set_gpr, stall, sync, until};
use tilework_compute::sync::{MATH_PACK, While};
use tilework_compute::{Cb, Compute, Format, Thread, ttinsn};
use tilework_rt::KernelContext;
use tilework_rt::reg::{publish, read, wait_reg, write};

/// Defines an image.
#[macro_export]
macro_rules! image {
    ($thread:ident) => {
        tilework_rt::kernel!(start);

        fn start(ctx: &tilework_rt::KernelContext) {
            $crate::main::<tilework_compute::$thread>(ctx);
            // The kernel has ended when its instructions have.
            tilework_compute::push::sync();
        }
    };
}

/// Circular buffers, and their pages.
const INPUT: u32 = 1;
const OUTPUT: u32 = 2;
const PAGES: u32 = 2;
/// Tiles that go through.
const TILES: u32 = 6;
/// The GPR from which counts are stored.
const COUNT_GPR: u32 = 4;
/// Words of registers that `STOREREG` reaches (STOREREG.md).
const STOREREG_WORDS: u32 = 1 << 18;
/// Distance of the mailboxes of two cores (BabyRISCV/README.md, memory map): BRISC, then the
/// TRISCs.
const MAILBOX_STRIDE: u32 = 0x1000;
/// A semaphore that no library function uses.
const TOLD: u32 = 3;
/// It as a core sees it.
const TOLD_ADDR: u32 = PC_BUF_BASE + SEMAPHORE + 4 * TOLD;
/// A mutex for what two threads configure.
const MUTEX: u32 = 2;

/// What all programs need.
struct Program<'a, T> {
    k: Compute<T>,
    ctx: &'a KernelContext,
    bug: u32,
    slot: u32,
    /// Units are reconfigured between tiles.
    reconfigures: bool,
}

/// Runs the program of the arguments on one thread.
pub fn main<T: Thread>(ctx: &KernelContext) {
    let k = Compute::<T>::new(ctx);
    let (program, bug, slot) = (k.arg(0), k.arg(1), k.arg(2));
    let mut p = Program { k, ctx, bug, slot, reconfigures: program == 11 };
    match program {
        9 => p.copy(),
        10 => p.tell(),
        11 => p.configure(),
        _ => {}
    }
}

impl<T: Thread> Program<'_, T> {
    /// Whether this is not the bug of the run: `n` is left out when it is.
    fn keeps(&self, n: u32) -> bool {
        self.bug != n
    }
    fn has(&self, n: u32) -> bool {
        self.bug == n
    }
    fn received(&self, cb: u32) -> u32 {
        received_addr(self.ctx.cb_stream, cb)
    }
    fn acked(&self, cb: u32) -> u32 {
        acked_addr(self.ctx.cb_stream, cb)
    }

    /// Configures everything; Dst is handed over as a whole.
    fn start(&mut self) -> [Cb<T>; 2] {
        let format = Format::Bf16;
        self.k.hw_configure(format, format, format, false);
        self.k.copy_tile_init(format);
        if T::MATH {
            ttinsn!(MATH_PACK.init(0, 1));
        }
        [INPUT, OUTPUT].map(|cb| self.k.cb(cb, format))
    }

    /// Copies tiles from one circular buffer to the other.
    fn copy(&mut self) {
        let [input, output] = self.start();
        for tile in 0..TILES {
            if T::UNPACK {
                self.unpack(&input, tile);
            }
            if T::MATH {
                self.math(&input, tile);
            }
            if T::PACK {
                self.pack(&output, tile);
            }
        }
    }

    fn unpack(&mut self, input: &Cb<T>, tile: u32) {
        if self.keeps(103) {
            wait_reg(self.received(INPUT), |count| count.wrapping_sub(tile) & COUNTER_MASK >= 1);
        }
        if self.has(104) {
            store_count(self.acked(INPUT), tile + 1);
        }
        self.k.copy_tile(input, tile % PAGES, 0);
        if self.has(106) {
            return write(self.acked(INPUT), tile + 1);
        }
        if self.keeps(102) {
            ttinsn!(stall(block::SCALAR, until::UNPACK));
        }
        if self.keeps(104) {
            store_count(self.acked(INPUT), tile + 1);
        }
    }

    fn math(&mut self, input: &Cb<T>, tile: u32) {
        if self.keeps(109) {
            ttinsn!(MATH_PACK.wait(block::MATH | block::SFPU | block::SYNC, While::Full));
        }
        if self.has(111) {
            ttinsn!(MATH_PACK.post());
        }
        self.k.copy_tile(input, 0, 0);
        if self.reconfigures && tile + 1 == TILES {
            if self.keeps(133) {
                ttinsn!(stall(block::CFG, until::MATH));
            }
            set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED, 1);
        }
        if self.keeps(108) {
            ttinsn!(stall(block::SYNC, until::MATH | until::SFPU));
        }
        if self.keeps(111) {
            ttinsn!(MATH_PACK.post());
        }
    }

    fn pack(&mut self, output: &Cb<T>, tile: u32) {
        if self.keeps(112) {
            wait_reg(self.acked(OUTPUT), |acked| PAGES - (tile.wrapping_sub(acked) & COUNTER_MASK) >= 1);
        }
        if self.keeps(107) {
            ttinsn!(MATH_PACK.wait(block::TDMA, While::Zero));
        }
        self.k.pack_tile(0, output, tile % PAGES);
        if self.has(110) {
            ttinsn!(MATH_PACK.get());
        }
        if self.reconfigures {
            if self.keeps(131) {
                ttinsn!(stall(block::CFG, until::PACK));
            }
            set(cfg::STACC_RELU_APPLYRELU, tile % 2);
            ttinsn!(stall(block::PACK, until::CFG));
        }
        if self.has(105) {
            write(self.received(OUTPUT), tile + 1);
        } else {
            if self.keeps(101) {
                ttinsn!(stall(block::SCALAR, until::PACK));
            }
            store_count(self.received(OUTPUT), tile + 1);
        }
        if self.keeps(110) {
            ttinsn!(stall(block::SYNC, until::PACK));
            ttinsn!(MATH_PACK.get());
        }
    }

    /// Cores tell each other of words in L1: TRISC0 by a mailbox to TRISC1, TRISC1 by a semaphore
    /// to TRISC2, which then loads what the packer has packed.
    fn tell(&mut self) {
        let (first, second) = (self.slot, self.slot + 256);
        if T::UNPACK {
            if self.has(122) {
                write(mailbox(2), 1);
            }
            self.fill(first, 121);
            if self.keeps(122) {
                write(mailbox(2), 1);
            }
        }
        if T::MATH {
            ttinsn!(Seminit::build().new_value(0).new_max(1).semaphore_mask(1 << TOLD).word());
            sync();
            if self.keeps(123) {
                read(mailbox(1));
            }
            let sum = sum(first);
            if self.has(125) {
                write(TOLD_ADDR, 0);
            }
            self.fill(second, 124);
            write(second + 64, sum);
            if self.keeps(125) {
                write(TOLD_ADDR, 0);
            }
            if self.has(123) {
                read(mailbox(1));
            }
        }
        if T::PACK {
            if self.keeps(126) {
                wait_reg(TOLD_ADDR, |value| value > 0);
            }
            sum(second);
            let out = Format::Bf16;
            self.k.hw_configure(out, out, out, false);
            let output = self.k.cb(OUTPUT, out);
            self.k.pack_tile(0, &output, 0);
            let packed = read(self.ctx.cb_config + OUTPUT * CONFIG_BYTES as u32);
            if self.keeps(127) {
                sync();
            }
            sum(packed);
        }
    }

    /// Stores 16 words, seen by everybody.
    fn fill(&self, at: u32, bug: u32) {
        for word in 0..16 {
            write(at + 4 * word, word);
        }
        if self.keeps(bug) {
            publish(at + 60);
        }
    }

    /// Threads change the configuration: what units work with, and a word of two threads.
    fn configure(&mut self) {
        self.copy();
        if T::UNPACK {
            self.shared(1);
        }
        if T::MATH {
            self.shared(2);
        }
    }

    /// Two threads set one word.
    fn shared(&self, value: u32) {
        if self.keeps(134) {
            push(Atgetm::build().index(MUTEX).word());
        }
        set(cfg::SCRATCH_SEC_VAL, value);
        if self.keeps(134) {
            ttinsn!(stall(block::SYNC, until::CFG));
            push(Atrelm::build().index(MUTEX).word());
        }
    }
}

/// The scalar unit stores a count when it comes to it.
fn store_count(addr: u32, count: u32) {
    set_gpr(COUNT_GPR, count & COUNTER_MASK);
    push(Storereg::build().data_reg(COUNT_GPR).addr_lo(addr / 4 % STOREREG_WORDS).word());
}

/// The mailbox to or from a core.
fn mailbox(core: u32) -> u32 {
    MAILBOX_BASE + MAILBOX_STRIDE * core
}

/// Loads 16 words.
fn sum(at: u32) -> u32 {
    (0..16).fold(0, |sum, word| sum + read(at + 4 * word))
}
