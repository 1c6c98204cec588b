//! Hosts that do what the interface does not say: calls from several threads and from call-backs,
//! wrong accesses, polling a stopped chip. Through the C functions themselves.

mod common;

use common::{alone, alone_and_well, text};
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tilework::*;
use tilework_abi::noc::{NIU0_BASE, NocXy};
use tilework_abi::tlb::{self, Bar, Ordering as Order, Window, WindowSize};
use tilework_abi::{board, tensix};
use tilework_riscv::{Insn, Op, encode};

const TILE: NocXy = NocXy::new(1, 2);
/// The first port of a DRAM bank.
const DRAM: NocXy = NocXy::new(17, 12);
/// The idle PCIe tile, and a place without a tile's content (`tilework board`).
const IDLE_PCIE: NocXy = NocXy::new(11, 0);
const EMPTY: NocXy = NocXy::new(8, 1);
const L1_WORD: u64 = 0x100;

fn bar(bar: Bar) -> u64 {
    let [low, high] = [0, 4].map(|at| u64::from(libttsim_pci_config_rd32(0, bar.config_offset() + at)));
    (high << 32 | low) & !0xF
}

fn bus_read(address: u64, len: usize) -> Vec<u8> {
    // The library must not need what was there before.
    let mut out: Vec<MaybeUninit<u8>> = Vec::with_capacity(len);
    let size = u32::try_from(len).unwrap();
    // SAFETY: there is room for so many bytes, and the library fills them all.
    unsafe {
        libttsim_pci_mem_rd_bytes(address, out.as_mut_ptr().cast(), size);
        out.set_len(len);
    }
    // SAFETY: filled by the library.
    out.into_iter().map(|byte| unsafe { byte.assume_init() }).collect()
}

fn bus_write(address: u64, data: &[u8]) {
    // SAFETY: these are the bytes of a slice.
    unsafe { libttsim_pci_mem_wr_bytes(address, data.as_ptr().cast(), u32::try_from(data.len()).unwrap()) }
}

/// Makes a small window show `window`; returns the bus address of what it shows.
fn map(index: u32, window: Window) -> u64 {
    let offset = window.address % tlb::SIZE_2M;
    let window = Window { ordering: Some(Order::Strict), address: window.address - offset, ..window };
    let words = window.encode(WindowSize::of_window(index));
    for (word, at) in words.into_iter().zip((0..).step_by(4)) {
        bus_write(bar(Bar::Bar0) + tlb::REGS + tlb::REG_BYTES * u64::from(index) + at, &word.to_le_bytes());
    }
    bar(Bar::Bar0) + tlb::window_offset(index) + offset
}

fn read(index: u32, tile: NocXy, address: u64, len: usize) -> Vec<u8> {
    bus_read(map(index, Window::unicast(tile, address)), len)
}

fn write(index: u32, tile: NocXy, address: u64, data: &[u8]) {
    bus_write(map(index, Window::unicast(tile, address)), data);
}

const fn insn(op: Op, rd: u8, rs1: u8, rs2: u8, imm: i32) -> Insn {
    Insn { op, rd, rs1, rs2, imm }
}

/// Starts BRISC of [`TILE`] with a program.
fn start(program: &[Insn]) {
    let bytes: Vec<u8> = program.iter().flat_map(|&insn| encode(insn).unwrap().to_le_bytes()).collect();
    write(0, TILE, tensix::SOFT_RESET_0.into(), &tensix::SOFT_RESET_ALL_CORES.to_le_bytes());
    write(0, TILE, 0, &bytes);
    write(0, TILE, tensix::SOFT_RESET_0.into(), &tensix::SOFT_RESET_BRISC_RUNS.to_le_bytes());
}

/// Counts up the word at 0x200 for ever.
const COUNTER: u64 = 0x200;
const COUNT: [Insn; 3] = [insn(Op::Addi, 1, 1, 0, 1), insn(Op::Sw, 0, 0, 1, 0x200), insn(Op::Jal, 0, 0, 0, -8)];

fn counter() -> u32 {
    u32::from_le_bytes(read(0, TILE, COUNTER, 4).try_into().unwrap())
}

/// What the library said.
fn messages(stderr: &[u8]) -> Vec<String> {
    text(stderr).lines().filter_map(|line| Some(line.split_once("tilework: ")?.1.to_owned())).collect()
}

#[test]
fn calls_of_several_threads_wait_for_each_other() {
    let ended = alone_and_well("calls_of_several_threads_wait_for_each_other", || {
        libttsim_init();
        std::thread::scope(|scope| {
            for thread in 0..4_u32 {
                scope.spawn(move || {
                    let tile = NocXy::new(1, 2 + thread as u8);
                    for turn in 0..200_u32 {
                        let data = (thread << 16 | turn).to_le_bytes();
                        write(thread, tile, L1_WORD, &data);
                        assert_eq!(read(thread, tile, L1_WORD, 4), data, "thread {thread}, turn {turn}");
                        libttsim_clock(3);
                    }
                });
            }
        });
        libttsim_exit();
    });
    assert_eq!(messages(&ended.stderr), [""; 0]);
}

