//! A DRAM bank: its ports, contents and times.

use super::*;
use crate::Node;
use crate::noc::Reply;
use crate::probe::RequestId;
use proptest::prelude::*;
use std::sync::Arc;

const PORT0: Place = Place { node: 4, x: 0, y: 0 };
const PORT1: Place = Place { node: 4, x: 0, y: 1 };
const CORE: Place = Place { node: 9, x: 1, y: 2 };
const REPLY: Reply = Reply { to: CORE, trid: 3, addr: 0x2000 };

fn bank() -> DramBank {
    DramBank::new(0)
}

fn packet(to: Place, body: Body) -> Packet {
    Packet { noc: 0, from: CORE, to: Dest::Unicast(to), id: RequestId::default(), body }
}

fn read(addr: u64, len: u32) -> Body {
    Body::ReadRequest { addr, len, reply: REPLY }
}

fn write(addr: u64, data: &[u8], mask: Option<u64>, reply: Option<Reply>) -> Body {
    Body::WriteRequest { addr, data: Data::from(data), mask, reply }
}

fn run(bank: &mut DramBank) -> Result<Vec<(Cycle, Packet)>, Fault> {
    let (mut out, mut all) = (Outbox::default(), Vec::new());
    while bank.next() < crate::NEVER {
        bank.run(crate::NEVER, &mut out)?;
        all.extend(out.take_all().into_iter().map(|d| (d.at, *d.packet)));
    }
    Ok(all)
}

#[test]
fn a_write_through_one_port_is_read_through_another() {
    let mut b = bank();
    b.deliver(10, packet(PORT0, write(64, &[1, 2, 3, 4], None, Some(REPLY))));
    b.deliver(11, packet(PORT1, read(62, 8)));
    let left = run(&mut b).unwrap();
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].1.body, Body::WriteAck { reply: REPLY });
    assert_eq!(left[0].1.from, PORT0);
    assert_eq!(left[1].1.body, Body::ReadResponse { reply: REPLY, data: Data::from([0, 0, 1, 2, 3, 4, 0, 0]) });
    assert_eq!(left[1].1.from, PORT1);
    assert_eq!(left[1].1.to, Dest::Unicast(CORE));
    // The memory has moved the four bytes written and the eight bytes read, and nothing else.
    let mut channel = Pipe::new(timing::DRAM_BANK);
    channel.serve(10, 4);
    channel.serve(11, 8);
    assert_eq!(b.channel, channel);
    assert_eq!(left.iter().map(|(_, packet)| packet.body.payload_bytes()).sum::<u64>(), 8);
}

#[test]
fn an_answer_keeps_the_bytes_of_the_cycle_at_which_they_were_read() {
    let mut b = bank();
    let mut answers = Vec::new();
    // So often that reads of the page are copied for a while and then shared again.
    for turn in 0..100_u8 {
        let at = 1000 * u64::from(turn);
        b.deliver(at, packet(PORT0, write(0x1_0000, &[turn; 32], None, None)));
        b.deliver(at + 1, packet(PORT0, read(0x1_0010, 64)));
        b.deliver(at + 2, packet(PORT0, write(0x1_0018, &[0xFF; 8], None, None)));
        if turn % 3 != 0 {
            b.deliver(at + 3, packet(PORT0, read(0x1_0010, 64)));
        }
        answers.extend(run(&mut b).unwrap().into_iter().map(|(_, packet)| (turn, packet.body)));
    }
    let mut second = false;
    let mut last = u8::MAX;
    for (turn, answer) in answers {
        second = turn == last && !second;
        last = turn;
        let mut expected = [0; 64];
        expected[..16].fill(turn);
        if second {
            expected[8..16].fill(0xFF);
        }
        assert_eq!(answer, Body::ReadResponse { reply: REPLY, data: Data::from(expected) }, "turn {turn}");
    }
}

#[test]
fn the_ends_of_the_bank_are_memory_and_one_byte_further_is_a_fault() {
    let mut b = bank();
    let last = DRAM_BANK_BYTES - 4;
    b.deliver(0, packet(PORT0, write(last, &[9, 8, 7, 6], None, None)));
    b.deliver(0, packet(PORT0, write(0, &[5], None, None)));
    assert!(run(&mut b).unwrap().is_empty(), "posted writes are not answered");
    let mut four = [0; 4];
    b.content.memory.read(last, &mut four).unwrap();
    assert_eq!(four, [9, 8, 7, 6]);
    assert_eq!(b.content.memory.resident(), 2 * 65536, "two pages of 65536");

    for body in [read(last + 1, 4), write(last + 1, &[0; 4], None, None), read(u64::MAX, 16)] {
        let mut b = bank();
        b.deliver(7, packet(PORT0, body));
        let fault = run(&mut b).unwrap_err();
        assert_eq!(fault.class, FaultClass::UndefinedBehavior);
        assert_eq!(fault.site.cycle, Some(7));
        assert!(fault.site.addr.is_some_and(|a| a > last));
    }
}

