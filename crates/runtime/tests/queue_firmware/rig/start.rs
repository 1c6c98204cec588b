//! Start-up of a card as the device does it: firmware on all tiles, then the kernels of the command
//! queue.

use super::LOOK_AGAIN;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::Queues;
use tilework_abi::l1::WORKER;
use tilework_abi::msg::RUN_DONE;
use tilework_driver::{Card, Target};
use tilework_runtime::device::{l1_banks, load_tiles};
use tilework_runtime::prebuilt;
use tilework_sim::Chip;

/// Worker firmware on all tiles, with the L1 banks that the queues leave.
pub(super) fn boot_tiles(card: &mut Card<Chip>, board: Board, queues: Queues) {
    let firmware = prebuilt::worker_firmware(&WORKER).unwrap();
    let banks = l1_banks(&queues.workers(board).collect::<Vec<_>>());
    load_tiles(card, board, &WORKER, &firmware, &banks).unwrap();
    let mut rounds = 0;
    for tile in board.tensix_tiles() {
        while card.read32(&Target::tile(tile), WORKER.go).unwrap().to_le_bytes()[3] != RUN_DONE {
            rounds += 1;
            assert!(rounds < 10_000, "{tile} does not start");
            card.link_mut().run(LOOK_AGAIN).unwrap();
        }
    }
}
