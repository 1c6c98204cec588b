//! What goes over the NoC: requests of cores and of the host, and what their packets do where they
//! arrive.

use super::clock::{Clock, Moment, Stamp};
use super::report::{Owner, PartOf, Where};
use super::shadow::{Access, Conflict};
use super::words::FLAG_BYTES;
use super::{HOST_OPS, Op, RaceObserver, Register, Tile, number, words};
use crate::Space;
use std::sync::Arc;
use tilework_abi::tensix::L1_SIZE;
use tilework_sim::{Event, PacketEvent, PacketKind, Request, RequestKind, Spot};

impl RaceObserver {
    // ---- requests ----

    pub(super) fn request(&mut self, tile: usize, c: usize, event: &Event, request: &Request) {
        let Self { tiles, parts, .. } = self;
        let Tile { xy, cores, nius, l1, words, .. } = &mut tiles[tile];
        let n = usize::from(request.noc & 1);
        let core = &mut cores[c];
        core.release();
        let stamps = nius[n].start(request, |does| {
            parts.push(PartOf { tile: *xy, owner: Owner::Niu(request.noc, does) });
            number(parts.len() - 1)
        });
        let moment = Moment { before: stamps.before, ..core.moment(core.arrived) };
        nius[n].started[c] = Some(moment.clone());
        let access = Access {
            stamp: stamps.main,
            pc: event.pc,
            by: c as u8,
            small: request.len <= FLAG_BYTES,
            started: core.own.count,
            at: event.at,
            ..Access::default()
        };
        let (at, len) = (request.local_addr, request.len);
        let source = Access { stamp: stamps.source, ..access };
        let own = core.own.part;
        // A core's own stores count only when they have reached L1; all else that it has seen does.
        let ordered = |stamp: Stamp| stamp.part == own || moment.knows(stamp);
        let conflict = match request.kind {
            RequestKind::Read if at < u64::from(L1_SIZE) => {
                l1.write(at, len, access, &ordered).map(|found| (found, access))
            }
            RequestKind::Write if at < u64::from(L1_SIZE) => {
                l1.read(at, len, source, &ordered).map(|found| (found, source))
            }
            _ => None,
        };
        // Of a word that tells something only its own stores matter, which may not be in L1 yet.
        let tells =
            |found: &Conflict| words.has(found.addr as u32 & !3) && found.earlier.stamp.part != core.stores.part;
        let conflict = conflict.filter(|(found, _)| !tells(found));
        // What stores were told for once holds for what follows: for all that the request sends.
        if let Some((found, _)) = &conflict
            && found.earlier.stamp.part == core.stores.part
        {
            let sent = l1.last_of(at, len, core.stores.part);
            core.arrived = core.arrived.max(found.earlier.stamp.count).max(sent);
        }
        let place = Where { space: Space::L1, tile: *xy, bytes: len };
        let op = Op { moment, access, from: Some((tile, n)), arrivals: stamps.arrivals };
        self.ops.insert(request.id.0, op);
        if let Some((conflict, access)) = conflict {
            self.race(conflict, access, place, Some((tile, c)), None);
        }
    }

    /// The host starts something.
    pub(super) fn host_sends(&mut self, event: &Event, packet: &PacketEvent) {
        let writes = match packet.kind {
            PacketKind::WriteRequest | PacketKind::AtomicRequest => true,
            PacketKind::ReadRequest => false,
            _ => return,
        };
        self.host_own.count += 1;
        let moment = Moment { clock: self.host.clone(), own: [self.host_own; 2], before: Arc::default() };
        let access = Access {
            stamp: self.host_own,
            by: Access::HOST,
            small: writes && u64::from(packet.len) <= FLAG_BYTES,
            started: self.host_own.count,
            at: event.at,
            ..Access::default()
        };
        self.host_ops.push_back(packet.id.0);
        if self.host_ops.len() > HOST_OPS
            && let Some(oldest) = self.host_ops.pop_front()
        {
            self.ops.remove(&oldest);
        }
        self.ops.entry(packet.id.0).or_insert(Op { moment, access, from: None, arrivals: u32::MAX });
    }

    pub(super) fn arrives(&mut self, at: u64, spot: Spot, packet: &PacketEvent) {
        let id = packet.id.0;
        let Some(mut op) = self.ops.remove(&id) else { return };
        op.access.at = at;
        match packet.kind {
            PacketKind::WriteRequest => self.write_arrives(spot, packet, &op),
            PacketKind::AtomicRequest => self.atomic_arrives(spot, packet, &op),
            PacketKind::ReadRequest => self.read_arrives(spot, packet, &op),
            _ => {}
        }
        // How many tiles receive what the host sends is not known; the first answers come early.
        op.arrivals = op.arrivals.saturating_sub(u32::from(op.from.is_some() && is_request(packet.kind)));
        if op.arrivals != 0 {
            self.ops.insert(id, op);
        }
    }

