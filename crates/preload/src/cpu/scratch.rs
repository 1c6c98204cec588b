//! The general way: an instruction is run by the processor itself, on a copy of its operand.
//!
//! The instruction is encoded anew with an operand relative to its place, beside which a page of
//! scratch lies. The program goes on there, with all its registers, and traps at the `hlt` behind
//! the instruction. Then what it has written goes to the card.

use super::{Context, exec};
use crate::maps::real_mmap;
use crate::state::State;
use crate::{tell, trap};
use iced_x86::{Encoder, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that can be at it at the same time.
const SLOTS: usize = 64;
const PAGE: usize = 4096;
/// Where the operand lies behind the code of a slot: pages of code, then pages of data.
const DATA: usize = SLOTS * PAGE;
/// The operand's place within its page: with room in front for its own misalignment.
const MARGIN: usize = 1024;
/// The most bytes of an operand (`fxsave` has 512).
const WIDEST: usize = 512;
/// `hlt`, which traps outside of the kernel.
const HLT: u8 = 0xF4;

static START: AtomicUsize = AtomicUsize::new(0);

/// An instruction that is under way.
#[derive(Clone, Copy)]
struct Pending {
    at: usize,
    len: usize,
    writes: bool,
    next: u64,
    data: usize,
}

static PENDING: Mutex<[Option<Pending>; SLOTS]> = Mutex::new([None; SLOTS]);

/// What decodes and encodes: made before the first trap, whose handler is not to allocate.
struct Tools {
    factory: InstructionInfoFactory,
    encoder: Encoder,
    /// The encoder's buffer, when it does not have it.
    buffer: Vec<u8>,
}

static TOOLS: Mutex<Option<Tools>> = Mutex::new(None);
/// Bytes of the longest instruction, and of the `hlt` behind it.
const CODE: usize = 16;

/// Makes what traps need.
pub(crate) fn prepare() {
    let tools = Tools {
        factory: InstructionInfoFactory::new(),
        encoder: Encoder::new(64),
        buffer: Vec::with_capacity(2 * CODE),
    };
    *TOOLS.lock().unwrap_or_else(PoisonError::into_inner) = Some(tools);
    start();
}

/// Whether the program stands at the end of such an instruction.
pub(crate) fn is_scratch(rip: usize) -> bool {
    let start = START.load(Ordering::Relaxed);
    start != 0 && (start..start + DATA).contains(&rip)
}

fn start() -> usize {
    let known = START.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let found = real_mmap(0, 2 * DATA, all, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0);
    let Some(start) = found else {
        tell::say("the system gives no memory that instructions can be run in");
        tell::end()
    };
    START.store(start, Ordering::Relaxed);
    start
}

/// How the operand in memory is used; `None` if the instruction cannot be run so.
fn usage(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Option<(bool, bool)> {
    let mut operands = (0..instruction.op_count()).filter(|&op| instruction.op_kind(op) == OpKind::Memory);
    let (Some(operand), None) = (operands.next(), operands.next()) else { return None };
    if instruction.is_vsib() || instruction.has_op_mask() || instruction.is_stack_instruction() {
        return None;
    }
    let info = factory.info(instruction);
    // One operand, and no memory besides: string and stack instructions have that.
    if info.used_memory().len() != 1 {
        return None;
    }
    match info.op_access(operand) {
        OpAccess::Read => Some((true, false)),
        OpAccess::Write => Some((false, true)),
        OpAccess::ReadWrite => Some((true, true)),
        // What is written is not known before it is.
        _ => None,
    }
}

/// Has the program go on at a copy of the instruction. False if it cannot be done so.
pub(super) fn begin(state: &mut State, context: &mut Context, instruction: &Instruction) -> bool {
    let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Tools { factory, encoder, buffer }) = tools.as_mut() else { return false };
    let Some((reads, writes)) = usage(factory, instruction) else { return false };
    let Some(at) = exec::address(context, instruction) else { return false };
    let len = instruction.memory_size().size();
    if len == 0 || len > WIDEST {
        return false;
    }
    let start = start();
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(slot) = pending.iter().position(Option::is_none) else { return false };
    let code = start + slot * PAGE;
    let data = start + DATA + slot * PAGE + MARGIN + at % MARGIN;
    let mut copy = *instruction;
    copy.set_memory_base(Register::RIP);
    copy.set_memory_index(Register::None);
    copy.set_memory_index_scale(1);
    copy.set_segment_prefix(Register::None);
    copy.set_memory_displacement64(data as u64);
    copy.set_memory_displ_size(8);
    buffer.clear();
    encoder.set_buffer(std::mem::take(buffer));
    let encoded = encoder.encode(&copy, code as u64);
    *buffer = encoder.take_buffer();
    let mut bytes = [HLT; CODE];
    match bytes.get_mut(..buffer.len()) {
        Some(place) if encoded.is_ok() && buffer.len() < CODE => place.copy_from_slice(buffer),
        _ => return false,
    }
    let mut operand = [0; WIDEST];
    if reads && !trap::card_read(state, at, &mut operand[..len]) {
        return false;
    }
    // SAFETY: the slot is nobody else's, and its pages are this library's.
    unsafe {
        std::ptr::with_exposed_provenance_mut::<u8>(code).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        std::ptr::with_exposed_provenance_mut::<u8>(data).copy_from_nonoverlapping(operand.as_ptr(), len);
    }
    pending[slot] = Some(Pending { at, len, writes, next: instruction.next_ip(), data });
    context.set_rip(code as u64);
    true
}

/// The instruction is done: what it has written goes to the card, and the program goes on behind
/// it.
pub(super) fn finish(state: &mut State, context: &mut Context) -> bool {
    let slot = (context.rip() as usize - START.load(Ordering::Relaxed)) / PAGE;
    let done = PENDING.lock().unwrap_or_else(PoisonError::into_inner)[slot].take();
    let Some(done) = done else { return false };
    if done.writes {
        let mut operand = [0; WIDEST];
        // SAFETY: the slot's page is this library's.
        unsafe {
            let place = std::ptr::with_exposed_provenance::<u8>(done.data);
            operand.as_mut_ptr().copy_from_nonoverlapping(place, done.len);
        }
        trap::card_write(state, done.at, &operand[..done.len]);
    }
    context.set_rip(done.next);
    true
}
