//! Buffers through the queue: the records that write and read them.
//!
//! A write is cut into records of some 64 KiB, so that the stages overlap: while the dispatcher
//! writes one record's data, the prefetcher relays the next and reads the one after it. Pages of an
//! interleaved buffer go out by `WRITE_PAGED`, and runs at one tile by `WRITE_LINEAR`.
//!
//! A read is one record for each run: the header of `WRITE_LINEAR_H_HOST`, then `RELAY_PAGED` or
//! `RELAY_LINEAR` with the data. The prefetcher reads the data itself, ahead of the dispatcher, so
//! it is stalled first until the dispatcher's writes are acknowledged (seed 001 section 4.5).

use super::CommandQueue;
use super::pending::{Expected, Incoming};
use super::sent::{Sent, Transfer, What};
use super::stream::Stream;
use super::wait::{Patience, Waited};
use crate::RuntimeError;
use crate::event::BufferRead;
use std::sync::Arc;
use tilework_abi::convert::{addr32_of, u16_of, u32_of};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{DispatchCmdId, WaitFlags, WriteHost};
use tilework_abi::cq::prefetch::{DispatcherSelect, MAX_PAGED_SOURCE_BYTES};
use tilework_cq::dispatch::{LinearWrite, PagedWrite, Wait};
use tilework_cq::prefetch::{Inline, LinearRelay, PagedRelay};
use tilework_cq::{DispatchCommand, EncodeError, PrefetchCommand, Record};
use tilework_driver::{Card, HostLink};
use zerocopy::IntoBytes;

/// Most bytes of data of one record: with its headers 64 KiB, of which four fit the command data
/// queue. Measured on the model (a p150, 2 MiB in pages of 4 KiB): 16 KiB to a record 18.8 GB/s, 32
/// KiB 29.9, this 34.6, 96 KiB 26.9 and 240 KiB 25.6.
const RECORD_DATA: u32 = (64 << 10) - 64;
/// The same for pages longer than [`LONG_PAGE`], of which too few would fit: three records to the
/// command data queue are better than four that are half as long (31.7 and 25.6 GB/s for 32 KiB).
const LONG_RECORD_DATA: u32 = 64 << 10;
/// See [`LONG_RECORD_DATA`].
const LONG_PAGE: u32 = 8 << 10;

/// Where a run of pages lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// Interleaved over all banks, from page `start` of a buffer at `base` of each bank on.
    Banks { dram: bool, start: u32, banks: u32, base: u64 },
    /// One behind the other at one tile, by its coordinates on NoC 1 (writes) and NoC 0 (reads).
    Tile { write: u32, read: u32, address: u64 },
}

/// A run of pages of a buffer and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(super) stream: Stream,
    pub(super) place: Place,
}

impl Run {
    /// `stream` at `place`.
    pub(super) fn new(stream: Stream, place: Place) -> Self {
        Self { stream, place }
    }
}

fn encode(error: EncodeError) -> Waited {
    Waited::Other(RuntimeError::Encode(error))
}

