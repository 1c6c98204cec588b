//! Fills in the firmware's globals, which kernels of tt-metal read (`tilework_abi::globals`).
//!
//! What never changes, the bank tables and coordinates, is stored when a core starts ([`start`]);
//! what a launch message says, for each launch with such a kernel ([`fill`]). Kernels of our own
//! read the launch message themselves, and the message says so, so that they do not wait for this.

use core::mem::offset_of;

use tilework_abi::board::{Board, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::cb::{self, CONFIG_BYTES};
use tilework_abi::globals::{self, Global, interface};
use tilework_abi::l1::{ATOMIC_RETURN, WORKER, ZEROS, ZEROS_BYTES, bank_table};
use tilework_abi::msg::{LaunchMsg, RtaOffset};
use tilework_abi::noc::init;
use tilework_abi::tensix::Processor;

use crate::niu::{Niu, READ};
use crate::noc::initiator;
use crate::reg::{read, read8, read16, write, write8, write16};

/// Translated columns of the whole chip's workers. Boards that lack some have the first ones.
const WORKER_COLUMNS: &[u8] = Board::P150.worker_columns();

fn put(global: Global, value: u32) {
    write(global.addr(), value);
}

/// Stores what does not depend on a program.
pub fn start(core: Processor) {
    let xy = Niu::new(0).my_xy();
    let (x, y) = (xy & 0x3F, xy >> 6);
    let column = WORKER_COLUMNS.iter().filter(|&&other| u32::from(other) < x).count();
    put(globals::MY_LOGICAL_X, column as u32);
    put(globals::MY_LOGICAL_Y, y - u32::from(WORKER_Y_FIRST));
    put(globals::CFG_STATE_ID, 0);
    put(globals::DEST_OFFSET_ID, 0);
    put(globals::OP_INFO_OFFSET, 0);
    if globals::moves_data(core) {
        start_data_movement();
    }
}

#[inline(always)]
fn start_data_movement() {
    for noc in 0..2 {
        let xy = Niu::new(noc).my_xy();
        write8(globals::MY_X.addr() + noc, (xy & 0x3F) as u8);
        write8(globals::MY_Y.addr() + noc, (xy >> 6) as u8);
    }
    for (at, &x) in (globals::COLUMNS.addr()..).zip(WORKER_COLUMNS) {
        write8(at, x);
    }
    for (at, y) in (globals::ROWS.addr()..).zip(WORKER_Y_FIRST..=WORKER_Y_LAST) {
        write8(at, y);
    }
    let table = WORKER.bank_table.get();
    let told = |at, seed, most| match read(table + at) {
        0 => seed,
        told if told > most => most,
        told => told,
    };
    let dram = told(bank_table::DRAM_BANKS, bank_table::SEED_BANKS, globals::MAX_DRAM_BANKS);
    let l1 = told(bank_table::L1_BANKS, bank_table::SEED_L1_BANKS, globals::MAX_L1_BANKS);
    copy(globals::DRAM_BANK_XY, table, 2 * dram);
    copy(globals::L1_BANK_XY, table + bank_table::l1_xy(0, 0, dram, l1), 2 * l1);
    clear(globals::DRAM_BANK_OFFSET);
    clear(globals::L1_BANK_OFFSET);
}

/// Copies `halves` half-words of L1.
fn copy(global: Global, from: u32, halves: u32) {
    for i in 0..halves {
        write16(global.addr() + 2 * i, read16(from + 2 * i));
    }
}

fn clear(global: Global) {
    for at in (global.addr()..global.addr() + global.bytes).step_by(4) {
        write(at, 0);
    }
}

/// Clears the zeros in L1.
pub fn clear_zeros() {
    for at in (ZEROS.get()..ZEROS.get() + ZEROS_BYTES).step_by(4) {
        write(at, 0);
    }
}

/// Stores what the launch message at `message` says to `core`.
#[cold]
#[inline(never)]
pub fn fill(message: u32, core: Processor) {
    let word = |field: usize| read(message + field as u32);
    let half = |field: usize| u32::from(read16(message + field as u32));
    let base = word(offset_of!(LaunchMsg, kernel_config_base));
    let rta = offset_of!(LaunchMsg, rta_offset) + core.index() * size_of::<RtaOffset>();
    put(globals::RTA_L1_BASE, base + half(rta + offset_of!(RtaOffset, rta)));
    put(globals::CRTA_L1_BASE, base + half(rta + offset_of!(RtaOffset, crta)));
    let origin = |field: usize| u32::from(read8(message + field as u32));
    let relative = |to: Global, logical: Global, field| {
        put(to, u32::from(read8(logical.addr()).wrapping_sub(origin(field) as u8)));
    };
    relative(globals::MY_RELATIVE_X, globals::MY_LOGICAL_X, offset_of!(LaunchMsg, sub_device_origin_x));
    relative(globals::MY_RELATIVE_Y, globals::MY_LOGICAL_Y, offset_of!(LaunchMsg, sub_device_origin_y));
    let configs = base + half(offset_of!(LaunchMsg, local_cb_offset));
    put(globals::CB_L1_BASE, configs);
    fill_interfaces(configs, word(offset_of!(LaunchMsg, local_cb_mask)), core);
    if globals::moves_data(core) {
        for kind in 0..3 {
            let base = word(offset_of!(LaunchMsg, kernel_config_base) + 4 * kind);
            let semaphores = base + half(offset_of!(LaunchMsg, sem_offset) + 2 * kind);
            write(globals::SEM_L1_BASE.addr() + 4 * kind as u32, semaphores);
        }
        let brisc_noc = read8(message + offset_of!(LaunchMsg, brisc_noc_id) as u32) & 1;
        let noc = if core == Processor::Ncrisc { brisc_noc ^ 1 } else { brisc_noc };
        put(globals::NOC_INDEX, u32::from(noc));
        for (count, counter) in globals::NOC_COUNTS {
            for noc in 0..2 {
                write(count.addr() + 4 * noc, Niu::new(noc).counter(counter));
            }
        }
    }
}

/// Stores the interfaces of the circular buffers in `mask`; their configurations are at `configs`.
#[inline(always)]
fn fill_interfaces(configs: u32, mask: u32, core: Processor) {
    let shift = if globals::moves_data(core) { 0 } else { interface::TRISC_SHIFT };
    let mut left = mask;
    while left != 0 {
        let id = left.trailing_zeros();
        let config = configs + id * CONFIG_BYTES as u32;
        let [start, size, page] = [0, 4, 12].map(|at| read(config + at) >> shift);
        let to = globals::CB_INTERFACE.addr() + id * globals::INTERFACE_BYTES;
        write(to + interface::SIZE, size);
        write(to + interface::LIMIT, start + size);
        write(to + interface::PAGE_SIZE, page);
        write(to + interface::PAGES, read(config + 8));
        write(to + interface::READ, start);
        write(to + interface::WRITE, start);
        write(to + interface::COUNTS, 0);
        write(to + interface::WRITE_TILE, 0);
        left &= left - 1;
    }
}
const _: () = assert!(cb::COUNT * globals::INTERFACE_BYTES == globals::CB_INTERFACE.bytes);

/// Programs the fields of both NIUs' initiators that kernels of tt-metal leave as the firmware set
/// them (public `noc_nonblocking_api.h`, `noc_init`): other kernels have used them since.
#[cold]
#[inline(never)]
pub fn program_initiators() {
    for noc in 0..2 {
        let niu = Niu::new(noc);
        let xy = niu.my_xy();
        for index in [initiator::WRITE, initiator::REGISTER, initiator::ATOMIC, initiator::READ] {
            let through = niu.initiator(index);
            through.wait_ready();
            through.clear_exclusion();
            through.set(init::TARG_ADDR_MID, 0);
            through.set(init::RET_ADDR_MID, 0);
            through.set(init::PACKET_TAG, 0);
        }
        niu.initiator(initiator::WRITE).set(init::TARG_ADDR_HI, xy);
        niu.initiator(initiator::REGISTER).set(init::TARG_ADDR_HI, xy);
        let atomics = niu.initiator(initiator::ATOMIC);
        atomics.set(init::RET_ADDR_LO, ATOMIC_RETURN);
        atomics.set(init::RET_ADDR_HI, xy);
        let reads = niu.initiator(initiator::READ);
        reads.set(init::CTRL, READ);
        reads.set(init::RET_ADDR_HI, xy);
    }
}
