//! Each request of the driver with its results and its errors (tt-kmd `chardev.c`, `memory.c`,
//! `tlb.c`), on a simulated chip.

mod common;

use common::{Memory, Rig, error};
use tilework_abi::tlb::Bar;
use tilework_kmd::layout::{Request, *};
use tilework_kmd::{Errno, FileId, OpenFlags, PAGE, Refusal, Target, UserMemory, telemetry};

const BASE: u64 = Memory::BASE;

#[test]
fn the_card_and_the_driver_say_who_they_are() {
    let mut rig = Rig::new();
    let file = rig.open();
    rig.ask(file, Request::GetDeviceInfo, SizeIn { output_size_bytes: 20 }).unwrap();
    let info: DeviceInfo = rig.answer(4);
    assert_eq!((info.vendor_id, info.device_id, info.subsystem_id), (0x1E52, 0xB140, 0x43));
    assert_eq!((info.bus_dev_fn, info.max_dma_buf_size_log2, info.output_size_bytes), (0x100, 28, 20));
    rig.ask(file, Request::GetDriverInfo, SizeIn { output_size_bytes: 12 }).unwrap();
    let info: DriverInfo = rig.answer(4);
    assert_eq!((info.driver_version, info.driver_version_major), (2, 2));
}

#[test]
fn as_much_is_written_as_is_wanted_and_more_is_cleared() {
    let mut rig = Rig::new();
    let file = rig.open();
    rig.ask(file, Request::GetDeviceInfo, SizeIn { output_size_bytes: 6 }).unwrap();
    assert_eq!(rig.memory.bytes[4..12], [20, 0, 0, 0, 0x52, 0x1E, 0xEE, 0xEE]);
    rig.ask(file, Request::GetDeviceInfo, SizeIn { output_size_bytes: 600 }).unwrap();
    assert!(rig.memory.bytes[24..604].iter().all(|&byte| byte == 0) && rig.memory.bytes[604] == 0xEE);
    let all = SizeIn { output_size_bytes: u32::MAX };
    assert_eq!(rig.ask(file, Request::GetDeviceInfo, all), error(Errno::Fault));
}

#[test]
fn unknown_requests_and_arguments_that_are_not_there_are_refused() {
    let mut rig = Rig::new();
    let file = rig.open();
    let mut raw = |command, at| rig.driver.request(&mut rig.card, &mut rig.memory, file, command, at);
    for command in [0, 0xFA00 | 17, 0xFAFF, 0x5401] {
        assert_eq!(raw(command, BASE), error(Errno::Invalid), "{command:#x}");
    }
    for request in Request::ALL {
        let expected = match request {
            Request::GetHarvesting | Request::FreeDmaBuf => Errno::Invalid,
            _ => Errno::Fault,
        };
        assert_eq!(raw(request.command(), 0), error(expected), "{}", request.name());
    }
    assert_eq!(rig.driver.request(&mut rig.card, &mut rig.memory, FileId::of(99), 0xFA00, BASE), error(Errno::BadFile));
}

#[test]
fn six_mappings_are_told_and_the_rest_is_cleared() {
    let mut rig = Rig::new();
    let file = rig.open();
    rig.ask(file, Request::QueryMappings, QueryMappingsIn { output_mapping_count: 8, reserved: 0 }).unwrap();
    let rows: [MappingOut; 9] = std::array::from_fn(|i| rig.answer(8 + 24 * i));
    for (i, row) in (0u32..).zip(&rows[..6]) {
        assert_eq!((row.mapping_id, row.mapping_base), (i + 1, u64::from(i) << 36));
    }
    assert_eq!(rows.map(|row| row.mapping_size)[..6], [512 << 20, 512 << 20, 1 << 20, 1 << 20, 32 << 30, 32 << 30]);
    assert_eq!(rows[6..8], [MappingOut::default(); 2]);
    assert_eq!(rows[8].mapping_id, 0xEEEE_EEEE, "not asked for");
    let map = |at, len| rig.driver.mapping(file, at, len).map(|mapping| (mapping.target, mapping.combining));
    assert_eq!(map(0x1FC0_0000, 4096), Ok((Target::Bar(Bar::Bar0, 0x1FC0_0000), false)));
    assert_eq!(map(5 << 36 | 4096, 4096), Ok((Target::Bar(Bar::Bar4, 4096), true)));
    for (at, len) in [(512 << 20, 4096), (0x1FFF_F000, 8192), (2 << 36, 2 << 20), (8 << 36, 4096), (u64::MAX, 4096)] {
        assert_eq!(map(at, len), Err(Errno::Invalid), "{at:#x}");
    }
}

