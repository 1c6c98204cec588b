//! What a device has sent its queue, sent again from the capture: to our kernels and to those that
//! others built, which must bring the host the same bytes.
//!
//! The kernels of others are not part of the repository. `TILEWORK_CQ_FIRMWARE` names a folder of
//! them, as `--cq-firmware` does (docs/swap.md), linked with our worker firmware;
//! `cargo xtask swap` makes one of the seeds' Python driver and runs this.

use crate::rig::Rig;
use std::path::Path;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q_LOG_UNIT, PREFETCH_Q_STALL_BIT};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::tensix::Processor;
use tilework_cq::completion::{CompletionHeader, read_event};
use tilework_cq::decode::{DecodedInner, InnerCommand, decode_stream};
use tilework_cq::{DispatchCommand, PrefetchCommand};
use tilework_runtime::firmware::{QUEUE_FILES, QueueFirmware, QueueValues};
use tilework_runtime::lower::Lowering;
use tilework_runtime::prebuilt::{self, CqKernels};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, Cores, DType, Device, DeviceConfig, KernelImage, Program, Role, UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig};

/// Workers, and pages of the arrays.
const WORKERS: u32 = 8;
const PAGES: u32 = 40;
const PAGE: u32 = 256;

/// A capture and what the device read in the meantime.
struct Recorded {
    records: Vec<u8>,
    reads: Vec<Vec<u8>>,
}

/// The program `increment`: `to` = `from` + `value`.
fn increment(from: &Buffer, to: &Buffer, slots: u32, value: u32) -> Program {
    let elf = prebuilt::kernel_elf("increment").unwrap();
    let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc).unwrap());
    let each = PAGES / WORKERS;
    let args =
        (0..WORKERS).map(|i| vec![from.address.word(), to.address.word(), i * each, each, PAGE, value, slots, 3]);
    Program::new("increment", Cores::Count(WORKERS as usize))
        .role(Role::all().kernel(Processor::Brisc, kernel))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args.collect()))
}

/// Programs, transfers, events and a trace that is replayed, all through the queue.
fn record(lowering: Lowering) -> Recorded {
    let config = DeviceConfig { capture: true, lowering, ..DeviceConfig::new(Board::P100) };
    let mut device = Device::open(Chip::new(ChipConfig::new(Board::P100)).unwrap(), config).unwrap();
    let words = (PAGES * PAGE / 4) as usize;
    let [x, y] = ["x", "y"].map(|name| device.alloc_dram(name, &[words], DType::U32, PAGE).unwrap());
    let slots = device.alloc_l1("slots", 3 * PAGE).unwrap().address.get();
    let programs = [increment(&x, &y, slots, 1), increment(&y, &x, slots, 20)];
    let array: Vec<u8> = (0..words as u32).flat_map(|i| (i * 0x01_0101).to_le_bytes()).collect();
    let added = |n: u32| -> Vec<u8> {
        let (words, _) = array.as_chunks();
        words.iter().flat_map(|word| (u32::from_le_bytes(*word) + n).to_le_bytes()).collect()
    };
    device.enqueue_write_buffer(&x, &array, Blocking::No).unwrap();
    programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
    device.record_event().unwrap();
    let mut reads = vec![device.enqueue_read_buffer(&y, Blocking::Yes).unwrap()];
    let capture = device.begin_trace_capture().unwrap();
    programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
    let trace = device.end_trace_capture(capture).unwrap();
    for _ in 0..3 {
        device.replay_trace(&trace, Blocking::No).unwrap();
    }
    reads.push(device.enqueue_read_buffer(&x, Blocking::Yes).unwrap());
    device.release_trace(trace).unwrap();
    device.finish().unwrap();
    let reads: Vec<Vec<u8>> = reads.into_iter().map(|read| device.wait_for_read(read).unwrap()).collect();
    assert!(reads == [added(1), added(84)], "{lowering:?}: what was captured is wrong itself");
    let records = device.captured().unwrap().to_vec();
    let events = decode_stream(&records).flat_map(|record| record.unwrap().inner).filter(is_event).count();
    assert!(events >= 2, "{events} events");
    Recorded { records, reads }
}

fn is_event(command: &DecodedInner) -> bool {
    matches!(&command.command, InnerCommand::Whole(DispatchCommand::WriteLinearHHost(write)) if write.is_event)
}

