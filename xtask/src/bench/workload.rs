//! Workloads for libraries: programs for the cores, and the boot of third-party firmware.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tilework_abi::l1::{WORKER, sync};
use tilework_abi::noc::{self, NocXy, counter, ctrl, init};
use tilework_abi::tensix::{self, Processor};
use tilework_libttsim_client::{Client, WINDOW, strict};
use tilework_riscv::{Insn, Op, encode};

use super::compare::Row;
use crate::asm::Asm;

/// Work done and time taken.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    work: f64,
    seconds: f64,
}

impl Measured {
    /// Work in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.work / self.seconds
    }
}

/// How long a rate is measured.
const TIME: Duration = Duration::from_millis(500);
/// Word 0: progress of the program; word 1: whether it is done.
const RESULT: u32 = 0x8000;
/// Where DRAM is read to.
const READ_TO: u32 = 0x1_0000;
/// The first port of DRAM bank 0, in translated coordinates (tt-umd, `blackhole_implementation.h`).
const DRAM: NocXy = NocXy::new(17, 12);
/// Clocks after which a program or a boot must be over.
const LIMIT: u64 = 100_000_000;

/// Measures a row.
///
/// # Errors
/// If the library cannot be loaded or does not do the work.
pub(crate) fn measure(library: &OsStr, row: Row, firmware: Option<&Path>) -> Result<Measured> {
    let mut client = Client::open(library, 1 << 20)?;
    let firmware = || firmware.context("this row needs firmware");
    match row {
        Row::Busy(n) => busy(&mut client, &tiles(n)),
        Row::Idle(n) => idle(&mut client, &tiles(n), firmware()?, 10_000),
        Row::IdleSingle(n) => idle(&mut client, &tiles(n), firmware()?, 1),
        Row::Reads(n, bytes) => reads(&mut client, &tiles(n), bytes),
        Row::Boot(n) => boot(&mut client, &tiles(n), firmware()?),
    }
}

/// The first `n` Tensix tiles of an unharvested chip, row by row (BlackholeA0/NoC/README.md).
fn tiles(n: usize) -> Vec<NocXy> {
    let columns = (1..=7).chain(10..=16);
    (2..=11).flat_map(|y| columns.clone().map(move |x| NocXy::new(x, y))).take(n).collect()
}

