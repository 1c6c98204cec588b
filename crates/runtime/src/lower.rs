//! From programs to writes and launches, and from these to dispatch commands.
//!
//! The intermediate form has two verbs, [`Ir::Write`] and [`Ir::Launch`]; fast and slow dispatch
//! start from the same list (seed sections 2.5 and 8). Order of one program: go message reset, go
//! message index, run-time arguments with semaphores (one write when all cores have the same, else
//! one per core), for each role its launch message and then its circular-buffer configurations and
//! kernel text, the launch.
//!
//! Where seed and original differ, the seed decides: a uniform write goes out in chunks of 1 KiB,
//! each followed by a barrier (the original sends one command of any length and no barrier).
//! Without the barrier nothing orders the multicasts before the unicast go signals, which travel on
//! another virtual channel. Per-core writes follow the original: one packet per core, each at a
//! multiple of 16 bytes; they too are cut at 1 KiB, so that a record of 118 packets stays below the
//! prefetcher's 256 KiB.

mod go;

pub(crate) use go::notify;
pub use go::{Addressed, Go, go_word};

use crate::program::{ArgSet, Layout, Program, ProgramError};
use std::collections::BTreeSet;
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::cb;
use tilework_abi::convert::{u8_of, u16_of, u32_of};
use tilework_abi::cq::dispatch::{
    WRITE_PACKED_LARGE_MAX_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS, WritePackedLargeType, WritePackedType,
};
use tilework_abi::cq::layout::{PCIE_NOC_XY_MARK, host};
use tilework_abi::l1::MemoryMap;
use tilework_abi::msg::{GoMsg, LaunchMsg, RUN_RESET_READ_PTR_FROM_HOST, RtaOffset};
use tilework_abi::noc::{NocRect, NocXy};
use tilework_abi::{board, tensix::Processor};
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{LargeSub, PackedLargeWrite, PackedTargets, PackedWrite, Packets, Timestamp};
use zerocopy::IntoBytes;

/// How programs become commands under fast dispatch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Lowering {
    /// From the program cache, with kernel text that stays on the workers and two programs under
    /// way at once ([`cache`](crate::cache)). Firmware whose memory map has no text cache gets the
    /// plain lowering.
    #[default]
    Cached,
    /// As the seed does it, whole and alone: the steps of this module for each launch.
    Plain,
}

/// Bytes of one chunk of a write (seed section 2.5).
pub const CHUNK: usize = 1024;

/// The bytes of an [`Ir::Write`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// The same bytes to every core.
    Uniform(Vec<u8>),
    /// Different bytes for each core, all of one length.
    PerCore(Vec<Vec<u8>>),
}

/// One step of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ir {
    /// Write to address `addr` of `cores`.
    Write {
        /// The destinations.
        cores: Vec<NocXy>,
        /// First byte.
        addr: L1Addr,
        /// The bytes.
        data: Data,
    },
    /// Start the kernels of `cores` and wait until all are done.
    Launch {
        /// The cores.
        cores: Vec<NocXy>,
    },
}

fn uniform(cores: &[NocXy], addr: L1Addr, bytes: &[u8]) -> Ir {
    Ir::Write { cores: cores.to_vec(), addr, data: Data::Uniform(bytes.to_vec()) }
}

/// The steps of a laid-out program; `mode` is `MODE_DEV` or `MODE_HOST`.
///
/// # Errors
/// A kernel that cannot be moved to its place.
pub fn build_ir(program: &Program, layout: &Layout, map: &MemoryMap, mode: u8) -> Result<Vec<Ir>, ProgramError> {
    let cores = &layout.cores;
    let reset = GoMsg::signal(RUN_RESET_READ_PTR_FROM_HOST).word().to_le_bytes();
    let mut ir = vec![uniform(cores, map.go, &reset), uniform(cores, map.go_index, &[0; 4])];
    ir.extend(arguments(program, layout));
    for (number, role) in layout.roles.iter().enumerate() {
        let shared = program.shared_bytes(layout, number, map)?;
        let launch = launch_msg(program, layout, number, mode);
        ir.push(uniform(&role.cores, map.launch, launch.as_bytes()));
        if !shared.is_empty() {
            ir.push(uniform(&role.cores, layout.base.offset(layout.cb_offset), &shared));
        }
    }
    ir.push(Ir::Launch { cores: cores.clone() });
    Ok(ir)
}

