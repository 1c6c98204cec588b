//! The grid of a chip: which tile a pair of coordinates means, and what each NIU's registers
//! hold about it.
//!
//! The torus is the same on every card ([`tilework_abi::grid`]); what is fused off and whether
//! software's coordinates are translated differ. With translation (the `translate` module beside
//! this one has the tables), Tensix tiles, DRAM ports and the PCIe tile have the same coordinates
//! on both NoCs; without, each NoC has its own, NoC 1 counting from the opposite corner
//! (WormholeB0/NoC/Coordinates.md). These are the tables as the card's firmware leaves them; an NIU
//! with tables of its own does not use them.

use super::translate::{MOST_HARVESTED_COLUMNS, Translation, opt_out, preferred};
use super::{NodeId, Place};
use crate::probe::Spot;
use crate::{Fault, FaultClass};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use tilework_abi::board::Harvesting;
use tilework_abi::grid::{ETHERNET_L1_BYTES, Site, TENSIX_COLUMNS, TENSIX_ROW_FIRST, TENSIX_ROW_LAST};
use tilework_abi::noc::{self, GRID_X, GRID_Y, NocXy};
use tilework_abi::tensix::L1_SIZE;

const READ: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_TARG_ADDR and NOC_RET_ADDR";
/// Routers of one NoC.
pub(super) const ROUTERS: usize = (GRID_X * GRID_Y) as usize;
/// Width of a coordinate field: 6 bits (NoC/MemoryMap.md).
const AXIS: usize = 64;
/// The bits of a coordinate word that hardware looks at (NoC/MemoryMap.md).
const RECT_BITS: u32 = 0xFF_FFFF;
/// Rectangles that the cache keeps; others are computed each time. A program uses a handful.
const CACHED_RECTS: usize = 1024;
/// Configuration registers of an NIU.
pub(super) const CONFIG_WORDS: usize = ((noc::CFG_END - noc::CFG_BASE) / 4) as usize;

/// The kind of tile behind an NIU, which decides which requests it accepts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TileKind {
    /// A Tensix tile: L1 and memory-mapped registers.
    Tensix,
    /// A port of a DRAM bank.
    Dram,
    /// A PCIe tile.
    Pcie,
    /// The ARC tile.
    Arc,
    /// An Ethernet tile: a smaller L1 and memory-mapped registers.
    Ethernet,
    /// Any other tile: L2CPU, security, empty.
    Other,
}

impl TileKind {
    /// Bytes of L1, for the kinds of tile that have one; these also have memory-mapped registers,
    /// which NIUs write word by word.
    pub(crate) fn l1_bytes(self) -> Option<u64> {
        match self {
            Self::Tensix => Some(L1_SIZE.into()),
            Self::Ethernet => Some(ETHERNET_L1_BYTES.into()),
            Self::Dram | Self::Pcie | Self::Arc | Self::Other => None,
        }
    }
}

impl From<Site> for TileKind {
    fn from(site: Site) -> Self {
        match site {
            Site::Tensix => Self::Tensix,
            Site::Dram { .. } => Self::Dram,
            Site::Pcie { .. } => Self::Pcie,
            Site::Arc => Self::Arc,
            Site::Ethernet { .. } => Self::Ethernet,
            Site::L2Cpu { .. } | Site::Security | Site::Empty => Self::Other,
        }
    }
}

/// Why the grid of a chip cannot be built.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GridError {
    /// NoC 0 coordinates outside the torus.
    #[error("tile {xy} at NoC 0 ({},{}) lies outside the grid", place.x, place.y)]
    Outside {
        /// The tile's place.
        place: Place,
        /// Software's coordinates for it.
        xy: NocXy,
    },
    /// Two tiles in one place.
    #[error("two tiles at NoC 0 ({},{})", place.x, place.y)]
    Twice {
        /// The place.
        place: Place,
    },
    /// Software's coordinates do not lead to the tile.
    #[error("{xy} does not mean NoC 0 ({},{}) on this chip", place.x, place.y)]
    Elsewhere {
        /// The tile's place.
        place: Place,
        /// Software's coordinates for it.
        xy: NocXy,
    },
    /// Harvesting that the card's firmware has no coordinates for.
    #[error("{columns} Tensix columns and {banks} DRAM banks are harvested; coordinate translation allows for 7 and 1")]
    Harvesting {
        /// Harvested Tensix columns.
        columns: u32,
        /// Harvested DRAM banks.
        banks: u32,
    },
}