fn window(rig: &mut Rig, file: FileId, size: u64) -> Result<AllocateTlbOut, Refusal> {
    rig.ask(file, Request::AllocateTlb, AllocateTlbIn { size, reserved: 0 })?;
    Ok(rig.answer(16))
}

#[test]
fn there_are_201_small_and_8_large_windows() {
    let mut rig = Rig::new();
    let (file, other) = (rig.open(), rig.open());
    for id in 0..201 {
        let out = window(&mut rig, file, 2 << 20).unwrap();
        assert_eq!((out.id, out.mmap_offset_uc), (id, 6 << 36 | u64::from(id) << 21));
        assert_eq!(out.mmap_offset_wc, 7 << 36 | u64::from(id) << 21);
    }
    assert_eq!(window(&mut rig, other, 2 << 20), Err(Errno::NoMemory.into()), "the last is the driver's own");
    for id in 202..210 {
        let out = window(&mut rig, other, 4 << 30).unwrap();
        assert_eq!((out.id, out.mmap_offset_uc), (id, (6 << 36) + (512 << 20) + (u64::from(id - 202) << 32)));
    }
    assert_eq!(window(&mut rig, file, 4 << 30), Err(Errno::NoMemory.into()));
    for size in [0, 4096, 1 << 20, 16 << 20] {
        assert_eq!(window(&mut rig, file, size), Err(Errno::Invalid.into()));
    }
    rig.close(file);
    assert_eq!(window(&mut rig, other, 2 << 20).unwrap().id, 0, "a closed file gives its windows back");
}

#[test]
fn a_window_is_its_owners_and_is_not_freed_while_it_is_mapped() {
    let mut rig = Rig::new();
    let (file, other) = (rig.open(), rig.open());
    let out = window(&mut rig, file, 2 << 20).unwrap();
    let mapping = rig.driver.mapping(file, out.mmap_offset_wc, 2 << 20).unwrap();
    assert_eq!((mapping.target, mapping.combining), (Target::Window(0, Bar::Bar0, 0), true));
    assert_eq!(rig.driver.mapping(other, out.mmap_offset_uc, 2 << 20), Err(Errno::NotOwned));
    assert_eq!(rig.driver.mapping(file, out.mmap_offset_uc + 4096, 4096), Err(Errno::Invalid), "not its start");
    assert_eq!(rig.driver.mapping(file, out.mmap_offset_uc, 4 << 20), Err(Errno::Invalid), "larger than it");
    rig.driver.mapped(file, mapping.target);
    assert_eq!(rig.ask(file, Request::FreeTlb, FreeTlbIn { id: 0 }), error(Errno::Busy));
    assert_eq!(rig.ask(other, Request::FreeTlb, FreeTlbIn { id: 0 }), error(Errno::NotOwned));
    assert_eq!(rig.ask(file, Request::FreeTlb, FreeTlbIn { id: 256 }), error(Errno::Invalid));
    rig.driver.unmapped(&mut rig.card, &mut rig.memory, file, mapping.target);
    rig.ask(file, Request::FreeTlb, FreeTlbIn { id: 0 }).unwrap();
    assert_eq!(rig.ask(file, Request::FreeTlb, FreeTlbIn { id: 0 }), error(Errno::NotOwned));
}

