//! Rules of shapes: operands after their TMs must fit the operation (tt-budabackend,
//! `docs/public/netlist.md`, section TMs). All counts are in tiles.

use super::Check;
use crate::code;
use crate::types::{Blocks, Dim, Granularity, Matmul, Op, OpId, OpKind, Pad, Producer, ReduceDim, Source, Tm};

/// A shape in tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tiles {
    /// Matrices.
    pub t: u64,
    /// Rows of tiles.
    pub r: u64,
    /// Columns of tiles.
    pub c: u64,
}

impl Tiles {
    /// The shape of a whole tensor.
    pub(crate) fn of(blocks: &Blocks) -> Self {
        let side = |a: u32, b: u32, c: u32| u64::from(a) * u64::from(b) * u64::from(c);
        Self {
            t: u64::from(blocks.t),
            r: side(blocks.grid.r, blocks.mblock.r, blocks.ublock.r),
            c: side(blocks.grid.c, blocks.mblock.c, blocks.ublock.c),
        }
    }

    fn text(self) -> String {
        format!("{} x {} x {}", self.t, self.r, self.c)
    }

    /// The shape after a TM; `None` if it does not divide evenly or gets too large.
    fn after(self, tm: Tm) -> Option<Self> {
        let Self { t, r, c } = self;
        let cut = |side: u64, n: u32| side.is_multiple_of(u64::from(n)).then(|| side / u64::from(n));
        let all = |n: u32| if n == 0 { t } else { u64::from(n) };
        let tiles = match tm {
            Tm::Broadcast(Dim::R, n) => Self { r: r * u64::from(n), ..self },
            Tm::Broadcast(Dim::C, n) => Self { c: c * u64::from(n), ..self },
            Tm::Broadcast(Dim::Z, n) => Self { t: t * u64::from(n), ..self },
            Tm::HSlice(n) => Self { t: t * u64::from(n), r, c: cut(c, n)? },
            Tm::VSlice(n) => Self { t: t * u64::from(n), r: cut(r, n)?, c },
            Tm::HStack(n) => Self { t: t.is_multiple_of(all(n)).then(|| t / all(n))?, r, c: c * all(n) },
            Tm::VStack(n) => Self { t: t.is_multiple_of(all(n)).then(|| t / all(n))?, r: r * all(n), c },
            Tm::Transpose => Self { t, r: c, c: r },
            Tm::TileBroadcast(_) => self,
            Tm::Pad(pad) => self.padded(&pad),
        };
        // Keeps products within 64 bits.
        ([tiles.t, tiles.r, tiles.c].into_iter().all(|side| side <= 1 << 40)).then_some(tiles)
    }

    fn padded(self, pad: &Pad) -> Self {
        Self { t: self.t, r: self.r + u64::from(pad.rt), c: self.c + u64::from(pad.ct) }
    }

    fn unpadded(self, pad: &Pad) -> Option<Self> {
        let r = self.r.checked_sub(u64::from(pad.rt)).filter(|r| *r > 0)?;
        let c = self.c.checked_sub(u64::from(pad.ct)).filter(|c| *c > 0)?;
        Some(Self { t: self.t, r, c })
    }
}

/// Checks the shapes of all operations and of the queues that they fill.
pub(crate) fn check(check: &mut Check<'_, '_>) {
    for (id, op) in check.ops() {
        let inputs: Vec<_> = (0..op.inputs.len()).map(|index| input(check, id, op, index)).collect();
        operation(check, id, op, &inputs);
    }
    for (id, queue) in check.queues() {
        let Producer::Op(op) = queue.producer else { continue };
        let Some(op) = check.op(op) else { continue };
        let mut shape = Some(Tiles::of(&op.blocks));
        for tm in &queue.tms {
            shape = shape.and_then(|shape| shape.after(*tm));
        }
        let Some(shape) = shape else {
            let message = format!("the TMs of `{}` do not fit {}", queue.name, Tiles::of(&op.blocks).text());
            check.error(code::TM_DIVIDE, check.queue_at(id, "input_tms"), message, "");
            continue;
        };
        let own = Tiles::of(&queue.blocks);
        if queue.blocks.tile != op.blocks.tile && !op.untilize_output {
            // Reported by other rules.
            continue;
        }
        let rows = |tiles: Tiles, blocks: &Blocks| {
            (tiles.t, tiles.r * u64::from(blocks.tile.r), tiles.c * u64::from(blocks.tile.c))
        };
        if rows(own, &queue.blocks) != rows(shape, &op.blocks) {
            let message = format!(
                "an entry of `{}` has {} tiles (t x rows x columns), the result of `{}` {}",
                queue.name,
                own.text(),
                op.name,
                shape.text()
            );
            let help = "grid_size, t, mblock and ublock must come to the same";
            check.error(code::PRODUCER_SHAPE, check.src.queues[id.0].at, message, help);
        }
    }
}

