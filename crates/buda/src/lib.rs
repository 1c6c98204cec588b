//! Runs Buda netlists: queues, programs, epochs, the loader's command queues and binary caches, and golden arithmetic
//! (seed 003).
#![warn(missing_docs)]
