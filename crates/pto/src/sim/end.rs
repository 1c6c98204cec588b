//! A core's end of a ring: TPUSH, TPOP, TFREE, and the global-data form TALLOC, TSTORE, TPUSH, TPOP, TLOAD, TFREE.

use super::core::Core;
use super::shared::RingInfo;
use crate::core_id::{CoreId, Lane, Pipe};
use crate::events::{Event, EventKind};
use crate::fault::Fault;
use crate::memory::Space;
use crate::protocol::{Cursor, Flow, Medium, Profile, Step, Way};
use crate::split::Place;
use crate::tile::{Shape, Tile};
use crate::timing;
use std::rc::Rc;

/// A popped tile: bound to its slot, or copied into one of the consumer's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Popped {
    tile: u32,
    share: Shape,
    whole: Shape,
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
            core.perform(&way.open(id), &way.name).await?;
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
        let (way, start) = (self.producing("push")?, self.core.now());
        self.check_shape(&way, tile.shape(), whole)?;
        if self.cursor_out().acquired != self.cursor_out().published {
            let what = "a tile cannot be pushed while an allocated slot is not; publish the slot first";
            return self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)));
        }
        let steps = way.acquire(self.core.id(), self.cursor_out());
        let number = self.cursor_out().acquired - 1;
        self.core.perform(&steps, &way.name).await?;
        self.write(&way, number, tile, self.write_places(&way, number, tile.shape(), whole)).await?;
        let steps = way.publish(self.core.id(), self.cursor_out());
        self.core.perform(&steps, &way.name).await?;
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
        let (way, start) = (self.consuming("pop")?, self.core.now());
        if self.ring.ways.iter().any(|way| way.ready != way.ready_waited) {
            let what = "the headers' TPOP into a tile has no case for BOTH_GM on A5; it returns nothing. Use slots (TALLOC form)";
            return self.core.fail(Fault::HeaderGap { ring: self.ring.spec.name.clone(), what });
        }
        let share = self.share(&way, whole)?;
        let steps = way.take(self.core.id(), self.cursor_in());
        let number = self.cursor_in().popped - 1;
        self.core.perform(&steps, &way.name).await?;
        if !way.medium.zero_copy() {
            self.copy_in(&way, number, share, whole).await?;
        }
        if way.pop_frees() {
            let steps = way.release(self.core.id(), self.cursor_in());
            self.core.perform(&steps, &way.name).await?;
        }
        self.note(EventKind::Pop, &way, number, start);
        Ok(Popped { tile: number, share, whole })
    }

    /// The popped tile's elements. Vector 1 of a ring without split gets zeros.
    pub async fn read(&mut self, popped: &Popped) -> Result<Tile, Fault> {
        let way = self.consuming("read")?;
        let stale = |why| Fault::Stale { core: self.core.id(), ring: way.name.clone(), tile: popped.tile, why };
        if self.has_no_data(&way) {
            return Ok(Tile::zeros(popped.share));
        }
        let tight = Place { offset: 0, stride: popped.share.cols * popped.share.dtype.bytes() };
        if !way.medium.zero_copy() {
            let Some(copy) = self.copies.iter().find(|copy| copy.tile == popped.tile) else {
                return self.core.fail(stale("a later pop has overwritten its copy; the ring needs more local slots"));
            };
            return self.gather(self.local_space(), copy.from, tight, popped.share);
        }
        if popped.tile < self.into.map_or(0, |(_, cursor)| cursor.freed) {
            return self.core.fail(stale("its slot was freed"));
        }
        let at = self.slot_base(&way, popped.tile);
        self.fetch(&way, popped.tile, self.consumer_space(&way), at, tight, popped.share).await
    }

    /// TPOP and the popped tile's elements.
    pub async fn pop_tile(&mut self) -> Result<Tile, Fault> {
        let popped = self.pop().await?;
        self.read(&popped).await
    }

    /// TFREE: gives back the oldest slot that this core holds. Under the headers' profile a pop from global memory has
    /// done so already; then this does nothing on A2A3, and signals a second time on A5.
    pub async fn free(&mut self) -> Result<(), Fault> {
        let (way, start) = (self.consuming("free")?, self.core.now());
        let cursor = *self.cursor_in();
        let steps = if cursor.freed < cursor.popped {
            way.release(self.core.id(), self.cursor_in())
        } else if way.pop_frees() && cursor.popped > 0 {
            way.notify_again(self.core.id(), cursor.popped - 1)
        } else {
            let (core, ring) = (self.core.id(), way.name.clone());
            return self.core.fail(Fault::NothingToFree { core, ring, popped: cursor.popped });
        };
        self.core.perform(&steps, &way.name).await?;
        self.note(EventKind::Free, &way, cursor.freed, start);
        Ok(())
    }

    /// TALLOC: waits for a slot in global memory, to be filled in parts.
    pub async fn alloc(&mut self) -> Result<Slot, Fault> {
        let (way, start) = (self.producing("allocate")?, self.core.now());
        self.only_global(&way)?;
        let steps = way.acquire(self.core.id(), self.cursor_out());
        let tile = self.cursor_out().acquired - 1;
        self.core.perform(&steps, &way.name).await?;
        self.note(EventKind::Alloc, &way, tile, start);
        Ok(Slot { tile, mine: true })
    }

    /// TSTORE of a part of the tile into an allocated slot: `row` and `col` count from the first element of what this core
    /// has of the tile.
    pub async fn store(&mut self, slot: &Slot, row: usize, col: usize, part: &Tile) -> Result<(), Fault> {
        let way = self.producing("store")?;
        if !slot.mine || slot.tile < self.cursor_out().published {
            let why = "its slot was published";
            let (core, ring) = (self.core.id(), way.name.clone());
            return self.core.fail(Fault::Stale { core, ring, tile: slot.tile, why });
        }
        let at = self.part_place(&way, slot.tile, row, col, part.shape())?;
        let space = Space::Gm;
        self.write(
            &way,
            slot.tile,
            part,
            vec![(space, at.0, at.1, Place { offset: 0, ..tight(part.shape()) }, part.shape())],
        )
        .await
    }

    /// TPUSH of an allocated slot: says that it is ready. Slots go in the order in which they were allocated.
    pub async fn push_slot(&mut self, slot: Slot) -> Result<(), Fault> {
        let (way, start) = (self.producing("push")?, self.core.now());
        let cursor = *self.cursor_out();
        if !slot.mine || slot.tile != cursor.published || cursor.published == cursor.acquired {
            return self.core.fail(Fault::NothingToPublish { core: self.core.id(), ring: way.name.clone() });
        }
        let steps = way.publish(self.core.id(), self.cursor_out());
        self.core.perform(&steps, &way.name).await?;
        self.note(EventKind::Push, &way, slot.tile, start);
        Ok(())
    }

    /// TPOP of a slot in global memory: waits until it is ready; [`Self::load`] reads it, [`Self::free`] gives it back.
    pub async fn pop_slot(&mut self) -> Result<Slot, Fault> {
        let (way, start) = (self.consuming("pop")?, self.core.now());
        self.only_global(&way)?;
        let steps = way.take(self.core.id(), self.cursor_in());
        let tile = self.cursor_in().popped - 1;
        self.core.perform(&steps, &way.name).await?;
        self.note(EventKind::Pop, &way, tile, start);
        Ok(Slot { tile, mine: false })
    }

    /// TLOAD of a part of a popped slot; `row` and `col` as in [`Self::store`].
    pub async fn load(&mut self, slot: &Slot, row: usize, col: usize, part: Shape) -> Result<Tile, Fault> {
        let way = self.consuming("load")?;
        if slot.mine || slot.tile < self.cursor_in().freed {
            let (core, ring) = (self.core.id(), way.name.clone());
            return self.core.fail(Fault::Stale { core, ring, tile: slot.tile, why: "its slot was freed" });
        }
        if self.has_no_data(&way) {
            return Ok(Tile::zeros(part));
        }
        let (at, place) = self.part_place(&way, slot.tile, row, col, part)?;
        self.fetch(&way, slot.tile, Space::Gm, at, place, part).await
    }

    /// The end of the ring's life: a producer takes back all credits, which waits until the last tile is freed.
    pub async fn close(self) -> Result<(), Fault> {
        if let Some((way, cursor)) = &self.out {
            let way = &self.ring.ways[*way];
            self.core.perform(&way.close(self.core.id(), cursor), &way.name).await?;
        }
        Ok(())
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
        let share = self.core.id().lane().map_or(Some(whole), |lane| self.ring.spec.split.share(whole, lane));
        let fits = share.filter(|_| whole.bytes() <= self.ring.spec.slot_bytes);
        let expected = || format!("at most {} bytes, split {:?}", self.ring.spec.slot_bytes, self.ring.spec.split);
        let wrong =
            || Fault::WrongShape { core: self.core.id(), ring: way.name.clone(), got: whole, expected: expected() };
        self.core.keep(fits.ok_or_else(wrong))
    }

    fn check_shape(&self, way: &Way, got: Shape, whole: Shape) -> Result<(), Fault> {
        let share = self.share(way, whole)?;
        if got == share {
            return Ok(());
        }
        let (core, ring, expected) = (self.core.id(), way.name.clone(), share.to_string());
        self.core.fail(Fault::WrongShape { core, ring, got, expected })
    }

    fn only_global(&self, way: &Way) -> Result<(), Fault> {
        if way.medium == Medium::Gm {
            return Ok(());
        }
        let what =
            "slots can be handled as global data only where they are in global memory (A2A3, or the GM directions)";
        self.core.fail(Fault::Usage(format!("`{}`: {what}", way.name)))
    }

    fn slot_base(&self, way: &Way, tile: u32) -> usize {
        let slot = usize::try_from(way.slot(tile)).unwrap_or(0);
        self.ring.places[way.index - self.ring.ways[0].index][0] + slot * self.ring.spec.slot_bytes
    }

    fn local_space(&self) -> Space {
        self.core.id().lane().map_or(Space::L1, Space::Ub)
    }

    fn consumer_space(&self, way: &Way) -> Space {
        match way.medium {
            Medium::Gm => Space::Gm,
            Medium::Control => Space::Control,
            Medium::L1 => Space::L1,
            Medium::Ub => self.local_space(),
        }
    }

    /// Where a pushed tile goes: memory, address, layout there, layout in the tile, shape.
    fn write_places(
        &self,
        way: &Way,
        tile: u32,
        shape: Shape,
        whole: Shape,
    ) -> Vec<(Space, usize, Place, Place, Shape)> {
        let (at, split) = (self.slot_base(way, tile), self.ring.spec.split);
        match (self.core.id().lane(), way.medium) {
            // The Cube writes each Vector's share to that Vector's UB.
            (None, Medium::Ub) => {
                let share = |lane: Lane| Some((lane, split.share(whole, lane)?));
                let shares = way.data.iter().filter_map(share);
                shares
                    .map(|(lane, share)| (Space::Ub(lane), at, tight(share), split.place(share, lane), share))
                    .collect()
            }
            (None, _) => vec![(self.consumer_space(way), at, tight(shape), tight(shape), shape)],
            (Some(lane), _) => vec![(self.consumer_space(way), at, split.place(shape, lane), tight(shape), shape)],
        }
    }

    /// Where a part of a slot lies: address of the slot, layout of the part.
    fn part_place(&self, way: &Way, tile: u32, row: usize, col: usize, part: Shape) -> Result<(usize, Place), Fault> {
        let whole = self.ring.spec.whole(way.flow);
        let share = self.share(way, whole)?;
        let inside = part.dtype == share.dtype
            && row.checked_add(part.rows).is_some_and(|end| end <= share.rows)
            && col.checked_add(part.cols).is_some_and(|end| end <= share.cols);
        if !inside {
            let expected = format!("a part of {share} at row {row}, column {col}");
            let (core, ring) = (self.core.id(), way.name.clone());
            return self.core.fail(Fault::WrongShape { core, ring, got: part, expected });
        }
        let place = self.core.id().lane().map_or(tight(share), |lane| self.ring.spec.split.place(share, lane));
        let offset = place.offset + row * place.stride + col * part.dtype.bytes();
        Ok((self.slot_base(way, tile), Place { offset, ..place }))
    }

    /// The transfer of a push or store.
    async fn write(
        &mut self,
        way: &Way,
        number: u32,
        tile: &Tile,
        places: Vec<(Space, usize, Place, Place, Shape)>,
    ) -> Result<(), Fault> {
        let steps = way.write(self.core.id(), number);
        let [begin, end] = steps.as_slice() else { return Ok(()) };
        let start = self.core.now();
        self.core.perform(&[*begin], &way.name).await?;
        self.core.sleep(timing::transfer(way.medium, tile.shape().bytes())).await;
        for (space, at, there, here, shape) in places {
            let row_bytes = shape.cols * shape.dtype.bytes();
            for row in 0..shape.rows {
                let from = here.offset + row * here.stride;
                let result = self.core.shared().memories.write(
                    space,
                    at + there.offset + row * there.stride,
                    &tile.bytes()[from..from + row_bytes],
                );
                self.core.keep(result.map_err(Fault::from))?;
            }
        }
        self.core.perform(&[*end], &way.name).await?;
        self.transferred(EventKind::Write, way, number, way.write_pipe(), start);
        Ok(())
    }

    /// A read of a slot.
    async fn fetch(
        &mut self,
        way: &Way,
        number: u32,
        space: Space,
        at: usize,
        place: Place,
        shape: Shape,
    ) -> Result<Tile, Fault> {
        let steps: Vec<Step> = way.read(self.core.id(), number);
        let [begin, end] = steps.as_slice() else { return Ok(Tile::zeros(shape)) };
        let start = self.core.now();
        self.core.perform(&[*begin], &way.name).await?;
        self.core.sleep(timing::transfer(way.medium, shape.bytes())).await;
        let tile = self.gather(space, at, place, shape)?;
        self.core.perform(&[*end], &way.name).await?;
        self.transferred(EventKind::Read, way, number, way.read_pipe(), start);
        Ok(tile)
    }

    fn transferred(&self, kind: EventKind, way: &Way, tile: u32, pipe: Pipe, start: u64) {
        let (name, slot) = (way.name.as_str().into(), Some(way.slot(tile)));
        self.core.event(Event { pipe: Some(pipe), name, tile: Some(tile), slot, start, ..self.core.blank(kind) });
    }

    /// The copy of a pop from global memory into the consumer's own slot.
    async fn copy_in(&mut self, way: &Way, number: u32, share: Shape, whole: Shape) -> Result<(), Fault> {
        if self.has_no_data(way) {
            return Ok(());
        }
        let place = match (way.flow, self.core.id().lane()) {
            (Flow::C2V, Some(lane)) => self.ring.spec.split.place(share, lane),
            _ => tight(whole),
        };
        let at = self.slot_base(way, number);
        let tile = self.fetch(way, number, Space::Gm, at, place, share).await?;
        let spec = &self.ring.spec;
        // Facts section 4: on A5 the headers still stride the copies by the popped tile's size.
        let strides_by_tile = way.profile == Profile::SparseCredits && way.arch == crate::arch::Arch::A5;
        let stride = if strides_by_tile { share.bytes() } else { spec.slot_bytes };
        let copy = usize::try_from(number % spec.local_slots).unwrap_or(0);
        let from = self.ring.places[way.index - self.ring.ways[0].index][1] + copy * stride;
        let to = from + share.bytes();
        self.copies.retain(|other| other.to <= from || to <= other.from);
        self.copies.push(LocalCopy { tile: number, from, to });
        let result = self.core.shared().memories.write(self.local_space(), from, tile.bytes());
        self.core.keep(result.map_err(Fault::from))
    }

    /// The rows of a tile from a memory.
    fn gather(&self, space: Space, at: usize, place: Place, shape: Shape) -> Result<Tile, Fault> {
        let row_bytes = shape.cols * shape.dtype.bytes();
        let mut bytes = vec![0; shape.bytes()];
        for (row, into) in bytes.chunks_exact_mut(row_bytes.max(1)).enumerate() {
            let result = self.core.shared().memories.read(space, at + place.offset + row * place.stride, into);
            self.core.keep(result.map_err(Fault::from))?;
        }
        let wrong = || Fault::Usage(format!("a tile of {shape} does not have {} bytes", shape.bytes()));
        Tile::from_bytes(shape, bytes).ok_or_else(wrong)
    }
}

fn tight(shape: Shape) -> Place {
    Place { offset: 0, stride: shape.cols * shape.dtype.bytes() }
}