/// Collects the tiles of a [`Grid`].
#[derive(Debug)]
pub(crate) struct GridBuilder {
    harvesting: Harvesting,
    tables: Option<[Translation; 2]>,
    tiles: [Option<Place>; ROUTERS],
    error: Option<GridError>,
}

impl GridBuilder {
    /// A grid of a chip with `harvesting`, whose NIUs translate coordinates or not.
    pub(crate) fn new(harvesting: Harvesting, translation: bool) -> Self {
        let (columns, banks) = (harvesting.tensix.count_ones(), harvesting.dram.count_ones());
        let fits = !translation || columns <= MOST_HARVESTED_COLUMNS && banks <= 1;
        Self {
            harvesting,
            tables: translation.then(|| Translation::new(harvesting)),
            tiles: [None; ROUTERS],
            error: (!fits).then_some(GridError::Harvesting { columns, banks }),
        }
    }

    /// Adds the NIU pair at `place`, which software knows as `xy` on NoC 0.
    #[must_use]
    pub(crate) fn add(mut self, place: Place, xy: NocXy) -> Self {
        if let Err(error) = self.try_add(place, xy) {
            self.error.get_or_insert(error);
        }
        self
    }

    fn try_add(&mut self, place: Place, xy: NocXy) -> Result<(), GridError> {
        let router = router_index(place.x, place.y).ok_or(GridError::Outside { place, xy })?;
        if physical(&self.tables, 0, xy) != Some((place.x, place.y)) {
            return Err(GridError::Elsewhere { place, xy });
        }
        match self.tiles[router].replace(place) {
            None => Ok(()),
            Some(place) => Err(GridError::Twice { place }),
        }
    }

    /// Assigns every place that is still free to `node`.
    #[must_use]
    pub(crate) fn fill(mut self, node: NodeId) -> Self {
        for (i, slot) in self.tiles.iter_mut().enumerate() {
            let (x, y) = ((i % GRID_X as usize) as u8, (i / GRID_X as usize) as u8);
            slot.get_or_insert(Place { node, x, y });
        }
        self
    }

    /// The finished grid.
    ///
    /// # Errors
    /// The first tile that does not fit.
    pub(crate) fn build(self) -> Result<Grid, GridError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let lookup = [0, 1].map(|noc| {
            let of = |i: usize| physical(&self.tables, noc, NocXy::new((i % AXIS) as u8, (i / AXIS) as u8));
            (0..AXIS * AXIS).map(|i| of(i).and_then(|(x, y)| self.tiles[router_index(x, y)?])).collect()
        });
        let kinds = self.tiles.map(|tile| tile.and_then(|place| Site::at(place.x, place.y)).map(TileKind::from));
        Ok(Grid {
            harvesting: self.harvesting,
            tables: self.tables,
            tiles: self.tiles,
            kinds,
            lookup,
            rects: RwLock::new(HashMap::new()),
        })
    }
}

/// The tiles of one chip by coordinates. Immutable; shared by all its NIUs.
#[derive(Debug)]
pub(crate) struct Grid {
    harvesting: Harvesting,
    /// Of NoC 0 and NoC 1, when coordinates are translated.
    tables: Option<[Translation; 2]>,
    /// By NoC 0 coordinates.
    tiles: [Option<Place>; ROUTERS],
    /// The kind of tile there.
    kinds: [Option<TileKind>; ROUTERS],
    /// What software's coordinates mean on NoC 0 and NoC 1, computed from `tables` and `tiles`.
    lookup: [Box<[Option<Place>]>; 2],
    /// Rectangles computed so far. Only a cache: its content does not affect results.
    rects: RwLock<HashMap<RectKey, Arc<[Place]>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct RectKey {
    noc: u8,
    word: u32,
    except: Option<(u8, u8)>,
}

impl Grid {
    /// An empty grid of a whole chip that translates coordinates.
    #[cfg(test)]
    pub(crate) fn builder() -> GridBuilder {
        GridBuilder::new(Harvesting::NONE, true)
    }

