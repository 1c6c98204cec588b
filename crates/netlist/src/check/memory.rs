//! Rules of the buffers of queues in DRAM.

use super::Check;
use crate::code;
use crate::diagnostic::Diagnostic;
use crate::memory::queue_buffer_bytes;
use crate::types::{Arch, InstructionKind, Location, Producer, QueueId, QueueKind};
use std::collections::{BTreeMap, HashSet};

/// A buffer in a channel: first address, end, queue, index of the buffer.
type BufferRange = (u64, u64, QueueId, usize);

/// Checks alignment, channel, range and overlaps.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    let dynamic = dynamic_queues(check);
    let mut channels: BTreeMap<(u32, u32), Vec<BufferRange>> = BTreeMap::new();
    for (id, queue) in check.queues().filter(|(_, queue)| queue.location == Location::Dram) {
        // The size of a queue that a broken operation fills is not known.
        if let Producer::Op(op) = queue.producer
            && check.op(op).is_none()
        {
            continue;
        }
        let bytes = queue_buffer_bytes(check.net, queue, arch);
        for (index, buffer) in queue.buffers.iter().enumerate() {
            let end = buffer.address.saturating_add(bytes);
            place(check, id, index, (buffer.channel, buffer.address, end), arch);
            let shared = queue.alias.is_some() || dynamic.contains(&id);
            if !shared {
                channels.entry((queue.target_device, buffer.channel)).or_default().push((
                    buffer.address,
                    end,
                    id,
                    index,
                ));
            }
        }
    }
    for places in channels.values_mut() {
        places.sort();
        overlaps(check, places);
    }
}

/// Returns the queues that programs allocate; they live only until they are deallocated.
fn dynamic_queues(check: &Check<'_, '_>) -> HashSet<QueueId> {
    let instructions = check.net.programs.iter().flat_map(|program| &program.instructions);
    let mut queues = HashSet::new();
    for instruction in instructions {
        if let InstructionKind::AllocateQueue(list) | InstructionKind::DeallocateQueue(list) = &instruction.kind {
            queues.extend(list.iter().copied());
        }
    }
    queues
}

fn place(check: &mut Check<'_, '_>, id: QueueId, index: usize, (channel, address, end): (u32, u64, u64), arch: Arch) {
    let name = &check.net.queue(id).name;
    if !address.is_multiple_of(arch.alignment()) {
        let message = format!("address {address:#x} of `{name}` is not a multiple of {}", arch.alignment());
        let next = address.next_multiple_of(arch.alignment());
        let at = buffer_at(check, id, index);
        check.error(code::ALIGNMENT, at, message, &format!("the next aligned address is {next:#x}"));
    }
    if channel >= arch.dram_channels() {
        let message = format!("`{name}` names DRAM channel {channel}; there are 0 to {}", arch.dram_channels() - 1);
        check.error(code::DRAM_CHANNEL, buffer_at(check, id, index), message, "");
    } else if end > arch.dram_channel_bytes() {
        let message = format!(
            "a buffer of `{name}` ends at {end:#x}, beyond the channel's {:#x} bytes",
            arch.dram_channel_bytes()
        );
        check.error(code::DRAM_RANGE, buffer_at(check, id, index), message, "");
    }
}

fn buffer_at(check: &Check<'_, '_>, id: QueueId, index: usize) -> crate::tree::Span {
    let list = check.src.queues[id.0].value.get("dram").and_then(|node| node.list());
    list.and_then(|items| items.get(index)).map_or_else(|| check.queue_at(id, "dram"), |node| node.span)
}

/// Reports each queue that shares memory with one before it, once for each pair.
fn overlaps(check: &mut Check<'_, '_>, places: &[BufferRange]) {
    let mut reported = HashSet::new();
    let mut last: Option<BufferRange> = None;
    for &place in places {
        let (address, end, id, index) = place;
        if let Some((_, before_end, before, before_index)) = last {
            let aliases = |a: QueueId, b: QueueId| check.net.queue(a).alias == Some(b);
            let related = before == id && before_index == index || aliases(id, before) || aliases(before, id);
            if address < before_end && !related && reported.insert((before, id)) {
                let (first, second) = (check.net.queue(before), check.net.queue(id));
                let (a, b) = (&first.name, &second.name);
                let rams = first.kind == QueueKind::Ram && second.kind == QueueKind::Ram;
                if rams && first.buffers == second.buffers {
                    let message = format!("`{b}` is another view of `{a}`, but does not say so");
                    let at = buffer_at(check, id, index);
                    check.warn(code::DRAM_OVERLAP, at, message, &format!("add `alias: {a}` to the one that is read"));
                    continue;
                }
                let message = format!(
                    "buffer {index} of `{b}` at {address:#x} lies in buffer {before_index} of `{a}`, which ends at {before_end:#x}"
                );
                let finding = Diagnostic::new(code::DRAM_OVERLAP, buffer_at(check, id, index), message);
                let there = buffer_at(check, before, before_index);
                check.sink.push(finding.context(Some(there), "the other one"));
            }
        }
        if last.is_none_or(|(_, before_end, ..)| end > before_end) {
            last = Some(place);
        }
    }
}
