//! Memory use of a netlist: DRAM channels, the cores' L1, the destination registers.
//!
//! Chip sizes are those of the public device descriptions (tt-budabackend,
//! `device/grayskull_10x12.yaml`, `wormhole_80_arch`, `wormhole_b0_80_arch`, `blackhole_10x14`).
//! The sizes of input buffers are decided when a netlist is compiled; here they are what the
//! netlist asks for or else the minimum, so that a core that is too small for this is too small
//! in any case.

use crate::format::DataFormat;
use crate::size::{buffer_bytes, raw_tile_bytes, tile_bytes};
use crate::types::{Arch, FusedTarget, Layout, Location, Netlist, Op, OpKind, Producer, Queue, Size, Source, Tm};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

impl Arch {
    /// Rows and columns of worker cores.
    pub fn grid(self) -> Size {
        match self {
            Arch::Grayskull => Size { r: 10, c: 12 },
            Arch::Wormhole | Arch::WormholeB0 => Size { r: 10, c: 8 },
            Arch::Blackhole => Size { r: 10, c: 14 },
        }
    }

    /// DRAM channels.
    pub fn dram_channels(self) -> u32 {
        match self {
            Arch::Grayskull | Arch::Blackhole => 8,
            Arch::Wormhole | Arch::WormholeB0 => 6,
        }
    }

    /// Bytes of a DRAM channel.
    pub fn dram_channel_bytes(self) -> u64 {
        match self {
            Arch::Grayskull => 1 << 30,
            Arch::Wormhole | Arch::WormholeB0 => 2 << 30,
            Arch::Blackhole => 4 << 30,
        }
    }

    /// Bytes of a worker core's memory, including the firmware's part.
    pub fn l1_bytes(self) -> u64 {
        match self {
            Arch::Grayskull => 1_048_576,
            Arch::Wormhole | Arch::WormholeB0 | Arch::Blackhole => 1_499_136,
        }
    }
}

/// The most tiles of a micro block: half of the destination registers, while the packer empties the
/// other half (tt-budabackend, `netlist/netlist_parser.cpp`).
pub fn dst_tiles(acc: DataFormat, arch: Arch) -> u64 {
    let half = if matches!(acc, DataFormat::Float32 | DataFormat::Int32) { 4 } else { 8 };
    if arch == Arch::Wormhole { half * 4 } else { half }
}

/// Bytes of one buffer of a queue.
pub fn queue_buffer_bytes(netlist: &Netlist, queue: &Queue, arch: Arch) -> u64 {
    let rows = match queue.producer {
        Producer::Op(op) => netlist.op(op).untilize_output,
        Producer::Host => false,
    };
    let bytes = if rows || queue.layout == Layout::Flat {
        let entry = queue.blocks.entry_tiles().saturating_mul(raw_tile_bytes(queue.format, queue.blocks.tile));
        Some(entry.saturating_mul(u64::from(queue.entries)).saturating_add(arch.alignment()))
    } else {
        buffer_bytes(&queue.blocks, queue.format, queue.entries, arch)
    };
    bytes.unwrap_or(u64::MAX)
}

/// A buffer of a queue in a DRAM channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DramBuffer {
    /// The queue.
    pub queue: String,
    /// Which of its buffers, row by row.
    pub index: usize,
    /// First address.
    pub address: u64,
    /// Bytes, with the header.
    pub bytes: u64,
    /// Free bytes behind it, up to the next buffer or the end of the channel; 0 where the next
    /// one overlaps.
    pub gap: u64,
}

/// A DRAM channel of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DramChannel {
    /// The device.
    pub device: u32,
    /// The channel.
    pub channel: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes in use; memory that buffers share counts once.
    pub used: u64,
    /// The buffers by address.
    pub buffers: Vec<DramBuffer>,
}

/// The buffer of an input in a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputBuffer {
    /// Name of what is read.
    pub from: String,
    /// Tiles at least.
    pub tiles: u64,
    /// Bytes at least.
    pub bytes: u64,
}

/// The buffers of an operation in each of its cores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CoreBuffers {
    /// The operation.
    pub op: String,
    /// First row and column of its cores.
    pub grid_loc: (u32, u32),
    /// Rows and columns of its cores.
    pub cores: (u32, u32),
    /// Inputs.
    pub inputs: Vec<InputBuffer>,
    /// Bytes of intermediate buffers that the output's buffer does not hold.
    pub intermediate: u64,
    /// Bytes of the output's buffer, as the netlist asks for it.
    pub output: u64,
    /// Bytes of the output's buffer when it holds two micro blocks only.
    pub least_output: u64,
    /// Bytes of a larger overlay.
    pub overlay: u64,
    /// Tiles of the micro block.
    pub dst: u64,
    /// Tiles that the destination registers hold.
    pub dst_capacity: u64,
}

