//! The chip as the card drives it: alone, or under gdb, which stops it within a call of the host.

use crate::messages::say_last;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tilework_abi::tlb::Bar;
use tilework_debugger::{DebugLink, Debugger};
use tilework_driver::HostLink;
use tilework_sim::Chip;

/// The chip, and perhaps its debugger. The calls of both take the same cycles.
pub(crate) enum Host {
    Alone(Box<Chip>),
    Debugged(Box<DebugLink>, Debugger),
}

/// Why a call has failed.
fn text(error: impl Display) -> String {
    error.to_string()
}

impl Host {
    /// The chip under gdb, which is waited for.
    ///
    /// # Errors
    /// The port cannot be had.
    pub(crate) fn debugged(chip: Chip, port: u16) -> Result<Self, String> {
        let ready = |port| {
            say_last(&format!("waiting for gdb before the chip's first cycle: target remote localhost:{port}"));
        };
        // Nobody interrupts a host in the middle of a call.
        let interrupted = Arc::new(AtomicBool::new(false));
        let failed = |error: &dyn Display| format!("port {port}: {error}");
        let debugger = Debugger::new(port, Box::new(ready), interrupted).map_err(|error| failed(&error))?;
        let link = debugger.attach(chip).map_err(|error| failed(&error))?;
        Ok(Self::Debugged(Box::new(link), debugger))
    }

    pub(crate) fn chip(&mut self) -> &mut Chip {
        match self {
            Self::Alone(chip) => chip,
            Self::Debugged(link, _) => link.chip_mut(),
        }
    }

    /// Whether gdb wants the process to end.
    pub(crate) fn is_killed(&self) -> bool {
        matches!(self, Self::Debugged(_, debugger) if debugger.killed())
    }

    #[inline]
    pub(crate) fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.bar_read(bar, offset, out).map_err(text),
            Self::Debugged(link, _) => link.bar_read(bar, offset, out).map_err(text),
        }
    }

    #[inline]
    pub(crate) fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.bar_write(bar, offset, data).map_err(text),
            Self::Debugged(link, _) => link.bar_write(bar, offset, data).map_err(text),
        }
    }

    /// Lets cycles pass in which nothing happens; `false`: something may, and nothing has changed.
    #[inline]
    pub(crate) fn clock_quickly(&mut self, cycles: u64) -> bool {
        match self {
            Self::Alone(chip) => chip.clock_quickly(cycles),
            Self::Debugged(..) => false,
        }
    }

    /// For how many cycles that is known to do.
    #[inline]
    pub(crate) fn quiet_cycles(&self) -> u64 {
        match self {
            Self::Alone(chip) => chip.quiet_cycles(),
            Self::Debugged(..) => 0,
        }
    }

    /// Lets cycles pass.
    #[inline]
    pub(crate) fn clock(&mut self, cycles: u64) -> Result<(), String> {
        match self {
            Self::Alone(chip) => chip.clock(cycles).map_err(text),
            Self::Debugged(link, _) => link.idle(cycles).map_err(text),
        }
    }
}
