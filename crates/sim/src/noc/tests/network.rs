//! Routes and times, worked by hand from WormholeB0/NoC/RoutingPaths.md and the latency table of
//! BlackholeA0/NoC/README.md: NIU to router 5, hop 9, router to NIU 5, one cycle per flit.

use super::{board_grid, ping, tile, write_of};
use crate::noc::{Departure, Dest, Grid, Network, Packet, Place};
use crate::{Cycle, timing};
use proptest::prelude::*;
use std::collections::HashMap;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::noc::{NocRect, NocXy};

fn run(network: &mut Network, packets: Vec<(Cycle, Packet)>) -> Vec<(Cycle, Packet)> {
    let mut arrivals = Vec::new();
    for (at, packet) in packets {
        network.carry(Departure { at, packet: packet.into() }, |at, node, packet| {
            assert!(matches!(packet.to, Dest::Unicast(place) | Dest::Copy(place) if place.node == node));
            arrivals.push((at, *packet));
        });
    }
    arrivals
}

/// Cycles that a packet without data takes on idle NoCs.
fn latency(noc: u8, from: Place, to: Place) -> Cycle {
    run(&mut Network::new(), vec![(1000, ping(noc, from, to))])[0].0 - 1000
}

fn hops(n: u64) -> Cycle {
    5 + 9 * n + 5 + 1
}

#[test]
fn hop_counts_on_both_nocs() {
    let grid = board_grid(Board::P150);
    let at = |x, y| tile(&grid, x, y);
    // (from, to, hops on NoC 0: right and down, hops on NoC 1: left and up), on a torus of 17 x 12.
    let table = [
        (at(1, 2), at(2, 2), 1, 16),
        (at(1, 2), at(1, 3), 1, 11),
        (at(1, 2), at(3, 5), 2 + 3, 15 + 9),
        (at(3, 5), at(1, 2), 15 + 9, 2 + 3),
        (at(16, 11), at(1, 2), 2 + 3, 15 + 9),
        (at(7, 6), at(10, 6), 3, 14),
        (at(14, 2), at(14, 3), 1, 11),
        (at(16, 3), at(16, 2), 11, 1),
    ];
    for (from, to, noc0, noc1) in table {
        assert_eq!(latency(0, from, to), hops(noc0), "{from:?} -> {to:?} on NoC 0");
        assert_eq!(latency(1, from, to), hops(noc1), "{from:?} -> {to:?} on NoC 1");
    }
    // To the PCIe tile at physical (2, 0): from (14, 2) right 5 and down 10, or up 2 and left 12.
    let pcie = grid.resolve(0, NocXy::new(19, 24).encode()).expect("the PCIe tile");
    assert_eq!(latency(0, at(14, 2), pcie), hops(15));
    assert_eq!(latency(1, at(14, 2), pcie), hops(14));
}

#[test]
fn nothing_arrives_sooner_than_the_lookahead() {
    let grid = board_grid(Board::P150);
    let here = tile(&grid, 4, 4);
    for noc in 0..2 {
        assert_eq!(latency(noc, here, here), timing::LOOKAHEAD, "a packet to its own tile");
        let all = grid.rectangle(0, NocRect { start: NocXy::new(1, 2), end: NocXy::new(16, 11) }.encode(), None);
        for to in [Dest::Multicast(all.clone().expect("tiles")), Dest::MulticastY(all.expect("tiles"))] {
            let arrivals = run(&mut Network::new(), vec![(7, write_of(noc, here, to, 1))]);
            assert_eq!(arrivals.len(), 140);
            assert!(arrivals.iter().all(|(at, _)| *at >= 7 + timing::LOOKAHEAD));
        }
    }
}

#[test]
fn the_tail_follows_one_flit_a_cycle() {
    let grid = board_grid(Board::P150);
    let (a, b) = (tile(&grid, 1, 2), tile(&grid, 2, 2));
    for (bytes, data_flits) in [(1, 1), (64, 1), (65, 2), (4096, 64), (16384, 256)] {
        let arrivals = run(&mut Network::new(), vec![(0, write_of(0, a, Dest::Unicast(b), bytes))]);
        assert_eq!(arrivals[0].0, 5 + 9 + 5 + 1 + data_flits, "{bytes} bytes");
    }
}

