//! Which maps are found, and which are refused.

use super::*;
use crate::elf::tests::Made;
use tilework_abi::tensix::LOCAL_BASE;

/// The text bases of the original's firmware.
const BASES: [u32; 5] = [0x3840, 0x5440, 0x5A40, 0x6040, 0x6640];

/// Five files with the given bases.
fn made(bases: [u32; 5]) -> [Made; 5] {
    bases.map(Made::firmware)
}

fn load(made: &[Made; 5], values: &MapValues) -> Result<FirmwareSet, String> {
    let mut files = FILES.into_iter().zip(made);
    let files = std::array::from_fn(|_| {
        let (name, made) = files.next().unwrap();
        FirmwareFile { name: name.to_owned(), data: made.bytes().into() }
    });
    FirmwareSet::load(&files, "map.toml", values).map_err(|e| e.to_string())
}

fn error(made: &[Made; 5], values: &MapValues) -> String {
    load(made, values).map(|set| set.map).unwrap_err()
}

/// Local data: initialised bytes with their load address, and size in memory.
fn local(made: &mut Made, load: u32, bytes: usize, memory: u32) {
    made.loads.push((LOCAL_BASE, load, vec![7; bytes], memory, 6));
}

#[test]
fn nothing_given_is_the_map_of_facts() {
    let set = load(&made(BASES), &MapValues::default()).unwrap();
    // None of these files has data of its own, so all local RAM below the stack is the kernels'.
    assert_eq!(set.map, MemoryMap { kernel_local: [LOCAL_BASE; 5], keeps_launch: false, text_cache_size: 0, ..WORKER });
}

#[test]
fn our_own_files_give_our_own_map() {
    let path = |name| format!("{}/../../firmware/prebuilt/{name}", env!("CARGO_MANIFEST_DIR"));
    let files = FILES.map(|name| {
        let data = std::fs::read(path(name)).unwrap();
        FirmwareFile { name: name.to_owned(), data: data.into() }
    });
    let text_cache_size = Some(WORKER.text_cache_size);
    let given = MapValues { keeps_launch: Some(true), text_cache_size, ..MapValues::default() };
    let (set, own) = (FirmwareSet::load(&files, "m", &given).unwrap(), FirmwareSet::prebuilt().unwrap());
    assert_eq!(MemoryMap { kernel_local: own.map.kernel_local, ..set.map }, own.map);
    for (a, b) in set.images.iter().zip(&own.images) {
        assert!(a.segments().eq(b.segments()), "{}", a.name());
    }
    for board in [Board::P100, Board::P150] {
        set.check(board, Some((DispatchLayout::Dispatcher, &prebuilt::cq_kernels().unwrap()))).unwrap();
    }
}

#[test]
fn the_files_say_where_text_and_local_data_are() {
    let mut files = made([0x4000, 0x6000, 0x5000, 0x7000, 0x8000]);
    local(&mut files[0], LOCAL_BASE, 4, 0x828);
    // This linker gave the initialisers a place.
    local(&mut files[1], 0xB000, 4, 0x20);
    let set = load(&files, &MapValues::default()).unwrap();
    let m = set.map;
    assert_eq!(m.firmware_text, [0x4000, 0x6000, 0x5000, 0x7000, 0x8000].map(L1Addr::new));
    assert_eq!(m.firmware_end, [0x5000, 0x7000, 0x6000, 0x8000, 0x82B0].map(L1Addr::new));
    assert_eq!(m.local_init, [0x82B0, 0xB000, 0xC2B0, 0xD2B0, 0xE2B0].map(L1Addr::new));
    assert_eq!(m.kernel_local[..3], [LOCAL_BASE + 0x828, LOCAL_BASE + 0x20, LOCAL_BASE]);
    let segments: Vec<_> = set.images[0].segments().map(|(at, bytes)| (at.get(), bytes.len())).collect();
    assert_eq!(segments, [(0x4000, 4), (0x82B0, 0x828)], "with zeros for what is only cleared");
}