/// Returns the shape of an input as the operation sees it; `None` if it is not known or an error
/// was reported.
fn input(check: &mut Check<'_, '_>, id: OpId, op: &Op, index: usize) -> Option<Tiles> {
    let input = &op.inputs[index];
    let blocks = match input.source {
        Source::Queue(queue) => check.queue(queue)?.blocks,
        Source::Op(op) => check.op(op)?.blocks,
    };
    let mut tiles = Tiles::of(&blocks);
    if let Some(unpad) = &input.unpad {
        let Some(less) = tiles.unpadded(unpad) else {
            let message = format!("input {index} of `{}` has {} tiles, less than is unpadded", op.name, tiles.text());
            let at = check.op_at(id, &format!("input_{index}_unpad"));
            check.error(code::TM_DIVIDE, at, message, "");
            return None;
        };
        tiles = less;
    }
    for tm in &input.tms {
        let Some(next) = tiles.after(*tm) else {
            let message = format!(
                "a TM of input {index} of `{}` cannot be applied to {} tiles (t x rows x columns)",
                op.name,
                tiles.text()
            );
            let at = check.op_at(id, &format!("input_{index}_tms"));
            check.error(code::TM_DIVIDE, at, message, "slices and stacks must divide evenly");
            return None;
        };
        tiles = next;
    }
    Some(input.pad.as_ref().map_or(tiles, |pad| tiles.padded(pad)))
}

fn operation(check: &mut Check<'_, '_>, id: OpId, op: &Op, inputs: &[Option<Tiles>]) {
    let out = Tiles::of(&op.blocks);
    match &op.kind {
        OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Quant { .. } | OpKind::EthernetDatacopy => {
            for (index, tiles) in inputs.iter().enumerate() {
                expect(check, id, op, index, *tiles, out, "");
            }
        }
        OpKind::Matmul(matmul) if matmul.identity.is_none() => product(check, id, op, matmul, inputs),
        OpKind::Reduce { dim, k, z } => reduce(check, id, op, (*dim, *k, *z), inputs),
        OpKind::Splice { granularity, pieces } => {
            for (index, (piece, tiles)) in pieces.iter().zip(inputs).enumerate() {
                let Some(tiles) = tiles else { continue };
                let end = u64::from(piece.index) + u64::from(piece.length);
                if *granularity == Granularity::T && end > tiles.t {
                    let message = format!(
                        "the piece of input {index} of `{}` ends at {end}, but it has {} matrices",
                        op.name, tiles.t
                    );
                    check.error(code::SPLICE, check.attribute_at(id, &format!("input{index}")), message, "");
                }
            }
        }
        _ => {}
    }
}

/// Whether an input has tiles of the operation's size; others are counted in elements.
fn has_same_tiles(check: &Check<'_, '_>, op: &Op, index: usize) -> bool {
    let tile = match op.inputs[index].source {
        Source::Queue(queue) => check.queue(queue).map(|queue| queue.blocks.tile),
        Source::Op(op) => check.op(op).map(|op| op.blocks.tile),
    };
    tile == Some(op.blocks.tile)
}

/// Reports an input whose shape is not the expected one.
fn expect(check: &mut Check<'_, '_>, id: OpId, op: &Op, index: usize, found: Option<Tiles>, wanted: Tiles, help: &str) {
    let Some(found) = found.filter(|found| *found != wanted) else { return };
    if !has_same_tiles(check, op, index) {
        return;
    }
    let message = format!(
        "input {index} of `{}` has {} tiles (t x rows x columns) after its TMs, but must have {}",
        op.name,
        found.text(),
        wanted.text()
    );
    let at = check.item_at(id, "inputs", index);
    let finding = crate::diagnostic::Diagnostic::new(code::INPUT_SHAPE, at, message);
    let tms = check.op_at(id, &format!("input_{index}_tms"));
    let own = check.src.ops[id.graph.0][id.op].at;
    let finding = finding.context((tms != own).then_some(tms), "its TMs");
    check.sink.push(if help.is_empty() { finding } else { finding.help(help) });
}