/// Whether a long packet from `blocker.0` to `blocker.1` holds up a packet from `victim.0` to
/// `victim.1`: whether they share a link.
fn share(noc: u8, blocker: (Place, Place), victim: (Place, Place)) -> bool {
    let mut network = Network::new();
    let alone = latency(noc, victim.0, victim.1);
    let long = write_of(noc, blocker.0, Dest::Unicast(blocker.1), 16384);
    let arrivals = run(&mut network, vec![(0, long), (0, ping(noc, victim.0, victim.1))]);
    arrivals[1].0 > alone
}

#[test]
fn noc_0_goes_right_then_down_and_noc_1_up_then_left() {
    let grid = board_grid(Board::P150);
    let at = |x, y| tile(&grid, x, y);
    // NoC 0 from (1, 2) to (3, 4) turns at (3, 2).
    let route = (at(1, 2), at(3, 4));
    assert!(share(0, (at(2, 2), at(3, 2)), route), "along the first row");
    assert!(share(0, (at(3, 2), at(3, 3)), route), "down the last column");
    assert!(!share(0, (at(1, 3), at(1, 4)), route), "not down the first column");
    assert!(!share(0, (at(2, 4), at(4, 4)), route), "not along the last row");
    // NoC 1 from (3, 4) to (1, 2) goes up column 3 and then left along row 2.
    let route = (at(3, 4), at(1, 2));
    assert!(share(1, (at(3, 3), at(3, 2)), route), "up the first column");
    assert!(share(1, (at(3, 2), at(2, 2)), route), "along the last row");
    assert!(!share(1, (at(2, 4), at(1, 4)), route), "not along the first row");
    assert!(!share(1, (at(1, 4), at(1, 3)), route), "not up the last column");
}

#[test]
fn the_two_nocs_share_nothing() {
    let grid = board_grid(Board::P150);
    let (a, b) = (tile(&grid, 1, 2), tile(&grid, 2, 2));
    let long = write_of(0, a, Dest::Unicast(b), 16384);
    let arrivals = run(&mut Network::new(), vec![(0, long), (0, ping(1, a, b))]);
    assert_eq!(arrivals[1].0, hops(16));
}

#[test]
fn a_busy_link_is_waited_for() {
    let grid = board_grid(Board::P150);
    let (a, b, c) = (tile(&grid, 1, 2), tile(&grid, 2, 2), tile(&grid, 3, 2));
    // 1 + 256 flits leave (1,2) for (3,2) from cycle 0; they occupy the link after (2,2) during 14
    // .. 14 + 257.
    let long = write_of(0, a, Dest::Unicast(c), 16384);
    let arrivals = run(&mut Network::new(), vec![(0, long.clone()), (9, ping(0, b, c))]);
    assert_eq!(arrivals[0].0, 5 + 9 + 9 + 5 + 257);
    assert_eq!(arrivals[1].0, 14 + 257 + 9 + 5 + 1);
    // What comes to the link before them goes first, though it has left later. Of 33 flits eight
    // pass in 6 .. 14.
    assert_eq!(run(&mut Network::new(), vec![(0, long.clone()), (1, ping(0, b, c))])[1].0, 1 + hops(1));
    let short = write_of(0, b, Dest::Unicast(c), 32 * 64);
    let arrivals = run(&mut Network::new(), vec![(0, long), (1, short), (3, ping(0, b, c))]);
    assert_eq!(arrivals[1].0, 14 + 257 + 33 - 8 + 9 + 5);
    assert_eq!(arrivals[2].0, arrivals[1].0 + 1, "the next one is behind it");
}

