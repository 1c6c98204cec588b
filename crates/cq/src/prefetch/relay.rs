//! The relays: from the record, from a node, from interleaved buffers.

use crate::codec::{CommandReader, CommandWriter, ParseResult, Payload, header_payload, narrow};
use crate::display::{Node, bank};
use crate::error::FieldError;
use std::fmt::{Formatter, Result as Shown};
use tilework_abi::convert::addr32_of;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::prefetch::{self as abi, DispatcherSelect, RELAY_PAGED_IS_DRAM, RELAY_PAGED_LENGTH_ADJUST_MASK};

header_payload! {
    /// Payload of `RELAY_LINEAR`.
    pub struct LinearRelay: abi::RelayLinear {
        /// Source node.
        pub noc_xy: u32 = noc_xy_addr,
        /// Address there.
        pub addr: u64 = addr,
        /// Bytes.
        pub length: u64 = length,
    }
    show(self, f) {
        write!(f, " {} bytes from {} {:#x}", self.length, Node(self.noc_xy), self.addr)
    }
}

header_payload! {
    /// Payload of `RELAY_LINEAR_H`.
    pub struct LinearRelayH: abi::RelayLinearH {
        /// Source node.
        pub noc_xy: u32 = noc_xy_addr,
        /// Address there.
        pub addr: u64 = addr,
        /// Bytes, at most the scratch buffer less 64.
        pub length: u32 = length,
    }
    show(self, f) {
        write!(f, " {} bytes from {} {:#x}", self.length, Node(self.noc_xy), self.addr)
    }
}

/// Payload of the inline relays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Which dispatcher it is for.
    pub dispatcher: DispatcherSelect,
    /// The bytes, 1 to [`MAX_RELAY_BYTES`](abi::MAX_RELAY_BYTES).
    pub payload: Vec<u8>,
}

impl Payload for Inline {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let length: u32 = narrow(abi::RelayInline::length, self.payload.len())?;
        out.wire(&abi::RelayInline {
            cmd_id: out.id,
            dispatcher_type: self.dispatcher as u8,
            length: length.into(),
            stride: out.stride(CMD_SIZE + self.payload.len())?.into(),
            ..Default::default()
        })?;
        out.bytes(&self.payload);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::RelayInline = r.header()?;
        let Ok(dispatcher) = DispatcherSelect::try_from(h.dispatcher_type) else {
            return Err(r.bad(1, FieldError::new("dispatcher_type", h.dispatcher_type, "0 or 1")));
        };
        let payload = r.take(h.length.get().into(), "payload")?.to_vec();
        r.skip_stride(8, h.stride.get())?;
        Ok(Self { dispatcher, payload })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        let to = match self.dispatcher {
            DispatcherSelect::Master => "dispatcher",
            DispatcherSelect::Subordinate => "subordinate",
        };
        write!(f, " {} bytes to the {to}", self.payload.len())
    }
}

/// Payload of `RELAY_PAGED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedRelay {
    /// DRAM rather than L1 banks.
    pub is_dram: bool,
    /// Bytes taken off the total, at most 0x7fff.
    pub length_adjust: u16,
    /// First page.
    pub start_page: u8,
    /// Address in each bank.
    pub base_addr: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages.
    pub pages: u32,
}

impl Payload for PagedRelay {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let mask = RELAY_PAGED_LENGTH_ADJUST_MASK;
        FieldError::check("length_adjust", self.length_adjust, 0, mask.into())?;
        let is_dram = if self.is_dram { RELAY_PAGED_IS_DRAM } else { 0 };
        out.wire(&abi::RelayPaged {
            cmd_id: out.id,
            start_page: self.start_page,
            is_dram_and_length_adjust: (is_dram | self.length_adjust).into(),
            base_addr: self.base_addr.into(),
            page_size: self.page_size.into(),
            pages: self.pages.into(),
        })
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::RelayPaged = r.header()?;
        let packed = h.is_dram_and_length_adjust.get();
        Ok(Self {
            is_dram: packed & RELAY_PAGED_IS_DRAM != 0,
            length_adjust: packed & RELAY_PAGED_LENGTH_ADJUST_MASK,
            start_page: h.start_page,
            base_addr: h.base_addr.get(),
            page_size: h.page_size.get(),
            pages: h.pages.get(),
        })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(
            f,
            " {} pages of {} bytes from page {} of {} {:#x}, less {} bytes",
            self.pages,
            self.page_size,
            self.start_page,
            bank(self.is_dram),
            self.base_addr,
            self.length_adjust
        )
    }
}

/// One source of a `RELAY_PAGED_PACKED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedSource {
    /// First page.
    pub start_page: u16,
    /// Binary logarithm of the page size.
    pub log_page_size: u16,
    /// Address in each bank.
    pub base_addr: u32,
    /// Bytes.
    pub length: u32,
}

/// Payload of `RELAY_PAGED_PACKED`: the sources, at most 35.
impl Payload for Vec<PagedSource> {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let count: u16 = narrow(abi::RelayPagedPacked::count, self.len())?;
        let total = total_length(self);
        FieldError::check("total_length", total, 1, u64::from(u32::MAX))?;
        let size = CMD_SIZE + self.len() * size_of::<abi::RelayPagedPackedSub>();
        out.wire(&abi::RelayPagedPacked {
            cmd_id: out.id,
            count: count.into(),
            total_length: addr32_of(total).into(),
            stride: out.stride(size)?.into(),
            ..Default::default()
        })?;
        for source in self {
            out.wire(&abi::RelayPagedPackedSub {
                start_page: source.start_page.into(),
                log_page_size: source.log_page_size.into(),
                base_addr: source.base_addr.into(),
                length: source.length.into(),
            })?;
        }
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::RelayPagedPacked = r.header()?;
        let source = |_| {
            let sub: abi::RelayPagedPackedSub = r.sub_command()?;
            Ok(PagedSource {
                start_page: sub.start_page.get(),
                log_page_size: sub.log_page_size.get(),
                base_addr: sub.base_addr.get(),
                length: sub.length.get(),
            })
        };
        let sources: Self = (0..h.count.get()).map(source).collect::<ParseResult<_>>()?;
        let (found, total) = (h.total_length.get(), total_length(&sources));
        if u64::from(found) != total {
            let expected = format!("{total}, the sum of the sub-commands");
            return Err(r.bad(4, FieldError::new("total_length", found, expected)));
        }
        r.skip_stride(8, h.stride.get())?;
        Ok(sources)
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, " {} buffers, {} bytes", self.len(), total_length(self))
    }
}

fn total_length(sources: &[PagedSource]) -> u64 {
    sources.iter().map(|source| u64::from(source.length)).sum()
}
