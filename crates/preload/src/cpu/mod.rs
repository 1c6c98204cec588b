//! The program's instructions, carried out by this library from a trap to the end of its loop.
//!
//! An instruction that traps costs some microseconds, nearly all of them the kernel's. So the
//! instructions behind it are interpreted too: as long as one of the last [`LIMIT`] (or
//! [`LIMIT_OF_LOOP`]) has touched the card, whether they do or not. What is not known here ends
//! that, and the processor goes on; if it touches the card, the general way does it ([`scratch`]).

mod context;
mod exec;
mod flags;
mod plan;
mod scratch;
mod strings;
mod vectors;

pub(crate) use context::Context;
pub(crate) use scratch::{is_scratch, prepare};

use crate::state::{self, State};
use crate::{client, clock, combine, maps, process, tell, watch};
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};

/// Instructions without an access to the card after which the processor goes on.
const LIMIT: u32 = 64;
/// The same in a loop, which has trapped at the same instruction before: those of tt-umd measure
/// the time of each of their accesses.
const LIMIT_OF_LOOP: u32 = 256;
/// Traps that are remembered.
const TRAPS: usize = 8;
/// Instructions after which it does in any case, so that signals and other threads are not kept
/// waiting.
const MOST: u32 = 100_000;
/// The same when somebody waits for the card.
const MOST_AWAITED: u32 = 2_000;
/// Looks at the clock between two accesses with which the program measures these.
const MEASURES: u32 = 2;
/// Bytes of `struct timespec`.
const TIME: usize = 16;
/// The longest instruction.
const BYTES: usize = 15;

/// How an instruction went.
pub(super) enum Step {
    /// It was carried out, and touched the card or not.
    Done(bool),
    /// It is for the processor: nothing was done.
    Native,
}

/// Why an instruction was not carried out.
pub(super) enum Stop {
    /// It is not known here.
    Unknown,
    /// The program's memory is not there: the processor is to find out.
    Memory,
    /// Another thread has changed the word of a locked instruction meanwhile.
    Again,
}

/// What was decoded, by address. The bytes tell whether it is still there.
struct Decoded {
    rip: u64,
    bytes: [u8; 16],
    instruction: Instruction,
    plan: plan::Plan,
    /// The run in which the bytes were looked at last.
    checked: u64,
}

/// Entries of the table of decoded instructions.
const TABLE: usize = 4096;

/// A place of the library's, not of the heap: the handler of a signal fills it.
struct Table {
    decoded: [Option<Decoded>; TABLE],
    /// Where the program has trapped last.
    traps: [u64; TRAPS],
    next: usize,
    /// Counts traps, and stores to what may be code.
    run: u64,
}

static DECODED: std::sync::Mutex<Table> =
    std::sync::Mutex::new(Table { decoded: [const { None }; TABLE], traps: [0; TRAPS], next: 0, run: 0 });

impl Table {
    /// A run begins with a trap at `rip`: gives its limit.
    fn begin(&mut self, rip: u64) -> u32 {
        self.run += 1;
        if self.traps.contains(&rip) {
            return LIMIT_OF_LOOP;
        }
        self.traps[self.next] = rip;
        self.next = (self.next + 1) % TRAPS;
        LIMIT
    }

    fn decode(&mut self, rip: u64) -> Option<&Decoded> {
        // Pages of several libraries take part in a loop.
        let index = (rip ^ rip >> 12) as usize % TABLE;
        let known =
            |slot: &Option<Decoded>| slot.as_ref().is_some_and(|known| known.rip == rip && known.checked == self.run);
        if !known(&self.decoded[index]) {
            self.look_at(rip, index)?;
        }
        self.decoded[index].as_ref()
    }

    #[inline(never)]
    fn look_at(&mut self, rip: u64, index: usize) -> Option<()> {
        let mut bytes = [0; 16];
        if !client::load(rip as usize, &mut bytes) {
            // Near the end of memory: as many as there are.
            let len = (1..=BYTES).rev().find(|&len| client::load(rip as usize, &mut bytes[..len]))?;
            bytes[len..].fill(0);
        }
        let checked = self.run;
        let slot = &mut self.decoded[index];
        match slot {
            Some(known) if known.rip == rip && known.bytes == bytes => known.checked = checked,
            _ => {
                let instruction = Decoder::with_ip(64, &bytes[..BYTES], rip, DecoderOptions::NONE).decode();
                if instruction.is_invalid() {
                    return None;
                }
                *slot = Some(Decoded { rip, bytes, instruction, plan: plan::Plan::of(&instruction), checked });
            }
        }
        Some(())
    }
}

