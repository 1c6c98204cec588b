//! Start-up of a card as the device does it: firmware on all tiles, then the kernels of the command queue.

use super::LOOK_AGAIN;
use tilework_abi::board::{self, Board, DramMap};
use tilework_abi::cb;
use tilework_abi::cq::layout::{KERNEL_TEXT_OFFSET, SEMAPHORE_OFFSET, SemaphoreId};
use tilework_abi::l1::WORKER;
use tilework_abi::msg::{GoMsg, LaunchMsg, MODE_HOST, RUN_DONE, RUN_GO, RUN_INIT, RtaOffset};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::{Card, Target};
use tilework_runtime::device::bank_table;
use tilework_runtime::{KernelImage, prebuilt};
use tilework_sim::Chip;
use zerocopy::IntoBytes;

/// Worker firmware on all tiles.
pub(super) fn boot_tiles(card: &mut Card<Chip>, board: Board) {
    let tiles: Vec<NocXy> = board.tensix_tiles().collect();
    let firmware = prebuilt::worker_firmware(&WORKER).unwrap();
    let dram = DramMap::new(card.telemetry().unwrap().harvested_dram().unwrap());
    card.hold(&tiles).unwrap();
    for image in &firmware {
        for (address, bytes) in image.segments() {
            card.write_all(&tiles, address.into(), bytes).unwrap();
        }
    }
    let to = firmware[Processor::Brisc.index()].entry();
    let jump = (to & 0x10_0000) << 11 | (to & 0x7FE) << 20 | (to & 0x800) << 9 | (to & 0xF_F000) | 0x6F;
    card.write_all(&tiles, 0, &jump.to_le_bytes()).unwrap();
    card.write_all(&tiles, WORKER.go.into(), &GoMsg::signal(RUN_INIT).word().to_le_bytes()).unwrap();
    card.write_all(&tiles, WORKER.bank_table.into(), &bank_table(&dram, board.worker_columns())).unwrap();
    let others = [Processor::Ncrisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
    card.reset_pcs(&tiles, &others.map(|p| (p, firmware[p.index()].entry()))).unwrap();
    card.release_brisc(&tiles).unwrap();
    let mut rounds = 0;
    for &tile in &tiles {
        while card.read32(&Target::tile(tile), WORKER.go.into()).unwrap().to_le_bytes()[3] != RUN_DONE {
            rounds += 1;
            assert!(rounds < 10_000, "{tile} does not start");
            card.link_mut().run(LOOK_AGAIN).unwrap();
        }
    }
}

/// One core of the command queue: arguments, semaphores, kernels, launch and go.
pub(super) fn start_core(
    card: &mut Card<Chip>,
    board: Board,
    core: NocXy,
    semaphores: &[u32],
    kernels: &[(Processor, &KernelImage)],
) {
    let (base, target) = (WORKER.kernel_config, Target::tile(core));
    let mut image = vec![0; KERNEL_TEXT_OFFSET as usize];
    let peers = board.prefetch_core().encode() | board.dispatch_core().encode() << 16;
    image[..4].copy_from_slice(&peers.to_le_bytes());
    image[4..8].copy_from_slice(&board::PCIE.encode().to_le_bytes());
    for (id, value) in semaphores.iter().enumerate() {
        let at = SemaphoreId(id as u32).addr(SEMAPHORE_OFFSET) as usize;
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    card.write(&target, base.into(), &image).unwrap();
    let mut launch = LaunchMsg {
        kernel_config_base: [base.into(); 3],
        sem_offset: [(SEMAPHORE_OFFSET as u16).into(), 0.into(), 0.into()],
        mode: MODE_HOST,
        min_remote_cb_start_index: cb::COUNT as u8,
        ..LaunchMsg::default()
    };
    launch.rta_offset[0] = RtaOffset { rta: 0.into(), crta: 16.into() };
    let (mut offset, mut enables) = (KERNEL_TEXT_OFFSET, 0);
    for &(processor, kernel) in kernels {
        let text = kernel.relocate(base + offset, &WORKER).unwrap();
        card.write(&target, (base + offset).into(), &text).unwrap();
        launch.kernel_text_offset[processor.index()] = offset.into();
        enables |= 1 << processor.index();
        offset = (offset + kernel.size()).next_multiple_of(16);
    }
    launch.enables = enables.into();
    card.write(&target, WORKER.launch.into(), launch.as_bytes()).unwrap();
    card.write32(&target, WORKER.go.into(), GoMsg::signal(RUN_GO).word()).unwrap();
}
