//! Tiles and pages: how the elements of a tensor lie in device memory.
//!
//! A tensor of any rank is a matrix to the device: its last dimension is the width, all others
//! together the height. [`PageLayout`] pads the matrix and divides it into pages, which are what
//! buffers distribute over banks: a tile each (`tile`) or rows of elements. It converts the
//! elements as well ([`Converter`]), so that an array of the host becomes the bytes of all pages in
//! one pass, and back.
//!
//! Follows tt-metal: `tech_reports/tensor_layouts/tensor_layouts.md`, and for sizes and padding
//! `tt_metal/impl/tensor/spec/layout` (alignment, physical shape, pages) and
//! `tt_metal/impl/data_format` (tile shapes, tiles of block formats).
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod convert;
mod error;
mod pages;
mod tile;

pub use convert::Converter;
pub use error::LayoutError;
pub use pages::{Extent, Layout, PageLayout};
pub use tile::{FACE_WIDTH, TileFormat, TileShape};
