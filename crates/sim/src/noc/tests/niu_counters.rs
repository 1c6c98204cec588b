//! The counters of both ends, line by line of BlackholeA0/NoC/Counters.md, and what the
//! requests do.

use super::{Ram, board_grid, tile};
use crate::noc::{Grid, Network, Niu, NocStats, Outbox, Place, Start};
use crate::{Cycle, timing};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::noc::{NocRect, NocXy, atomic, counter as c, ctrl, init};
use tilework_abi::stream;

/// A few tiles on NoC 0 with one network.
pub(super) struct Bench {
    pub(super) grid: Arc<Grid>,
    network: Network,
    nius: BTreeMap<u16, (Niu, Ram)>,
    out: Outbox,
    /// What each tile has put on the NoC.
    sent: BTreeMap<u16, NocStats>,
}

impl Bench {
    pub(super) fn new(tiles: &[(u8, u8)]) -> Self {
        let grid = board_grid(Board::P150);
        let nius = tiles
            .iter()
            .map(|&(x, y)| {
                let place = tile(&grid, x, y);
                let niu = Niu::new(0, place, NocXy::new(x, y), 0, grid.clone());
                (place.node, (niu, Ram::new()))
            })
            .collect();
        Self { grid, network: Network::new(), nius, out: Outbox::default(), sent: BTreeMap::new() }
    }
    pub(super) fn place(&self, x: u8, y: u8) -> Place {
        tile(&self.grid, x, y)
    }
    pub(super) fn at(&mut self, x: u8, y: u8) -> (&mut Niu, &mut Ram) {
        let node = self.place(x, y).node;
        let (niu, ram) = self.nius.get_mut(&node).expect("a tile of the bench");
        (niu, ram)
    }
    /// The counters that are not zero.
    pub(super) fn counters(&mut self, x: u8, y: u8) -> Vec<(usize, u32)> {
        let (niu, _) = self.at(x, y);
        (0..c::COUNT).map(|i| (i, niu.counter(i))).filter(|(_, n)| *n != 0).collect()
    }
    /// Writes the fields of initiator 0 of (1,2) and starts the request at cycle `at`.
    pub(super) fn start(&mut self, at: Cycle, fields: &[(u32, u32)]) -> Start {
        let (niu, _) = self.at(1, 2);
        for &(field, value) in fields {
            assert!(niu.write(field, value, at).expect("a field").is_none());
        }
        niu.write(init::CMD_CTRL, 1, at).expect("a request").expect("a start")
    }
    pub(super) fn depart(&mut self, start: Start) -> Option<Start> {
        let node = self.place(1, 2).node;
        let (niu, ram) = self.nius.get_mut(&node).expect("a tile of the bench");
        niu.depart(start, ram, &mut self.out).expect("a departure")
    }
    /// Carries what has left, and the answers to it, until nothing is in flight. Returns the cycles
    /// of arrival.
    pub(super) fn settle(&mut self) -> Vec<Cycle> {
        let mut times = Vec::new();
        while let Some(departure) = self.out.pop_before(Cycle::MAX) {
            let (nius, out) = (&mut self.nius, &mut self.out);
            *self.sent.entry(departure.packet.from.node).or_default() += NocStats::of(&departure.packet);
            self.network.carry(departure, |at, node, packet| {
                times.push(at);
                let (niu, ram) = nius.get_mut(&node).expect("a tile of the bench");
                niu.receive(at, packet, ram, out).expect("a reception");
            });
        }
        times
    }
}

pub(super) fn xy(x: u8, y: u8) -> u32 {
    NocXy::new(x, y).encode()
}

/// Fields of a read of `len` bytes from `from` of (3,4) to `to` of (1,2) with transaction id 5.
fn read(from: u32, to: u32, len: u32) -> Vec<(u32, u32)> {
    vec![
        (init::TARG_ADDR_LO, from),
        (init::TARG_ADDR_HI, xy(3, 4)),
        (init::RET_ADDR_LO, to),
        (init::RET_ADDR_HI, xy(1, 2)),
        (init::PACKET_TAG, 5 << 10),
        (init::CTRL, ctrl::CMD_RD),
        (init::AT_LEN_BE, len),
    ]
}

