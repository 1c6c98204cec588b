//! The program's instructions, carried out by this library from a trap to the end of its loop.
//!
//! An instruction that traps costs some microseconds, nearly all of them the kernel's. So the
//! instructions behind it are interpreted too: as long as one of the last [`LIMIT`] has touched the
//! card, whether they do or not. What is not known here ends that, and the processor goes on; if it
//! touches the card, the general way does it ([`scratch`]).

mod context;
mod exec;
mod flags;
mod scratch;
mod strings;
mod vectors;

pub(crate) use context::Context;
pub(crate) use scratch::{is_scratch, prepare};

use crate::state::{self, State};
use crate::{client, combine, maps, process, tell, watch};
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// Instructions without an access to the card after which the processor goes on.
const LIMIT: u32 = 64;
/// Instructions after which it does in any case, so that signals and other threads are not kept
/// waiting.
const MOST: u32 = 100_000;
/// The same when somebody waits for the card.
const MOST_AWAITED: u32 = 2_000;
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
}

/// Entries of the table of decoded instructions.
const TABLE: usize = 4096;

/// A place of the library's, not of the heap: the handler of a signal fills it.
struct Table([Option<Decoded>; TABLE]);

static DECODED: std::sync::Mutex<Table> = std::sync::Mutex::new(Table([const { None }; TABLE]));

impl Table {
    fn decode(&mut self, rip: u64) -> Option<Instruction> {
        let mut bytes = [0; 16];
        if !client::load(rip as usize, &mut bytes) {
            // Near the end of memory: as many as there are.
            let len = (1..=BYTES).rev().find(|&len| client::load(rip as usize, &mut bytes[..len]))?;
            bytes[len..].fill(0);
        }
        let slot = &mut self.0[rip as usize % TABLE];
        if let Some(known) = slot.as_ref()
            && known.rip == rip
            && known.bytes == bytes
        {
            return Some(known.instruction);
        }
        let instruction = Decoder::with_ip(64, &bytes[..BYTES], rip, DecoderOptions::NONE).decode();
        if instruction.is_invalid() {
            return None;
        }
        *slot = Some(Decoded { rip, bytes, instruction });
        Some(instruction)
    }
}

/// Carries out the instruction at which the program stands, whose access to `at` has trapped, and
/// those behind it. False if it could not be: the trap is the program's own affair.
pub(crate) fn run(state: &mut State, context: &mut Context, at: usize) -> bool {
    let done = run_on(state, context, at);
    combine::flush(state);
    done
}

fn run_on(state: &mut State, context: &mut Context, at: usize) -> bool {
    let mut any = is_scratch(context.rip() as usize);
    if any && !scratch::finish(state, context) {
        return false;
    }
    let mut table = DECODED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut idle = 0;
    for count in 0..MOST {
        // A hook of this library's, which the program has called: it takes the lock by itself.
        if any && process::is_own(context.rip() as usize) {
            return true;
        }
        let Some(instruction) = table.decode(context.rip()) else { return any };
        match exec::step(state, context, &instruction) {
            Step::Done(true) => idle = 0,
            Step::Done(false) => idle += 1,
            Step::Native => {
                combine::flush(state);
                let touches = touches_card(state, context, &instruction);
                if touches && scratch::begin(state, context, &instruction) {
                    return true;
                }
                if touches && !any {
                    refuse(&instruction);
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
        if idle >= LIMIT || (count >= MOST_AWAITED && state::is_awaited()) {
            break;
        }
    }
    true
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
