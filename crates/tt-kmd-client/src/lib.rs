//! A card in this machine, behind the kernel driver tt-kmd 2.x: a [`HostLink`] over
//! `/dev/tenstorrent/N`.
//!
//! [`KmdCard`] does what drivers of the card do: windows are the kernel driver's
//! (`ALLOCATE_TLB`, `CONFIGURE_TLB`) and are mapped, host memory is pinned with an address on the
//! NoC (`PIN_PAGES`), and time is what a counter of the chip says. [`check`] looks at what the card
//! tells of itself before anything is run on it. [`KmdCard::release`] leaves it reset. Numbers and
//! structures are rows of [`tilework_abi::kmd`]; behaviour follows the public driver
//! (`tenstorrent/tt-kmd`). Unsafe code is in `system.rs` alone, behind [`Kernel`], for which tests
//! have the driver of the crate `kmd` on a simulated chip.
//!
//! [`HostLink`]: tilework_driver::HostLink

#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod card;
mod check;
mod counter;
mod error;
mod kernel;
mod link;
mod memory;
mod release;
#[cfg(target_os = "linux")]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "system_elsewhere.rs"]
mod system;
mod window;

pub use card::{KmdCard, LOCK, OLDEST_DRIVER};
pub use check::{Facts, NEWEST_MAJOR, OLDEST_FIRMWARE, check};
pub use error::OpenError;
pub use kernel::{Kernel, Mapped, Pages};
pub use release::Released;
pub use system::System;

/// A card in this machine.
pub type RealCard = KmdCard<System>;
