//! Launches: from a prepared program to the records of the queue.
//!
//! The commands of a launch, in their order:
//!
//! 1. the text that some cores lack; the words of the mailbox that are not as they must be;
//! 2. for every rectangle of cores a linked chain of configuration and launch message;
//! 3. the arguments that differ from core to core;
//! 4. the wait for the program before this one, which clears the stream of finished workers;
//! 5. the go signal.
//!
//! Where the subordinate sends go signals, its table of targets and the go signal are relayed to
//! it, and the dispatcher notifies it in place of 5. On a tile of its own it waits for the program
//! before as well, because it counts workers itself.
//!
//! The end of the last program is waited for by [`Launcher::settle`]. All of it is one record, so
//! that one entry of the prefetch queue carries a program, unless it is too long (`records`).
//!
//! What is in the program's template (2) and what each core gets (3) is patched here; the other
//! commands are in `commands`.

mod commands;

use super::account::{Account, Sent as Written};
use super::records::{Builder, Encoded, what};
use super::sequence::{Compiled, Private, relay, relay_to};
use super::text::TextStore;
use super::{CacheCounts, Prepared, ProgramCache, trace};
use crate::RuntimeError;
use crate::device::SubDeviceId;
use crate::lower::{self, Go};
use crate::memory::Allocator;
use crate::program::{Layout, Program, ProgramError, ProgramErrorKind};
use commands::{Launching, signal};
use std::sync::Arc;
use tilework_abi::addr::{DramAddr, L1Addr};
use tilework_abi::board::Board;
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::{DONE_STREAM, QueueId};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::cq::tiles::{DispatchLayout, Queues};
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::noc::NocXy;
use tilework_cq::dispatch::Wait;
use tilework_cq::{DispatchCommand, EncodeError, Record};

/// What to launch beside the prepared program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launch<'a> {
    /// Position in the run, for reports.
    pub tag: Option<usize>,
    /// Timestamp slots of start and end.
    pub stamps: Option<(u32, u32)>,
    /// What each core's profiler control block gets, if its times are taken.
    pub timing: Option<&'a [Vec<u8>]>,
}

/// What a launch puts into the queue.
#[derive(Debug)]
pub struct Launched {
    /// What to put into the queue, in this order.
    pub records: Vec<Encoded>,
    /// Where everything of the program lies.
    pub layout: Arc<Layout>,
}

/// The program cache of a device and the account of its workers: from programs to the records of a
/// queue. A [`Device`](crate::Device) has one; it works without a chip as well.
#[derive(Debug)]
pub struct Launcher {
    pub(super) cache: ProgramCache,
    pub(super) account: Account,
    /// The trace that was replayed last, when nothing has been launched since.
    pub(super) replayed: Option<u64>,
    pub(super) map: MemoryMap,
    pub(super) workers: Vec<NocXy>,
    pub(super) columns: &'static [u8],
    /// How the programs of each queue are launched on sub-device 0.
    gos: [Go; QueueId::ALL.len()],
    /// The queue and the sub-device of the launches to come, how they are launched and
    /// their stream.
    at: (QueueId, SubDeviceId),
    go: Go,
    stream: u16,
    /// Whether the dispatcher's own rectangles hold exactly the workers.
    all_by_multicast: bool,
    /// Where the device sees the host region of each queue.
    bases: [u32; QueueId::ALL.len()],
    text_sent: u64,
    text_resident: u64,
    text_from_dram: u64,
    /// The text in DRAM of each queue, once there is a region for it: the queues are not ordered.
    stores: [Option<TextStore>; QueueId::ALL.len()],
    /// Commands for the subordinate so far.
    pub(super) subordinate: u64,
    /// The wait for workers, of the dispatcher and of a subordinate that counts them, too.
    wait: Vec<u8>,
    wait_apart: Option<Vec<u8>>,
    stamp: Vec<u8>,
    /// What tells a subordinate that it may send the go signal.
    notify: Option<Vec<u8>>,
    signal: Vec<u8>,
    buffer: Vec<u8>,
}