impl CommandQueue {
    /// Puts the writes of `array` to `runs` into the queue.
    ///
    /// # Errors
    /// A device that stopped.
    pub(crate) fn write_runs<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        buffer: &Arc<str>,
        runs: &[Run],
        array: &[u8],
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        for run in runs {
            let (bytes, stride) = (run.stream.bytes(), u64::from(run.stream.stride()));
            // Whole pages where pages are counted; at a tile a record may end anywhere.
            let step = match run.place {
                Place::Banks { .. } if stride > LONG_PAGE.into() => u64::from(LONG_RECORD_DATA) / stride * stride,
                Place::Banks { .. } => u64::from(RECORD_DATA) / stride * stride,
                Place::Tile { .. } => RECORD_DATA.into(),
            };
            let mut at = 0;
            while at < bytes {
                let n = step.min(bytes - at);
                let mut data = Vec::new();
                run.stream.gather(at..at + n, array, &mut data);
                let command = write_command(run, at, data);
                let record = Record::dispatch(&command).map_err(encode)?;
                let what = Transfer {
                    command: command.id().name(),
                    bytes: n,
                    buffer: Arc::clone(buffer),
                    at: run.stream.first() + at,
                };
                self.push_record(
                    card,
                    &record,
                    [Sent { program: None, trace: None, what: What::Transfer(what) }],
                    patience,
                )?;
                at += n;
            }
        }
        Ok(())
    }

    /// Puts the reads of `runs` into the queue; `read` ends when all have come.
    ///
    /// # Errors
    /// A device that stopped.
    pub(crate) fn read_runs<C: HostLink>(
        &mut self,
        card: &mut Card<C>,
        buffer: &Arc<str>,
        runs: &[Run],
        read: &BufferRead,
        patience: &mut Patience,
    ) -> Result<(), Waited> {
        let flags = WaitFlags::BARRIER | WaitFlags::NOTIFY_PREFETCH;
        let settled = DispatchCommand::Wait(Wait { flags, stream: 0, addr: 0, count: 0 });
        let relay = PrefetchCommand::relay_inline(settled.to_bytes().map_err(encode)?);
        let record = Record::sequence(&[relay, PrefetchCommand::Stall]).map_err(encode)?;
        self.push_record(card, &record, [Sent::command(None, settled)], patience)?;
        let last = runs.len().saturating_sub(1);
        for (i, run) in runs.iter().enumerate() {
            let record = read_record(run).map_err(encode)?;
            let what = Transfer {
                command: DispatchCmdId::WriteLinearHHost.name(),
                bytes: run.stream.bytes(),
                buffer: Arc::clone(buffer),
                at: run.stream.first(),
            };
            self.push_record(
                card,
                &record,
                [Sent { program: None, trace: None, what: What::Transfer(what) }],
                patience,
            )?;
            let event = (i == last).then(|| read.event.clone());
            self.expect(Expected::Data(Incoming::new(run.stream, read)), event);
        }
        Ok(())
    }
}

/// The command that writes `data` at byte `at` of a run.
fn write_command(run: &Run, at: u64, data: Vec<u8>) -> DispatchCommand {
    match run.place {
        Place::Banks { dram, start, banks, base } => {
            let stride = run.stream.stride();
            // Below the pages of a buffer, which have 32 bits.
            let page = start + u32_of(usize::try_from(at / u64::from(stride)).unwrap_or(usize::MAX));
            let rows = u64::from(page / banks) * u64::from(stride);
            DispatchCommand::WritePaged(PagedWrite {
                is_dram: dram,
                // A page number has 16 bits in the command: whole rows are in the address.
                start_page: u16_of(page % banks),
                base_addr: addr32_of(base + rows),
                page_size: stride,
                data,
            })
        }
        Place::Tile { write, address, .. } => DispatchCommand::WriteLinear(LinearWrite {
            num_mcast_dests: 0,
            write_offset_index: 0,
            noc_xy: write,
            addr: address + at,
            data,
        }),
    }
}

/// The record that reads a run.
fn read_record(run: &Run) -> Result<Record, EncodeError> {
    let bytes = run.stream.bytes();
    let header = WriteHost {
        cmd_id: DispatchCmdId::WriteLinearHHost as u8,
        length: (bytes + CMD_SIZE as u64).into(),
        ..Default::default()
    };
    let payload = header.as_bytes().to_vec();
    let header = PrefetchCommand::RelayInlineNoflush(Inline { dispatcher: DispatcherSelect::Master, payload });
    let relay = match run.place {
        Place::Banks { dram, start, banks, base } => {
            let stride = run.stream.stride();
            PrefetchCommand::RelayPaged(PagedRelay {
                is_dram: dram,
                length_adjust: 0,
                start_page: (start % banks).try_into().unwrap_or(u8::MAX),
                base_addr: addr32_of(base + u64::from(start / banks) * u64::from(stride)),
                page_size: stride,
                pages: run.stream.pages(),
            })
        }
        Place::Tile { read, address, .. } => {
            PrefetchCommand::RelayLinear(LinearRelay { noc_xy: read, addr: address, length: bytes })
        }
    };
    Record::sequence(&[header, relay])
}

/// Whether pages of `stride` bytes can be sent and read by the commands for interleaved buffers;
/// larger ones are runs at one bank each.
pub(super) const fn is_paged(stride: u32) -> bool {
    stride <= LONG_RECORD_DATA
}

// The prefetcher has room for each of these pages when it reads.
const _: () = assert!(LONG_RECORD_DATA <= MAX_PAGED_SOURCE_BYTES);