/// Reports an `m_k` that does not fit the tiles that all inputs have along the dimension over
/// which it counts.
fn wrong_m_k(check: &mut Check<'_, '_>, id: OpId, op: &Op, (m_k, u_kt): (u32, u32), tiles: u64) {
    let product = u64::from(m_k) * u64::from(u_kt);
    let message = format!(
        "m_k {m_k} times u_kt {u_kt} of `{}` is {product}, but its inputs have {tiles} tiles in that direction",
        op.name
    );
    let help = match tiles.checked_rem(u_kt.into()) {
        Some(0) => format!("write m_k: {}", tiles / u64::from(u_kt)),
        _ => format!("m_k * u_kt must be {tiles}"),
    };
    check.error(code::INPUT_SHAPE, check.attribute_at(id, "m_k"), message, &help);
}

/// What to say of an input whose size follows from `m_k`.
fn by_m_k((m_k, u_kt): (u32, u32)) -> String {
    format!("m_k {m_k} times u_kt {u_kt} is {}", u64::from(m_k) * u64::from(u_kt))
}

fn product(check: &mut Check<'_, '_>, id: OpId, op: &Op, matmul: &Matmul, inputs: &[Option<Tiles>]) {
    let out = Tiles::of(&op.blocks);
    let counts = (matmul.m_k, matmul.u_kt);
    let mut k = u64::from(matmul.m_k) * u64::from(matmul.u_kt);
    let of = |index: usize| inputs.get(index).copied().flatten();
    if let (Some(left), Some(right)) = (of(0), of(1))
        && left.c == right.r
        && left.c != k
        && (0..2).all(|index| has_same_tiles(check, op, index))
    {
        wrong_m_k(check, id, op, counts, left.c);
        k = left.c;
    }
    let t = match matmul.accumulate {
        // An accumulation takes its number of matrices from the inputs.
        Some(_) => of(0).map_or(out.t, |tiles| tiles.t),
        None => out.t,
    };
    let help = |wrong: bool| if wrong { by_m_k(counts) } else { String::new() };
    let (left, right) = (of(0).is_some_and(|tiles| tiles.c != k), of(1).is_some_and(|tiles| tiles.r != k));
    expect(check, id, op, 0, of(0), Tiles { t, r: out.r, c: k }, &help(left));
    expect(check, id, op, 1, of(1), Tiles { t, r: k, c: out.c }, &help(right));
    if matmul.bias {
        expect(check, id, op, 2, of(2), out, "");
    }
}

fn reduce(
    check: &mut Check<'_, '_>,
    id: OpId,
    op: &Op,
    (dim, k, z): (ReduceDim, Option<(u32, u32)>, u32),
    inputs: &[Option<Tiles>],
) {
    let Some(found) = inputs.first().copied().flatten() else { return };
    let out = Tiles::of(&op.blocks);
    let along = match dim {
        ReduceDim::R => Some(found.r),
        ReduceDim::C => Some(found.c),
        ReduceDim::Rc | ReduceDim::Z => None,
    };
    let counts = k.filter(|(m_k, u_kt)| along.is_some_and(|along| along != u64::from(*m_k) * u64::from(*u_kt)));
    let k = k.map(|(m_k, u_kt)| u64::from(m_k) * u64::from(u_kt));
    if let (Some(counts), Some(along)) = (counts, along)
        && has_same_tiles(check, op, 0)
    {
        wrong_m_k(check, id, op, counts, along);
        return;
    }
    let (wanted, rest) = match dim {
        ReduceDim::R => (Tiles { r: k.unwrap_or(found.r), ..out }, out.r == 1),
        ReduceDim::C => (Tiles { c: k.unwrap_or(found.c), ..out }, out.c == 1),
        ReduceDim::Rc => (Tiles { t: out.t, ..found }, out.r == 1 && out.c == 1),
        ReduceDim::Z => {
            let groups = if z == 0 { found.t } else { out.t * u64::from(z) };
            (Tiles { t: groups, ..out }, true)
        }
    };
    expect(check, id, op, 0, Some(found), wanted, "");
    if !rest {
        let message =
            format!("`{}` reduces to one row or column of tiles, but its blocks make {}", op.name, out.text());
        check.error(
            code::INPUT_SHAPE,
            check.op_at(id, "mblock"),
            message,
            "grid, mblock and ublock have 1 in that direction",
        );
    }
}
