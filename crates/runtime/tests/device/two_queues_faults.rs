//! A device with two queues that stops: whatever stops it in one queue reaches everybody who waits
//! in either, the report names queue and program, and the device opens again. And packets that are
//! late in every way that the documents allow.

use crate::common::{Device, empty, kernel};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tilework_abi::addr::{Cycle, L1Addr, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{SEMAPHORE_OFFSET, host, prefetch_core};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, Inspect, LinkError};
use tilework_runtime::lower::Lowering;
use tilework_runtime::{
    ArgSet, Blocking, Buffer, BufferRead, Cores, DType, DeviceConfig, Event, Program, QueueId, Role, RuntimeError,
    UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig, LatePackets};

const FIRST: QueueId = QueueId::FIRST;
const SECOND: QueueId = QueueId::SECOND;
/// An address that no tile has.
const NOWHERE: u32 = 0x4000_0000;
const BYTES: usize = 70_000;

fn config() -> DeviceConfig {
    DeviceConfig { queues: 2, ..DeviceConfig::new(Board::P100) }
}

fn other(queue: QueueId) -> QueueId {
    QueueId::ALL[1 - queue.index()]
}

fn program(kernel_name: &str, cores: &[NocXy], args: Vec<u32>) -> Program {
    Program::new(kernel_name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel(kernel_name, Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(args))
}

fn array<C: HostLink>(device: &mut tilework_runtime::Device<C>) -> Buffer {
    device.alloc_dram("x", &[BYTES], DType::U8, 1024).unwrap()
}

/// Who waits in a queue.
struct Waiters {
    read: BufferRead,
    event: Event,
    told: Rc<RefCell<Vec<String>>>,
}

fn wait_in<C: HostLink>(device: &mut tilework_runtime::Device<C>, queue: QueueId, buffer: &Buffer) -> Waiters {
    let told = Rc::new(RefCell::new(Vec::new()));
    let mut queue = device.on_queue(queue).unwrap();
    let read = queue.enqueue_read_buffer(buffer, Blocking::No).unwrap();
    let event = queue.record_event().unwrap();
    for event in [read.event(), &event] {
        let told = Rc::clone(&told);
        event.on_completion(move |outcome| told.borrow_mut().push(outcome.as_ref().unwrap_err().to_string()));
    }
    Waiters { read, event, told }
}

/// Everybody gets `error`, in both queues; what comes later is told that the device has stopped.
fn all_get<C: HostLink>(device: &mut tilework_runtime::Device<C>, waiters: [Waiters; 2], error: &RuntimeError) {
    let text = error.to_string();
    for waiters in waiters {
        assert_eq!(*waiters.told.borrow(), [text.clone(), text.clone()]);
        assert_eq!(device.event_synchronize(&waiters.event).unwrap_err().to_string(), text);
        assert_eq!(device.wait_for_read(waiters.read).unwrap_err().to_string(), text);
    }
    let first = text.lines().next().unwrap();
    for id in QueueId::ALL {
        let mut queue = device.on_queue(id).unwrap();
        assert_eq!(queue.finish().unwrap_err().to_string(), text);
        let late = [
            queue.record_event().map(|_| ()).unwrap_err(),
            queue.enqueue_program(&empty(Cores::All), Blocking::No).unwrap_err(),
        ];
        for late in late {
            assert_eq!(late.to_string(), format!("the device stopped earlier ({first}); open it again"));
        }
    }
}

/// The same chip starts again, and both queues work.
fn opens_again(chip: Chip) {
    let mut device = Device::open(chip, config()).unwrap();
    let buffer = array(&mut device);
    for (id, value) in [(SECOND, 5), (FIRST, 9)] {
        let mut queue = device.on_queue(id).unwrap();
        queue.enqueue_write_buffer(&buffer, &[value; BYTES], Blocking::No).unwrap();
        queue.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
        let read = queue.enqueue_read_buffer(&buffer, Blocking::Yes).unwrap();
        assert_eq!(device.wait_for_read(read).unwrap(), [value; BYTES]);
    }
    device.close().unwrap();
}

#[test]
fn a_fault_in_one_queue_reaches_both() {
    for id in QueueId::ALL {
        let mut device = crate::common::open(config());
        let buffer = array(&mut device);
        let cores = device.workers()[..3].to_vec();
        let before = device.on_queue(other(id)).unwrap().record_event().unwrap();
        let bad = program("busy", &cores, vec![1, NOWHERE]);
        device.on_queue(id).unwrap().enqueue_program(&bad, Blocking::No).unwrap();
        let waiters = [other(id), id].map(|id| wait_in(&mut device, id, &buffer));
        // Whoever waits in the other queue finds out.
        let error = device.finish().unwrap_err();
        assert!(
            matches!(&error, RuntimeError::Fault { place: Some(place), .. }
            if place.runs == "kernel busy of program busy"),
            "{error}"
        );
        assert!(before.poll().unwrap().is_ok());
        all_get(&mut device, waiters, &error);
    }
}

/// A program of one queue hangs, the other queue waits for an event behind it: the report follows
/// the way from the one to the other.
#[test]
fn tt_metal_51738_a_deadlock_names_queue_and_program() {
    for id in QueueId::ALL {
        let mut device = crate::common::open(config());
        let buffer = array(&mut device);
        let cores = device.workers()[..2].to_vec();
        let word = device.alloc_l1("spin word", 64).unwrap().address.get();
        let mut queue = device.on_queue(id).unwrap();
        queue.enqueue_program(&program("spin", &cores, vec![word]), Blocking::No).unwrap();
        let event = queue.record_event().unwrap();
        let mut behind = device.on_queue(other(id)).unwrap();
        behind.wait_for_event(&event).unwrap();
        behind.enqueue_program(&empty(Cores::List(cores)), Blocking::No).unwrap();
        let waiters = [other(id), id].map(|id| wait_in(&mut device, id, &buffer));
        let error = device.on_queue(other(id)).unwrap().finish().unwrap_err();
        let RuntimeError::Deadlock(report) = &error else { panic!("{error}") };
        assert_eq!(report.programs, ["spin"], "{error}");
        let chain: Vec<&str> = report.chain.iter().map(|link| link.who.as_str()).collect();
        let (waits, hangs) =
            (format!("the dispatcher of queue {}", other(id)), format!("the dispatcher of queue {id}"));
        assert_eq!(chain[..3], ["the host", &waits, &hangs], "{error}");
        assert!(chain[3].starts_with("BRISC of (1,"), "{error}");
        assert!(report.chain[1].what.contains(&format!("the last event of queue {id}")), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("command queue {id}: ")), "{text}");
        assert!(text.contains("in program spin") && text.contains("kernel spin of program spin"), "{text}");
        all_get(&mut device, waiters, &error);
        opens_again(device.into_chip());
    }
}