#[test]
fn what_a_tile_sends_to_itself_does_not_wait_for_what_comes_later() {
    let grid = board_grid(Board::P150);
    let (from, next) = (tile(&grid, 5, 7), tile(&grid, 6, 7));
    let rect = NocRect { start: NocXy::new(3, 5), end: NocXy::new(7, 9) };
    let tiles = grid.rectangle(0, rect.encode(), None).expect("tiles");
    // It goes all around the torus, and has the link to the NIU from cycle 5 + 16 * 9 on.
    let far = ping(0, next, from);
    let data = write_of(0, from, Dest::Multicast(tiles.clone()), 256);
    let flag = write_of(0, from, Dest::Multicast(tiles), 4);
    let own = write_of(0, from, Dest::Unicast(from), 4);
    let arrivals = run(&mut Network::new(), vec![(0, far), (1, data), (6, flag), (8, own)]);
    let to_itself = |packet: &Packet| match packet.to {
        Dest::Unicast(to) | Dest::Copy(to) => packet.from == from && to == from,
        _ => false,
    };
    let own: Vec<Cycle> = arrivals.iter().filter(|(_, packet)| to_itself(packet)).map(|&(at, _)| at).collect();
    // Behind each other, with 5, 2 and 2 flits.
    assert_eq!((arrivals[0].0, own), (hops(16), vec![1 + 5 + 9 + 5 + 5, 27, 29]));
}

fn multicast(grid: &Grid, noc: u8, from: Place, x_major: bool) -> HashMap<(u8, u8), Cycle> {
    let rect = NocRect { start: NocXy::new(3, 5), end: NocXy::new(7, 9) };
    let word = if noc == 0 { rect.encode() } else { rect.encode_noc1() };
    let tiles = grid.rectangle(noc, word, None).expect("tiles");
    let to = if x_major { Dest::Multicast(tiles) } else { Dest::MulticastY(tiles) };
    run(&mut Network::new(), vec![(0, write_of(noc, from, to, 64))])
        .into_iter()
        .map(|(at, packet)| match packet.to {
            Dest::Copy(place) => ((place.x, place.y), at - 1), // one data flit
            other => panic!("a copy for {other:?}"),
        })
        .collect()
}

#[test]
fn multicast_times_follow_the_tree() {
    // The drawn example of RoutingPaths.md: from (2,2) to the rectangle (3,5)..(7,9) on NoC 0.
    let grid = board_grid(Board::P150);
    let from = tile(&grid, 2, 2);
    for x_major in [true, false] {
        let at = multicast(&grid, 0, from, x_major);
        assert_eq!(at.len(), 25);
        assert_eq!(at[&(3, 5)], hops(1 + 3));
        assert_eq!(at[&(7, 5)], hops(5 + 3));
        assert_eq!(at[&(3, 9)], hops(1 + 7));
        assert_eq!(at[&(7, 9)], hops(5 + 7));
    }
    // From a column of the rectangle the path along the row starts there and reaches column 3 last,
    // 16 hops later.
    let at = multicast(&grid, 0, tile(&grid, 4, 2), true);
    assert_eq!((at[&(4, 5)], at[&(7, 5)], at[&(3, 5)]), (hops(3), hops(3 + 3), hops(3 + 16)));
    // NoC 1 from (10, 11): left 3 to column 7, up 2 to row 9, and so on to (3, 5).
    for x_major in [true, false] {
        let at = multicast(&grid, 1, tile(&grid, 10, 11), x_major);
        assert_eq!((at[&(7, 9)], at[&(3, 5)]), (hops(3 + 2), hops(7 + 6)));
    }
}

#[test]
fn the_major_axis_decides_which_links_a_multicast_takes() {
    let grid = board_grid(Board::P150);
    let tiles =
        grid.rectangle(0, NocRect { start: NocXy::new(3, 5), end: NocXy::new(7, 9) }.encode(), None).expect("tiles");
    let from = tile(&grid, 2, 2);
    // The links from (5,6) down to (5,9) belong to the tree only when Y is major.
    let victim = ping(0, tile(&grid, 5, 6), tile(&grid, 5, 10));
    let after =
        |to: Dest| run(&mut Network::new(), vec![(0, write_of(0, from, to, 16384)), (80, victim.clone())]).pop();
    assert_eq!(after(Dest::Multicast(tiles.clone())).expect("an arrival").0, 80 + hops(4));
    // The multicast's head is at (5,6) after 3 + 4 hops, and its 257 flits hold the link
    // from then on.
    assert_eq!(after(Dest::MulticastY(tiles)).expect("an arrival").0, 5 + 9 * 7 + 257 + 9 * 4 + 5 + 1);
    // A row link inside the rectangle is free when Y is major.
    let victim = ping(0, tile(&grid, 4, 8), tile(&grid, 10, 8));
    let tiles =
        grid.rectangle(0, NocRect { start: NocXy::new(3, 5), end: NocXy::new(7, 9) }.encode(), None).expect("tiles");
    let after =
        |to: Dest| run(&mut Network::new(), vec![(0, write_of(0, from, to, 16384)), (80, victim.clone())]).pop();
    assert!(after(Dest::Multicast(tiles.clone())).expect("an arrival").0 > 80 + hops(6));
    assert_eq!(after(Dest::MulticastY(tiles)).expect("an arrival").0, 80 + hops(6));
}

