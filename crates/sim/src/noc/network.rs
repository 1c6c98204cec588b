//! The routers and links of both NoCs: when a packet arrives.
//!
//! A NoC is a torus of 17 x 12 routers. Coordinates here are those of NoC 0. NoC 0 moves data
//! right, then down; NoC 1 up, then left (WormholeB0/NoC/RoutingPaths.md; `NOC_NODE_ID` bit 28 of
//! BlackholeA0/NoC/MemoryMap.md). A packet's head takes a fixed time per hop and waits at each link
//! until the packets that came before it have passed ([`super::link`]); its tail follows one flit a
//! cycle behind. Packets between the same two NIUs never overtake each other (unless they are made
//! late, [`super::late`]).
//! Virtual channels are not modelled: where hardware interleaves two packets on a link, here the
//! second waits for the first, and both are through after the same time; and a waiting packet does
//! not block the links behind it. A path reservation (`NOC_CMD_PATH_RESERVE`) takes no time.

use super::grid::ROUTERS;
use super::late::{Late, LatePackets};
use super::link::{Front, Gaps, Link};
use super::packet::NodeId;
use super::{Departure, Dest, NocStats, Packet, Place};
use crate::{Cycle, timing};
use tilework_abi::noc::{GRID_X, GRID_Y};

const NOCS: usize = 2;
const WIDTH: u8 = GRID_X as u8;
const HEIGHT: u8 = GRID_Y as u8;

/// Each router has four links.
const LINKS: usize = 4 * ROUTERS;
/// Router to the next one in X, row by row.
const X: usize = 0;
/// Router to the next one in Y, column by column.
const Y: usize = ROUTERS;
/// NIU to router.
const INJECT: usize = 2 * ROUTERS;
/// Router to NIU.
const EJECT: usize = 3 * ROUTERS;

/// The links of one NoC, and their gaps before the last one.
#[derive(Clone, Debug)]
struct Links {
    links: [Link; LINKS],
    gaps: [Gaps; LINKS],
}

impl Links {
    const fn new() -> Self {
        Self { links: [Link::NEW; LINKS], gaps: [const { Gaps::new() }; LINKS] }
    }

    /// Carries a packet across one link.
    #[inline]
    fn cross(&mut self, link: usize, front: &mut Front, latency: u64) {
        self.links[link].cross(&mut self.gaps[link], front, latency);
    }

    /// Carries a packet along the links of one row or column, whose first one is `line`, from the
    /// router at `from` to the one at `to`, in the direction of data flow.
    #[inline]
    fn travel(&mut self, line: Line, noc: usize, (from, to): (u8, u8), front: &mut Front) {
        let (from, to) = (line.first + usize::from(from), line.first + usize::from(to));
        let end = line.first + line.links;
        let parts = match noc {
            0 if from <= to => [from..to, 0..0],
            0 => [from..end, line.first..to],
            _ if to <= from => [to + 1..from + 1, 0..0],
            _ => [line.first..from + 1, to + 1..end],
        };
        for part in parts {
            let links = self.links[part.clone()].iter_mut().zip(&mut self.gaps[part]);
            match noc {
                0 => links.for_each(|(link, gaps)| link.cross(gaps, front, timing::ROUTER_HOP)),
                _ => links.rev().for_each(|(link, gaps)| link.cross(gaps, front, timing::ROUTER_HOP)),
            }
        }
    }

    /// Carries a packet to its own tile, which turns around in its router.
    ///
    /// It takes its share of the link to the NIU and does not wait for it. Hardware would hold the
    /// packet in the NIU until the link is free, so that a core that waits until it has left
    /// ("flushed") would not see it come much later. Kernels that multicast a flag to themselves
    /// and then clear theirs rely on that.
    #[inline]
    fn turn_around(&mut self, own: usize, front: &mut Front) {
        let head = front.head + timing::ROUTER_HOP + timing::ROUTER_TO_NIU; // see timing::LOOKAHEAD
        self.cross(EJECT + own, front, 0);
        (front.head, front.behind) = (head, 0);
    }
}

/// The links of a row or of a column.
#[derive(Clone, Copy)]
struct Line {
    first: usize,
    links: usize,
}

/// The links along row `y`.
#[inline]
fn row(y: u8) -> Line {
    Line { first: X + usize::from(y) * usize::from(WIDTH), links: usize::from(WIDTH) }
}

