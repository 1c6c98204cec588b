//! How an NIU interprets software's coordinates, by its configuration registers as they are now.
//!
//! The card's firmware leaves every NIU of a NoC with the same tables (the `translate` module
//! beside the grid), which [`crate::noc::Grid`] holds. Software may switch translation off or write
//! other tables; this affects that NIU alone, from its next request on
//! (BlackholeA0/NoC/MemoryMap.md, `NIU_CFG_0` and `NOC_CMD_CTRL`). An NIU that is opted out of
//! broadcasts ignores its copies (`ROUTER_CFG_1` and `_3`).

use super::{MAP_PAGE, Niu};
use crate::noc::translate::Translation;
use crate::noc::{Dest, Place};
use crate::{Fault, FaultClass};
use std::sync::Arc;
use tilework_abi::noc::{self, GRID_X, GRID_Y, NocXy};

/// How an NIU interprets coordinates.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Coordinates {
    /// As the grid does.
    AsShipped,
    /// As raw coordinates of its NoC.
    Raw,
    /// Through tables of its own.
    Own(Box<Translation>),
}

impl Coordinates {
    /// True for the registers that this depends on.
    pub(super) fn depend_on(off: u32) -> bool {
        off == noc::NIU_CFG_0 || Translation::is_made_of(off)
    }
}

impl Niu {
    /// Applies a write to a register on which coordinates depend.
    pub(super) fn take_over_coordinates(&mut self) {
        self.known_ends = [None; 2];
        let shipped = self.grid.niu_config(self.noc, self.place);
        let translates = |config: &[u32]| config[0] & noc::NIU_CFG_0_TRANSLATE != 0;
        self.coordinates = if !translates(&self.config) {
            if translates(&shipped) { Coordinates::Raw } else { Coordinates::AsShipped }
        } else {
            let own = Translation::from_registers(&self.config);
            if translates(&shipped) && own == Translation::from_registers(&shipped) {
                Coordinates::AsShipped
            } else {
                Coordinates::Own(Box::new(own))
            }
        };
    }

    /// The NIU that coordinate word `word` in `register` addresses.
    #[inline]
    pub(super) fn place_of(&self, word: u32, register: &str) -> Result<Place, Fault> {
        let place = match &self.coordinates {
            Coordinates::AsShipped => self.grid.resolve(self.noc, word),
            _ => self.raw_of(word).and_then(|raw| self.grid.place_at(self.noc, raw)),
        };
        place.ok_or_else(|| self.nowhere(word, register))
    }

    #[cold]
    fn nowhere(&self, word: u32, register: &str) -> Fault {
        let xy = NocXy::decode(word);
        let what = format!("no tile has the coordinates {xy} of {register} on NoC {}", self.noc);
        Fault::new(FaultClass::UndefinedBehavior, what, MAP_PAGE)
    }

    /// The tiles of the rectangle `word` that receive broadcasts, without `except`.
    pub(super) fn rectangle(&self, word: u32, except: Option<Place>) -> Result<Arc<[Place]>, Fault> {
        match &self.coordinates {
            Coordinates::AsShipped => self.grid.rectangle(self.noc, word, except),
            _ => self.grid.raw_rectangle(self.noc, self.raw_of(word >> 12), self.raw_of(word), except),
        }
    }

    /// The raw coordinates of a place on this NoC; NoC 1 counts from the opposite corner
    /// (WormholeB0/NoC/Coordinates.md).
    pub(super) fn raw(&self, place: Place) -> NocXy {
        match self.noc {
            0 => NocXy::new(place.x, place.y),
            _ => NocXy::new((GRID_X as u8 - 1).saturating_sub(place.x), (GRID_Y as u8 - 1).saturating_sub(place.y)),
        }
    }

    /// The raw coordinates on this NoC of a coordinate word of software; `None` beyond the tables.
    pub(super) fn raw_of(&self, word: u32) -> Option<NocXy> {
        let xy = NocXy::decode(word);
        match &self.coordinates {
            Coordinates::AsShipped => self.grid.raw_of(self.noc, xy),
            Coordinates::Raw => Some(xy),
            Coordinates::Own(tables) => tables.apply(xy),
        }
    }

    /// True when a packet is a copy of a broadcast that this NIU is opted out of.
    pub(super) fn opts_out(&self, to: &Dest) -> bool {
        matches!(to, Dest::Copy(_)) && self.is_opted_out(&self.config)
    }

    /// Whether `config` opts this NIU out: in each mask, the bit of its raw coordinates is its own.
    pub(super) fn is_opted_out(&self, config: &[u32]) -> bool {
        let at = self.raw(self.place);
        let word = |off: u32| config[((off - noc::CFG_BASE) / 4) as usize];
        word(noc::ROUTER_CFG_1) >> at.x & 1 != 0 || word(noc::ROUTER_CFG_3) >> at.y & 1 != 0
    }

    /// True when the grid sends this NIU its copies of broadcasts.
    pub(super) fn can_opt_in(&self) -> bool {
        self.grid.receives(&self.place)
    }
}
