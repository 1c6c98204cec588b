//! Golden arithmetic: formats, TMs, operations, fused operations, real netlists.

mod common;
mod execute;
mod formats;
mod fused;
mod hostile;
mod integers;
mod netlists;
mod ops;
mod precision;
mod products;
mod tms;
