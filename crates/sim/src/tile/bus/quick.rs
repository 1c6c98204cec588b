//! The accesses that are done within the run loop: inlined there, they call little.

use super::TileBus;
use crate::tensix::Issuer;
use crate::tile::fabric::{get, put};
use crate::tile::{streams, wake};
use crate::timing;
use tilework_abi::address_map::niu_register;
use tilework_abi::tensix as map;
use tilework_riscv::{Access, Cycle, Effect, Load, NotQuick, Store, Width};

impl<const PROBED: bool, const COUNTED: bool> TileBus<'_, PROBED, COUNTED> {
    /// The offset of an address in the core's local RAM, if it is there.
    #[inline(always)]
    fn local_offset(&self, addr: u32, width: Width) -> Option<usize> {
        let offset = addr.wrapping_sub(map::LOCAL_BASE) as usize;
        if offset >= map::LOCAL_SIZE_DM as usize {
            return None; // without touching the port
        }
        (offset + width.bytes() as usize <= self.ports[self.core.index()].local.len()).then_some(offset)
    }

    /// The wall clock. A core may read it without regard to the others when the latched
    /// half already holds what the read would latch: reads of the others until then latch
    /// the same value.
    #[inline(always)]
    fn steady_clock(&self, at: Cycle, addr: u32, width: Width) -> Result<u32, NotQuick> {
        let clock = matches!(addr, map::WALL_CLOCK_L | map::WALL_CLOCK_H_LATCHED) && width == Width::Word;
        if !clock || !self.shared.fabric.debug.has_latched(at) {
            return Err(if at >= self.horizon { NotQuick::Sync } else { NotQuick::Ask });
        }
        Ok(if addr == map::WALL_CLOCK_L { at as u32 } else { (at >> 32) as u32 })
    }

    /// A register whose read has no side effect, if that is known without decoding the address.
    #[inline(always)]
    fn quick_register(&mut self, at: Cycle, addr: u32, width: Width) -> Result<Load, NotQuick> {
        let latency = timing::LOAD_TILE_REG;
        if width == Width::Word && at < self.horizon.min(self.due) && !self.shared.fabric.log.on {
            let value = match niu_register(addr) {
                Some((noc, offset)) => self.shared.niu_word(noc, offset),
                None if streams::offset_of(addr).is_some() => self.shared.fabric.quick_stream_load(addr),
                None => None,
            };
            if let Some(value) = value {
                return Ok(Load { value, latency, access: Access::Watched });
            }
            if let Some(load) = self.shared.tensix.quick_load(self.core, addr, at) {
                return Ok(load);
            }
        }
        let value = self.steady_clock(at, addr, width)?;
        Ok(Load { value, latency, access: Access::Volatile })
    }

    #[inline(always)]
    pub(super) fn load_within_loop(&mut self, at: Cycle, addr: u32, width: Width) -> Result<Load, NotQuick> {
        if addr < map::L1_SIZE {
            if let Some((word, stays)) = self.ports[self.core.index()].l0.hit(addr) {
                // Watched, although the copy is private: when the loop flushes the cache, the next
                // iteration reads L1 again. Tile::park handles the lines that stay.
                let access = if stays { Access::Watched } else { Access::Volatile };
                let value = (word >> (8 * (addr & 3))) & width.mask();
                return Ok(Load { value, latency: timing::LOAD_LOCAL, access });
            }
            if at >= self.horizon {
                return Err(NotQuick::Sync);
            }
            self.ports[self.core.index()].l0.fill(at, addr, &self.shared.fabric.l1[..]);
            let value = self.shared.fabric.l1_load(addr, width);
            return Ok(Load { value, latency: timing::LOAD_L1, access: Access::Watched });
        }
        let Some(offset) = self.local_offset(addr, width) else {
            return self.quick_register(at, addr, width);
        };
        let value = get(&self.ports[self.core.index()].local, offset, width);
        Ok(Load { value, latency: timing::LOAD_LOCAL, access: Access::Private })
    }

    #[inline(always)]
    pub(super) fn store_within_loop(
        &mut self,
        at: Cycle,
        pc: u32,
        addr: u32,
        width: Width,
        value: u32,
    ) -> Result<Store, NotQuick> {
        if addr < map::L1_SIZE {
            if at >= self.horizon {
                return Err(NotQuick::Sync);
            }
            if self.shared.fabric.line_flags(addr) != 0 {
                return Err(NotQuick::Ask);
            }
            if self.shared.fabric.log.on {
                let word = addr & !3;
                let old = self.shared.fabric.l1_load(word, Width::Word);
                if !self.shared.fabric.log.log_l1(word, old) {
                    return Err(NotQuick::Ask);
                }
            }
            self.ports[self.core.index()].l0.drop_line(addr);
            put(&mut self.shared.fabric.l1[..], addr as usize, width, value);
            return Ok(Store { hold: self.ports[self.core.index()].stores.push(at, addr), effect: Effect::Visible });
        }
        let Some(offset) = self.local_offset(addr, width) else {
            if addr == map::INSTRN_BUF_BASE {
                if width != Width::Word {
                    return Err(NotQuick::Ask);
                }
                self.quick_pushes(at, pc, std::iter::once(value))?;
                self.pushed(at, pc);
                return Ok(Store { hold: 0, effect: Effect::Visible });
            }
            if at >= self.horizon {
                return Err(NotQuick::Sync);
            }
            let plain = width == Width::Word && !self.shared.fabric.log.on;
            if plain && at < self.due && self.shared.niu_field(addr, value) {
                return Ok(Store { hold: 0, effect: Effect::Visible });
            }
            let is_stream = streams::offset_of(addr).is_some();
            if plain && is_stream && at < self.due && self.shared.fabric.quick_stream_store(addr, value) {
                return Ok(Store { hold: 0, effect: Effect::Visible });
            }
            let plain = plain && !self.shared.fabric.watches.is_watched(wake::TENSIX);
            if plain && self.shared.tensix.quick_store(self.core, addr, value) {
                return Ok(Store { hold: 0, effect: Effect::Visible });
            }
            let watched = self.shared.fabric.watches.is_watched(wake::SEMAPHORE);
            let unseen = plain && !watched && self.shared.fabric.recorder.is_none();
            if unseen && self.shared.tensix.quick_configure(self.core, addr, value) {
                return Ok(Store { hold: 0, effect: Effect::Visible });
            }
            return Err(NotQuick::Ask);
        };
        if self.shared.fabric.log.on {
            let word = offset & !3;
            if !self.shared.fabric.log.log_local(
                self.core,
                word as u32,
                get(&self.ports[self.core.index()].local, word, Width::Word),
            ) {
                return Err(NotQuick::Ask);
            }
        }
        let silent = get(&self.ports[self.core.index()].local, offset, width) == value & width.mask();
        put(&mut self.ports[self.core.index()].local, offset, width, value);
        Ok(Store { hold: 0, effect: if silent { Effect::Silent } else { Effect::Visible } })
    }

    /// The core pushes words to its own FIFO, one a cycle; returns how many, at least one.
    #[inline(always)]
    pub(super) fn quick_pushes(
        &mut self,
        at: Cycle,
        pc: u32,
        words: impl Iterator<Item = u32>,
    ) -> Result<usize, NotQuick> {
        if self.shared.fabric.log.on {
            return Err(NotQuick::Ask);
        }
        let by = Issuer { core: self.core, pc };
        let pushed = self.shared.tensix.quick_pushes(by, words, at)?;
        self.horizon = self.horizon.min(self.shared.tensix.next().saturating_add(1));
        Ok(pushed)
    }
}
