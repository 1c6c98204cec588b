//! Late packets keep the order that WormholeB0/NoC/Ordering.md promises, and no other.

use super::{board_grid, tile, write_of};
use crate::Cycle;
use crate::noc::late::{Late, LatePackets};
use crate::noc::{Body, Dest, Packet, Place, Reply};
use crate::probe::RequestId;
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_abi::tensix::LOCAL_BASE;

/// What the promises tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Write { mmio: bool },
    Read { mmio: bool },
    Atomic,
    Answer,
}

const KINDS: [Kind; 6] = [
    Kind::Write { mmio: false },
    Kind::Write { mmio: true },
    Kind::Read { mmio: false },
    Kind::Read { mmio: true },
    Kind::Atomic,
    Kind::Answer,
];

fn packet(kind: Kind, from: Place, to: Place) -> Packet {
    let reply = Reply { to: from, trid: 0, addr: 0 };
    let at = |mmio| if mmio { LOCAL_BASE.into() } else { 0x2_0000 };
    let body = match kind {
        Kind::Write { mmio } => {
            Body::WriteRequest { addr: at(mmio), data: vec![0; 16].into(), mask: None, reply: Some(reply) }
        }
        Kind::Read { mmio } => Body::ReadRequest { addr: at(mmio), len: 4, reply },
        Kind::Atomic => Body::AtomicRequest { addr: 0x100, len_be: 0, data: 1, reply: Some(reply) },
        Kind::Answer => Body::WriteAck { reply },
    };
    Packet { noc: 0, from, to: Dest::Unicast(to), id: RequestId::default(), body }
}

/// Whether a packet of the first kind must not be overtaken by one of the second.
fn ordered(first: Kind, second: Kind) -> bool {
    use Kind::{Atomic, Read, Write};
    match (first, second) {
        (Write { .. }, Read { .. }) | (Atomic, Atomic) => true,
        (Write { mmio: a }, Write { mmio: b }) => a && b,
        (Read { mmio: a }, Read { mmio: b }) => a || b,
        _ => false,
    }
}

/// Arrivals of packets that could be there at `ats`.
fn arrivals(seed: u64, from: Place, to: Place, host: u16, packets: &[(Kind, Cycle)]) -> Vec<Cycle> {
    let mut late = Late::new(LatePackets { seed, most: 500 }, host);
    packets.iter().map(|&(kind, at)| late.arrival(at, &packet(kind, from, to), to)).collect()
}

proptest! {
    #[test]
    fn late_packets_keep_what_is_promised(
        seed in any::<u64>(),
        packets in prop::collection::vec((prop::sample::select(&KINDS[..]), 0u64..60), 2..60),
    ) {
        let grid = board_grid(Board::P150);
        let (from, to, host) = (tile(&grid, 1, 2), tile(&grid, 7, 5), u16::MAX);
        let mut clock = 0;
        let packets: Vec<(Kind, Cycle)> = packets.into_iter().map(|(kind, gap)| { clock += gap; (kind, clock) }).collect();
        let found = arrivals(seed, from, to, host, &packets);
        prop_assert_eq!(&found, &arrivals(seed, from, to, host, &packets));
        for (i, &(second, at)) in packets.iter().enumerate() {
            prop_assert!(found[i] >= at, "a packet came too soon");
            for (j, &(first, _)) in packets[..i].iter().enumerate() {
                prop_assert!(!ordered(first, second) || found[j] <= found[i], "{first:?} was overtaken by {second:?}");
            }
        }
        // The host's requests, and those to it, keep their order.
        for host in [from.node, to.node] {
            let found = arrivals(seed, from, to, host, &packets);
            let requests: Vec<Cycle> =
                packets.iter().zip(&found).filter(|((kind, _), _)| *kind != Kind::Answer).map(|(_, &at)| at).collect();
            prop_assert!(requests.is_sorted());
        }
    }
}

/// Every pair that is promised nothing is seen in both orders.
#[test]
fn late_packets_overtake_where_they_may() {
    let grid = board_grid(Board::P150);
    let (from, to) = (tile(&grid, 1, 2), tile(&grid, 7, 5));
    for first in KINDS {
        for second in KINDS {
            let orders = (0..64).map(|seed| {
                let found = arrivals(seed, from, to, u16::MAX, &[(first, 0), (second, 20)]);
                found[0] > found[1]
            });
            let overtaken = orders.filter(|&overtaken| overtaken).count();
            assert_eq!(overtaken > 0, !ordered(first, second), "{second:?} behind {first:?}");
        }
    }
}

/// A multicast's copies are late one by one.
#[test]
fn copies_of_a_multicast_are_late_one_by_one() {
    let grid = board_grid(Board::P150);
    let (from, tiles) = (tile(&grid, 1, 2), [tile(&grid, 7, 5), tile(&grid, 7, 6)]);
    let mut late = Late::new(LatePackets { seed: 3, most: 500 }, u16::MAX);
    let delays: Vec<[Cycle; 2]> =
        (0..20).map(|_| tiles.map(|to| late.arrival(100, &write_of(0, from, Dest::Copy(to), 16), to) - 100)).collect();
    assert!(delays.iter().all(|[a, b]| *a <= 500 && *b <= 500));
    assert!(delays.iter().any(|[a, b]| a < b) && delays.iter().any(|[a, b]| a > b));
}
