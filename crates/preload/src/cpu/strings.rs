//! `movs` and `stos`, alone or repeated.
//!
//! A repeated copy forward is done in pieces; the processor would be interrupted between elements
//! just so. The others are done element by element.

use super::Stop;
use super::exec::{Cpu, RAX, RCX, RDI, RSI};
use super::flags::DIRECTION;
use iced_x86::{Instruction, Mnemonic};

/// Bytes of a piece.
const PIECE: usize = 16 << 10;

pub(super) fn execute(cpu: &mut Cpu, instruction: &Instruction) -> Result<(), Stop> {
    use Mnemonic as M;
    let (bytes, copies) = match instruction.mnemonic() {
        M::Movsb => (1, true),
        M::Movsw => (2, true),
        M::Movsd => (4, true),
        M::Movsq => (8, true),
        M::Stosb => (1, false),
        M::Stosw => (2, false),
        M::Stosd => (4, false),
        M::Stosq => (8, false),
        _ => return Err(Stop::Unknown),
    };
    // Addresses of 32 bits, and segments with a base, are for the processor.
    let plain = !instruction.has_segment_prefix()
        && !(0..instruction.op_count()).any(|op| {
            use iced_x86::OpKind as K;
            matches!(instruction.op_kind(op), K::MemoryESDI | K::MemoryESEDI | K::MemorySegSI | K::MemorySegESI)
        });
    if !plain {
        return Err(Stop::Unknown);
    }
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let count = if repeated { cpu.context.numbered(RCX) as usize } else { 1 };
    let to = cpu.context.numbered(RDI) as usize;
    let from = cpu.context.numbered(RSI) as usize;
    let backward = cpu.context.flags.word() & DIRECTION != 0;
    let len = count.checked_mul(bytes).ok_or(Stop::Unknown)?;
    if count == 0 {
        return Ok(());
    }
    if backward || (copies && to > from && to - from < len) {
        return elements(cpu, count, bytes, copies, backward, repeated);
    }
    let mut buffer = [0; PIECE];
    if !copies {
        let value = cpu.context.numbered(RAX).to_le_bytes();
        buffer.chunks_mut(bytes).for_each(|part| part.copy_from_slice(&value[..part.len()]));
    }
    let mut done = 0;
    while done < len {
        let part = &mut buffer[..PIECE.min(len - done)];
        if copies {
            cpu.load(from + done, part)?;
        }
        cpu.store(to + done, part)?;
        done += part.len();
        advance(cpu, done, (to, from), copies, repeated.then(|| count - done / bytes));
    }
    Ok(())
}

/// The registers after `done` bytes.
fn advance(cpu: &mut Cpu, done: usize, (to, from): (usize, usize), copies: bool, left: Option<usize>) {
    cpu.context.set_numbered(RDI, 8, (to + done) as u64);
    if copies {
        cpu.context.set_numbered(RSI, 8, (from + done) as u64);
    }
    if let Some(left) = left {
        cpu.context.set_numbered(RCX, 8, left as u64);
    }
}

fn elements(
    cpu: &mut Cpu,
    count: usize,
    bytes: usize,
    copies: bool,
    backward: bool,
    repeated: bool,
) -> Result<(), Stop> {
    let mut element = cpu.context.numbered(RAX).to_le_bytes();
    let by = if backward { (bytes as u64).wrapping_neg() } else { bytes as u64 };
    for left in (0..count as u64).rev() {
        let (to, from) = (cpu.context.numbered(RDI), cpu.context.numbered(RSI));
        if copies {
            cpu.load(from as usize, &mut element[..bytes])?;
        }
        cpu.store(to as usize, &element[..bytes])?;
        cpu.context.set_numbered(RDI, 8, to.wrapping_add(by));
        if copies {
            cpu.context.set_numbered(RSI, 8, from.wrapping_add(by));
        }
        if repeated {
            cpu.context.set_numbered(RCX, 8, left);
        }
    }
    Ok(())
}