/// Two programs at the same time, of which that of the other queue hangs: the report is about that.
#[test]
fn a_deadlock_beside_a_finished_queue_names_the_other() {
    let mut device = crate::common::open(config());
    let workers = device.workers().to_vec();
    let word = device.alloc_l1("spin word", 64).unwrap().address.get();
    device.enqueue_program(&empty(Cores::List(workers[4..9].to_vec())), Blocking::No).unwrap();
    let spin = program("spin", &workers[..2], vec![word]);
    device.on_queue(SECOND).unwrap().enqueue_program(&spin, Blocking::No).unwrap();
    // The first queue is done; the wait for the second one is where it shows.
    device.on_queue(FIRST).unwrap().finish().unwrap();
    let error = device.finish().unwrap_err();
    let text = error.to_string();
    assert!(matches!(&error, RuntimeError::Deadlock(report) if report.programs == ["spin"]), "{text}");
    assert!(text.contains("command queue 1: ") && text.contains("stream 48: 0 of 2 workers done"), "{text}");
}

#[test]
fn a_worker_of_one_queue_that_never_answers_ends_by_the_budget() {
    for id in QueueId::ALL {
        let mut device = crate::common::open(DeviceConfig { max_cycles: Some(400_000), ..config() });
        let buffer = array(&mut device);
        let cores = device.workers()[..3].to_vec();
        device.on_queue(other(id)).unwrap().enqueue_program(&empty(Cores::Count(2)), Blocking::Yes).unwrap();
        let endless = program("busy", &cores, vec![u32::MAX, 0x4_0000]);
        device.on_queue(id).unwrap().enqueue_program(&endless, Blocking::No).unwrap();
        let mut beside = device.on_queue(other(id)).unwrap();
        let done = (beside.enqueue_read_buffer(&buffer, Blocking::No).unwrap(), beside.record_event().unwrap());
        let waiting = wait_in(&mut device, id, &buffer);
        let error = device.on_queue(id).unwrap().finish().unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RuntimeError::Budget(_)), "{text}");
        assert!(text.contains("program busy") && text.contains(&format!("command queue {id}: ")), "{text}");
        // What the other queue had done by then is done.
        assert!(done.0.into_data().unwrap().is_ok() && done.1.poll().unwrap().is_ok());
        assert_eq!(*waiting.told.borrow(), [text.clone(), text.clone()]);
        opens_again(device.into_chip());
    }
}

