//! `WRITE_LINEAR`, `WRITE_LINEAR_H_HOST` and `WRITE_PAGED`.

use crate::codec::{CommandReader, CommandWriter, ParseResult, Payload};
use crate::display::{Data, Node, Plus, Rect, bank};
use crate::error::FieldError;
use std::fmt::{Formatter, Result as Shown};
use tilework_abi::convert::u32_of;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch as abi;

/// Payload of `WRITE_LINEAR` and `WRITE_LINEAR_H`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearWrite {
    /// Nodes of the rectangle; 0 is a unicast.
    pub num_mcast_dests: u8,
    /// Write offset added to `addr`.
    pub write_offset_index: u8,
    /// Node or rectangle.
    pub noc_xy: u32,
    /// Address at the node.
    pub addr: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

impl Payload for LinearWrite {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        out.wire(&abi::WriteLinear {
            cmd_id: out.id,
            num_mcast_dests: self.num_mcast_dests,
            write_offset_index: self.write_offset_index,
            noc_xy_addr: self.noc_xy.into(),
            addr: self.addr.into(),
            length: (self.data.len() as u64).into(),
            ..Default::default()
        })?;
        out.bytes(&self.data);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::WriteLinear = r.header()?;
        Ok(Self {
            num_mcast_dests: h.num_mcast_dests,
            write_offset_index: h.write_offset_index,
            noc_xy: h.noc_xy_addr.get(),
            addr: h.addr.get(),
            data: r.take(h.length.get(), "data")?.to_vec(),
        })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        match self.num_mcast_dests {
            0 => write!(f, " to {}", Node(self.noc_xy))?,
            dests => write!(f, " to {} ({dests} nodes)", Rect(self.noc_xy))?,
        }
        write!(f, " {:#x}{}: {}", self.addr, Plus(self.write_offset_index.into()), Data(&self.data))
    }
}

/// Payload of `WRITE_LINEAR_H_HOST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWrite {
    /// An event rather than buffer data.
    pub is_event: bool,
    /// What follows the echoed header.
    pub payload: Vec<u8>,
}

impl Payload for HostWrite {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        out.wire(&abi::WriteHost {
            cmd_id: out.id,
            is_event: self.is_event.into(),
            length: ((CMD_SIZE + self.payload.len()) as u64).into(),
            ..Default::default()
        })?;
        out.bytes(&self.payload);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::WriteHost = r.header()?;
        let payload = r.take(h.length.get() - CMD_SIZE as u64, "payload")?.to_vec();
        Ok(Self { is_event: h.is_event != 0, payload })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        match (self.is_event, self.payload.first_chunk()) {
            (true, Some(id)) => write!(f, " event {}", u32::from_le_bytes(*id)),
            (true, None) => write!(f, " event of {} bytes", self.payload.len()),
            (false, _) => write!(f, " data: {}", Data(&self.payload)),
        }
    }
}

/// Payload of `WRITE_PAGED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedWrite {
    /// DRAM rather than L1 banks.
    pub is_dram: bool,
    /// First page.
    pub start_page: u16,
    /// Address of the buffer in each bank.
    pub base_addr: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Whole pages.
    pub data: Vec<u8>,
}

impl Payload for PagedWrite {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        abi::WritePaged::page_size.check(self.page_size.into())?;
        // The dispatcher computes pages * page_size in 32 bits.
        FieldError::check("data size", self.data.len(), 1, u64::from(u32::MAX))?;
        let size = u32_of(self.data.len());
        if !size.is_multiple_of(self.page_size) {
            let expected = format!("whole pages of {} bytes", self.page_size);
            return Err(FieldError::new("data size", size, expected));
        }
        out.wire(&abi::WritePaged {
            cmd_id: out.id,
            is_dram: self.is_dram.into(),
            start_page: self.start_page.into(),
            base_addr: self.base_addr.into(),
            page_size: self.page_size.into(),
            pages: (size / self.page_size).into(),
        })?;
        out.bytes(&self.data);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::WritePaged = r.header()?;
        let size = u64::from(h.page_size.get()) * u64::from(h.pages.get());
        r.range(12, "pages times page_size", size, 1, u64::from(u32::MAX))?;
        Ok(Self {
            is_dram: h.is_dram != 0,
            start_page: h.start_page.get(),
            base_addr: h.base_addr.get(),
            page_size: h.page_size.get(),
            data: r.take(size, "pages")?.to_vec(),
        })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(
            f,
            " {} pages of {} bytes to page {} of {} {:#x}",
            self.data.len() / (self.page_size as usize).max(1),
            self.page_size,
            self.start_page,
            bank(self.is_dram),
            self.base_addr
        )
    }
}
