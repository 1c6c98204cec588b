//! Golden arithmetic: formats, TMs, operations, fused operations, real netlists.

mod common;
mod formats;
mod netlists;
mod ops;
mod products;
mod tms;
