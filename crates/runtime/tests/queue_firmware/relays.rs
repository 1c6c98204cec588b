//! Relays of bytes that are not in the record: from nodes, from interleaved buffers, of every size.

use crate::random::{Form, Random};
use crate::rig::Rig;
use crate::shadow::{DRAM_BASE, DRAM_BYTES, L1_BASE};
use crate::sources::{Sourced, dram_pages};
use tilework_abi::board::{self, Board};
use tilework_abi::cq::layout::prefetch_core::SCRATCH_DB;
use tilework_abi::cq::layout::{PAGE_SIZE, PCIE_NOC_XY_MARK, dispatch_core, host};
use tilework_cq::dispatch::PagedWrite;
use tilework_cq::prefetch::{LinearRelay, PagedRelay};
use tilework_cq::{DispatchCommand, PrefetchCommand};
use tilework_driver::HostLink;

/// Bytes of one half of the scratch buffer.
const HALF: u32 = SCRATCH_DB.size() / 2;

/// Random bytes in all of the DRAM that the shadow covers.
fn fill_dram(rig: &mut Rig, random: &mut Random) {
    let banks = rig.shadow.banks() as u32;
    let page_size = 16 * 1024;
    for row in 0..DRAM_BYTES / page_size {
        let data = random.bytes((banks * page_size) as usize);
        let base_addr = DRAM_BASE + row * page_size;
        rig.send(&DispatchCommand::WritePaged(PagedWrite { is_dram: true, start_page: 0, base_addr, page_size, data }));
    }
    rig.finish();
}

/// Sizes around the borders of everything that a relay is cut by: units of 16 and 64 bytes, pages
/// of the ring, packets, halves of the scratch buffer, the scratch buffer.
fn border_sizes() -> Vec<u32> {
    let borders = [16, 64, PAGE_SIZE - 16, PAGE_SIZE, 16 * 1024, HALF, 2 * HALF, 3 * HALF];
    let mut sizes: Vec<u32> =
        borders.into_iter().flat_map(|at| [at - 15, at - 1, at, at + 1, at + 16, at + 64]).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Every size around a border, from a bank of DRAM at every offset to its alignment, from L1 and
/// from host memory.
#[test]
fn linear_relays_of_every_border_size_arrive_whole() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 20);
    fill_dram(&mut rig, &mut random);
    let in_host = random.bytes(host::TIMESTAMPS.size() as usize);
    rig.region.write(rig.card.link_mut(), host::TIMESTAMPS.offset().into(), &in_host).unwrap();
    let pcie = board::PCIE.encode() | PCIE_NOC_XY_MARK;
    for (i, size) in border_sizes().into_iter().enumerate() {
        let node = rig.shadow.dram_port(i % rig.shadow.banks());
        let addr = DRAM_BASE + 16 * (i as u32 % 5) + 64 * random.below(1000);
        let data = rig.shadow.node(node, addr, size as usize);
        let relay = LinearRelay { noc_xy: node.encode(), addr: addr.into(), length: size.into() };
        rig.send_from(&Sourced::to_host(data, PrefetchCommand::RelayLinear(relay)), i % 2 == 0);

        let node = random.worker();
        let addr = L1_BASE + 16 * (i as u32 % 5);
        let data = rig.shadow.node(node, addr, size as usize);
        let relay = LinearRelay { noc_xy: node.encode(), addr: addr.into(), length: size.into() };
        rig.send_from(&Sourced::to_host(data, PrefetchCommand::RelayLinear(relay)), i % 2 == 1);

        let size = size.min(host::TIMESTAMPS.size() - 64);
        let at = 16 * (i as u32 % 5);
        let data = in_host[at as usize..(at + size) as usize].to_vec();
        let addr = (host::TIMESTAMPS.noc_addr() + at).into();
        let relay = LinearRelay { noc_xy: pcie, addr, length: size.into() };
        rig.send_from(&Sourced::to_host(data, PrefetchCommand::RelayLinear(relay)), i % 2 == 1);
    }
    rig.finish();
    rig.terminate();
}

/// Pages of every size around a border: less than a page of the ring, more than a half of the
/// scratch buffer, more than both; from every first page of a row.
#[test]
fn paged_relays_of_every_page_size_arrive_whole() {
    for board in [Board::P100, Board::P150] {
        let mut rig = Rig::boot(board);
        let mut random = Random::new(board, 21);
        fill_dram(&mut rig, &mut random);
        let sizes =
            [64, 128, 2048, 4096 - 64, 4096, 4096 + 64, 16_384, 16_448, HALF - 64, HALF, HALF + 64, 2 * HALF + 64];
        for (i, page_size) in sizes.into_iter().enumerate() {
            for pages in [1, 2, 9, (HALF / page_size).max(1), (2 * HALF / page_size).max(1) + 1] {
                let rows = DRAM_BYTES / page_size;
                let start_page = random.below((rows * 7).saturating_sub(pages + 8).clamp(1, 256)) as u8;
                let length_adjust = if i % 2 == 0 { 0 } else { 32 * random.below(page_size.min(0x8000) / 32) as u16 };
                let base_addr = DRAM_BASE;
                let relay = PagedRelay { is_dram: true, length_adjust, start_page, base_addr, page_size, pages };
                let (data, source) = dram_pages(&rig.shadow, relay);
                rig.send_from(&Sourced::to_host(data, source), i % 2 == 0);
            }
        }
        rig.finish();
        rig.terminate();
    }
}

