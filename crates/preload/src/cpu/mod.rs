//! The program's instructions, carried out by this library from a trap to the end of its loop.
//!
//! An instruction that traps costs some microseconds, nearly all of them the kernel's. So the
//! instructions behind it are interpreted too: as long as one of the last has touched the card,
//! whether they do or not; how many these are depends on whether that was worth it ([`limits`]).
//! What is not known here ends that, and the processor goes on.

mod context;
mod exec;
mod flags;
mod limits;
mod native;
mod plan;
mod strings;
mod table;
mod vectors;

pub(crate) use context::{Context, saved_bytes};
pub(crate) use native::{prepare, recovery};

use crate::clock::Look;
use crate::state::{self, State};
use crate::{client, clock, combine, maps, process, tell, watch};
use exec::{Cpu, RAX, RDI, RSI, RSP};
use iced_x86::{Instruction, OpKind};
use table::{Spot, Table};

/// Instructions after which the processor goes on in any case, so that signals and other threads
/// are not kept waiting.
const MOST: u32 = 100_000;
/// The same when somebody waits for the card.
const MOST_AWAITED: u32 = 2_000;
/// Looks at the clock between two accesses with which the program measures these.
const MEASURES: u32 = 2;
/// Bytes of `struct timespec`.
const TIME: usize = 16;

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
    let mut table = table::table();
    let limit = table.begin(context.rip());
    let mut cpu = Cpu::new(state, context);
    let done = run_to(&mut table, &mut cpu, at, limit);
    table.limits.end(cpu.run.idle);
    done
}

fn run_to(table: &mut Table, cpu: &mut Cpu, at: usize, limit: u32) -> bool {
    let (mut any, mut place) = (false, Spot::NONE);
    let mut looks = 0;
    for count in 0..MOST {
        let rip = cpu.context.rip();
        // A hook of this library's, which the program has called: it takes the lock by itself.
        if any && process::is_own(rip as usize) {
            if let Some(which) = clock::look_at(rip as usize)
                && look(which, cpu.state, cpu.context, &mut looks).is_some()
            {
                cpu.run.idle += 1;
                continue;
            }
            return true;
        }
        let Some(next) = table.find(rip, place, &mut cpu.run) else { return any };
        place = next;
        match cpu.step(table, place.at) {
            Step::Done(true) => {
                // The first is the one that has trapped.
                if any {
                    table.limits.accessed(cpu.run.idle);
                }
                (cpu.run.idle, looks) = (0, 0);
            }
            Step::Done(false) => cpu.run.idle += 1,
            Step::Native => {
                if !any && let Some(instruction) = table.instruction(place.at) {
                    refuse_if_of_card(cpu, instruction, table.plan(place.at));
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
        if std::mem::take(&mut cpu.rewritten) {
            // It may have changed its own code.
            table.check_anew();
        }
        if cpu.run.idle >= limit || (count >= MOST_AWAITED && state::is_awaited()) {
            break;
        }
    }
    true
}

/// The program has called a function that tells the time: it gets it, and goes on behind the call.
/// `None`: the call is for the processor, and nothing was done.
fn look(which: Look, state: &mut State, context: &mut Context, looks: &mut u32) -> Option<()> {
    *looks += 1;
    // Accesses take their own time. Who looks without any waits for something.
    let passes = *looks > MEASURES;
    if passes {
        combine::flush(state);
        combine::forget(state);
    }
    let top = context.numbered(RSP);
    let back = client::load_word(top as usize, 8)?;
    match which {
        Look::Steady => {
            let time = clock::look(state, libc::CLOCK_MONOTONIC as u64, passes)?;
            context.set_numbered(RAX, 8, clock::nanoseconds(&time) as u64);
        }
        Look::Gettime => {
            let (clock, out) = (u64::from(context.numbered(RDI) as u32), context.numbered(RSI) as usize);
            let plain = !maps::may_be_mapped(out, TIME) && !watch::is_watched(out, TIME);
            if !plain || !client::load(out, &mut [0; TIME]) {
                return None;
            }
            let time = clock::look(state, clock, passes)?;
            let mut bytes = [0; TIME];
            bytes[..8].copy_from_slice(&time.tv_sec.to_le_bytes());
            bytes[8..].copy_from_slice(&time.tv_nsec.to_le_bytes());
            if !client::store(out, &bytes) {
                return None;
            }
            context.set_numbered(RAX, 4, 0);
        }
    }
    context.set_numbered(RSP, 8, top.wrapping_add(8));
    context.set_rip(back);
    Some(())
}

/// Ends the program at an instruction that accesses the card and cannot be carried out, and tells
/// which.
fn refuse_if_of_card(cpu: &Cpu, instruction: &Instruction, plan: &plan::Plan) {
    let has_memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    if has_memory && cpu.at(plan).is_ok_and(|at| cpu.is_card(at, instruction.memory_size().size().max(1))) {
        let code = format!("{:?}", instruction.code());
        tell::say(&format!(
            "the instruction {code} at {:#x} accesses a BAR of the card in a way that is not built",
            instruction.ip()
        ));
        tell::end()
    }
}
