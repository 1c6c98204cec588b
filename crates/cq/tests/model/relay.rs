//! The prefetcher's relaying, in the order of `firmware/prefetch`'s `relay.rs` and `scratch.rs`:
//! inline payloads, reads through the two halves of the scratch buffer, the ring buffer.

use crate::Defect;
use crate::machine::{COUNT, HALF, MAX_HELD, PAGE_CELLS, PORTION, PORTION_PAGES, Packet, Queue, Reached, State, Wrong};
use crate::prefetch::header;
use crate::script::{CELL, Step};
use tilework_abi::cq::count::WrapCount;

/// Which memory bytes are relayed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Memory {
    /// The command data queue.
    Cmddat,
    /// The scratch buffer; addresses count from its start.
    Scratch,
}

/// Bytes on their way to the dispatcher, in portions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stream {
    memory: Memory,
    from: u32,
    left: u32,
    flush: bool,
    then: Then,
}

/// What follows when a stream's bytes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Then {
    /// The end of an inline relay, or of a part of one: bytes of this part, and bytes left.
    Inline { here: u32, left: u32 },
    /// Piece `index` of a relay from the ring buffer.
    Piece { index: usize },
    /// The other half of the scratch buffer, which holds so many bytes.
    Half { half: u32, bytes: u32, unread: u32 },
}

/// Where the prefetcher is in its command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Between two commands.
    Idle,
    /// In an inline relay, with bytes left.
    Inline { left: u32, flush: bool },
    /// Writing.
    Writing(Stream),
    /// A portion is written; those before it are announced when they have arrived.
    Announcing { stream: Stream, full: u32 },
    /// In a relay from memory: the half that holds `bytes` is next.
    Half { half: u32, bytes: u32, unread: u32 },
    /// The other half is on its way; this one is relayed when it is here.
    Reading { half: u32, bytes: u32, next: u32, unread: u32 },
    /// Everything is written and announced when it has arrived.
    Closing(Stream),
    /// At the end of a command buffer.
    Leaving,
}

impl Phase {
    /// Whether the next bytes of records are waited for.
    pub(crate) fn is_between(self) -> bool {
        matches!(self, Self::Idle | Self::Inline { .. })
    }
}

impl State {
    /// Executes the command at hand, or goes on with it.
    pub(crate) fn relay(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        if prefetch.done {
            return;
        }
        match prefetch.phase {
            Phase::Idle if prefetch.present() != 0 => match header(self, queue) {
                Ok(step) => self.begin(queue, step),
                Err(wrong) => self.fail(wrong),
            },
            Phase::Inline { left, flush } if prefetch.present() != 0 => self.inline(queue, left, flush),
            Phase::Idle | Phase::Inline { .. } => {}
            Phase::Writing(stream) => self.portion(queue, stream),
            Phase::Announcing { stream, full } => {
                if self.announce(queue) {
                    self.prefetch.newest ^= true;
                    self.prefetch.unannounced = full;
                    self.prefetch.released += full;
                    self.prefetch.phase = Phase::Writing(stream);
                }
            }
            Phase::Half { half, bytes, unread } => {
                // Out of the other half, only the newest portion may still be on its way.
                let early = queue.has(Defect::ReusesHalfEarly);
                if early || self.announce(queue) {
                    let next = self.read_half(queue, half ^ 1, unread);
                    self.prefetch.phase = Phase::Reading { half, bytes, next, unread: unread - next };
                }
            }
            Phase::Reading { half, bytes, next, unread } => {
                if !self.in_flight(|p| matches!(p, Packet::Scratch { id, .. } if id == half)) {
                    let then = Then::Half { half: half ^ 1, bytes: next, unread };
                    let stream = Stream { memory: Memory::Scratch, from: half * HALF, left: bytes, flush: true, then };
                    self.prefetch.phase = Phase::Writing(stream);
                }
            }
            Phase::Closing(stream) => self.close(queue, stream),
            Phase::Leaving => self.leave(queue),
        }
    }

