//! How long packets take at least between nodes.
//!
//! A packet takes [`timing::LOOKAHEAD`] cycles to the next router and [`timing::ROUTER_HOP`] for
//! each further one. Both NoCs move data in one direction only, so a way is at least as long as the
//! shortest one on a torus with links in both directions, and this distance obeys the triangle
//! inequality: what a node sets off elsewhere does not come sooner by a detour.

use crate::noc::Place;
use crate::{Cycle, timing};
use std::ops::Range;
use tilework_abi::noc::{GRID_X, GRID_Y};

/// The largest distance.
const FARTHEST: Cycle = timing::LOOKAHEAD + (GRID_X / 2 + GRID_Y / 2 - 1) as Cycle * timing::ROUTER_HOP;
const _: () = assert!(FARTHEST <= u8::MAX as Cycle);

/// How long a packet takes at least from each node to each other.
#[derive(Clone, Debug)]
pub(crate) struct Distances {
    nodes: usize,
    cycles: Box<[u8]>,
    /// The nodes that are DRAM banks.
    dram: Range<usize>,
}

impl Distances {
    /// Between nodes with NIUs at these places. For a node without any, the look-ahead counts.
    pub(crate) fn new(places: &[Vec<Place>]) -> Self {
        let between = |from: &[Place], to: &[Place]| {
            let hops = from.iter().flat_map(|a| to.iter().map(|b| hops(*a, *b))).min().unwrap_or(0);
            (timing::LOOKAHEAD + hops.saturating_sub(1) * timing::ROUTER_HOP) as u8
        };
        let cycles = places.iter().flat_map(|to| places.iter().map(move |from| between(from, to))).collect();
        Self { nodes: places.len(), cycles, dram: 0..0 }
    }

    /// The same, where these nodes are DRAM banks.
    #[must_use]
    pub(crate) fn with_dram(mut self, dram: Range<usize>) -> Self {
        self.dram = dram;
        self
    }

    /// Whether a node is a DRAM bank.
    #[inline]
    pub(crate) fn is_dram(&self, node: usize) -> bool {
        self.dram.contains(&node)
    }

    /// How many nodes there are.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// From one node to another.
    #[inline]
    pub(crate) fn between(&self, from: usize, to: usize) -> Cycle {
        self.to(to)[from].into()
    }

    /// The distances of all nodes to this one.
    #[inline]
    pub(crate) fn to(&self, node: usize) -> &[u8] {
        &self.cycles[node * self.nodes..][..self.nodes]
    }
}

/// Routers from one place to another, at least.
fn hops(a: Place, b: Place) -> Cycle {
    let along = |a: u8, b: u8, size: u32| {
        let straight = u32::from(a.abs_diff(b));
        straight.min(size.saturating_sub(straight))
    };
    Cycle::from(along(a.x, b.x, GRID_X) + along(a.y, b.y, GRID_Y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noc::{Body, Departure, Dest, Network, Packet, Reply};
    use crate::probe::RequestId;

    #[test]
    fn no_packet_takes_less_than_the_distance() {
        let places: Vec<Vec<Place>> = (0..GRID_X as u8)
            .flat_map(|x| (0..GRID_Y as u8).map(move |y| (x, y)))
            .enumerate()
            .map(|(node, (x, y))| vec![Place { node: node as u16, x, y }])
            .collect();
        let distances = Distances::new(&places);
        let mut closest = [Cycle::MAX; 2];
        for (to, at) in places.iter().enumerate() {
            for (from, place) in places.iter().enumerate() {
                let least = distances.between(from, to);
                assert!((timing::LOOKAHEAD..=FARTHEST).contains(&least));
                for noc in 0..2 {
                    let reply = Reply { to: place[0], trid: 0, addr: 0 };
                    let body = Body::ReadRequest { addr: 0, len: 4, reply };
                    let packet =
                        Packet { noc, from: place[0], to: Dest::Unicast(at[0]), id: RequestId::default(), body };
                    Network::new().carry(Departure { at: 0, packet: packet.into() }, |arrival, _, _| {
                        assert!(arrival >= least, "from {from} to {to} on NoC {noc}: {arrival}, {least}");
                        let slack = &mut closest[usize::from(noc)];
                        *slack = (*slack).min(arrival - least);
                    });
                }
            }
        }
        assert_eq!(closest, [0, 0], "no larger distance would do");
    }

    #[test]
    fn distances_obey_the_triangle_inequality() {
        let place = |(x, y)| Place { node: 0, x, y };
        let spots = [(0, 0), (1, 11), (16, 0), (8, 6), (9, 5), (3, 3), (16, 11)].map(place);
        for a in spots {
            for b in spots {
                assert!(spots.iter().all(|&c| hops(a, b) <= hops(a, c) + hops(c, b)), "{a:?} {b:?}");
            }
        }
    }
}
