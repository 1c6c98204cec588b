//! The two NoCs: packets, coordinates, NIUs and the network between them.
//!
//! A tile's [`Niu`] turns register writes into [`Packet`]s and packets into memory accesses and
//! counters; the [`Network`] carries packets over both tori and says when they arrive; the [`Grid`]
//! says which tile coordinates mean. Follows BlackholeA0/NoC and, where that has no page,
//! WormholeB0/NoC of the ISA documents.

mod atomics;
mod grid;
mod late;
mod link;
mod network;
mod niu;
mod outgoing;
mod packet;
mod payload;
mod refusal;
mod responder;
mod stats;
#[cfg(test)]
mod tests;
mod translate;

pub(crate) use atomics::{wrapped, wraps};
pub use grid::GridError;
pub(crate) use grid::{Grid, GridBuilder, TileKind};
pub use late::LatePackets;
pub(crate) use network::Network;
pub(crate) use niu::{Leaving, Niu, Start, is_misaligned};
pub(crate) use outgoing::{Outgoing, shows_sent};
pub(crate) use packet::{Body, Departure, Dest, NodeId, Outbox, Packet, Place, Reply, Touch};
pub(crate) use payload::{Data, PAGE, Page};
pub(crate) use refusal::{HostRequest, serve_or_refuse};
pub(crate) use responder::{read_data, read_response, serve, write_ack};
pub(crate) use stats::NocStats;
