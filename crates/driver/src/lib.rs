//! How a host reaches a chip: TLB windows, pinned host memory, resets, telemetry.
//!
//! Everything here goes through [`HostLink`], the few things that a host can do to a card. The
//! simulated chip implements it, and so do a chip behind the libttsim interface and a card behind
//! its kernel driver (`/dev/tenstorrent`). This crate knows none of them. [`Card`] is the
//! usual entrance: a link with windows onto it.
//!
//! Sources: tt-kmd `ioctl.h`, the original's `device.py`; layouts are in
//! [`tilework_abi::tlb`] and [`tilework_abi::telemetry`].

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod card;
mod error;
mod link;
mod note;
mod pinned;
mod rects;
mod soc;
mod telemetry;
mod window;

pub use card::Card;
pub use error::{ChipFault, DriverError, LinkError};
pub use link::{
    ChipCounts, HostLink, Inspect, RunningCore, SeenStore, StoreSink, WaitingCore, WaitingThread, WatchedWord,
};
pub use note::{
    ArgumentsNote, BankNote, BufferNote, CbNote, CodeNote, CommandNote, CommandsNote, FirmwareNote, LaunchNote,
    MemoryKind, Note, QueueNote, RoleNote, RunNote,
};
pub use pinned::Pinned;
pub use rects::cover;
pub use soc::soc_descriptor;
pub use telemetry::Telemetry;
pub use tilework_abi::tlb::{Bar, Ordering, WindowSize};
pub use window::{Target, Tiles, Window, WindowPool};
