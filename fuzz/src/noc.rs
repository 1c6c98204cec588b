//! Random NoC requests: valid and invalid values in the registers of request initiators, from two
//! tiles, with time in between.
//!
//! The host writes the registers through a window, as a core would by stores. No core runs, so
//! nothing may ever stall the host.

use tilework_abi::noc::{self, NocRect, NocXy, ctrl, init};
use tilework_abi::{board, stream, tensix};

use crate::Input;
use crate::rig::Rig;

/// The most requests of an input.
const REQUESTS: usize = 48;
/// The sending tiles.
const TILES: [NocXy; 2] = [NocXy::new(1, 2), NocXy::new(12, 7)];

/// Runs `input`; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let mut input = Input::new(input);
    let mut rig = Rig::new(true);
    for tile in TILES {
        rig.tile_write(tile, 0x1_0000, &[0x5A; 256]);
    }
    for _ in 0..REQUESTS {
        if input.is_empty() || rig.failed().is_some() {
            break;
        }
        request(&mut rig, &mut input);
    }
    rig.run(100_000);
    for tile in TILES {
        rig.tile_read(tile, (noc::NIU0_BASE + noc::COUNTERS).into(), 4);
    }
    if let Some(failure) = rig.failed() {
        assert!(!failure.starts_with("deadlock"), "no core runs, yet: {failure}");
    }
}

fn request(rig: &mut Rig, input: &mut Input) {
    let tile = input.pick(&TILES);
    let choice = input.byte();
    let niu = noc::niu_base(u32::from(choice) & 1);
    let initiator = niu + (u32::from(choice) >> 1 & 3) * noc::CMD_BUF_STRIDE;
    let fields = [
        (init::TARG_ADDR_LO, address(input)),
        (init::TARG_ADDR_MID, rare(input)),
        (init::TARG_ADDR_HI, coordinates(input)),
        (init::RET_ADDR_LO, address(input)),
        (init::RET_ADDR_MID, rare(input)),
        (init::RET_ADDR_HI, coordinates(input)),
        (init::PACKET_TAG, u32::from(input.byte() & 15) << noc::TAG_TRID_SHIFT | rare(input)),
        (init::CTRL, control(input)),
        (init::AT_LEN_BE, length(input)),
        (init::AT_LEN_BE_1, rare(input)),
        (init::AT_DATA, input.word()),
        (init::BRCST_EXCLUDE, rare(input)),
    ];
    for (field, value) in fields {
        rig.tile_word(tile, initiator + field, value);
    }
    rig.tile_word(tile, initiator + init::CMD_CTRL, 1);
    match choice >> 3 {
        0..=3 => {}
        4 => rig.tile_word(tile, niu + noc::CLEAR_OUTSTANDING, input.half().into()),
        5 => {
            let reg = niu + noc::CFG_BASE + 4 * u32::from(input.byte() % 32);
            rig.tile_word(tile, reg, input.word());
        }
        6 => {
            let any = u32::from(input.half()) & 0xFFFC;
            rig.tile_read(tile, u64::from(niu + any), 4);
        }
        7 => rig.run(u64::from(input.half())),
        _ => rig.run(u64::from(input.byte())),
    }
}

/// Mostly zero.
fn rare(input: &mut Input) -> u32 {
    if input.byte() < 0xF0 { 0 } else { input.word() }
}

fn address(input: &mut Input) -> u32 {
    let word = input.word();
    match input.byte() % 8 {
        0 => word,
        1 => stream::reg_addr(word % stream::COUNT, word >> 8 & 0x1FF),
        2 => tensix::DEBUG_BASE + (word & 0xFFF),
        3 => noc::NIU0_BASE + (word & 0x1_FFFF),
        4 => tensix::L1_SIZE - 0x100 + (word & 0x1FF),
        _ => (word % tensix::L1_SIZE) & !63,
    }
}

fn coordinates(input: &mut Input) -> u32 {
    let [x, y] = [input.byte(), input.byte()];
    match input.byte() % 8 {
        0 => input.word(),
        1 => NocXy::new(17 + x % 2, 12 + y % 12).encode(),
        2 => board::PCIE.encode(),
        3 => NocRect { start: NocXy::new(x & 15, y & 15), end: NocXy::new(x >> 4, y >> 4) }.encode(),
        4 => NocRect { start: NocXy::new(1, 2), end: NocXy::new(1 + x % 14, 2 + y % 10) }.encode(),
        5 => NocXy::new(x % 64, y % 64).encode(),
        _ => TILES[usize::from(x) % 2].encode(),
    }
}

fn control(input: &mut Input) -> u32 {
    let bits = input.word();
    match input.byte() % 4 {
        0 => bits,
        1 => {
            bits & (ctrl::CMD_MASK
                | ctrl::WR_BE
                | ctrl::WR_INLINE
                | ctrl::RESP_MARKED
                | ctrl::BRCST
                | ctrl::BRCST_SRC_INCLUDE)
        }
        _ => bits & (ctrl::CMD_MASK | ctrl::RESP_MARKED),
    }
}

fn length(input: &mut Input) -> u32 {
    let bits = input.word();
    match input.byte() % 4 {
        0 => bits,
        1 => bits & 0xFFFF,
        2 => noc::atomic::INCR_GET << noc::atomic::OP_SHIFT | bits & 0xFFF,
        _ => bits % 512,
    }
}