/// A chip whose host sees nothing of the completion FIFO of one queue while it is deaf, and garbles
/// the first byte of that queue's next record when it is told to.
struct Deaf {
    chip: Chip,
    deaf: Rc<Cell<bool>>,
    garble: Rc<Cell<bool>>,
    /// The queue's issue region.
    issue: std::ops::Range<u64>,
    /// Where the write pointer is, and what it was when the host became deaf.
    pointer: u64,
    old: [u8; 4],
}

impl Deaf {
    fn new(queue: QueueId) -> (Self, Rc<Cell<bool>>) {
        let deaf = Rc::new(Cell::new(false));
        let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
        let at = |offset: u32| u64::from(queue.region_noc_base() + offset);
        let (pointer, issue) = (at(host::CQ_WR.offset()), at(host::ISSUE.offset())..at(host::ISSUE.end()));
        (Self { chip, deaf: Rc::clone(&deaf), garble: Rc::default(), issue, pointer, old: [0; 4] }, deaf)
    }
}

impl HostLink for Deaf {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        HostLink::bar_write(&mut self.chip, bar, offset, data)
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        HostLink::bar_read(&mut self.chip, bar, offset, out)
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        HostLink::pin(&mut self.chip, len, wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        let is_pointer = address.get() == self.pointer;
        if is_pointer && self.deaf.get() {
            out.copy_from_slice(&self.old);
            return Ok(());
        }
        HostLink::pinned_read(&mut self.chip, address, out)?;
        if is_pointer {
            self.old.copy_from_slice(out);
        }
        Ok(())
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        let mut data = data.to_vec();
        if self.issue.contains(&address.get()) && self.garble.take() {
            data[0] = 0xEE;
        }
        HostLink::pinned_write(&mut self.chip, address, &data)
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        let stop = self.chip.now() + budget;
        let mut seen = seen;
        loop {
            // What changes is not seen; that nothing moves any more is.
            let left = stop.saturating_sub(self.chip.now());
            seen = HostLink::wait_word(&mut self.chip, address, seen, left)?;
            if !self.deaf.get() || address.get() != self.pointer {
                return Ok(seen);
            }
        }
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        HostLink::idle(&mut self.chip, cycles)
    }
    fn cycles(&self) -> Cycle {
        HostLink::cycles(&self.chip)
    }
    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(&self.chip)
    }
}

/// The host hears nothing of one queue; the other queue works on, until it waits for the first.
#[test]
fn a_host_that_is_deaf_to_one_queue_ends_in_a_named_deadlock() {
    for id in QueueId::ALL {
        let (chip, deaf) = Deaf::new(id);
        let mut device = tilework_runtime::Device::open(chip, config()).unwrap();
        let buffer = array(&mut device);
        device.upload(&buffer, &[3; BYTES]).unwrap();
        deaf.set(true);
        let silent = wait_in(&mut device, id, &buffer);
        let read = device.on_queue(other(id)).unwrap().enqueue_read_buffer(&buffer, Blocking::Yes).unwrap();
        assert_eq!(device.wait_for_read(read).unwrap(), [3; BYTES], "the other queue is heard");
        let error = device.on_queue(id).unwrap().finish().unwrap_err();
        assert!(matches!(error, RuntimeError::Deadlock(_)), "{error}");
        assert!(error.to_string().contains(&format!("of queue {id}\n  <- the dispatcher of queue {id}")), "{error}");
        let text = error.to_string();
        assert_eq!(*silent.told.borrow(), [text.clone(), text.clone()]);
        for id in QueueId::ALL {
            assert_eq!(device.on_queue(id).unwrap().finish().unwrap_err().to_string(), text);
        }
        opens_again(device.into_chip().chip);
    }
}