    /// The NIU that coordinate word `word` (y << 6 | x, higher bits ignored) means on NoC `noc`.
    #[inline]
    pub(crate) fn resolve(&self, noc: u8, word: u32) -> Option<Place> {
        let xy = NocXy::decode(word);
        self.lookup[usize::from(noc & 1)][usize::from(xy.y) * AXIS + usize::from(xy.x)]
    }

    /// The NIU at raw coordinates of NoC `noc`.
    pub(super) fn place_at(&self, noc: u8, raw: NocXy) -> Option<Place> {
        let at = mirror(noc, raw)?;
        self.tiles[router_index(at.x, at.y)?]
    }

    /// The raw coordinates of NoC `noc` that software's `xy` mean, `None` beyond the tables.
    pub(super) fn raw_of(&self, noc: u8, xy: NocXy) -> Option<NocXy> {
        match &self.tables {
            Some(tables) => tables[usize::from(noc & 1)].apply(xy),
            None => Some(xy),
        }
    }

    /// True when the tile at `place` is not fused off.
    pub(crate) fn works(&self, place: Place) -> bool {
        Site::at(place.x, place.y).is_none_or(|site| self.harvesting.has(place.x, site))
    }

    /// Every place assigned to `node`, row by row.
    pub(crate) fn places_of(&self, node: NodeId) -> impl Iterator<Item = Place> {
        self.tiles.iter().flatten().copied().filter(move |place| place.node == node)
    }

    /// What is fused off.
    pub(crate) fn harvesting(&self) -> Harvesting {
        self.harvesting
    }

    /// True when the NIUs translate coordinates.
    pub(crate) fn translates(&self) -> bool {
        self.tables.is_some()
    }

    /// The kind of tile at `place`.
    pub(crate) fn kind(&self, place: Place) -> Option<TileKind> {
        self.kinds[router_index(place.x, place.y)?]
    }

    /// The tile at `place` as events name it.
    pub(crate) fn spot(&self, place: Place) -> Spot {
        match Site::at(place.x, place.y) {
            Some(Site::Tensix) => Spot::Tensix(self.logical(0, place)),
            Some(Site::Dram { bank, .. }) => Spot::Dram(bank),
            Some(Site::Pcie { .. }) => Spot::Pcie,
            Some(Site::Arc) => Spot::Arc,
            _ => Spot::Inert,
        }
    }

    /// Software's coordinates for the tile at `place` on NoC `noc` (`NOC_ID_LOGICAL`).
    pub(crate) fn logical(&self, noc: u8, place: Place) -> NocXy {
        let at = NocXy::new(place.x, place.y);
        match (&self.tables, Site::at(place.x, place.y)) {
            (Some([noc0, _]), Some(site)) => preferred(noc0, at, site),
            _ => mirror(noc, at).unwrap_or(at),
        }
    }

