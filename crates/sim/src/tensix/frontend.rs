//! One thread's front end: the FIFO that its core pushes into, the MOP expander, the replay expander, and the FIFOs between them and
//! the wait gate.
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md, WormholeB0/TensixTile/TensixCoprocessor/{README,MOPExpander,REPLAY}.md and
//! the frontend diagram (`Diagrams/Src/TensixFrontend.lua`, BH: FIFOs of 29 to 32, 8 and 2). Each stage moves one instruction a cycle. An
//! instruction that expands to nothing but itself stays counted against the first FIFO until it passes the wait gate.
//!
//! BRISC's pushes enter behind the MOP expander. When they meet a TRISC's, hardware loses the latter; here both stay, in the order of arrival.

use super::expand::{Expansion, MopCfg};
use super::opcodes::{self, Unit};
use crate::{Cycle, Fault, FaultClass};
use std::collections::VecDeque;

/// The first FIFO takes another instruction while it holds no more than this (PushTensixInstruction.md).
const FIRST_ACCEPTS: usize = 28;
/// Instructions between the MOP and the replay expander.
const MIDDLE: usize = 8;
/// Instructions between the replay expander and the wait gate.
const LAST: usize = 2;
/// Instructions of a replay buffer.
const REPLAY: usize = 32;

/// An instruction in a FIFO.
#[derive(Clone, Copy, Debug)]
struct Entry {
    word: u32,
    /// When it came; the next stage sees it a cycle later.
    at: Cycle,
    /// It occupies a place of the first FIFO.
    counted: bool,
}

/// What the replay expander does.
#[derive(Clone, Copy, Debug)]
enum Replay {
    Pass,
    /// Stores what comes; `exec`: passes it on, too.
    Load {
        index: usize,
        left: usize,
        exec: bool,
    },
    /// Repeats what is stored.
    Play {
        index: usize,
        left: usize,
    },
}

/// One thread's front end.
#[derive(Debug)]
pub(super) struct FrontEnd {
    first: VecDeque<Entry>,
    mask_hi: u16,
    expansion: Option<Expansion>,
    middle: VecDeque<Entry>,
    replay: Replay,
    buffer: [u32; REPLAY],
    last: VecDeque<Entry>,
    /// Instructions behind the first FIFO that occupy a place of it.
    passed: usize,
}

impl Default for FrontEnd {
    fn default() -> Self {
        Self {
            first: VecDeque::with_capacity(FIRST_ACCEPTS + 1),
            mask_hi: 0,
            expansion: None,
            middle: VecDeque::with_capacity(MIDDLE),
            replay: Replay::Pass,
            buffer: [0; REPLAY],
            last: VecDeque::with_capacity(LAST),
            passed: 0,
        }
    }
}

impl FrontEnd {
    /// The thread's own core pushes. `false`: no room.
    pub(super) fn push(&mut self, word: u32, at: Cycle) -> bool {
        if !self.has_room() {
            return false;
        }
        self.first.push_back(Entry { word, at, counted: true });
        true
    }

    /// Whether the core's next push finds room.
    pub(super) fn has_room(&self) -> bool {
        self.first.len() + self.passed <= FIRST_ACCEPTS
    }

    /// BRISC pushes. `false`: no room.
    pub(super) fn push_behind_mop(&mut self, word: u32, at: Cycle) -> bool {
        if !self.has_room_behind_mop() {
            return false;
        }
        self.middle.push_back(Entry { word, at, counted: false });
        true
    }

    /// Whether BRISC's next push finds room.
    pub(super) fn has_room_behind_mop(&self) -> bool {
        self.middle.len() < MIDDLE
    }

    /// Nothing stands between the MOP and the replay expander.
    pub(super) fn is_empty_behind_mop(&self) -> bool {
        self.middle.is_empty()
    }

    /// The core was reset: what has not left the MOP expander is forgotten (BlackholeA0/TensixTile/SoftReset.md, "RISCV soft reset").
    pub(super) fn reset(&mut self) {
        self.first.clear();
        self.expansion = None;
    }

    /// No `MOP` is queued or being expanded (ManualTTSync.md, `MOPExpanderDoneCheck`).
    pub(super) fn mop_done(&self) -> bool {
        self.expansion.is_none() && self.first.iter().all(|e| e.word >> 24 != u32::from(OP_MOP))
    }