#[test]
fn what_is_not_given_follows_what_is() {
    let given = MapValues { mailbox: Some(0x80), kernel_config: Some(0x9000), ..MapValues::default() };
    let m = load(&made(BASES), &given).unwrap().map;
    assert_eq!([m.launch, m.go, m.go_index, m.profiler_control], [0x90, 0x390, 0x3C0, 0x9E0].map(L1Addr::new));
    assert_eq!([m.launch_rd_ptr(), m.subordinate_sync()], [0x8C, 0x88].map(L1Addr::new));
    assert_eq!(m.local_init, [0x9000, 0xB000, 0xD000, 0xE000, 0xF000].map(L1Addr::new));
    assert_eq!((m.bank_table.get(), m.kernel_config_size, m.data.get()), (0x12000, 0x9000, 0x37000));
    let local_init = LocalInit { trisc2: Some(0x3_0000), ..LocalInit::default() };
    let given = MapValues { local_init, data: Some(0x4_0000), cb_stream: Some(0), ..given };
    let m = load(&made(BASES), &given).unwrap().map;
    assert_eq!((m.local_init[4].get(), m.data.get(), m.cb_stream), (0x3_0000, 0x4_0000, 0));
}

#[test]
fn what_overlaps_is_named_with_both_sides() {
    let none = MapValues::default();
    let mut files = made(BASES);
    files[1] = Made::firmware(0x3840);
    assert_eq!(
        error(&files, &none),
        "ncrisc.elf: segment 0: found 0x3840..0x3844, expected no overlap with segment 0 of brisc.elf at 0x3840..0x3844"
    );
    let mut files = made(BASES);
    files[4].loads[0].3 = 0x1C71;
    assert_eq!(
        error(&files, &none),
        "map.toml: kernel_config (not given): found 0x82b0..0x112b0, expected no overlap with segment 0 of trisc2.elf at 0x6640..0x82b1"
    );
    let given = MapValues { go: Some(0x100), ..none.clone() };
    assert_eq!(
        error(&made(BASES), &given),
        "map.toml: go: found 0x100..0x124, expected no overlap with launch (not given) of map.toml at 0x70..0x370"
    );
    let given = MapValues { mailbox: Some(0x40), ..none.clone() };
    assert_eq!(
        error(&made(BASES), &given),
        "map.toml: mailbox: found 0x40..0x50, expected no overlap with reset vector and scratch words of every map at 0x0..0x60"
    );
    let mut files = made(BASES);
    local(&mut files[2], LOCAL_BASE, 4, 8);
    let local_init = LocalInit { trisc0: Some(0x5A3C), ..LocalInit::default() };
    assert_eq!(
        error(&files, &MapValues { local_init, ..none }),
        "map.toml: local_init.trisc0: found 0x5a3c..0x5a44, expected no overlap with segment 0 of trisc0.elf at 0x5a40..0x5a44"
    );
}

#[test]
fn values_that_cannot_be_are_refused() {
    let none = MapValues::default;
    for (values, expected) in [
        (
            MapValues { launch: Some(0x18_0000), ..none() },
            "launch: found 0x180000, expected an address in L1, below 0x180000",
        ),
        (MapValues { kernel_config: Some(0x82B8), ..none() }, "kernel_config: found 0x82b8, expected a multiple of 16"),
        (MapValues { data: Some(0x3_7010), ..none() }, "data: found 0x37010, expected a multiple of 64"),
        (
            MapValues { kernel_config_size: Some(0x1_0010), ..none() },
            "kernel_config_size: found 0x10010, expected 1 to 0x10000 bytes: offsets into it have 16 bits",
        ),
        (
            MapValues { cb_stream: Some(17), ..none() },
            "cb_stream: found 17, expected at most 16: 32 circular buffers, and stream 48 counts workers",
        ),
        (
            MapValues { bank_table: Some(0x17_FFF0), ..none() },
            "bank_table: found 0x17fff0..0x180fe8, expected an end at or below 0x180000, that of L1",
        ),
    ] {
        assert_eq!(error(&made(BASES), &values), format!("map.toml: {expected}"));
    }
    // u32::MAX is far outside and overflows nothing.
    for field in 0..3 {
        let big = |f| (f == field).then_some(u32::MAX);
        let local_init = LocalInit { brisc: big(2), ..LocalInit::default() };
        let values = MapValues { mailbox: big(0), kernel_config: big(1), local_init, ..none() };
        assert!(error(&made(BASES), &values).contains("found 0xffffffff, expected an address in L1"));
    }
    assert!(load(&made(BASES), &MapValues { cb_stream: Some(u32::MAX), ..none() }).is_err());
}

