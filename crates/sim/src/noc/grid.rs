//! Which tile a pair of coordinates means.
//!
//! Firmware configures every NIU so that Tensix tiles have the same coordinates on both NoCs and DRAM and PCIe ports lie outside the
//! torus (facts, "Harvested DRAM bank"); raw coordinates of a NoC still work where they do not collide with these
//! (WormholeB0/NoC/Coordinates.md; Blackhole has no public page of its own). The table is fixed: an NIU refuses to have its translation
//! reconfigured.

use super::Place;
use crate::{Fault, FaultClass};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tilework_abi::board;
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};

const READ: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_TARG_ADDR and NOC_RET_ADDR";
/// Routers of one NoC.
pub(super) const ROUTERS: usize = (GRID_X * GRID_Y) as usize;
/// Width of a coordinate field: 6 bits (NoC/MemoryMap.md).
const AXIS: usize = 64;
/// The bits of a coordinate word that hardware looks at (NoC/MemoryMap.md).
const RECT_BITS: u32 = 0xFF_FFFF;
/// Rectangles that the cache keeps; more are worked out each time. A program uses a handful.
const CACHED_RECTS: usize = 1024;

/// What sits behind an NIU; decides which requests it can take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TileKind {
    /// A Tensix tile: L1 and memory-mapped registers.
    Tensix,
    /// A port of a DRAM bank.
    Dram,
    /// The PCIe tile.
    Pcie,
    /// The ARC tile.
    Arc,
}

impl TileKind {
    /// The kind of the tile at translated coordinates, `None` where a Blackhole has none that the simulator knows.
    fn of(xy: NocXy) -> Option<Self> {
        const DRAM_COLUMNS: core::ops::RangeInclusive<u8> = 17..=18;
        match xy {
            board::PCIE => Some(Self::Pcie),
            board::ARC => Some(Self::Arc),
            _ if is_tensix_column(xy.x) && is_tensix_row(xy.y) => Some(Self::Tensix),
            _ if DRAM_COLUMNS.contains(&xy.x) => Some(Self::Dram),
            _ => None,
        }
    }
}

fn is_tensix_column(x: u8) -> bool {
    board::Board::P150.worker_columns().contains(&x)
}

fn is_tensix_row(y: u8) -> bool {
    (board::WORKER_Y_FIRST..=board::WORKER_Y_LAST).contains(&y)
}

/// Why a [`Grid`] cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GridError {
    /// Physical coordinates outside the torus, or translated ones that do not fit a coordinate field.
    #[error("tile {translated} at physical ({},{}) lies outside the grid", place.x, place.y)]
    Outside {
        /// The tile's place.
        place: Place,
        /// Its translated coordinates.
        translated: NocXy,
    },
    /// Two tiles with the same coordinates.
    #[error("two tiles at {translated}, physical ({},{})", place.x, place.y)]
    Twice {
        /// The second tile's place.
        place: Place,
        /// Its translated coordinates.
        translated: NocXy,
    },
    /// Translated coordinates at which a Blackhole has no tile.
    #[error("no kind of tile is at {translated}")]
    Unknown {
        /// The coordinates.
        translated: NocXy,
    },
}

#[derive(Clone, Copy, Debug)]
struct Tile {
    place: Place,
    kind: TileKind,
}

/// Collects the tiles of a [`Grid`].
#[derive(Debug)]
pub struct GridBuilder {
    physical: [Option<Tile>; ROUTERS],
    translated: Box<[Option<Place>; AXIS * AXIS]>,
    error: Option<GridError>,
}

impl GridBuilder {
    /// Adds the NIU pair at `place`, which firmware knows as `translated`.
    #[must_use]
    pub fn add(mut self, place: Place, translated: NocXy) -> Self {
        if let Err(error) = self.try_add(place, translated) {
            self.error.get_or_insert(error);
        }
        self
    }

    fn try_add(&mut self, place: Place, translated: NocXy) -> Result<(), GridError> {
        let outside = GridError::Outside { place, translated };
        let kind = TileKind::of(translated).ok_or(GridError::Unknown { translated })?;
        let router = router_index(place.x, place.y).ok_or(outside)?;
        let word = axis_index(translated).ok_or(outside)?;
        if self.physical[router].is_some() || self.translated[word].is_some() {
            return Err(GridError::Twice { place, translated });
        }
        self.physical[router] = Some(Tile { place, kind });
        self.translated[word] = Some(place);
        Ok(())
    }

    /// The finished grid.
    ///
    /// # Errors
    /// The first tile that did not fit.
    pub fn build(self) -> Result<Grid, GridError> {
        match self.error {
            Some(error) => Err(error),
            None => {
                Ok(Grid { physical: self.physical, translated: self.translated, rects: RwLock::new(HashMap::new()) })
            }
        }
    }
}