/// Fields of a write of `len` bytes from `from` of (1,2) to `to` of (3,4) with transaction id 5.
fn write(from: u32, to: u32, len: u32, flags: u32) -> Vec<(u32, u32)> {
    vec![
        (init::TARG_ADDR_LO, from),
        (init::TARG_ADDR_HI, xy(1, 2)),
        (init::RET_ADDR_LO, to),
        (init::RET_ADDR_HI, xy(3, 4)),
        (init::PACKET_TAG, 5 << 10),
        (init::CTRL, ctrl::CMD_WR | flags),
        (init::AT_LEN_BE, len),
    ]
}

#[test]
fn read_request() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    for i in 0..100 {
        bench.at(3, 4).1.l1[0x1000 + i] = i as u8;
    }
    let start = bench.start(100, &read(0x1000, 0x2000, 100));
    assert_eq!(start.at, 100 + timing::NIU_ISSUE);
    assert_eq!(bench.counters(1, 2), [(c::MST_REQS_OUTSTANDING_ID + 5, 1)]);
    assert_eq!(bench.at(1, 2).0.read(init::CMD_CTRL, 101).expect("a field").0, 1);

    assert_eq!(bench.depart(start), None);
    assert_eq!(bench.at(1, 2).0.read(init::CMD_CTRL, 108).expect("a field").0, 0);
    let sent = [(c::MST_CMD_ACCEPTED, 1), (c::MST_RD_REQ_SENT, 1), (c::MST_RD_REQ_STARTED, 1)];
    assert_eq!(bench.counters(1, 2), [&sent[..], &[(c::MST_REQS_OUTSTANDING_ID + 5, 1)]].concat());

    // 4 hops there; the answer's 2 data flits come back over 15 + 10 hops.
    let there = 108 + 5 + 9 * 4 + 5 + 1;
    let back = there + timing::SERVE_READ + 5 + 9 * 25 + 5 + 3;
    assert_eq!(bench.settle(), [there, back]);
    let slave = [
        (c::SLV_RD_RESP_SENT, 1),
        (c::SLV_RD_DATA_WORD_SENT, 2),
        (c::SLV_REQ_ACCEPTED, 1),
        (c::SLV_RD_REQ_RECEIVED, 1),
    ];
    assert_eq!(bench.counters(3, 4), slave);
    let received = [(c::MST_RD_RESP_RECEIVED, 1), (c::MST_RD_DATA_WORD_RECEIVED, 2)];
    assert_eq!(bench.counters(1, 2), [&received[..], &sent[..]].concat());
    assert_eq!(bench.at(1, 2).1.l1[0x2000..0x2064], (0..100).collect::<Vec<u8>>());
    let stats = bench.sent[&bench.place(3, 4).node];
    assert_eq!((stats.packets, stats.flits, stats.bytes), (1, 3, 100));
}

#[test]
fn non_posted_write_request() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    bench.at(1, 2).1.l1[0x1010..0x1050].fill(7);
    let start = bench.start(0, &write(0x1010, 0x2010, 64, ctrl::RESP_MARKED));
    let marks = [(c::MST_REQS_OUTSTANDING_ID + 5, 1), (c::MST_WRITE_REQS_OUTGOING_ID + 5, 1)];
    assert_eq!(bench.counters(1, 2), marks);
    bench.depart(start);
    let sent = [
        (c::MST_CMD_ACCEPTED, 1),
        (c::MST_NONPOSTED_WR_DATA_WORD_SENT, 1),
        (c::MST_NONPOSTED_WR_REQ_SENT, 1),
        (c::MST_NONPOSTED_WR_REQ_STARTED, 1),
    ];
    assert_eq!(bench.counters(1, 2), [&sent[..], &marks[..1]].concat());
    bench.settle();
    let slave = [
        (c::SLV_WR_ACK_SENT, 1),
        (c::SLV_NONPOSTED_WR_DATA_WORD_RECEIVED, 1),
        (c::SLV_NONPOSTED_WR_REQ_RECEIVED, 1),
        (c::SLV_NONPOSTED_WR_REQ_STARTED, 1),
    ];
    assert_eq!(bench.counters(3, 4), slave);
    assert_eq!(bench.counters(1, 2), [&[(c::MST_WR_ACK_RECEIVED, 1)], &sent[..]].concat());
    assert_eq!(bench.at(3, 4).1.l1[0x2010..0x2050], [7; 64]);
    assert_eq!(bench.at(3, 4).1.l1[0x2050], 0);
}

