//! What a run of the chip did, made of its events: timeline, profile and pictures.
//!
//! A [`Tracker`] observes a chip ([`tilework_sim::Observer`]) and knows from the host's notes which
//! kernels run where. It turns events into [`Activity`]: kernels that start and end, waits with
//! their reasons, requests, levels of buffers and queues. Three listeners make something of it:
//! [`ChipTimeline`] writes a timeline as it grows, [`Profile`] adds up, [`Picture`] keeps what a
//! page shows. Nothing here reads or writes files or knows sources of kernels.
//!
//! Observing changes neither cycles nor bytes.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod activity;
mod commands;
mod flight;
mod links;
mod options;
mod picture;
mod profile;
mod report;
mod tables;
mod timeline;
mod tracker;
mod tracks;
mod why;

pub use activity::{Activity, Kernel, Listener, Place};
pub use commands::Command;
pub use links::{LINK_DIRECTIONS, Link, links_of};
pub use options::{cycles, tile};
pub use picture::{Picture, page};
pub use profile::{CodeCounts, KernelKey, KernelTotals, Profile};
pub use report::{BankReport, CoreReport, KernelReport, LinkReport, ProfileReport, WaitReport};
pub use timeline::{CLOCK, ChipTimeline, Choice};
pub use tracker::{Listeners, Tracker};
pub use why::Why;
