//! A cluster that runs kernels: one async function per core, on a virtual clock.
//!
//! A core runs until it spends time or waits; then the core with the earliest time continues. The
//! seed determines the jitter of each duration, the start of each core and the order of cores at
//! the same cycle. So a run is a function of kernels, rings and seed. A core does one thing at a
//! time: a TPUSH ends when its tile is in the slot and signalled (HL: "wait transfer complete; SET
//! ready"); pipes are recorded, but do not overlap within a core.

mod core;
mod end;
mod exchange;
mod shared;
mod transfer;

pub use self::core::Core;
pub use end::{Popped, RingEnd, Slot};

use crate::arch::Arch;
use crate::core_id::{CoreId, Lane};
use crate::deadlock::Deadlock;
use crate::events::Event;
use crate::fault::{Fault, Race, When};
use crate::ffts::Counter;
use crate::launch::Binding;
use crate::memory::{MemoryError, Region, Regions, Space};
use crate::protocol::{Flow, Medium, Way};
use crate::ring::{Base, RingError, RingSpec};
use shared::{RingInfo, Shared, Status};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Effect of a race on a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RacePolicy {
    /// It ends the run with a fault.
    #[default]
    Stop,
    /// It is recorded, and the run continues with the overwritten data, as on the machine.
    Record,
}

/// Configuration of a cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The architecture.
    pub arch: Arch,
    /// Seed of the timing and of the order of cores at the same cycle.
    pub seed: u64,
    /// The most percent by which a cost may exceed its nominal value.
    pub jitter_percent: u64,
    /// Effect of a race.
    pub races: RacePolicy,
}

impl Config {
    /// The default configuration: 25 percent jitter, races stop the run.
    pub fn new(arch: Arch, seed: u64) -> Self {
        Self { arch, seed, jitter_percent: 25, races: RacePolicy::Stop }
    }
}

/// Result of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusterReport {
    /// The cycle at which the last core ended.
    pub cycles: u64,
    /// Races, under [`RacePolicy::Record`].
    pub races: Vec<Race>,
    /// Semaphores that are not zero at the end, with their values; the next block on these cores
    /// would find them.
    pub leftovers: Vec<(Counter, u8)>,
}

/// A ring of a cluster, which its cores open.
#[derive(Clone, Debug)]
pub struct Ring(Rc<RingInfo>);

impl Ring {
    /// Its specification.
    pub fn spec(&self) -> &RingSpec {
        &self.0.spec
    }
}

/// The return value of a kernel, after the cluster has run.
#[derive(Debug)]
pub struct Output<T>(Rc<RefCell<Option<T>>>);

impl<T> Output<T> {
    /// Takes the value; `None` if the kernel failed or the value was already taken.
    pub fn take(&self) -> Option<T> {
        self.0.borrow_mut().take()
    }
}

type Kernel = Pin<Box<dyn Future<Output = Result<(), Fault>>>>;

/// A cluster: a Cube and two Vectors, their semaphores, memories and rings.
pub struct Cluster {
    shared: Rc<RefCell<Shared>>,
    kernels: [Option<Kernel>; 3],
}

impl Cluster {
    /// A cluster on which the FFTS scheduler launches a mixed kernel: block 0, `ffts_addr`
    /// initialised.
    pub fn new(config: Config) -> Self {
        Self::bound(config, &Binding::direct(config.arch))
    }

    /// A cluster bound by a handshake (see [`crate::launch`]).
    pub fn bound(config: Config, binding: &Binding) -> Self {
        Self { shared: Rc::new(RefCell::new(Shared::new(config, binding.clone()))), kernels: [None, None, None] }
    }

    /// Creates a ring: checks it and reserves its slots in the consumer's memory and its ids. Rings
    /// are created before the cluster runs.
    pub fn ring(&mut self, spec: RingSpec) -> Result<Ring, RingError> {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        let mut wiring = shared.wiring.clone();
        let ways = wiring.add(&spec)?;
        let mut regions = shared.regions.clone();
        let memory = |source| RingError::Memory { ring: spec.name.clone(), source };
        let places = place(&mut regions, &spec, &ways).map_err(memory)?;
        (shared.wiring, shared.regions) = (wiring, regions);
        shared.state.grow(&shared.wiring);
        let block = Rc::clone(&shared.block);
        Ok(Ring(Rc::new(RingInfo { spec, block, ways, places })))
    }

    /// Reserves a region of a memory (`reserve_buffer`) for other uses than rings:
    /// `cv_comm_buf`, tensors.
    pub fn reserve(&mut self, name: &str, space: Space, bytes: usize, base: Base) -> Result<Region, Fault> {
        let base = self.shared.borrow_mut().regions.reserve(name, &[space], bytes, base)?;
        Ok(Region { name: name.to_owned(), space, base, bytes })
    }

    /// The region that a peer has reserved under this name (`import_peer_buffer`); a ring's slots
    /// have the ring's name.
    pub fn import(&self, name: &str, space: Space) -> Result<Region, Fault> {
        Ok(self.shared.borrow().regions.import(name, space)?.clone())
    }

