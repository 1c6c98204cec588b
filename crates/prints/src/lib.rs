//! Prints of kernels: from records in L1 and texts in ELF files to lines for people.
//!
//! A kernel leaves records in its core's ring (`tilework_abi::print`); [`Ring`] finds them there.
//! The texts are in the kernel's file: [`Texts`] reads and checks them when the kernel is loaded.
//! [`Text::show`] puts a record's values into its text.
//! Device prints of tt-metal's kernels are read by [`metal`] and, in their newer form, by
//! [`device_print`]. This crate does no input or output
//! and knows no chip.
//!
//! What is read here comes from files and from the memory of a chip whose programs may be wrong:
//! every length is checked, and nothing panics.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss))]

mod copy;
pub mod device_print;
mod elements;
pub mod metal;
mod pattern;
mod ring;
mod text;
mod value;

pub use pattern::{Pattern, PatternError};
pub use ring::{Counts, Record, Ring};
pub use text::{Kind, Text, TextError, Texts};