    fn begin(&mut self, queue: &Queue, step: Step) {
        match step {
            Step::Stall => self.stall(queue),
            Step::Quit => {
                if self.prefetch.writer.all_back(self.prefetch.credits) {
                    self.prefetch.done = true;
                    self.finish(step);
                }
            }
            Step::Exec(..) => self.enter(),
            Step::Fill(at, count) => {
                let (step_number, bytes) = (self.prefetch.next, count as u32 * CELL);
                let (to, first) = (at as u32 * CELL, 1);
                self.send(Packet::Scratch { id: RING, step: step_number, first, to, bytes });
                self.finish(step);
            }
            Step::Pieces(_) => {
                if !self.ring_is_read() && !queue.has(Defect::RelaysRingEarly) {
                    return self.reach(Reached::RingPending);
                }
                self.piece(queue, 0);
            }
            Step::Source(count) => {
                if self.ring_is_read() {
                    let all = count as u32 * CELL;
                    let bytes = self.read_half(queue, 0, all);
                    self.prefetch.phase = Phase::Half { half: 0, bytes, unread: all - bytes };
                }
            }
            Step::Write(_) | Step::Part(_) | Step::Event | Step::Barrier | Step::End => {
                let left = step.payload() as u32 * CELL;
                self.prefetch.advance(CELL);
                self.prefetch.phase = Phase::Inline { left, flush: !matches!(step, Step::Part(_)) };
            }
        }
    }

    /// Moves behind the command, of which the stride's rest is left.
    fn finish(&mut self, step: Step) {
        let taken = if step.payload() == 0 { 0 } else { (1 + step.payload() as u32) * CELL };
        self.prefetch.advance(step.stride() - taken);
        self.prefetch.phase = Phase::Idle;
        self.prefetch.next += 1;
    }

    fn stall(&mut self, queue: &Queue) {
        let prefetch = &self.prefetch;
        let count = prefetch.stalls.plus(1);
        let first = WrapCount(u32::MAX).plus(1);
        // The defect: any notification since the start will do.
        let reached = prefetch.sync.wrap_ge(if queue.has(Defect::StallTakesOldNotice) { first } else { count });
        if !reached {
            return self.reach(Reached::Stalled);
        }
        if !self.have_arrived(queue, queue.script.commands_before(prefetch.next)) {
            return self.fail(Wrong::StallPassed);
        }
        self.prefetch.stalls = count;
        self.finish(Step::Stall);
    }

    /// Whether the ring buffer holds what was read into it.
    fn ring_is_read(&self) -> bool {
        !self.in_flight(|p| matches!(p, Packet::Scratch { id: RING, .. }))
    }

    /// Starts the read of the next bytes of a relay from memory, of which `unread` are to come.
    fn read_half(&mut self, queue: &Queue, half: u32, unread: u32) -> u32 {
        let bytes = unread.min(HALF);
        let step = self.prefetch.next;
        if bytes != 0
            && let Step::Source(count) = queue.script.steps[step]
        {
            // What is unread are the last cells of the step.
            let first = 1 + count - (unread / CELL) as usize;
            self.send(Packet::Scratch { id: half, step, first, to: half * HALF, bytes });
        }
        bytes
    }

    /// Relays what is here of an inline payload.
    fn inline(&mut self, queue: &Queue, left: u32, flush: bool) {
        let here = left.min(self.prefetch.present());
        let then = Then::Inline { here, left: left - here };
        let flush = flush && left == here;
        let stream = Stream { memory: Memory::Cmddat, from: self.prefetch.at, left: here, flush, then };
        if here > PORTION {
            self.prefetch.phase = Phase::Writing(stream);
            return;
        }
        let prefetch = &mut self.prefetch;
        let pages = match queue.has(Defect::CountsOpenPageTwice) {
            true => here.div_ceil(PAGE_CELLS * CELL),
            false => prefetch.writer.pages_needed(here),
        };
        if prefetch.writer.held() + pages > MAX_HELD {
            prefetch.unannounced = prefetch.writer.release_full();
            prefetch.released += prefetch.unannounced;
        }
        if self.prefetch.unannounced != 0 && !self.announce(queue) {
            return;
        }
        let prefetch = &mut self.prefetch;
        let enough = match queue.has(Defect::ComparesPlainly) {
            true => prefetch.credits.0 >= COUNT.wrapping_add(prefetch.released + prefetch.writer.held() + pages),
            false => prefetch.writer.can_acquire(prefetch.credits, pages),
        };
        if !enough {
            return self.reach(Reached::RingFull);
        }
        prefetch.writer.acquire(pages);
        let newest = prefetch.newest;
        self.put(stream.memory, stream.from, here, newest);
        self.prefetch.phase = Phase::Closing(Stream { left: 0, ..stream });
    }