static NESTED: AtomicUsize = AtomicUsize::new(1);
/// Where a call-back writes; null for nowhere.
static CALLERS: std::sync::atomic::AtomicPtr<u8> = std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());

extern "C" fn dma_read(address: u64, out: *mut c_void, size: u32) {
    for _ in 0..NESTED.load(Ordering::Relaxed) {
        libttsim_clock(1);
        assert_eq!(libttsim_pci_config_rd32(0, 0), u32::MAX);
    }
    let callers = CALLERS.load(Ordering::Relaxed);
    if !callers.is_null() {
        // SAFETY: the test's buffer has so many bytes.
        unsafe { callers.write_bytes(0xEE, size as usize) };
    }
    // SAFETY: the library gives a buffer of so many bytes.
    unsafe { out.cast::<u8>().write_bytes(address.to_le_bytes()[0], size as usize) };
}

static WRITTEN: AtomicU32 = AtomicU32::new(0);

extern "C" fn dma_write(_: u64, data: *const c_void, size: u32) {
    assert_eq!(size, 4);
    // SAFETY: the library gives so many bytes.
    WRITTEN.store(unsafe { data.cast::<u32>().read_unaligned() }, Ordering::Relaxed);
}

/// A place in the host's memory as the device reaches it.
const HOST: u64 = 1 << 60;

#[test]
fn a_call_from_a_call_back_is_refused_and_told() {
    let ended = alone_and_well("a_call_from_a_call_back_is_refused_and_told", || {
        libttsim_set_pci_dma_mem_callbacks(Some(dma_read), Some(dma_write));
        libttsim_init();
        assert_eq!(read(1, board::PCIE, HOST + 0x40, 64), [0x40; 64]);
        write(1, board::PCIE, HOST, &7_u32.to_le_bytes());
        libttsim_clock(10_000);
        assert_eq!(WRITTEN.load(Ordering::Relaxed), 7);
        assert_eq!(libttsim_pci_config_rd32(0, 0), 0xB140_1E52, "the call after it is none from a call-back");
    });
    let said = messages(&ended.stderr);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].starts_with("libttsim_clock was called from a call-back"), "{said:?}");
    assert!(said[1].starts_with("libttsim_pci_config_rd32 was called from a call-back"), "{said:?}");
}

#[test]
fn call_backs_may_write_the_buffer_that_is_read_into() {
    alone_and_well("call_backs_may_write_the_buffer_that_is_read_into", || {
        NESTED.store(0, Ordering::Relaxed);
        libttsim_set_pci_dma_mem_callbacks(Some(dma_read), Some(dma_write));
        libttsim_init();
        let address = map(1, Window::unicast(board::PCIE, HOST + 0x40));
        let mut out = [0_u8; 64];
        let pointer = out.as_mut_ptr();
        CALLERS.store(pointer, Ordering::Relaxed);
        // SAFETY: the buffer has so many bytes.
        unsafe { libttsim_pci_mem_rd_bytes(address, pointer.cast(), 64) };
        // SAFETY: it is still there; only the library and the call-back had the pointer.
        let out: [u8; 64] = unsafe { pointer.cast::<[u8; 64]>().read() };
        assert_eq!(out, [0x40; 64]);
    });
}

#[test]
fn messages_of_every_kind_are_bounded() {
    let ended = alone_and_well("messages_of_every_kind_are_bounded", || {
        let often = |what: &dyn Fn()| (0..300).for_each(|_| what());
        often(&|| libttsim_clock(1));
        libttsim_set_pci_dma_mem_callbacks(Some(dma_read), Some(dma_write));
        libttsim_init();
        often(&|| _ = libttsim_pci_config_rd32(0, 2));
        often(&|| bus_write(0x10, &[0; 4]));
        let mut byte = 0_u8;
        // SAFETY: there is room for a byte.
        (0..300).for_each(|_| unsafe { libttsim_tile_rd_bytes(1, 2, 0, (&raw mut byte).cast(), 1) });
        NESTED.store(300, Ordering::Relaxed);
        assert_eq!(read(1, board::PCIE, HOST + 0x40, 64), [0x40; 64]);
        assert_eq!(libttsim_pci_config_rd32(0, 0), 0xB140_1E52);
    });
    let said = messages(&ended.stderr);
    assert_eq!(said.len(), 5 * 100, "{said:#?}");
    assert_eq!(said.iter().filter(|line| line.contains("further messages of this kind are left out")).count(), 5);
}

