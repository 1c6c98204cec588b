//! Worker firmware of TRISC0, the unpack thread: waits for BRISC, runs the kernel, reports (the
//! original's `hw.py`).
#![no_std]
#![no_main]

use tilework_abi::tensix::Processor;
use tilework_rt::{firmware, worker};

firmware!(main);

fn main() -> ! {
    worker::subordinate(Processor::Trisc0)
}