#[test]
fn a_window_shows_the_tile_that_it_is_aimed_at() {
    let mut rig = Rig::new();
    let file = rig.open();
    let (small, large) = (window(&mut rig, file, 2 << 20).unwrap().id, window(&mut rig, file, 4 << 30).unwrap().id);
    let aim = |id, addr| ConfigureTlbIn { id, addr, x_end: 1, y_end: 2, ordering: 1, ..Default::default() };
    rig.ask(file, Request::ConfigureTlb, aim(small, 0)).unwrap();
    rig.ask(file, Request::ConfigureTlb, aim(large, 0)).unwrap();
    rig.card.chip.bar_write(Bar::Bar0, 0x100, b"hello, L1").unwrap();
    let mut seen = [0; 9];
    rig.card.chip.bar_read(Bar::Bar4, 0x100, &mut seen).unwrap();
    assert_eq!(&seen, b"hello, L1");
    for (id, addr) in [(small, 4096), (large, 2 << 20)] {
        assert_eq!(rig.ask(file, Request::ConfigureTlb, aim(id, addr)), error(Errno::Invalid), "not aligned");
    }
    assert_eq!(rig.ask(file, Request::ConfigureTlb, aim(5, 0)), error(Errno::NotOwned));
    assert_eq!(rig.ask(file, Request::ConfigureTlb, aim(300, 0)), error(Errno::Invalid));
}

fn pin(flags: u32, at: u64, size: u64) -> PinIn {
    PinIn { output_size_bytes: 16, flags, virtual_address: BASE + at, size }
}

#[test]
fn pinned_pages_get_bus_addresses_and_noc_addresses() {
    let mut rig = Rig::new();
    let file = rig.open();
    let mut take = |wanted| rig.ask(file, Request::PinPages, wanted).map(|()| rig.answer::<PinOut>(24));
    let bare = take(pin(0, PAGE, 2 * PAGE)).unwrap();
    assert_eq!(bare.noc_address, 0);
    assert_eq!(take(pin(PIN_NOC, 4 * PAGE, PAGE)).unwrap().noc_address, 1 << 60);
    assert_eq!(take(pin(PIN_NOC, 5 * PAGE, PAGE)).unwrap().noc_address, 1 << 60 | PAGE);
    let top = take(pin(PIN_NOC_TOP_DOWN, 6 * PAGE, PAGE)).unwrap();
    assert_eq!(top.noc_address, (1 << 60) + (1 << 58) - PAGE);
    let bus = rig.driver.bus();
    let at = bare.physical_address;
    assert_eq!(bus.find(at + 5, 8, true), Some(BASE + PAGE + 5));
    assert_eq!(bus.find(at + 2 * PAGE - 4, 8, false), None, "past its end");
    assert_eq!((bus.find(at - 1, 1, false), bus.find(0, 1, false)), (None, None));
}

#[test]
fn what_cannot_be_pinned_is_refused() {
    let mut rig = Rig::new();
    let file = rig.open();
    for (wanted, errno) in [
        (pin(16, 0, PAGE), Errno::Invalid),
        (pin(0, 1, PAGE), Errno::Invalid),
        (pin(0, 0, PAGE + 1), Errno::Invalid),
        (pin(0, 0, 0), Errno::Invalid),
        (pin(0, 0, Memory::SIZE + PAGE), Errno::Fault),
        (PinIn { virtual_address: 0u64.wrapping_sub(PAGE), ..pin(0, 0, 2 * PAGE) }, Errno::Fault),
    ] {
        assert_eq!(rig.ask(file, Request::PinPages, wanted), error(errno), "{wanted:?}");
    }
    rig.ask(file, Request::PinPages, pin(PIN_CONTIGUOUS, 0, PAGE)).unwrap();
    assert_eq!(rig.ask(file, Request::PinPages, pin(0, 0, PAGE)), error(Errno::Exists));
    for i in 1..17 {
        rig.ask(file, Request::PinPages, pin(PIN_NOC, i * PAGE, PAGE)).unwrap();
    }
    assert_eq!(rig.ask(file, Request::PinPages, pin(PIN_NOC, 40 * PAGE, PAGE)), error(Errno::NoSpace), "16 regions");
    rig.memory.read_only = true;
    assert_eq!(rig.ask(file, Request::PinPages, pin(0, 50 * PAGE, PAGE)), error(Errno::Fault));
    rig.ask(file, Request::PinPages, pin(PIN_READ_ONLY, 50 * PAGE, PAGE)).unwrap();
    let out: PinOut = rig.answer(24);
    let bus = rig.driver.bus();
    assert_eq!(bus.find(out.physical_address, 4, true), None, "the device may not write it");
    assert_eq!(bus.find(out.physical_address, 4, false), Some(BASE + 50 * PAGE));
}