/// A byte of a record is another: the prefetcher of that queue stops and says why, in the report as
/// well; the other queue works on until somebody waits for both.
#[test]
fn a_garbled_record_of_one_queue_is_named() {
    for id in QueueId::ALL {
        let (chip, _) = Deaf::new(id);
        let garble = Rc::clone(&chip.garble);
        let mut device = tilework_runtime::Device::open(chip, config()).unwrap();
        let buffer = array(&mut device);
        device.upload(&buffer, &[8; BYTES]).unwrap();
        garble.set(true);
        let waiters = wait_in(&mut device, id, &buffer);
        assert!(!garble.get(), "a record was garbled");
        let read = device.on_queue(other(id)).unwrap().enqueue_read_buffer(&buffer, Blocking::Yes).unwrap();
        assert_eq!(device.wait_for_read(read).unwrap(), [8; BYTES]);
        let error = device.finish().unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RuntimeError::Deadlock(_)), "{text}");
        assert!(text.contains(&format!("command queue {id}: ")), "{text}");
        let tile = DispatchLayout::Dispatcher.queue(id).prefetch_tile(Board::P100);
        let stopped = format!("BRISC of {tile}, kernel prefetch.elf");
        assert!(text.contains(&stopped) && text.contains("stopped, unknown command"), "{text}");
        assert_eq!(*waiters.told.borrow(), [text.clone(), text]);
        opens_again(device.into_chip().chip);
    }
}

/// Credits of one queue vanish: prefetcher and dispatcher of that queue wait for each other.
#[test]
fn a_lost_credit_of_one_queue_is_a_circle_there() {
    for id in QueueId::ALL {
        let mut device = crate::common::open(config());
        let prefetch = device.config().layout.queue(id).prefetch_tile(Board::P100);
        let semaphores = device.memory_map().kernel_config.get() + SEMAPHORE_OFFSET;
        let credits = L1Addr::new(prefetch_core::SEM_DISPATCH_PAGES.addr(semaphores));
        device.write_l1(prefetch, credits, &0u32.to_le_bytes()).unwrap();
        device.on_queue(other(id)).unwrap().enqueue_program(&empty(Cores::Count(3)), Blocking::Yes).unwrap();
        device.on_queue(other(id)).unwrap().finish().unwrap();
        let error = device.on_queue(id).unwrap().enqueue_program(&empty(Cores::Count(3)), Blocking::Yes).unwrap_err();
        let RuntimeError::Deadlock(report) = &error else { panic!("{error}") };
        let chain: Vec<&str> = report.chain.iter().map(|link| link.who.as_str()).collect();
        let of = |who: &str| format!("the {who} of queue {id}");
        assert_eq!(chain, ["the host", &of("dispatcher"), &of("prefetcher")], "{error}");
        assert_eq!(report.circle, Some(1), "{error}");
        opens_again(device.into_chip());
    }
}

#[test]
fn what_is_in_flight_in_two_queues_is_answered_when_the_device_is_dropped() {
    let mut device = crate::common::open(config());
    let buffer = array(&mut device);
    let reads: Vec<_> =
        QueueId::ALL.map(|id| device.on_queue(id).unwrap().enqueue_read_buffer(&buffer, Blocking::No).unwrap()).into();
    drop(device);
    for read in reads {
        assert!(matches!(read.into_data(), Ok(Err(RuntimeError::Closed))));
    }
}

/// Numbers of events, data and go messages of both queues in any legal order.
#[test]
fn two_queues_are_right_however_late_packets_are() {
    let ways = [
        (11, config()),
        (12, DeviceConfig { lowering: Lowering::Plain, ..config() }),
        (13, DeviceConfig { layout: DispatchLayout::Split, ..config() }),
        (14, DeviceConfig { layout: DispatchLayout::SubordinateTile, ..config() }),
    ];
    for (seed, config) in ways {
        let late = Some(LatePackets { seed, most: 1_500 });
        let chip = Chip::new(ChipConfig { late, ..ChipConfig::new(Board::P100) }).unwrap();
        let mut device = Device::open(chip, config).unwrap();
        let buffer = array(&mut device);
        for round in 0..8u8 {
            let (writer, reader) = (QueueId::ALL[usize::from(round % 2)], QueueId::ALL[usize::from(1 - round % 2)]);
            let mut queue = device.on_queue(writer).unwrap();
            queue.enqueue_write_buffer(&buffer, &[round; BYTES], Blocking::No).unwrap();
            queue.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
            // Several numbers one behind the other.
            let event = [0; 3].map(|_| queue.record_event().unwrap());
            let mut queue = device.on_queue(reader).unwrap();
            queue.wait_for_event(&event[2]).unwrap();
            queue.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
            let read = queue.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
            device.on_queue(writer).unwrap().wait_for_event(read.event()).unwrap();
            assert_eq!(device.wait_for_read(read).unwrap(), [round; BYTES], "seed {seed}, round {round}");
        }
        device.close().unwrap();
    }
}
