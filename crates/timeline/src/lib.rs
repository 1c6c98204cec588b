//! Events of simulated time and their writers.
//!
//! A simulation says what happened on which track and when, in its own clock; a writer puts that into a file: Perfetto's
//! trace format, JSON of the trace-event form, or text. Nothing here reads a wall clock.
#![warn(missing_docs)]
