//! A core's end of a ring: TPUSH, TPOP, TFREE, and the global-data form TALLOC, TSTORE, TPUSH,
//! TPOP, TLOAD, TFREE.

use super::core::Core;
use super::shared::RingInfo;
use super::transfer::{self, Piece, Transfer, gather, local_space, tight};
use crate::core_id::CoreId;
use crate::events::{Event, EventKind};
use crate::fault::Fault;
use crate::memory::Space;
use crate::protocol::{Cursor, Medium, Way};
use crate::split::ShareLayout;
use crate::tile::{Shape, Tile};
use std::cell::Cell;
use std::rc::Rc;

/// A popped tile, bound to its slot or copied into a local slot of the consumer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Popped {
    tile: u32,
    share: Shape,
}

impl Popped {
    /// The tile's number in its direction, from 0.
    pub fn number(&self) -> u32 {
        self.tile
    }

    /// Shape of this core's part: the whole tile for the Cube, its share for a Vector.
    pub fn shape(&self) -> Shape {
        self.share
    }
}

/// A slot in global memory, in the global-data form: the producer's between TALLOC and TPUSH, the
/// consumer's between TPOP and TFREE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slot {
    tile: u32,
    mine: bool,
}

impl Slot {
    /// The tile's number in its direction, from 0.
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

/// One way of a ring as this core produces or consumes it, with its position.
#[derive(Debug)]
struct Half {
    way: Way,
    cursor: Cell<Cursor>,
}

/// A core's end of a ring. Dropping it does nothing: [`RingEnd::close`] takes the credits back.
pub struct RingEnd {
    core: Core,
    ring: Rc<RingInfo>,
    /// The way that this core produces.
    out: Option<Rc<Half>>,
    /// The way that it consumes.
    into: Option<Rc<Half>>,
    copies: Vec<LocalCopy>,
}

impl RingEnd {
    pub(super) async fn open(core: Core, ring: Rc<RingInfo>) -> Result<Self, Fault> {
        check_block(&core, &ring)?;
        let id = core.id();
        let half = |way: &Way| Rc::new(Half { way: way.clone(), cursor: Cell::default() });
        let find = |end: fn(&Way, CoreId) -> bool| ring.ways.iter().find(|way| end(way, id)).map(half);
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
        self.into.as_ref().map_or(0, |half| {
            let cursor = half.cursor.get();
            cursor.popped - cursor.freed
        })
    }

    /// TPUSH: waits for a slot, copies the tile into it and publishes it. The Cube passes the whole
    /// tile, a Vector its share (Vector 1 of a ring without split passes a tile of the whole shape,
    /// which is ignored).
    pub async fn push(&mut self, tile: &Tile) -> Result<(), Fault> {
        let whole = self.ring.spec.whole(self.producing("push")?.way.flow);
        self.push_shaped(tile, whole).await
    }

