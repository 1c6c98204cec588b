//! Rules of queues, their producers and their consumers.

use super::Check;
use crate::code;
use crate::read::tile_is_small;
use crate::types::{Arch, Producer, Queue, QueueId, QueueKind, Source};
use std::collections::{HashMap, HashSet};

/// Checks the rules that hold on every architecture.
pub fn check(check: &mut Check<'_, '_>) {
    let mut read: HashSet<QueueId> = HashSet::new();
    for (_, graph) in check.graphs() {
        for op in &graph.ops {
            read.extend(op.inputs.iter().filter_map(|input| match input.source {
                Source::Queue(queue) => Some(queue),
                Source::Op(_) => None,
            }));
        }
    }
    let shown: HashSet<QueueId> = check.net.queues.iter().filter_map(|queue| queue.alias).collect();
    for (id, queue) in check.queues() {
        alias(check, id, queue);
        producer(check, id, queue);
        // What a broken operation reads is not known.
        let whole = check.src.broken.ops.is_empty();
        let idle = !read.contains(&id) && !shown.contains(&id) && queue.alias.is_none();
        if queue.producer == Producer::Host && idle && whole {
            let at = check.src.queues[id.0].at;
            check.warn(code::UNUSED_QUEUE, at, format!("nothing reads queue `{}`", queue.name), "");
        }
    }
    untilized(check, &read);
    input_counts(check);
}

fn alias(check: &mut Check<'_, '_>, id: QueueId, queue: &Queue) {
    let Some(target) = queue.alias else { return };
    let at = check.queue_at(id, "alias");
    let name = &queue.name;
    if target == id {
        return check.error(code::ALIAS_KIND, at, format!("`{name}` is an alias of itself"), "");
    }
    let Some(base) = check.queue(target) else { return };
    if base.alias.is_some() {
        let message = format!("`{name}` is an alias of `{}`, which is an alias", base.name);
        return check.error(code::ALIAS_KIND, at, message, "name the ram that has the memory");
    }
    if queue.kind != QueueKind::Ram || base.kind != QueueKind::Ram {
        let message = format!("`{name}` and `{}` must both be of type ram", base.name);
        return check.error(code::ALIAS_KIND, at, message, "only rams can share memory");
    }
    if queue.buffers != base.buffers || queue.location != base.location {
        let message = format!("`{name}` has other buffers than `{}`, whose memory it should show", base.name);
        check.error(
            code::ALIAS_MEMORY,
            check.queue_at(id, "dram"),
            message,
            "give both the same channels and addresses",
        );
    }
    let elements = |queue: &Queue| {
        let shape = queue.blocks.shape();
        shape.t as u128 * shape.rows as u128 * shape.columns as u128 * u128::from(queue.entries)
    };
    if elements(queue) != elements(base) {
        let message = format!(
            "`{name}` has {} elements in all its entries, `{}` has {}",
            elements(queue),
            base.name,
            elements(base)
        );
        check.error(code::ALIAS_SIZE, at, message, "");
    } else if base.entries % queue.entries != 0 && !queue.entries.is_multiple_of(base.entries) {
        let message =
            format!("{} entries are not whole entries of `{}`, which has {}", queue.entries, base.name, base.entries);
        check.error(code::ALIAS_SIZE, at, message, "");
    }
}

fn producer(check: &mut Check<'_, '_>, id: QueueId, queue: &Queue) {
    let Producer::Op(op_id) = queue.producer else { return };
    let Some(op) = check.op(op_id) else { return };
    let name = &queue.name;
    if queue.blocks.tile != op.blocks.tile && !op.untilize_output {
        let (q, o) = (queue.blocks.tile, op.blocks.tile);
        let message =
            format!("tiles of `{name}` are {} x {}, but `{}` makes tiles of {} x {}", q.r, q.c, op.name, o.r, o.c);
        check.error(code::PRODUCER_TILE, check.queue_at(id, "tile_dim"), message, "give both the same tile_dim");
    }
    if queue.format != op.out_format {
        let message = format!("`{name}` holds {}, but `{}` makes {}", queue.format, op.name, op.out_format);
        let help = format!("write df: {}", op.out_format);
        check.error(code::PRODUCER_FORMAT, check.queue_at(id, "df"), message, &help);
    }
}

