//! Answers to reads, as most of them arrive: nobody observes, nobody watches the lines that the
//! data go to, and at most one core sleeps, which polls the counter of such answers.
//!
//! What happens is what happens to any packet ([`Tile::advance`]), without the questions that
//! others need.

use super::events::Event;
use super::{Activity, Tile, wake};
use crate::NEVER;
use crate::noc::Body;
use tilework_riscv::Cycle;

impl Tile {
    /// Applies the first event, of cycle `at`, if it is an answer to a read whose data nobody
    /// watches and that nobody is waiting for but a core that polls the counter of such answers:
    /// what [`Tile::apply`] does after [`Tile::wake_for_event`]. True also when that core has to
    /// run first.
    #[inline]
    pub(super) fn takes_answer(&mut self, at: Cycle) -> bool {
        let Some(Event::Packet(packet)) = self.queue.peek() else { return false };
        let noc = packet.noc;
        let Body::ReadResponse { reply, data } = &packet.body else { return false };
        let fabric = &self.shared.fabric;
        let Some(addr) = fabric.unmarked(reply.addr, data.len()) else { return false };
        if fabric.recorder.is_some() || self.late.is_some() {
            return false;
        }
        let sleepers = fabric.watches.on_classes(wake::NIU << noc);
        if sleepers != 0 {
            let one = sleepers.trailing_zeros() as usize;
            let is_parked = self.slots.get(one).is_some_and(|slot| slot.activity == Activity::Parked);
            if sleepers & (sleepers - 1) != 0 || !is_parked || !fabric.watches.sleeps_on_registers_only(one) {
                return false;
            }
            self.wake_members(sleepers, at);
            let core = &mut self.slots[one].core;
            core.finish_iteration(at);
            if core.now < at {
                return true;
            }
        }
        if let Some((_, Event::Packet(packet))) = self.queue.pop_before(NEVER) {
            self.shared.take_data(addr, packet);
            self.last_event = at;
        }
        true
    }
}
