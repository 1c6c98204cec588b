//! The interface of kernels besides rings: ids, time, semaphores and global memory.

use super::Ring;
use super::end::RingEnd;
use super::shared::{Line, Shared, Status, Wait};
use crate::arch::{Arch, SEMAPHORE_IDS, VEC_CORE_ID_OFFSET};
use crate::core_id::{CoreId, Lane, Lanes, Pipe};
use crate::events::{Event, EventKind};
use crate::fault::{Fault, When};
use crate::memory::Space;
use crate::protocol::Step;
use crate::timing;
use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Bytes of a cache line of the scalar unit (`dcci` with `SINGLE_CACHE_LINE`; 64 is an estimate).
pub const CACHE_LINE: usize = 64;

/// A core, as its kernel sees it.
#[derive(Clone)]
pub struct Core {
    id: CoreId,
    shared: Rc<RefCell<Shared>>,
}

impl Core {
    pub(super) fn new(id: CoreId, shared: Rc<RefCell<Shared>>) -> Self {
        Self { id, shared }
    }

    /// Which core of the cluster this is.
    pub fn id(&self) -> CoreId {
        self.id
    }

    /// The architecture.
    pub fn arch(&self) -> Arch {
        self.shared().config.arch
    }

    /// `get_block_idx()`: the block that the scheduler gave to the cluster.
    pub fn block_idx(&self) -> u32 {
        self.shared().binding.block_idx()
    }

    /// `get_subblockid()`: 0 or 1 on a Vector; none on the Cube.
    pub fn subblock_id(&self) -> Option<u32> {
        self.id.lane().map(|lane| if lane == Lane::L0 { 0 } else { 1 })
    }

    /// `get_coreid()`: the physical core.
    pub fn core_id(&self) -> u32 {
        self.shared().binding.core_id(self.id)
    }

    /// The current cycle.
    pub fn now(&self) -> u64 {
        self.shared().now
    }

    /// Opens this core's end of a ring: `aic_initialize_pipe` or `aiv_initialize_pipe`. A consumer
    /// grants its credits.
    pub async fn open(&self, ring: &Ring) -> Result<RingEnd, Fault> {
        RingEnd::open(self.clone(), Rc::clone(&ring.0)).await
    }

    /// Spends cycles of a pipe (plus the seed's jitter), for arithmetic that the kernel does in
    /// Rust. See [`crate::timing`] for what operations cost.
    pub async fn work(&self, pipe: Pipe, cycles: u64, name: &str) {
        let start = self.now();
        self.sleep(cycles).await;
        self.event(Event { pipe: Some(pipe), name: name.into(), start, ..self.blank(EventKind::Work) });
    }

    /// `set_cross_core`, `ffts_cross_core_sync` in mode 2: the Cube signals both Vectors, a Vector
    /// signals the Cube.
    pub async fn set_cross_core(&self, pipe: Pipe, id: u8) -> Result<(), Fault> {
        if self.arch() == Arch::A5 {
            let hint = "A5 has no FFTS sets; use set_intra_block";
            return self.fail(Fault::NoSemaphore { core: self.id, id, hint });
        }
        self.set(pipe, self.checked(id, SEMAPHORE_IDS)?, Lanes::BOTH).await
    }

    /// `wait_flag_dev`: a Vector waits for the Cube's set, the Cube for one set of each Vector.
    pub async fn wait_flag_dev(&self, id: u8) -> Result<(), Fault> {
        if self.arch() == Arch::A5 {
            let hint = "A5 has no FFTS waits; use wait_intra_block";
            return self.fail(Fault::NoSemaphore { core: self.id, id, hint });
        }
        self.wait(Pipe::S, self.checked(id, SEMAPHORE_IDS)?, Lanes::BOTH).await
    }

    /// `set_intra_block` of A5: flags 0..16 of the Cube are Vector 0's, 16..32 are Vector 1's.
    pub async fn set_intra_block(&self, pipe: Pipe, flag: u8) -> Result<(), Fault> {
        let (id, lanes) = self.flag(flag)?;
        self.set(pipe, id, lanes).await
    }

