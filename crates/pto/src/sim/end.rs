//! A core's end of a ring: TPUSH, TPOP, TFREE, and the global-data form TALLOC, TSTORE, TPUSH, TPOP, TLOAD, TFREE.

use super::core::Core;
use super::shared::RingInfo;
use super::transfer::{self, Piece, Transfer, gather, local_space, tight};
use crate::core_id::CoreId;
use crate::events::{Event, EventKind};
use crate::fault::Fault;
use crate::memory::Space;
use crate::protocol::{Cursor, Medium, Way};
use crate::split::Place;
use crate::tile::{Shape, Tile};
use std::rc::Rc;

/// A popped tile: bound to its slot, or copied into one of the consumer's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Popped {
    tile: u32,
    share: Shape,
}

impl Popped {
    /// The tile's number on its way, from 0.
    pub fn number(&self) -> u32 {
        self.tile
    }

    /// What this core has of it: the whole tile for the Cube, its share for a Vector.
    pub fn shape(&self) -> Shape {
        self.share
    }
}

/// A slot in global memory, in the global-data form: of the producer between TALLOC and TPUSH, of the consumer between TPOP
/// and TFREE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    tile: u32,
    mine: bool,
}

impl Slot {
    /// The tile's number on its way, from 0.
    pub fn number(&self) -> u32 {
        self.tile
    }
}

/// A copy in the consumer's memory.
#[derive(Debug)]
struct LocalCopy {
    tile: u32,
    from: usize,
    to: usize,
}

/// A core's end of a ring. Dropping it does nothing: [`RingEnd::close`] takes the credits back.
pub struct RingEnd {
    core: Core,
    ring: Rc<RingInfo>,
    /// Index in the ring's ways of the one that this core produces, and how far it is.
    out: Option<(usize, Cursor)>,
    /// The same of the one that it consumes.
    into: Option<(usize, Cursor)>,
    copies: Vec<LocalCopy>,
}

impl RingEnd {
    pub(super) async fn open(core: Core, ring: Rc<RingInfo>) -> Result<Self, Fault> {
        let id = core.id();
        let find = |end: fn(&Way, CoreId) -> bool| {
            ring.ways.iter().position(|way| end(way, id)).map(|way| (way, Cursor::default()))
        };
        let (out, into) = (find(Way::produces), find(Way::consumes));
        for way in &ring.ways {
            transfer::run(&core, way, &way.open(id), &mut Transfer::None).await?;
        }
        Ok(Self { core, ring, out, into, copies: Vec::new() })
    }

    /// The core that holds this end.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// Tiles that were popped and not freed.
    pub fn held(&self) -> u32 {
        self.into.map_or(0, |(_, cursor)| cursor.popped - cursor.freed)
    }

    /// TPUSH: waits for a slot, copies the tile into it, says that it is ready. The Cube gives the whole tile, a Vector
    /// its share (Vector 1 of a ring without split gives a tile of the whole shape, which goes nowhere).
    pub async fn push(&mut self, tile: &Tile) -> Result<(), Fault> {
        let whole = self.ring.spec.whole(self.producing("push")?.flow);
        self.push_shaped(tile, whole).await
    }