/// A read that is longer than the command data queue, the scratch buffer and the dispatch ring, at
/// least 16 bytes a cycle from DRAM to the host.
#[test]
fn a_read_longer_than_every_buffer_arrives_at_16_bytes_a_cycle() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 22);
    fill_dram(&mut rig, &mut random);
    for page_size in [2048, 4096, 16 * 1024] {
        let pages = DRAM_BYTES / page_size * rig.shadow.banks() as u32;
        let relay =
            PagedRelay { is_dram: true, length_adjust: 0, start_page: 0, base_addr: DRAM_BASE, page_size, pages };
        let (data, source) = dram_pages(&rig.shadow, relay);
        assert!(data.len() as u32 > 2 * dispatch_core::DISPATCH_CB.region().size());
        let (bytes, before) = (data.len() as u64, rig.card.link().cycles());
        rig.send_from(&Sourced::to_host(data, source), true);
        rig.wait_all();
        let cycles = rig.card.link().cycles() - before;
        println!("{bytes} bytes in pages of {page_size} B: {cycles} cycles, {} B a cycle", bytes / cycles);
        assert!(bytes >= 16 * cycles, "{bytes} bytes in {cycles} cycles");
    }
    rig.finish();
    rig.terminate();
}

/// A command of 64 KiB records is written to DRAM at 16 bytes a cycle at least.
#[test]
fn long_records_arrive_at_16_bytes_a_cycle() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 23);
    let (page_size, records) = (4096, 64);
    let commands: Vec<DispatchCommand> = (0..records)
        .map(|i| {
            let (start_page, base_addr) = (i % 7, DRAM_BASE + u32::from(i / 7) * 3 * page_size);
            let data = random.bytes(15 * page_size as usize);
            DispatchCommand::WritePaged(PagedWrite { is_dram: true, start_page, base_addr, page_size, data })
        })
        .collect();
    rig.event();
    let before = rig.card.link().cycles();
    commands.iter().for_each(|command| rig.send(command));
    let sent = rig.card.link().cycles() - before;
    rig.event();
    let (bytes, cycles) = (u64::from(records) * 15 * u64::from(page_size), rig.card.link().cycles() - before);
    println!(
        "{bytes} bytes: {cycles} cycles, of which {sent} until the host had sent all; {} B a cycle",
        bytes / cycles
    );
    assert!(bytes >= 16 * cycles, "{bytes} bytes in {cycles} cycles");
    rig.finish();
    rig.terminate();
}

/// A command that is longer than the ring, in relays without a flush, goes on as pages come free.
#[test]
fn a_command_longer_than_the_ring_goes_on_as_pages_come_free() {
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 24);
    let command = random.write(Form::Host, 3 * dispatch_core::DISPATCH_CB.region().size() as usize);
    let bytes = command.to_bytes().unwrap().len();
    for step in [16 * 1024, 16 * 1024 + 16, 200 * 1024] {
        let cuts: Vec<usize> = (1..bytes.div_ceil(step)).map(|i| i * step).collect();
        rig.send_cut(&command, &cuts, false);
    }
    rig.finish();
    rig.terminate();
}

/// Relays of no bytes at all: they close the command that was left open, and no empty request is
/// made (tt-metal#52233).
#[test]
fn issue_52233_relays_of_nothing_close_the_command() {
    use tilework_abi::cq::prefetch::{RELAY_PAGED_IS_DRAM, RelayLinear, RelayLinearH, RelayPaged};
    use zerocopy::IntoBytes;
    let mut rig = Rig::boot(Board::P100);
    let mut random = Random::new(Board::P100, 26);
    let noc_xy_addr = rig.shadow.dram_port(0).encode().into();
    let linear = RelayLinear { cmd_id: 1, noc_xy_addr, ..Default::default() };
    let linear_h = RelayLinearH { cmd_id: 2, noc_xy_addr, ..Default::default() };
    let is_dram_and_length_adjust = (RELAY_PAGED_IS_DRAM | 64).into();
    let paged = RelayPaged { cmd_id: 3, is_dram_and_length_adjust, page_size: 64.into(), ..Default::default() };
    // All of its bytes are left out.
    let adjusted = RelayPaged { pages: 1.into(), ..paged };
    for closing in [linear.as_bytes(), linear_h.as_bytes(), paged.as_bytes(), adjusted.as_bytes()] {
        let mut closing = closing.to_vec();
        closing.resize(64, 0);
        for bytes in [1, 4064, 4096, 5000] {
            let command = random.write(Form::LinearUnicast, bytes);
            rig.close_with(&command, &closing);
        }
    }
    rig.finish();
    rig.terminate();
}

/// Small records in a stream, as programs are made of.
#[test]
fn small_records_follow_each_other_quickly() {
    for (bytes, most) in [(16, 550), (1024, 560), (3000, 620)] {
        let mut rig = Rig::boot(Board::P100);
        let mut random = Random::new(Board::P100, 25);
        let records = 1000;
        rig.event();
        let before = rig.card.link().cycles();
        for _ in 0..records {
            let command = random.write(Form::LinearUnicast, bytes);
            rig.send(&command);
        }
        rig.event();
        let cycles = (rig.card.link().cycles() - before) / records;
        println!("{cycles} cycles for a record of {bytes} bytes");
        assert!(cycles <= most, "{cycles} cycles for a record of {bytes} bytes");
    }
}
