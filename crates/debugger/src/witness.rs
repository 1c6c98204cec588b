//! Somebody who looks at the chip all the time and finds what is wrong: the chip stops there.
//!
//! Going back repeats the run from a checkpoint, so what a witness has seen up to there is kept
//! with it and put back: nothing is seen twice, and nothing is lost. gdb is told of each finding
//! once, however often the run comes by.

use crate::goal::{Goal, Stop};
use crate::machine::Machine;
use std::any::Any;
use std::sync::Arc;
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_sim::Observer;

/// What was found.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Found {
    /// When.
    pub at: Cycle,
    /// The tile.
    pub tile: NocXy,
    /// The core whose instruction it is, if it is known.
    pub core: Option<Processor>,
    /// What is wrong, in words.
    pub what: String,
    /// Whether the chip stops for it. It may be meant to be.
    pub stops: bool,
}

/// Looks at a chip through observers that stay the same however often the run is repeated.
pub trait Witness: Send {
    /// The observers, for a chip.
    fn observers(&self) -> Vec<Box<dyn Observer>>;
    /// What the observers know now.
    fn keep(&self) -> Arc<dyn Any + Send + Sync>;
    /// Puts back what [`Witness::keep`] has given, perhaps to another witness of the same program.
    fn put(&self, kept: &dyn Any);
    /// What was found so far, but for the first `known`: in the order in which it was found.
    fn found(&self, known: usize) -> Vec<Found>;
}

impl Machine {
    /// What was found up to now and gdb has not been told, as stops.
    pub(crate) fn found(&mut self) -> Vec<Stop> {
        // While the run goes back it finds again what was found.
        let is_told = matches!(self.state.goal, Goal::Start | Goal::Back(_));
        let Some(witness) = self.witness.as_ref().filter(|_| !is_told) else { return Vec::new() };
        self.chip.show_past();
        let found = witness.found(self.looked_at);
        self.looked_at += found.len();
        let new = found.into_iter().filter(|found| found.stops && !self.state.told.contains(found));
        new.map(|found| Stop::Found(self.thread_of(Some(found.tile), found.core), found)).collect()
    }

    /// All that was found up to now.
    pub(crate) fn all_found(&mut self) -> Option<Vec<Found>> {
        let witness = self.witness.as_ref()?;
        self.chip.show_past();
        Some(witness.found(0))
    }
}
