//! Worker firmware of BRISC, the core that starts the others and answers to host and dispatcher.
//!
//! Follows the original's `hw.py`, `dispatch.py` and `brisc.cc`, and seed 001 section 6. One
//! round: wait for a go message, read the launch message, start the other cores' kernels, run the
//! own one, wait for the others, clean up, report. Our kernels need no set-up: they read the launch
//! message themselves. For those of tt-metal each core fills in the globals that they read, and
//! this one programs the NoCs' initiators as they expect them ([`globals`]).
//!
//! Launch messages are taken in turn, eight of them, so that the next one may be written while a
//! program runs. A message stays as it is, so that the host need not write it again when its turn
//! comes round; the public firmware clears what is enabled, for go messages to workers that have no
//! program, which ours are not sent.
//!
//! Not built: loading the next kernel ahead of the go message (launch message, `preload`), a NoC
//! shared between the cores (`brisc_noc_mode` 1), remote circular buffers.
#![no_std]
#![no_main]

use tilework_abi::addr::L1Addr;
use tilework_abi::cq::layout::DONE_STREAM;
use tilework_abi::kernel::{IC_ALL, IC_INVALIDATE};
use tilework_abi::l1::{LAUNCH_ENTRIES, WORKER, core_timing, sync};
use tilework_abi::msg::{GoMsg, MODE_DEV, RUN_DONE, RUN_GO, RUN_RESET_READ_PTR_FROM_HOST};
use tilework_abi::stream::{SPACE_AVAILABLE_UPDATE, UPDATE_INC_SHIFT, reg_addr};
use tilework_abi::tensix::{
    NCRISC_RESET_PC, NCRISC_RESET_PC_OVERRIDE, Processor, SOFT_RESET_0, TRISC_RESET_PC_OVERRIDE, TRISC0_RESET_PC,
    TRISC1_RESET_PC, TRISC2_RESET_PC,
};
use tilework_rt::firmware;
use tilework_rt::globals;
use tilework_rt::noc::{Noc, NocAddr, post_register};
use tilework_rt::reg::{fence, publish, read, wait, wall_clock, write, write8};
use tilework_rt::worker::{ALL_CBS, LAUNCH_RD_PTR, Launch, SUBORDINATE_SYNC, clear_cb_counters, sync_byte};

firmware!(main);

/// Byte offset of the signal within a go message.
const SIGNAL: u32 = core::mem::offset_of!(GoMsg, signal) as u32;

/// The processors whose kernels use the NoCs.
const DATA_MOVEMENT: u32 = 1 << Processor::Brisc.index() | 1 << Processor::Ncrisc.index();

fn main() -> ! {
    write(LAUNCH_RD_PTR, 0);
    clear_cb_counters(ALL_CBS);
    globals::start(Processor::Brisc);
    globals::clear_zeros();
    start_subordinates();
    // The host waits for this in the first go message, before it chooses another.
    write8(WORKER.go.get() + SIGNAL, RUN_DONE);
    loop {
        let go = wait_for_go();
        run_program(&go);
    }
}

/// Releases the four other cores from reset at their firmware and waits until all are up.
fn start_subordinates() {
    let text = WORKER.firmware_text.map(L1Addr::get);
    write(NCRISC_RESET_PC, text[Processor::Ncrisc.index()]);
    write(TRISC0_RESET_PC, text[Processor::Trisc0.index()]);
    write(TRISC1_RESET_PC, text[Processor::Trisc1.index()]);
    write(TRISC2_RESET_PC, text[Processor::Trisc2.index()]);
    write(TRISC_RESET_PC_OVERRIDE, 0b111);
    write(NCRISC_RESET_PC_OVERRIDE, 1);
    write(SUBORDINATE_SYNC, u32::from_ne_bytes([sync::INIT; 4]));
    publish(SUBORDINATE_SYNC);
    write(SOFT_RESET_0, 0);
    wait_for_subordinates();
}

fn wait_for_subordinates() {
    wait(SUBORDINATE_SYNC, |all| all == u32::from_ne_bytes([sync::DONE; 4]));
}

/// A go message that says go.
struct Go {
    addr: u32,
    word: u32,
}

/// Waits for the go message in use to say go. The loop stores nothing but when the host resets the
/// launch messages' read pointer, and then once for each message.
fn wait_for_go() -> Go {
    loop {
        fence();
        let index = read(WORKER.go_index.get());
        let addr = WORKER.go.get() + 4 * index;
        let word = read(addr);
        let signal = (word >> (8 * SIGNAL)) as u8;
        if signal == RUN_GO {
            return Go { addr, word };
        }
        if signal == RUN_RESET_READ_PTR_FROM_HOST {
            write(LAUNCH_RD_PTR, 0);
            loop {
                fence();
                if read(addr) != word || read(WORKER.go_index.get()) != index {
                    break;
                }
            }
        }
    }
}

/// One program, from the go message to the report.
#[inline(always)]
fn run_program(go: &Go) {
    let index = read(LAUNCH_RD_PTR);
    let launch = Launch::at(index);
    let enables = launch.enables();
    let noc = launch.brisc_noc();
    let timed = read(profiler(core_timing::ENABLE)) != 0;
    let start = if timed { wall_clock() } else { 0 };
    // The kernels' text is new. This core executes more than the twenty instructions that may
    // already be on their way before it enters its kernel, and the others are told after it.
    write(IC_INVALIDATE, IC_ALL);

    if enables & !launch.self_contained() & DATA_MOVEMENT != 0 {
        globals::program_initiators();
    }
    if enables & !(1 << Processor::Brisc.index()) != 0 {
        for core in &Processor::ALL[1..] {
            if enables & 1 << core.index() != 0 {
                write8(sync_byte(*core), sync::GO);
            }
        }
    }
    if enables & 1 << Processor::Brisc.index() != 0 {
        launch.run(Processor::Brisc);
    }
    wait_for_subordinates();
    if timed {
        write_times(noc, start, wall_clock());
    }

    clear_cb_counters(launch.cb_mask());
    write8(go.addr + SIGNAL, RUN_DONE);
    if launch.mode() == MODE_DEV {
        write(LAUNCH_RD_PTR, (index + 1) % LAUNCH_ENTRIES);
        // The next go message may come as soon as the dispatcher knows: the signal above must have
        // been stored by then.
        publish(go.addr);
        report(noc, go.word);
    }
}

/// Adds one to the dispatcher's completion stream that the go message names.
#[inline(always)]
fn report(noc: u32, go: u32) {
    let [offset, x, y, _] = go.to_le_bytes();
    let stream = DONE_STREAM + u32::from(offset);
    let dispatcher = u32::from(y) << 6 | u32::from(x);
    post_register(noc, dispatcher, reg_addr(stream, SPACE_AVAILABLE_UPDATE), 1 << UPDATE_INC_SHIFT);
}

const fn profiler(word: u32) -> u32 {
    WORKER.profiler_control.get() + 4 * word
}

/// Writes the kernel's start and end to the host's slots. Both after the kernel, so that it is not
/// disturbed.
#[cold]
#[inline(never)]
fn write_times(noc: u32, start: u64, end: u64) {
    let mut noc = Noc::new(noc, Processor::Brisc as u32);
    let slot = |lo| NocAddr {
        xy: read(profiler(core_timing::NOC_XY)),
        mid: read(profiler(core_timing::ADDR_MID)),
        lo: read(profiler(lo)),
    };
    noc.write_two_words(slot(core_timing::START_LO), start);
    noc.write_two_words(slot(core_timing::END_LO), end);
    noc.write_barrier();
}