    /// The configuration registers of the NIU at `place` on NoC `noc`, from [`noc::CFG_BASE`], as
    /// the card's firmware leaves them (tt-zephyr-platforms, `noc_init.c`).
    pub(super) fn niu_config(&self, noc: u8, place: Place) -> [u32; CONFIG_WORDS] {
        let mut config = [0; CONFIG_WORDS];
        let mut set = |offset: u32, value: u32| config[((offset - noc::CFG_BASE) / 4) as usize] = value;
        let clock = if self.works(place) { 0 } else { noc::NIU_CFG_0_CLOCK_OFF };
        let [columns, rows] = opt_out(self.harvesting, noc != 0);
        set(noc::ROUTER_CFG_1, columns);
        set(noc::ROUTER_CFG_3, rows);
        set(noc::ID_LOGICAL, self.logical(noc, place).encode());
        set(noc::NIU_CFG_0, clock);
        if let Some(tables) = &self.tables {
            let table = &tables[usize::from(noc & 1)];
            let [x, y] = table.words();
            for (i, (x, y)) in (0..).zip(x.into_iter().zip(y)) {
                set(noc::X_TABLE + 4 * i, x);
                set(noc::Y_TABLE + 4 * i, y);
            }
            set(noc::TRANSLATE_ROW_MASK, table.keep_x_rows);
            set(noc::NIU_CFG_0, clock | noc::NIU_CFG_0_TRANSLATE);
        }
        config
    }

    /// `NOC_ENDPOINT_ID` of the NIU at `place` on NoC `noc` (NoC/MemoryMap.md). Tensix tiles are
    /// numbered column by column, those that work first; for empty tiles the page names no value,
    /// and zero is used.
    pub(crate) fn endpoint_id(&self, noc: u8, place: Place) -> u32 {
        let (kind, index) = match Site::at(place.x, place.y) {
            Some(Site::Tensix) => (0x0100, self.tensix_index(place)),
            Some(Site::Ethernet { channel }) => (0x0200, channel),
            Some(Site::Pcie { .. }) => (0x0300, 2),
            Some(Site::Arc) => (0x0500, 0),
            Some(Site::Dram { bank, .. }) => (0x0800, bank),
            Some(Site::L2Cpu { index }) => (0x0901, index),
            Some(Site::Security) => (0x0A00, 0),
            Some(Site::Empty) | None => (0, 0),
        };
        u32::from(index) | kind << 8 | u32::from(noc & 1) << 24
    }

    fn tensix_index(&self, place: Place) -> u8 {
        let works = self.harvesting.columns();
        let gone = TENSIX_COLUMNS.into_iter().filter(|&x| !self.harvesting.has_column(x));
        let column = works.chain(gone).position(|x| x == place.x).unwrap_or(0) as u8;
        column * (TENSIX_ROW_LAST - TENSIX_ROW_FIRST + 1) + place.y.saturating_sub(TENSIX_ROW_FIRST)
    }

    /// An identification or configuration register of the NIU at `place` on NoC `noc`, as firmware
    /// leaves it; `None` for other registers. For tiles whose NIUs start no requests.
    pub(crate) fn niu_register(&self, noc: u8, place: Place, off: u32) -> Option<u32> {
        match off {
            noc::NODE_ID => Some(node_id(noc, place)),
            noc::ENDPOINT_ID => Some(self.endpoint_id(noc, place)),
            noc::CFG_BASE..noc::CFG_END => Some(self.niu_config(noc, place)[((off - noc::CFG_BASE) / 4) as usize]),
            _ => None,
        }
    }

    /// The tiles that a multicast to rectangle `word` (start y, start x, end y, end x, 6 bits each)
    /// on NoC `noc` reaches, without `except`, row by row. Only Tensix tiles receive, and those of
    /// a harvested column do not. When start is beyond end, the span wraps around the edge
    /// (NoC/MemoryMap.md). NoC 1 counts the other way, so start and end change places
    /// (WormholeB0/NoC/Coordinates.md).
    ///
    /// # Errors
    /// A corner outside the torus, or a rectangle without a receiver.
    pub(crate) fn rectangle(&self, noc: u8, word: u32, except: Option<Place>) -> Result<Arc<[Place]>, Fault> {
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
        let (start, end) = (NocXy::decode(key.word >> 12), NocXy::decode(key.word));
        let except = key.except;
        self.span(key.noc, [start, end].map(|xy| self.raw_of(key.noc, xy)), except).map_err(|what| {
            Fault::new(FaultClass::UndefinedBehavior, format!("multicast rectangle {start}..{end}: {what}"), READ)
        })
    }