impl CoreBuffers {
    /// Bytes of all buffers.
    pub fn bytes(&self) -> u64 {
        let inputs = self.inputs.iter().fold(0u64, |sum, input| sum.saturating_add(input.bytes));
        inputs.saturating_add(self.intermediate).saturating_add(self.output).saturating_add(self.overlay)
    }
}

/// The buffers of an operation.
pub fn core_buffers(netlist: &Netlist, op: &Op, arch: Arch) -> CoreBuffers {
    let (output, least_output) = output_bytes(op, arch);
    CoreBuffers {
        op: op.name.clone(),
        grid_loc: (op.grid_loc.r, op.grid_loc.c),
        cores: (op.cores().r, op.cores().c),
        inputs: (0..op.inputs.len()).map(|index| input_buffer(netlist, op, index, arch)).collect(),
        intermediate: intermediate_bytes(netlist, op, arch),
        output,
        least_output,
        overlay: u64::from(op.overlay_size),
        dst: u64::from(op.blocks.ublock.r) * u64::from(op.blocks.ublock.c),
        dst_capacity: dst_tiles(op.acc_format, arch),
    }
}

/// Bytes of an operation's buffers in each core: with the output that is asked for, and with the
/// smallest one.
pub fn core_bytes(netlist: &Netlist, op: &Op, arch: Arch) -> (u64, u64) {
    let inputs = (0..op.inputs.len()).map(|index| input_size(netlist, op, index, arch).1).fold(0, u64::saturating_add);
    let (output, least) = output_bytes(op, arch);
    let others =
        inputs.saturating_add(intermediate_bytes(netlist, op, arch)).saturating_add(u64::from(op.overlay_size));
    (others.saturating_add(output), others.saturating_add(least))
}

/// Bytes of the output's buffer as asked for, and for two micro blocks.
fn output_bytes(op: &Op, arch: Arch) -> (u64, u64) {
    let tile = tile_bytes(op.out_format, op.blocks.tile, arch);
    let asked = op.blocks.mblock_tiles().saturating_mul(u64::from(op.buf_size_mb)).saturating_mul(tile);
    let two = 2 * u64::from(op.blocks.ublock.r) * u64::from(op.blocks.ublock.c);
    (asked, asked.min(two.saturating_mul(tile)))
}

fn input_buffer(netlist: &Netlist, op: &Op, index: usize, arch: Arch) -> InputBuffer {
    let (tiles, bytes) = input_size(netlist, op, index, arch);
    let from = match op.inputs[index].source {
        Source::Queue(queue) => netlist.queue(queue).name.clone(),
        Source::Op(op) => netlist.op(op).name.clone(),
    };
    InputBuffer { from, tiles, bytes }
}

/// Tiles and bytes of an input's buffer at least.
fn input_size(netlist: &Netlist, op: &Op, index: usize, arch: Arch) -> (u64, u64) {
    let input = &op.inputs[index];
    let shape = match input.source {
        Source::Queue(queue) => netlist.queue(queue).blocks.tile,
        Source::Op(op) => netlist.op(op).blocks.tile,
    };
    let (r, c) = (u64::from(op.blocks.ublock.r), u64::from(op.blocks.ublock.c));
    let block = match (&op.kind, index) {
        (OpKind::Matmul(m) | OpKind::Depthwise(m), 0) => r * u64::from(m.u_kt),
        (OpKind::Matmul(m) | OpKind::Depthwise(m), 1) => u64::from(m.u_kt) * c,
        (OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Matmul(_), _) => r * c,
        _ => 1,
    };
    let kept = input.kernel_broadcast.map(|kept| u64::from(kept.tiles));
    let tiles = kept.unwrap_or(block).max(input.min_buffer_tiles.map_or(1, u64::from));
    let sides = if input.tms.iter().filter(|tm| **tm == Tm::Transpose).count() % 2 == 1 {
        Size { r: shape.c, c: shape.r }
    } else {
        shape
    };
    (tiles, tiles.saturating_mul(tile_bytes(input.format, sides, arch)))
}

/// Intermediate results lie where the output does when both have the same format.
fn intermediate_bytes(netlist: &Netlist, op: &Op, arch: Arch) -> u64 {
    let tile = tile_bytes(op.intermed_format, op.blocks.tile, arch);
    match &op.kind {
        OpKind::Fused(id) => {
            let fused = netlist.fused(*id);
            let mut largest = vec![0u64; fused.intermediates.min(64) as usize];
            for step in fused.schedules.iter().flatten() {
                if let FusedTarget::Intermed(index) = step.output
                    && let Some(tiles) = largest.get_mut(index as usize)
                {
                    *tiles = (*tiles).max(u64::from(step.ublock.r) * u64::from(step.ublock.c));
                }
            }
            // Two micro blocks each (tt-budabackend, `docs/public/netlist.md`, section
            // intermediates).
            largest.iter().fold(0u64, |sum, tiles| sum.saturating_add(tiles.saturating_mul(2))).saturating_mul(tile)
        }
        OpKind::Matmul(m) if m.m_k > 1 && op.intermed_format != op.out_format => {
            op.blocks.mblock_tiles().saturating_mul(tile)
        }
        _ => 0,
    }
}