#[test]
fn a_multicast_uses_each_link_once() {
    let grid = board_grid(Board::P150);
    let from = tile(&grid, 1, 2);
    let tiles = grid
        .rectangle(0, NocRect { start: NocXy::new(1, 2), end: NocXy::new(16, 11) }.encode(), Some(from))
        .expect("tiles");
    let to = tile(&grid, 16, 11);
    let packets = vec![(0, write_of(0, from, Dest::Multicast(tiles), 16384)), (0, ping(0, from, to))];
    let last = run(&mut Network::new(), packets).pop().expect("an arrival");
    // 257 flits are waited for once, at the injection port; afterwards the head finds each link of
    // the way just freed.
    assert_eq!(last.0, 257 + hops(15 + 9));
}

#[derive(Clone, Debug)]
struct Shot {
    at: Cycle,
    noc: u8,
    from: usize,
    to: usize,
    bytes: usize,
}

fn shots() -> impl Strategy<Value = Vec<Shot>> {
    let shot = (0..400u64, 0..2u8, 0..8usize, 0..8usize, 0..600usize).prop_map(|(at, noc, from, to, bytes)| Shot {
        at,
        noc,
        from,
        to,
        bytes,
    });
    prop::collection::vec(shot, 1..200)
}

proptest! {
    #[test]
    fn packets_between_the_same_tiles_arrive_in_order(mut shots in shots()) {
        let grid = board_grid(Board::P150);
        let spots: Vec<_> = [(1, 2), (2, 2), (7, 5), (10, 5), (10, 11), (16, 2), (16, 3), (4, 8)]
            .iter().map(|&(x, y)| tile(&grid, x, y)).collect();
        shots.sort_by_key(|s| (s.at, spots[s.from]));
        let packets = || shots.iter().map(|s| {
            (s.at, write_of(s.noc, spots[s.from], Dest::Unicast(spots[s.to]), s.bytes))
        }).collect::<Vec<_>>();
        let arrivals = run(&mut Network::new(), packets());
        let mut last: HashMap<(u8, usize, usize), Cycle> = HashMap::new();
        for (shot, (at, packet)) in shots.iter().zip(&arrivals) {
            prop_assert_eq!(packet.from, spots[shot.from]);
            prop_assert!(*at >= shot.at + timing::LOOKAHEAD + packet.body.data_flits());
            let previous = last.insert((shot.noc, shot.from, shot.to), *at);
            prop_assert!(previous.is_none_or(|p| p < *at), "overtaken: {:?} then {}", previous, at);
        }
        prop_assert_eq!(&arrivals, &run(&mut Network::new(), packets()));
        // Handing over the departures in two batches changes nothing.
        let mut network = Network::new();
        let mut all = packets();
        let tail = all.split_off(all.len() / 2);
        let mut portions = run(&mut network, all);
        portions.extend(run(&mut network, tail));
        prop_assert_eq!(&arrivals, &portions);
        prop_assert_eq!(network.stats().packets, shots.len() as u64);
    }
}

#[test]
fn totals_count_a_multicast_once() {
    let grid = board_grid(Board::P150);
    let from = tile(&grid, 1, 2);
    let tiles =
        grid.rectangle(0, NocRect { start: NocXy::new(1, 2), end: NocXy::new(2, 3) }.encode(), None).expect("tiles");
    let mut network = Network::new();
    let copies = run(&mut network, vec![(0, write_of(0, from, Dest::Multicast(Arc::clone(&tiles)), 100))]);
    assert_eq!(copies.len(), 4);
    let stats = network.stats();
    assert_eq!((stats.packets, stats.flits, stats.bytes), (1, 3, 100));
}