/// Carries out the instruction at which the program stands, whose access to `at` has trapped, and
/// those behind it. False if it could not be: the trap is the program's own affair.
pub(crate) fn run(state: &mut State, context: &mut Context, at: usize) -> bool {
    let done = run_on(state, context, at);
    combine::flush(state);
    combine::forget(state);
    done
}

fn run_on(state: &mut State, context: &mut Context, at: usize) -> bool {
    let mut any = is_scratch(context.rip() as usize);
    if any && !scratch::finish(state, context) {
        return false;
    }
    let mut table = DECODED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let limit = table.begin(context.rip());
    let (mut idle, mut looks) = (0, 0);
    // Where instructions of this run are.
    let (mut first, mut last) = (usize::MAX, 0);
    for count in 0..MOST {
        // A hook of this library's, which the program has called: it takes the lock by itself.
        if any && process::is_own(context.rip() as usize) {
            if clock::is_look(context.rip() as usize) && look(state, context, &mut looks).is_some() {
                idle += 1;
                continue;
            }
            return true;
        }
        let rip = context.rip() as usize;
        (first, last) = (first.min(rip), last.max(rip + BYTES));
        let Some(Decoded { instruction, plan, .. }) = table.decode(rip as u64) else { return any };
        match exec::step(state, context, instruction, plan) {
            Step::Done(true) => (idle, looks) = (0, 0),
            Step::Done(false) => idle += 1,
            Step::Native => {
                combine::flush(state);
                combine::forget(state);
                let touches = touches_card(state, context, instruction);
                if touches && scratch::begin(state, context, instruction) {
                    return true;
                }
                if touches && !any {
                    refuse(instruction);
                }
                if !any && watch::covers(at) {
                    // What polls are made of is known here: this is none.
                    watch::open(at, 1);
                    return true;
                }
                return any;
            }
        }
        any = true;
        let (stored, len) = std::mem::take(&mut state.stored);
        if len > 0 && stored < last && stored + len > first {
            // It may have changed its own code.
            table.run += 1;
        }
        if idle >= limit || (count >= MOST_AWAITED && state::is_awaited()) {
            break;
        }
    }
    true
}

/// The program has called `clock_gettime`: it gets the time, and goes on behind the call. `None`:
/// the call is for the processor, and nothing was done.
fn look(state: &mut State, context: &mut Context, looks: &mut u32) -> Option<()> {
    *looks += 1;
    // Accesses take their own time. Who looks without any waits for something.
    let passes = *looks > MEASURES;
    if passes {
        combine::flush(state);
        combine::forget(state);
    }
    let (clock, out) = (context.register(Register::EDI), context.register(Register::RSI) as usize);
    let top = context.register(Register::RSP);
    let mut back = [0; 8];
    let plain = !maps::may_be_mapped(out, TIME) && !watch::is_watched(out, TIME);
    if !plain || !client::load(top as usize, &mut back) || !client::load(out, &mut [0; TIME]) {
        return None;
    }
    let time = clock::look(state, clock, passes)?;
    let mut bytes = [0; TIME];
    bytes[..8].copy_from_slice(&time.tv_sec.to_le_bytes());
    bytes[8..].copy_from_slice(&time.tv_nsec.to_le_bytes());
    if !client::store(out, &bytes) {
        return None;
    }
    context.set_register(Register::RAX, 0);
    context.set_register(Register::RSP, top.wrapping_add(8));
    context.set_rip(u64::from_le_bytes(back));
    Some(())
}

/// Whether an operand in memory is the card's.
fn touches_card(state: &State, context: &Context, instruction: &Instruction) -> bool {
    exec::address(context, instruction).is_some_and(|at| {
        let len = instruction.memory_size().size().max(1);
        maps::is_card(at, len) && state.maps.overlaps(at, len)
    })
}

/// An instruction that cannot be carried out: the program ends, and is told which.
fn refuse(instruction: &Instruction) -> ! {
    let code = format!("{:?}", instruction.code());
    tell::say(&format!(
        "the instruction {code} at {:#x} accesses a BAR of the card in a way that is not built",
        instruction.ip()
    ));
    tell::end()
}