/// The write of unique arguments and semaphores; none when there are neither.
fn arguments(program: &Program, layout: &Layout) -> Option<Ir> {
    let mut blobs = (0..layout.cores.len()).map(|core| program.private_bytes(layout, core));
    let first = blobs.next().filter(|blob| !blob.is_empty())?;
    let mut all = vec![first];
    all.extend(blobs);
    let data =
        if all.iter().all(|blob| *blob == all[0]) { Data::Uniform(all.swap_remove(0)) } else { Data::PerCore(all) };
    Some(Ir::Write { cores: layout.cores.clone(), addr: layout.base, data })
}

/// The launch message of role number `role`.
pub fn launch_msg(program: &Program, layout: &Layout, role: usize, mode: u8) -> LaunchMsg {
    let (enables, text) = layout.roles[role].launch();
    let rta = Processor::ALL.map(|p| {
        let set = ArgSet::of(p).index();
        let span = layout.args[set];
        // Without common arguments the original names the configurations.
        let common = if program.common_args[set].is_empty() { layout.cb_offset } else { span.common };
        // Offsets lie in the configuration space, which is shorter than 64 KiB.
        RtaOffset { rta: u16_of(span.unique).into(), crta: u16_of(common).into() }
    });
    let own = |p: &Processor| program.roles[role].kernels[p.index()].as_ref().is_none_or(|k| k.is_self_contained());
    let self_contained = Processor::ALL.iter().filter(|p| own(p)).fold(0, |bits, p| bits | 1 << p.index());
    let mask = layout.cbs.iter().fold(0, |mask, b| mask | 1 << b.index);
    let kernel = |p: Processor| program.roles[role].kernels[p.index()].as_ref();
    let number = |p| kernel(p).map_or(0, |kernel| kernel.device_print_number());
    LaunchMsg {
        watcher_kernel_ids: Processor::ALL.map(|p| number(p).into()),
        kernel_config_base: [layout.base.get().into(); 3],
        sem_offset: [u16_of(layout.sem_offset).into(); 3],
        local_cb_offset: u16_of(layout.cb_offset).into(),
        remote_cb_offset: u16_of(layout.cb_offset + layout.cb_bytes).into(),
        rta_offset: rta,
        mode,
        self_contained,
        kernel_text_offset: text.map(Into::into),
        local_cb_mask: mask.into(),
        brisc_noc_id: 1,
        brisc_noc_mode: 0,
        min_remote_cb_start_index: u8_of(cb::COUNT),
        host_assigned_id: program.host_assigned_id.into(),
        enables: enables.into(),
        ..LaunchMsg::default()
    }
}

/// Rectangles that hold exactly the given cores: from the topmost, then leftmost core to the right
/// as far as there are cores, then down as far as whole rows follow (seed's system, `mcast_rects`).
pub fn rectangles(cores: &[NocXy]) -> Vec<NocRect> {
    // By (y, x), the order in which corners are taken.
    let mut left: BTreeSet<(u8, u8)> = cores.iter().map(|c| (c.y, c.x)).collect();
    let mut rects = Vec::new();
    while let Some(&(y0, x0)) = left.first() {
        let mut x1 = x0;
        while left.contains(&(y0, x1 + 1)) {
            x1 += 1;
        }
        let mut y1 = y0;
        while (x0..=x1).all(|x| left.contains(&(y1 + 1, x))) {
            y1 += 1;
        }
        left.retain(|&(y, x)| !((x0..=x1).contains(&x) && (y0..=y1).contains(&y)));
        rects.push(NocRect { start: NocXy::new(x0, y0), end: NocXy::new(x1, y1) });
    }
    rects
}