    fn write_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) {
        let len = u64::from(packet.len);
        match spot {
            Spot::Tensix(xy) => {
                let tile = self.tile(xy);
                if packet.addr < u64::from(L1_SIZE) {
                    self.write_l1(tile, packet.addr, len, op);
                } else if let Ok(addr) = u32::try_from(packet.addr)
                    && Register::of(addr) == Register::Stream
                {
                    let moment = with_own(op);
                    self.tiles[tile].words.tell(words::stands_for(addr), &moment);
                }
            }
            Spot::Dram(bank) => {
                let ordered = |stamp| op.moment.knows(stamp);
                let shadow = self.dram.entry(bank).or_default();
                if let Some(conflict) = shadow.write(packet.addr, len, op.access, &ordered) {
                    self.race_of(conflict, op, self.bank(bank, len));
                }
            }
            // The host may look at it whenever it wants, and nobody sees it do so.
            Spot::Pcie => {
                let ordered = |stamp| op.moment.knows(stamp);
                if self.has_launches
                    && let Some(conflict) = self.system.write(packet.addr, len, op.access, &ordered)
                {
                    self.race_of(conflict, op, Self::in_host(len));
                }
                with_own(op).tell(&mut self.host);
            }
            _ => {}
        }
    }

    /// A write to L1, in parts that are data and words that tell something.
    fn write_l1(&mut self, tile: usize, addr: u64, len: u64, op: &Op) {
        let range = addr as u32..(addr + len) as u32;
        let Tile { xy, words, l1, .. } = &mut self.tiles[tile];
        let ordered = |stamp| op.moment.knows(stamp);
        let place = Where { space: Space::L1, tile: *xy, bytes: len };
        if !words.any(&range) {
            if len <= FLAG_BYTES {
                for word in (range.start & !3..range.end).step_by(4) {
                    words.may_tell(word, with_own(op));
                }
            }
            if let Some(conflict) = l1.write(addr, len, op.access, &ordered) {
                self.race_of(conflict, op, place);
            }
            return;
        }
        let moment = with_own(op);
        let mut found = None;
        for word in (range.start & !3..range.end).step_by(4) {
            if words.has(word) {
                words.tell(word, &moment);
                continue;
            }
            let (from, to) = (word.max(range.start), (word + 4).min(range.end));
            found = found.or(l1.write(u64::from(from), u64::from(to - from), op.access, &ordered));
        }
        if let Some(conflict) = found {
            self.race_of(conflict, op, place);
        }
    }

    fn atomic_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) {
        if let Spot::Tensix(xy) = spot
            && let Ok(addr) = u32::try_from(packet.addr)
        {
            let tile = self.tile(xy);
            let words = &mut self.tiles[tile].words;
            words.add(addr & !3);
            words.tell(addr & !3, &with_own(op));
        }
    }

    /// A read is at the memory that it reads: its data was written to the own tile when it began,
    /// as far as order goes.
    fn read_arrives(&mut self, spot: Spot, packet: &PacketEvent, op: &Op) {
        let (addr, len) = (packet.addr, u64::from(packet.len));
        let ordered = |stamp| op.moment.knows(stamp);
        let mut brought = Clock::default();
        // Its answer says that the writes before it on its channel have been done.
        op.moment.before.iter().for_each(|&stamp| brought.learn(stamp));
        match spot {
            Spot::Tensix(xy) => {
                let tile = self.tile(xy);
                let Tile { words, l1, .. } = &mut self.tiles[tile];
                let small = len <= FLAG_BYTES;
                let end = addr.saturating_add(len).min(1 << 32);
                for word in (addr & !3..end).step_by(4).take_while(|_| small) {
                    words.read(word as u32, &mut brought);
                }
                let is_word = small && words.has(addr as u32 & !3);
                if addr < u64::from(L1_SIZE)
                    && !is_word
                    && let Some(conflict) = l1.read(addr, len, op.access, &ordered)
                {
                    self.race_of(conflict, op, Where { space: Space::L1, tile: xy, bytes: len });
                }
            }
            Spot::Dram(bank) => {
                let shadow = self.dram.entry(bank).or_default();
                if let Some(conflict) = shadow.read(addr, len, op.access, &ordered) {
                    self.race_of(conflict, op, self.bank(bank, len));
                }
            }
            Spot::Pcie => {
                if self.has_launches
                    && let Some(conflict) = self.system.read(addr, len, op.access, &ordered)
                {
                    self.race_of(conflict, op, Self::in_host(len));
                }
                brought.join(&self.host);
                brought.learn(self.host_own);
            }
            _ => {}
        }
        match op.from {
            Some((tile, noc)) => {
                let niu = &mut self.tiles[tile].nius[noc];
                niu.version += u32::from(niu.seen.join(&brought));
            }
            None => {
                self.host.join(&brought);
            }
        }
    }
}

/// What arrives with a write: all that its core knew, and the write.
fn with_own(op: &Op) -> Moment {
    let before = op.moment.before.iter().copied().chain([op.access.stamp]).collect();
    Moment { before, ..op.moment.clone() }
}

fn is_request(kind: PacketKind) -> bool {
    matches!(kind, PacketKind::WriteRequest | PacketKind::AtomicRequest | PacketKind::ReadRequest)
}
