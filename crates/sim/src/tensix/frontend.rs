//! One thread's front end: the FIFO into which its core pushes, the MOP expander, the replay
//! expander, and the FIFOs between them and the wait gate.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md,
//! WormholeB0/TensixTile/TensixCoprocessor/{README,MOPExpander,REPLAY}.md and the frontend diagram
//! (`Diagrams/Src/TensixFrontend.lua`, BH: FIFOs of 29 to 32, 8 and 2). Each stage moves one
//! instruction a cycle. An instruction that expands to nothing
//! but itself stays counted against the first FIFO until it passes the wait gate.
//!
//! BRISC's pushes enter behind the MOP expander. When they meet a TRISC's, hardware loses the
//! latter; here both stay, in the order of arrival.

use super::expand::{Expansion, MopCfg};
use super::fifo::{Entry, Fifo};
use super::origin::{Issuer, Origin};
use crate::{Bugs, Cycle, Fault, FaultClass};
use tilework_abi::tensix::insn::{self, Insn};

/// The first FIFO takes another instruction while it holds no more than this
/// (PushTensixInstruction.md).
const FIRST_ACCEPTS: usize = 28;
/// Places of the first FIFO.
const FIRST: usize = (FIRST_ACCEPTS + 1).next_power_of_two();
/// Instructions between the MOP and the replay expander.
const MIDDLE: usize = 8;
/// Instructions between the replay expander and the wait gate.
const LAST: usize = 2;
/// Instructions of a replay buffer.
const REPLAY: usize = 32;

/// What the replay expander does.
#[derive(Clone, Copy, Debug)]
enum Replaying {
    Pass,
    /// Stores what comes; `exec`: passes it on, too.
    Load {
        index: usize,
        left: usize,
        exec: bool,
    },
    /// Repeats what is stored, for the `REPLAY` that came from `origin`.
    Play {
        index: usize,
        left: usize,
        origin: Origin,
    },
}

/// What a front end holds.
#[derive(Clone)]
pub(super) struct Queued<I> {
    pub(super) insns: I,
    /// A `MOP` is being expanded.
    pub(super) expands: bool,
    /// A `REPLAY` repeats what is stored.
    pub(super) replays: bool,
}

/// One thread's front end.
#[derive(Clone, Debug)]
pub(super) struct FrontEnd {
    first: Fifo<FIRST>,
    /// How many `MOP`s are in it.
    mops: usize,
    mask_hi: u32,
    /// What is being expanded, and what it is expanded to comes from.
    expansion: Option<(Expansion, Origin)>,
    middle: Fifo<MIDDLE>,
    replay: Replaying,
    buffer: [(u32, Origin); REPLAY],
    last: Fifo<LAST>,
    /// Instructions behind the first FIFO that occupy a place of it.
    passed: usize,
    bugs: Bugs,
    /// What the expanders have executed themselves, if someone asks.
    pub(super) executed: Option<Vec<(Insn, Origin)>>,
}

impl Default for FrontEnd {
    fn default() -> Self {
        Self {
            first: Fifo::default(),
            mops: 0,
            mask_hi: 0,
            expansion: None,
            middle: Fifo::default(),
            replay: Replaying::Pass,
            buffer: [(0, Origin::DEBUG_BUS); REPLAY],
            last: Fifo::default(),
            passed: 0,
            bugs: Bugs::AS_CHIP,
            executed: None,
        }
    }
}

impl FrontEnd {
    /// Which documented bugs the MOP expander has.
    pub(super) fn set_bugs(&mut self, bugs: Bugs) {
        self.bugs = bugs;
    }

    /// The thread's own core pushes an instruction. `false`: no room.
    #[inline]
    pub(super) fn push(&mut self, word: u32, by: Issuer, at: Cycle) -> bool {
        if !self.has_room() {
            return false;
        }
        self.mops += usize::from(insn::Mop::is(word));
        self.first.push_back(Entry { at, word, origin: Origin::own(by, at) });
        true
    }

