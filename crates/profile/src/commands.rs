//! The commands of the command queue, while its kernels execute them.
//!
//! A command begins when its kernel loads the command's first byte from its ring, which is its id,
//! and ends when the kernel counts it in its status block ([`tilework_abi::cq::status`]). Both are
//! what the firmware does; nothing is added to it. Size and program come from the host, which tells
//! of its commands in the order in which each kernel executes them
//! ([`tilework_driver::CommandsNote`]); ids must agree, otherwise only the ids are shown from then
//! on.
//!
//! Kernels of others are left out: where they keep their rings and counts is not known. The host
//! side of a split prefetcher passes on records of one or more commands and looks at the id of the
//! first only: a record is shown by that name. The host side of a split dispatcher gets few of the
//! commands. What these two have is without size and program.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use tilework_abi::cq::dispatch::DispatchCmdId;
use tilework_abi::cq::layout::{PageRing, dispatch_core, prefetch_core, prefetch_d_core};
use tilework_abi::cq::prefetch::PrefetchCmdId;
use tilework_abi::cq::status::Kernel;
use tilework_abi::cq::tiles::Part;
use tilework_abi::noc::NocXy;
use tilework_driver::{CommandNote, CommandsNote, LaunchNote, QueueNote};

use crate::Place;

/// Names of programs that are kept: more than can be in flight in a queue.
const NAMES: u64 = 1 << 12;

/// A command that a kernel executes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// The number of its queue.
    pub queue: u8,
    /// Its name.
    pub name: &'static str,
    /// Its number among the commands of its kernel, from 0.
    pub number: u64,
    /// Its bytes with its data, if the host has told.
    pub bytes: Option<u64>,
    /// The program that it belongs to, if it belongs to one.
    pub program: Option<Arc<str>>,
}

/// What is known of the kernels of command queues.
#[derive(Clone, Debug, Default)]
pub(crate) struct Commands {
    kernels: BTreeMap<Place, Executing>,
    /// By queue and tag.
    programs: BTreeMap<(u8, u64), Arc<str>>,
}

/// A kernel that executes commands.
#[derive(Clone, Debug)]
struct Executing {
    queue: u8,
    kernel: Kernel,
    /// Where its commands come from in L1.
    rings: Vec<Range<u32>>,
    /// Commands of the host that it has not begun; none if they are not told, or do not agree.
    told: Option<VecDeque<Told>>,
    /// Commands that it has begun.
    begun: u64,
    is_open: bool,
}

#[derive(Clone, Debug)]
struct Told {
    id: u8,
    bytes: u64,
    program: Option<Arc<str>>,
}

impl Commands {
    /// A command queue is about to start on a tile.
    pub(crate) fn queue(&mut self, note: &QueueNote) {
        for part in note.parts.iter().filter(|_| note.own) {
            let bytes = |ring: PageRing| ring.base().get()..ring.end().get();
            let commands = prefetch_core::CMDDAT_Q;
            let (kernel, rings, is_told) = match part {
                Part::Prefetch => (Kernel::Prefetch, vec![bytes(commands)], true),
                // Records lie in their ring, chunks of command buffers in the queue.
                Part::PrefetchD => (Kernel::Prefetch, vec![bytes(prefetch_d_core::RECORDS), bytes(commands)], true),
                Part::Dispatch | Part::DispatchD => (Kernel::Dispatch, vec![bytes(dispatch_core::DISPATCH_CB)], true),
                Part::DispatchH => (Kernel::Dispatch, vec![bytes(dispatch_core::DISPATCH_CB)], false),
                Part::Subordinate => (Kernel::DispatchS, vec![bytes(dispatch_core::DISPATCH_S_CB)], true),
                Part::PrefetchH => (Kernel::Prefetch, vec![bytes(commands)], false),
            };
            let told = is_told.then(VecDeque::new);
            let executing = Executing { queue: note.queue, kernel, rings, told, begun: 0, is_open: false };
            self.kernels.insert(Place { tile: note.tile, core: part.processor() }, executing);
        }
    }

    /// The bytes of L1 that commands are loaded from.
    pub(crate) fn rings(&self) -> impl Iterator<Item = (NocXy, Range<u32>)> {
        self.kernels.iter().flat_map(|(place, it)| it.rings.iter().map(|ring| (place.tile, ring.clone())))
    }

    /// A program is about to be launched.
    pub(crate) fn launch(&mut self, note: &LaunchNote) {
        let (Some(queue), Some(tag)) = (note.queue, note.tag) else { return };
        self.programs.insert((queue, tag), note.program.as_str().into());
        self.programs.retain(|&(of, number), _| of != queue || number.saturating_add(NAMES) > tag);
    }

    /// The host is about to send commands.
    pub(crate) fn commands(&mut self, note: &CommandsNote) {
        let (queue, programs) = (note.queue, &self.programs);
        let named = |command: &CommandNote| Told {
            id: command.id,
            bytes: command.bytes,
            program: command.program.and_then(|tag| programs.get(&(queue, tag)).cloned()),
        };
        for executing in self.kernels.values_mut().filter(|executing| executing.queue == queue) {
            let of_kernel = note.commands.iter().filter(|command| command.kernel == executing.kernel);
            if let Some(told) = &mut executing.told {
                told.extend(of_kernel.map(named));
            }
        }
    }

    /// A core loads from L1: perhaps the first byte of its next command.
    pub(crate) fn loaded(&mut self, place: Place, addr: u32, bytes: u8, value: u32) -> Option<Command> {
        let executing = self.kernels.get_mut(&place)?;
        if executing.is_open || bytes != 1 || !executing.rings.iter().any(|ring| ring.contains(&addr)) {
            return None;
        }
        executing.is_open = true;
        let number = executing.begun;
        executing.begun += 1;
        let id = u8::try_from(value).unwrap_or(0);
        let next = executing.told.as_mut().and_then(VecDeque::pop_front).filter(|told| told.id == id);
        if next.is_none() {
            executing.told = None;
        }
        let name = name(executing.kernel, id);
        let (bytes, program) = next.map_or((None, None), |told| (Some(told.bytes), told.program));
        Some(Command { queue: executing.queue, name, number, bytes, program })
    }

    /// A kernel counts a command. Returns whether one was open.
    pub(crate) fn counted(&mut self, place: Place) -> bool {
        self.kernels.get_mut(&place).is_some_and(|executing| std::mem::take(&mut executing.is_open))
    }
}

/// The name of the command with this id.
fn name(kernel: Kernel, id: u8) -> &'static str {
    match kernel {
        Kernel::Prefetch => PrefetchCmdId::try_from(id).map(PrefetchCmdId::name),
        Kernel::Dispatch | Kernel::DispatchS => DispatchCmdId::try_from(id).map(DispatchCmdId::name),
    }
    .unwrap_or("unknown command")
}