#[test]
fn a_pin_ends_by_its_address_and_size() {
    let mut rig = Rig::new();
    let file = rig.open();
    rig.ask(file, Request::PinPages, pin(PIN_NOC, 0, 2 * PAGE)).unwrap();
    let out: PinOut = rig.answer(24);
    let unpin = |at, size, reserved| UnpinIn { virtual_address: BASE + at, size, reserved };
    for wrong in [unpin(0, PAGE, 0), unpin(PAGE, PAGE, 0), unpin(0, 2 * PAGE, 1), unpin(0, 0, 0), unpin(0, 9, 0)] {
        assert_eq!(rig.ask(file, Request::UnpinPages, wrong), error(Errno::Invalid), "{wrong:?}");
    }
    rig.ask(file, Request::UnpinPages, unpin(0, 2 * PAGE, 0)).unwrap();
    assert_eq!(rig.driver.bus().find(out.physical_address, 1, false), None);
    rig.ask(file, Request::PinPages, pin(PIN_NOC, 0, 2 * PAGE)).unwrap();
    assert_eq!(rig.answer::<PinOut>(24).noc_address, out.noc_address, "its region is free again");
}

#[test]
fn dma_buffers_are_the_drivers_memory() {
    let mut rig = Rig::new();
    let file = rig.open();
    let buffer =
        |size, buf_index, flags| AllocateDmaBufIn { requested_size: size, buf_index, flags, ..Default::default() };
    rig.ask(file, Request::AllocateDmaBuf, buffer(8192, 3, DMA_BUF_NOC)).unwrap();
    let out: AllocateDmaBufOut = rig.answer(24);
    assert_eq!((out.size, out.mapping_offset), (8192, (0xF00 + 3) << 32));
    assert_eq!(out.noc_address, (1 << 60) + (1 << 58) - 8192);
    let (address, _) = rig.memory.buffers[0];
    assert_eq!(rig.driver.bus().find(out.physical_address + 8188, 4, true), Some(address + 8188));
    let mapping = rig.driver.mapping(file, out.mapping_offset + 4096, 4096).unwrap();
    assert_eq!(mapping.target, Target::Memory(address + 4096));
    assert_eq!(rig.driver.mapping(file, out.mapping_offset, 12288), Err(Errno::Invalid));
    for wrong in [buffer(8192, 3, 0), buffer(0, 4, 0), buffer(100, 4, 0), buffer((1 << 28) + 4096, 4, 0)] {
        assert_eq!(rig.ask(file, Request::AllocateDmaBuf, wrong), error(Errno::Invalid), "{wrong:?}");
    }
    assert_eq!(rig.ask(file, Request::FreeDmaBuf, 0u32), error(Errno::Invalid));
    rig.driver.mapped(file, mapping.target);
    rig.close(file);
    assert_eq!(rig.memory.buffers.len(), 1, "a mapping keeps the file");
    rig.driver.unmapped(&mut rig.card, &mut rig.memory, file, mapping.target);
    assert!(rig.memory.buffers.is_empty() && !rig.driver.is_open());
}

