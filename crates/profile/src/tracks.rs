//! The tracks of a timeline, and what is under way on them.

use std::collections::BTreeMap;

use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_sim::{Spot, Unit};
use tilework_timeline::{Arrow, CounterTrack, Track};

/// The tracks of a tile.
pub(crate) struct TileTracks {
    pub(crate) root: Track,
    pub(crate) cores: [Option<Track>; 5],
    pub(crate) units: Units,
    /// Of each NoC; true while a request is in flight on it.
    pub(crate) lanes: [Vec<(Track, bool)>; 2],
    pub(crate) arrivals: Option<Track>,
    pub(crate) levels: BTreeMap<u32, CounterTrack>,
    pub(crate) queue: Option<CounterTrack>,
    pub(crate) commands: BTreeMap<Processor, CounterTrack>,
}

/// A unit at work, with the span that has not been written: from when to when, and for which
/// thread.
pub(crate) struct Working {
    pub(crate) track: Track,
    pub(crate) span: Option<(Cycle, Cycle, u8)>,
}

/// The units of a tile that have worked.
#[derive(Default)]
pub(crate) struct Units([Option<Working>; 8]);

impl Units {
    /// The place of a unit, in their order.
    #[inline]
    pub(crate) fn of(&mut self, unit: Unit) -> &mut Option<Working> {
        let place = match unit {
            Unit::Unpacker(number) => usize::from(number & 1),
            Unit::Packer => 2,
            Unit::Matrix => 3,
            Unit::Vector => 4,
            Unit::Mover => 5,
            Unit::Scalar => 6,
            Unit::Gate => 7,
        };
        &mut self.0[place]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Working> {
        self.0.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Working> {
        self.0.iter_mut().flatten()
    }
}

/// The value of one of the few places that are no tiles, made by `new` if it has none.
pub(crate) fn of_spot<T>(all: &mut Vec<(Spot, T)>, spot: Spot, new: impl FnOnce() -> T) -> &mut T {
    let at = all.iter().position(|(of, _)| *of == spot).unwrap_or_else(|| {
        all.push((spot, new()));
        all.len() - 1
    });
    &mut all[at].1
}

/// The tracks of a DRAM bank or of the host.
pub(crate) struct EndTracks {
    pub(crate) arrivals: Track,
    pub(crate) waiting: CounterTrack,
    pub(crate) level: i64,
}

/// A request in its lane.
pub(crate) struct InFlight {
    pub(crate) tile: NocXy,
    pub(crate) noc: usize,
    pub(crate) lane: usize,
    pub(crate) arrow: Arrow,
    pub(crate) what: &'static str,
}
