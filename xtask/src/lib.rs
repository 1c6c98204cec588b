//! Development tasks, as a library so that tests can ask the same questions as the commands.

pub mod bench;
pub mod diff;
pub mod firmware;
pub mod own_library;
