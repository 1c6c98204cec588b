//! The client against the driver of the crate `kmd` on a simulated chip: how a card is taken, used,
//! refused and left.

mod common;

use common::{File, Shared};
use tilework_abi::addr::PcieAddr;
use tilework_abi::board::Board;
use tilework_abi::kmd::{AllocateTlbIn, AllocateTlbOut, LockIn, LockOut, Request, lock};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{SOFT_RESET_0, SOFT_RESET_ALL_CORES};
use tilework_abi::tlb::{COUNT_2M, Ordering};
use tilework_driver::{Card, HostLink, LinkError, Target};
use tilework_tt_kmd_client::{Kernel, KmdCard, LOCK, OpenError, check};
use zerocopy::{FromBytes, IntoBytes};

const TILE: NocXy = NocXy::new(2, 3);

fn take(machine: &Shared) -> KmdCard<File> {
    KmdCard::take(machine.open()).unwrap()
}

fn tiles(board: Board) -> Vec<NocXy> {
    board.tensix_tiles().collect()
}

/// Starts BRISC of these tiles, with a program that jumps to itself.
fn start(card: &mut Card<KmdCard<File>>, tiles: &[NocXy]) {
    card.write_all(tiles, 0u64, &0x6F_u32.to_le_bytes()).unwrap();
    card.release_brisc(tiles).unwrap();
}

/// Asks, and gives what lies behind the argument.
fn ask<Out: FromBytes>(file: &mut File, request: Request, argument: &[u8]) -> std::io::Result<Out> {
    let mut bytes = argument.to_vec();
    bytes.resize(argument.len() + size_of::<Out>(), 0);
    file.request(request, &mut bytes)?;
    Ok(Out::read_from_bytes(&bytes[argument.len()..]).unwrap())
}

/// That nothing is left of a client: all windows can be had, no mapping is there, the lock is free.
fn nothing_is_left(machine: &Shared) {
    assert_eq!(machine.0.borrow().maps, 0, "mappings");
    let mut file = machine.open();
    for _ in 0..COUNT_2M - 1 {
        let wanted = AllocateTlbIn { size: 2 << 20, reserved: 0 };
        ask::<AllocateTlbOut>(&mut file, Request::AllocateTlb, wanted.as_bytes()).unwrap();
    }
    let wanted = LockIn { output_size_bytes: 4, flags: lock::TEST, index: LOCK, reserved: [0; 3] };
    let out: LockOut = ask(&mut file, Request::LockCtl, wanted.as_bytes()).unwrap();
    assert_eq!(out.value, 0, "the lock");
}

#[test]
fn a_card_tells_its_board_and_firmware() {
    for board in [Board::P100, Board::P150] {
        let machine = Shared::new(board);
        let mut card = Card::open(take(&machine)).unwrap();
        let facts = check(&mut card).unwrap();
        assert!(facts.board.has_chip_of(board) && facts.firmware[0] == 19, "{facts:?}");
        assert_eq!(card.link().driver()[0], 2);
        drop(card);
        nothing_is_left(&machine);
    }
}

#[test]
fn what_is_written_through_windows_is_read_through_windows() {
    let machine = Shared::new(Board::P100);
    let mut card = Card::open(take(&machine)).unwrap();
    let data: Vec<u8> = (0..1000u32).flat_map(u32::to_le_bytes).collect();
    for (ordering, at) in [(Ordering::Strict, 0x1000u64), (Ordering::Relaxed, 0x8003)] {
        let tile = Target::tile(TILE).ordered(ordering);
        card.write(&tile, at, &data).unwrap();
        let mut back = vec![0; data.len()];
        card.read(&tile, at, &mut back).unwrap();
        assert_eq!(back, data, "{ordering:?}");
    }
    // Across a small window's end: a large one.
    let dram = Target::tile(Board::P100.dram().port(0, 0));
    card.write(&dram, (2u64 << 20) - 16, &data).unwrap();
    let mut back = vec![0; data.len()];
    card.read(&dram, (2u64 << 20) - 16, &mut back).unwrap();
    assert_eq!(back, data);
    assert!(card.link_mut().bar_read(tilework_abi::tlb::Bar::Bar2, 0, &mut [0; 4]).is_err(), "no window is there");
}

#[test]
fn the_cards_own_counter_is_the_time() {
    let machine = Shared::new(Board::P100);
    let mut card = take(&machine);
    let before = card.cycles();
    card.idle(10_000).unwrap();
    let after = card.measured().unwrap();
    assert!(after >= before + 10_000 && after < before + 30_000, "{before} {after}");
    let base = card.pin(4096, PcieAddr::new(0x4000_0000)).unwrap();
    let error = card.wait_word(base, 0, 5_000).unwrap_err();
    assert!(matches!(error, LinkError::Budget { cycles: 5_000 }), "{error}");
    card.pinned_write(base, &7u32.to_le_bytes()).unwrap();
    assert_eq!(card.wait_word(base, 0, 5_000).unwrap(), 7);
}

