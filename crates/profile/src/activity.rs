//! Activity: what happens on the chip in the words of those who wrote the programs.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::{Command, Why};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::{BufferNote, LaunchNote};
use tilework_sim::{PacketEvent, PcCount, Request, RequestId, Spot, Unit, Wants};

/// A core of a tile.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place {
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.tile, self.core)
    }
}

/// A kernel that a core runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The number of the launch on its device; none for kernels of the command queue.
    pub launch: Option<u64>,
    /// The program, or the command queue.
    pub program: Arc<str>,
    /// The role of the tile in the program.
    pub role: Arc<str>,
    /// The kernel; the firmware's, where it runs a program without a kernel for this core.
    pub name: Arc<str>,
    /// Its bytes in L1; empty where it has none.
    pub text: Range<u32>,
}

/// What happens.
#[derive(Clone, Copy, Debug)]
pub enum Activity<'a> {
    /// The host is about to launch a program.
    Launch(&'a LaunchNote),
    /// The host has allocated a buffer.
    Buffer(&'a BufferNote),
    /// The host has freed the buffer with this number.
    Freed(u64),
    /// A core starts a kernel: from the go signal on for BRISC, from BRISC's signal on for others.
    KernelStarts(Place, &'a Arc<Kernel>),
    /// Its end is signalled. With the cycle at which it started.
    KernelEnds(Place, &'a Arc<Kernel>, Cycle),
    /// A core waits, at this instruction.
    WaitStarts(Place, &'a Arc<Kernel>, &'a Why, u32),
    /// It goes on. With the cycle at which it began to wait.
    WaitEnds(Place, &'a Arc<Kernel>, &'a Why, u32, Cycle),
    /// A kernel of the command queue sends a go signal for a program.
    Go(Place, &'a LaunchNote),
    /// A core starts a request.
    RequestStarts(Place, Option<&'a Arc<Kernel>>, &'a Request),
    /// All of a request has arrived, its answer included if it has one.
    RequestEnds(RequestId, NocXy),
    /// A packet leaves (true) or arrives somewhere on a NoC.
    Packet(Spot, u8, bool, &'a PacketEvent),
    /// A circular buffer of a tile, with its name in reports, holds so many pages.
    Level(NocXy, u32, &'a str, i64),
    /// The prefetch queue of a tile has so many entries.
    QueueLevel(NocXy, i64),
    /// A kernel of the command queue begins a command.
    CommandStarts(Place, &'a Command),
    /// It has executed it.
    CommandEnds(Place),
    /// A kernel of the command queue has executed so many commands since the start.
    Commands(Place, u32),
    /// A unit of a tile's coprocessor works for a thread until a cycle.
    Works(NocXy, Unit, u8, Cycle),
    /// What a core executed, in this kernel if it had one.
    Counted(Place, Option<&'a Arc<Kernel>>, &'a [PcCount]),
    /// Everything before this cycle has been told.
    Reached,
}

/// Somebody to whom activity is told, in the order of cycles.
pub trait Listener: Send {
    /// Events that it needs beside those of cores, requests, packets and registers.
    fn wants(&self) -> Wants {
        Wants::NOTHING
    }
    /// Something happens at a cycle.
    fn hear(&mut self, at: Cycle, activity: &Activity<'_>);
}