    /// No instruction is on its way to the wait gate.
    pub(super) fn is_empty(&self) -> bool {
        self.first.is_empty()
            && self.middle.is_empty()
            && self.last.is_empty()
            && self.expansion.is_none()
            && !matches!(self.replay, Replay::Play { .. })
    }

    /// The instruction at the wait gate.
    pub(super) fn head(&self) -> Option<u32> {
        self.last.front().map(|e| e.word)
    }

    /// The instruction at the wait gate has passed.
    pub(super) fn pass(&mut self) {
        if let Some(entry) = self.last.pop_front() {
            self.passed -= usize::from(entry.counted);
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

    /// The instructions that have not passed the wait gate, as far as they were pushed as themselves, and whether an expansion is under way.
    pub(super) fn pending(&self) -> (impl Iterator<Item = u32>, bool) {
        let expanding = self.expansion.is_some() || matches!(self.replay, Replay::Play { .. });
        let derived = self.middle.iter().chain(&self.last).any(|e| !e.counted);
        let words = self.first.iter().chain(&self.middle).chain(&self.last).filter(|e| e.counted);
        (words.map(|e| e.word), expanding || derived)
    }

    fn advance_mop(&mut self, now: Cycle, cfg: &MopCfg) -> bool {
        if self.middle.len() >= MIDDLE {
            return false;
        }
        let expanded = |word| Entry { word, at: now, counted: false };
        let mut ended = false;
        if let Some(expansion) = &mut self.expansion {
            if let Some(word) = expansion.next() {
                self.middle.push_back(expanded(word));
                return true;
            }
            self.expansion = None;
            ended = true;
        }
        let Some(&entry) = self.first.front().filter(|e| e.at < now) else { return ended };
        match (entry.word >> 24) as u8 {
            OP_MOP => {
                self.first.pop_front();
                let mut expansion = Expansion::start(entry.word, self.mask_hi, cfg);
                if let Some(word) = expansion.next() {
                    self.middle.push_back(expanded(word));
                    self.expansion = Some(expansion);
                }
            }
            // One cycle passes between an expansion and an instruction that is none (MOPExpander.md, "Performance").
            _ if ended => {}
            OP_MOP_CFG => {
                self.first.pop_front();
                self.mask_hi = entry.word as u16;
            }
            _ => {
                self.first.pop_front();
                self.passed += 1;
                self.middle.push_back(Entry { at: now, ..entry });
            }
        }
        true
    }

    fn advance_replay(&mut self, now: Cycle) -> Result<bool, Fault> {
        let room = self.last.len() < LAST;
        if let Replay::Play { index, left } = self.replay {
            if room {
                self.play(now, index, left);
            }
            return Ok(room);
        }
        let Some(&entry) = self.middle.front().filter(|e| e.at < now) else { return Ok(false) };
        match self.replay {
            Replay::Load { index, left, exec } => {
                if exec && !room {
                    return Ok(false);
                }
                self.middle.pop_front();
                self.buffer[index % REPLAY] = entry.word;
                if exec {
                    self.last.push_back(entry);
                } else {
                    self.passed -= usize::from(entry.counted);
                }
                self.replay = match left {
                    1 => Replay::Pass,
                    _ => Replay::Load { index: index + 1, left: left - 1, exec },
                };
            }
            _ if entry.word >> 24 == u32::from(OP_REPLAY) => {
                let (index, left) = replay_span(entry.word)?;
                let load = entry.word & 1 != 0;
                if !load && !room {
                    return Ok(false);
                }
                self.middle.pop_front();
                self.passed -= usize::from(entry.counted);
                if load {
                    self.replay = Replay::Load { index, left, exec: entry.word & 2 != 0 };
                } else {
                    self.play(now, index, left);
                }
            }
            _ if room => {
                self.middle.pop_front();
                self.last.push_back(entry);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn play(&mut self, now: Cycle, index: usize, left: usize) {
        self.last.push_back(Entry { word: self.buffer[index % REPLAY], at: now, counted: false });
        self.replay = match left {
            1 => Replay::Pass,
            _ => Replay::Play { index: index + 1, left: left - 1 },
        };
    }
}

const OP_MOP: u8 = 0x01;
const OP_MOP_CFG: u8 = 0x03;
const OP_REPLAY: u8 = 0x04;
/// The opcode of `RESOURCEDECL`, which the tracking of pushes swallows.
pub(super) const OP_RESOURCEDECL: u8 = 0x05;

/// First index and count of a `REPLAY` instruction.
fn replay_span(word: u32) -> Result<(usize, usize), Fault> {
    let (index, count) = ((word >> 14 & 0x1F) as usize, (word >> 4 & 0x3F) as usize);
    match count {
        0 => Ok((index, REPLAY)),
        1..=REPLAY => Ok((index, count)),
        _ => {
            let what = format!("REPLAY ({word:#010x}) of {count} instructions; the buffer holds {REPLAY}");
            let read = "WormholeB0/TensixTile/TensixCoprocessor/REPLAY.md";
            Err(Fault::new(FaultClass::UnsupportedFunctionality, what, read))
        }
    }
}

/// Whether the wait gate can do anything with this word.
pub(super) fn reaches_gate(word: u32) -> bool {
    opcodes::unit(word).is_some_and(|unit| unit != Unit::FrontEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0x0200_0000;

    fn replay(index: u32, count: u32, exec: bool, load: bool) -> u32 {
        0x0400_0000 | index << 14 | count << 4 | u32::from(exec) << 1 | u32::from(load)
    }

    /// Pushes `words` as fast as there is room and lets everything pass: (cycle, word) in order.
    fn flow(words: &[u32], cfg: &MopCfg) -> Vec<(Cycle, u32)> {
        let mut f = FrontEnd::default();
        let mut words = words.iter();
        let mut waiting = words.next();
        let mut out = Vec::new();
        for now in 0..4000 {
            while let Some(&word) = waiting
                && f.push(word, now)
            {
                waiting = words.next();
            }
            if let Some(word) = f.head() {
                out.push((now, word));
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
        let mut pushed = 0;
        for now in 0..200 {
            pushed += usize::from(f.push(NOP, now));
            f.advance(now, &[0; 9]).unwrap();
        }
        assert_eq!(pushed, 29);
        f.pass();
        assert!(f.push(NOP, 200) && !f.push(NOP, 200));
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
        f.push(replay(0, 33, false, false), 0);
        let fault = (0..9).find_map(|now| f.advance(now, &[0; 9]).err()).unwrap();
        assert_eq!(fault.class, FaultClass::UnsupportedFunctionality);
    }

    #[test]
    fn a_mop_can_contain_replays_and_costs_one_cycle_at_its_end() {
        let cfg = [2, 1, NOP, NOP, NOP, 0, NOP, replay(0, 2, false, false), replay(0, 1, false, false)];
        let program = [replay(0, 2, false, true), NOP | 1, NOP | 2, 0x0180_0000, NOP | 7];
        let out = flow(&program, &cfg);
        assert_eq!(words(&out), [NOP | 1, NOP | 1, NOP | 2, NOP | 7]);
        let plain = [1, 2, NOP, NOP, NOP, NOP | 5, NOP, NOP | 6, 0];
        let out = flow(&[0x0180_0000, 0x0180_0000, NOP | 7], &plain);
        let gaps: Vec<Cycle> = out.windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert_eq!((words(&out), gaps), (vec![NOP | 5, NOP | 6, NOP | 5, NOP | 6, NOP | 7], vec![1, 1, 1, 2]));
    }

    #[test]
    fn mop_cfg_gives_the_high_half_of_the_mask() {
        let cfg = [0, 0, 0, NOP | 1, 0, 0, 0, NOP | 2, 0];
        // Iterations 0..17 with bit 16 set in the mask.
        let out = flow(&[0x0300_0001, 0x0100_0000 | 17 << 16], &cfg);
        let want: Vec<u32> = (0..18).map(|i| NOP | if i == 16 { 2 } else { 1 }).collect();
        assert_eq!(words(&out), want);
    }

    #[test]
    fn a_reset_forgets_what_has_not_left_the_mop_expander() {
        let mut f = FrontEnd::default();
        for word in [NOP, 0x0180_0000] {
            f.push(word, 0);
        }
        f.advance(1, &[9, 9, NOP, NOP, NOP, NOP, NOP, NOP, NOP]).unwrap();
        assert!(!f.mop_done());
        f.reset();
        assert!(f.mop_done() && !f.is_empty());
        (2..9).for_each(|now| drop(f.advance(now, &[0; 9])));
        assert_eq!(f.head(), Some(NOP));
        f.pass();
        assert!(f.is_empty() && f.has_room());
    }
}
