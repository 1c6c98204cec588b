//! Schedules: what of the chip's freedom a run uses. Each is a seed with the longest delays that it
//! gives, by which a bundle repeats it even where another version has other delays.

use super::args::KernelCheckArgs;
use super::gdb::Unasked;
use super::run::Job;
use super::source::Source;
use crate::array::Array;
use crate::bundle::{self, Options};
use crate::failure::Outcome;
use crate::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilework_abi::addr::Cycle;

/// The longest delay of a packet in cycles: longer than any way through the chip.
const LATE_PACKETS: Cycle = 1_500;
/// The longest delay of a core that leaves a poll loop: some hundred instructions.
const LATE_CORES: Cycle = 400;

/// A schedule: packets and cores are late, by the delays of a seed.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The seed.
    pub seed: u32,
    /// The longest delay of a packet.
    pub packets: Cycle,
    /// The longest delay of a core.
    pub cores: Cycle,
}

impl Schedule {
    /// The schedule of a seed.
    pub const fn of(seed: u32) -> Self {
        Self { seed, packets: LATE_PACKETS, cores: LATE_CORES }
    }
}

/// Runs a program once more under a schedule and keeps what it was made of; the file that was
/// written. A run that ends well has its outputs kept, by their hashes.
///
/// # Errors
/// A file that cannot be written.
pub fn keep(
    file: &Path,
    own: &KernelCheckArgs,
    inputs: &BTreeMap<String, Array>,
    seed: u32,
    bundle: &Path,
) -> Outcome<PathBuf> {
    let folder = tempfile::tempdir()
        .map_err(|error| files::cannot_write(Path::new("."), format_args!("no temporary folder: {error}")))?;
    let mut run = Options::checked(own).read()?;
    run.board = own.plan.board;
    run.bundle.file = Some(bundle.to_owned());
    let job = Job {
        program: file,
        out: folder.path(),
        own: &run,
        source: Source::read(file, "a program file")?,
        inputs: inputs.clone(),
        folders: [None, None],
        schedule: Some(Schedule::of(seed)),
        read: vec![file.to_owned()],
        unasked: Unasked::Nothing,
    };
    job.keep_as(bundle::SCHEDULE)
}
