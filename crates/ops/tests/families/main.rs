//! The operations against plain loops in double precision that were written for the tests, on odd
//! shapes, broadcasting corners, empty and one-element tensors, infinities, NaNs and ties; and
//! against tables from numpy.

mod common;

mod attention;
mod conv;
mod creation;
mod elementwise;
mod experts;
mod hostile;
mod indexing;
mod layouts;
mod matmul;
mod mesh;
mod movement;
mod norm;
mod numpy;
mod pool;
mod reduce;
mod threads;
mod types;
