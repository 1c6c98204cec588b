//! Transfers: the location of a ring's tiles, and copies into and out of slots.

use super::core::Core;
use super::shared::RingInfo;
use crate::arch::Arch;
use crate::core_id::{CoreId, Lane};
use crate::events::{Event, EventKind};
use crate::fault::Fault;
use crate::memory::Space;
use crate::protocol::{Act, Medium, Profile, Step, Way};
use crate::split::ShareLayout;
use crate::tile::{Shape, Tile};
use crate::timing;

/// One rectangle of a tile to copy to a memory.
pub(super) struct Piece {
    pub(super) space: Space,
    /// Where the slot starts.
    pub(super) at: usize,
    /// The layout in the slot.
    pub(super) there: ShareLayout,
    /// The layout in the tile.
    pub(super) here: ShareLayout,
    pub(super) shape: Shape,
}

/// The data of an operation's transfer.
pub(super) enum Transfer<'a> {
    None,
    Out { tile: &'a Tile, pieces: Vec<Piece> },
    In { space: Space, at: usize, place: ShareLayout, shape: Shape, tile: Option<Tile> },
}

impl Transfer<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Out { tile, .. } => tile.shape().bytes(),
            Self::In { shape, .. } => shape.bytes(),
        }
    }
}

/// Performs an operation's steps, and moves its data between the begin and the end of its transfer.
pub(super) async fn run(core: &Core, way: &Way, steps: &[Step], transfer: &mut Transfer<'_>) -> Result<(), Fault> {
    let mut begun = 0;
    for step in steps {
        match step.act {
            Act::BeginWrite | Act::BeginRead => {
                begun = core.now();
                core.perform(step, &way.name).await?;
                core.sleep(timing::transfer(way.medium, transfer.bytes())).await;
            }
            Act::EndWrite | Act::EndRead => {
                core.keep(copy(core, transfer))?;
                core.perform(step, &way.name).await?;
                let write = step.act == Act::EndWrite;
                let (kind, pipe) =
                    if write { (EventKind::Write, way.write_pipe()) } else { (EventKind::Read, way.read_pipe()) };
                let (name, slot) = (way.name.as_str().into(), Some(way.slot(step.tile)));
                let event = Event { pipe: Some(pipe), name, tile: Some(step.tile), slot, ..core.blank(kind) };
                core.event(Event { start: begun, ..event });
            }
            _ => core.perform(step, &way.name).await?,
        }
    }
    Ok(())
}

fn copy(core: &Core, transfer: &mut Transfer<'_>) -> Result<(), Fault> {
    match transfer {
        Transfer::None => Ok(()),
        Transfer::Out { tile, pieces } => pieces.iter().try_for_each(|piece| scatter(core, tile, piece)),
        Transfer::In { space, at, place, shape, tile } => {
            *tile = Some(gather(core, *space, *at, *place, *shape)?);
            Ok(())
        }
    }
}

fn scatter(core: &Core, tile: &Tile, piece: &Piece) -> Result<(), Fault> {
    let row_bytes = piece.shape.cols * piece.shape.dtype.bytes();
    let memories = &mut core.shared().memories;
    for row in 0..piece.shape.rows {
        let from = piece.here.offset + row * piece.here.stride;
        let to = piece.at + piece.there.offset + row * piece.there.stride;
        memories.write(piece.space, to, &tile.bytes()[from..from + row_bytes])?;
    }
    Ok(())
}

/// Reads the rows of a tile from a memory.
pub(super) fn gather(core: &Core, space: Space, at: usize, place: ShareLayout, shape: Shape) -> Result<Tile, Fault> {
    let row_bytes = shape.cols * shape.dtype.bytes();
    let mut bytes = vec![0; shape.bytes()];
    let memories = &core.shared().memories;
    for (row, into) in bytes.chunks_exact_mut(row_bytes.max(1)).enumerate() {
        memories.read(space, at + place.offset + row * place.stride, into)?;
    }
    let wrong = || Fault::Usage(format!("a tile of {shape} does not have {} bytes", shape.bytes()));
    Tile::from_bytes(shape, bytes).ok_or_else(wrong)
}

/// The layout of contiguous rows.
pub(super) fn tight(shape: Shape) -> ShareLayout {
    ShareLayout { offset: 0, stride: shape.cols * shape.dtype.bytes() }
}

impl RingInfo {
    fn place_of(&self, way: &Way) -> [usize; 2] {
        self.places[way.index - self.ways[0].index]
    }

    /// Address of the slot of a tile.
    pub(super) fn slot_base(&self, way: &Way, tile: u32) -> usize {
        let slot = usize::try_from(way.slot(tile)).unwrap_or(0);
        self.place_of(way)[0] + slot * self.spec.slot_bytes
    }

    /// Address of the local copy of a tile. On A5 the headers still stride the copies by the popped
    /// tile's size (`pto-isa`, `include/pto/npu/a5/TPop.hpp`).
    pub(super) fn copy_base(&self, way: &Way, tile: u32, share: Shape) -> usize {
        let strides_by_tile = way.profile == Profile::SparseCredits && way.arch == Arch::A5;
        let stride = if strides_by_tile { share.bytes() } else { self.spec.slot_bytes };
        self.place_of(way)[1] + usize::try_from(tile % self.spec.local_slots).unwrap_or(0) * stride
    }

    /// The memory of the slots, as seen by a core.
    pub(super) fn space(way: &Way, core: CoreId) -> Space {
        match way.medium {
            Medium::Gm => Space::Gm,
            Medium::Control => Space::Control,
            Medium::L1 => Space::L1,
            Medium::Ub => local_space(core),
        }
    }

    /// Address of a slot and layout of a core's part of it.
    pub(super) fn placed(&self, way: &Way, tile: u32, core: CoreId, share: Shape) -> (usize, ShareLayout) {
        let place = match (core.lane(), way.medium) {
            // A Vector's UB has only its own share; the Cube has everything.
            (Some(lane), Medium::Gm | Medium::L1) => self.spec.split.place(share, lane),
            _ => tight(share),
        };
        (self.slot_base(way, tile), place)
    }

    /// Where a pushed tile goes.
    pub(super) fn pieces(&self, way: &Way, tile: u32, core: CoreId, share: Shape, whole: Shape) -> Vec<Piece> {
        let (at, there) = self.placed(way, tile, core, share);
        if way.medium != Medium::Ub {
            return vec![Piece { space: Self::space(way, core), at, there, here: tight(share), shape: share }];
        }
        // The Cube writes each Vector's share to that Vector's UB.
        let piece = |lane: Lane| {
            let shape = self.spec.split.share(whole, lane)?;
            let here = self.spec.split.place(shape, lane);
            Some(Piece { space: Space::Ub(lane), at, there: tight(shape), here, shape })
        };
        way.data.iter().filter_map(piece).collect()
    }
}

/// The consumer's local memory.
pub(super) fn local_space(core: CoreId) -> Space {
    core.lane().map_or(Space::L1, Space::Ub)
}
