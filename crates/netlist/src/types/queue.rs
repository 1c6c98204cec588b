//! Queues: where data waits between the host and operations.

use super::{Blocks, OpId, Position, QueueId, Tm};
use crate::DataFormat;

/// What a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueueKind {
    /// First in, first out: pointers move with every entry.
    Queue,
    /// Random access: pointers say which entry.
    Ram,
}

/// Who fills a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Producer {
    /// The host.
    Host,
    /// An operation.
    Op(OpId),
}

/// Where a queue's buffers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Location {
    /// Device memory.
    Dram,
    /// Memory of the host.
    Host,
}

/// Form of the data in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Tiles with headers.
    #[default]
    Tilized,
    /// Rows, no headers.
    Flat,
}

/// One buffer of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// DRAM or host channel.
    pub channel: u32,
    /// Byte address of the queue header.
    pub address: u64,
}

/// A queue or ram.
#[derive(Debug, Clone, PartialEq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// Queue or ram.
    pub kind: QueueKind,
    /// Who fills it.
    pub producer: Producer,
    /// Entries that it holds.
    pub entries: u32,
    /// Shape of an entry.
    pub blocks: Blocks,
    /// Format of its data.
    pub format: DataFormat,
    /// Device that it lives on.
    pub target_device: u32,
    /// Which memory.
    pub location: Location,
    /// One buffer for each place of the grid, row by row; empty only for what is
    /// allocated elsewhere.
    pub buffers: Vec<Buffer>,
    /// The ram whose memory this one shows in another shape.
    pub alias: Option<QueueId>,
    /// Form of its data.
    pub layout: Layout,
    /// TMs of its input.
    pub tms: Vec<Tm>,
    /// NoC port of the readers of each buffer, when given.
    pub read_ports: Vec<u32>,
    /// NoC port of the writers of each buffer, when given.
    pub write_ports: Vec<u32>,
}
