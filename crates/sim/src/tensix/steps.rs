//! Steps: what the agents of the coprocessor do in a cycle.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/README.md and
//! BlackholeA0/TensixTile/TensixCoprocessor/STALLWAIT.md. Within a tile the coprocessor comes last
//! in each cycle: first what `SFPLOADMACRO` has scheduled, then the mover with TDMA-RISC's command
//! processor, then the threads in order, then the unpackers. An agent is stepped only in cycles in
//! which something can happen; a step in any other cycle would change nothing, so the result does
//! not depend on who steps when. Where several threads want one unit in a cycle, the first one gets
//! it (the documents do not say).

use super::attempt::{Attempt, of_thread};
use super::awaits::OfThread;
use super::border::{Hold, Outside};
use super::coprocessor::Coprocessor;
use super::issue::unit_of;
use super::matrix;
use super::origin::Origin;
use super::step_queue::{self, Agent};
use super::wait::{Latched, Verdict};
use crate::probe::{Passing, Unit, What};
use crate::{Cycle, NEVER};
use tilework_abi::tensix::insn::{self, Insn};

impl Coprocessor {
    /// Does the steps that are due before `end`, until one of them changes something for which a
    /// core may be waiting, or has a side effect in the tile.
    ///
    /// # Errors
    /// [`Hold`]; the step that was due then has changed nothing.
    pub(super) fn run(&mut self, end: Cycle, outside: &mut impl Outside) -> Result<(), Hold> {
        self.end = end;
        while self.steps.next() < end {
            let mut now = self.steps.next();
            let agent = self.steps.begin();
            // Mostly the same agent acts again in the next cycle.
            loop {
                self.last = now;
                outside.begins(now);
                let next = match self.step(agent, now, outside) {
                    Ok(next) => next,
                    Err(hold) => {
                        self.steps.end(agent, now);
                        return Err(hold);
                    }
                };
                let stops = self.changed.is_some() || outside.has_side_effects();
                if stops || next >= end || !self.steps.goes_on(agent, next) {
                    self.steps.end(agent, next);
                    if stops {
                        return Ok(());
                    }
                    break;
                }
                now = next;
            }
        }
        Ok(())
    }

    /// A step of an agent; returns when it must look again.
    #[inline(always)]
    fn step(&mut self, agent: Agent, now: Cycle, outside: &mut impl Outside) -> Result<Cycle, Hold> {
        match agent {
            step_queue::THREAD..step_queue::UNPACKER => self.step_thread(agent - step_queue::THREAD, now, outside),
            step_queue::UNPACKER.. => self.step_unpacker(agent - step_queue::UNPACKER, now, outside),
            step_queue::MOVER => self.step_mover(now, outside),
            _ => {
                let next = self.step_vector(now)?;
                if outside.is_watched() {
                    self.tell_dst(Unit::Vector, self.vector.scheduling_thread(), now, self.macro_origin, outside);
                }
                outside.works(Unit::Vector, self.vector.scheduling_thread(), now, now + 1);
                Ok(next)
            }
        }
    }

    /// Tells observers how long the unit of an instruction that has passed is busy. The unpackers
    /// do it themselves, when they start.
    #[inline]
    fn tell_work(&self, at: Attempt, outside: &mut impl Outside) {
        let (unit, until) = match unit_of(at.word) {
            Some(insn::Unit::Matrix) => (Unit::Matrix, self.units.matrix),
            Some(insn::Unit::Vector) => (Unit::Vector, self.units.vector),
            Some(insn::Unit::Packer) => (Unit::Packer, self.units.packer),
            _ => return,
        };
        outside.works(unit, at.thread, at.now, until);
    }

    /// Tells observers what an instruction that has passed orders, and what it uses of Dst.
    #[cold]
    fn tell_passed(&mut self, at: Attempt, origin: Origin, outside: &mut impl Outside) {
        let Attempt { thread, now, .. } = at;
        let insn = at.insn();
        let (written, read) = match insn {
            Insn::Matrix(_) | Insn::Vector(_) => (self.dst.take_written(), 0),
            Insn::Packer(_) => (0, self.packer.take_read()),
            _ => (0, 0),
        };
        let gives = matches!(insn, Insn::Matrix(insn) if matrix::gives_banks(insn));
        outside.passes(now, &Passing { thread, insn, origin, written, read, gives });
    }

