//! Placement of operations on the grid of cores.

use super::Check;
use crate::code;
use crate::memory::{core_bytes, dst_tiles};
use crate::tree::Span;
use crate::types::{Arch, FusedId, Op, OpId, OpKind, Size};
use std::collections::HashMap;

impl Op {
    /// Rows and columns of cores on the device; exchanged if the operation is transposed.
    pub fn cores(&self) -> Size {
        let grid = self.blocks.grid;
        if self.grid_transpose { Size { r: grid.c, c: grid.r } } else { grid }
    }

    /// Whether it runs on worker cores. Copies between chips use other cores, which they may share.
    pub fn on_workers(&self) -> bool {
        self.kind != OpKind::EthernetDatacopy
    }
}

/// Larger than the grid of any chip. Larger grids are reported by architecture and not checked
/// core by core.
const LARGEST: u32 = 64;

/// Checks that no core of a graph has two operations.
pub fn check(check: &mut Check<'_, '_>) {
    for (graph, _) in check.graphs() {
        let mut used: HashMap<(u32, u32), (OpId, &str)> = HashMap::new();
        let mine: Vec<(OpId, &Op)> = ops_of(check, graph).collect();
        for (id, op) in mine {
            let (loc, cores) = (op.grid_loc, op.cores());
            let end = |from: u32, count: u32| from.saturating_add(count).min(LARGEST);
            let mut clash = None;
            for r in loc.r..end(loc.r, cores.r) {
                for c in loc.c..end(loc.c, cores.c) {
                    let before = *used.entry((r, c)).or_insert((id, op.name.as_str()));
                    if before.0 != id && clash.is_none() {
                        clash = Some((before, (r, c)));
                    }
                }
            }
            if let Some(((other, name), (r, c))) = clash {
                let message = format!("`{}` uses core [{r}, {c}], and so does `{name}`", op.name);
                let at = check.op_at(id, "grid_loc");
                let finding = crate::diagnostic::Diagnostic::new(code::CORE_OVERLAP, at, message);
                let there: Span = check.op_at(other, "grid_loc");
                check
                    .sink
                    .push(finding.context(Some(there), "here").help("give every operation of a graph its own cores"));
            }
        }
    }
}

fn ops_of<'a>(check: &Check<'a, '_>, graph: crate::types::GraphId) -> impl Iterator<Item = (OpId, &'a Op)> + use<'a> {
    let broken = &check.src.broken.ops;
    let all = check.net.graph(graph).ops.iter().enumerate();
    all.map(move |(op, value)| (OpId { graph, op }, value)).filter(|(id, op)| op.on_workers() && !broken.contains(id))
}

/// Checks grid, destination registers and L1 for one architecture.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    for (id, op) in check.ops() {
        if op.on_workers() {
            grid(check, id, op, arch);
        }
        destination(check, id, op, arch);
        l1(check, id, op, arch);
    }
}

fn grid(check: &mut Check<'_, '_>, id: OpId, op: &Op, arch: Arch) {
    let (loc, cores, grid) = (op.grid_loc, op.cores(), arch.grid());
    let end = Size { r: loc.r.saturating_add(cores.r), c: loc.c.saturating_add(cores.c) };
    if end.r > grid.r || end.c > grid.c {
        let message = format!(
            "`{}` reaches core [{}, {}], but the grid has {} rows and {} columns",
            op.name,
            end.r - 1,
            end.c - 1,
            grid.r,
            grid.c
        );
        check.error(code::OUTSIDE_GRID, check.op_at(id, "grid_loc"), message, "");
    }
}

fn destination(check: &mut Check<'_, '_>, id: OpId, op: &Op, arch: Arch) {
    let room = dst_tiles(op.acc_format, arch);
    too_many_tiles(check, |check| check.op_at(id, "ublock"), &op.name, op.blocks.ublock, room, op);
    let OpKind::Fused(fused) = op.kind else { return };
    if check.src.broken.fused.contains(&fused) {
        return;
    }
    for (schedule, steps) in check.net.fused(fused).schedules.iter().enumerate() {
        for (index, step) in steps.iter().enumerate() {
            let at = |check: &Check<'_, '_>| step_at(check, fused, schedule, index, "ublock");
            too_many_tiles(check, at, &step.name, step.ublock, room, op);
        }
    }
}

fn too_many_tiles(
    check: &mut Check<'_, '_>,
    at: impl FnOnce(&Check<'_, '_>) -> Span,
    name: &str,
    ublock: Size,
    room: u64,
    op: &Op,
) {
    let tiles = u64::from(ublock.r) * u64::from(ublock.c);
    if tiles > room {
        let message = format!(
            "the ublock [{}, {}] of `{name}` has {tiles} tiles, but the destination registers hold {room} with acc_df {}",
            ublock.r, ublock.c, op.acc_format
        );
        check.error(code::DST_CAPACITY, at(check), message, "make ublock smaller, and mblock larger");
    }
}

fn l1(check: &mut Check<'_, '_>, id: OpId, op: &Op, arch: Arch) {
    if !op.on_workers() {
        return;
    }
    let (bytes, least) = core_bytes(check.net, op, arch);
    let room = arch.l1_bytes();
    let help = "make mblock or buf_size_mb smaller, or take more cores";
    if least > room {
        let message =
            format!("the buffers of `{}` need at least {least} bytes of each core, which has {room}", op.name);
        check.error(code::L1_CAPACITY, check.op_at(id, "buf_size_mb"), message, help);
    } else if bytes > room {
        // Real netlists ask for output buffers that exceed a core's L1, and get smaller ones.
        let message = format!(
            "with the output that is asked for, `{}` needs {bytes} bytes of each core, which has {room}",
            op.name
        );
        check.warn(code::L1_CAPACITY, check.op_at(id, "buf_size_mb"), message, help);
    }
}

/// Position of a field of a step of a fused operation.
pub fn step_at(check: &Check<'_, '_>, fused: FusedId, schedule: usize, step: usize, field: &str) -> Span {
    let entry = check.src.fused[fused.0];
    let schedules = entry.value.get("schedules").and_then(|node| node.list());
    let steps = schedules.and_then(|all| all.get(schedule)).and_then(|node| node.list());
    let found = steps.and_then(|all| all.get(step)).and_then(|node| node.map()?.first());
    found.map_or(entry.at, |entry| super::field_at(entry, field))
}
