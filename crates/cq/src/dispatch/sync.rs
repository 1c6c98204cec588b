//! Waiting, go signals, and the commands that only set something.

use crate::codec::{CommandReader, CommandWriter, ParseResult, Payload, header_payload, narrow};
use crate::display::{Node, list};
use crate::error::FieldError;
use std::fmt::{Formatter, Result as Shown};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{self as abi, GO_NO_MULTICAST, GO_SIGNAL_NOC_DATA_MAX_WORDS, WaitFlags};

header_payload! {
    /// Payload of `WAIT`.
    pub struct Wait: abi::Wait {
        /// What to do.
        pub flags: WaitFlags = flags,
        /// Stream.
        pub stream: u16 = stream,
        /// L1 address of the dispatch core.
        pub addr: u32 = addr,
        /// Count to reach.
        pub count: u32 = count,
    }
    show(self, f) {
        let actions = [
            (WaitFlags::BARRIER, "write barrier".to_owned()),
            (WaitFlags::WAIT_MEMORY, format!("until word {:#x} >= {}", self.addr, self.count)),
            (WaitFlags::WAIT_STREAM, format!("until stream {} >= {}", self.stream, self.count)),
            (WaitFlags::CLEAR_STREAM, format!("clear stream {}", self.stream)),
            (WaitFlags::NOTIFY_PREFETCH, "notify the prefetcher".to_owned()),
        ];
        let mut separator = " ";
        for (_, action) in actions.iter().filter(|(flag, _)| self.flags.contains(*flag)) {
            write!(f, "{separator}{action}")?;
            separator = ", ";
        }
        Ok(())
    }
}

header_payload! {
    /// Payload of `DELAY`.
    pub struct Delay: abi::Delay {
        /// Loop iterations.
        pub iterations: u32 = delay,
    }
    show(self, f) {
        write!(f, " {} iterations", self.iterations)
    }
}

header_payload! {
    /// Payload of `NOTIFY_SUBORDINATE_GO_SIGNAL`.
    pub struct NotifySubordinate: abi::NotifySubordinateGoSignal {
        /// Wait for outstanding writes first.
        pub wait: bool = wait,
        /// Bit i: sync semaphore i, of eight.
        pub index_bitmask: u16 = index_bitmask,
    }
    show(self, f) {
        let after = if self.wait { " after a write barrier" } else { "" };
        write!(f, " semaphores {:#010b}{after}", self.index_bitmask)
    }
}

header_payload! {
    /// Payload of `SET_NUM_WORKER_SEMS`.
    pub struct NumWorkerSems: abi::SetNumWorkerSems {
        /// Worker semaphores that the subordinate serves, at most eight.
        pub count: u32 = num_worker_sems,
    }
    show(self, f) {
        write!(f, " {}", self.count)
    }
}

header_payload! {
    /// Payload of `TIMESTAMP`: where the wall clock (8 bytes) is written.
    pub struct Timestamp: abi::Timestamp {
        /// Node.
        pub noc_xy: u32 = noc_xy_addr,
        /// Address at the node.
        pub addr: u32 = addr,
    }
    show(self, f) {
        write!(f, " to {} {:#x}", Node(self.noc_xy), self.addr)
    }
}

/// Payload of `DEBUG` in either set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugMark {
    /// What to log.
    pub key: u16,
    /// Bytes to check, counted from the end of the header; may exceed `body`.
    pub size: u32,
    /// Sum of the 32-bit words of those bytes, modulo 2^32; zero: not checked.
    pub checksum: u32,
    /// The bytes between this header and the next command.
    pub body: Vec<u8>,
}

impl Payload for DebugMark {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let stride = out.check_stride(CMD_SIZE + self.body.len())?;
        out.wire(&abi::DebugCmd {
            cmd_id: out.id,
            key: self.key.into(),
            size: self.size.into(),
            stride: stride.into(),
            checksum: self.checksum.into(),
            ..Default::default()
        })?;
        out.bytes(&self.body);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::DebugCmd = r.header()?;
        let stride = r.check_stride(8, h.stride.get())?;
        let body = r.take(stride - CMD_SIZE as u64, "body")?.to_vec();
        Ok(Self { key: h.key.get(), size: h.size.get(), checksum: h.checksum.get(), body })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, " key {:#x}, {} bytes checked", self.key, self.size)
    }
}

