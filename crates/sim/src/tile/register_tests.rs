//! Every NIU, stream and tile register that real firmware loads or stores exists and takes the
//! access.
//!
//! The addresses are those that the loads and stores of the public firmware name, found by
//! disassembling tt-metal's BRISC, NCRISC and TRISC images and its `cq_prefetch`, `cq_dispatch` and
//! `cq_dispatch_subordinate` kernels for Blackhole, and those that its headers
//! (`noc_nonblocking_api.h`, `risc_common.h`, `stream_io_map.h`, `noc.c`, `brisc.cc`) and the
//! public debugger tt-exalens add. Registers of the coprocessor have tests of their own.

use super::*;
use crate::tensix::Issuer;
use tilework_riscv::Width;

fn tile() -> Tile {
    let place = Place { node: 0, x: 1, y: 2 };
    let grid = Grid::builder().add(place, NocXy::new(1, 2)).build().expect("one tile fits");
    Tile::new(place, NocXy::new(1, 2), 0, &Arc::new(grid), &CodeBook::new())
}

/// Loads as `core`, or as the NoC.
fn load(tile: &mut Tile, core: Option<Processor>, addr: u32) -> u32 {
    match tile.reach().load(core, 7, addr, Width::Word) {
        Ok(load) => load.value,
        Err(refusal) => panic!("load of {addr:#x} by {core:?}: {refusal:?}"),
    }
}

fn store(tile: &mut Tile, core: Option<Processor>, addr: u32, value: u32) {
    if let Err(refusal) = tile.reach().store(core.map(Issuer::from), 7, addr, Width::Word, value) {
        panic!("store of {value:#x} to {addr:#x} by {core:?}: {refusal:?}");
    }
}

const CLIENTS: [Option<Processor>; 3] = [Some(Processor::Brisc), Some(Processor::Ncrisc), None];

/// Fields of a request initiator that are stored to, from its start.
const INITIATOR_FIELDS: [u32; 14] =
    [0x00, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C, 0x20, 0x24, 0x28, 0x2C, 0x30, 0x34];
/// Registers of an NIU that are loaded, from its base: ids, errors, FIFO status, configuration,
/// interrupts.
const NIU_LOADED: [u32; 17] =
    [0x40, 0x44, 0x48, 0x50, 0x54, 0x58, 0x5C, 0x64, 0x68, 0x100, 0x104, 0x118, 0x130, 0x148, 0x150, 0x378, 0x37C];

#[test]
fn niu_registers_that_firmware_touches() {
    for client in CLIENTS {
        let mut tile = tile();
        for niu in [0xFFB2_0000, 0xFFB3_0000] {
            for buf in 0..4 {
                let initiator = niu + buf * 0x800;
                for field in INITIATOR_FIELDS {
                    // NOC_PACKET_TAG keeps 16 bits.
                    store(&mut tile, client, initiator + field, 0x2C00 + field);
                    assert_eq!(load(&mut tile, client, initiator + field), 0x2C00 + field);
                }
                assert_eq!(load(&mut tile, client, initiator + 0x40), 0, "NOC_CMD_CTRL is ready");
                assert_ne!(load(&mut tile, client, initiator + 0x44), 0, "NOC_NODE_ID");
            }
            for offset in NIU_LOADED {
                load(&mut tile, client, niu + offset);
            }
            // NIU_MST_*, the counts of each transaction id, NIU_SLV_*.
            for counter in 0..64 {
                assert_eq!(load(&mut tile, client, niu + 0x200 + 4 * counter), 0);
            }
            store(&mut tile, client, niu + 0x60, 0xFFFF); // NOC_CLEAR_OUTSTANDING_REQ_CNT
            // Clock gating of NIU and router, ECC, as brisc.cc and noc.c do it: old value, some low
            // bits more.
            for (offset, bits) in [(0x100, 0xF41), (0x104, 0x7_0041)] {
                let old = load(&mut tile, client, niu + offset);
                store(&mut tile, client, niu + offset, old | bits);
                assert_eq!(load(&mut tile, client, niu + offset), old | bits);
            }
            store(&mut tile, client, niu + 0x5C, 0b111);
        }
    }
}

#[test]
fn stream_registers_that_firmware_touches() {
    // Circular buffers use a stream each, dispatch 48 and up, the realtime profiler any: pages
    // acknowledged and received, counters.
    for client in CLIENTS {
        let mut tile = tile();
        for stream in 0..64 {
            let register = |index: u32| 0xFFB4_0000 + stream * 0x1000 + index * 4;
            for index in [8, 10] {
                store(&mut tile, client, register(index), 5);
                assert_eq!(load(&mut tile, client, register(index)), 5);
            }
            assert_eq!(load(&mut tile, client, register(297)), 5, "SPACE_AVAILABLE follows the size");
            store(&mut tile, client, register(270), 2 << 6);
            assert_eq!(load(&mut tile, client, register(297)), 7);
            store(&mut tile, client, register(270), 0u32.wrapping_sub(7) << 6);
            assert_eq!(load(&mut tile, client, register(297)), 0);
            for index in [4, 31] {
                store(&mut tile, client, register(index), 9);
                assert_eq!(load(&mut tile, client, register(index)), 9);
            }
        }
        store(&mut tile, client, 0xFFB4_0000 + 35 * 4, 32 << 8 | 32 << 1 | 1); // STREAM_PERF_CONFIG of brisc.cc
    }
}

