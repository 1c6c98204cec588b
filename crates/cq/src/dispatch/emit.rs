//! Dispatch commands to bytes.

use super::*;
use crate::error::{EncodeError, FieldError, in_range};
use crate::reader::pad_to;
use tilework_abi::cq::dispatch::{
    self as abi, GO_NO_MULTICAST, GO_SIGNAL_NOC_DATA_MAX_WORDS, WRITE_OFFSETS, WRITE_PACKED_LARGE_MAX_SUBS,
    WritePackedFlags, WritePackedLargeFlags,
};
use tilework_abi::cq::layout::{PAGE_SIZE, WORKER_SEMS};
use tilework_abi::cq::{CMD_LARGE_SIZE, CMD_SIZE};
use zerocopy::IntoBytes;

/// The largest write offset index.
const LAST_OFFSET: u64 = WRITE_OFFSETS as u64 - 1;

impl DispatchCommand {
    /// Appends the command's bytes: header, sub-commands, payload. On an error `out` is as before.
    ///
    /// # Errors
    /// A field that the header cannot hold or the dispatcher could not execute.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        self.emit_fields(out).map_err(|error| {
            out.truncate(start);
            error.in_command(self.id().name())
        })
    }

    /// The command's bytes.
    ///
    /// # Errors
    /// As [`DispatchCommand::emit`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        Ok(out)
    }

    fn emit_fields(&self, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let cmd_id = self.id() as u8;
        match self {
            Self::WriteLinear(write) | Self::WriteLinearH(write) => write.emit(cmd_id, out)?,
            Self::WriteHost(write) => {
                in_range("payload size", write.payload.len(), 1, u64::MAX)?;
                let header = abi::WriteHost {
                    cmd_id,
                    is_event: write.is_event.into(),
                    length: ((CMD_SIZE + write.payload.len()) as u64).into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
                out.extend_from_slice(&write.payload);
            }
            Self::WritePaged(write) => write.emit(cmd_id, out)?,
            Self::WritePacked(write) => write.emit(cmd_id, out)?,
            Self::WritePackedLarge(write) => write.emit(cmd_id, out)?,
            Self::Wait(wait) => {
                let unknown = wait.flags.difference(WaitFlags::all()).bits();
                in_range("unknown flags", unknown, 0, 0)?;
                let header = abi::Wait {
                    cmd_id,
                    flags: wait.flags.bits(),
                    stream: wait.stream.into(),
                    addr: wait.addr.into(),
                    count: wait.count.into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::Debug(mark) => {
                let stride = CMD_SIZE + mark.body.len();
                in_range("stride", stride, 0, u64::from(u32::MAX))?;
                out.extend_from_slice(mark.header(cmd_id, stride as u32).as_bytes());
                out.extend_from_slice(&mark.body);
            }
            Self::Sink | Self::ExecBufEnd | Self::Terminate => {
                let header = abi::BareCmd { cmd_id, ..Default::default() };
                out.extend_from_slice(header.as_bytes());
            }
            Self::Delay(iterations) => {
                let delay = (*iterations).into();
                let header = abi::Delay { cmd_id, delay, ..Default::default() };
                out.extend_from_slice(header.as_bytes());
            }
            Self::SetWriteOffset { program_host_id, offsets } => {
                in_range("offset_count", offsets.len(), 0, WRITE_OFFSETS as u64)?;
                let header = abi::SetWriteOffset {
                    cmd_id,
                    offset_count: offsets.len() as u8,
                    program_host_id: (*program_host_id).into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
                words(offsets, out);
            }
            Self::SendGoSignal(go) => go.emit(cmd_id, out)?,
            Self::NotifySubordinate { wait, index_bitmask } => {
                in_range("index_bitmask", *index_bitmask, 0, (1 << WORKER_SEMS) - 1)?;
                let header = abi::NotifySubordinateGoSignal {
                    cmd_id,
                    wait: (*wait).into(),
                    index_bitmask: (*index_bitmask).into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::SetNumWorkerSems(count) => {
                in_range("num_worker_sems", *count, 0, u64::from(WORKER_SEMS))?;
                let num_worker_sems = (*count).into();
                let header = abi::SetNumWorkerSems { cmd_id, num_worker_sems, ..Default::default() };
                out.extend_from_slice(header.as_bytes());
            }
            Self::SetGoSignalNocData(data) => {
                in_range("num_words", data.len(), 0, GO_SIGNAL_NOC_DATA_MAX_WORDS as u64)?;
                let num_words = (data.len() as u32).into();
                let header = abi::SetGoSignalNocData { cmd_id, num_words, ..Default::default() };
                out.extend_from_slice(header.as_bytes());
                words(data, out);
            }
            Self::Timestamp { noc_xy, addr } => {
                let header = abi::Timestamp {
                    cmd_id,
                    noc_xy_addr: (*noc_xy).into(),
                    addr: (*addr).into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
        }
        Ok(())
    }
}

impl LinearWrite {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        in_range("length", self.data.len(), 1, u64::MAX)?;
        in_range("write_offset_index", self.write_offset_index, 0, LAST_OFFSET)?;
        let header = abi::WriteLinear {
            cmd_id,
            num_mcast_dests: self.num_mcast_dests,
            write_offset_index: self.write_offset_index,
            noc_xy_addr: self.noc_xy.into(),
            addr: self.addr.into(),
            length: (self.data.len() as u64).into(),
            ..Default::default()
        };
        debug_assert_eq!(header.as_bytes().len(), CMD_LARGE_SIZE);
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&self.data);
        Ok(())
    }
}

impl PagedWrite {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        in_range("page_size", self.page_size, 1, u64::from(u32::MAX))?;
        // The dispatcher computes pages * page_size in 32 bits.
        in_range("data size", self.data.len(), 1, u64::from(u32::MAX))?;
        let size = self.data.len() as u32;
        if !size.is_multiple_of(self.page_size) {
            let expected = format!("whole pages of {} bytes", self.page_size);
            return Err(FieldError::new("data size", size, expected));
        }
        let header = abi::WritePaged {
            cmd_id,
            is_dram: self.is_dram.into(),
            start_page: self.start_page.into(),
            base_addr: self.base_addr.into(),
            page_size: self.page_size.into(),
            pages: (size / self.page_size).into(),
        };
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&self.data);
        Ok(())
    }
}

impl PackedWrite {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let start = out.len();
        let count = self.targets.len();
        let size = self.packets.size();
        in_range("count", count, 1, self.targets.max() as u64)?;
        in_range("size", size, 1, u64::from(PAGE_SIZE))?;
        in_range("write_offset_index", self.write_offset_index, 0, LAST_OFFSET)?;
        let mut flags = WritePackedFlags::from_bits_retain((self.kind as u8) << WritePackedFlags::TYPE_SHIFT);
        flags.set(WritePackedFlags::MULTICAST, matches!(self.targets, PackedTargets::Multicast(_)));
        flags.set(WritePackedFlags::NO_STRIDE, matches!(self.packets, Packets::Shared(_)));
        let header = abi::WritePacked {
            cmd_id,
            flags: flags.bits(),
            count: (count as u16).into(),
            write_offset_index: self.write_offset_index.into(),
            size: (size as u16).into(),
            addr: self.addr.into(),
            ..Default::default()
        };
        out.extend_from_slice(header.as_bytes());
        match &self.targets {
            PackedTargets::Unicast(nodes) => words(nodes, out),
            PackedTargets::Multicast(rects) => {
                for &(noc_xy, dests) in rects {
                    in_range("num_mcast_dests", dests, 1, u64::from(u32::MAX))?;
                    words(&[noc_xy, dests], out);
                }
            }
        }
        pad_to(out, start, ALIGN);
        match &self.packets {
            Packets::Shared(packet) => out.extend_from_slice(packet),
            Packets::PerTarget(packets) => {
                in_range("number of packets", packets.len(), count as u64, count as u64)?;
                for packet in packets {
                    in_range("packet size", packet.len(), size as u64, size as u64)?;
                    pad_to(out, start, ALIGN);
                    out.extend_from_slice(packet);
                }
            }
        }
        pad_to(out, start, ALIGN);
        Ok(())
    }
}

impl PackedLargeWrite {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let start = out.len();
        in_range("count", self.subs.len(), 1, WRITE_PACKED_LARGE_MAX_SUBS as u64)?;
        in_range("write_offset_index", self.write_offset_index, 0, LAST_OFFSET)?;
        if !self.alignment.is_power_of_two() {
            return Err(FieldError::new("alignment", self.alignment, "a power of two"));
        }
        let header = abi::WritePackedLarge {
            cmd_id,
            kind: self.kind as u8,
            count: (self.subs.len() as u16).into(),
            alignment: self.alignment.into(),
            write_offset_index: self.write_offset_index.into(),
            ..Default::default()
        };
        out.extend_from_slice(header.as_bytes());
        for sub in &self.subs {
            in_range("packet size", sub.data.len(), 1, 1 << 16)?;
            in_range("num_mcast_dests", sub.num_mcast_dests, 1, u64::from(u8::MAX))?;
            let mut flags = WritePackedLargeFlags::empty();
            flags.set(WritePackedLargeFlags::UNLINK, sub.unlink);
            let sub = abi::WritePackedLargeSub {
                noc_xy_addr: sub.noc_xy.into(),
                addr: sub.addr.into(),
                length_minus1: ((sub.data.len() - 1) as u16).into(),
                num_mcast_dests: sub.num_mcast_dests,
                flags: flags.bits(),
            };
            out.extend_from_slice(sub.as_bytes());
        }
        pad_to(out, start, ALIGN);
        let data = out.len();
        for sub in &self.subs {
            out.extend_from_slice(&sub.data);
            pad_to(out, data, usize::from(self.alignment));
        }
        Ok(())
    }
}

impl GoSignal {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        if let Some(offset) = self.multicast_go_offset {
            in_range("multicast_go_offset", offset, 0, u64::from(GO_NO_MULTICAST) - 1)?;
        }
        let last = u64::from(self.noc_data_start_index) + u64::from(self.num_unicast_txns);
        in_range("end of the used NoC words", last, 0, GO_SIGNAL_NOC_DATA_MAX_WORDS as u64)?;
        let header = abi::SendGoSignal {
            cmd_id,
            go_signal: self.go_signal.into(),
            multicast_go_offset: self.multicast_go_offset.unwrap_or(GO_NO_MULTICAST),
            num_unicast_txns: self.num_unicast_txns,
            noc_data_start_index: self.noc_data_start_index,
            wait_count: self.wait_count.into(),
            wait_stream: self.wait_stream.into(),
        };
        out.extend_from_slice(header.as_bytes());
        Ok(())
    }
}

impl DebugMark {
    pub(crate) fn header(&self, cmd_id: u8, stride: u32) -> abi::DebugCmd {
        abi::DebugCmd {
            cmd_id,
            key: self.key.into(),
            size: self.size.into(),
            stride: stride.into(),
            ..Default::default()
        }
    }
}

fn words(words: &[u32], out: &mut Vec<u8>) {
    for word in words {
        out.extend_from_slice(&word.to_le_bytes());
    }
}