#[test]
fn posted_write_request() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    let mut fields = write(0x1000, 0x2000, 129, 0);
    fields.push((init::TARG_ADDR_HI, xy(0x3F, 0x3F))); // unused: there is no answer
    let start = bench.start(0, &fields);
    assert_eq!(bench.counters(1, 2), [(c::MST_WRITE_REQS_OUTGOING_ID + 5, 1)]);
    bench.depart(start);
    assert_eq!(bench.settle().len(), 1);
    let sent = [
        (c::MST_CMD_ACCEPTED, 1),
        (c::MST_POSTED_WR_DATA_WORD_SENT, 3),
        (c::MST_POSTED_WR_REQ_SENT, 1),
        (c::MST_POSTED_WR_REQ_STARTED, 1),
    ];
    assert_eq!(bench.counters(1, 2), sent);
    let slave = [
        (c::SLV_POSTED_WR_DATA_WORD_RECEIVED, 3),
        (c::SLV_POSTED_WR_REQ_RECEIVED, 1),
        (c::SLV_POSTED_WR_REQ_STARTED, 1),
    ];
    assert_eq!(bench.counters(3, 4), slave);
}

#[test]
fn inline_write_request() {
    let register = stream::reg_addr(48, stream::SPACE_AVAILABLE_UPDATE);
    for answered in [false, true] {
        let mut bench = Bench::new(&[(1, 2), (3, 4)]);
        let flags = ctrl::CMD_WR | ctrl::WR_INLINE | if answered { ctrl::RESP_MARKED } else { 0 };
        let fields = [
            (init::TARG_ADDR_LO, register),
            (init::TARG_ADDR_HI, xy(3, 4)),
            (init::AT_DATA, 0x1234),
            (init::CTRL, flags),
        ];
        let start = bench.start(0, &fields);
        let outstanding = [(c::MST_REQS_OUTSTANDING_ID, 1)];
        assert_eq!(bench.counters(1, 2), if answered { &outstanding[..] } else { &[] });
        bench.depart(start);
        assert_eq!(bench.settle().len(), if answered { 2 } else { 1 });
        assert_eq!(bench.at(3, 4).1.regs[&u64::from(register)], 0x1234);
        if answered {
            let sent = [
                (c::MST_WR_ACK_RECEIVED, 1),
                (c::MST_CMD_ACCEPTED, 1),
                (c::MST_NONPOSTED_WR_REQ_SENT, 1),
                (c::MST_NONPOSTED_WR_REQ_STARTED, 1),
            ];
            assert_eq!(bench.counters(1, 2), sent);
            let slave = [
                (c::SLV_WR_ACK_SENT, 1),
                (c::SLV_NONPOSTED_WR_DATA_WORD_RECEIVED, 1),
                (c::SLV_NONPOSTED_WR_REQ_RECEIVED, 1),
                (c::SLV_NONPOSTED_WR_REQ_STARTED, 1),
            ];
            assert_eq!(bench.counters(3, 4), slave);
        } else {
            let sent = [(c::MST_CMD_ACCEPTED, 1), (c::MST_POSTED_WR_REQ_SENT, 1), (c::MST_POSTED_WR_REQ_STARTED, 1)];
            assert_eq!(bench.counters(1, 2), sent);
            let slave = [
                (c::SLV_POSTED_WR_DATA_WORD_RECEIVED, 1),
                (c::SLV_POSTED_WR_REQ_RECEIVED, 1),
                (c::SLV_POSTED_WR_REQ_STARTED, 1),
            ];
            assert_eq!(bench.counters(3, 4), slave);
        }
    }
}

