//! The driver over a simulated chip, and over a link that writes down what it is asked.

use tilework_abi::addr::{Cycle, DramAddr, L1Addr, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::noc::{NocRect, NocXy, PCIE_HOST_BIT};
use tilework_abi::tensix::Processor;
use tilework_abi::{tensix, tlb};
use tilework_driver::{
    Bar, Card, DriverError, HostLink, LinkError, Ordering, Target, Telemetry, WindowPool, WindowSize, cover,
};
use tilework_sim::{Chip, ChipConfig, FaultClass};

fn card(board: Board) -> Card<Chip> {
    Card::open(Chip::new(ChipConfig::new(board)).unwrap()).unwrap()
}

/// A link that writes down what it is asked and answers reads with zeros.
#[derive(Default, Debug)]
struct Recorder {
    writes: Vec<(Bar, u64, Vec<u8>)>,
    reads: Vec<(Bar, u64, usize)>,
}

impl HostLink for Recorder {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        self.writes.push((bar, offset, data.to_vec()));
        Ok(())
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        self.reads.push((bar, offset, out.len()));
        out.fill(0);
        Ok(())
    }
    fn pin(&mut self, _len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        Ok(wish)
    }
    fn pinned_read(&mut self, _address: PcieAddr, _out: &mut [u8]) -> Result<(), LinkError> {
        Ok(())
    }
    fn pinned_write(&mut self, _address: PcieAddr, _data: &[u8]) -> Result<(), LinkError> {
        Ok(())
    }
    fn wait_word(&mut self, _address: PcieAddr, seen: u32, _budget: Cycle) -> Result<u32, LinkError> {
        Ok(!seen)
    }
    fn idle(&mut self, _cycles: Cycle) -> Result<(), LinkError> {
        Ok(())
    }
    fn cycles(&self) -> Cycle {
        0
    }
}

#[test]
fn a_window_is_turned_only_when_it_must_be() {
    let mut link = Recorder::default();
    let mut pool = WindowPool::new();
    let _first = pool.take(WindowSize::Small).unwrap();
    let mut window = pool.take(WindowSize::Small).unwrap();
    let tile = Target::tile(NocXy::new(1, 2));
    window.write32(&mut link, &tile, 0x20_0010, 5).unwrap();
    window.write32(&mut link, &tile, 0x3F_FFFC, 6).unwrap();
    window.write(&mut link, &tile, 0x3F_FFFE, &[1, 2, 3, 4]).unwrap();
    let offsets: Vec<_> = link.writes.iter().map(|(bar, offset, data)| (*bar, *offset, data.len())).collect();
    let regs = 0x1FC0_000C;
    assert_eq!(
        offsets,
        [
            (Bar::Bar0, regs, 12),
            (Bar::Bar0, 0x20_0010, 4),
            (Bar::Bar0, 0x3F_FFFC, 4),
            (Bar::Bar0, 0x3F_FFFE, 2),
            (Bar::Bar0, regs, 12),
            (Bar::Bar0, 0x20_0000, 2),
        ]
    );
    // Address field 1; x_end 1 at bit 43, y_end 2 at bit 49; strict ordering at bit 70.
    let word = |i: usize| u32::from_le_bytes(link.writes[0].2[4 * i..4 * i + 4].try_into().unwrap());
    assert_eq!([word(0), word(1), word(2)], [1, 1 << 11 | 2 << 17, 1 << 6]);
    assert_eq!(link.writes[5].2, [3, 4]);
}

