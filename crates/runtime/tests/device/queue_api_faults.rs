//! Devices that stop while calls wait, and devices that are closed: everybody who waits gets the
//! same named error, and the device opens again.

use crate::common::{Device, empty, kernel, open};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{HOST_REGION_NOC_BASE, host};
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, Inspect, LinkError};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, BufferRead, Cores, DType, DeviceConfig, Dispatch, Event, Program, Role, RuntimeError,
    UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig};

/// An address that no tile has.
const NOWHERE: u32 = 0x4000_0000;

/// The kernel `busy` for `steps` steps, whose result goes to `address`, on three workers.
fn busy(steps: u32, address: u32) -> Program {
    Program::new("busy", Cores::Count(3))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, address]))
}

fn array<C: HostLink>(device: &mut tilework_runtime::Device<C>) -> Buffer {
    device.alloc_dram("x", &[70_000], DType::U8, 1024).unwrap()
}

/// What is enqueued behind a program that stops the device, and what its call-backs were told.
struct Waiters {
    read: BufferRead,
    events: Vec<Event>,
    told: Rc<RefCell<Vec<String>>>,
}

fn enqueue_waiters<C: HostLink>(device: &mut tilework_runtime::Device<C>, buffer: &Buffer) -> Waiters {
    let told = Rc::new(RefCell::new(Vec::new()));
    let read = device.enqueue_read_buffer(buffer, Blocking::No).unwrap();
    let events: Vec<Event> = (0..3).map(|_| device.record_event().unwrap()).collect();
    for event in events.iter().chain([read.event()]) {
        let told = Rc::clone(&told);
        event.on_completion(move |outcome| told.borrow_mut().push(outcome.as_ref().unwrap_err().to_string()));
    }
    Waiters { read, events, told }
}

/// Every call that waits answers with `error`, every other that it came before, and the message
/// starts with the same words.
fn all_get<C: HostLink>(device: &mut tilework_runtime::Device<C>, waiters: Waiters, error: &RuntimeError) {
    let text = error.to_string();
    let same = |found: RuntimeError| assert_eq!(found.to_string(), text);
    assert_eq!(*waiters.told.borrow(), vec![text.clone(); 4]);
    for event in &waiters.events {
        same(device.event_synchronize(event).unwrap_err());
        same(device.event_query(event).unwrap_err());
        same(event.poll().unwrap().unwrap_err());
    }
    same(device.wait_for_read(waiters.read).unwrap_err());
    same(device.finish().unwrap_err());
    let first = text.lines().next().unwrap();
    let x = array_like();
    for late in [
        device.record_event().map(|_| ()).unwrap_err(),
        device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap_err(),
        device.enqueue_write_buffer(&x, &[0; 64], Blocking::No).unwrap_err(),
        device.enqueue_read_buffer(&x, Blocking::Yes).map(|_| ()).unwrap_err(),
        device.run(&[]).map(|_| ()).unwrap_err(),
        device.idle(5).unwrap_err(),
    ] {
        let expected = format!("the device stopped earlier ({first}); open it again");
        assert_eq!(late.to_string(), expected);
    }
}

/// A buffer of a device that still works.
fn array_like() -> Buffer {
    let mut device = open(DeviceConfig { dispatch: Dispatch::Slow, ..DeviceConfig::new(Board::P100) });
    device.alloc_dram("x", &[64], DType::U8, 64).unwrap()
}

#[test]
fn a_fault_reaches_everybody_who_waits() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let buffer = array(&mut device);
    let before = device.record_event().unwrap();
    device.enqueue_program(&busy(1, NOWHERE), Blocking::No).unwrap();
    let waiters = enqueue_waiters(&mut device, &buffer);
    let error = device.event_synchronize(&waiters.events[1]).unwrap_err();
    assert!(
        matches!(&error, RuntimeError::Fault { fault, place: Some(place) }
        if fault.address == Some(NOWHERE.into()) && place.runs == "kernel busy of program busy"),
        "{error}"
    );
    // What had happened before it stays.
    assert!(before.poll().unwrap().is_ok());
    all_get(&mut device, waiters, &error);
}

#[test]
fn a_worker_that_never_answers_ends_by_the_budget() {
    let config = DeviceConfig { max_cycles: Some(300_000), ..DeviceConfig::new(Board::P100) };
    let mut device = open(config);
    let buffer = array(&mut device);
    device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
    device.enqueue_program(&busy(u32::MAX, 0x4_0000), Blocking::No).unwrap();
    let waiters = enqueue_waiters(&mut device, &buffer);
    let error = device.finish().unwrap_err();
    assert!(matches!(error, RuntimeError::Budget(_)), "{error}");
    assert!(error.to_string().contains("program busy"), "{error}");
    all_get(&mut device, waiters, &error);
    // The same chip starts again.
    let mut again = Device::open(device.into_chip(), config).unwrap();
    again.run(&[empty(Cores::All)]).unwrap();
    let buffer = array(&mut again);
    again.upload(&buffer, &[7; 70_000]).unwrap();
    assert_eq!(again.download(&buffer).unwrap(), [7; 70_000]);
}

/// A chip whose host sees nothing of the completion FIFO while it is deaf.
struct Deaf {
    chip: Chip,
    deaf: Rc<Cell<bool>>,
    /// The write pointer when it became deaf.
    old: [u8; 4],
}