#[test]
fn atomic_request() {
    for answered in [false, true] {
        let mut bench = Bench::new(&[(1, 2), (3, 4)]);
        bench.at(3, 4).1.set_word(0x104, 41);
        let flags = ctrl::CMD_AT | if answered { ctrl::RESP_MARKED } else { 0 };
        let fields = [
            (init::TARG_ADDR_LO, 0x104),
            (init::TARG_ADDR_HI, xy(3, 4)),
            (init::RET_ADDR_LO, 0x20),
            (init::RET_ADDR_HI, xy(1, 2)),
            (init::PACKET_TAG, 15 << 10),
            (init::AT_LEN_BE, atomic::incr32(0x104)),
            (init::AT_DATA, 1),
            (init::CTRL, flags),
        ];
        let start = bench.start(0, &fields);
        let outstanding = [(c::MST_REQS_OUTSTANDING_ID + 15, 1)];
        assert_eq!(bench.counters(1, 2), if answered { &outstanding[..] } else { &[] });
        bench.depart(start);
        bench.settle();
        assert_eq!(bench.at(3, 4).1.word(0x104), 42);
        assert_eq!(bench.at(1, 2).1.word(0x20), if answered { 41 } else { 0 });
        if answered {
            let sent = [
                (c::MST_ATOMIC_RESP_RECEIVED, 1),
                (c::MST_CMD_ACCEPTED, 1),
                (c::MST_NONPOSTED_ATOMIC_SENT, 1),
                (c::MST_NONPOSTED_ATOMIC_STARTED, 1),
            ];
            assert_eq!(bench.counters(1, 2), sent);
            let slave = [(c::SLV_ATOMIC_RESP_SENT, 1), (c::SLV_REQ_ACCEPTED, 1), (c::SLV_NONPOSTED_ATOMIC_RECEIVED, 1)];
            assert_eq!(bench.counters(3, 4), slave);
        } else {
            assert_eq!(bench.counters(1, 2), [(c::MST_CMD_ACCEPTED, 1), (c::MST_POSTED_ATOMIC_SENT, 1)]);
            let slave = [(c::SLV_REQ_ACCEPTED, 1), (c::SLV_POSTED_ATOMIC_RECEIVED, 1)];
            assert_eq!(bench.counters(3, 4), slave);
        }
    }
}

#[test]
fn a_multicast_is_answered_by_every_receiver() {
    let mut bench = Bench::new(&[(1, 2), (3, 4), (3, 5)]);
    bench.at(1, 2).1.set_word(0x1000, 99);
    let mut fields = write(0x1000, 0x2000, 4, ctrl::BRCST | ctrl::RESP_MARKED);
    let rect = NocRect { start: NocXy::new(3, 4), end: NocXy::new(3, 5) };
    fields.push((init::RET_ADDR_HI, rect.encode()));
    let start = bench.start(0, &fields);
    bench.depart(start);
    bench.settle();
    assert_eq!((bench.at(3, 4).1.word(0x2000), bench.at(3, 5).1.word(0x2000)), (99, 99));
    let (niu, _) = bench.at(1, 2);
    assert_eq!((niu.counter(c::MST_WR_ACK_RECEIVED), niu.counter(c::MST_NONPOSTED_WR_REQ_SENT)), (2, 1));
    // One increment, two decrements of an 8-bit counter: the page's reason 2 for clearing it.
    assert_eq!(niu.counter(c::MST_REQS_OUTSTANDING_ID + 5), 0xFF);
    niu.write(tilework_abi::noc::CLEAR_OUTSTANDING, 1 << 4, 0).expect("a write");
    assert_eq!(niu.counter(c::MST_REQS_OUTSTANDING_ID + 5), 0xFF);
    niu.write(tilework_abi::noc::CLEAR_OUTSTANDING, 1 << 5, 0).expect("a write");
    assert_eq!(niu.counter(c::MST_REQS_OUTSTANDING_ID + 5), 0);
}

