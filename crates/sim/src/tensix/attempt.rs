//! An instruction at a wait gate, and the faults that it causes.

use super::border::Hold;
use crate::{Cycle, Fault, FaultClass};
use std::fmt;
use tilework_abi::tensix::Processor;
use tilework_abi::tensix::insn::{self, Insn};

/// An instruction of `thread` that stands at the wait gate in cycle `now`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) thread: usize,
    pub(super) now: Cycle,
    pub(super) word: u32,
}

impl Attempt {
    /// The instruction.
    pub(super) fn insn(self) -> Insn {
        Insn::decode(self.word)
    }

    /// The instruction has caused `fault`: names the thread's core. Who pushed the instruction is
    /// named at the wait gate, where its origin is at hand ([`Hold::of_push`]).
    pub(super) fn caused(self, fault: Fault) -> Fault {
        of_thread(fault, self.thread, self.now)
    }

    /// A fault of the instruction.
    pub(super) fn refused(self, (class, what): (FaultClass, impl fmt::Display)) -> Hold {
        let (thread, insn) = (self.thread, self.insn());
        let unit = insn.unit().map_or("", |unit| unit.name());
        let what = format!("{} of Tensix thread T{thread}, {unit}: {what}", named(insn));
        self.caused(Fault::new(class, what, page(insn))).into()
    }

    /// The documents say that anything may happen.
    pub(super) fn undefined(self, what: &'static str) -> Hold {
        self.refused((FaultClass::UndefinedBehavior, what))
    }

    /// The instruction, or a form of it, exists but is not built.
    pub(super) fn not_built(self) -> Hold {
        let missing = insn::row(self.word).and_then(|row| row.missing).unwrap_or("this form of the instruction");
        self.refused((FaultClass::UnimplementedFunctionality, format_args!("not built: {missing}")))
    }

    /// The instruction does not belong at the wait gate.
    pub(super) fn no_instruction(self) -> Hold {
        let (thread, insn) = (self.thread, self.insn());
        let what = match insn {
            Insn::Undefined(word) => format!("{word:#010x} pushed to Tensix thread T{thread} is no instruction"),
            _ => format!("{} at the wait gate of Tensix thread T{thread}, where it means nothing", named(insn)),
        };
        self.caused(Fault::new(FaultClass::UndefinedBehavior, what, page(insn))).into()
    }
}

/// An instruction with its operands and its word, as reports name it.
pub(super) fn named(insn: Insn) -> String {
    format!("{insn} ({:#010x})", insn.word())
}

/// The document that an instruction follows.
fn page(insn: Insn) -> &'static str {
    insn.row().map_or("WormholeB0/TensixTile/TensixCoprocessor/README.md", |row| row.page)
}

/// Names the core whose thread it is.
pub(super) fn of_thread(mut fault: Fault, thread: usize, now: Cycle) -> Fault {
    let cores = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
    fault.site.core.get_or_insert(cores[thread]);
    fault.at_cycle(now)
}