#[test]
fn a_rectangle_on_noc_1_has_its_corners_exchanged() {
    let mut link = Recorder::default();
    let mut window = WindowPool::new().take(WindowSize::Large).unwrap();
    let rect = NocRect { start: NocXy::new(1, 2), end: NocXy::new(7, 11) };
    let target = Target { noc: 1, ..Target::rect(rect).ordered(Ordering::Posted) };
    window.write32(&mut link, &target, 0, 1).unwrap();
    let (bar, offset, data) = &link.writes[0];
    assert_eq!((*bar, *offset), (Bar::Bar0, 0x1FC0_0000 + 12 * 202));
    let regs = [0, 1, 2].map(|i| u32::from_le_bytes(data[4 * i..4 * i + 4].try_into().unwrap()));
    // 4 GiB window: x_end 32, y_end 38, x_start 44, y_start 50, noc 56, multicast 58, ordering 59.
    assert_eq!(regs, [0, 1 | 2 << 6 | 7 << 12 | 11 << 18 | 1 << 24 | 1 << 26 | 2 << 27, 0]);
    assert_eq!((link.writes[1].0, link.writes[1].1), (Bar::Bar4, 0));
    let error = window.read32(&mut link, &target, 0).unwrap_err();
    assert!(matches!(error, DriverError::MulticastRead { .. }));
}

#[test]
fn the_pool_gives_out_every_window_but_the_kernels() {
    let mut pool = WindowPool::new();
    let mut windows: Vec<_> = (0..201).map(|_| pool.take(WindowSize::Small).unwrap()).collect();
    assert!(windows.iter().all(|w| w.index() != tlb::KERNEL_WINDOW));
    assert!(matches!(pool.take(WindowSize::Small), Err(DriverError::NoWindow { .. })));
    let back = windows.pop().unwrap();
    let index = back.index();
    pool.give_back(back);
    assert_eq!(pool.take(WindowSize::Small).unwrap().index(), index);
    assert_eq!((0..9).filter(|_| pool.take(WindowSize::Large).is_ok()).count(), 8);
}

#[test]
fn all_tiles_of_a_board_are_two_rectangles() {
    let tiles: Vec<_> = Board::P100.tensix_tiles().collect();
    let rect = |x0, x1| NocRect { start: NocXy::new(x0, 2), end: NocXy::new(x1, 11) };
    assert_eq!(cover(&tiles), [rect(1, 7), rect(10, 14)]);
    assert_eq!(cover(&[]), []);
}

#[test]
fn rectangles_hold_each_tile_once_and_no_other() {
    for board in Board::ALL {
        // Holes, single tiles and repeated tiles.
        let mut tiles: Vec<_> = board.workers().filter(|t| (t.x * 7 + t.y * 3) % 5 != 0).collect();
        tiles.push(tiles[0]);
        let mut covered = Vec::new();
        for r in cover(&tiles) {
            covered.extend((r.start.x..=r.end.x).flat_map(|x| (r.start.y..=r.end.y).map(move |y| NocXy::new(x, y))));
        }
        covered.sort();
        tiles.sort();
        tiles.dedup();
        assert_eq!(covered, tiles);
    }
}

#[test]
fn telemetry_names_the_board_and_its_harvested_bank() {
    for board in Board::ALL {
        let telemetry = card(board).telemetry().unwrap();
        assert_eq!(telemetry.board().unwrap(), Some(board));
        assert_eq!(telemetry.harvested_dram().unwrap(), board.harvested_dram());
        assert_eq!(telemetry.get(14), Some(800), "idle");
        assert_eq!(telemetry.get(0xFFFF), None);
    }
}

#[test]
fn a_card_without_firmware_is_recognised() {
    let mut window = WindowPool::new().take(WindowSize::Small).unwrap();
    let error = Telemetry::read(&mut Recorder::default(), &mut window).unwrap_err();
    assert!(error.to_string().contains("0x0"), "{error}");
}

#[test]
fn l1_and_dram_are_read_back_through_windows() {
    let mut card = card(Board::P100);
    let tile = Target::tile(NocXy::new(14, 11));
    card.write(&tile, L1Addr::new(0x17_FFF0), &[7; 16]).unwrap();
    let mut got = [0; 16];
    card.read(&tile, L1Addr::new(0x17_FFF0), &mut got).unwrap();
    assert_eq!(got, [7; 16]);

    let map = Board::P100.dram();
    let data: Vec<u8> = (0..40_000u32).map(|i| i as u8).collect();
    for bank in 0..map.banks().len() {
        // Across the end of a small window.
        let port = Target::tile(map.port(bank, 0));
        card.write(&port, DramAddr::new(0x40_0000 - 100), &data).unwrap();
        let mut got = vec![0; data.len()];
        card.read(&port, DramAddr::new(0x40_0000 - 100), &mut got).unwrap();
        assert!(got == data, "bank {bank}");
    }
}

