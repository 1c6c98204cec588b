//! The Ascend cluster: one Cube core and two Vector cores that exchange tiles through rings guarded
//! by 4-bit counting semaphores (seed 002; `pto-isa`, commit 3186c381).
//!
//! A [`Cluster`] runs one kernel per core on a virtual clock. Kernels are async functions of a
//! [`Core`]; they open their ends of a [`Ring`] and push, pop and free tiles. The waits and signals
//! of each operation are defined once, in [`protocol`], for three protocols: the design document's,
//! the seed's (the default), and the headers' with their defects.
//!
//! ```
//! use tilework_pto::{Arch, Cluster, Config, CoreId, DType, Direction, RingSpec, Shape, Tile};
//!
//! let mut cluster = Cluster::new(Config::new(Arch::A5, 7));
//! let shape = Shape::new(4, 8, DType::F32);
//! let ring = cluster.ring(RingSpec::new("c2v", Direction::C2V, shape).slots(2))?;
//! let from = ring.clone();
//! cluster.spawn(CoreId::Cube, async move |core| {
//!     let mut end = core.open(&from).await?;
//!     for i in 0..6 {
//!         let tile = Tile::from_fn(shape, |row, col| (i * 100 + row * 8 + col) as f32);
//!         end.push(&tile).await?;
//!     }
//!     end.close().await
//! });
//! let sums = [CoreId::Vector0, CoreId::Vector1].map(|id| {
//!     let ring = ring.clone();
//!     cluster.spawn(id, async move |core| {
//!         let mut end = core.open(&ring).await?;
//!         let mut sum = 0.0;
//!         for _ in 0..6 {
//!             sum += end.pop_tile().await?.to_f32().iter().sum::<f32>();
//!             end.free().await?;
//!         }
//!         Ok(sum)
//!     })
//! });
//! let report = cluster.run()?;
//! assert!(report.leftovers.is_empty());
//! let expected = [120.0, 376.0].map(|sum| Some(16.0 * 1500.0 + 6.0 * sum));
//! assert_eq!(sums.map(|sum| sum.take()), expected);
//! # Ok::<(), tilework_pto::Fault>(())
//! ```
//!
//! Kernels without arithmetic of their own, in which only the rings matter, are lists of
//! operations: a [`schedule::Schedule`], which runs and whose interleavings can be explored.
//!
//! Clippy's cast lints stay off here: tile arithmetic converts between element types, which round
//! and truncate by definition.

#![forbid(unsafe_code)]

pub mod arch;
pub mod core_id;
pub mod deadlock;
pub mod events;
pub mod examples;
pub mod explore;
pub mod fault;
pub mod ffts;
pub mod ids;
pub mod launch;
pub mod machine;
pub mod memory;
pub mod protocol;
pub mod ring;
pub mod schedule;
pub mod sim;
pub mod split;
pub mod tile;
pub mod timeline;
pub mod timing;

mod random;

pub use arch::Arch;
pub use core_id::{CoreId, Lane, Pipe};
pub use deadlock::{Deadlock, Waiting};
pub use events::{Event, EventKind};
pub use explore::{Explored, Scenario, explore};
pub use fault::{Access, Fault, Race, When};
pub use launch::{Binding, Handshake, LaunchError, Scheduler};
pub use protocol::Profile;
pub use ring::{Base, Direction, RingError, RingSpec};
pub use schedule::{Action, Schedule};
pub use sim::{Cluster, ClusterReport, Config, Core, Output, Popped, RacePolicy, Ring, RingEnd, Slot};
pub use split::Split;
pub use tile::{DType, Shape, Tile};