#[test]
fn memory_is_pinned_once_and_emptied_when_it_is_pinned_again() {
    for no_iommu in [false, true] {
        let machine = Shared::new(Board::P100);
        machine.0.borrow_mut().no_iommu = no_iommu;
        let mut card = take(&machine);
        let wish = PcieAddr::new(0x4000_0000);
        let first = card.pin(8192, wish).unwrap();
        let second = card.pin(4096, PcieAddr::new(0x4800_0000)).unwrap();
        assert!(second.get() >= first.get() + 8192, "{first} {second}");
        card.pinned_write(first, &[1; 16]).unwrap();
        assert_eq!(card.pin(8192, wish).unwrap(), first);
        let mut bytes = [9; 16];
        card.pinned_read(first, &mut bytes).unwrap();
        assert_eq!(bytes, [0; 16]);
        let past = first.checked_add(8190).unwrap();
        assert!(card.pinned_read(past, &mut [0; 4]).is_err(), "leaves the region");
        drop(card);
        nothing_is_left(&machine);
    }
}

#[test]
fn a_second_client_is_refused_until_the_first_has_ended() {
    let machine = Shared::new(Board::P100);
    let first = take(&machine);
    let error = KmdCard::take(machine.open()).err().unwrap();
    assert!(matches!(error, OpenError::Locked { lock: LOCK }), "{error}");
    assert!(error.to_string().contains("another program has lock 63"), "{error}");
    drop(first);
    drop(take(&machine));
}

#[test]
fn a_driver_that_is_not_known_is_refused() {
    for (version, known) in [([1, 34, 0], false), ([2, 5, 9], false), ([2, 6, 0], true), ([3, 0, 0], false)] {
        let machine = Shared::new(Board::P100);
        machine.0.borrow_mut().version = Some(version);
        match KmdCard::take(machine.open()) {
            Ok(card) => assert!(known && card.driver() == version),
            Err(error) => {
                let [major, minor, patch] = version;
                let said = format!("the kernel driver is tt-kmd {major}.{minor}.{patch} with interface 2");
                assert!(!known && error.to_string().contains(&said), "{error}");
            }
        }
        nothing_is_left(&machine);
    }
}

#[test]
fn a_card_is_left_with_its_cores_held() {
    let machine = Shared::new(Board::P100);
    let mut card = Card::open(take(&machine)).unwrap();
    let all = tiles(Board::P100);
    start(&mut card, &all);
    let mut link = card.into_link();
    link.hold_at_end(all.clone(), all[0]).unwrap();
    let released = link.release();
    assert_eq!((released.held, released.tiles, released.chip_reset, released.left), (all.len(), all.len(), None, 0));
    assert!(released.to_string().ends_with("windows, pinned memory and the lock are free"), "{released}");
    assert!(link.bar_read(tilework_abi::tlb::Bar::Bar0, 0, &mut [0; 4]).is_err(), "it answers nothing more");
    drop(link);
    nothing_is_left(&machine);
    let mut after = Card::open(take(&machine)).unwrap();
    for tile in all {
        assert_eq!(after.read32(&Target::tile(tile), SOFT_RESET_0).unwrap(), SOFT_RESET_ALL_CORES, "{tile}");
    }
}

#[test]
fn a_chip_whose_cores_do_not_stop_is_reset() {
    let machine = Shared::new(Board::P100);
    let mut open = Card::open(take(&machine)).unwrap();
    open.pin(4096, PcieAddr::new(0x4000_0000)).unwrap();
    start(&mut open, &[TILE]);
    let mut card = open.into_link();
    card.hold_at_end(vec![TILE], TILE).unwrap();
    machine.0.borrow_mut().card.stuck = true;
    let released = card.release();
    assert_eq!((released.held, released.chip_reset, machine.0.borrow().card.resets), (0, Some(true), 1), "{released}");
    assert!(released.to_string().starts_with("the chip was reset, since 1 tiles did not stop"), "{released}");
    drop(card);
    nothing_is_left(&machine);
}

#[test]
fn if_the_process_is_killed_the_driver_holds_the_tile_that_talks_to_the_host() {
    let machine = Shared::new(Board::P100);
    let mut card = Card::open(take(&machine)).unwrap();
    start(&mut card, &[TILE]);
    let mut link = card.into_link();
    link.hold_at_end(vec![TILE], TILE).unwrap();
    let wish = machine.0.borrow().cleanup.unwrap();
    assert_eq!((wish.enabled, wish.x, wish.y, wish.noc), (1, TILE.x, TILE.y, 0));
    assert_eq!((wish.addr, wish.data), (SOFT_RESET_0.into(), SOFT_RESET_ALL_CORES.into()));
    link.release();
    assert_eq!(machine.0.borrow().cleanup.unwrap().enabled, 0, "a card that was left needs none");
}

#[test]
fn a_card_that_is_gone_is_told_as_such() {
    let machine = Shared::new(Board::P100);
    let mut card = take(&machine);
    machine.0.borrow_mut().card.gone = true;
    let error = card.idle(100).unwrap_err().to_string();
    assert!(error.contains("does not answer any more"), "{error}");
    assert_eq!(card.measured(), None);
    machine.0.borrow_mut().card.gone = false;
}
