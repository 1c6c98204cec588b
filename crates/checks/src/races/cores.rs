//! What cores do: loads, stores and atomics in L1, and registers by which they learn and tell.

use super::clock::Stamp;
use super::niu::Does;
use super::report::{Owner, PartOf, Where};
use super::shadow::Access;
use super::{RaceObserver, Register, Tile, words};
use crate::{Code, Space};
use tilework_abi::noc::{self, init};
use tilework_abi::tensix::Processor;
use tilework_sim::{Cycle, Event};

impl RaceObserver {
    // ---- what cores do in L1 ----

    #[expect(clippy::too_many_arguments, reason = "the fields of one event")]
    pub(super) fn load(
        &mut self,
        tile: usize,
        c: usize,
        event: &Event,
        addr: u32,
        bytes: u8,
        value: u32,
        cached: bool,
    ) {
        let Tile { xy, cores, words, l1, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        let word = addr & !3;
        if self.has_launches {
            words.launch(&self.map, addr, value);
        }
        let code = Code { core: Processor::ALL[c], pc: event.pc };
        let looks = std::mem::take(&mut core.fenced) && !self.has_launches;
        let again = core.last_load == (event.pc, addr);
        if again {
            words.add(word);
        }
        if again || looks {
            self.reports.polls(code);
        }
        core.last_load = (event.pc, addr);
        if !cached {
            if core.arrived < core.stores.count {
                let last = l1.last_write(u64::from(addr)).stamp;
                if last.part == core.stores.part {
                    core.arrived = core.arrived.max(last.count);
                }
            }
            core.arrived = core.arrived.max(core.emitted);
        }
        if words.has(word) {
            words.learn(word, tile * 8 + c, &mut core.clock);
            return;
        }
        let access = Access {
            stamp: core.access(),
            pc: event.pc,
            by: c as u8,
            small: true,
            started: core.own.count + 1,
            at: event.at,
            ..Access::default()
        };
        let conflict = l1.read(u64::from(addr), u64::from(bytes), access, &|stamp| core.knows(stamp));
        if looks {
            words.add(word);
        }
        let Some(conflict) = conflict else { return };
        let place = Where { space: Space::L1, tile: *xy, bytes: u64::from(bytes) };
        let flag = conflict.earlier.small.then_some(code);
        self.race(conflict, access, place, Some((tile, c)), flag);
        if flag.is_some() {
            self.believe(tile, c, word, conflict.earlier, event.at);
        }
    }

    /// A core may have polled a flag and found it at once: what came with it is learned, so that
    /// not everything that follows is reported too.
    fn believe(&mut self, tile: usize, c: usize, word: u32, flag: Access, at: Cycle) {
        let Some(of) = self.parts.get(flag.stamp.part as usize).copied() else { return };
        let by = usize::from(flag.by);
        let other = self.index.get(&of.tile).copied();
        if let Some(other) = other {
            self.catch_up_beside(tile, other, at);
        }
        let told = other.and_then(|other| self.tiles[other].cores.get(by)).map(|core| core.moment(core.stores.count));
        let Tile { words, cores, .. } = &mut self.tiles[tile];
        if !words.learn_flag(word, &mut cores[c].clock)
            && let Some(told) = told
        {
            told.tell(&mut cores[c].clock);
        }
        cores[c].clock.learn(flag.stamp);
    }

    pub(super) fn store(&mut self, tile: usize, c: usize, event: &Event, addr: u32, bytes: u8) {
        let Self { tiles, parts, .. } = self;
        let Tile { xy, cores, words, l1, .. } = &mut tiles[tile];
        let core = &mut cores[c];
        core.release();
        core.stores.count += 1;
        let access = Access {
            stamp: core.stores,
            pc: event.pc,
            by: c as u8,
            small: true,
            started: core.own.count,
            at: event.at,
            ..Access::default()
        };
        let (at, len) = (u64::from(addr), u64::from(bytes));
        let found = if words.has(addr & !3) {
            words.tell(addr & !3, &core.moment(core.stores.count));
            // Whatever it tells, the NIU may still be reading what it was.
            let leaves = |stamp: Stamp| is_part(parts, stamp, |owner| matches!(owner, Owner::Niu(_, Does::Sources)));
            l1.write(at, len, access, &|stamp| core.knows(stamp) || !leaves(stamp))
        } else {
            l1.write(at, len, access, &|stamp| core.knows(stamp))
        };
        if let Some(conflict) = found {
            let place = Where { space: Space::L1, tile: *xy, bytes: len };
            self.race(conflict, access, place, Some((tile, c)), None);
        }
    }

    pub(super) fn atomic(&mut self, tile: usize, c: usize, addr: u32) {
        let Tile { cores, words, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        core.release();
        core.stores.count += 1;
        core.emitted = core.stores.count;
        core.arrived = core.stores.count;
        words.add(addr & !3);
        words.learn(addr & !3, tile * 8 + c, &mut core.clock);
        words.tell(addr & !3, &core.moment(core.stores.count));
    }

    // ---- registers ----

    pub(super) fn load_register(&mut self, tile: usize, c: usize, addr: u32, value: u32) {
        let Tile { cores, nius, words, .. } = &mut self.tiles[tile];
        match Register::of(addr) {
            Register::Niu(noc, offset) => {
                let niu = &mut nius[noc];
                let Some(counter) = offset.checked_sub(noc::COUNTERS).filter(|at| *at < noc::COUNTERS_END) else {
                    return;
                };
                if niu.shows(counter as usize / 4, value) && cores[c].niu_versions[noc] != niu.version {
                    cores[c].niu_versions[noc] = niu.version;
                    cores[c].clock.join(&niu.seen);
                    for (_, moment) in niu.started.iter().enumerate().filter(|(other, _)| *other != c) {
                        if let Some(moment) = moment {
                            moment.tell(&mut cores[c].clock);
                        }
                    }
                }
            }
            Register::Stream => {
                words.learn(words::stands_for(addr), tile * 8 + c, &mut cores[c].clock);
            }
            Register::Coprocessor => self.load_coprocessor(tile, c, addr),
            Register::Own => {}
        }
    }

    pub(super) fn store_register(&mut self, tile: usize, c: usize, when: (Cycle, u32), addr: u32, value: u32) {
        let Tile { cores, nius, words, .. } = &mut self.tiles[tile];
        let core = &mut cores[c];
        match Register::of(addr) {
            Register::Niu(noc, offset) => {
                let (initiator, field) = (offset / noc::CMD_BUF_STRIDE, offset % noc::CMD_BUF_STRIDE);
                if let (init::CTRL, Some(control)) = (field, nius[noc].control.get_mut(initiator as usize)) {
                    *control = value;
                }
                self.sets_request(tile, c, when, (noc, offset), value);
            }
            Register::Stream => {
                core.release();
                words.tell(words::stands_for(addr), &core.moment(core.arrived));
            }
            Register::Coprocessor => self.store_coprocessor(tile, c, when, (addr, value)),
            Register::Own => {}
        }
    }

    /// Whoever releases a core from reset has prepared what it finds.
    pub(super) fn released(&mut self, tile: usize, c: usize) {
        let cores = &mut self.tiles[tile].cores;
        for other in 0..cores.len() {
            let moment = cores[other].moment(cores[other].stores.count);
            cores[other].release();
            moment.tell(&mut cores[c].clock);
        }
        cores[c].clock.join(&self.host);
        cores[c].clock.learn(self.host_own);
    }
}

fn is_part(parts: &[PartOf], stamp: Stamp, which: impl Fn(Owner) -> bool) -> bool {
    parts.get(stamp.part as usize).is_some_and(|part| which(part.owner))
}