    /// Tells observers which rows of Dst a unit has written.
    #[cold]
    pub(super) fn tell_dst(
        &mut self,
        unit: Unit,
        thread: usize,
        now: Cycle,
        origin: Origin,
        outside: &mut impl Outside,
    ) {
        let written = self.dst.take_written();
        if written != 0 {
            let blocks = [written as u64, (written >> 64) as u64];
            outside.watched(now, unit, origin, What::Dst { thread: thread as u8, unit, blocks, writes: true });
        }
    }

    /// One cycle of a thread; returns when to look again.
    #[inline(always)]
    fn step_thread(&mut self, thread: usize, now: Cycle, outside: &mut impl Outside) -> Result<Cycle, Hold> {
        let awaited = self.awaited.of_thread(thread);
        let before = self.observe(thread, awaited);
        let (passed, later) = self.gate(thread, now, outside)?;
        let t = &mut self.threads[thread];
        let advanced = t.front.advance(now, &self.mop[thread]).map_err(|fault| of_thread(fault, thread, now))?;
        if let Some(done) = &mut t.front.executed {
            for (insn, origin) in done.drain(..) {
                if let Some(executed) = &mut self.executed {
                    executed.count(insn);
                }
                outside.executes(now, thread, insn.word(), &origin);
            }
        }
        // What has come in this cycle moves in the next one at the earliest.
        let next = match passed || advanced {
            true => now + 1,
            false => later.min(t.front.next_arrival(now).unwrap_or(NEVER)),
        };
        if awaited != OfThread::NOTHING && self.observe(thread, awaited) != before {
            self.gains(thread, now, (awaited, before), outside);
        }
        if passed && !self.awaited.is_empty() && self.threads[thread].tracking.take_waiting() {
            self.unblock(now + 1);
        }
        Ok(next)
    }

    /// In the step of cycle `now` thread `thread` has come to have something for which a core
    /// waits, and which it did not have `before`.
    #[inline(never)]
    fn gains(&mut self, thread: usize, now: Cycle, (awaited, before): (OfThread, OfThread), outside: &impl Outside) {
        self.make_pushes(thread, now, outside);
        self.unblock_for(self.observe(thread, awaited).difference(before, thread), now + 1);
    }

    /// What blocked cores wait for and thread `thread` now has.
    #[inline(always)]
    fn observe(&self, thread: usize, awaited: OfThread) -> OfThread {
        awaited.seen(&self.threads[thread].front, || self.is_drained(thread))
    }

    /// Looks at the latched wait of thread `thread`; returns when to look again if nothing moves.
    #[inline(never)]
    fn look_at_latched(&mut self, thread: usize, now: Cycle, outside: &mut impl Outside) -> Result<Cycle, Hold> {
        let Some(latched) = self.threads[thread].latched else { return Ok(NEVER) };
        if latched.released <= now {
            self.threads[thread].latched = None;
            return Ok(NEVER);
        }
        if latched.released != NEVER || latched.since >= now {
            return Ok(latched.released.min(latched.since + 1).max(now + 1));
        }
        Ok(match self.verdict(thread, now, &latched, outside)? {
            Verdict::Met => {
                // One cycle passes between the condition and the end of the block.
                self.threads[thread].latched = Some(Latched { released: now + 1, ..latched });
                now + 1
            }
            Verdict::NotBefore(at) => at,
        })
    }

    /// Does what the wait gate does in one cycle: whether an instruction passed, and when to look
    /// again if nothing moves.
    #[inline(always)]
    fn gate(&mut self, thread: usize, now: Cycle, outside: &mut impl Outside) -> Result<(bool, Cycle), Hold> {
        let mut later = NEVER;
        if self.threads[thread].latched.is_some() {
            later = self.look_at_latched(thread, now, outside)?;
        }
        let t = &self.threads[thread];
        let Some(head) = t.front.head() else { return Ok((false, later)) };
        let not_before = t.retry.map_or(t.ready, |retry| retry.due);
        if not_before > now {
            return Ok((false, later.min(not_before)));
        }
        let word = head.word;
        if let Some(latched) = &t.latched
            && insn::is_blocked_by(word, latched.block)
        {
            return Ok((false, later));
        }
        let at = Attempt { thread, now, word };
        let issue = self.issue(at, outside).map_err(|hold| hold.of_push(*self.origin(at)))?;
        if let Some(free) = issue.waits() {
            return Ok((false, later.min(free)));
        }
        if outside.is_followed() {
            self.tell_work(at, outside);
            outside.executes(now, thread, word, self.origin(at));
            if outside.is_watched() {
                self.tell_passed(at, *self.origin(at), outside);
            }
        }
        self.threads[thread].front.pass();
        self.passed += 1;
        if let Some(executed) = &mut self.executed {
            executed.count(at.insn());
        }
        Ok((true, later))
    }
}