    /// Puts a kernel on a core. It starts when the cluster runs; its return value is in the
    /// [`Output`] afterwards.
    pub fn spawn<T, F, Fut>(&mut self, core: CoreId, kernel: F) -> Output<T>
    where
        T: 'static,
        F: FnOnce(Core) -> Fut,
        Fut: Future<Output = Result<T, Fault>> + 'static,
    {
        let value = Rc::new(RefCell::new(None));
        let future = kernel(Core::new(core, Rc::clone(&self.shared)));
        let put = Rc::clone(&value);
        self.kernels[core.index()] = Some(Box::pin(async move {
            let result = future.await?;
            *put.borrow_mut() = Some(result);
            Ok(())
        }));
        Output(value)
    }

    /// Runs the kernels to their end, or to the first fault.
    pub fn run(&mut self) -> Result<ClusterReport, Fault> {
        let mut shared = self.shared.borrow_mut();
        for (index, kernel) in self.kernels.iter().enumerate() {
            shared.start(index, kernel.is_some());
        }
        drop(shared);
        let result = self.run_kernels();
        self.kernels = [None, None, None];
        result?;
        let shared = self.shared.borrow();
        Ok(ClusterReport { cycles: shared.now, races: shared.races.clone(), leftovers: shared.state.semaphores.left() })
    }

    fn run_kernels(&mut self) -> Result<(), Fault> {
        loop {
            let next = self.shared.borrow_mut().next();
            let Some(index) = next else { break };
            let Some(kernel) = &mut self.kernels[index] else { continue };
            let polled = kernel.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            let mut shared = self.shared.borrow_mut();
            if let Some(fault) = shared.fault.take() {
                return Err(fault);
            }
            match polled {
                Poll::Ready(result) => {
                    result?;
                    shared.status[index] = Status::Ended;
                    self.kernels[index] = None;
                }
                Poll::Pending if matches!(shared.status[index], Status::Running) => {
                    let what = "its kernel awaits something that is not of this cluster, which nothing here wakes";
                    return Err(Fault::Usage(format!("{}: {what}", CoreId::ALL[index])));
                }
                Poll::Pending => {}
            }
        }
        let shared = self.shared.borrow();
        let waits = shared.waits();
        if waits.is_empty() {
            return Ok(());
        }
        Err(Fault::Deadlock(Box::new(Deadlock::new(When(Some(shared.now)), waits))))
    }

    /// Prepares the same cores for another block: clears rings and all memories except global
    /// memory; semaphores and clock keep their values.
    pub fn next_block(&mut self, binding: &Binding) {
        let mut shared = self.shared.borrow_mut();
        let shared = &mut *shared;
        shared.wiring.ways.clear();
        shared.state = shared.state.for_next_block(&shared.wiring);
        shared.regions = Regions::default();
        shared.memories.keep_global();
        shared.binding = binding.clone();
        shared.block = Rc::default();
    }

    /// Takes the events so far, in the order in which they ended.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.shared.borrow_mut().events)
    }

    /// The cycle.
    pub fn now(&self) -> u64 {
        self.shared.borrow().now
    }

    /// Copies bytes into a memory before a run.
    pub fn write(&mut self, space: Space, at: usize, bytes: &[u8]) -> Result<(), Fault> {
        Ok(self.shared.borrow_mut().memories.write(space, at, bytes)?)
    }

    /// Copies bytes out of a memory.
    pub fn read(&self, space: Space, at: usize, bytes: usize) -> Result<Vec<u8>, Fault> {
        let mut data = vec![0; bytes];
        self.shared.borrow().memories.read(space, at, &mut data)?;
        Ok(data)
    }
}

/// Reserves the slots of each way, and local slots if a pop copies. Returns per way the base of the
/// slots and of the local slots.
fn place(regions: &mut Regions, spec: &RingSpec, ways: &[Way]) -> Result<Vec<[usize; 2]>, MemoryError> {
    let slots = usize::try_from(spec.slots).unwrap_or(usize::MAX).saturating_mul(spec.slot_bytes);
    let copies = usize::try_from(spec.local_slots).unwrap_or(usize::MAX).saturating_mul(spec.slot_bytes);
    // The address in UB is one constant for both Vectors.
    let both = Lane::ALL.map(Space::Ub);
    let mut places: Vec<[usize; 2]> = Vec::new();
    for (at, way) in ways.iter().enumerate() {
        let base = if at == 0 { spec.base } else { spec.v2c_base };
        let spaces = match way.medium {
            Medium::Gm => &[Space::Gm][..],
            Medium::L1 => &[Space::L1],
            Medium::Control => &[Space::Control],
            Medium::Ub => &both,
        };
        let base = match ways[..at].iter().position(|other| other.buffer == way.buffer) {
            Some(first) => places[first][0],
            None => regions.reserve(&way.name, spaces, slots, base)?,
        };
        let consumer = if way.flow == Flow::C2V { &both[..] } else { &[Space::L1] };
        let copy = match way.medium {
            Medium::Gm => regions.reserve(&format!("{} (copies)", way.name), consumer, copies, Base::Auto)?,
            _ => 0,
        };
        places.push([base, copy]);
    }
    Ok(places)
}