    /// Whether the core's next push finds room.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.first.len() + self.passed <= FIRST_ACCEPTS
    }

    /// BRISC or the debug bus pushes an instruction. `false`: no room.
    pub(super) fn push_behind_mop(&mut self, word: u32, origin: Origin, at: Cycle) -> bool {
        if !self.has_room_behind_mop() {
            return false;
        }
        self.middle.push_back(Entry { at, word, origin });
        true
    }

    /// Whether BRISC's next push finds room.
    #[inline]
    pub(super) fn has_room_behind_mop(&self) -> bool {
        self.middle.len() < MIDDLE
    }

    /// Nothing stands between the MOP and the replay expander.
    pub(super) fn is_empty_behind_mop(&self) -> bool {
        self.middle.is_empty()
    }

    /// The core was reset: what has not left the MOP expander is forgotten
    /// (BlackholeA0/TensixTile/SoftReset.md, "RISCV soft reset").
    pub(super) fn reset(&mut self) {
        self.first.clear();
        (self.mops, self.expansion) = (0, None);
    }

    /// No `MOP` is queued or being expanded (ManualTTSync.md, `MOPExpanderDoneCheck`).
    #[inline]
    pub(super) fn mop_done(&self) -> bool {
        self.expansion.is_none() && self.mops == 0
    }

    /// No instruction is in flight to the wait gate.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
            && self.middle.is_empty()
            && self.last.is_empty()
            && self.expansion.is_none()
            && !matches!(self.replay, Replaying::Play { .. })
    }

    /// The instruction at the wait gate.
    #[inline]
    pub(super) fn head(&self) -> Option<&Entry> {
        self.last.front()
    }

    /// The instruction at the wait gate has passed.
    #[inline]
    pub(super) fn pass(&mut self) {
        if let Some(entry) = self.last.front() {
            self.passed -= usize::from(entry.is_counted());
            self.last.drop_front();
        }
    }

    /// Both expanders do one cycle's work. Whether anything moved.
    ///
    /// # Errors
    /// A `REPLAY` that the documents leave open.
    pub(super) fn advance(&mut self, now: Cycle, cfg: &MopCfg) -> Result<bool, Fault> {
        let replayed = self.advance_replay(now)?;
        Ok(self.advance_mop(now, cfg) | replayed)
    }

    /// The cycle from which what came at `now` or later can move.
    pub(super) fn next_arrival(&self, now: Cycle) -> Option<Cycle> {
        let late = |e: &Entry| (e.at >= now).then_some(e.at + 1);
        [self.first.front(), self.middle.front()].into_iter().flatten().filter_map(late).min()
    }

    /// The instructions that have not passed the wait gate, as far as they were pushed as
    /// themselves, and whether an expansion is in flight.
    pub(super) fn pending(&self) -> (impl Iterator<Item = Insn>, bool) {
        let expanding = self.expansion.is_some() || matches!(self.replay, Replaying::Play { .. });
        let derived = self.middle.iter().chain(self.last.iter()).any(|e| !e.is_counted());
        let pushed = self.all().filter(|e| e.is_counted());
        (pushed.map(|e| Insn::decode(e.word)), expanding || derived)
    }

    /// What the front end holds, whoever pushed or expanded it.
    pub(super) fn queued(&self) -> Queued<impl Iterator<Item = Insn>> {
        Queued {
            insns: self.all().map(|e| Insn::decode(e.word)),
            expands: self.expansion.is_some(),
            replays: matches!(self.replay, Replaying::Play { .. }),
        }
    }

    /// All instructions, the last ones first.
    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.first.iter().chain(self.middle.iter()).chain(self.last.iter())
    }

    #[inline]
    fn advance_mop(&mut self, now: Cycle, cfg: &MopCfg) -> bool {
        if self.middle.len() >= MIDDLE {
            return false;
        }
        let expanded = |word, origin| Entry { at: now, word, origin };
        let mut ended = false;
        if let Some((expansion, origin)) = &mut self.expansion {
            if let Some(word) = expansion.next() {
                self.middle.push_back(expanded(word, *origin));
                return true;
            }
            self.expansion = None;
            ended = true;
        }
        let Some(entry) = self.first.front().filter(|e| e.at < now) else { return ended };
        if let Some(mop) = insn::Mop::decode(entry.word) {
            let entry = *entry;
            self.first.drop_front();
            self.mops -= 1;
            self.note(&entry);
            let mut expansion = Expansion::start(mop, self.mask_hi, cfg, self.bugs);
            if let Some(word) = expansion.next() {
                let origin = entry.origin.of_expanded();
                self.middle.push_back(expanded(word, origin));
                self.expansion = Some((expansion, origin));
            }
        } else if ended {
            // One cycle passes between an expansion and an instruction that is none
            // (MOPExpander.md, "Performance").
        } else if let Some(mop_cfg) = insn::MopCfg::decode(entry.word) {
            let entry = *entry;
            self.first.drop_front();
            self.note(&entry);
            self.mask_hi = mop_cfg.mask_hi();
        } else {
            self.middle.push_back(Entry { at: now, ..*entry });
            self.first.drop_front();
            self.passed += 1;
        }
        true
    }

    /// An expander has executed this instruction.
    fn note(&mut self, entry: &Entry) {
        if let Some(executed) = &mut self.executed {
            executed.push((Insn::decode(entry.word), entry.origin));
        }
    }

    #[inline]
    fn advance_replay(&mut self, now: Cycle) -> Result<bool, Fault> {
        let room = self.last.len() < LAST;
        if let Replaying::Play { index, left, origin } = self.replay {
            if room {
                self.play(now, index, left, origin);
            }
            return Ok(room);
        }
        let Some(entry) = self.middle.front().filter(|e| e.at < now) else { return Ok(false) };
        if matches!(self.replay, Replaying::Pass) && !insn::Replay::is(entry.word) {
            if room {
                self.last.push_back(*entry);
                self.middle.drop_front();
            }
            return Ok(room);
        }
        self.record_or_play(now, *entry, room)
    }

    /// `entry` is what a `REPLAY` records, or a `REPLAY` itself. Whether it has moved.
    fn record_or_play(&mut self, now: Cycle, entry: Entry, room: bool) -> Result<bool, Fault> {
        if let Replaying::Load { index, left, exec } = self.replay {
            if exec && !room {
                return Ok(false);
            }
            self.middle.drop_front();
            self.buffer[index % REPLAY] = (entry.word, entry.origin);
            if exec {
                self.last.push_back(entry);
            } else {
                self.passed -= usize::from(entry.is_counted());
            }
            self.replay = match left {
                1 => Replaying::Pass,
                _ => Replaying::Load { index: index + 1, left: left - 1, exec },
            };
            return Ok(true);
        }
        let Some(replay) = insn::Replay::decode(entry.word) else { return Ok(false) };
        let (index, left) = replay_span(replay).map_err(|fault| fault.of_push(entry.origin))?;
        let load = replay.load();
        if !load && !room {
            return Ok(false);
        }
        self.middle.drop_front();
        self.note(&entry);
        self.passed -= usize::from(entry.is_counted());
        if load {
            self.replay = Replaying::Load { index, left, exec: replay.exec() };
        } else {
            self.play(now, index, left, entry.origin);
        }
        Ok(true)
    }

    fn play(&mut self, now: Cycle, index: usize, left: usize, origin: Origin) {
        let (word, recorded) = self.buffer[index % REPLAY];
        self.last.push_back(Entry { at: now, word, origin: origin.of_replayed(recorded) });
        self.replay = match left {
            1 => Replaying::Pass,
            _ => Replaying::Play { index: index + 1, left: left - 1, origin },
        };
    }
}