/// Payload of `SET_WRITE_OFFSET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteOffsets {
    /// The host's id of the program (profiling).
    pub program_host_id: u16,
    /// The offsets, at most four.
    pub offsets: Vec<u32>,
}

impl Payload for WriteOffsets {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        out.wire(&abi::SetWriteOffset {
            cmd_id: out.id,
            offset_count: narrow(abi::SetWriteOffset::offset_count, self.offsets.len())?,
            program_host_id: self.program_host_id.into(),
            ..Default::default()
        })?;
        out.words(&self.offsets);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::SetWriteOffset = r.header()?;
        let offsets = r.words(h.offset_count.into(), "offsets")?;
        Ok(Self { program_host_id: h.program_host_id.get(), offsets })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, " program {}:", self.program_host_id)?;
        self.offsets.iter().try_for_each(|offset| write!(f, " {offset:#x}"))
    }
}

/// Payload of `SET_GO_SIGNAL_NOC_DATA`: the words to store, at most 256.
impl Payload for Vec<u32> {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let num_words: u32 = narrow(abi::SetGoSignalNocData::num_words, self.len())?;
        out.wire(&abi::SetGoSignalNocData { cmd_id: out.id, num_words: num_words.into(), ..Default::default() })?;
        out.words(self);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::SetGoSignalNocData = r.header()?;
        r.words(h.num_words.get().into(), "NoC words")
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        f.write_str(" ")?;
        list(f, self.iter().map(|&xy| Node(xy)))
    }
}

/// Payload of `SEND_GO_SIGNAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoSignal {
    /// The go message.
    pub go_signal: u32,
    /// Index of the multicast go message, if one is sent; not 255.
    pub multicast_go_offset: Option<u8>,
    /// Unicast go messages.
    pub num_unicast_txns: u8,
    /// First stored NoC word to use.
    pub noc_data_start_index: u8,
    /// Count to wait for first.
    pub wait_count: u32,
    /// Stream to wait for.
    pub wait_stream: u32,
}

impl Payload for GoSignal {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        if let Some(offset) = self.multicast_go_offset {
            FieldError::check("multicast_go_offset", offset, 0, u64::from(GO_NO_MULTICAST) - 1)?;
        }
        check_used_words(self.noc_data_start_index, self.num_unicast_txns)?;
        out.wire(&abi::SendGoSignal {
            cmd_id: out.id,
            go_signal: self.go_signal.into(),
            multicast_go_offset: self.multicast_go_offset.unwrap_or(GO_NO_MULTICAST),
            num_unicast_txns: self.num_unicast_txns,
            noc_data_start_index: self.noc_data_start_index,
            wait_count: self.wait_count.into(),
            wait_stream: self.wait_stream.into(),
        })
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::SendGoSignal = r.header()?;
        check_used_words(h.noc_data_start_index, h.num_unicast_txns).map_err(|error| r.bad(6, error))?;
        Ok(Self {
            go_signal: h.go_signal.get(),
            multicast_go_offset: Some(h.multicast_go_offset).filter(|&o| o != GO_NO_MULTICAST),
            num_unicast_txns: h.num_unicast_txns,
            noc_data_start_index: h.noc_data_start_index,
            wait_count: h.wait_count.get(),
            wait_stream: h.wait_stream.get(),
        })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        let (number, start) = (self.num_unicast_txns, self.noc_data_start_index);
        write!(f, " {:#010x} to {number} nodes from word {start}", self.go_signal)?;
        if let Some(offset) = self.multicast_go_offset {
            write!(f, " and multicast go {offset}")?;
        }
        write!(f, ", when stream {} >= {}", self.wait_stream, self.wait_count)
    }
}

/// The NoC words that a go signal uses must have been stored.
fn check_used_words(start: u8, number: u8) -> Result<(), FieldError> {
    let last = u64::from(start) + u64::from(number);
    FieldError::check("end of the used NoC words", last, 0, GO_SIGNAL_NOC_DATA_MAX_WORDS as u64)
}
