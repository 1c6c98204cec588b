//! Buffers of every memory on a device, and what does not fit it.

use super::super::execute::Work;
use super::super::schema::ProgramFile;
use super::super::source::Source;
use super::super::storage;
use super::*;
use crate::array::Array;
use crate::chip::{AnyChip, Device, Settings};
use std::collections::BTreeMap;
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_runtime::memory::Bank;
use tilework_runtime::{DeviceConfig, Dispatch};

/// A program with the input `x` of these fields.
fn plan(fields: &str, inputs: &BTreeMap<String, Array>) -> Plan {
    let role = "[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let source = Source::of(&format!("name = \"t\"\n[buffers.x]\nuse = \"input\"\n{fields}\n{role}"));
    let file = ProgramFile::parse(&source).unwrap();
    Plan::new(source, file, Board::P100, inputs).unwrap()
}

/// Words 1, 2, and so on.
fn words(rows: u64, columns: u64) -> Array {
    let data = (1..=rows * columns).flat_map(|n| (n as u32).to_le_bytes()).collect();
    Array { dtype: DType::U32, shape: vec![rows, columns], data }
}

/// Writes the array to the input of these fields and compares what is read.
fn comes_back(device: &mut Device, fields: &str, array: Array) -> Buffer {
    let inputs = BTreeMap::from([("x".to_owned(), array)]);
    let plan = plan(fields, &inputs);
    let mut placed = place(device.memory().unwrap(), &plan).unwrap();
    Work { plan: &plan, placed: &placed, programs: &[], inputs: &inputs }.upload(device).unwrap();
    let buffer = placed.buffers.remove(0).unwrap();
    let data = device.download(&buffer).unwrap();
    assert_eq!(storage::array(&plan.buffers[0], data).unwrap(), inputs["x"], "{fields}");
    buffer
}

#[test]
fn inputs_of_every_memory_come_back() {
    let (chip, board) = AnyChip::power_on(None, Some(Board::P100), Settings::default()).unwrap();
    let config = DeviceConfig { dispatch: Dispatch::Slow, ..DeviceConfig::new(board) };
    let mut device = Device::open(chip, config).unwrap();
    let word = "dtype = \"u32\"\n";
    comes_back(&mut device, &format!("{word}page_size = 64"), words(100, 30));
    comes_back(&mut device, &format!("{word}page_size = 64\nmemory = \"l1\""), words(100, 30));
    comes_back(&mut device, &format!("{word}layout = \"tile\"\nmemory = \"l1\""), words(64, 96));
    let tiles = "layout = \"tile\"\nmemory = \"sharded\"\n";
    let grid = "grid = [[[1, 2], [2, 3]]]";
    let height = format!("{word}{tiles}shard = {{ by = \"height\", shape = [64, 32], {grid} }}");
    comes_back(&mut device, &height, words(160, 32));
    let column =
        format!("{word}{tiles}shard = {{ by = \"block\", shape = [64, 32], {grid}, orientation = \"column\" }}");
    comes_back(&mut device, &column, words(96, 64));
    // In rows: three shards of 20 columns, of which the last has 10.
    let rows = format!("{word}memory = \"sharded\"\nshard = {{ by = \"width\", shape = [8, 20], {grid} }}");
    let buffer = comes_back(&mut device, &rows, words(8, 50));
    let mut found = [0; 80];
    for (page, core) in [(0, NocXy::new(1, 2)), (1, NocXy::new(2, 2)), (2, NocXy::new(1, 3))] {
        assert_eq!(buffer.place(page).bank, Bank::Core(core));
        device.read_l1(core, L1Addr::new(buffer.address.word()), &mut found).unwrap();
        let first = u32::from_le_bytes(found[..4].try_into().unwrap());
        assert_eq!(first, 1 + 20 * page, "the first word of the page on {core}");
    }
    assert_eq!(found[40..], [0; 40], "the last shard is padded");
    // Blocks of four bits, whose arrays are float32.
    let floats = (0..32 * 32).flat_map(|i| ((4 + i % 4) as f32).to_le_bytes()).collect();
    let array = Array { dtype: DType::F32, shape: vec![32, 32], data: floats };
    comes_back(&mut device, "dtype = \"bfp4_b\"\nlayout = \"tile\"\nmemory = \"l1\"", array);
}

#[test]
fn shards_that_do_not_fit_are_refused_with_their_place() {
    let refused = |shard: &str, reason: &str| {
        let fields = format!("dtype = \"u32\"\nlayout = \"tile\"\nmemory = \"sharded\"\nshard = {{ {shard} }}");
        let plan = plan(&fields, &BTreeMap::from([("x".to_owned(), words(128, 96))]));
        let mut memory = MemorySpace::new(Board::P100, &WORKER);
        let message = place(&mut memory, &plan).map(|_| ()).unwrap_err().to_string();
        assert!(message.starts_with("program.toml:2:"), "{message}");
        assert!(message.contains(reason), "{message}\nexpected: {reason}");
    };
    refused("by = \"height\", shape = [64, 96], grid = [[1, 2]]", "2 shards, but 1 cores");
    refused("by = \"height\", shape = [48, 96], grid = [[1, 2]]", "expected whole pages of [32, 32]");
    refused("by = \"height\", shape = [128, 64], grid = [[1, 2]]", "shards of 2 pages in width, expected all 3");
    refused("by = \"block\", shape = [64, 96], grid = [[1, 2], [1, 3]]", "block sharding needs one rectangle of cores");
}