/// A graph's operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GraphCores {
    /// The graph.
    pub graph: String,
    /// The device.
    pub device: u32,
    /// Bytes of each core.
    pub l1_bytes: u64,
    /// Buffers of each operation.
    pub ops: Vec<CoreBuffers>,
}

/// Everything that a netlist takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// For which architecture.
    pub arch: &'static str,
    /// Channels with buffers, by device and channel.
    pub dram: Vec<DramChannel>,
    /// Buffers in the host's memory, in the same form; the channel's size is not known.
    pub host: Vec<DramChannel>,
    /// Graphs, in the file's order.
    pub graphs: Vec<GraphCores>,
}

impl Memory {
    /// The memory use of a netlist on an architecture.
    pub fn of(netlist: &Netlist, arch: Arch) -> Self {
        let graph = |index: usize| {
            let graph = &netlist.graphs[index];
            let ops = graph.ops.iter().map(|op| core_buffers(netlist, op, arch)).collect();
            GraphCores { graph: graph.name.clone(), device: graph.target_device, l1_bytes: arch.l1_bytes(), ops }
        };
        Self {
            arch: arch.name(),
            dram: channels(netlist, arch, Location::Dram),
            host: channels(netlist, arch, Location::Host),
            graphs: (0..netlist.graphs.len()).map(graph).collect(),
        }
    }
}

fn channels(netlist: &Netlist, arch: Arch, location: Location) -> Vec<DramChannel> {
    let mut found: BTreeMap<(u32, u32), Vec<DramBuffer>> = BTreeMap::new();
    for queue in netlist.queues.iter().filter(|queue| queue.location == location) {
        let bytes = queue_buffer_bytes(netlist, queue, arch);
        for (index, buffer) in queue.buffers.iter().enumerate() {
            let place = DramBuffer { queue: queue.name.clone(), index, address: buffer.address, bytes, gap: 0 };
            found.entry((queue.target_device, buffer.channel)).or_default().push(place);
        }
    }
    let size = if location == Location::Dram { arch.dram_channel_bytes() } else { 0 };
    let channel = |((device, channel), mut buffers): ((u32, u32), Vec<DramBuffer>)| {
        buffers.sort_by(|a, b| (a.address, a.bytes, &a.queue, a.index).cmp(&(b.address, b.bytes, &b.queue, b.index)));
        let (mut end, mut used) = (0, 0);
        for index in 0..buffers.len() {
            let next = buffers.get(index + 1).map_or(size, |next| next.address);
            let last = buffers[index].address.saturating_add(buffers[index].bytes);
            used += last.saturating_sub(buffers[index].address.max(end));
            end = end.max(last);
            buffers[index].gap = next.saturating_sub(end);
        }
        DramChannel { device, channel, bytes: size, used, buffers }
    };
    found.into_iter().map(channel).collect()
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "memory on {}", self.arch)?;
        for (what, channels) in [("DRAM", &self.dram), ("host", &self.host)] {
            for channel in channels {
                write!(
                    f,
                    "\ndevice {} {what} channel {}: {} bytes used",
                    channel.device, channel.channel, channel.used
                )?;
                match channel.bytes {
                    0 => writeln!(f)?,
                    bytes => writeln!(f, " of {bytes}, {:.2} %", channel.used as f64 * 100.0 / bytes as f64)?,
                }
                for buffer in &channel.buffers {
                    let name = format!("{}[{}]", buffer.queue, buffer.index);
                    write!(f, "  {:#010x} {:>10} {name}", buffer.address, buffer.bytes)?;
                    if buffer.gap > 0 { writeln!(f, ", then {} free", buffer.gap)? } else { writeln!(f)? }
                }
            }
        }
        for graph in &self.graphs {
            writeln!(
                f,
                "\ngraph {} on device {}: {} bytes of L1 in each core",
                graph.graph, graph.device, graph.l1_bytes
            )?;
            for op in &graph.ops {
                let (y, x) = op.grid_loc;
                write!(f, "  {} at [{y}, {x}], {} x {} cores: {} bytes (", op.op, op.cores.0, op.cores.1, op.bytes())?;
                for input in &op.inputs {
                    write!(f, "from {} {}, ", input.from, input.bytes)?;
                }
                if op.intermediate > 0 {
                    write!(f, "between {}, ", op.intermediate)?;
                }
                writeln!(f, "output {}); dst {} of {} tiles", op.output, op.dst, op.dst_capacity)?;
            }
        }
        Ok(())
    }
}