impl Launcher {
    /// The launcher of a device with these workers, of which nothing is known.
    ///
    /// # Errors
    /// None with commands that can be written.
    pub fn new(board: Board, layout: DispatchLayout, map: &MemoryMap, workers: &[NocXy]) -> Result<Self, EncodeError> {
        let mut launcher = Self {
            cache: ProgramCache::default(),
            account: Account::new(map, workers.len()),
            replayed: None,
            map: *map,
            workers: workers.to_vec(),
            columns: board.worker_columns(),
            gos: [Go::of(layout, board); QueueId::ALL.len()],
            at: Default::default(),
            go: Go::of(layout, board),
            stream: u16_of(DONE_STREAM),
            all_by_multicast: false,
            bases: QueueId::ALL.map(QueueId::region_noc_base),
            text_sent: 0,
            text_resident: 0,
            text_from_dram: 0,
            stores: Default::default(),
            subordinate: 0,
            wait: Vec::new(),
            wait_apart: None,
            stamp: relay(&lower::timestamp(0, 0))?,
            notify: None,
            signal: Vec::new(),
            buffer: Vec::new(),
        };
        launcher.serve(board, layout.queues(1))?;
        Ok(launcher)
    }

    /// Serves these queues: workers report to the queue that has started them.
    ///
    /// # Errors
    /// None with commands that can be written.
    pub(crate) fn serve(&mut self, board: Board, queues: Queues) -> Result<(), EncodeError> {
        // The boards whose columns the dispatcher knows (`cq-core/peers.rs`).
        let known = [Board::P100, Board::P150].iter().any(|known| known.worker_columns() == board.worker_columns());
        self.all_by_multicast = known && queues.workers(board).eq(self.workers.iter().copied());
        for id in queues.ids() {
            self.gos[id.index()] = Go::at(queues.layout().queue(id), board);
        }
        self.turn_to(QueueId::FIRST, SubDeviceId::WHOLE)
    }

    /// The launches to come are those of `queue` on the sub-device `sub`.
    ///
    /// # Errors
    /// None with commands that can be written.
    pub(crate) fn select(&mut self, queue: QueueId, sub: SubDeviceId) -> Result<(), EncodeError> {
        if self.at == (queue, sub) { Ok(()) } else { self.turn_to(queue, sub) }
    }

    fn turn_to(&mut self, queue: QueueId, sub: SubDeviceId) -> Result<(), EncodeError> {
        self.account.select(queue, sub);
        self.at = (queue, sub);
        let stream = DONE_STREAM + u32::from(sub.number());
        let go = self.gos[queue.index()].on_sub_device(sub.number());
        self.go = go;
        self.stream = u16_of(stream);
        let wait = DispatchCommand::wait_stream_and_clear(self.stream, 0);
        self.wait = relay(&wait)?;
        self.wait_apart = go.counts_apart().then(|| relay_to(go.sender(), &wait)).transpose()?;
        let by_subordinate = go.sender() == DispatcherSelect::Subordinate;
        self.notify = by_subordinate.then(|| relay(&lower::notify(sub.number()))).transpose()?;
        let signal = DispatchCommand::SendGoSignal(signal(go.word, stream, None, 0, 0));
        self.signal = relay_to(go.sender(), &signal)?;
        Ok(())
    }

    /// Whether a program of `queue` is in flight on one of these sub-devices: the queue has not
    /// waited for its end.
    pub(crate) fn has_launched(&self, queue: QueueId, subs: &[SubDeviceId]) -> bool {
        subs.iter().any(|&sub| self.account.has_launched(queue, sub))
    }

