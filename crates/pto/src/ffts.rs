//! The counting semaphores of a cluster: 16 ids of 4 bits, and the message that sets one.
//!
//! Follows seed 002, "Cross-Core Synchronization Mechanism". A set increments a semaphore by one, a
//! wait blocks at zero. In mode 2 a set by the Cube reaches both Vectors, each of which waits on
//! its own counter; a set by a Vector is its own contribution, and the Cube's wait takes one of
//! each. So an id stands for four counters: one at each Vector that the Cube sets, and one at the
//! Cube for each Vector. On A5 the Cube names the Vector by the flag (f for AIV0, f + 16 for AIV1),
//! which addresses the same four counters one at a time.

use crate::arch::{SEMAPHORE_IDS, SEMAPHORE_MAX};
use crate::core_id::{CoreId, Lane, Lanes};

/// The receivers of a cross-core message (seed 002, "Mode2 Semantics"; `pto-isa`,
/// `ffts_cross_core_sync`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All cores.
    AllCores,
    /// The Vector subblocks among themselves.
    Subblocks,
    /// Cube and Vectors of a cluster.
    CubeVector,
}

/// The message of `ffts_cross_core_sync`: increment 1 in bits 0..4, mode in 4..8, id from bit 8.
/// None for an id past 15.
pub fn message(mode: Mode, id: u8) -> Option<u16> {
    let mode = match mode {
        Mode::AllCores => 0,
        Mode::Subblocks => 1,
        Mode::CubeVector => 2,
    };
    (id < SEMAPHORE_IDS).then(|| 1 | (mode << 4) | (u16::from(id) << 8))
}

/// Mode and id of a message; none if its increment is not 1, or mode or id do not exist.
pub fn parse_message(message: u16) -> Option<(Mode, u8)> {
    let mode = match (message >> 4) & 0xf {
        0 => Mode::AllCores,
        1 => Mode::Subblocks,
        2 => Mode::CubeVector,
        _ => return None,
    };
    let id = u8::try_from(message >> 8).ok().filter(|&id| id < SEMAPHORE_IDS)?;
    (message & 0xf == 1).then_some((mode, id))
}

/// One of the four counters of an id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Counter {
    /// The semaphore id, 0..16.
    pub id: u8,
    /// The lane.
    pub lane: Lane,
    /// Whether it is at the Vector, set by the Cube; otherwise it is at the Cube, set by the
    /// lane's Vector.
    pub at_vector: bool,
}

impl Counter {
    /// The core that waits on it.
    pub fn owner(&self) -> CoreId {
        if self.at_vector { CoreId::vector(self.lane) } else { CoreId::Cube }
    }

    /// The core that sets it.
    pub fn setter(&self) -> CoreId {
        if self.at_vector { CoreId::Cube } else { CoreId::vector(self.lane) }
    }
}

/// A set past the largest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overflow(pub Counter);

/// The semaphores of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Semaphores {
    /// `at_vector[lane][id]`, set by the Cube.
    at_vector: [[u8; SEMAPHORE_IDS as usize]; 2],
    /// `at_cube[lane][id]`, set by the lane's Vector.
    at_cube: [[u8; SEMAPHORE_IDS as usize]; 2],
}

impl Semaphores {
    /// The value of a counter; 0 for an id past 15.
    pub fn value(&self, counter: Counter) -> u8 {
        let bank = if counter.at_vector { &self.at_vector } else { &self.at_cube };
        bank[counter.lane.index()].get(usize::from(counter.id)).copied().unwrap_or(0)
    }

    fn value_mut(&mut self, counter: Counter) -> Option<&mut u8> {
        let bank = if counter.at_vector { &mut self.at_vector } else { &mut self.at_cube };
        bank[counter.lane.index()].get_mut(usize::from(counter.id))
    }

    /// `core` increments its counters on these lanes; a Vector reaches only its own. Nothing
    /// changes on an overflow. The caller has checked that the id is below 16.
    pub fn set(&mut self, core: CoreId, id: u8, lanes: Lanes) -> Result<(), Overflow> {
        let at_vector = core == CoreId::Cube;
        let counters = || reach(core, lanes).iter().map(move |lane| Counter { id, lane, at_vector });
        if let Some(full) = counters().find(|&counter| self.value(counter) >= SEMAPHORE_MAX) {
            return Err(Overflow(full));
        }
        for counter in counters() {
            if let Some(value) = self.value_mut(counter) {
                *value += 1;
            }
        }
        Ok(())
    }

    /// The counters at zero that keep `core` from passing a wait on these lanes.
    pub fn missing(&self, core: CoreId, id: u8, lanes: Lanes) -> Vec<Counter> {
        let counters = reach(core, lanes).iter().map(|lane| Counter { id, lane, at_vector: core.is_vector() });
        counters.filter(|&counter| self.value(counter) == 0).collect()
    }

    /// `core` decrements a counter on each of these lanes, all or none; returns false if
    /// it must wait.
    pub fn take(&mut self, core: CoreId, id: u8, lanes: Lanes) -> bool {
        for lane in reach(core, lanes).iter() {
            if self.value(Counter { id, lane, at_vector: core.is_vector() }) == 0 {
                return false;
            }
        }
        for lane in reach(core, lanes).iter() {
            if let Some(value) = self.value_mut(Counter { id, lane, at_vector: core.is_vector() }) {
                *value -= 1;
            }
        }
        true
    }

    /// All counters that are not zero, with their values.
    pub fn left(&self) -> Vec<(Counter, u8)> {
        let counters = [true, false].into_iter().flat_map(|at_vector| {
            Lane::ALL
                .into_iter()
                .flat_map(move |lane| (0..SEMAPHORE_IDS).map(move |id| Counter { id, lane, at_vector }))
        });
        counters.map(|counter| (counter, self.value(counter))).filter(|&(_, value)| value != 0).collect()
    }
}

fn reach(core: CoreId, lanes: Lanes) -> Lanes {
    core.lane().map_or(lanes, |lane| lanes.and(Lanes::one(lane)))
}