    /// TPUSH of a tile of another shape than the ring's: `whole` is the shape of both
    /// shares together.
    pub async fn push_shaped(&mut self, tile: &Tile, whole: Shape) -> Result<(), Fault> {
        let (half, start, id) = (self.producing("push")?, self.core.now(), self.core.id());
        let way = &half.way;
        self.tile_form()?;
        let share = self.share(way, whole)?;
        if tile.shape() != share {
            return self.wrong_shape(way, tile.shape(), share.to_string());
        }
        let mut cursor = half.cursor.get();
        if cursor.acquired != cursor.published {
            let what = "a tile cannot be pushed while an allocated slot is not; publish the slot first";
            return self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)));
        }
        let number = cursor.acquired;
        let steps = way.push(id, &mut cursor);
        half.cursor.set(cursor);
        let pieces = self.ring.pieces(way, number, id, share, whole);
        transfer::run(&self.core, way, &steps, &mut Transfer::Out { tile, pieces }).await?;
        self.note(EventKind::Push, way, number, start);
        Ok(())
    }

    /// TPOP: waits until the tile is ready, then copies it into a local slot (from global memory),
    /// or binds the slot (in UB or L1). The slot stays the consumer's until [`Self::free`].
    pub async fn pop(&mut self) -> Result<Popped, Fault> {
        let whole = self.ring.spec.whole(self.consuming("pop")?.way.flow);
        self.pop_shaped(whole).await
    }

    /// TPOP of a tile of another shape than the ring's: `whole` is the shape of both
    /// shares together.
    pub async fn pop_shaped(&mut self, whole: Shape) -> Result<Popped, Fault> {
        let (half, start, id) = (self.consuming("pop")?, self.core.now(), self.core.id());
        let way = &half.way;
        self.tile_form()?;
        let share = self.share(way, whole)?;
        let mut cursor = half.cursor.get();
        let number = cursor.popped;
        let steps = way.pop(id, &mut cursor);
        half.cursor.set(cursor);
        let (at, place) = self.ring.placed(way, number, id, share);
        let mut copy = Transfer::In { space: RingInfo::space(way, id), at, place, shape: share, tile: None };
        transfer::run(&self.core, way, &steps, &mut copy).await?;
        if let Transfer::In { tile: Some(tile), .. } = copy {
            self.keep_copy(way, number, &tile)?;
        }
        self.note(EventKind::Pop, way, number, start);
        Ok(Popped { tile: number, share })
    }

    /// The popped tile's elements. Vector 1 of a ring without split gets zeros.
    pub async fn read(&mut self, popped: &Popped) -> Result<Tile, Fault> {
        let (half, id) = (self.consuming("read")?, self.core.id());
        let way = &half.way;
        if self.has_no_data(way) {
            return Ok(Tile::zeros(popped.share));
        }
        if !way.medium.zero_copy() {
            let Some(copy) = self.copies.iter().find(|copy| copy.tile == popped.tile) else {
                return self.stale(
                    way,
                    popped.tile,
                    "a later pop has overwritten its copy; the ring needs more local slots",
                );
            };
            let tile = gather(&self.core, local_space(id), copy.from, tight(popped.share), popped.share);
            return self.core.keep(tile);
        }
        if popped.tile < half.cursor.get().freed {
            return self.stale(way, popped.tile, "its slot was freed");
        }
        let (at, place) = self.ring.placed(way, popped.tile, id, popped.share);
        self.fetch(way, popped.tile, RingInfo::space(way, id), at, place, popped.share).await
    }

    /// TPOP and the popped tile's elements.
    pub async fn pop_tile(&mut self) -> Result<Tile, Fault> {
        let popped = self.pop().await?;
        self.read(&popped).await
    }

    /// TFREE: releases the oldest slot that this core holds. Under the headers' profile a pop
    /// from global memory has done so already; then this does nothing on A2A3 and signals a
    /// second time on A5.
    pub async fn free(&mut self) -> Result<(), Fault> {
        let (half, start, id) = (self.consuming("free")?, self.core.now(), self.core.id());
        let way = &half.way;
        let mut cursor = half.cursor.get();
        let Cursor { popped, freed, .. } = cursor;
        let Some(steps) = way.free(id, &mut cursor) else {
            return self.core.fail(Fault::NothingToFree { core: id, ring: way.name.clone(), popped });
        };
        half.cursor.set(cursor);
        transfer::run(&self.core, way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Free, way, freed, start);
        Ok(())
    }

    /// TALLOC: waits for a slot in global memory, to be filled in parts.
    pub async fn alloc(&mut self) -> Result<Slot, Fault> {
        let (half, start, id) = (self.producing("allocate")?, self.core.now(), self.core.id());
        let way = &half.way;
        self.only_global(way)?;
        let mut cursor = half.cursor.get();
        let tile = cursor.acquired;
        let steps = way.acquire(id, &mut cursor);
        half.cursor.set(cursor);
        transfer::run(&self.core, way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Alloc, way, tile, start);
        Ok(Slot { tile, mine: true })
    }

    /// TSTORE of a part of the tile into an allocated slot: `row` and `col` count from the first
    /// element of this core's part of the tile.
    pub async fn store(&mut self, slot: &Slot, row: usize, col: usize, part: &Tile) -> Result<(), Fault> {
        let (half, shape) = (self.producing("store")?, part.shape());
        let way = &half.way;
        if !slot.mine || slot.tile < half.cursor.get().published {
            return self.stale(way, slot.tile, "its slot was published");
        }
        let (at, there) = self.part(way, slot.tile, row, col, shape)?;
        let pieces = vec![Piece { space: Space::Gm, at, there, here: tight(shape), shape }];
        let steps = way.store(self.core.id(), slot.tile);
        transfer::run(&self.core, way, &steps, &mut Transfer::Out { tile: part, pieces }).await
    }

    /// TPUSH of an allocated slot: publishes it. Slots are published in the order of
    /// their allocation.
    pub async fn push_slot(&mut self, slot: Slot) -> Result<(), Fault> {
        let (half, start, id) = (self.producing("push")?, self.core.now(), self.core.id());
        let way = &half.way;
        let mut cursor = half.cursor.get();
        if !slot.mine || slot.tile != cursor.published || cursor.published == cursor.acquired {
            return self.core.fail(Fault::NothingToPublish { core: id, ring: way.name.clone() });
        }
        let steps = way.publish(id, &mut cursor);
        half.cursor.set(cursor);
        transfer::run(&self.core, way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Push, way, slot.tile, start);
        Ok(())
    }

    /// TPOP of a slot in global memory: waits until it is ready; [`Self::load`] reads it,
    /// [`Self::free`] releases it.
    pub async fn pop_slot(&mut self) -> Result<Slot, Fault> {
        let (half, start, id) = (self.consuming("pop")?, self.core.now(), self.core.id());
        let way = &half.way;
        self.only_global(way)?;
        let mut cursor = half.cursor.get();
        let tile = cursor.popped;
        let steps = way.take(id, &mut cursor);
        half.cursor.set(cursor);
        transfer::run(&self.core, way, &steps, &mut Transfer::None).await?;
        self.note(EventKind::Pop, way, tile, start);
        Ok(Slot { tile, mine: false })
    }

    /// TLOAD of a part of a popped slot; `row` and `col` as in [`Self::store`].
    pub async fn load(&mut self, slot: &Slot, row: usize, col: usize, part: Shape) -> Result<Tile, Fault> {
        let half = self.consuming("load")?;
        let way = &half.way;
        if slot.mine || slot.tile < half.cursor.get().freed {
            return self.stale(way, slot.tile, "its slot was freed");
        }
        if self.has_no_data(way) {
            return Ok(Tile::zeros(part));
        }
        let (at, place) = self.part(way, slot.tile, row, col, part)?;
        self.fetch(way, slot.tile, Space::Gm, at, place, part).await
    }

    /// Closes the ring: a producer takes back all credits, which waits until the last
    /// tile is freed.
    pub async fn close(self) -> Result<(), Fault> {
        check_block(&self.core, &self.ring)?;
        let Some(half) = &self.out else { return Ok(()) };
        let steps = half.way.close(self.core.id(), &half.cursor.get());
        transfer::run(&self.core, &half.way, &steps, &mut Transfer::None).await
    }

    fn producing(&self, what: &'static str) -> Result<Rc<Half>, Fault> {
        let hint = "the producer can: the Cube of C2V, a Vector of V2C (A5 without split: Vector 0 only)";
        self.half(&self.out, what, hint)
    }

    fn consuming(&self, what: &'static str) -> Result<Rc<Half>, Fault> {
        let hint = "the consumer can: a Vector of C2V (A5 without split: Vector 0 only), the Cube of V2C";
        self.half(&self.into, what, hint)
    }

    fn half(&self, half: &Option<Rc<Half>>, what: &'static str, hint: &'static str) -> Result<Rc<Half>, Fault> {
        check_block(&self.core, &self.ring)?;
        let ring = self.ring.spec.name.clone();
        self.core.keep(half.clone().ok_or(Fault::WrongCore { core: self.core.id(), what, ring, hint }))
    }

    fn note(&self, kind: EventKind, way: &Way, tile: u32, start: u64) {
        let (name, slot) = (way.name.as_str().into(), Some(way.slot(tile)));
        self.core.event(Event { name, tile: Some(tile), slot, start, ..self.core.blank(kind) });
    }

    /// Whether this core has no data: Vector 1 of a ring without split.
    fn has_no_data(&self, way: &Way) -> bool {
        self.core.id().lane().is_some_and(|lane| !way.data.has(lane))
    }

    /// This core's part of a whole tile.
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

    /// Refuses whole tiles where the headers have no case for them (docs/pto.md, defect 3).
    fn tile_form(&self) -> Result<(), Fault> {
        if self.ring.ways.iter().all(|way| way.ready == way.ready_waited) {
            return Ok(());
        }
        let what = "the headers move no tiles through BOTH_GM on A5, their TPUSH and TPOP lack the case; use \
                    slots (TALLOC form)";
        self.core.fail(Fault::HeaderGap { ring: self.ring.spec.name.clone(), what })
    }

    fn only_global(&self, way: &Way) -> Result<(), Fault> {
        if way.medium == Medium::Gm {
            return Ok(());
        }
        let what =
            "slots can be handled as global data only where they are in global memory (A2A3, or the GM directions)";
        self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)))
    }

    /// Address of a slot and layout of a part of it.
    fn part(&self, way: &Way, tile: u32, row: usize, col: usize, part: Shape) -> Result<(usize, ShareLayout), Fault> {
        let share = self.share(way, self.ring.spec.whole(way.flow))?;
        let inside = part.dtype == share.dtype
            && row.checked_add(part.rows).is_some_and(|end| end <= share.rows)
            && col.checked_add(part.cols).is_some_and(|end| end <= share.cols);
        if !inside {
            return self.wrong_shape(way, part, format!("a part of {share} at row {row}, column {col}"));
        }
        let (at, place) = self.ring.placed(way, tile, self.core.id(), share);
        let offset = place.offset + row * place.stride + col * part.dtype.bytes();
        Ok((at, ShareLayout { offset, ..place }))
    }

    /// A read of a slot.
    async fn fetch(
        &self,
        way: &Way,
        tile: u32,
        space: Space,
        at: usize,
        place: ShareLayout,
        shape: Shape,
    ) -> Result<Tile, Fault> {
        let mut transfer = Transfer::In { space, at, place, shape, tile: None };
        transfer::run(&self.core, way, &way.load(self.core.id(), tile), &mut transfer).await?;
        match transfer {
            Transfer::In { tile: Some(tile), .. } => Ok(tile),
            _ => Ok(Tile::zeros(shape)),
        }
    }

    /// Copies a popped tile into its local slot, overwriting the previous tile.
    fn keep_copy(&mut self, way: &Way, number: u32, tile: &Tile) -> Result<(), Fault> {
        let from = self.ring.copy_base(way, number, tile.shape());
        let to = from + tile.shape().bytes();
        self.copies.retain(|other| other.to <= from || to <= other.from);
        self.copies.push(LocalCopy { tile: number, from, to });
        let written = self.core.shared().memories.write(local_space(self.core.id()), from, tile.bytes());
        self.core.keep(written.map_err(Fault::from))
    }
}

/// Checks that a ring belongs to the core's cluster and block.
fn check_block(core: &Core, ring: &RingInfo) -> Result<(), Fault> {
    if Rc::ptr_eq(&core.shared().block, &ring.block) {
        return Ok(());
    }
    let what = "it was made by another cluster or for an earlier block; make the ring anew";
    core.fail(Fault::Usage(format!("{} cannot use `{}`: {what}", core.id(), ring.spec.name)))
}