#[test]
fn locks_are_held_by_one_file() {
    let mut rig = Rig::new();
    let (file, other) = (rig.open(), rig.open());
    let lock = |flags, index| LockIn { output_size_bytes: 4, flags, index, reserved: [0; 3] };
    let mut ask = |file, flags, index| {
        rig.ask(file, Request::LockCtl, lock(flags, index)).map(|()| rig.answer::<LockOut>(12).value)
    };
    assert_eq!(ask(file, lock::ACQUIRE, 5), Ok(1));
    assert_eq!(ask(other, lock::ACQUIRE, 5), Ok(0));
    assert_eq!((ask(file, lock::TEST, 5), ask(other, lock::TEST, 5), ask(other, lock::TEST, 6)), (Ok(3), Ok(2), Ok(0)));
    assert_eq!(ask(other, lock::RELEASE, 5), Ok(0), "not its own");
    assert_eq!(ask(other, lock::ACQUIRE_BLOCKING, 5), Err(Refusal::Wait));
    assert_eq!(ask(file, lock::RELEASE, 5), Ok(1));
    assert_eq!(ask(other, lock::ACQUIRE_BLOCKING, 5), Ok(1));
    assert_eq!(ask(file, 4, 5), Err(Errno::Invalid.into()));
    assert_eq!(ask(file, lock::ACQUIRE, 64), Err(Errno::Invalid.into()));
    rig.close(other);
    rig.ask(file, Request::LockCtl, lock(lock::ACQUIRE, 5)).unwrap();
    assert_eq!(rig.answer::<LockOut>(12).value, 1, "a closed file gives its locks back");
}

#[test]
fn a_file_that_wants_the_device_alone_gets_it_alone() {
    let mut rig = Rig::new();
    let alone = OpenFlags { exclusive: true, ..Default::default() };
    let file = rig.open();
    assert_eq!(rig.open_with(alone), Err(Refusal::Wait));
    assert_eq!(rig.open_with(OpenFlags { nonblocking: true, ..alone }), Err(Errno::Again.into()));
    rig.close(file);
    let file = rig.open_with(alone).unwrap();
    assert_eq!(rig.open_with(OpenFlags::default()), Err(Refusal::Wait));
    rig.close(file);
    rig.open();
}

fn power(validity: u8, power_flags: u16) -> PowerState {
    PowerState { argsz: 40, validity, power_flags, ..Default::default() }
}

#[test]
fn the_ai_clock_follows_what_all_open_files_need() {
    let mut rig = Rig::new();
    let clock = |rig: &mut Rig| telemetry(&mut rig.card)[&14];
    let file = rig.open();
    assert_eq!(clock(&mut rig), 800, "a client that knows nothing of power: everything but the AI clock");
    let aware = rig.open_with(OpenFlags { knows_power: true, ..Default::default() }).unwrap();
    rig.ask(aware, Request::SetPowerState, power(power_validity(1, 0), 1)).unwrap();
    assert_eq!(clock(&mut rig), 1350);
    rig.ask(file, Request::SetPowerState, power(power_validity(15, 0), 0)).unwrap();
    assert_eq!(clock(&mut rig), 1350, "another still needs it");
    rig.close(aware);
    assert_eq!(clock(&mut rig), 800);
    for wrong in [
        PowerState { argsz: 39, ..power(1, 1) },
        PowerState { flags: 1, ..power(1, 1) },
        PowerState { reserved0: 1, ..power(1, 1) },
        power(0xF0, 1),
    ] {
        assert_eq!(rig.ask(file, Request::SetPowerState, wrong), error(Errno::Invalid));
    }
}

#[test]
fn a_file_leaves_a_last_wish() {
    let mut rig = Rig::new();
    let (file, other) = (rig.open(), rig.open());
    let wish =
        NocCleanup { argsz: 32, enabled: 1, x: 1, y: 2, addr: 0x200, data: 0xAAAA_BBBB_CCCC, ..Default::default() };
    rig.ask(file, Request::SetNocCleanup, wish).unwrap();
    for wrong in [
        NocCleanup { argsz: 31, ..wish },
        NocCleanup { flags: 1, ..wish },
        NocCleanup { enabled: 2, ..wish },
        NocCleanup { addr: 2, ..wish },
        NocCleanup { noc: 2, ..wish },
        NocCleanup { x: 65, ..wish },
    ] {
        assert_eq!(rig.ask(other, Request::SetNocCleanup, wrong), error(Errno::Invalid));
    }
    rig.close(file);
    let id = window(&mut rig, other, 2 << 20).unwrap().id;
    let aim = ConfigureTlbIn { id, x_end: 1, y_end: 2, ..Default::default() };
    rig.ask(other, Request::ConfigureTlb, aim).unwrap();
    let mut word = [0; 4];
    rig.card.chip.bar_read(Bar::Bar0, 0x200, &mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), 0xBBBB_CCCC);
}