#[test]
fn a_masked_write_leaves_the_other_bytes() {
    let mut b = bank();
    b.content.memory.write(0, &[0xAA; 64]).unwrap();
    b.deliver(0, packet(PORT0, write(0, &[0x11; 64], Some(0b1010 | 1 << 63), None)));
    run(&mut b).unwrap();
    let mut got = [0; 64];
    b.content.memory.read(0, &mut got).unwrap();
    let mut want = [0xAA; 64];
    for i in [1, 3, 63] {
        want[i] = 0x11;
    }
    assert_eq!(got, want);
}

#[test]
fn atomics_are_not_supported() {
    let mut b = bank();
    b.deliver(0, packet(PORT0, Body::AtomicRequest { addr: 16, len_be: 0x1000, data: 1, reply: None }));
    let fault = run(&mut b).unwrap_err();
    assert_eq!(fault.class, FaultClass::UnsupportedFunctionality);
    assert_eq!(fault.site.addr, Some(16));
}

#[test]
fn small_reads_of_one_port_are_bound_by_the_port() {
    let mut b = bank();
    for _ in 0..6 {
        b.deliver(1000, packet(PORT0, read(0, 32)));
    }
    b.deliver(1000, packet(PORT1, read(0, 32)));
    let left = run(&mut b).unwrap();
    let at = |p: Place| left.iter().filter(|(_, k)| k.from == p).map(|(at, _)| *at).collect::<Vec<_>>();
    // 82 cycles for five reads: the sixth is taken 82 cycles after the first.
    let port0 = at(PORT0);
    assert_eq!(port0[5] - port0[0], 82);
    assert_eq!(port0[0], 1000 + timing::DRAM_ACCESS);
    // The other port does not wait for it.
    assert!(at(PORT1)[0] < port0[1]);
}

#[test]
fn large_reads_of_all_ports_share_the_bank() {
    let mut b = bank();
    for i in 0..20 {
        b.deliver(0, packet(if i % 2 == 0 { PORT0 } else { PORT1 }, read(0, 16384)));
    }
    let left = run(&mut b).unwrap();
    let last = left.iter().map(|(at, p)| at + p.body.data_flits()).max().unwrap();
    // 20 * 16384 bytes at 1280 bytes per 27 cycles.
    assert_eq!(last, (20u64 * 16384 * 27).div_ceil(1280) + timing::DRAM_ACCESS);
}

#[test]
fn a_lone_bank_stops_where_an_answer_could_come() {
    let mut b = bank();
    b.deliver(0, packet(PORT0, read(0, 64)));
    b.deliver(1000, packet(PORT0, read(0, 64)));
    let mut out = Outbox::default();
    b.run(crate::NEVER, &mut out).unwrap();
    assert!(out.earliest().is_some_and(|at| at >= timing::DRAM_ACCESS));
    assert_eq!(b.events.next(), 1000, "the second request waits until the first answer is on its way");
    assert_eq!(b.next(), 1000 + timing::DRAM_ACCESS, "and is put off until its own can leave");
}

#[test]
fn reads_are_put_off_until_an_answer_can_leave_and_nothing_else_is() {
    let mut b = bank();
    let all = |cycle| Outlook { next: cycle, sends: cycle };
    b.deliver(10, packet(PORT0, read(0, 16384)));
    assert_eq!(b.outlook(), all(10 + timing::DRAM_ACCESS));
    let mut out = Outbox::default();
    b.run(11, &mut out).unwrap();
    b.deliver(20, packet(PORT0, read(0, 64)));
    // 16384 bytes at 1280 bytes per 27 cycles.
    assert_eq!(b.outlook(), all(10 + 345 + timing::DRAM_ACCESS));
    b.deliver(30, packet(PORT1, write(0, &[1], None, None)));
    assert_eq!(b.outlook(), Outlook { next: 20, sends: 20 + timing::DRAM_ACCESS });
    b.run(31, &mut out).unwrap();
    b.deliver(40, packet(PORT0, read(DRAM_BANK_BYTES, 4)));
    assert_eq!(b.outlook().next, 40, "a fault comes at its cycle");
}

