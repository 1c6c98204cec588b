//! NoC requests of one core to other tiles and DRAM, one after the other, each awaited, with the
//! changed counters.

use tilework_abi::stream;
use tilework_abi::tensix::Processor;

use super::super::rng::Rng;
use super::super::script::Op;
use super::niu::{self, Action, Request};
use super::{
    DONE_VALUE, POSTED_RETURNS, RETURN_BYTES, RETURNS, code, done, dram, fill, hold, kept, look, release, tiles, wait,
};
use crate::asm::Asm;

/// The zone of L1 (and of DRAM) that the requests read and write.
const ZONE: u32 = 0x4_0000;
const ZONE_BYTES: u32 = 0x8000;
/// Where counters are stored: before the requests, and their changes.
const BEFORE: u32 = 0x1_E000;
const RESULT: u32 = 0x1_E400;

/// Random requests of one core.
pub(crate) struct Case {
    sender: (u8, u8),
    second: (u8, u8),
    third: (u8, u8),
    bank: (u8, u8),
    core: Processor,
    requests: Vec<Request>,
    /// Initial data of the zones of sender, second tile, third tile and bank.
    data: [Vec<u8>; 4],
}

impl Case {
    /// Up to 16 requests.
    pub(crate) fn new(rng: &mut Rng) -> Self {
        let tiles = tiles(rng, 3);
        let mut case = Self {
            sender: tiles[0],
            second: tiles[1],
            third: tiles[2],
            bank: dram(rng),
            core: rng.pick(&[Processor::Brisc, Processor::Ncrisc]),
            requests: Vec::new(),
            data: std::array::from_fn(|_| rng.bytes(ZONE_BYTES as usize)),
        };
        // A library without one of the rarer requests must still run most cases to their end.
        let rare = rng.one_in(4);
        for i in 0..rng.within(1..17) {
            let action = case.action(rng, i, rare);
            case.requests.push(Request::new(rng, action));
        }
        case
    }

    fn action(&self, rng: &mut Rng, index: u32, rare: bool) -> Action {
        let other = rng.pick(&[self.second, self.second, self.third, self.bank, self.sender]);
        let tile = if other == self.bank { self.second } else { other };
        let len = match rng.within(0..3) {
            0 => rng.within(1..65),
            1 => 64 * rng.within(1..9),
            _ => rng.within(1..0x2000),
        };
        // Both ends have the same offset within 64 bytes, which satisfies every alignment rule of
        // the chip's memories (NoC/README.md).
        let align = rng.within(0..64);
        // Source and destination are in different halves, because a tile may send to itself: the
        // result of an overlapping copy depends on how it is split into packets.
        let mut at = |half| ZONE + half * ZONE_BYTES / 2 + 64 * rng.within(0..(ZONE_BYTES / 2 - 0x2040) / 64) + align;
        let (from, to) = (at(0), at(1));
        match rng.within(0..12) {
            0..=2 => Action::Read { from: (other, from), to, len },
            3..=5 => Action::Write { from, to: (other, to), len },
            6 if rare => Action::WriteMasked { from: from & !63, to: (tile, to & !63), mask: rng.word() },
            6..=8 => self.multicast(rng, from, to, len),
            9 => {
                let reg = rng.pick(&[stream::REMOTE_DEST_BUF_START, stream::REMOTE_DEST_BUF_SIZE]);
                Action::Inline { to: (tile, stream::reg_addr(rng.within(0..8), reg)), data: rng.word() & 0xFFFF }
            }
            _ => {
                let word = if rare { to & !3 } else { to & !15 };
                let (op, data) = niu::atomic(rng, word, rare);
                Action::Atomic { on: (tile, word), op, data, back: RETURNS + 16 * index }
            }
        }
    }

    /// To the smallest rectangle around the second and the third tile.
    fn multicast(&self, rng: &mut Rng, from: u32, to: u32, len: u32) -> Action {
        let (a, b) = (self.second, self.third);
        let (start, end) = ((a.0.min(b.0), a.1.min(b.1)), (a.0.max(b.0), a.1.max(b.1)));
        let with_sender = rng.one_in(2);
        // Columns 8 and 9 hold no Tensix tiles (NoC/README.md) and opt out.
        let columns = (start.0..=end.0).filter(|x| !(8..=9).contains(x)).count() as u32;
        let inside = (start.0..=end.0).contains(&self.sender.0) && (start.1..=end.1).contains(&self.sender.1);
        let receivers = columns * u32::from(end.1 - start.1 + 1) - u32::from(inside && !with_sender);
        Action::Multicast { from, rect: (start, end), receivers, to, len, with_sender }
    }

    /// How many requests.
    pub(crate) fn parts(&self) -> usize {
        self.requests.len()
    }

    fn sending(&self, keep: &[bool]) -> Asm {
        let mut asm = Asm::default();
        niu::take_counters(&mut asm, BEFORE, None);
        for request in kept(&self.requests, keep) {
            request.emit(&mut asm, self.sender);
        }
        asm.delay(8, 4000);
        niu::take_counters(&mut asm, RESULT, Some(BEFORE));
        say_done(&mut asm, self.core);
        asm
    }

    /// Loads and runs the program, and reads counters and zones back.
    pub(crate) fn script(&self, keep: &[bool]) -> Vec<Op> {
        let mut ops = Vec::new();
        for (tile, data) in [self.sender, self.second, self.third].into_iter().zip(&self.data) {
            ops.extend(hold(tile));
            ops.push(fill(tile, ZONE, data.clone()));
            ops.push(fill(tile, RETURNS, vec![0; 0x800]));
            ops.push(fill(tile, BEFORE, vec![0; 0x800]));
        }
        ops.push(fill(self.bank, ZONE, self.data[3].clone()));
        ops.push(fill(self.sender, code(self.core), self.sending(keep).bytes()));
        ops.push(release(self.sender, &[self.core]));
        ops.push(wait(self.sender, self.core));
        ops.push(look(self.sender, RETURNS, RETURN_BYTES));
        ops.push(look(self.sender, POSTED_RETURNS, RETURN_BYTES));
        for tile in [self.sender, self.second, self.third, self.bank] {
            ops.push(look(tile, ZONE, ZONE_BYTES));
        }
        for noc in 0..2 {
            ops.extend(niu::counters().map(|i| look(self.sender, RESULT + noc * niu::NIU_COUNTER_BYTES + 4 * i, 4)));
        }
        ops
    }

    /// The kept requests.
    pub(crate) fn listing(&self, keep: &[bool]) -> Vec<String> {
        let mut out = vec![
            format!("{} of tile {:?}", self.core, self.sender),
            format!("counter i of NoC n: {RESULT:#x} + {:#x} n + 4 i", niu::NIU_COUNTER_BYTES),
        ];
        out.extend(kept(&self.requests, keep).map(Request::to_string));
        out
    }
}

/// Ends a program: writes its done word and loops.
pub(super) fn say_done(asm: &mut Asm, core: Processor) {
    asm.fence();
    asm.li(1, done(core));
    asm.li(2, DONE_VALUE);
    asm.sw(2, 1, 0);
    asm.stop();
}

const _: () = assert!(niu::COUNTER_BYTES <= RESULT - BEFORE);