#[test]
fn a_reset_makes_other_files_invalid_and_the_chip_new() {
    let mut rig = Rig::new();
    let (file, other) = (rig.open(), rig.open());
    let id = window(&mut rig, other, 2 << 20).unwrap().id;
    let step = |flags| ResetIn { output_size_bytes: 8, flags };
    rig.ask(file, Request::ResetDevice, step(reset::ASIC)).unwrap();
    assert_eq!((rig.answer::<ResetOut>(8).result, rig.card.resets), (0, 1));
    let size = SizeIn { output_size_bytes: 20 };
    assert_eq!(rig.ask(other, Request::GetDeviceInfo, size), error(Errno::Gone));
    assert_eq!(rig.driver.mapping(other, 0, 4096), Err(Errno::Gone));
    assert!(!rig.driver.shows(other) && rig.driver.shows(file));
    // Until the reset is ended, only information and resets are served.
    rig.ask(file, Request::GetDeviceInfo, size).unwrap();
    assert_eq!(window(&mut rig, file, 2 << 20), Err(Errno::Gone.into()));
    rig.ask(file, Request::ResetDevice, step(reset::POST)).unwrap();
    assert_eq!(rig.answer::<ResetOut>(8).result, 0);
    assert_eq!(window(&mut rig, file, 2 << 20).unwrap().id, id, "the invalid file's window is free");
    assert_eq!(rig.ask(file, Request::ResetDevice, step(7)), error(Errno::Invalid));
    // A reset that the caller wants to do itself, and does not: the mark is still there.
    rig.ask(file, Request::ResetDevice, step(reset::USER)).unwrap();
    rig.ask(file, Request::ResetDevice, step(reset::POST)).unwrap();
    assert_eq!((rig.answer::<ResetOut>(8).result, rig.card.resets), (1, 1));
    rig.close(other);
}

#[test]
fn what_needs_another_device_is_refused() {
    let mut rig = Rig::new();
    let file = rig.open();
    let peer = PeerBarIn { peer_bar_length: 4096, ..Default::default() };
    assert_eq!(rig.ask(file, Request::MapPeerBar, peer), error(Errno::Invalid));
    let tlb_id = window(&mut rig, file, 2 << 20).unwrap().id;
    let export = ExportTlb { argsz: 32, tlb_id, ..Default::default() };
    for (wanted, errno) in [
        (export, Errno::Unsupported),
        (ExportTlb { argsz: 8, ..export }, Errno::Invalid),
        (ExportTlb { flags: 1, ..export }, Errno::Invalid),
        (ExportTlb { offset: 5, ..export }, Errno::Invalid),
        (ExportTlb { tlb_id: 9, ..export }, Errno::NotOwned),
        (ExportTlb { tlb_id: 256, ..export }, Errno::Invalid),
    ] {
        assert_eq!(rig.ask(file, Request::ExportTlbDmabuf, wanted), error(errno));
    }
}

#[test]
fn a_window_is_not_taken_when_its_number_cannot_be_told() {
    let mut rig = Rig::new();
    let file = rig.open();
    let at = BASE + Memory::SIZE - 16;
    rig.memory.write(at, &[0; 16]).unwrap();
    rig.memory.write(at, &(2u64 << 20).to_le_bytes()).unwrap();
    let command = Request::AllocateTlb.command();
    assert_eq!(rig.driver.request(&mut rig.card, &mut rig.memory, file, command, at), error(Errno::Fault));
    assert_eq!(window(&mut rig, file, 2 << 20).unwrap().id, 0);
}
