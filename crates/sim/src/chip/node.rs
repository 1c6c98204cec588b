//! The nodes of a chip as the scheduler runs them: one type for all kinds.

use crate::arc::ArcTile;
use crate::crew::Worked;
use crate::dram::DramBank;
use crate::inert::InertTiles;
use crate::noc::{Outbox, Packet};
use crate::node::Outlook;
use crate::pcie::Pcie;
use crate::tile::Tile;
use crate::{Cycle, Fault, NEVER, Node};

/// A node of the chip.
#[derive(Clone)]
pub(super) enum AnyNode {
    Tensix(Box<Tile>),
    Dram(Box<DramBank>),
    Pcie(Box<Pcie>),
    Arc(Box<ArcTile>),
    Inert(Box<InertTiles>),
    /// Another thread runs it.
    Away(Away),
}

/// The Tensix tiles among `nodes`. Of these alone, so that the chip's other parts stay free.
pub(super) fn tiles_mut(nodes: &mut [AnyNode]) -> impl Iterator<Item = &mut Tile> {
    nodes.iter_mut().filter_map(|node| match node {
        AnyNode::Tensix(tile) => Some(&mut **tile),
        _ => None,
    })
}

/// In the place of a node that another thread runs. Nothing happens here, and nothing comes here.
#[derive(Clone)]
pub(super) struct Away;

impl Node for Away {
    fn next(&self) -> Cycle {
        NEVER
    }
    fn deliver(&mut self, _at: Cycle, _packet: impl Into<Box<Packet>>) {}
    fn run(&mut self, _until: Cycle, _out: &mut Outbox) -> Result<(), Fault> {
        Ok(())
    }
}

impl Worked for AnyNode {
    fn away() -> Self {
        Self::Away(Away)
    }
}

macro_rules! each {
    ($any:expr, $node:ident => $body:expr) => {
        match $any {
            AnyNode::Tensix($node) => $body,
            AnyNode::Dram($node) => $body,
            AnyNode::Pcie($node) => $body,
            AnyNode::Arc($node) => $body,
            AnyNode::Inert($node) => $body,
            AnyNode::Away($node) => $body,
        }
    };
}

impl Node for AnyNode {
    #[inline(always)]
    fn next(&self) -> Cycle {
        each!(self, node => node.next())
    }
    fn outlook(&self) -> Outlook {
        each!(self, node => node.outlook())
    }
    #[inline]
    fn computes(&self) -> bool {
        matches!(self, Self::Tensix(_))
    }
    fn rested(&self) -> Cycle {
        each!(self, node => node.rested())
    }
    #[inline]
    fn deliver(&mut self, at: Cycle, packet: impl Into<Box<Packet>>) {
        each!(self, node => node.deliver(at, packet));
    }
    #[inline(always)]
    fn run(&mut self, until: Cycle, out: &mut Outbox) -> Result<(), Fault> {
        each!(self, node => node.run(until, out))
    }
    #[inline]
    fn faces_host(&self) -> bool {
        matches!(self, Self::Pcie(_))
    }
    fn speculate(&mut self, end: Cycle, limit: Cycle) {
        each!(self, node => node.speculate(end, limit));
    }
}
