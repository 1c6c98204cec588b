//! Starting a card, step by step (the original's `device.py`).

use super::{Device, DeviceConfig, Dispatch, bank_table};
use crate::RuntimeError;
use crate::elf::{FirmwareImage, KernelImage};
use crate::prebuilt::CqKernels;
use crate::queue::{CommandQueue, Patience, Waited, is_quiet};
use std::ops::ControlFlow;
use tilework_abi::addr::{Cycle, L1Addr, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::convert::{low32, u8_of, u16_of};
use tilework_abi::cq::layout::{KERNEL_TEXT_OFFSET, QueueId, SEMAPHORE_OFFSET, SemaphoreId, dispatch_core, host};
use tilework_abi::cq::tiles::{Part, Queues};
use tilework_abi::l1::MemoryMap;
use tilework_abi::msg::{GoMsg, LaunchMsg, MODE_HOST, RUN_DONE, RUN_GO, RUN_INIT, RtaOffset};
use tilework_abi::noc::{NocXy, PCIE_HOST_BIT};
use tilework_abi::tensix::Processor;
use tilework_abi::{L1_ALIGN, cb};
use tilework_driver::{Card, HostLink, LinkError, Pinned, Target};
use zerocopy::IntoBytes;

/// Cycles that firmware may take to start: a thousand times what ours takes.
const START_CYCLES: Cycle = 20_000_000;

impl<C: HostLink> Device<C> {
    /// Firmware on all tiles, then the command queue's cores.
    pub(super) fn start(&mut self) -> Result<(), RuntimeError> {
        let result = self.boot_tiles().and_then(|()| match self.config.dispatch {
            Dispatch::Fast => self.start_queue(),
            Dispatch::Slow => Ok(()),
        });
        result.map_err(|e| self.explain(e, &[]))
    }

    /// Steps 1 and 2: all tiles held, firmware written, BRISC released, all cores up.
    fn boot_tiles(&mut self) -> Result<(), Waited> {
        self.check_board()?;
        load_tiles(&mut self.card, self.config.board, &self.map, &self.firmware, self.memory.l1_banks())?;
        let tiles: Vec<NocXy> = self.config.board.tensix_tiles().collect();
        self.wait_done(&tiles, START_CYCLES)
    }

    /// Refuses a chip that reports another board than the configuration's: coordinates, banks and
    /// dispatch cores would be wrong.
    fn check_board(&mut self) -> Result<(), Waited> {
        let expected = self.config.board;
        match self.card.telemetry()?.board()? {
            Some(found) if !found.has_chip_of(expected) => Err(Waited::Other(RuntimeError::Board {
                found: found.spec().name,
                lacks: found.harvesting(),
                expected: expected.spec().name,
                expected_lacks: expected.harvesting(),
            })),
            _ => Ok(()),
        }
    }

    /// Waits until the go messages of `tiles` say DONE.
    fn wait_done(&mut self, tiles: &[NocXy], budget: Cycle) -> Result<(), Waited> {
        let until = self.card.link().cycles().saturating_add(budget);
        let mut ignore = |_| ControlFlow::Continue(());
        let mut patience = Patience { until, budget, progress: &mut ignore, beside: None, room: None };
        self.wait_done_patiently(tiles, &mut patience)
    }

    /// As [`Device::wait_done`], looking at one tile at a time.
    pub(super) fn wait_done_patiently(&mut self, tiles: &[NocXy], patience: &mut Patience) -> Result<(), Waited> {
        let go = self.map.go;
        for &tile in tiles {
            loop {
                let quiet = is_quiet(&self.card);
                let word = self.card.read32(&Target::tile(tile), go)?;
                if word.to_le_bytes()[3] == RUN_DONE {
                    break;
                }
                patience.look_again(&mut self.card, quiet)?;
            }
        }
        Ok(())
    }

    /// Remembers where the device sees the host region of a queue: what commands say of it.
    fn place_region(&mut self, id: QueueId, region: &Pinned) {
        let first = first_of(region);
        self.bases[id.index()] = low32(first);
        if let Some(launcher) = &mut self.launcher {
            launcher.place_region(id, low32(first));
        }
        if id == QueueId::FIRST {
            self.memory.place_system(first);
        }
    }

    /// Steps 3 to 5 for each queue: host region, rings and pointers, then the kernels, from the
    /// prefetcher on.
    fn start_queue(&mut self) -> Result<(), Waited> {
        let DeviceConfig { board, capture, .. } = self.config;
        let queues = self.config.queue_tiles();
        for id in queues.ids() {
            let region = self.card.pin(host::REGION_SIZE as usize, PcieAddr::new(id.region_noc_base().into()))?;
            reachable(&region)?;
            self.place_region(id, &region);
            let mut queue = CommandQueue::of(board, queues, id, self.number, region, capture);
            queue.initialise(&mut self.card)?;
            self.tell_queue(id);
            start_queue_kernels(&mut self.card, board, (queues, id), &self.map, &self.cq_kernels, 0)?;
            *self.place_of(id) = Some(queue);
        }
        Ok(())
    }
}

/// Where the device sees a host region.
fn first_of(region: &Pinned) -> u64 {
    region.noc_address() & !PCIE_HOST_BIT
}

/// Refuses a host region that commands cannot name: they say the low 32 bits of an address.
fn reachable(region: &Pinned) -> Result<(), Waited> {
    let first = first_of(region);
    if first <= u64::from(u32::MAX - host::REGION_SIZE) {
        return Ok(());
    }
    let what = format!(
        "the queue's region of host memory lies at {first:#x} for the device, expected it in the first 4 GiB: is \
         host memory pinned by others?"
    );
    Err(Waited::Link(LinkError::Failed(what)))
}

/// Holds all tiles of `board`, writes `firmware` with its bank table, whose L1 banks are
/// `l1_banks`, and releases BRISC, which starts the others. The caller waits for the go messages
/// to say DONE.
///
/// # Errors
/// The link failed, or the firmware of BRISC starts out of reach of the jump at address 0.
pub fn load_tiles<C: HostLink>(
    card: &mut Card<C>,
    board: Board,
    map: &MemoryMap,
    firmware: &[FirmwareImage; 5],
    l1_banks: &[NocXy],
) -> Result<(), Waited> {
    let boot_jump = firmware[Processor::Brisc.index()].boot_jump().map_err(|e| Waited::Other(e.into()))?;
    let tiles: Vec<NocXy> = board.tensix_tiles().collect();
    card.hold(&tiles)?;
    for image in firmware {
        for (address, bytes) in image.segments() {
            card.write_all(&tiles, address, bytes)?;
        }
    }
    card.write_all(&tiles, L1Addr::default(), &boot_jump.to_le_bytes())?;
    let init = GoMsg::signal(RUN_INIT).word();
    card.write_all(&tiles, map.go, &init.to_le_bytes())?;
    // The firmware reads both before a launch has written them; L1 holds anything at power-on.
    card.write_all(&tiles, map.go_index, &[0; 4])?;
    card.write_all(&tiles, map.profiler_control, &[0; 4])?;
    card.write_all(&tiles, map.bank_table, &bank_table(&board.dram(), l1_banks))?;
    let pcs = [Processor::Ncrisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];
    card.reset_pcs(&tiles, &pcs.map(|p| (p, firmware[p.index()].entry())))?;
    Ok(card.release_brisc(&tiles)?)
}

/// Writes the images of the cores of queue `id`, one of `queues`, and starts them. All counts of
/// pages and notifications begin `counted` above the usual: zero, except in tests of their wrap.
///
/// # Errors
/// The link failed, or a kernel cannot be moved to its place.
pub fn start_queue_kernels<C: HostLink>(
    card: &mut Card<C>,
    board: Board,
    (queues, id): (Queues, QueueId),
    map: &MemoryMap,
    kernels: &CqKernels,
    counted: i16,
) -> Result<(), Waited> {
    let first = i32::from(counted).cast_unsigned();
    let queue = queues.layout().queue(id);
    let mut arguments = queue.arguments(board, queues.count());
    arguments[3] |= first << 16;
    for (tile, parts) in queue.tiles(board) {
        if parts.contains(&Part::Subordinate) {
            let sems = dispatch_core::SYNC_SEMS;
            let words = first.to_le_bytes().repeat(sems.size() as usize / size_of::<u32>());
            card.write(&Target::tile(tile), sems.base(), &words)?;
        }
        let semaphores = parts[0].semaphores().map(|count| count.wrapping_add(first));
        start_queue_core(card, map, tile, (arguments, semaphores), parts, kernels)?;
    }
    Ok(())
}

/// Writes the image of one of the queue's cores and starts it. The first 16 bytes are the run-time
/// arguments: where the others are (our kernels serve every board and layout; the original's have
/// it compiled in). Then the semaphores, then the kernels.
fn start_queue_core<C: HostLink>(
    card: &mut Card<C>,
    map: &MemoryMap,
    core: NocXy,
    (arguments, semaphores): ([u32; 4], [u32; SemaphoreId::COUNT as usize]),
    parts: &[Part],
    kernels: &CqKernels,
) -> Result<(), Waited> {
    let base = map.kernel_config;
    let target = Target::tile(core);
    let mut image = vec![0u8; KERNEL_TEXT_OFFSET as usize];
    image[..size_of_val(&arguments)].copy_from_slice(arguments.as_bytes());
    for (id, value) in (0..).zip(semaphores) {
        let at = SemaphoreId(id).addr(SEMAPHORE_OFFSET) as usize;
        image[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    card.write(&target, base, &image)?;
    let mut launch = LaunchMsg {
        kernel_config_base: [base.get().into(); 3],
        sem_offset: [u16_of(SEMAPHORE_OFFSET).into(), 0.into(), 0.into()],
        mode: MODE_HOST,
        min_remote_cb_start_index: u8_of(cb::COUNT),
        ..LaunchMsg::default()
    };
    launch.rta_offset[0] = RtaOffset { rta: 0.into(), crta: u16_of(L1_ALIGN).into() };
    let mut enables = 0;
    for (offset, processor, kernel) in queue_kernels_at(parts, kernels) {
        let text = kernel.relocate(base.offset(offset), map).map_err(|e| Waited::Other(e.into()))?;
        card.write(&target, base.offset(offset), &text)?;
        launch.kernel_text_offset[processor.index()] = offset.into();
        enables |= 1 << processor.index();
        launch.self_contained |= u8::from(kernel.is_self_contained()) << processor.index();
    }
    launch.enables = enables.into();
    card.write(&target, map.launch, launch.as_bytes())?;
    Ok(card.write32(&target, map.go, GoMsg::signal(RUN_GO).word())?)
}

/// Where the kernels of one of the queue's cores lie, from the kernel configuration base.
pub(crate) fn queue_kernels_at<'a>(parts: &[Part], kernels: &'a CqKernels) -> Vec<(u32, Processor, &'a KernelImage)> {
    let mut at = KERNEL_TEXT_OFFSET;
    let place = |&part: &Part| {
        let kernel = kernels.of(part);
        let offset = at;
        at = (at + kernel.size()).next_multiple_of(L1_ALIGN);
        (offset, part.processor(), kernel)
    };
    parts.iter().map(place).collect()
}
