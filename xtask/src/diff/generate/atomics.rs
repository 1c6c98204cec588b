//! Atomics of several tiles on the same words of one tile, at the same time, and of several cores
//! of that tile on one word.
//!
//! Shared words get only commutative atomics (increments of one width per word; additions, or
//! exclusive ors, by Zaamo). Each tile also has a word of its own for any atomic, where the old
//! values are compared.

use tilework_abi::tensix::Processor;
use tilework_riscv::Op as Rv;

use super::super::rng::Rng;
use super::super::script::Op;
use super::niu::{self, Action, Request};
use super::noc::say_done;
use super::{POSTED_RETURNS, RETURN_BYTES, RETURNS, code, fill, hold, kept, look, release, tiles, wait};
use crate::asm::Asm;

/// Shared words of the home tile.
const SHARED: u32 = 0x3_0000;
const SHARED_WORDS: u32 = 4;
/// Own words of the tiles, on the home tile.
const OWN: u32 = 0x3_1000;
/// Words of the home tile's own cores.
const LOCAL: u32 = 0x3_2000;
/// Old values that depend on the order.
const IGNORED: u32 = 0x3_4000;

/// One step of one tile.
struct Step {
    tile: usize,
    request: Request,
}

/// Random atomics.
pub(crate) struct Case {
    /// The home tile and the senders; the home tile may be among these.
    home: (u8, u8),
    tiles: Vec<(u8, u8)>,
    steps: Vec<Step>,
    /// Additions of the home tile's TRISCs to `LOCAL`, and exclusive ors to the next word.
    local: Vec<u32>,
    data: Vec<u8>,
    /// Distance of two words of the same kind.
    stride: u32,
}

impl Case {
    /// Two to five tiles with up to 24 requests in all.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let count = rng.within(2..6) as usize;
        let tiles = tiles(rng, count);
        let home = tiles[0];
        let rare = rng.one_in(4);
        // With 20, the words are at every offset within 16 bytes.
        let stride = if rare { 20 } else { 16 };
        let widths: Vec<u32> = (0..SHARED_WORDS).map(|_| if rare { rng.within(0..32) } else { 31 }).collect();
        let steps = (0..rng.within(2..25))
            .map(|index| {
                let tile = rng.within(0..count as u32) as usize;
                let action = if rng.one_in(2) {
                    let word = rng.within(0..SHARED_WORDS);
                    let on = SHARED + stride * word;
                    let op = niu::increment(widths[word as usize], on);
                    Action::Atomic { on: (home, on), op, data: rng.edge(), back: IGNORED + 16 * index }
                } else {
                    let on = OWN + stride * tile as u32;
                    let (op, data) = niu::atomic(rng, on, rare);
                    Action::Atomic { on: (home, on), op, data, back: RETURNS + 16 * index }
                };
                Step { tile, request: Request::new(rng, action) }
            })
            .collect();
        let local = (0..rng.within(1..6)).map(|_| rng.word()).collect();
        Self { home, tiles, steps, local, data: rng.bytes(0x200), stride }
    }

    /// How many requests.
    pub(crate) fn parts(&self) -> usize {
        self.steps.len()
    }

    fn sending(&self, tile: usize, keep: &[bool]) -> Asm {
        let mut asm = Asm::default();
        for step in kept(&self.steps, keep).filter(|step| step.tile == tile) {
            step.request.emit(&mut asm, self.tiles[tile]);
        }
        asm.delay(8, 4000);
        say_done(&mut asm, Processor::Brisc);
        asm
    }

    /// A TRISC of the home tile: every value added to one word and mixed into the next.
    fn adding(&self, core: Processor) -> Asm {
        let mut asm = Asm::default();
        asm.li(1, LOCAL);
        asm.addi(2, 1, 4);
        for (i, &value) in (0..).zip(&self.local) {
            asm.li(3, value.rotate_left(core as u32 * 7 + i));
            asm.insn(Rv::AmoAdd, 0, 1, 3, 0);
            asm.insn(Rv::AmoXor, 0, 2, 3, 0);
        }
        say_done(&mut asm, core);
        asm
    }

    /// Loads all programs, runs them at the same time, and reads every word back.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        let triscs = [Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
        let mut ops = Vec::new();
        for (i, &tile) in self.tiles.iter().enumerate() {
            ops.extend(hold(tile));
            ops.push(fill(tile, RETURNS, vec![0; 0x1400]));
            ops.push(fill(tile, code(Processor::Brisc), self.sending(i, keep).bytes()));
        }
        for base in [SHARED, OWN, LOCAL] {
            ops.push(fill(self.home, base, self.data.clone()));
        }
        for core in triscs {
            ops.push(fill(self.home, code(core), self.adding(core).bytes()));
        }
        for &tile in &self.tiles {
            let [t0, t1, t2] = triscs;
            let all = [Processor::Brisc, t0, t1, t2];
            ops.push(release(tile, if tile == self.home { &all } else { &all[..1] }));
        }
        ops.extend(self.tiles.iter().map(|&tile| wait(tile, Processor::Brisc)));
        ops.extend(triscs.map(|core| wait(self.home, core)));
        ops.push(Op::Clock(20_000));
        ops.extend((0..SHARED_WORDS).map(|word| look(self.home, SHARED + self.stride * word, 4)));
        ops.extend((0..self.tiles.len() as u32).map(|tile| look(self.home, OWN + self.stride * tile, 4)));
        ops.extend([look(self.home, LOCAL, 4), look(self.home, LOCAL + 4, 4)]);
        ops.extend([SHARED, OWN, LOCAL].map(|base| look(self.home, base, 0x200)));
        for &tile in &self.tiles {
            ops.push(look(tile, RETURNS, RETURN_BYTES));
            ops.push(look(tile, POSTED_RETURNS, RETURN_BYTES));
        }
        ops
    }

    /// The kept requests, tile by tile.
    pub(crate) fn listing(&self, keep: &[bool]) -> Vec<String> {
        let mut out = vec![format!("home tile {:?}", self.home)];
        out.extend(kept(&self.steps, keep).map(|step| format!("tile {:?}: {}", self.tiles[step.tile], step.request)));
        out
    }
}