impl Deaf {
    fn new() -> (Self, Rc<Cell<bool>>) {
        let deaf = Rc::new(Cell::new(false));
        let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
        (Self { chip, deaf: Rc::clone(&deaf), old: [0; 4] }, deaf)
    }
    fn is_pointer(address: PcieAddr) -> bool {
        address.get() == u64::from(HOST_REGION_NOC_BASE + host::CQ_WR.offset())
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
        if Self::is_pointer(address) && self.deaf.get() {
            out.copy_from_slice(&self.old);
            return Ok(());
        }
        HostLink::pinned_read(&mut self.chip, address, out)?;
        if Self::is_pointer(address) {
            self.old.copy_from_slice(out);
        }
        Ok(())
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        HostLink::pinned_write(&mut self.chip, address, data)
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        if !self.deaf.get() {
            return HostLink::wait_word(&mut self.chip, address, seen, budget);
        }
        let stop = self.chip.now() + budget;
        let mut seen = seen;
        loop {
            // What changes is not seen; that nothing moves any more is.
            let left = stop.saturating_sub(self.chip.now());
            seen = HostLink::wait_word(&mut self.chip, address, seen, left)?;
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

#[test]
fn a_host_that_reads_no_completions_ends_in_a_named_deadlock() {
    let (chip, deaf) = Deaf::new();
    let mut device = tilework_runtime::Device::open(chip, DeviceConfig::new(Board::P100)).unwrap();
    let buffer = array(&mut device);
    device.upload(&buffer, &[3; 70_000]).unwrap();
    deaf.set(true);
    let waiters = enqueue_waiters(&mut device, &buffer);
    // The FIFO has 8192 pages, and the dispatcher waits in the one after them; then the prefetcher
    // does, and the queue is full.
    let error = (0..20_000).find_map(|_| device.record_event().err()).expect("the queue takes no more");
    assert!(matches!(error, RuntimeError::Deadlock(_)), "{error}");
    assert!(error.to_string().contains("the dispatcher"), "{error}");
    all_get(&mut device, waiters, &error);
    deaf.set(false);
    let config = *device.config();
    let mut again = tilework_runtime::Device::open(device.into_chip(), config).unwrap();
    let buffer = array(&mut again);
    assert_eq!(again.download(&buffer).unwrap(), [3; 70_000]);
    again.run(&[empty(Cores::All)]).unwrap();
}

#[test]
fn what_is_in_flight_when_a_device_is_dropped_is_answered() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) });
        let buffer = array(&mut device);
        device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
        let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
        let event = device.record_event().unwrap();
        let told = Rc::new(RefCell::new(Vec::new()));
        for (name, event) in [("read", read.event()), ("event", &event)] {
            let told = Rc::clone(&told);
            event.on_completion(move |outcome| told.borrow_mut().push((name, outcome.is_ok())));
        }
        drop(device);
        let done = dispatch == Dispatch::Slow;
        assert_eq!(*told.borrow(), [("read", done), ("event", done)]);
        let data = read.into_data().expect("it has ended");
        match dispatch {
            Dispatch::Fast => assert!(matches!(data, Err(RuntimeError::Closed))),
            Dispatch::Slow => assert_eq!(data.unwrap().len(), 70_000),
        }
    }
}

#[test]
fn a_device_is_closed_and_its_chip_opened_again() {
    for (first, second) in
        [(Dispatch::Fast, Dispatch::Fast), (Dispatch::Fast, Dispatch::Slow), (Dispatch::Slow, Dispatch::Fast)]
    {
        let config = |dispatch| DeviceConfig { dispatch, ..DeviceConfig::new(Board::P150) };
        let mut device = open(config(first));
        let buffer = array(&mut device);
        let data: Vec<u8> = (0..70_000).map(|i| (i % 239) as u8).collect();
        device.enqueue_write_buffer(&buffer, &data, Blocking::No).unwrap();
        device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
        let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
        device.close().unwrap();
        assert_eq!(read.into_data().unwrap().unwrap(), data, "closing waits for what was enqueued");
        let closed = device.record_event().unwrap_err();
        assert!(matches!(closed, RuntimeError::Closed), "{closed}");
        device.close().unwrap();
        let mut again = Device::open(device.into_chip(), config(second)).unwrap();
        // DRAM is not touched by a start.
        let buffer = array(&mut again);
        assert_eq!(again.download(&buffer).unwrap(), data);
        again.run(&vec![empty(Cores::All); 3]).unwrap();
        assert_eq!(again.download(&buffer).unwrap(), data);
    }
}

/// Two chips in one process do not know of each other: each has the cycles that it has alone.
#[test]
fn several_devices_in_one_process() {
    let config = DeviceConfig::new(Board::P100);
    let step = |device: &mut Device, buffer: &Buffer, value: u8| {
        device.enqueue_write_buffer(buffer, &[value; 70_000], Blocking::No).unwrap();
        device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
        device.enqueue_read_buffer(buffer, Blocking::No).unwrap()
    };
    let mut alone = open(config);
    let buffer = array(&mut alone);
    for value in 0..3 {
        let read = step(&mut alone, &buffer, value);
        alone.wait_for_read(read).unwrap();
    }
    let mut pair = [open(config), open(config)];
    let buffers = [0, 1].map(|i| array(&mut pair[i]));
    for value in 0..3 {
        let reads = [0, 1].map(|i| step(&mut pair[i], &buffers[i], value + 100 * i as u8));
        for (i, read) in reads.into_iter().enumerate() {
            let found = pair[i].wait_for_read(read).unwrap();
            assert_eq!(found, [value + 100 * i as u8; 70_000]);
        }
    }
    for device in &pair {
        assert_eq!(device.chip().now(), alone.chip().now());
    }
}

#[test]
fn more_queues_than_two_are_refused() {
    for queues in [0, 3] {
        let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
        let refused = Device::open(chip, DeviceConfig { queues, ..DeviceConfig::new(Board::P100) }).unwrap_err();
        assert_eq!(refused.to_string(), format!("{queues} command queues were asked for; a device has 1 or 2"));
    }
}