/// The links along column `x`.
#[inline]
fn column(x: u8) -> Line {
    Line { first: Y + usize::from(x) * usize::from(HEIGHT), links: usize::from(HEIGHT) }
}

/// The link from router (`x`, `y`) along X or along Y.
#[inline]
fn along(x_axis: bool, x: u8, y: u8) -> usize {
    match x_axis {
        true => row(y).first + usize::from(x),
        false => column(x).first + usize::from(y),
    }
}

/// One step in the direction of data flow.
#[inline]
const fn step(noc: usize, v: u8, size: u8) -> u8 {
    if noc == 0 {
        if v + 1 == size { 0 } else { v + 1 }
    } else if v == 0 {
        size - 1
    } else {
        v - 1
    }
}

/// Both NoCs.
#[derive(Clone, Debug)]
pub(crate) struct Network {
    links: Box<[Links; NOCS]>,
    stats: NocStats,
    /// Delays beyond those of the routers, if there are any.
    late: Option<Box<Late>>,
}

impl Default for Network {
    fn default() -> Self {
        Self::new()
    }
}

impl Network {
    /// Idle NoCs.
    pub(crate) fn new() -> Self {
        Self { links: Box::new([const { Links::new() }; NOCS]), stats: NocStats::default(), late: None }
    }

    /// Makes packets late as `config` says. `host` is the PCIe tile's node.
    pub(crate) fn make_late(&mut self, config: LatePackets, host: NodeId) {
        self.late = Some(Box::new(Late::new(config, host)));
    }

    /// What both NoCs have carried.
    pub(crate) fn stats(&self) -> NocStats {
        self.stats
    }

    /// As [`Network::carry`], of a packet to one NIU: its arrival and the receiving node. `None`,
    /// and nothing is done, for other packets, and if packets are late.
    #[inline]
    pub(crate) fn carry_one(&mut self, at: Cycle, packet: &Packet) -> Option<(Cycle, NodeId, NocStats)> {
        let (&(Dest::Unicast(to) | Dest::Copy(to)), None) = (&packet.to, &self.late) else { return None };
        let counted = NocStats::of(packet);
        self.stats += counted;
        let links = &mut self.links[usize::from(packet.noc & 1)];
        let arrival = links.unicast(at, (packet.noc, packet.from, to), counted.flits);
        Some((arrival, to.node, counted))
    }

    /// Carries a packet. The caller passes packets in the order of (cycle, sender, order of
    /// departure). `deliver` gets the cycle at which the last flit arrives, the receiving node and
    /// the packet, addressed to the receiving NIU alone. That cycle is at least
    /// [`timing::LOOKAHEAD`] after the departure. Returns what the packet counts for.
    pub(crate) fn carry(
        &mut self,
        departure: Departure,
        mut deliver: impl FnMut(Cycle, NodeId, Box<Packet>),
    ) -> NocStats {
        let Departure { at, packet } = departure;
        let counted = NocStats::of(&packet);
        self.stats += counted;
        let links = &mut self.links[usize::from(packet.noc & 1)];
        let late = &mut self.late;
        let mut deliver = |at, to: Place, packet: Box<Packet>| {
            let at = late.as_mut().map_or(at, |late| late.arrival(at, &packet, to));
            deliver(at, to.node, packet);
        };
        match &packet.to {
            &(Dest::Unicast(to) | Dest::Copy(to)) => {
                let arrival = links.unicast(at, (packet.noc, packet.from, to), counted.flits);
                deliver(arrival, to, packet);
            }
            Dest::Multicast(tiles) => {
                let tiles = tiles.clone();
                links.multicast(at, &packet, &tiles, true, &mut deliver);
            }
            Dest::MulticastY(tiles) => {
                let tiles = tiles.clone();
                links.multicast(at, &packet, &tiles, false, &mut deliver);
            }
        }
        counted
    }
}

impl Links {
    /// Carries a packet from one NIU to another; returns when its last flit arrives.
    #[inline]
    fn unicast(&mut self, at: Cycle, (noc, from, to): (u8, Place, Place), flits: u64) -> Cycle {
        let links = self;
        let noc = usize::from(noc & 1);
        let (x, y) = inside(from);
        let (to_x, to_y) = inside(to);
        let mut front = Front::new(at, flits);
        links.cross(INJECT + index(x, y), &mut front, timing::NIU_TO_ROUTER);
        if (x, y) == (to_x, to_y) {
            links.turn_around(index(x, y), &mut front);
            return front.tail();
        }
        // NoC 0 goes along X first, NoC 1 along Y.
        if noc == 0 {
            links.travel(row(y), noc, (x, to_x), &mut front);
            links.travel(column(to_x), noc, (y, to_y), &mut front);
        } else {
            links.travel(column(x), noc, (y, to_y), &mut front);
            links.travel(row(to_y), noc, (x, to_x), &mut front);
        }
        links.cross(EJECT + index(to_x, to_y), &mut front, timing::ROUTER_TO_NIU);
        front.tail()
    }