#[test]
fn a_multicast_reaches_all_tiles() {
    let mut card = card(Board::P150);
    let tiles: Vec<_> = Board::P150.tensix_tiles().collect();
    card.write_all(&tiles, L1Addr::new(0x1000), &0xABCD_1234u32.to_le_bytes()).unwrap();
    for tile in tiles {
        assert_eq!(card.read32(&Target::tile(tile), L1Addr::new(0x1000)).unwrap(), 0xABCD_1234, "{tile}");
    }
}

#[test]
fn brisc_starts_when_it_is_released() {
    let mut card = card(Board::P100);
    let tiles = [NocXy::new(1, 2), NocXy::new(2, 2)];
    card.hold(&tiles).unwrap();
    // lui t0, 1; li t1, 42; sw t1, 0(t0); j .
    for (i, word) in [0x0000_12B7u32, 0x02A0_0313, 0x0062_A023, 0x0000_006F].into_iter().enumerate() {
        card.write_all(&tiles, 4 * i as u64, &word.to_le_bytes()).unwrap();
    }
    card.reset_pcs(&tiles, &[(Processor::Trisc1, 0x100), (Processor::Ncrisc, 0x200)]).unwrap();
    card.release_brisc(&tiles).unwrap();
    for tile in tiles {
        let target = Target::tile(tile);
        assert_eq!(card.read32(&target, tensix::SOFT_RESET_0).unwrap(), 0x4_7000);
        assert_eq!(card.read32(&target, tensix::TRISC1_RESET_PC).unwrap(), 0x100);
        assert_eq!(card.read32(&target, tensix::TRISC_RESET_PC_OVERRIDE).unwrap(), 0b010);
        assert_eq!(card.read32(&target, tensix::NCRISC_RESET_PC_OVERRIDE).unwrap(), 1);
    }
    card.link_mut().idle(1000).unwrap();
    for tile in tiles {
        assert_eq!(card.read32(&Target::tile(tile), L1Addr::new(0x1000)).unwrap(), 42);
    }
}

#[test]
fn pinned_memory_has_edges() {
    let mut card = card(Board::P100);
    let region = card.pin(4096, PcieAddr::new(0x4000_0000)).unwrap();
    assert_eq!(region.noc_address(), 0x4000_0000 | PCIE_HOST_BIT);
    let link = card.link_mut();
    region.write32(link, 4092, 77).unwrap();
    assert_eq!(region.read32(link, 4092).unwrap(), 77);
    for offset in [4093, 4096, u64::MAX] {
        assert!(matches!(region.read32(link, offset), Err(DriverError::Pinned { .. })));
        assert!(matches!(region.wait_change(link, offset, 0, 1), Err(DriverError::Pinned { .. })));
    }
    // Nobody runs: waiting is a deadlock, known at once.
    assert!(matches!(region.wait_change(link, 4092, 77, u64::MAX), Err(DriverError::Link(_))));
    assert!(card.pin(1, PcieAddr::new(0x4000_0FFF)).is_err(), "pinned already");
}

#[test]
fn a_fault_of_the_chip_reaches_the_caller() {
    let mut card = card(Board::P100);
    let nobody = Target::tile(NocXy::new(40, 40));
    let error = card.write32(&nobody, L1Addr::new(0), 1).unwrap_err();
    let DriverError::Link(LinkError::Fault(fault)) = error else { panic!("{error:?}") };
    assert_eq!(fault.class, FaultClass::UndefinedBehavior.to_string());
    let error = card.write(&nobody, u64::MAX, &[0; 2]).unwrap_err();
    assert!(matches!(error, DriverError::Address { .. }));
}
