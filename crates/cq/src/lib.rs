//! Fast dispatch, host side: commands and bytes, records, rings.
//!
//! This crate knows addresses and bytes, not programs. It turns typed commands into the bytes that
//! prefetcher and dispatcher firmware execute ([`dispatch`], [`prefetch`]), wraps them into records
//! ([`record`]), decides where in pinned host memory a record may go and when its ring entry may be
//! written ([`issue`], [`ring`]), follows the completion FIFO ([`completion`]), and reads any
//! stream of records back ([`decode`]). It performs no I/O: whoever owns the device passes in words
//! that it read and writes the words that come out, so that every rule here can be tested without a
//! chip.
//!
//! The layouts come from [`tilework_abi::cq`]; the procedures from seed 001 sections 2 and 7.
#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

pub mod completion;
pub mod decode;
pub mod dispatch;
pub mod error;
pub mod issue;
pub mod prefetch;
pub mod record;
pub mod ring;

mod codec;
mod display;

pub use completion::CompletionFifo;
pub use decode::{DecodedRecord, Decoder, decode_stream};
pub use dispatch::DispatchCommand;
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use issue::{IssueQueue, IssueRegion};
pub use prefetch::PrefetchCommand;
pub use record::{Record, relay_inline};
pub use ring::{PrefetchPort, PrefetchRing};