    /// Counts so far.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            text_sent: self.text_sent,
            text_resident: self.text_resident,
            text_from_dram: self.text_from_dram,
            ..self.cache.counts()
        }
    }

    /// Programs in the cache.
    #[cfg(test)]
    pub(super) fn cache_len(&self) -> usize {
        self.cache.len()
    }

    /// Whether text that comes back to L1 would be kept in DRAM if the present queue had a region.
    pub(crate) fn lacks_text_store(&self) -> bool {
        self.account.evicted && self.stores[self.at.0.index()].is_none()
    }

    /// Keeps text in the region of `STORE_BYTES` at `base` of each of `banks`
    /// DRAM banks, which nothing but the present queue uses.
    pub fn keep_text(&mut self, base: DramAddr, banks: usize) {
        self.stores[self.at.0.index()] = Some(TextStore::new(base, banks));
    }

    /// Says where the device sees the host region of `queue`.
    pub(crate) fn place_region(&mut self, queue: QueueId, base: u32) {
        self.bases[queue.index()] = base;
    }

    fn home(&self, compiled: &Compiled) -> Option<u32> {
        self.stores[self.at.0.index()].as_ref().and_then(|store| store.home(compiled.id))
    }

    /// Commands for the subordinate so far, which no list of sent commands has.
    pub fn subordinate_commands(&self) -> u64 {
        self.subordinate
    }

    /// Forgets what the workers and the dispatcher hold: somebody else has written there.
    pub fn forget(&mut self) {
        self.replayed = None;
        self.account.forget();
    }

    /// A program that can be launched, from the cache if it is there.
    ///
    /// # Errors
    /// Whatever is wrong with the program.
    pub fn prepare(&mut self, program: &Program, l1: &Allocator<L1Addr>) -> Result<Prepared, RuntimeError> {
        let (workers, map, columns) = (&self.workers, &self.map, self.columns);
        let compiled = self.cache.get(program, |id| {
            let layout = program.layout(workers, map, l1)?;
            Ok::<_, RuntimeError>(Compiled::new(program, id, layout, workers, columns)?)
        })?;
        program.check_values(&compiled.layout.cores)?;
        let mut prepared = Prepared::new(compiled, program);
        self.place_cbs(&mut prepared, l1)?;
        Ok(prepared)
    }

    /// Where the next launch of `program` would put its parts. `layout` is that of the plain
    /// lowering.
    ///
    /// # Errors
    /// None with a program that has a layout.
    pub fn layout(&self, program: &Program, layout: Layout) -> Result<Layout, ProgramError> {
        let fail = |error: EncodeError| ProgramErrorKind::Kernel(error.to_string()).of(&program.name);
        let cbs = layout.cbs.clone();
        let compiled = match self.cache.find(program) {
            Some(compiled) => compiled,
            None => Arc::new(Compiled::new(program, 0, layout, &self.workers, self.columns).map_err(fail)?),
        };
        let mut account = self.account.clone();
        let place = account.place(&compiled, &compiled.shared(program, &cbs), false, self.home(&compiled));
        Ok(Layout { cbs, ..compiled.placed(account.base(place.slot), place.text) })
    }

    /// Gives the circular buffers of a prepared program their addresses: memory may have been
    /// allocated since they were given last.
    ///
    /// # Errors
    /// No room for them.
    pub fn place_cbs(&self, prepared: &mut Prepared, l1: &Allocator<L1Addr>) -> Result<(), ProgramError> {
        if prepared.program.cbs.is_empty() {
            return Ok(());
        }
        let cbs = prepared.program.place_cbs(l1);
        prepared.set_cbs(&cbs.map_err(|kind: ProgramErrorKind| kind.of(&prepared.program.name))?);
        Ok(())
    }

    /// The records of a launch. The account takes them for sent: the caller puts all of them into
    /// the queue or gives up the device.
    ///
    /// # Errors
    /// A kernel that cannot be moved to its place, a command that cannot be written.
    pub fn launch(&mut self, prepared: &Prepared, launch: &Launch) -> Result<Launched, RuntimeError> {
        self.replayed = None;
        let compiled = &*prepared.compiled;
        let timed = launch.timing.is_some();
        let place = self.account.place(compiled, &prepared.shared, timed, self.home(compiled));
        let base = self.account.base(place.slot);
        let bytes = std::mem::take(&mut self.buffer);
        let mut out = Builder::new(bytes);
        let tag = launch.tag;
        if self.account.counted.is_some() && place.missing.iter().any(|missing| !missing.is_empty()) {
            return Err(trace::cold(&prepared.program));
        }
        if place.wait {
            self.settle_into(&mut out)?;
        }
        let stamped = self.account.in_flight.is_none();
        if stamped && !self.account.stream {
            self.wait_stream(&mut out, 0, tag)?;
            self.account.stream = true;
        }
        if stamped {
            self.time(&mut out, launch.stamps.map(|stamps| stamps.0), tag)?;
        }
        let launching = Launching { program: &prepared.program, compiled, place: &place, tag };
        self.text(&mut out, launching)?;
        self.mailbox(&mut out, launching)?;
        let uniform = matches!(&prepared.private, Private::Uniform(bytes) if !bytes.is_empty());
        let template = compiled.template(&place, base, uniform, &self.map)?;
        let message = self.map.launch.offset(place.message * u32_of(LAUNCH_MSG_BYTES));
        let private = match &prepared.private {
            Private::Uniform(bytes) => bytes.as_slice(),
            Private::PerCore(_) => &[],
        };
        for command in &template.commands {
            let what = what(&prepared.program, "configuration and launch messages", compiled.workers);
            command.patch(out.add(&command.bytes, tag, what)?, message, private, &prepared.shared);
        }
        if let Private::PerCore(packets) = &prepared.private {
            for command in packets {
                let what = what(&prepared.program, "arguments", compiled.workers);
                command.patch(out.add(&command.bytes, tag, what)?, base);
            }
        }
        if let Some(blocks) = launch.timing {
            self.arm(&mut out, compiled, blocks, tag)?;
        }
        let mut go = self.targets(&mut out, compiled, tag)?;
        match self.account.counted {
            // The signal itself waits. Where the subordinate sends it, the dispatcher waits as
            // well: it would else write the data of the next program while two are in flight.
            Some(count) => {
                if self.notify.is_some() {
                    self.settle_into(&mut out)?;
                }
                go.wait_count = count;
            }
            None => self.settle_into(&mut out)?,
        }
        if !stamped {
            self.time(&mut out, launch.stamps.map(|stamps| stamps.0), tag)?;
        }
        self.signal(&mut out, go, tag)?;
        let sent = Written {
            tag,
            stamp: launch.stamps.map(|stamps| stamps.1),
            timed,
            private_bytes: prepared.private_bytes(),
            shared: &prepared.shared,
        };
        self.account.launched(compiled, &place, sent);
        Ok(Launched { records: self.close(out)?, layout: prepared.layout(&template.layout) })
    }

    /// The records that wait for the program in flight, if there is one. Whatever follows them in
    /// the queue comes after its end.
    ///
    /// # Errors
    /// None with commands that can be written.
    pub fn settle(&mut self) -> Result<Vec<Encoded>, EncodeError> {
        let mut out = Builder::default();
        self.settle_into(&mut out)?;
        self.close(out)
    }

    pub(super) fn close(&mut self, out: Builder) -> Result<Vec<Encoded>, EncodeError> {
        let (records, subordinate) = out.finish()?;
        self.subordinate += subordinate;
        Ok(records)
    }

    /// Takes back the memory of a record that is in the queue, for the next one.
    pub fn reuse(&mut self, record: Record) {
        self.buffer = record.into_bytes();
        self.buffer.clear();
    }

    pub(super) fn settle_into(&mut self, out: &mut Builder) -> Result<(), EncodeError> {
        let Some(before) = self.account.in_flight.take() else { return Ok(()) };
        if let Some(count) = self.account.counted {
            let wait = Wait { flags: WaitFlags::WAIT_STREAM, stream: self.stream, addr: 0, count };
            return out.command(DispatchCommand::Wait(wait), before.tag);
        }
        self.wait_stream(out, before.cores, before.tag)?;
        self.account.stream = true;
        self.time(out, before.stamp, before.tag)
    }
}

const _: () = assert!(LAUNCH_ENTRIES > 2, "one program is in use while the next is written");