    /// Carries a copy to each of `tiles` along one tree (RoutingPaths.md, "Broadcast routes", and
    /// its drawing): along the major axis to the first line with a receiver, then along the minor
    /// axis, with branches along the major axis where there are receivers. Each link is used once.
    fn multicast(
        &mut self,
        at: Cycle,
        packet: &Packet,
        tiles: &[Place],
        x_major: bool,
        deliver: &mut impl FnMut(Cycle, Place, Box<Packet>),
    ) {
        let links = self;
        let noc = usize::from(packet.noc & 1);
        let tree = Tree::new(tiles, x_major);
        let (x, y) = inside(packet.from);
        let (own, mut at_niu) = (index(x, y), [0; ROUTERS]);
        let mut front = Front::new(at, packet.body.flits());
        links.cross(INJECT + own, &mut front, timing::NIU_TO_ROUTER);
        let (mut major, mut minor) = if x_major { (x, y) } else { (y, x) };
        let (major_size, minor_size) = if x_major { (WIDTH, HEIGHT) } else { (HEIGHT, WIDTH) };
        let place = |major: u8, minor: u8| if x_major { (major, minor) } else { (minor, major) };

        while tree.majors >> major & 1 == 0 && tree.majors != 0 {
            let (x, y) = place(major, minor);
            links.cross(along(x_major, x, y), &mut front, timing::ROUTER_HOP);
            major = step(noc, major, major_size);
        }
        let mut lines = tree.minors.count_ones();
        while lines > 0 {
            if tree.minors >> minor & 1 == 1 {
                lines -= 1;
                let (mut at, mut branch, mut left) = (major, front, tree.majors.count_ones());
                loop {
                    let (x, y) = place(at, minor);
                    let here = index(x, y);
                    if tree.majors >> at & 1 == 1 {
                        if tree.members[here] {
                            let mut copy = branch;
                            match here == own {
                                true => links.turn_around(here, &mut copy),
                                false => links.cross(EJECT + here, &mut copy, timing::ROUTER_TO_NIU),
                            }
                            at_niu[here] = copy.tail();
                        }
                        left -= 1;
                        if left == 0 {
                            break;
                        }
                    }
                    links.cross(along(x_major, x, y), &mut branch, timing::ROUTER_HOP);
                    at = step(noc, at, major_size);
                }
                if lines == 0 {
                    break;
                }
            }
            let (x, y) = place(major, minor);
            links.cross(along(!x_major, x, y), &mut front, timing::ROUTER_HOP);
            minor = step(noc, minor, minor_size);
        }
        for &tile in tiles {
            let (x, y) = inside(tile);
            deliver(at_niu[index(x, y)], tile, Box::new(Packet { to: Dest::Copy(tile), ..packet.clone() }));
        }
    }
}

/// The routers that a multicast has to reach.
#[derive(Clone)]
struct Tree {
    majors: u32,
    minors: u32,
    members: [bool; ROUTERS],
}

impl Tree {
    fn new(tiles: &[Place], x_major: bool) -> Self {
        let mut tree = Self { majors: 0, minors: 0, members: [false; ROUTERS] };
        for &tile in tiles {
            let (x, y) = inside(tile);
            let (major, minor) = if x_major { (x, y) } else { (y, x) };
            tree.majors |= 1 << major;
            tree.minors |= 1 << minor;
            tree.members[index(x, y)] = true;
        }
        tree
    }
}

/// Coordinates of a place, clamped to the torus. Those of a grid always lie on it; any others would
/// be a mistake of the caller.
#[inline]
fn inside(place: Place) -> (u8, u8) {
    (place.x.min(WIDTH - 1), place.y.min(HEIGHT - 1))
}

/// The router's number; coordinates lie on the torus.
#[inline]
fn index(x: u8, y: u8) -> usize {
    usize::from(y) * usize::from(WIDTH) + usize::from(x)
}