/// Tile registers that hold what is stored: (offset in the block at 0xFFB12000, value).
const TILE_STORED: [(u32, u32); 30] = [
    (0x000, 7),           // performance counters: reference period, mode, start and stop
    (0x03C, 1),           // PERF_CNT_ALL
    (0x048, 0x100),       // DBG_L1_MEM_REG0
    (0x04C, 0x200),       // DBG_L1_MEM_REG1
    (0x050, 0xF),         // DBG_L1_MEM_REG2
    (0x054, 0x2207_000B), // DBG_BUS_CNTL_REG
    (0x060, 1),           // DBG_ARRAY_RD_EN
    (0x064, 2),           // DBG_ARRAY_RD_CMD
    (0x068, 0),           // DBG_FEATURE_DISABLE
    (0x070, 0x2020_2020), // CG_CTRL_HYST0
    (0x074, 0x2020_2020), // CG_CTRL_HYST1
    (0x07C, 0x2020_2020), // CG_CTRL_HYST2
    (0x0AC, 1),           // STOCH_RND_MASK0
    (0x0B0, 1),           // STOCH_RND_MASK1
    (0x0B4, 0),           // FPU_STICKY_BITS
    (0x0F0, 1),           // PERF_CNT_TDMA_PACK0
    (0x1C0, 0),           // BREAKPOINT_CTRL
    (0x1D0, 0),           // ECC_CTRL
    (0x1E4, 0),           // WDT_CNTL
    (0x200, 3),           // TIMESTAMP_DUMP_CNTL
    (0x218, 1),           // PERF_CNT_MUX_CTRL
    (0x220, 0),           // LFSR_HIT_MASK
    (0x224, 0x3FF),       // DISABLE_RESET
    (0x228, 0x6040),      // TRISC0_RESET_PC; the next two follow
    (0x234, 0b111),       // TRISC_RESET_PC_OVERRIDE
    (0x238, 0x5440),      // NCRISC_RESET_PC
    (0x23C, 1),           // NCRISC_RESET_PC_OVERRIDE
    (0x240, 0),           // DEST_CG_CTRL
    (0x244, 0x1_FFFF),    // CG_CTRL_EN
    (0x248, 1),           // CG_KICK
];

#[test]
fn tile_registers_that_firmware_and_debuggers_touch() {
    for client in CLIENTS {
        let mut tile = tile();
        for (offset, value) in TILE_STORED {
            store(&mut tile, client, 0xFFB1_2000 + offset, value);
            assert_eq!(load(&mut tile, client, 0xFFB1_2000 + offset), value, "register {offset:#x}");
        }
        for held in [0x4_7800, 0x4_7000, 0x4_0000] {
            store(&mut tile, client, 0xFFB1_21B0, held);
            assert_eq!(load(&mut tile, client, 0xFFB1_21B0), held, "soft reset");
        }
        // Wall clock: low half, high half, latched high half; then ECC, watchdog, timestamp and
        // performance counter status.
        assert_eq!([0x1F0, 0x1F4, 0x1F8].map(|o| load(&mut tile, client, 0xFFB1_2000 + o)), [7, 0, 0]);
        for offset in [0x1D4, 0x1E8, 0x1FC, 0x204, 0x100, 0x124] {
            assert_eq!(load(&mut tile, client, 0xFFB1_2000 + offset), 0, "status {offset:#x}");
        }
        // The interrupt controller: nothing is enabled.
        for offset in (0..0x138).step_by(4) {
            assert_eq!(load(&mut tile, client, 0xFFB1_3000 + offset), 0);
        }
        for offset in [0x00, 0x04, 0x0C, 0x10] {
            store(&mut tile, client, 0xFFB1_3000 + offset, 0);
            assert!(tile.reach().store(client.map(Issuer::from), 7, 0xFFB1_3000 + offset, Width::Word, 1).is_err());
        }
    }
}

#[test]
fn the_pc_buffer_override_reaches_the_pc_buffers() {
    let mut tile = tile();
    let trisc0 = Some(Processor::Trisc0);
    let pc_buf = map::PC_BUF_BASE;
    assert!(tile.reach().load(trisc0, 0, pc_buf, Width::Word).is_err(), "an empty PC buffer blocks");
    // WormholeB0/TensixTile/BabyRISCV/PCBufs.md: enable, busy, then eight bits of value.
    store(&mut tile, None, 0xFFB1_2090, 0x2A << 2 | 1);
    assert_eq!(load(&mut tile, trisc0, pc_buf), 0x2A);
}
