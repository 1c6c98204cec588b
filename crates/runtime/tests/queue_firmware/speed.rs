//! How fast the dispatcher passes data on, measured by its own time stamps while the ring is full,
//! so that the prefetcher has no part in it.

use crate::random::Random;
use crate::rig::{Rig, wait};
use crate::shadow::DRAM_BASE;
use tilework_abi::board::{self, Board};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::{PCIE_NOC_XY_MARK, host};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::{HostWrite, LinearWrite, PagedWrite, Timestamp};

/// Bytes of one command: most of the ring.
const BYTES: usize = 240 << 10;

/// The dispatcher's clock before and behind `command` and a barrier.
fn cycles(rig: &mut Rig, command: &DispatchCommand) -> u64 {
    let gate = rig.spare_word();
    let round = rig.l1(rig.core_of(tilework_abi::cq::status::Kernel::Dispatch), gate) + 1;
    let noc_xy = board::PCIE.encode() | PCIE_NOC_XY_MARK;
    let stamp = |slot: u32| {
        let addr = host::TIMESTAMPS.noc_addr() + slot * host::SLOT_SIZE;
        DispatchCommand::Timestamp(Timestamp { noc_xy, addr })
    };
    rig.send(&wait(WaitFlags::WAIT_MEMORY, 0, gate, round));
    rig.send(&stamp(0));
    rig.send(command);
    rig.send(&wait(WaitFlags::BARRIER, 0, 0, 0));
    rig.send(&stamp(1));
    rig.settle();
    rig.poke(rig.core_of(tilework_abi::cq::status::Kernel::Dispatch), gate, round);
    rig.settle();
    rig.event();
    let mut slots = [0; 24];
    rig.region.read(rig.card.link_mut(), host::TIMESTAMPS.offset().into(), &mut slots).unwrap();
    let time = |at: usize| u64::from_le_bytes(slots[at..at + 8].try_into().unwrap());
    time(16) - time(0)
}

fn paged(random: &mut Random, page_size: u32) -> DispatchCommand {
    let data = random.bytes(BYTES / page_size as usize * page_size as usize);
    DispatchCommand::WritePaged(PagedWrite { is_dram: true, start_page: 3, base_addr: DRAM_BASE, page_size, data })
}

/// At least 16 bytes in a cycle, which is what PCIe carries: pages to DRAM, one long write, data
/// to the host.
#[test]
fn data_are_passed_on_at_sixteen_bytes_in_a_cycle() {
    let mut rig = Rig::boot_with(Board::P100, DispatchLayout::Dispatcher);
    let mut random = Random::new(Board::P100, 31);
    let linear = |random: &mut Random, bytes| {
        DispatchCommand::WriteLinear(LinearWrite {
            num_mcast_dests: 0,
            write_offset_index: 0,
            noc_xy: random.worker().encode(),
            addr: 0x50_000,
            data: random.bytes(bytes),
        })
    };
    let mut commands: Vec<(String, DispatchCommand)> = [1024, 2048, 4096, 16_384, 65_536]
        .map(|page| (format!("pages of {page} bytes to DRAM"), paged(&mut random, page)))
        .into();
    commands.push(("a linear write".to_owned(), linear(&mut random, BYTES)));
    let host = HostWrite { is_event: false, payload: random.bytes(BYTES) };
    commands.push(("data to the host".to_owned(), DispatchCommand::WriteLinearHHost(host)));
    let mut slow = Vec::new();
    for (what, command) in &commands {
        let cycles = cycles(&mut rig, command);
        let rate = BYTES as f64 / cycles as f64;
        eprintln!("{what}: {cycles} cycles, {rate:.1} bytes in a cycle");
        if rate < 16.0 {
            slow.push(format!("{what}: {rate:.1} bytes in a cycle"));
        }
    }
    assert!(slow.is_empty(), "{slow:?}");
    rig.finish();
    rig.terminate();
}