/// Sends `records` to `kernels`, one prefetch command in each, and returns the data that comes when
/// it is as many reads as `recorded` has. Each event is waited for, as the device waits for some: a
/// prefetcher that reads the commands of a trace does not wait for the dispatcher to write them.
fn replay(kernels: &CqKernels, records: &[u8], recorded: &Recorded) -> Vec<Vec<u8>> {
    let mut rig = Rig::boot_kernels(kernels);
    let (mut messages, mut events) = (Messages::default(), 0);
    for record in decode_stream(records) {
        let record = record.unwrap();
        let bytes = &records[record.offset..][..record.size];
        // The capture has records, not their entries.
        let stalls = matches!(record.command, PrefetchCommand::ExecBuf(_));
        let entry = stalls.then_some((record.size >> PREFETCH_Q_LOG_UNIT) as u16 | PREFETCH_Q_STALL_BIT);
        while !rig.try_record(bytes, entry) {
            messages.take(&mut rig);
        }
        events += record.inner.iter().filter(|command| is_event(command)).count();
        while messages.events.len() < events {
            messages.take(&mut rig);
        }
    }
    while messages.reads.len() < recorded.reads.len() || messages.missing > 0 {
        messages.take(&mut rig);
    }
    assert!(messages.events.into_iter().eq(1..=events as u32), "the numbers of the events");
    messages.reads
}

/// Cycles between two looks at the completion FIFO, and looks in which a capture is done.
const LOOK: u64 = 2_000;
const LOOKS: u32 = 2_000;

/// What the completion FIFO has brought.
#[derive(Default)]
struct Messages {
    looks: u32,
    events: Vec<u32>,
    reads: Vec<Vec<u8>>,
    /// Bytes of the newest read that have yet to come.
    missing: usize,
}

impl Messages {
    /// Lets some time pass and takes the pages that are there.
    fn take(&mut self, rig: &mut Rig) {
        self.looks += 1;
        if self.looks == LOOKS {
            rig.die(&format!("{} events and {} reads have come", self.events.len(), self.reads.len()));
        }
        rig.card.link_mut().run(LOOK).unwrap();
        rig.take_pages().into_iter().for_each(|(_, page)| self.page(&page));
    }

    fn page(&mut self, page: &[u8]) {
        let mut data = page;
        if self.missing == 0 {
            let header = CompletionHeader::parse(page).unwrap();
            if header.is_event {
                return self.events.push(read_event(page).unwrap());
            }
            self.missing = header.length as usize - CMD_SIZE;
            data = &page[CMD_SIZE..];
            self.reads.push(Vec::new());
        }
        let data = &data[..data.len().min(self.missing)];
        self.missing -= data.len();
        self.reads.last_mut().unwrap().extend_from_slice(data);
    }
}

fn check(name: &str, kernels: &CqKernels) {
    for lowering in [Lowering::Plain, Lowering::Cached] {
        let recorded = record(lowering);
        let reads = replay(kernels, &recorded.records, &recorded);
        assert!(reads == recorded.reads, "{lowering:?} on {name} kernels: other bytes");
        let (records, read) = (recorded.records.len(), reads.concat().len());
        println!("{lowering:?}: {records} bytes of records on {name} kernels, the same {read} bytes back");
    }
}

#[test]
fn a_capture_brings_the_same_bytes_again() {
    check("our", &prebuilt::cq_kernels().unwrap());
}

/// That the comparison can fail: another byte in the array that is written.
#[test]
fn a_capture_with_another_byte_brings_other_bytes() {
    let recorded = record(Lowering::Cached);
    let first = &recorded.reads[0][..64];
    let mut records = recorded.records.clone();
    // The array that was written is what was read, less one.
    let (words, _) = first.as_chunks();
    let written: Vec<u8> = words.iter().flat_map(|word| (u32::from_le_bytes(*word) - 1).to_le_bytes()).collect();
    let at = records.windows(64).position(|window| window == written).unwrap();
    records[at] ^= 0x40;
    let reads = replay(&prebuilt::cq_kernels().unwrap(), &records, &recorded);
    assert!(reads.iter().zip(&recorded.reads).all(|(found, expected)| found != expected));
}

#[test]
fn a_capture_brings_the_same_bytes_on_the_kernels_of_others() {
    let Some(folder) = std::env::var_os("TILEWORK_CQ_FIRMWARE") else {
        eprintln!("skipped: TILEWORK_CQ_FIRMWARE names no folder");
        return;
    };
    let file = |names: [&str; 2]| {
        let path = names.map(|name| Path::new(&folder).join(name)).into_iter().find(|path| path.is_file());
        let path = path.unwrap_or_else(|| panic!("{}: neither {} nor {}", folder.display(), names[0], names[1]));
        (path.display().to_string(), std::fs::read(&path).unwrap().into())
    };
    let set = QueueFirmware::load(QUEUE_FILES.map(file), "queue.toml", &QueueValues::default()).unwrap();
    check("other", &set.kernels(Board::P100, DispatchLayout::Dispatcher).unwrap());
}