#[test]
fn files_that_are_no_firmware_are_refused() {
    let mut files = made(BASES);
    files[3].loads[0].0 = LOCAL_BASE;
    files[3].loads[0].1 = LOCAL_BASE;
    assert_eq!(
        error(&files, &MapValues::default()),
        "trisc1.elf: load segments: found none in L1, expected text in L1"
    );
    // A segment in front of the entry.
    let mut files = made(BASES);
    files[0].loads.push((0x3000, 0x3000, vec![0; 4], 4, 4));
    assert_eq!(
        error(&files, &MapValues::default()),
        "brisc.elf: entry point: found 0x3840, expected 0x3000, where the text in L1 starts"
    );
    // TRISCs have 4 KiB of local RAM.
    let mut files = made(BASES);
    local(&mut files[4], LOCAL_BASE, 4, 0x1001);
    assert!(error(&files, &MapValues::default()).starts_with(
        "trisc2.elf: segment 1: found load address 0xffb00000..0xffb01001, expected L1 (0x0..0x180000) or local RAM of TRISC2"
    ));
}

#[test]
fn bank_tables_must_have_the_size_that_the_host_writes() {
    let mut files = made(BASES);
    files[0].named = vec![("l1_bank_to_noc_xy", 440), ("dram_bank_to_noc_xy", 28)];
    let set = load(&files, &MapValues::default()).unwrap();
    set.check(Board::P100, None).unwrap();
    assert_eq!(
        set.check(Board::P150, None).unwrap_err().to_string(),
        "brisc.elf: symbol dram_bank_to_noc_xy: found a table for 7 DRAM banks, expected one for 8: the DRAM banks of a p150"
    );
    files[1].named = vec![("l1_bank_to_noc_xy", 480)];
    assert_eq!(
        error(&files, &MapValues::default()),
        "ncrisc.elf: symbol l1_bank_to_noc_xy: found a table for 120 L1 banks, expected 110, as in brisc.elf"
    );
}

#[test]
fn firmware_gets_the_l1_banks_that_it_is_compiled_for() {
    let workers = |board: Board| board.workers().collect::<Vec<_>>();
    let of = |named: &[(&'static str, u32)], board| {
        let mut files = made(BASES);
        files[0].named = named.to_vec();
        load(&files, &MapValues::default()).unwrap().l1_banks(&workers(board)).map_err(|e| e.to_string())
    };
    // Our own firmware reads the number.
    assert_eq!(FirmwareSet::prebuilt().unwrap().l1_banks(&workers(Board::P100)).unwrap().len(), 118);
    assert_eq!(of(&[], Board::P100).unwrap().len(), 110);
    assert_eq!(of(&[("l1_bank_to_noc_xy", 480)], Board::P150).unwrap().len(), 120);
    assert_eq!(
        of(&[("l1_bank_to_noc_xy", 480)], Board::P100).unwrap_err(),
        "brisc.elf: symbol l1_bank_to_noc_xy: found a table for 120 L1 banks, expected one for at most 118: the workers"
    );
}

#[test]
fn a_map_that_reaches_into_the_queues_serves_slow_dispatch_only() {
    let values = MapValues { kernel_config: Some(0x1_9000), ..MapValues::default() };
    let set = load(&made(BASES), &values).unwrap();
    set.check(Board::P100, None).unwrap();
    let error = set
        .check(Board::P100, Some((DispatchLayout::Dispatcher, &prebuilt::cq_kernels().unwrap())))
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("memory map: kernel_config: found 0x19000..0x1"), "{error}");
    assert!(
        error.ends_with("on a dispatch core, expected no overlap with the command queue at 0x196c0..0xa2000; slow dispatch needs none"),
        "{error}"
    );
}
