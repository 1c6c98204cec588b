//! `movs` and `stos`, alone or repeated.
//!
//! A repeated copy forward is done in pieces; the processor would be interrupted between elements
//! just so. The others are done element by element.

use super::Stop;
use super::exec::Cpu;
use super::flags::DIRECTION;
use iced_x86::{Mnemonic, Register};

/// Bytes of a piece.
const PIECE: usize = 16 << 10;

pub(super) fn execute(cpu: &mut Cpu) -> Result<(), Stop> {
    use Mnemonic as M;
    let (bytes, copies) = match cpu.instruction.mnemonic() {
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
    let instruction = cpu.instruction;
    let plain = !instruction.has_segment_prefix()
        && !(0..instruction.op_count()).any(|op| {
            use iced_x86::OpKind as K;
            matches!(instruction.op_kind(op), K::MemoryESDI | K::MemoryESEDI | K::MemorySegSI | K::MemorySegESI)
        });
    if !plain {
        return Err(Stop::Unknown);
    }
    let repeated = instruction.has_rep_prefix() || instruction.has_repne_prefix();
    let count = if repeated { cpu.context.register(Register::RCX) as usize } else { 1 };
    let to = cpu.context.register(Register::RDI) as usize;
    let from = cpu.context.register(Register::RSI) as usize;
    let backward = cpu.context.flags() & DIRECTION != 0;
    let len = count.checked_mul(bytes).ok_or(Stop::Unknown)?;
    if count == 0 {
        return Ok(());
    }
    // A copy between two places of the program's memory is the processor's.
    let (lowest_to, lowest_from) =
        if backward { (to.wrapping_sub(len - bytes), from.wrapping_sub(len - bytes)) } else { (to, from) };
    let is_card = cpu.is_card(lowest_to, len) || (copies && cpu.is_card(lowest_from, len));
    if !is_card {
        return Err(Stop::Unknown);
    }
    if backward || (copies && to > from && to - from < len) {
        return elements(cpu, count, bytes, copies, backward, repeated);
    }
    let mut buffer = [0; PIECE];
    if !copies {
        let value = cpu.context.register(Register::RAX).to_le_bytes();
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
    cpu.context.set_register(Register::RDI, (to + done) as u64);
    if copies {
        cpu.context.set_register(Register::RSI, (from + done) as u64);
    }
    if let Some(left) = left {
        cpu.context.set_register(Register::RCX, left as u64);
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
    let mut element = cpu.context.register(Register::RAX).to_le_bytes();
    let by = if backward { (bytes as u64).wrapping_neg() } else { bytes as u64 };
    for left in (0..count as u64).rev() {
        let (to, from) = (cpu.context.register(Register::RDI), cpu.context.register(Register::RSI));
        if copies {
            cpu.load(from as usize, &mut element[..bytes])?;
        }
        cpu.store(to as usize, &element[..bytes])?;
        cpu.context.set_register(Register::RDI, to.wrapping_add(by));
        if copies {
            cpu.context.set_register(Register::RSI, from.wrapping_add(by));
        }
        if repeated {
            cpu.context.set_register(Register::RCX, left);
        }
    }
    Ok(())
}