#[test]
fn a_wrong_access_of_the_host_is_told_and_the_chip_goes_on() {
    let niu = u64::from(NIU0_BASE);
    let bank = 4_u64 << 30;
    let l1 = u64::from(tensix::L1_SIZE);
    let wrong_reads = [
        ("ARC", board::ARC, 0, 4),
        ("half a register", TILE, niu + 0x44, 2),
        ("four registers", TILE, niu + 0x44, 16),
        ("no register", TILE, 0xFFC0_0000, 4),
        ("past the end of L1", TILE, l1 - 2, 4),
        ("past a bank", DRAM, bank, 64),
        ("the idle PCIe tile", IDLE_PCIE, 0, 4),
        ("an empty tile", EMPTY, 0, 4),
        ("no tile", NocXy::new(40, 40), 0, 4),
        ("the PCIe tile beside host memory", board::PCIE, 0x1000, 4),
    ];
    let name = "a_wrong_access_of_the_host_is_told_and_the_chip_goes_on";
    let ended = alone_and_well(name, || {
        libttsim_init();
        start(&COUNT);
        write(2, TILE, L1_WORD, &[7; 4]);
        let goes_on = |what: &str| {
            let before = counter();
            libttsim_clock(2000);
            assert!(counter() > before, "{what}: the core does not run any more");
            assert_eq!(read(2, TILE, L1_WORD, 4), [7; 4], "{what}");
        };
        for (what, tile, address, len) in wrong_reads {
            assert_eq!(read(1, tile, address, len), vec![0xFF; len], "{what}");
            goes_on(what);
            write(1, tile, address, &vec![0x55; len]);
            libttsim_clock(5000);
            goes_on(what);
        }
        // Reads have one place.
        let all = Window { start: TILE, multicast: true, ..Window::unicast(NocXy::new(2, 3), L1_WORD) };
        assert_eq!(bus_read(map(1, all), 4), [0xFF; 4]);
        goes_on("multicast");
    });
    let said = messages(&ended.stderr);
    // A write into the middle of L1's end, or of half a register, is as wrong as the read.
    assert_eq!(said.len(), 2 * wrong_reads.len() + 1, "{said:#?}");
    for (line, (what, ..)) in said.chunks(2).zip(wrong_reads) {
        assert!(line[0].starts_with("libttsim_pci_mem_rd_bytes: "), "{what}: {line:?}");
        assert!(line[1].starts_with("libttsim_pci_mem_wr_bytes: "), "{what}: {line:?}");
    }
    assert!(said.last().unwrap().contains("multicast"), "{said:#?}");
}

/// Lets a core fault, then reads on for so long, with pauses.
fn poll(time: Duration, pause: Duration) {
    libttsim_init();
    start(&[insn(Op::Addi, 1, 0, 0, 5), insn(Op::Illegal, 0, 0, 0, -1)]);
    libttsim_clock(1000);
    let started = Instant::now();
    while started.elapsed() < time {
        assert_eq!(read(1, TILE, L1_WORD, 4), [0xFF; 4]);
        libttsim_clock(10);
        std::thread::sleep(pause);
    }
}

const LONG: Duration = Duration::from_secs(120);
const SOON: Duration = Duration::from_millis(1);

#[test]
fn a_host_that_polls_a_stopped_chip_is_ended_with_the_fault() {
    let started = Instant::now();
    let ended = alone("a_host_that_polls_a_stopped_chip_is_ended_with_the_fault", &[], || poll(LONG, SOON));
    assert!(!ended.status.success() && started.elapsed() < LONG / 2, "{:?}", started.elapsed());
    let said = messages(&ended.stderr);
    let faults: Vec<_> = said.iter().filter(|line| line.starts_with("fault: ") && line.contains("pc 0x4")).collect();
    assert_eq!(faults.len(), 2, "{said:#?}");
    assert!(said.last().unwrap().contains("TILEWORK_ON_FAULT=ones"), "{said:#?}");
}

#[test]
fn a_host_that_wants_ones_may_poll_for_ever() {
    let name = "a_host_that_wants_ones_may_poll_for_ever";
    let ended = alone(name, &[("TILEWORK_ON_FAULT", "ones")], || poll(Duration::from_secs(8), SOON));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(messages(&ended.stderr).len(), 2);
}

#[test]
fn somebody_who_looks_at_a_stopped_chip_by_hand_is_not_ended() {
    let name = "somebody_who_looks_at_a_stopped_chip_by_hand_is_not_ended";
    let ended = alone(name, &[], || poll(Duration::from_secs(8), Duration::from_millis(1300)));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

#[test]
fn a_file_for_coverage_that_cannot_be_written_is_told_at_the_start() {
    let name = "a_file_for_coverage_that_cannot_be_written_is_told_at_the_start";
    let ended = alone(name, &[("TILEWORK_COVERAGE", "/does/not/exist.txt")], || libttsim_init());
    let said = messages(&ended.stderr);
    assert_eq!(said, ["TILEWORK_COVERAGE: /does/not/exist.txt: its folder does not exist; nothing will be written"]);
}

#[test]
fn another_word_for_what_to_do_at_a_fault_is_told() {
    let name = "another_word_for_what_to_do_at_a_fault_is_told";
    let ended = alone(name, &[("TILEWORK_ON_FAULT", "stop")], || libttsim_init());
    let said = messages(&ended.stderr);
    assert_eq!(said, ["TILEWORK_ON_FAULT is \"stop\"; abort or ones was expected"]);
}
