//! The simulated chip under gdb: every core is a thread, and the whole chip stops at once.
//!
//! A program runs on a [`DebugLink`], which is a chip for everything above it. While the host waits
//! in a call, the link lets the chip run in short windows and stops it, time included, where gdb
//! wants it: the host sees nothing of that, so cycles and results are those of a run without a
//! debugger. Going back in time is running again: a run is a pure function of its program and
//! arrays, so the link refuses all further calls, and whoever owns the run repeats it
//! ([`Debugger::goes_back`]) up to the place that was asked for; from the last checkpoint before it
//! on, and without the chip up to there.
//!
//! The protocol is that of the GDB manual ("GDB Remote Serial Protocol"), as the crate `gdbstub`
//! speaks it. Only the machine's own users reach the port: it listens on the loopback address.

#![forbid(unsafe_code)]

mod arch;
mod code;
mod control;
mod files;
mod goal;
mod history;
mod link;
mod machine;
mod monitor;
mod server;
mod target;
mod watch;
mod witness;

pub use code::{Code, Image, ImageKind};
pub use control::Debugger;
pub use link::DebugLink;
pub use witness::{Found, Witness};