    /// `wait_intra_block` of A5; flags as in [`Self::set_intra_block`].
    pub async fn wait_intra_block(&self, pipe: Pipe, flag: u8) -> Result<(), Fault> {
        let (id, lanes) = self.flag(flag)?;
        self.wait(pipe, id, lanes).await
    }

    /// A scalar store of a word to global memory. It stays in this core's cache until
    /// [`Self::flush`].
    pub async fn store_word(&self, at: usize, word: u32) -> Result<(), Fault> {
        self.sleep(timing::WAIT).await;
        let line = at / CACHE_LINE * CACHE_LINE;
        let result = self.with_line(line, |cached| {
            cached.dirty = true;
            cached.bytes.get_mut(at - line..at - line + 4).map(|place| place.copy_from_slice(&word.to_le_bytes()))
        });
        self.keep(result?.ok_or_else(|| misaligned(at)))
    }

    /// A scalar load of a word from global memory, through this core's cache.
    pub async fn load_word(&self, at: usize) -> Result<u32, Fault> {
        self.sleep(timing::SCALAR_GM).await;
        let line = at / CACHE_LINE * CACHE_LINE;
        let word = |cached: &mut Line| cached.bytes.get(at - line..at - line + 4).and_then(|word| word.try_into().ok());
        let word: Option<[u8; 4]> = self.with_line(line, word)?;
        self.keep(word.map(u32::from_le_bytes).ok_or_else(|| misaligned(at)))
    }

    /// `dcci` and `dsb`: writes the line of this address back to global memory, if this core has
    /// written to it, and invalidates it.
    pub async fn flush(&self, at: usize) -> Result<(), Fault> {
        self.sleep(timing::SCALAR_GM).await;
        let line = at / CACHE_LINE * CACHE_LINE;
        let mut shared = self.shared();
        let cached = shared.caches[self.id.index()].remove(&line);
        let Some(Line { bytes, dirty: true }) = cached else { return Ok(()) };
        let result = shared.memories.write(Space::Gm, line, &bytes);
        drop(shared);
        self.keep(result.map_err(Fault::from))
    }

    fn with_line<T>(&self, line: usize, access: impl FnOnce(&mut Line) -> T) -> Result<T, Fault> {
        let mut shared = self.shared();
        let shared = &mut *shared;
        let mut fresh = vec![0; CACHE_LINE];
        if let Err(error) = shared.memories.read(Space::Gm, line, &mut fresh) {
            shared.fault.get_or_insert(error.clone().into());
            return Err(error.into());
        }
        Ok(access(shared.caches[self.id.index()].entry(line).or_insert(Line { bytes: fresh, dirty: false })))
    }

    fn flag(&self, flag: u8) -> Result<(u8, Lanes), Fault> {
        if self.arch() != Arch::A5 {
            let hint = "intra-block flags are A5's; use set_cross_core and wait_flag_dev";
            return self.fail(Fault::NoSemaphore { core: self.id, id: flag, hint });
        }
        match self.id.lane() {
            Some(lane) => Ok((self.checked(flag, SEMAPHORE_IDS)?, Lanes::one(lane))),
            None => {
                self.checked(flag, 2 * VEC_CORE_ID_OFFSET)?;
                let lane = if flag < VEC_CORE_ID_OFFSET { Lane::L0 } else { Lane::L1 };
                Ok((flag % VEC_CORE_ID_OFFSET, Lanes::one(lane)))
            }
        }
    }

    fn checked(&self, id: u8, end: u8) -> Result<u8, Fault> {
        let hint = "ids are 0 to 15; only an A5 Cube has flags 16 to 31, for Vector 1";
        if id < end { Ok(id) } else { self.fail(Fault::NoSemaphore { core: self.id, id, hint }) }
    }