/// The tiles of one chip by coordinates. Immutable; shared by all its NIUs.
#[derive(Debug)]
pub struct Grid {
    physical: [Option<Tile>; ROUTERS],
    translated: Box<[Option<Place>; AXIS * AXIS]>,
    /// Rectangles seen so far. Only a cache: what it answers does not depend on what is in it.
    rects: RwLock<HashMap<RectKey, Arc<[Place]>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct RectKey {
    noc: u8,
    word: u32,
    except: Option<(u8, u8)>,
}

impl Grid {
    /// An empty builder.
    pub fn builder() -> GridBuilder {
        GridBuilder { physical: [None; ROUTERS], translated: Box::new([None; AXIS * AXIS]), error: None }
    }

    /// The NIU that coordinate word `word` (y << 6 | x, higher bits ignored) means on NoC `noc`.
    pub fn resolve(&self, noc: u8, word: u32) -> Option<Place> {
        let xy = NocXy::decode(word);
        if let Some(place) = axis_index(xy).and_then(|i| self.translated[i]) {
            return Some(place);
        }
        let (x, y) = raw_to_physical(noc, xy)?;
        self.physical[router_index(x, y)?].map(|tile| tile.place)
    }

    /// What sits at `place`.
    pub fn kind(&self, place: Place) -> Option<TileKind> {
        self.physical[router_index(place.x, place.y)?].map(|tile| tile.kind)
    }

    /// The tiles that a multicast to rectangle `word` (start y, start x, end y, end x, 6 bits each) on NoC `noc` reaches, without
    /// `except`, row by row. Only Tensix tiles receive; a harvested column is not there and receives nothing. When start is beyond
    /// end, the span wraps around the edge (NoC/MemoryMap.md). NoC 1 counts the other way, so start and end change places
    /// (WormholeB0/NoC/Coordinates.md).
    ///
    /// # Errors
    /// A corner that is not in a Tensix row and column, or a rectangle without a receiver.
    pub fn rectangle(&self, noc: u8, word: u32, except: Option<Place>) -> Result<Arc<[Place]>, Fault> {
        let key = RectKey { noc, word: word & RECT_BITS, except: except.map(|p| (p.x, p.y)) };
        if let Some(found) = self.rects.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(Arc::clone(found));
        }
        let tiles = self.work_out(key)?;
        let mut rects = self.rects.write().unwrap_or_else(PoisonError::into_inner);
        if rects.len() < CACHED_RECTS {
            rects.insert(key, Arc::clone(&tiles));
        }
        Ok(tiles)
    }

    fn work_out(&self, key: RectKey) -> Result<Arc<[Place]>, Fault> {
        let (mut start, mut end) = (NocXy::decode(key.word >> 12), NocXy::decode(key.word));
        for corner in [start, end] {
            if !is_tensix_column(corner.x) || !is_tensix_row(corner.y) {
                return Err(Fault::new(
                    FaultClass::MissingSpecification,
                    format!("multicast rectangle {start}..{end}: corner {corner} is not in a Tensix row and column"),
                    READ,
                ));
            }
        }
        if key.noc != 0 {
            core::mem::swap(&mut start, &mut end);
        }
        let tiles: Arc<[Place]> = self
            .physical
            .iter()
            .flatten()
            .filter(|tile| tile.kind == TileKind::Tensix)
            .map(|tile| tile.place)
            .filter(|p| in_span(p.x, start.x, end.x) && in_span(p.y, start.y, end.y))
            .filter(|p| key.except != Some((p.x, p.y)))
            .collect();
        if tiles.is_empty() {
            return Err(Fault::new(
                FaultClass::UndefinedBehavior,
                format!("multicast rectangle {start}..{end} holds no receiving tile"),
                READ,
            ));
        }
        Ok(tiles)
    }
}

/// Router index of physical NoC 0 coordinates.
pub(super) fn router_index(x: u8, y: u8) -> Option<usize> {
    (u32::from(x) < GRID_X && u32::from(y) < GRID_Y).then(|| usize::from(y) * GRID_X as usize + usize::from(x))
}

fn axis_index(xy: NocXy) -> Option<usize> {
    let (x, y) = (usize::from(xy.x), usize::from(xy.y));
    (x < AXIS && y < AXIS).then_some(y * AXIS + x)
}

/// NoC 1 counts from the opposite corner (WormholeB0/NoC/Coordinates.md).
fn raw_to_physical(noc: u8, xy: NocXy) -> Option<(u8, u8)> {
    if noc == 0 {
        return Some((xy.x, xy.y));
    }
    Some(((GRID_X as u8 - 1).checked_sub(xy.x)?, (GRID_Y as u8 - 1).checked_sub(xy.y)?))
}

fn in_span(v: u8, start: u8, end: u8) -> bool {
    if start <= end { (start..=end).contains(&v) } else { v <= end || start <= v }
}