    /// Starts the writes of bytes into pages that are acquired.
    fn put(&mut self, memory: Memory, from: u32, bytes: u32, id: bool) {
        let (mut from, mut left) = (from, bytes);
        while left != 0 {
            let (to, here) = self.prefetch.writer.piece(left);
            self.send(Packet::Relay { memory, from, to, bytes: here, id });
            from += here;
            left -= here;
            if left != 0 {
                self.reach(Reached::RingCut);
            }
        }
    }

    /// Writes the next portion of a stream, as much as there are pages for.
    fn portion(&mut self, queue: &Queue, stream: Stream) {
        if stream.left == 0 {
            return self.written(queue, stream);
        }
        let prefetch = &mut self.prefetch;
        let room = prefetch.writer.room(prefetch.credits);
        if room == 0 {
            // Pages that the dispatcher does not know of cannot come back.
            self.reach(Reached::RingFull);
            self.announce(queue);
            return;
        }
        let bytes = stream.left.min(room).min(PORTION);
        prefetch.writer.acquire(prefetch.writer.pages_needed(bytes));
        let id = !prefetch.newest;
        self.put(stream.memory, stream.from, bytes, id);
        let prefetch = &mut self.prefetch;
        let shown = stream.flush || prefetch.writer.held() > MAX_HELD.saturating_sub(PORTION_PAGES);
        let full = if shown { prefetch.writer.release_full() } else { 0 };
        let stream = Stream { from: stream.from + bytes, left: stream.left - bytes, ..stream };
        prefetch.phase = Phase::Announcing { stream, full };
    }

    /// Announces the full pages of the newest portion, if it has arrived.
    fn announce(&mut self, queue: &Queue) -> bool {
        let newest = self.prefetch.newest;
        let pending = self.in_flight(|p| matches!(p, Packet::Relay { id, .. } if id == newest));
        if pending && !queue.has(Defect::CreditBeforeData) {
            return false;
        }
        let pages = std::mem::take(&mut self.prefetch.unannounced);
        self.filled(queue, pages);
        true
    }

    fn filled(&mut self, queue: &Queue, pages: u32) {
        let few = queue.has(Defect::ReleasesOnePageTooFew) && pages > 1;
        if pages != 0 {
            self.send(Packet::Filled(pages - u32::from(few)));
        }
    }

    /// A stream's bytes are written.
    fn written(&mut self, queue: &Queue, stream: Stream) {
        match stream.then {
            Then::Piece { index } => self.piece(queue, index + 1),
            Then::Half { half, bytes, unread } if bytes != 0 => {
                self.prefetch.phase = Phase::Half { half, bytes, unread };
            }
            Then::Half { .. } | Then::Inline { .. } => self.prefetch.phase = Phase::Closing(stream),
        }
    }

    /// Relays piece `index` of the ring buffer.
    fn piece(&mut self, queue: &Queue, index: usize) {
        let Step::Pieces(pieces) = queue.script.steps[self.prefetch.next] else { unreachable!("a relay of pieces") };
        let then = Then::Piece { index };
        let at = |cells: usize| cells as u32 * CELL;
        self.prefetch.phase = match pieces.get(index) {
            Some(&(start, count)) => {
                Phase::Writing(Stream { memory: Memory::Scratch, from: at(start), left: at(count), flush: true, then })
            }
            None => Phase::Closing(Stream { memory: Memory::Scratch, from: 0, left: 0, flush: true, then }),
        };
    }

    /// Announces everything when it has arrived, and ends the command or its part.
    fn close(&mut self, queue: &Queue, stream: Stream) {
        let newest = self.prefetch.newest;
        let pending = self.in_flight(|p| matches!(p, Packet::Relay { id, .. } if id == newest));
        if pending && !queue.has(Defect::CreditBeforeData) {
            return;
        }
        let more = if stream.flush { self.prefetch.writer.release() } else { 0 };
        self.prefetch.released += more;
        let pages = std::mem::take(&mut self.prefetch.unannounced) + more;
        self.filled(queue, pages);
        let step = queue.script.steps[self.prefetch.next];
        if let Then::Inline { here, left } = stream.then {
            self.prefetch.advance(here);
            if left != 0 {
                self.reach(Reached::ChunkCut);
                self.prefetch.phase = Phase::Inline { left, flush: !matches!(step, Step::Part(_)) };
                return;
            }
        }
        if self.ends_buffer(queue, self.prefetch.next) {
            self.prefetch.phase = Phase::Leaving;
        } else {
            self.finish(step);
        }
    }
}

/// The id of reads into the ring buffer, beside those of the two halves.
pub(crate) const RING: u32 = 2;