    /// TPUSH of a tile that is not the ring's own: `whole` is the shape of both shares together.
    pub async fn push_shaped(&mut self, tile: &Tile, whole: Shape) -> Result<(), Fault> {
        let (way, start, id) = (self.producing("push")?, self.core.now(), self.core.id());
        let share = self.share(&way, whole)?;
        if tile.shape() != share {
            return self.wrong_shape(&way, tile.shape(), share.to_string());
        }
        let cursor = self.cursor_out();
        if cursor.acquired != cursor.published {
            let what = "a tile cannot be pushed while an allocated slot is not; publish the slot first";
            return self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)));
        }
        let number = cursor.acquired;
        let steps = way.push(id, cursor);
        let pieces = self.ring.pieces(&way, number, id, share, whole);
        transfer::run(&self.core, &way, &steps, &mut Transfer::Out { tile, pieces }).await?;
        self.note(EventKind::Push, &way, number, start);
        Ok(())
    }

    /// TPOP: waits until the tile is ready, then copies it into one of the consumer's own slots (from global memory), or
    /// binds the slot (in UB or L1). The slot stays the consumer's until [`Self::free`].
    pub async fn pop(&mut self) -> Result<Popped, Fault> {
        let whole = self.ring.spec.whole(self.consuming("pop")?.flow);
        self.pop_shaped(whole).await
    }

    /// TPOP of a tile that is not the ring's own: `whole` is the shape of both shares together.
    pub async fn pop_shaped(&mut self, whole: Shape) -> Result<Popped, Fault> {
        let (way, start, id) = (self.consuming("pop")?, self.core.now(), self.core.id());
        if self.ring.ways.iter().any(|way| way.ready != way.ready_waited) {
            let what = "the headers' TPOP into a tile has no case for BOTH_GM on A5 and returns nothing; use slots (TALLOC form)";
            return self.core.fail(Fault::HeaderGap { ring: self.ring.spec.name.clone(), what });
        }
        let share = self.share(&way, whole)?;
        let number = self.cursor_in().popped;
        let steps = way.pop(id, self.cursor_in());
        let (at, place) = self.ring.placed(&way, number, id, share);
        let mut copy = Transfer::In { space: RingInfo::space(&way, id), at, place, shape: share, tile: None };
        transfer::run(&self.core, &way, &steps, &mut copy).await?;
        if let Transfer::In { tile: Some(tile), .. } = copy {
            self.keep_copy(&way, number, &tile)?;
        }
        self.note(EventKind::Pop, &way, number, start);
        Ok(Popped { tile: number, share })
    }

    /// The popped tile's elements. Vector 1 of a ring without split gets zeros.
    pub async fn read(&mut self, popped: &Popped) -> Result<Tile, Fault> {
        let (way, id) = (self.consuming("read")?, self.core.id());
        if self.has_no_data(&way) {
            return Ok(Tile::zeros(popped.share));
        }
        if !way.medium.zero_copy() {
            let Some(copy) = self.copies.iter().find(|copy| copy.tile == popped.tile) else {
                return self.stale(
                    &way,
                    popped.tile,
                    "a later pop has overwritten its copy; the ring needs more local slots",
                );
            };
            let tile = gather(&self.core, local_space(id), copy.from, tight(popped.share), popped.share);
            return self.core.keep(tile);
        }
        if popped.tile < self.cursor_in().freed {
            return self.stale(&way, popped.tile, "its slot was freed");
        }
        let (at, place) = self.ring.placed(&way, popped.tile, id, popped.share);
        self.fetch(&way, popped.tile, RingInfo::space(&way, id), at, place, popped.share).await
    }

    /// TPOP and the popped tile's elements.
    pub async fn pop_tile(&mut self) -> Result<Tile, Fault> {
        let popped = self.pop().await?;
        self.read(&popped).await
    }

    /// TFREE: gives back the oldest slot that this core holds. Under the headers' profile a pop from global memory has
    /// done so already; then this does nothing on A2A3, and signals a second time on A5.
    pub async fn free(&mut self) -> Result<(), Fault> {
        let (way, start, id) = (self.consuming("free")?, self.core.now(), self.core.id());
        let Cursor { popped, freed, .. } = *self.cursor_in();
        let Some(steps) = way.free(id, self.cursor_in()) else {
            return self.core.fail(Fault::NothingToFree { core: id, ring: way.name, popped });
        };
        transfer::run(&self.core, &way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Free, &way, freed, start);
        Ok(())
    }

    /// TALLOC: waits for a slot in global memory, to be filled in parts.
    pub async fn alloc(&mut self) -> Result<Slot, Fault> {
        let (way, start, id) = (self.producing("allocate")?, self.core.now(), self.core.id());
        self.only_global(&way)?;
        let tile = self.cursor_out().acquired;
        let steps = way.acquire(id, self.cursor_out());
        transfer::run(&self.core, &way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Alloc, &way, tile, start);
        Ok(Slot { tile, mine: true })
    }

    /// TSTORE of a part of the tile into an allocated slot: `row` and `col` count from the first element of what this core
    /// has of the tile.
    pub async fn store(&mut self, slot: &Slot, row: usize, col: usize, part: &Tile) -> Result<(), Fault> {
        let (way, shape) = (self.producing("store")?, part.shape());
        if !slot.mine || slot.tile < self.cursor_out().published {
            return self.stale(&way, slot.tile, "its slot was published");
        }
        let (at, there) = self.part(&way, slot.tile, row, col, shape)?;
        let pieces = vec![Piece { space: Space::Gm, at, there, here: tight(shape), shape }];
        let steps = way.store(self.core.id(), slot.tile);
        transfer::run(&self.core, &way, &steps, &mut Transfer::Out { tile: part, pieces }).await
    }

    /// TPUSH of an allocated slot: says that it is ready. Slots go in the order in which they were allocated.
    pub async fn push_slot(&mut self, slot: Slot) -> Result<(), Fault> {
        let (way, start, id) = (self.producing("push")?, self.core.now(), self.core.id());
        let cursor = self.cursor_out();
        if !slot.mine || slot.tile != cursor.published || cursor.published == cursor.acquired {
            return self.core.fail(Fault::NothingToPublish { core: id, ring: way.name });
        }
        let steps = way.publish(id, cursor);
        transfer::run(&self.core, &way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Push, &way, slot.tile, start);
        Ok(())
    }

    /// TPOP of a slot in global memory: waits until it is ready; [`Self::load`] reads it, [`Self::free`] gives it back.
    pub async fn pop_slot(&mut self) -> Result<Slot, Fault> {
        let (way, start, id) = (self.consuming("pop")?, self.core.now(), self.core.id());
        self.only_global(&way)?;
        let tile = self.cursor_in().popped;
        let steps = way.take(id, self.cursor_in());
        transfer::run(&self.core, &way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Pop, &way, tile, start);
        Ok(Slot { tile, mine: false })
    }

    /// TLOAD of a part of a popped slot; `row` and `col` as in [`Self::store`].
    pub async fn load(&mut self, slot: &Slot, row: usize, col: usize, part: Shape) -> Result<Tile, Fault> {
        let way = self.consuming("load")?;
        if slot.mine || slot.tile < self.cursor_in().freed {
            return self.stale(&way, slot.tile, "its slot was freed");
        }
        if self.has_no_data(&way) {
            return Ok(Tile::zeros(part));
        }
        let (at, place) = self.part(&way, slot.tile, row, col, part)?;
        self.fetch(&way, slot.tile, Space::Gm, at, place, part).await
    }

    /// The end of the ring's life: a producer takes back all credits, which waits until the last tile is freed.
    pub async fn close(self) -> Result<(), Fault> {
        let Some((way, cursor)) = &self.out else { return Ok(()) };
        let way = &self.ring.ways[*way];
        transfer::run(&self.core, way, &way.close(self.core.id(), cursor), &mut Transfer::None).await
    }

    fn producing(&self, what: &'static str) -> Result<Way, Fault> {
        self.way(self.out, what, "the producer can: the Cube of C2V, a Vector of V2C (A5 without split: Vector 0 only)")
    }

    fn consuming(&self, what: &'static str) -> Result<Way, Fault> {
        self.way(
            self.into,
            what,
            "the consumer can: a Vector of C2V (A5 without split: Vector 0 only), the Cube of V2C",
        )
    }

    fn way(&self, end: Option<(usize, Cursor)>, what: &'static str, hint: &'static str) -> Result<Way, Fault> {
        let ring = self.ring.spec.name.clone();
        let wrong = Fault::WrongCore { core: self.core.id(), what, ring, hint };
        self.core.keep(end.map(|(way, _)| self.ring.ways[way].clone()).ok_or(wrong))
    }

    // `producing` and `consuming` have proved that the end exists; without one, a cursor of its own changes nothing.
    fn cursor_out(&mut self) -> &mut Cursor {
        &mut self.out.get_or_insert((0, Cursor::default())).1
    }

    fn cursor_in(&mut self) -> &mut Cursor {
        &mut self.into.get_or_insert((0, Cursor::default())).1
    }

    fn note(&self, kind: EventKind, way: &Way, tile: u32, start: u64) {
        let (name, slot) = (way.name.as_str().into(), Some(way.slot(tile)));
        self.core.event(Event { name, tile: Some(tile), slot, start, ..self.core.blank(kind) });
    }

    /// Vector 1 of a ring without split.
    fn has_no_data(&self, way: &Way) -> bool {
        self.core.id().lane().is_some_and(|lane| !way.data.has(lane))
    }

    /// What this core has of a whole tile.
    fn share(&self, way: &Way, whole: Shape) -> Result<Shape, Fault> {
        let spec = &self.ring.spec;
        self.core.keep(spec.check_tile(way.arch, way.flow, whole).map_err(Fault::from))?;
        match self.core.id().lane().map_or(Some(whole), |lane| spec.split.share(whole, lane)) {
            Some(share) => Ok(share),
            None => self.wrong_shape(way, whole, format!("tiles that can be split {:?}", spec.split)),
        }
    }

    fn wrong_shape<T>(&self, way: &Way, got: Shape, expected: String) -> Result<T, Fault> {
        self.core.fail(Fault::WrongShape { core: self.core.id(), ring: way.name.clone(), got, expected })
    }

    fn stale<T>(&self, way: &Way, tile: u32, why: &'static str) -> Result<T, Fault> {
        self.core.fail(Fault::Stale { core: self.core.id(), ring: way.name.clone(), tile, why })
    }

    fn only_global(&self, way: &Way) -> Result<(), Fault> {
        if way.medium == Medium::Gm {
            return Ok(());
        }
        let what =
            "slots can be handled as global data only where they are in global memory (A2A3, or the GM directions)";
        self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)))
    }

    /// Where a part of a slot lies: address of the slot, layout of the part.
    fn part(&self, way: &Way, tile: u32, row: usize, col: usize, part: Shape) -> Result<(usize, Place), Fault> {
        let share = self.share(way, self.ring.spec.whole(way.flow))?;
        let inside = part.dtype == share.dtype
            && row.checked_add(part.rows).is_some_and(|end| end <= share.rows)
            && col.checked_add(part.cols).is_some_and(|end| end <= share.cols);
        if !inside {
            return self.wrong_shape(way, part, format!("a part of {share} at row {row}, column {col}"));
        }
        let (at, place) = self.ring.placed(way, tile, self.core.id(), share);
        let offset = place.offset + row * place.stride + col * part.dtype.bytes();
        Ok((at, Place { offset, ..place }))
    }

    /// A read of a slot.
    async fn fetch(
        &self,
        way: &Way,
        tile: u32,
        space: Space,
        at: usize,
        place: Place,
        shape: Shape,
    ) -> Result<Tile, Fault> {
        let mut transfer = Transfer::In { space, at, place, shape, tile: None };
        transfer::run(&self.core, way, &way.load(self.core.id(), tile), &mut transfer).await?;
        match transfer {
            Transfer::In { tile: Some(tile), .. } => Ok(tile),
            _ => Ok(Tile::zeros(shape)),
        }
    }

    /// Puts a popped tile into the consumer's own slot, over what is there.
    fn keep_copy(&mut self, way: &Way, number: u32, tile: &Tile) -> Result<(), Fault> {
        let from = self.ring.copy_base(way, number, tile.shape());
        let to = from + tile.shape().bytes();
        self.copies.retain(|other| other.to <= from || to <= other.from);
        self.copies.push(LocalCopy { tile: number, from, to });
        let written = self.core.shared().memories.write(local_space(self.core.id()), from, tile.bytes());
        self.core.keep(written.map_err(Fault::from))
    }
}