    async fn set(&self, pipe: Pipe, id: u8, lanes: Lanes) -> Result<(), Fault> {
        let (start, arch) = (self.now(), self.arch());
        self.sleep(timing::signal(arch)).await;
        let mut shared = self.shared();
        let cycle = When(Some(shared.now));
        let result = shared.check_address(self.id, id, pipe).and_then(|()| {
            let full = |overflow| Fault::overflow(arch, self.id, pipe, overflow, cycle);
            shared.state.semaphores.set(self.id, id, lanes).map_err(full)
        });
        drop(shared);
        self.keep(result)?;
        self.event(Event { pipe: Some(pipe), semaphore: Some(id), start, ..self.blank(EventKind::Signal) });
        Ok(())
    }

    async fn wait(&self, pipe: Pipe, id: u8, lanes: Lanes) -> Result<(), Fault> {
        let start = self.now();
        let address = self.shared().check_address(self.id, id, pipe);
        self.keep(address)?;
        poll_fn(|_| {
            let mut shared = self.shared();
            if shared.state.semaphores.take(self.id, id, lanes) {
                return Poll::Ready(());
            }
            shared.status[self.id.index()] = Status::Blocked(Wait::Semaphore { id, lanes });
            Poll::Pending
        })
        .await;
        self.event(Event { pipe: Some(pipe), semaphore: Some(id), start, ..self.blank(EventKind::Wait) });
        self.sleep(timing::WAIT).await;
        Ok(())
    }

    /// Performs a step of a ring, including the cost of its signal.
    pub(super) async fn perform(&self, step: &Step, name: &str) -> Result<(), Fault> {
        let asked = self.now();
        if step.signal.is_some() && !step.waits() {
            self.sleep(timing::signal(self.arch())).await;
        }
        poll_fn(|_| {
            let mut shared = self.shared();
            match shared.step(self.id, step) {
                Ok(true) => Poll::Ready(Ok(())),
                Ok(false) => {
                    shared.status[self.id.index()] = Status::Blocked(Wait::Step(*step));
                    Poll::Pending
                }
                Err(fault) => {
                    shared.fault.get_or_insert(fault.clone());
                    Poll::Ready(Err(fault))
                }
            }
        })
        .await?;
        let Some(signal) = step.signal else { return Ok(()) };
        let waited = step.waits() && self.now() > asked;
        if waited || !step.waits() {
            let kind = if waited { EventKind::Wait } else { EventKind::Signal };
            self.event(Event {
                pipe: Some(signal.pipe),
                semaphore: Some(signal.id),
                name: name.into(),
                tile: Some(step.tile),
                start: asked,
                ..self.blank(kind)
            });
        }
        if step.waits() {
            self.sleep(timing::WAIT).await;
        }
        Ok(())
    }

    /// Spends cycles, plus the seed's jitter.
    pub(super) async fn sleep(&self, cycles: u64) {
        if cycles == 0 {
            return;
        }
        let mut started = false;
        poll_fn(|_| {
            if started {
                return Poll::Ready(());
            }
            started = true;
            let mut shared = self.shared();
            let until = shared.now.saturating_add(shared.delay(self.id, cycles));
            shared.status[self.id.index()] = Status::Until(until);
            Poll::Pending
        })
        .await;
    }

    pub(super) fn shared(&self) -> RefMut<'_, Shared> {
        self.shared.borrow_mut()
    }

    /// An event of this core that ends now, to be filled in.
    pub(super) fn blank(&self, kind: EventKind) -> Event {
        let now = self.now();
        let name = "".into();
        Event { core: self.id, pipe: None, kind, name, tile: None, slot: None, semaphore: None, start: now, end: now }
    }

    pub(super) fn event(&self, event: Event) {
        self.shared().events.push(event);
    }

    /// Records a fault in the cluster, so that the run ends with it whatever the kernel does,
    /// and returns it.
    pub(super) fn keep<T>(&self, result: Result<T, Fault>) -> Result<T, Fault> {
        if let Err(fault) = &result {
            self.shared().fault.get_or_insert(fault.clone());
        }
        result
    }

    pub(super) fn fail<T>(&self, fault: Fault) -> Result<T, Fault> {
        self.keep(Err(fault))
    }
}

fn misaligned(at: usize) -> Fault {
    Fault::Usage(format!("a word at {at:#x} crosses a cache line of {CACHE_LINE} bytes; align it to 4"))
}