#[test]
fn a_long_request_is_split_at_16_kib() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    let len = 2 * 16384 + 100;
    let pattern: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    bench.at(1, 2).1.l1[0x10000..0x10000 + len].copy_from_slice(&pattern);
    let first = bench.start(0, &write(0x10000, 0x40000, len as u32, ctrl::RESP_MARKED));
    let (outstanding, outgoing) = (c::MST_REQS_OUTSTANDING_ID + 5, c::MST_WRITE_REQS_OUTGOING_ID + 5);
    assert_eq!(bench.counters(1, 2), [(outstanding, 3), (outgoing, 3)]);
    let (niu, _) = bench.at(1, 2);
    assert!(niu.write(0x800 + init::CMD_CTRL, 1, 1).is_err(), "no other initiator meanwhile");

    let second = bench.depart(first.clone()).expect("a second piece");
    assert_eq!(second.at, first.at + 257);
    let (niu, _) = bench.at(1, 2);
    let field = |niu: &mut Niu, f| niu.read(f, 0).expect("a field").0;
    assert_eq!(field(niu, init::CMD_CTRL), 1);
    assert_eq!(field(niu, init::AT_LEN_BE), 16384 + 100);
    assert_eq!((field(niu, init::TARG_ADDR_LO), field(niu, init::RET_ADDR_LO)), (0x14000, 0x44000));
    assert_eq!((niu.counter(outgoing), niu.counter(c::MST_CMD_ACCEPTED)), (2, 1));

    let third = bench.depart(second).expect("a third piece");
    assert_eq!(bench.depart(third), None);
    bench.settle();
    assert_eq!(bench.at(3, 4).1.l1[0x40000..0x40000 + len], pattern);
    let (niu, _) = bench.at(1, 2);
    assert_eq!(field(niu, init::CMD_CTRL), 0);
    assert_eq!((niu.counter(outstanding), niu.counter(outgoing)), (0, 0));
    assert_eq!(niu.counter(c::MST_NONPOSTED_WR_DATA_WORD_SENT), 256 + 256 + 2);
    assert_eq!(niu.counter(c::MST_WR_ACK_RECEIVED), 3);
    // A read of the same length counts three requests too.
    let mut piece = Some(bench.start(10_000, &read(0x40000, 0x80000, len as u32)));
    while let Some(start) = piece {
        piece = bench.depart(start);
    }
    bench.settle();
    assert_eq!(bench.at(1, 2).1.l1[0x80000..0x80000 + len], pattern);
    let (niu, _) = bench.at(1, 2);
    assert_eq!((niu.counter(c::MST_RD_RESP_RECEIVED), niu.counter(outstanding)), (3, 0));
}

#[test]
fn byte_enables_choose_the_written_bytes() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    for i in 0..64 {
        bench.at(1, 2).1.l1[0x1000 + i] = i as u8 + 1;
    }
    bench.at(3, 4).1.l1[0x2000..0x2040].fill(0xEE);
    // Addresses are taken down to 16 bytes; bytes 0, 2, 3 and 63 are enabled.
    let mut fields = write(0x1004, 0x200C, 0b1101, ctrl::WR_BE);
    fields.push((init::AT_LEN_BE_1, 1 << 31));
    let start = bench.start(0, &fields);
    bench.depart(start);
    bench.settle();
    let l1 = &bench.at(3, 4).1.l1;
    assert_eq!(l1[0x2000..0x2005], [1, 0xEE, 3, 4, 0xEE]);
    assert_eq!(l1[0x203E..0x2041], [0xEE, 64, 0]);
}

#[test]
fn requests_leave_one_after_the_other() {
    let mut bench = Bench::new(&[(1, 2), (3, 4)]);
    let first = bench.start(0, &write(0x1000, 0x2000, 4096, 0));
    let (niu, _) = bench.at(1, 2);
    for (field, value) in write(0x1000, 0x3000, 4, 0) {
        niu.write(0x800 + field, value, 1).expect("a field");
    }
    let second = niu.write(0x800 + init::CMD_CTRL, 1, 1).expect("a request").expect("a start");
    assert_eq!(second.at, first.at + 1 + 64);
}
