//! The program's instructions, carried out by this library from a trap to the end of its loop.
//!
//! An instruction that traps costs some microseconds, nearly all of them the kernel's. So the
//! instructions behind it are interpreted too: as long as one of the last has touched the card,
//! whether they do or not; how many these are depends on whether that was worth it ([`limits`]).
//! What is not known here ends that, and the processor goes on.

mod context;
mod exec;
mod flags;
mod leads;
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
use leads::Leads;
use table::{Spot, Table};

/// Instructions after which the processor goes on in any case, so that signals and other threads
/// are not kept waiting.
const MOST: u32 = 100_000;
/// The same when somebody waits for the card.
const MOST_AWAITED: u32 = 2_000;
/// What a run may cost that begins at a look at the clock, until it comes to an access.
const LEAD: u32 = 96;
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
/// `behind` is where the program went on behind its last look at the clock, if it has not accessed
/// the card since.
pub(crate) fn run(state: &mut State, context: &mut Context, at: usize, behind: Option<u64>) -> bool {
    if let Some(back) = behind {
        LEADS.trapped(back);
    }
    run_on(state, context, Begin::Trap(at))
}

/// Carries out the instructions behind a look at the clock, which has found `time`: to the access
/// that they lead to, and those behind that. False if nothing was done.
pub(crate) fn run_ahead(state: &mut State, context: &mut Context, time: u64) -> bool {
    context.set_numbered(RAX, 8, time);
    run_on(state, context, Begin::Look(context.rip()))
}

/// What is known of looks at the clock.
static LEADS: Leads = Leads::new();

pub(crate) fn leads() -> &'static Leads {
    &LEADS
}

/// What a run begins with.
#[derive(Clone, Copy)]
enum Begin {
    /// An access to this address has trapped.
    Trap(usize),
    /// The program goes on here behind a look at the clock.
    Look(u64),
}

/// How far a run has come.
struct Progress {
    /// What it may cost without an access; `None` before the access that a look leads to.
    limit: Option<u32>,
    /// Looks at the clock since the last access.
    looks: u32,
}

fn run_on(state: &mut State, context: &mut Context, begin: Begin) -> bool {
    let mut table = table::table();
    table.check_anew();
    let mut cpu = Cpu::new(state, context);
    let mut progress = Progress { limit: None, looks: 0 };
    let done = match begin {
        Begin::Trap(at) => {
            progress.limit = Some(table.limits.begin(cpu.context.rip()));
            run_to(&mut table, &mut cpu, Some(at), &mut progress)
        }
        Begin::Look(back) => {
            progress.looks = 1;
            let done = run_to(&mut table, &mut cpu, None, &mut progress);
            LEADS.ended(back, progress.limit.is_some());
            done
        }
    };
    if progress.limit.is_some() {
        table.limits.end(cpu.run.idle);
        clock::has_looked(progress.looks);
    }
    combine::flush(state);
    combine::forget(state);
    done
}

/// Carries instructions out until the limit, from a trap at address `at` or from a look on. False
/// if none was.
#[inline(never)]
fn run_to(table: &mut Table, cpu: &mut Cpu, at: Option<usize>, progress: &mut Progress) -> bool {
    let (mut any, mut place) = (false, Spot::NONE);
    let mut limit = progress.limit.unwrap_or(LEAD);
    for count in 0..MOST {
        let rip = cpu.context.rip();
        place = if let Some(next) = table.follow(rip, place) {
            next
        } else {
            // A hook of this library's, which the program has called: it takes the lock by itself.
            if any && process::is_own(rip as usize) {
                if let Some(which) = clock::look_at(rip as usize)
                    && look(which, cpu.state, cpu.context, &mut progress.looks).is_some()
                {
                    cpu.run.idle += 1;
                    continue;
                }
                return true;
            }
            let Some(next) = table.find(rip, place, &mut cpu.run) else { return any };
            next
        };
        match cpu.step(table, place.at) {
            Step::Done(true) => {
                // The first is the one that has trapped, or that a look has led to.
                if any && progress.limit.is_some() {
                    table.limits.accessed(cpu.run.idle);
                } else if progress.limit.is_none() {
                    limit = table.limits.begin(rip);
                    progress.limit = Some(limit);
                }
                (cpu.run.idle, progress.looks) = (0, 0);
            }
            Step::Done(false) => cpu.run.idle += 1,
            Step::Native => {
                return match at {
                    Some(at) if !any => is_for_the_processor(table, cpu, place, at),
                    _ => any,
                };
            }
        }
        any = true;
        if cpu.rewritten {
            // It may have changed its own code.
            cpu.rewritten = false;
            table.check_anew();
        }
        if cpu.run.idle >= limit || (count >= MOST_AWAITED && state::is_awaited()) {
            break;
        }
    }
    true
}

/// The instruction that has trapped at `at` is not known here. True if it may be done anew.
fn is_for_the_processor(table: &Table, cpu: &mut Cpu, place: Spot, at: usize) -> bool {
    if let Some(instruction) = table.instruction(place.at) {
        refuse_if_of_card(cpu, instruction, table.plan(place.at));
    }
    let pinned = watch::covers(at);
    if pinned {
        // What polls are made of is known here: this is none.
        watch::open(at, 1);
    }
    pinned
}

/// The program has called a function that tells the time: it gets it, and goes on behind the call.
/// `None`: the call is for the processor, and nothing was done.
fn look(which: Look, state: &mut State, context: &mut Context, looks: &mut u32) -> Option<()> {
    *looks += 1;
    // Accesses take their own time. Who looks without any waits for something.
    let passes = *looks > clock::MEASURES;
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