/// Loads a program for BRISC of a tile, which stays in reset.
fn load(client: &mut Client, tile: NocXy, program: &Asm) {
    client.write_word(tile, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
    client.write(WINDOW, strict(tile), 0, &program.bytes());
    client.write(WINDOW, strict(tile), RESULT.into(), &[0; 16]);
}

/// Releases BRISC of all tiles from reset.
fn release(client: &mut Client, tiles: &[NocXy]) {
    for &tile in tiles {
        client.write_word(tile, tensix::SOFT_RESET_0, tensix::SOFT_RESET_BRISC_RUNS);
    }
}

/// Instructions of one iteration of [`busy_program`].
const BUSY_TURN: u32 = 10;

/// An endless loop of additions, a multiplication, shifts, a store, a load and a jump, with the
/// iteration count in `RESULT`.
fn busy_program() -> Asm {
    let mut asm = Asm::default();
    asm.li(5, 0x9000);
    asm.li(6, RESULT);
    asm.addi(10, 0, 3);
    asm.addi(11, 0, 5);
    let again = asm.here();
    asm.addi(7, 7, 1);
    asm.insn(Op::Add, 12, 10, 11, 0);
    asm.insn(Op::Xor, 13, 12, 7, 0);
    asm.insn(Op::Mul, 14, 13, 11, 0);
    asm.insn(Op::Sll, 15, 14, 10, 0);
    asm.sw(15, 5, 0);
    asm.lw(16, 5, 0);
    asm.insn(Op::Add, 10, 10, 16, 0);
    asm.sw(7, 6, 0);
    asm.jump(again);
    asm
}

fn busy(client: &mut Client, tiles: &[NocXy]) -> Result<Measured> {
    let program = busy_program();
    tiles.iter().for_each(|&tile| load(client, tile, &program));
    release(client, tiles);
    client.clock(1000);
    let turns = |client: &mut Client| tiles.iter().map(|&tile| u64::from(client.read_word(tile, RESULT))).sum::<u64>();
    let before = turns(client);
    let seconds = clock_for(client, (2_000_000 / tiles.len()) as u32).1;
    let done = turns(client) - before;
    ensure!(done > 0, "no tile went round");
    Ok(Measured { work: (done * u64::from(BUSY_TURN)) as f64, seconds })
}

/// Clocks in slices until enough time has passed; returns clocks and seconds.
fn clock_for(client: &Client, slice: u32) -> (u64, f64) {
    let started = Instant::now();
    let mut clocks = 0;
    // Reading the time costs as much as an idle clock, so small slices are grouped.
    let slices = (10_000 / slice).max(1);
    while started.elapsed() < TIME {
        (0..slices).for_each(|_| client.clock(slice));
        clocks += u64::from(slice) * u64::from(slices);
    }
    (clocks, started.elapsed().as_secs_f64())
}

/// Reads `bytes` bytes of DRAM `count` times from consecutive addresses, each time waiting
/// for the data.
fn reading_program(tile: NocXy, count: u32, bytes: u32) -> Asm {
    let mut asm = Asm::default();
    asm.li(5, noc::NIU0_BASE);
    asm.li(6, RESULT);
    let response = noc::COUNTERS + 4 * counter::MST_RD_RESP_RECEIVED as u32;
    asm.lw(7, 5, response);
    asm.li(9, count);
    asm.li(10, bytes);
    let fixed = [
        (init::TARG_ADDR_MID, 0),
        (init::TARG_ADDR_HI, DRAM.encode()),
        (init::RET_ADDR_LO, READ_TO),
        (init::RET_ADDR_MID, 0),
        (init::RET_ADDR_HI, tile.encode()),
        (init::CTRL, ctrl::CMD_RD | ctrl::RESP_MARKED),
        (init::AT_LEN_BE, bytes),
    ];
    for (field, value) in fixed {
        asm.li(11, value);
        asm.li(12, noc::NIU0_BASE + field);
        asm.sw(11, 12, 0);
    }
    asm.addi(17, 0, 1);
    let again = asm.here();
    asm.lw(16, 5, init::CMD_CTRL);
    asm.branch(Op::Bne, 16, 0, again);
    asm.sw(13, 5, init::TARG_ADDR_LO);
    // The coordinates may have been translated in place (NoC/MemoryMap.md, NOC_CMD_CTRL).
    asm.li(11, DRAM.encode());
    asm.sw(11, 5, init::TARG_ADDR_HI);
    asm.li(11, tile.encode());
    asm.sw(11, 5, init::RET_ADDR_HI);
    asm.sw(17, 5, init::CMD_CTRL);
    asm.addi(7, 7, 1);
    let wait = asm.here();
    asm.lw(16, 5, response);
    asm.branch(Op::Bne, 16, 7, wait);
    asm.insn(Op::Add, 13, 13, 10, 0);
    asm.addi(8, 8, 1);
    asm.sw(8, 6, 0);
    asm.branch(Op::Bltu, 8, 9, again);
    asm.sw(17, 6, 4);
    asm.stop();
    asm
}

fn reads(client: &mut Client, tiles: &[NocXy], bytes: u32) -> Result<Measured> {
    let count = (20_000 / tiles.len()) as u32;
    // Only the last address holds a pattern.
    let last = (count - 1) * bytes;
    let pattern: Vec<u8> = (0..bytes).map(|i| (i * 7 + 3) as u8).collect();
    client.write(WINDOW, strict(DRAM), last.into(), &pattern);
    for &tile in tiles {
        load(client, tile, &reading_program(tile, count, bytes));
    }
    release(client, tiles);
    let started = Instant::now();
    let mut left = tiles.to_vec();
    run_until(client, 1000, |client| {
        left.retain(|&tile| client.read_word(tile, RESULT + 4) == 0);
        left.is_empty()
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let mut got = vec![0; bytes as usize];
    client.read(WINDOW, strict(tiles[0]), READ_TO.into(), &mut got);
    ensure!(got == pattern, "the last bytes are not what DRAM holds");
    Ok(Measured { work: f64::from(count) * tiles.len() as f64, seconds })
}

/// Clocks in steps until `done`.
fn run_until(client: &mut Client, step: u32, mut done: impl FnMut(&mut Client) -> bool) -> Result<()> {
    let mut clocks = 0;
    while !done(client) {
        ensure!(clocks < LIMIT, "not done after {clocks} clocks");
        client.clock(step);
        clocks += u64::from(step);
    }
    Ok(())
}

/// Loads third-party firmware into all tiles, as the host of `boopdotpng/blackhole-py` does
/// (`device.py`).
fn load_firmware(client: &mut Client, tiles: &[NocXy], folder: &Path) -> Result<()> {
    let mut image = Vec::new();
    for core in Processor::ALL {
        let path = folder.join(format!("{}.elf", core.name().to_lowercase()));
        let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let segments = segments(&bytes).with_context(|| format!("{} is no 32-bit ELF file", path.display()))?;
        for (addr, data) in segments {
            // Initial contents of local RAM are staged in L1; the core's start-up code copies them.
            let staged = WORKER.local_init[core.index()].get();
            image.push((if addr >= tensix::LOCAL_BASE { staged + (addr - tensix::LOCAL_BASE) } else { addr }, data));
        }
    }
    let jump = Insn { op: Op::Jal, rd: 0, rs1: 0, rs2: 0, imm: WORKER.firmware_text[0].get().cast_signed() };
    let jump = encode(jump).context("the firmware is too far away for a jump")?;
    image.push((0, jump.to_le_bytes().to_vec()));
    image.push((WORKER.go.get(), vec![0, 0, 0, sync::INIT]));
    let starts = [tensix::TRISC0_RESET_PC, tensix::TRISC1_RESET_PC, tensix::TRISC2_RESET_PC];
    for &tile in tiles {
        client.write_word(tile, tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
        for (addr, data) in &image {
            client.write(WINDOW, strict(tile), (*addr).into(), data);
        }
        for (reg, text) in starts.into_iter().zip(&WORKER.firmware_text[2..]) {
            client.write_word(tile, reg, text.get());
        }
        client.write_word(tile, tensix::NCRISC_RESET_PC, WORKER.firmware_text[1].get());
    }
    Ok(())
}

/// Loadable segments: physical address and bytes, including trailing zeros (ELF specification,
/// program header, 32 bits).
fn segments(elf: &[u8]) -> Option<Vec<(u32, Vec<u8>)>> {
    let word = |at: usize| Some(u32::from_le_bytes(elf.get(at..at + 4)?.try_into().ok()?));
    let half = |at: usize| Some(usize::from(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?)));
    // Magic, class 1 (32 bits).
    if !elf.starts_with(b"\x7FELF\x01") {
        return None;
    }
    let (table, entry, count) = (word(28)? as usize, half(42)?, half(44)?);
    let mut out = Vec::new();
    for header in (0..count).map(|i| table + i * entry) {
        const LOAD: u32 = 1;
        let [kind, offset, virt, phys, size, room] = [0, 4, 8, 12, 16, 20].map(|at| word(header + at));
        let (offset, size) = (offset? as usize, size? as usize);
        if kind? != LOAD || room? == 0 {
            continue;
        }
        let mut data = elf.get(offset..offset + size)?.to_vec();
        data.resize(room? as usize, 0);
        out.push((if phys? == 0 { virt? } else { phys? }, data));
    }
    Some(out)
}

/// Whether the firmware of a tile waits for work, by its go message and the bytes of its
/// subordinate cores. NCRISC may still be loading.
fn is_booted(client: &mut Client, tile: NocXy) -> bool {
    let go = client.read_word(tile, WORKER.go.get()) >> 24;
    let [nc, t0, t1, t2] = client.read_word(tile, WORKER.subordinate_sync().get()).to_le_bytes();
    go == u32::from(sync::DONE)
        && [t0, t1, t2] == [sync::DONE; 3]
        && (nc == sync::DONE || nc == sync::INIT_SYNC_REGISTERS)
}

fn boot(client: &mut Client, tiles: &[NocXy], folder: &Path) -> Result<Measured> {
    load_firmware(client, tiles, folder)?;
    release(client, tiles);
    let started = Instant::now();
    let mut left = tiles.to_vec();
    run_until(client, 50, |client| {
        while left.last().is_some_and(|&tile| is_booted(client, tile)) {
            left.pop();
        }
        left.is_empty()
    })?;
    Ok(Measured { work: 1.0, seconds: started.elapsed().as_secs_f64() })
}

fn idle(client: &mut Client, tiles: &[NocXy], folder: &Path, slice: u32) -> Result<Measured> {
    boot(client, tiles, folder)?;
    // Lets the boot end, so that every core polls.
    client.clock(10_000);
    let (clocks, seconds) = clock_for(client, slice);
    Ok(Measured { work: clocks as f64, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiles_are_those_of_an_unharvested_chip() {
        assert_eq!(tiles(140).len(), 140);
        assert_eq!((tiles(140)[0], tiles(140)[139]), (NocXy::new(1, 2), NocXy::new(16, 11)));
    }

    #[test]
    fn the_busy_loop_is_as_long_as_it_says() {
        // Six instructions set it up; the last is the jump back.
        assert_eq!(busy_program().here() as u32, 6 + BUSY_TURN);
    }

    #[test]
    fn segments_of_a_file_made_by_hand() {
        let mut elf = vec![0; 52 + 32];
        elf[..5].copy_from_slice(b"\x7FELF\x01");
        elf[28] = 52;
        elf[42] = 32;
        elf[44] = 1;
        for (at, value) in [(0, 1u8), (4, 84), (8, 0x10), (12, 0x20), (16, 2), (20, 4)] {
            elf[52 + at] = value;
        }
        elf.extend([7, 8]);
        assert_eq!(segments(&elf), Some(vec![(0x20, vec![7, 8, 0, 0])]));
        assert_eq!(segments(&elf[..60]), None);
        assert_eq!(segments(b"no ELF"), None);
    }
}