    /// As [`Grid::rectangle`] with raw corners of NoC `noc`; `None` for a corner without a
    /// translation.
    ///
    /// # Errors
    /// As [`Grid::rectangle`].
    pub(super) fn raw_rectangle(
        &self,
        noc: u8,
        start: Option<NocXy>,
        end: Option<NocXy>,
        except: Option<Place>,
    ) -> Result<Arc<[Place]>, Fault> {
        self.span(noc, [start, end], except.map(|p| (p.x, p.y)))
            .map_err(|what| Fault::new(FaultClass::UndefinedBehavior, format!("multicast rectangle: {what}"), READ))
    }

    /// The receivers between raw corners of NoC `noc`. Corners are translated first, then the spans
    /// are determined (NoC/MemoryMap.md).
    fn span(
        &self,
        noc: u8,
        corners: [Option<NocXy>; 2],
        except: Option<(u8, u8)>,
    ) -> Result<Arc<[Place]>, &'static str> {
        let on_torus = |xy: NocXy| mirror(noc, xy).filter(|at| router_index(at.x, at.y).is_some());
        let [Some(mut first), Some(mut last)] = corners.map(|corner| corner.and_then(on_torus)) else {
            return Err("a corner lies outside the torus");
        };
        if noc != 0 {
            core::mem::swap(&mut first, &mut last);
        }
        let tiles: Arc<[Place]> = self
            .tiles
            .iter()
            .flatten()
            .filter(|p| self.receives(p))
            .filter(|p| in_span(p.x, first.x, last.x) && in_span(p.y, first.y, last.y))
            .filter(|p| except != Some((p.x, p.y)))
            .copied()
            .collect();
        if tiles.is_empty() { Err("it holds no receiving tile") } else { Ok(tiles) }
    }

    /// True when the tile at `place` receives broadcasts in the configuration that the card's
    /// firmware leaves.
    pub(super) fn receives(&self, place: &Place) -> bool {
        Site::at(place.x, place.y) == Some(Site::Tensix) && self.harvesting.has_column(place.x)
    }
}

/// Router index of NoC 0 coordinates.
pub(super) fn router_index(x: u8, y: u8) -> Option<usize> {
    (u32::from(x) < GRID_X && u32::from(y) < GRID_Y).then(|| usize::from(y) * GRID_X as usize + usize::from(x))
}

/// The NoC 0 coordinates that software's `xy` mean on NoC `noc`.
fn physical(tables: &Option<[Translation; 2]>, noc: u8, xy: NocXy) -> Option<(u8, u8)> {
    let xy = match tables {
        Some(tables) => tables[usize::from(noc & 1)].apply(xy)?,
        None => xy,
    };
    let at = mirror(noc, xy)?;
    router_index(at.x, at.y).map(|_| (at.x, at.y))
}

/// Converts between the coordinates of NoC 0 and those of `noc`: NoC 1 counts from the opposite
/// corner (WormholeB0/NoC/Coordinates.md).
fn mirror(noc: u8, xy: NocXy) -> Option<NocXy> {
    if noc == 0 {
        return Some(xy);
    }
    Some(NocXy::new((GRID_X as u8 - 1).checked_sub(xy.x)?, (GRID_Y as u8 - 1).checked_sub(xy.y)?))
}

/// `NOC_NODE_ID` of the NIU at `place` on NoC `noc`: coordinates on this NoC, size, and whether X
/// comes before Y. The dateline bits stay zero, as they only matter for virtual channels
/// (NoC/MemoryMap.md).
pub(super) fn node_id(noc: u8, place: Place) -> u32 {
    const X_FIRST: u32 = 1 << 28;
    let at = mirror(noc, NocXy::new(place.x, place.y)).unwrap_or(NocXy::new(0, 0));
    at.encode() | GRID_X << 12 | GRID_Y << 19 | if noc == 0 { X_FIRST } else { 0 }
}

fn in_span(v: u8, start: u8, end: u8) -> bool {
    if start <= end { (start..=end).contains(&v) } else { v <= end || start <= v }
}