proptest! {
    #[test]
    fn a_sparse_memory_behaves_as_an_array(writes in prop::collection::vec((0u64..300_000, prop::collection::vec(any::<u8>(), 0..200)), 0..40)) {
        let mut sparse = SparseMemory::new(300_000);
        let mut array = vec![0u8; 300_000];
        for (addr, data) in &writes {
            let at = *addr as usize;
            let fits = at + data.len() <= array.len();
            prop_assert_eq!(sparse.write(*addr, data).is_ok(), fits);
            if fits {
                array[at..at + data.len()].copy_from_slice(data);
            }
        }
        let mut got = vec![1; 300_000];
        sparse.read(0, &mut got).unwrap();
        prop_assert_eq!(got, array);
    }

    #[test]
    fn reads_that_are_put_off_are_answered_as_if_each_were_served_when_it_arrives(
        requests in prop::collection::vec(
            (0_u64..200, any::<bool>(), 0_u64..4, prop_oneof![1_u32..300, Just(16384)], 0_u32..8), 1..80
        )
    ) {
        let (mut lazy, mut eager) = (bank(), bank());
        let (mut out, mut expected) = (Outbox::default(), Outbox::default());
        let (mut left, mut at) = (Vec::new(), 0);
        for (number, (gap, port, page, len, kind)) in requests.into_iter().enumerate() {
            at += gap;
            let body = match kind {
                0 => write(page << 16, &vec![number as u8; len as usize], None, Some(REPLY)),
                _ => read(page << 16, len),
            };
            let to = if port { PORT0 } else { PORT1 };
            let request = Packet { id: RequestId(number as u64), ..packet(to, body) };
            // As the scheduler does: a bank is run only when its next cycle comes.
            while lazy.outlook().next < at {
                let sends = lazy.outlook().sends;
                lazy.run(at.min(sends + timing::LOOKAHEAD), &mut out).unwrap();
                prop_assert!(out.earliest().is_none_or(|first| first >= sends));
                left.extend(out.take_all());
            }
            lazy.deliver(at, request.clone());
            // And here whenever something has arrived, before the next one does.
            expected.begin();
            eager.run(at, &mut expected).unwrap();
            eager.deliver(at, request);
        }
        while lazy.next() < crate::NEVER {
            let sends = lazy.outlook().sends;
            lazy.run(crate::NEVER, &mut out).unwrap();
            prop_assert!(out.earliest().is_none_or(|first| first >= sends));
            left.extend(out.take_all());
        }
        while eager.next() < crate::NEVER {
            expected.begin();
            eager.run(crate::NEVER, &mut expected).unwrap();
        }
        left.sort_by_key(|departure| (departure.at, departure.packet.from));
        prop_assert_eq!(left, expected.take_all());
        prop_assert_eq!(lazy.channel, eager.channel);
    }

    #[test]
    fn no_request_panics(addr: u64, len: u32, mask: Option<u64>, data in prop::collection::vec(any::<u8>(), 0..100), at in 0u64..1 << 40) {
        let mut b = bank();
        b.deliver(at, packet(PORT0, read(addr, len)));
        let _ = run(&mut b);
        b.deliver(at, packet(PORT0, write(addr, &data, mask, Some(REPLY))));
        let _ = run(&mut b);
    }
}

/// Port 2 of bank 3, NoC 0 (0,6), translated (17,23): NODE_ID, endpoint and NOC_ID_LOGICAL as
/// MemoryMap.md has them.
#[test]
fn a_ports_nius_say_where_it_is() {
    let grid =
        crate::noc::GridBuilder::new(tilework_abi::board::Board::P150.harvesting(), true).fill(4).build().unwrap();
    let mut b = DramBank::new(3).with_nius(Arc::new(grid));
    let port = Place { node: 4, x: 0, y: 6 };
    let node_id = [6 << 6 | 17 << 12 | 12 << 19 | 1 << 28, 16 | 5 << 6 | 17 << 12 | 12 << 19];
    let expected =
        [(0xFFB2_0044, node_id[0]), (0x2A_FFB3_0044, node_id[1]), (0xFFB2_0048, 0x8_0003), (0xFFB2_0148, 23 << 6 | 17)];
    for (addr, value) in expected {
        b.deliver(0, packet(port, read(addr, 4)));
        let left = run(&mut b).unwrap();
        assert_eq!(left[0].1.body, Body::ReadResponse { reply: REPLY, data: Data::from(u32::to_le_bytes(value)) });
    }
    // A write to general-use bits of NOC_ID_LOGICAL, and what the counters show of all this.
    b.deliver(0, packet(port, write(0xFFB2_014A & !3, &[1, 2, 3, 4], None, None)));
    assert!(run(&mut b).unwrap().is_empty(), "posted");
    b.deliver(0, packet(port, write(0x1000, &[7; 100], None, Some(REPLY))));
    b.deliver(0, packet(port, read(0x1000, 65)));
    run(&mut b).unwrap();
    // NIU_SLV_* of BlackholeA0/NoC/Counters.md: four reads of registers and one of two flits, and
    // the reads of counters so far; a posted write and one of two flits.
    let counters = [(49, 1), (50, 6), (51, 8), (53, 8), (56, 2), (57, 1), (58, 1), (59, 1), (60, 1), (61, 1)];
    for (counter, value) in counters {
        b.deliver(0, packet(port, read(0xFFB2_0200 + 4 * counter, 4)));
        let Body::ReadResponse { data, .. } = run(&mut b).unwrap()[0].1.body.clone() else { panic!("no answer") };
        let got = u32::from_le_bytes(data[..].try_into().unwrap());
        assert_eq!(got, value, "counter {counter}");
    }
    for body in [write(0xFFB2_0044, &[0; 4], None, None), read(0xFFB2_0500, 4), read(0xFFB2_0044, 64)] {
        b.deliver(0, packet(port, body));
        assert!(run(&mut b).is_err());
    }
}
