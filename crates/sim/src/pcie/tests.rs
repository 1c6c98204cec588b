//! The PCIe tile between host memory and the NoCs.

use super::*;
use crate::noc::Dest;
use crate::probe::RequestId;
use proptest::prelude::*;
use tilework_abi::board;
use tilework_abi::noc::NocXy;

const PCIE: Place = Place { node: 0, x: 2, y: 0 };
const CORE: Place = Place { node: 1, x: 1, y: 2 };
const CORE2: Place = Place { node: 2, x: 2, y: 2 };
const ARC: Place = Place { node: 3, x: 8, y: 0 };
const REPLY: Reply = Reply { to: CORE, trid: 5, addr: 0x4000 };
const BASE: u64 = 0x4000_0000;
const HOST: u64 = 1 << 60;

fn tile() -> Pcie {
    let grid = Grid::builder()
        .add(PCIE, board::PCIE)
        .add(ARC, board::ARC)
        .add(CORE, NocXy::new(1, 2))
        .add(CORE2, NocXy::new(2, 2));
    let mut pcie = Pcie::new(PCIE, Arc::new(grid.build().unwrap()));
    pcie.pin(BASE, 0x1000).unwrap();
    pcie
}

fn words(words: [u32; 3]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

/// Points small window `index` at the tile (1,2) with the given ordering bits; register words
/// worked out by hand.
fn aim(pcie: &mut Pcie, index: u64, address: u64, ordering: u32) {
    // 2 MiB window: address >> 21 in bits 0..42, x_end at 43 (bit 11 of the second word), y_end at
    // 49 (bit 17), noc at 67, multicast at 69 (bit 5 of the third word), ordering at 70 (bit 6).
    let field = address >> 21;
    let regs = [field as u32, (field >> 32) as u32 | 1 << 11 | 2 << 17, ordering << 6];
    pcie.host_write(0, Bar::Bar0, 0x1FC0_0000 + 12 * index, &words(regs)).unwrap();
}

fn run(pcie: &mut Pcie) -> Result<Vec<(Cycle, Packet)>, Fault> {
    let (mut out, mut all) = (Outbox::default(), Vec::new());
    while pcie.next() < NEVER {
        pcie.run(NEVER, &mut out)?;
        all.extend(out.take_all().into_iter().map(|d| (d.at, *d.packet)));
    }
    Ok(all)
}

fn from_core(body: Body) -> Packet {
    Packet { noc: 1, from: CORE, to: Dest::Unicast(PCIE), id: RequestId::default(), body }
}

#[test]
fn a_store_through_a_small_window_becomes_a_write_to_the_tile() {
    let mut p = tile();
    aim(&mut p, 3, 0xFFA0_0000, 0);
    let offset = 3 * 0x20_0000 + 0x11_21B0;
    p.host_write(1000, Bar::Bar0, offset, &[1, 2, 3, 4]).unwrap();
    let left = run(&mut p).unwrap();
    let [(at, packet)] = &left[..] else { panic!("{left:?}") };
    assert_eq!((packet.noc, packet.from, &packet.to), (0, PCIE, &Dest::Unicast(CORE)));
    let Body::WriteRequest { addr, data, mask: None, reply: Some(reply) } = &packet.body else {
        panic!("{:?}", packet.body)
    };
    assert_eq!((*addr, &data[..]), (0xFFB1_21B0, &[1, 2, 3, 4][..]));
    assert_eq!(reply.to, PCIE);
    // Four bytes at 430 bytes per 27 cycles round up to one cycle.
    assert_eq!(*at, 1000 + 1 + timing::PCIE_HOST_ONE_WAY);
    assert_eq!(p.bytes_to_device(), 12 + 4);
}

#[test]
fn registers_read_back_and_take_effect_in_order() {
    let mut p = tile();
    aim(&mut p, 0, 0, 2);
    p.host_write(10, Bar::Bar0, 0x100, &[1]).unwrap();
    aim(&mut p, 0, 0x20_0000, 2);
    p.host_write(10, Bar::Bar0, 0x100, &[2]).unwrap();
    let addrs: Vec<_> = run(&mut p)
        .unwrap()
        .into_iter()
        .map(|(_, packet)| match packet.body {
            Body::WriteRequest { addr, reply: None, .. } => addr,
            body => panic!("not posted: {body:?}"),
        })
        .collect();
    assert_eq!(addrs, [0x100, 0x20_0100]);
    let ticket = p.host_read(50, Bar::Bar0, 0x1FC0_0000, 8).unwrap();
    let (at, data) = p.take_read(ticket).unwrap();
    let data = data.unwrap();
    assert_eq!(at, 50 + 2 * timing::PCIE_HOST_ONE_WAY);
    assert_eq!(data, [1, 0, 0, 0, 0, 0x08, 0x04, 0]);
    assert_eq!(p.take_read(ticket), None, "a ticket gives its data once");
}

#[test]
fn a_large_window_reaches_four_gigabytes() {
    let mut p = tile();
    // 4 GiB window: x_end at bit 32, y_end at 38, noc at 56 (bit 24 of the second word), ordering
    // at 59.
    let regs = words([7, 1 | 2 << 6 | 1 << 24 | 2 << 27, 0]);
    p.host_write(0, Bar::Bar0, 0x1FC0_0000 + 12 * 203, &regs).unwrap();
    p.host_write(0, Bar::Bar4, (1 << 32) + 0xFFFF_FFF0, &[9; 16]).unwrap();
    let left = run(&mut p).unwrap();
    assert_eq!(left[0].1.noc, 1);
    assert!(matches!(left[0].1.body, Body::WriteRequest { addr: 0x7_FFFF_FFF0, reply: None, .. }));
}

#[test]
fn a_multicast_window_reaches_the_rectangle_and_cannot_be_read() {
    let mut p = tile();
    // End (2,2), start (1,2): x_start at bit 55 (23 of the second word), y_start at 61 (29,
    // straddling into the third word).
    let regs = words([0, 2 << 11 | 2 << 17 | 1 << 23 | 2 << 29, 1 << 5]);
    p.host_write(0, Bar::Bar0, 0x1FC0_0000, &regs).unwrap();
    p.host_write(0, Bar::Bar0, 0, &[1]).unwrap();
    let left = run(&mut p).unwrap();
    assert_eq!(left[0].1.to, Dest::Multicast(Arc::from([CORE, CORE2])));
    assert_eq!(p.unacked, 2);
    let fault = p.host_read(0, Bar::Bar0, 0, 4).unwrap_err();
    assert_eq!(fault.class, FaultClass::UnsupportedFunctionality);
}

#[test]
fn a_long_store_is_split_at_packets_and_window_ends() {
    let mut p = tile();
    aim(&mut p, 0, 0, 2);
    aim(&mut p, 1, 0x60_0000, 2);
    p.host_write(0, Bar::Bar0, 0x20_0000 - 20000, &[7; 20100]).unwrap();
    let sizes: Vec<_> = run(&mut p)
        .unwrap()
        .into_iter()
        .map(|(_, packet)| match packet.body {
            Body::WriteRequest { addr, data, .. } => (addr, data.len()),
            body => panic!("{body:?}"),
        })
        .collect();
    let start = 0x20_0000 - 20000;
    assert_eq!(sizes, [(start, 16384), (start + 16384, 3616), (0x60_0000, 100)]);
}

#[test]
fn a_load_waits_for_acknowledgements_and_takes_a_round_trip() {
    let mut p = tile();
    aim(&mut p, 0, 0, 0);
    p.host_write(0, Bar::Bar0, 0, &[1; 4]).unwrap();
    let ticket = p.host_read(0, Bar::Bar0, 8, 4).unwrap();
    let left = run(&mut p).unwrap();
    assert_eq!(left.len(), 1, "the load waits");
    p.deliver(
        5000,
        Packet {
            noc: 0,
            from: CORE,
            to: Dest::Unicast(PCIE),
            id: RequestId::default(),
            body: Body::WriteAck { reply: Reply { to: PCIE, trid: 0, addr: 0 } },
        },
    );
    let left = run(&mut p).unwrap();
    let [(5000, Packet { body: Body::ReadRequest { addr: 8, len: 4, reply }, .. })] = left[..] else {
        panic!("{left:?}")
    };
    assert_eq!(p.take_read(ticket), None);
    p.deliver(6000, from_core(Body::ReadResponse { reply, data: Data::from([1, 2, 3, 4]) }));
    assert!(run(&mut p).unwrap().is_empty());
    assert_eq!(p.take_read(ticket), Some((6000 + timing::PCIE_HOST_ONE_WAY, Ok(vec![1, 2, 3, 4]))));
}

#[test]
fn a_strict_store_waits_for_the_one_before() {
    let mut p = tile();
    aim(&mut p, 0, 0, 1);
    p.host_write(0, Bar::Bar0, 0, &[1; 4]).unwrap();
    p.host_write(0, Bar::Bar0, 4, &[2; 4]).unwrap();
    assert_eq!(run(&mut p).unwrap().len(), 1);
    p.deliver(9000, from_core(Body::WriteAck { reply: Reply { to: PCIE, trid: 0, addr: 0 } }));
    assert_eq!(run(&mut p).unwrap()[0].0, 9000);
}

#[test]
fn the_device_reads_and_writes_pinned_memory_up_to_its_edges() {
    let mut p = tile();
    p.host_memory_mut().write(BASE, &[1, 2, 3, 4]).unwrap();
    p.host_memory_mut().write(BASE + 0xFFC, &[5, 6, 7, 8]).unwrap();
    for addr in [BASE, BASE + 0xFFC] {
        p.deliver(100, from_core(Body::ReadRequest { addr: addr | HOST, len: 4, reply: REPLY }));
    }
    let left = run(&mut p).unwrap();
    let data: Vec<_> = left
        .iter()
        .map(|(at, packet)| match &packet.body {
            Body::ReadResponse { reply, data } if *reply == REPLY && packet.noc == 1 => (*at, data.to_vec()),
            body => panic!("{body:?}"),
        })
        .collect();
    assert_eq!(data[0].1, [1, 2, 3, 4]);
    assert_eq!(data[1].1, [5, 6, 7, 8]);
    assert_eq!(data[0].0, 100 + 2 * timing::PCIE_MEMORY_ONE_WAY);

    let write = |addr, mask| from_core(Body::WriteRequest { addr, data: Data::from([9; 4]), mask, reply: Some(REPLY) });
    p.deliver(2000, write((BASE + 0xFFC) | HOST, Some(0b0101)));
    let left = run(&mut p).unwrap();
    assert_eq!(left[0].1.body, Body::WriteAck { reply: REPLY });
    let mut got = [0; 4];
    p.host_memory().read(BASE + 0xFFC, &mut got).unwrap();
    assert_eq!(got, [9, 6, 9, 8]);
    assert_eq!(p.device_writes(), 1);
    let seen = p.last_device_write();
    assert!(seen > left[0].0, "the acknowledgement comes from the controller, before host memory has the data");
    assert_eq!((p.last_write_to(BASE + 0xFFF, 1), p.last_write_to(BASE + 0xFF8, 4)), (Some(seen), None));
    assert_eq!((p.bytes_to_host(), p.bytes_to_device()), (4, 8));

    for addr in [BASE + 0xFFD, BASE - 1, 0] {
        let mut p = tile();
        p.deliver(7, write(addr | HOST, None));
        let fault = run(&mut p).unwrap_err();
        assert_eq!(
            (fault.class, fault.site.addr, fault.site.cycle),
            (FaultClass::UndefinedBehavior, Some(addr), Some(7))
        );
        p.deliver(7, from_core(Body::ReadRequest { addr: addr | HOST, len: 4, reply: REPLY }));
        assert_eq!(run(&mut p).unwrap_err().site.addr, Some(addr));
    }
    for addr in [BASE, HOST << 2, HOST << 1] {
        let mut p = tile();
        p.deliver(7, write(addr, None));
        assert_eq!(run(&mut p).unwrap_err().class, FaultClass::MissingSpecification);
    }
}

/// What was written, by bus address.
type Writes = Vec<(u64, Vec<u8>)>;

/// A host's own memory, which keeps what was written.
#[derive(Clone, Default)]
struct Bus(std::sync::Arc<std::sync::Mutex<Writes>>);

impl HostBus for Bus {
    fn read(&self, addr: u64, out: &mut [u8]) {
        out.fill(addr as u8);
    }
    fn write(&self, addr: u64, data: &[u8]) {
        self.0.lock().unwrap().push((addr, data.to_vec()));
    }
}

#[test]
fn a_bus_address_without_bit_60_reaches_the_host_past_the_address_translation() {
    let mut p = tile();
    let bus = Bus::default();
    p.host_memory_mut().attach(Box::new(bus.clone()));
    // Region 0 of the address translation: 1 MiB at zero to 7 GiB.
    for (at, value) in [(0x14, 0xC000_0000), (0x18, 1), (0x10, 0xF_FFFF), (4, 1 << 31)] {
        p.host_write(0, Bar::Bar2, 0x1000 + at, &u32::to_le_bytes(value)).unwrap();
    }
    let write = |addr| from_core(Body::WriteRequest { addr, data: Data::from([9; 4]), mask: None, reply: None });
    for addr in [0x40, HOST | 0x40, 1 << 58 | 0x40, HOST | 1 << 58 | 0x40, 0x10_8000_0000] {
        p.deliver(2000, write(addr));
        run(&mut p).unwrap();
    }
    let seen: Vec<_> = bus.0.lock().unwrap().iter().map(|&(addr, _)| addr).collect();
    assert_eq!(seen, [0x40, 0x1_C000_0040, 0x40, 0x1_C000_0040, 0x10_8000_0000]);
}

#[test]
fn large_device_reads_run_at_the_speed_of_the_link() {
    let mut p = tile();
    p.pin(0x8000_0000, 1 << 20).unwrap();
    for i in 0..64 {
        p.deliver(0, from_core(Body::ReadRequest { addr: HOST | (0x8000_0000 + i * 16384), len: 16384, reply: REPLY }));
    }
    let left = run(&mut p).unwrap();
    let last = left.iter().map(|(at, packet)| at + packet.body.data_flits()).max().unwrap();
    let cycles = last - 2 * timing::PCIE_MEMORY_ONE_WAY;
    // 1 MiB in 8192 payloads of 128 + 20 bytes at 1260 bytes per 27 cycles: 54.5 GB/s.
    assert_eq!(cycles, (8192u64 * 148 * 27).div_ceil(1260));
}

#[test]
fn bad_host_accesses_are_faults_and_do_nothing() {
    let mut p = tile();
    let cases = [
        (Bar::Bar0, 0, FaultClass::UndefinedBehavior), // window 0 was never configured
        (Bar::Bar0, 512 << 20, FaultClass::UndefinedBehavior), // outside
        (Bar::Bar4, 32 << 30, FaultClass::UndefinedBehavior), // outside
        (Bar::Bar0, 0x1940_0000, FaultClass::MissingSpecification), // past the windows
        (Bar::Bar0, 0x1FC0_0002, FaultClass::UnsupportedFunctionality), // part of a register
        (Bar::Bar0, 0x1FC0_09D8, FaultClass::UnimplementedFunctionality), // strided multicast
        (Bar::Bar0, 0x1FD0_4044, FaultClass::UnsupportedFunctionality), // read only
        (Bar::Bar0, u64::MAX, FaultClass::UndefinedBehavior),
    ];
    for (bar, offset, class) in cases {
        let fault = p.host_write(0, bar, offset, &[1, 2, 3, 4]).unwrap_err();
        assert_eq!(fault.class, class, "{offset:#x}: {fault}");
    }
    aim(&mut p, 0, 0, 3);
    assert!(p.host_write(0, Bar::Bar0, 0, &[1]).unwrap_err().what.contains("ordering"));
    // A window onto (0,0), where this grid has no tile.
    p.host_write(0, Bar::Bar0, 0x1FC0_0000, &[0; 12]).unwrap();
    assert!(p.host_write(0, Bar::Bar0, 0, &[1]).unwrap_err().what.contains("(0,0)"));
    // The second half of the store would leave the configured window: none of it takes effect.
    aim(&mut p, 0, 0, 0);
    assert!(p.host_write(0, Bar::Bar0, 0x20_0000 - 4, &[1; 8]).is_err());
    assert!(run(&mut p).unwrap().is_empty());
}

#[test]
fn a_driver_finds_the_tile_and_the_arc_in_bar0() {
    let mut p = tile();
    let ticket = p.host_read(0, Bar::Bar0, 0x1FD0_4044, 4).unwrap();
    let (_, data) = p.take_read(ticket).unwrap();
    let data = data.unwrap();
    let id = u32::from_le_bytes(data.try_into().unwrap());
    assert_eq!((id & 63, id >> 6 & 63, id >> 12 & 127, id >> 19 & 127), (2, 0, 17, 12));
    // NIU_CFG_0 says that coordinates are translated, NOC_ID_LOGICAL where the tile is then (tt-umd
    // `get_noc_translation_enabled`).
    for (offset, mask, value) in
        [(0x1FD0_4100, 1 << 14, 1 << 14), (0x1FD1_4100, 1 << 14, 1 << 14), (0x1FD0_4148, 0xFFF, 24 << 6 | 19)]
    {
        let ticket = p.host_read(0, Bar::Bar0, offset, 4).unwrap();
        let (_, data) = p.take_read(ticket).unwrap();
        let data = data.unwrap();
        assert_eq!(u32::from_le_bytes(data.try_into().unwrap()) & mask, value, "{offset:#x}");
    }
    p.host_read(0, Bar::Bar0, 0x1FF3_0434, 4).unwrap();
    let left = run(&mut p).unwrap();
    assert_eq!(left[0].1.to, Dest::Unicast(ARC));
    assert!(matches!(left[0].1.body, Body::ReadRequest { addr: 0x8003_0434, len: 4, .. }));
}

#[test]
fn regions_are_pinned_once() {
    let mut p = tile();
    assert!(p.pin(BASE + 0xFFF, 1).is_err(), "overlaps");
    assert!(p.pin(BASE - 1, 2).is_err(), "overlaps");
    assert!(p.pin(0, 0).is_err(), "empty");
    assert!(p.pin((1 << 58) - 1, 2).is_err(), "reaches bit 58");
    p.pin(BASE + 0x1000, 8).unwrap();
    assert!(p.host_memory().check(BASE + 0xFFC, 8).is_err(), "two regions are not one");
    // The same region again is empty; others keep what they hold.
    for at in [BASE + 0x1000, BASE] {
        p.host_memory_mut().write(at, &[7; 4]).unwrap();
    }
    p.pin(BASE + 0x1000, 8).unwrap();
    let mut found = [[1; 4]; 2];
    p.host_memory().read(BASE + 0x1000, &mut found[0]).unwrap();
    p.host_memory().read(BASE, &mut found[1]).unwrap();
    assert_eq!(found, [[0; 4], [7; 4]]);
    assert_eq!(p.host_memory().regions().collect::<Vec<_>>(), [(BASE, 0x1000), (BASE + 0x1000, 8)]);
}

#[test]
fn answers_that_nobody_asked_for_are_faults() {
    for body in [
        Body::WriteAck { reply: REPLY },
        Body::ReadResponse { reply: REPLY, data: Data::from([0; 4]) },
        Body::AtomicResponse { reply: REPLY, value: 0 },
        Body::AtomicRequest { addr: HOST, len_be: 0, data: 0, reply: None },
    ] {
        let mut p = tile();
        p.deliver(0, from_core(body));
        assert!(run(&mut p).is_err());
    }
}

proptest! {
    #[test]
    fn no_host_access_panics(
        offset: u64, small in 0u64..0x2000_0000, len in 0usize..300, bar4: bool, regs in prop::array::uniform3(any::<u32>()),
    ) {
        let mut p = tile();
        let _ = p.host_write(0, Bar::Bar0, 0x1FC0_0000, &words(regs));
        let _ = p.host_write(0, Bar::Bar0, 0x1FC0_0000 + 12 * 202, &words(regs));
        let bar = if bar4 { Bar::Bar4 } else { Bar::Bar0 };
        for offset in [offset, small, small % 0x20_0000, offset % (4 << 30)] {
            let _ = p.host_write(0, bar, offset, &vec![1; len]);
            let _ = p.host_read(0, bar, offset, len);
        }
        let _ = run(&mut p);
    }

    #[test]
    fn no_packet_panics(addr: u64, len in 0u32..20_000, mask: Option<u64>, at in 0u64..1 << 50) {
        let mut p = tile();
        p.deliver(at, from_core(Body::ReadRequest { addr, len, reply: REPLY }));
        let _ = run(&mut p);
        p.deliver(at, from_core(Body::WriteRequest { addr, data: vec![0; len as usize].into(), mask, reply: None }));
        let _ = run(&mut p);
    }
}