/// First index and count of a `REPLAY` instruction.
fn replay_span(replay: insn::Replay) -> Result<(usize, usize), Fault> {
    let (index, count) = (replay.index() as usize, replay.count() as usize);
    match count {
        0 => Ok((index, REPLAY)),
        1..=REPLAY => Ok((index, count)),
        _ => {
            let what = format!("REPLAY ({:#010x}) of {count} instructions; the buffer holds {REPLAY}", replay.word());
            Err(Fault::new(FaultClass::UnsupportedFunctionality, what, insn::Replay::ROW.page))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::tensix::Processor;

    /// `NOP`; its other bits mean nothing and number the instructions.
    const NOP: u32 = insn::Nop::build().word();
    const BY: Issuer = Issuer { core: Processor::Trisc0, pc: 0x6000 };
    /// A `MOP` of template 1 with the configured counts.
    const MOP1: u32 = insn::Mop::build().template(1).word();

    fn replay(index: u32, count: u32, exec: bool, load: bool) -> u32 {
        insn::Replay::build().index(index).count(count).exec(exec).load(load).word()
    }

    /// Pushes `words` as fast as there is room and lets everything pass: (cycle, word) in order.
    fn flow(words: &[u32], cfg: &MopCfg) -> Vec<(Cycle, u32)> {
        let mut f = FrontEnd::default();
        let mut words = words.iter();
        let mut waiting = words.next();
        let mut out = Vec::new();
        for now in 0..4000 {
            while let Some(&word) = waiting
                && f.push(word, BY, now)
            {
                waiting = words.next();
            }
            if let Some(head) = f.head() {
                out.push((now, head.word));
                f.pass();
            }
            f.advance(now, cfg).unwrap();
        }
        assert!(f.is_empty() && f.passed == 0);
        out
    }

    fn words(flow: &[(Cycle, u32)]) -> Vec<u32> {
        flow.iter().map(|&(_, w)| w).collect()
    }

    #[test]
    fn instructions_pass_in_order_one_a_cycle() {
        let out = flow(&(0..60).map(|i| NOP | i).collect::<Vec<_>>(), &[0; 9]);
        assert_eq!(words(&out), (0..60).map(|i| NOP | i).collect::<Vec<_>>());
        assert!(out.windows(2).all(|w| w[1].0 == w[0].0 + 1));
    }

    #[test]
    fn a_full_front_end_holds_29_unexpanded_instructions() {
        let mut f = FrontEnd::default();
        let (mut pushed, nop) = (0, NOP);
        for now in 0..200 {
            pushed += usize::from(f.push(nop, BY, now));
            f.advance(now, &[0; 9]).unwrap();
        }
        assert_eq!(pushed, 29);
        f.pass();
        assert!(f.push(nop, BY, 200) && !f.push(nop, BY, 200));
    }

    #[test]
    fn replay_loads_without_executing_and_plays_with_wrap_around() {
        let mut program = vec![replay(30, 4, false, true)];
        program.extend([NOP | 1, NOP | 2, NOP | 3, NOP | 4]);
        program.extend([replay(31, 3, false, false), NOP | 9, replay(30, 1, true, false)]);
        let out = flow(&program, &[0; 9]);
        assert_eq!(words(&out), [NOP | 2, NOP | 3, NOP | 4, NOP | 9, NOP | 1]);
        assert!(out.windows(2).all(|w| w[1].0 == w[0].0 + 1), "no gap between the modes: {out:?}");
    }

    #[test]
    fn replay_can_execute_while_it_loads_and_a_count_of_zero_is_the_whole_buffer() {
        let body: Vec<u32> = (0..32).map(|i| NOP | i).collect();
        let program: Vec<u32> =
            [replay(0, 0, true, true)].into_iter().chain(body.clone()).chain([replay(0, 0, false, false)]).collect();
        assert_eq!(words(&flow(&program, &[0; 9])), [body.clone(), body].concat());
        let mut f = FrontEnd::default();
        f.push(replay(0, 33, false, false), BY, 0);
        let fault = (0..9).find_map(|now| f.advance(now, &[0; 9]).err()).unwrap();
        assert_eq!(fault.class, FaultClass::UnsupportedFunctionality);
    }

    #[test]
    fn a_mop_can_contain_replays_and_costs_one_cycle_at_its_end() {
        let cfg = [2, 1, NOP, NOP, NOP, 0, NOP, replay(0, 2, false, false), replay(0, 1, false, false)];
        let program = [replay(0, 2, false, true), NOP | 1, NOP | 2, MOP1, NOP | 7];
        let out = flow(&program, &cfg);
        assert_eq!(words(&out), [NOP | 1, NOP | 1, NOP | 2, NOP | 7]);
        let plain = [1, 2, NOP, NOP, NOP, NOP | 5, NOP, NOP | 6, 0];
        let out = flow(&[MOP1, MOP1, NOP | 7], &plain);
        let gaps: Vec<Cycle> = out.windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert_eq!((words(&out), gaps), (vec![NOP | 5, NOP | 6, NOP | 5, NOP | 6, NOP | 7], vec![1, 1, 1, 2]));
    }

    #[test]
    fn an_instruction_remembers_who_pushed_it_and_what_it_was_expanded_from() {
        let cfg = [1, 2, NOP, NOP, NOP, NOP | 8, NOP, replay(0, 1, false, false), 0];
        let mut f = FrontEnd::default();
        // The word of each push is at 0x6000 and following.
        let pushes = [replay(0, 1, true, true), NOP | 1, MOP1, replay(0, 1, false, false)];
        for (pc, word) in (0x6000..).step_by(4).zip(pushes) {
            f.push(word, Issuer { core: Processor::Trisc0, pc }, 0);
        }
        let mut seen = Vec::new();
        for now in 1..40 {
            if now == 30 {
                let by = Issuer { core: Processor::Brisc, pc: 0x100 };
                f.push_behind_mop(NOP, Origin::behind_mop(by, now), now);
                f.push_behind_mop(NOP, Origin::DEBUG_BUS, now);
            }
            seen.extend(f.head().map(|head| (head.word & 0xFF, head.origin.to_string())));
            f.pass();
            f.advance(now, &cfg).unwrap();
        }
        let recorded = "and recorded when pushed by TRISC0 at pc 0x6004";
        let want = [
            (1, "pushed by TRISC0 at pc 0x6004".to_owned()),
            (8, "expanded from the MOP pushed by TRISC0 at pc 0x6008".to_owned()),
            (1, format!("repeated by a REPLAY of the MOP pushed by TRISC0 at pc 0x6008 {recorded}")),
            (1, format!("repeated by the REPLAY pushed by TRISC0 at pc 0x600c {recorded}")),
            (0, "pushed by BRISC at pc 0x100".to_owned()),
            (0, "pushed over the debug bus".to_owned()),
        ];
        assert_eq!(seen, want);
    }

    #[test]
    fn mop_cfg_gives_the_high_half_of_the_mask() {
        let cfg = [0, 0, 0, NOP | 1, 0, 0, 0, NOP | 2, 0];
        // Iterations 0..17 with bit 16 set in the mask.
        let out = flow(&[insn::MopCfg::build().mask_hi(1).word(), insn::Mop::build().count1(17).word()], &cfg);
        let want: Vec<u32> = (0..18).map(|i| NOP | if i == 16 { 2 } else { 1 }).collect();
        assert_eq!(words(&out), want);
    }

    #[test]
    fn a_reset_forgets_what_has_not_left_the_mop_expander() {
        let mut f = FrontEnd::default();
        for word in [NOP, MOP1] {
            f.push(word, BY, 0);
        }
        f.advance(1, &[9, 9, NOP, NOP, NOP, NOP, NOP, NOP, NOP]).unwrap();
        assert!(!f.mop_done());
        f.reset();
        assert!(f.mop_done() && !f.is_empty());
        (2..9).for_each(|now| drop(f.advance(now, &[0; 9])));
        assert_eq!(f.head().map(|head| head.word), Some(NOP));
        f.pass();
        assert!(f.is_empty() && f.has_room());
    }
}