/// Checks operations with `untilize_output`: they feed one queue with one buffer, which only
/// the host reads.
fn untilized(check: &mut Check<'_, '_>, read: &HashSet<QueueId>) {
    let mut fed: HashMap<_, Vec<QueueId>> = HashMap::new();
    for (index, queue) in check.net.queues.iter().enumerate() {
        if let Producer::Op(op) = queue.producer {
            fed.entry(op).or_default().push(QueueId(index));
        }
    }
    for (id, op) in check.ops().filter(|(_, op)| op.untilize_output) {
        let queues = fed.get(&id).map(Vec::as_slice).unwrap_or_default();
        let at = check.op_at(id, "untilize_output");
        if queues.is_empty() && check.src.broken.queues.is_empty() {
            let message = format!("`{}` writes rows, but feeds no queue", op.name);
            check.error(code::UNTILIZED_QUEUE, at, message, "let it feed one queue");
        }
        if queues.len() > 1 {
            let message = format!("`{}` writes rows, but feeds {} queues", op.name, queues.len());
            check.error(code::UNTILIZED_QUEUE, at, message, "let it feed one queue only");
        }
        for queue_id in queues {
            let Some(queue) = check.queue(*queue_id) else { continue };
            let grid = queue.blocks.grid;
            if (grid.r, grid.c) != (1, 1) {
                let message =
                    format!("`{}` gets rows, so it has one buffer, not a grid of {} x {}", queue.name, grid.r, grid.c);
                check.error(code::UNTILIZED_QUEUE, check.queue_at(*queue_id, "grid_size"), message, "write [1, 1]");
            }
            if read.contains(queue_id) {
                let message = format!("`{}` holds rows, which no operation can read", queue.name);
                check.error(code::UNTILIZED_QUEUE, check.src.queues[queue_id.0].at, message, "only the host can");
            }
        }
    }
    for (reader_id, reader) in check.ops() {
        for (index, input) in reader.inputs.iter().enumerate() {
            let Source::Op(id) = input.source else { continue };
            let Some(op) = check.op(id).filter(|op| op.untilize_output) else { continue };
            let message = format!("`{}` reads `{}`, which writes rows", reader.name, op.name);
            let at = check.item_at(reader_id, "inputs", index);
            check.error(code::UNTILIZED_QUEUE, at, message, "set untilize_output of the producer to false");
        }
    }
}

/// Checks that graphs that read the same queue have the same input count.
fn input_counts(check: &mut Check<'_, '_>) {
    let mut first: HashMap<QueueId, (u32, &str)> = HashMap::new();
    for (graph_id, graph) in check.graphs() {
        if check.src.broken.graphs.contains(&graph_id) {
            continue;
        }
        for op in &graph.ops {
            for input in &op.inputs {
                let Source::Queue(id) = input.source else { continue };
                let Some(queue) = check.queue(id).filter(|queue| queue.kind == QueueKind::Queue) else { continue };
                let (count, name) = *first.entry(id).or_insert((graph.input_count, graph.name.as_str()));
                if count != graph.input_count {
                    let message = format!(
                        "graph `{}` takes {} inputs of queue `{}`, graph `{name}` takes {count}",
                        graph.name, graph.input_count, queue.name
                    );
                    let at = check.graph_at(graph_id, "input_count");
                    check.error(code::INPUT_COUNT, at, message, "give both graphs the same input_count");
                }
            }
        }
    }
}

/// Checks the rules of one architecture.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    for (id, queue) in check.queues() {
        if arch == Arch::Grayskull && tile_is_small(queue.blocks.tile) {
            check.error(code::TILE_SHAPE, check.queue_at(id, "tile_dim"), "all tiles are 32 x 32", "");
        }
        for (name, ports) in [("read_ports", &queue.read_ports), ("write_ports", &queue.write_ports)] {
            if arch == Arch::Grayskull && !ports.is_empty() {
                check.error(code::PORTS, check.queue_at(id, name), format!("there are no `{name}`"), "");
            }
        }
    }
}
