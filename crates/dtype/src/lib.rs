//! Element types: one table of all number formats, with their sizes, names and conversions.
//!
//! A [`DType`] is a row of the table in this crate: what a value is, how many bits it takes, and
//! what NumPy, the compiler and the netlist language call it. A crate that supports only some of
//! the formats lists its subset and refuses the others in its own words.
//!
//! There are three sets of conversions, because the hardware and the hosts round differently:
//! - [`convert`]: typecasts, as the compute kernels and host frameworks make them;
//! - [`element`]: what packers store of a float32 value, for formats whose elements stand alone;
//! - [`block`]: the same for formats whose elements share an exponent.
#![forbid(unsafe_code)]
// The clippy lints on casts stay off: cutting and reinterpreting bits is what the conversions do.

pub mod block;
pub mod convert;
pub mod element;
mod names;
mod table;

pub use table::{DType, Kind};
