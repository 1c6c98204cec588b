//! The links that a packet crosses.
//!
//! NoC 0 goes to higher columns first and then to higher rows, NoC 1 to lower rows first and then
//! to lower columns, both around the edges (NoC/RoutingPaths.md).

use tilework_abi::convert::u8_of;
use tilework_abi::noc::{GRID_X, GRID_Y};

/// Names of a link's directions, by the NoC and whether it leads along a row.
pub const LINK_DIRECTIONS: [[&str; 2]; 2] = [["down", "right"], ["up", "left"]];

/// A link between two routers: the router that it leads away from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Link {
    /// The NoC.
    pub noc: u8,
    /// Physical column.
    pub x: u8,
    /// Physical row.
    pub y: u8,
    /// Along a row, not a column.
    pub along_x: bool,
}

impl Link {
    /// Where it leads.
    pub const fn direction(self) -> &'static str {
        LINK_DIRECTIONS[(self.noc & 1) as usize][self.along_x as usize]
    }
}

/// The links from the router at `from` to the one at `to`, in order.
pub fn links_of(noc: u8, from: (u8, u8), to: (u8, u8)) -> impl Iterator<Item = Link> {
    let mut at = from;
    std::iter::from_fn(move || {
        // The first axis is finished before the second one begins.
        let along_x = match noc {
            0 => at.0 != to.0,
            _ => at.1 == to.1,
        };
        if at == to {
            return None;
        }
        let link = Link { noc, x: at.0, y: at.1, along_x };
        let (place, size) = if along_x { (&mut at.0, u8_of(GRID_X)) } else { (&mut at.1, u8_of(GRID_Y)) };
        *place = match noc {
            0 if *place + 1 >= size => 0,
            0 => *place + 1,
            _ if *place == 0 => size - 1,
            _ => *place - 1,
        };
        Some(link)
    })
    // More there are not on any way; coordinates outside the grid have no end.
    .take(GRID_X as usize + GRID_Y as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(noc: u8, from: (u8, u8), to: (u8, u8)) -> Vec<(u8, u8, &'static str)> {
        links_of(noc, from, to).map(|link| (link.x, link.y, link.direction())).collect()
    }

    #[test]
    fn noc_0_goes_right_and_down_noc_1_up_and_left() {
        assert_eq!(way(0, (1, 2), (3, 3)), [(1, 2, "right"), (2, 2, "right"), (3, 2, "down")]);
        assert_eq!(way(1, (3, 3), (1, 2)), [(3, 3, "up"), (3, 2, "left"), (2, 2, "left")]);
        assert_eq!(way(0, (5, 5), (5, 5)), []);
    }

    #[test]
    fn both_go_around_the_edges() {
        assert_eq!(way(0, (16, 11), (0, 0)), [(16, 11, "right"), (0, 11, "down")]);
        assert_eq!(way(1, (0, 0), (16, 11)), [(0, 0, "up"), (0, 11, "left")]);
    }
}