/// The commands of a list of steps where the dispatcher sends the go signals; `go` is the go
/// message.
pub fn commands(ir: &[Ir], go: u32) -> Vec<DispatchCommand> {
    addressed(ir, &Go::by_dispatcher(go)).into_iter().map(|addressed| addressed.command).collect()
}

/// The commands of a list of steps, each with who executes it.
pub fn addressed(ir: &[Ir], go: &Go) -> Vec<Addressed> {
    let mut out = Vec::new();
    for step in ir {
        let mut writes = Vec::new();
        match step {
            Ir::Write { cores, addr, data: Data::Uniform(bytes) } => write_uniform(&mut writes, cores, *addr, bytes),
            Ir::Write { cores, addr, data: Data::PerCore(blobs) } => write_per_core(&mut writes, cores, *addr, blobs),
            Ir::Launch { cores } => out.extend(go.launch(cores)),
        }
        out.extend(writes.into_iter().map(Addressed::from));
    }
    out
}

fn write_uniform(out: &mut Vec<DispatchCommand>, cores: &[NocXy], addr: L1Addr, bytes: &[u8]) {
    let rects = rectangles(cores);
    for (i, chunk) in bytes.chunks(CHUNK).enumerate() {
        let addr = addr.offset(u32_of(i * CHUNK)).get();
        for batch in rects.chunks(WRITE_PACKED_LARGE_MAX_SUBS) {
            let sub = |rect: &NocRect| LargeSub {
                // The dispatcher multicasts on NoC 1.
                noc_xy: rect.encode_noc1(),
                addr,
                num_mcast_dests: u8_of(rect.area()),
                unlink: true,
                data: chunk.to_vec(),
            };
            out.push(DispatchCommand::WritePackedLarge(PackedLargeWrite {
                kind: WritePackedLargeType::ProgramBinaries,
                alignment: u16_of(L1_ALIGN),
                write_offset_index: 0,
                subs: batch.iter().map(sub).collect(),
            }));
        }
        out.push(DispatchCommand::barrier());
    }
}

fn write_per_core(out: &mut Vec<DispatchCommand>, cores: &[NocXy], addr: L1Addr, blobs: &[Vec<u8>]) {
    let bytes = blobs.first().map_or(0, Vec::len);
    for (cores, blobs) in cores.chunks(WRITE_PACKED_MAX_UNICAST_SUBS).zip(blobs.chunks(WRITE_PACKED_MAX_UNICAST_SUBS)) {
        for start in (0..bytes).step_by(CHUNK) {
            let slice = |blob: &Vec<u8>| blob[start..(start + CHUNK).min(bytes)].to_vec();
            out.push(DispatchCommand::WritePacked(PackedWrite {
                kind: WritePackedType::None,
                write_offset_index: 0,
                addr: addr.offset(u32_of(start)).get(),
                targets: PackedTargets::Unicast(cores.iter().map(|c| c.encode()).collect()),
                packets: Packets::PerTarget(blobs.iter().map(slice).collect()),
            }));
        }
    }
}

/// The command that writes the dispatcher's wall clock to timestamp slot `slot` of the host region
/// at `base` ([`CommandQueue::base`](crate::queue::CommandQueue::base)).
pub fn timestamp(base: u32, slot: u32) -> DispatchCommand {
    let noc_xy = board::PCIE.encode() | PCIE_NOC_XY_MARK;
    DispatchCommand::Timestamp(Timestamp { noc_xy, addr: timestamp_address(base, slot) })
}

/// Where timestamp slot `slot` of the host region at `base` is, behind the PCIe tile.
pub(crate) fn timestamp_address(base: u32, slot: u32) -> u32 {
    base + host::TIMESTAMPS.offset() + slot * host::SLOT_SIZE
}

#[cfg(test)]
mod tests;
