//! Overlay streams as general-purpose registers.
//!
//! Dispatch and circular buffers use idle streams as counters that every core and every other tile can reach
//! (WormholeB0/NoC/Overlay/AsGeneralUse.md; the indices are Blackhole's, public firmware headers, `noc_overlay_parameters.h`). Only that use is
//! modelled: the registers below hold values and have the side effects that the page lists. Every other register is a fault that names
//! its index. Most streams of most tiles are never touched, so a stream gets its registers on the first write.

use crate::{Fault, FaultClass};
use tilework_abi::stream;

const READ: &str = "WormholeB0/NoC/Overlay/AsGeneralUse.md";
/// Registers that hold a value have indices below this (last: scratch register 5).
const STORED: usize = 42;
/// Remote receivers of a stream that can transmit in multicast mode (AsGeneralUse.md: 0 to 31).
const RECEIVERS: usize = 32;

/// Indices that only this file needs.
mod reg {
    pub(super) const REMOTE_SRC: u32 = 4;
    pub(super) const ACK_THRESHOLD: u32 = 6;
    pub(super) const REMOTE_DEST: u32 = 7;
    pub(super) const REMOTE_DEST_BUF_START_HI: u32 = 9;
    pub(super) const REMOTE_DEST_MSG_INFO_WR_PTR: u32 = 13;
    pub(super) const REMOTE_DEST_MSG_INFO_WR_PTR_HI: u32 = 14;
    pub(super) const REMOTE_DEST_TRAFFIC: u32 = 16;
    pub(super) const BUF_START: u32 = 17;
    pub(super) const BUF_SIZE: u32 = 18;
    pub(super) const RD_PTR: u32 = 19;
    pub(super) const WR_PTR: u32 = 20;
    pub(super) const MSG_INFO_PTR: u32 = 22;
    pub(super) const MSG_INFO_WR_PTR: u32 = 23;
    pub(super) const MCAST_DEST: u32 = 24;
    pub(super) const MCAST_DEST_NUM: u32 = 25;
    pub(super) const SCRATCH: core::ops::RangeInclusive<u32> = 36..=41;
}

/// Registers of one stream.
#[derive(Clone, Debug)]
struct Stream {
    stored: [u32; STORED],
    space_available: [u32; RECEIVERS],
}

/// The 64 overlay streams of a tile.
#[derive(Debug)]
pub struct Streams {
    streams: [Option<Box<Stream>>; stream::COUNT as usize],
}

impl Default for Streams {
    fn default() -> Self {
        Self::new()
    }
}

impl Streams {
    /// All streams idle, all registers zero.
    pub fn new() -> Self {
        Self { streams: [const { None }; stream::COUNT as usize] }
    }

    /// Reads the register at byte offset `off` from the first stream register. No read has a side effect.
    ///
    /// # Errors
    /// A register that the page does not offer for general use.
    pub fn read(&self, off: u32) -> Result<u32, Fault> {
        let (id, index) = locate(off)?;
        let stream = self.streams[id].as_deref();
        if let Some(i) = space_index(id, index) {
            return Ok(stream.map_or(0, |s| s.space_available[i]));
        }
        if width(id, index).is_none() {
            return Err(unknown("read", id, index));
        }
        Ok(stream.and_then(|s| s.stored.get(index as usize)).copied().unwrap_or(0))
    }

    /// Writes the register at byte offset `off` from the first stream register. Bits beyond a register's width are dropped, and registers that a
    /// stream does not have ignore the write, as the page says.
    ///
    /// # Errors
    /// A register that the page does not offer for general use, or that is read only.
    pub fn write(&mut self, off: u32, value: u32) -> Result<(), Fault> {
        let (id, index) = locate(off)?;
        if index == stream::SPACE_AVAILABLE_UPDATE {
            return self.add_space(id, value);
        }
        let Some(width) = width(id, index) else { return Err(unknown("write", id, index)) };
        let value = value & ((1 << width) - 1);
        let stream = self.touch(id);
        if let Some(slot) = stream.stored.get_mut(index as usize) {
            *slot = value;
        }
        match index {
            stream::REMOTE_DEST_BUF_SIZE => stream.space_available.fill(value),
            stream::REMOTE_DEST_BUF_START => stream.stored[stream::REMOTE_DEST_WR_PTR as usize] = 0,
            reg::BUF_START => {
                stream.stored[reg::RD_PTR as usize] = 0;
                stream.stored[reg::WR_PTR as usize] = 0;
            }
            _ => {}
        }
        Ok(())
    }

    /// `SPACE_AVAILABLE_UPDATE`: `n << 6 | i` adds n to counter i, modulo 2^17. Bits above n belong to the message info buffer, which no
    /// idle stream uses; a negative n sets them.
    fn add_space(&mut self, id: usize, value: u32) -> Result<(), Fault> {
        let receiver = value & ((1 << stream::UPDATE_INC_SHIFT) - 1);
        let Some(i) = space_index(id, stream::SPACE_AVAILABLE + receiver) else {
            return Err(Fault::new(
                FaultClass::MissingSpecification,
                format!("stream {id} has no SPACE_AVAILABLE counter {receiver} to update"),
                READ,
            ));
        };
        let slot = &mut self.touch(id).space_available[i];
        *slot = slot.wrapping_add(value >> stream::UPDATE_INC_SHIFT) & stream::COUNTER_MASK;
        Ok(())
    }

    fn touch(&mut self, id: usize) -> &mut Stream {
        self.streams[id]
            .get_or_insert_with(|| Box::new(Stream { stored: [0; STORED], space_available: [0; RECEIVERS] }))
    }
}

/// Stream and register index of a byte offset.
fn locate(off: u32) -> Result<(usize, u32), Fault> {
    let (id, index) = (off / stream::STRIDE, off % stream::STRIDE / 4);
    if id < stream::COUNT && index < stream::REGS && off.is_multiple_of(4) {
        return Ok((id as usize, index));
    }
    let what = format!("an access at offset {off:#x} of the overlay streams, where no register is");
    Err(Fault::new(FaultClass::UndefinedBehavior, what, READ))
}

/// Streams that can transmit in multicast mode (Overlay/README.md, "Stream Capabilities": 0 to 3).
const fn multicasts(id: usize) -> bool {
    id < 4
}

/// Streams that can transmit to DRAM buffers (same table: 0 to 3 and 8 to 11).
const fn writes_dram(id: usize) -> bool {
    id < 4 || (id >= 8 && id < 12)
}

/// Which counter of `SPACE_AVAILABLE` a register index is, if the stream has it.
fn space_index(id: usize, index: u32) -> Option<usize> {
    let i = index.checked_sub(stream::SPACE_AVAILABLE)? as usize;
    (i == 0 || i < RECEIVERS && multicasts(id)).then_some(i)
}

/// Width in bits of a register that holds a value; 0 for one that this stream lacks; `None` for one that is not offered.
fn width(id: usize, index: u32) -> Option<u32> {
    let if_has = |has: bool, width: u32| Some(if has { width } else { 0 });
    match index {
        stream::REMOTE_DEST_BUF_START
        | stream::REMOTE_DEST_BUF_SIZE
        | stream::REMOTE_DEST_WR_PTR
        | reg::REMOTE_DEST_MSG_INFO_WR_PTR
        | reg::BUF_START
        | reg::BUF_SIZE
        | reg::RD_PTR
        | reg::WR_PTR
        | reg::MSG_INFO_PTR
        | reg::MSG_INFO_WR_PTR => Some(stream::COUNTER_BITS),
        reg::REMOTE_SRC => Some(24),
        reg::ACK_THRESHOLD | reg::REMOTE_DEST_TRAFFIC => Some(4),
        reg::REMOTE_DEST => Some(18),
        reg::REMOTE_DEST_BUF_START_HI | reg::REMOTE_DEST_MSG_INFO_WR_PTR_HI => if_has(writes_dram(id), 15),
        reg::MCAST_DEST => if_has(multicasts(id), 19),
        reg::MCAST_DEST_NUM => if_has(multicasts(id), 6),
        _ if reg::SCRATCH.contains(&index) => if_has(writes_dram(id), 24),
        _ => None,
    }
}

fn unknown(access: &str, id: usize, index: u32) -> Fault {
    let what = format!("{access} of register {index} of overlay stream {id}");
    Fault::new(FaultClass::UnimplementedFunctionality, what, READ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilework_abi::stream as s;

    fn off(id: u32, index: u32) -> u32 {
        s::reg_addr(id, index) - s::BASE
    }

    #[test]
    fn a_circular_buffer_counts_pages_in_two_registers() {
        let mut streams = Streams::new();
        for id in [0, 31, 63] {
            streams.write(off(id, s::REMOTE_DEST_BUF_SIZE), 7).expect("received");
            streams.write(off(id, s::REMOTE_DEST_BUF_START), 3).expect("acknowledged");
            assert_eq!(streams.read(off(id, s::REMOTE_DEST_BUF_SIZE)), Ok(7));
            assert_eq!(streams.read(off(id, s::REMOTE_DEST_BUF_START)), Ok(3));
            streams.write(off(id, s::REMOTE_DEST_BUF_SIZE), u32::MAX).expect("received");
            assert_eq!(streams.read(off(id, s::REMOTE_DEST_BUF_SIZE)), Ok(0x1_FFFF), "17 bits");
        }
    }

    #[test]
    fn a_worker_counter_is_set_by_size_and_added_to_by_update() {
        let mut streams = Streams::new();
        let (update, available) = (off(48, s::SPACE_AVAILABLE_UPDATE), off(48, s::SPACE_AVAILABLE));
        assert_eq!(streams.read(available), Ok(0));
        for n in 1..=118 {
            streams.write(update, 1 << 6).expect("an update");
            assert_eq!(streams.read(available), Ok(n));
        }
        streams.write(update, 0u32.wrapping_sub(118) << 6).expect("a negative update");
        assert_eq!(streams.read(available), Ok(0));
        streams.write(update, 0u32.wrapping_sub(1) << 6).expect("a negative update");
        assert_eq!(streams.read(available), Ok(0x1_FFFF), "17-bit wrap");
        streams.write(off(48, s::REMOTE_DEST_BUF_SIZE), 5).expect("a size");
        assert_eq!(streams.read(available), Ok(5));
        assert!(streams.write(available, 1).is_err(), "read only");
        assert!(streams.read(update).is_err(), "write only");
        assert_eq!(streams.read(off(47, s::SPACE_AVAILABLE)), Ok(0), "the neighbour is untouched");
    }

    #[test]
    fn only_multicast_streams_have_32_counters() {
        let mut streams = Streams::new();
        streams.write(off(3, s::REMOTE_DEST_BUF_SIZE), 10).expect("a size");
        streams.write(off(3, s::SPACE_AVAILABLE_UPDATE), 4 << 6 | 31).expect("an update");
        assert_eq!(streams.read(off(3, s::SPACE_AVAILABLE + 31)), Ok(14));
        assert_eq!(streams.read(off(3, s::SPACE_AVAILABLE + 30)), Ok(10));
        assert!(streams.write(off(3, s::SPACE_AVAILABLE_UPDATE), 32).is_err());
        assert!(streams.write(off(4, s::SPACE_AVAILABLE_UPDATE), 1).is_err());
        assert!(streams.read(off(4, s::SPACE_AVAILABLE + 1)).is_err());
    }

    #[test]
    fn writes_of_a_start_zero_its_pointers() {
        let mut streams = Streams::new();
        for (start, pointers) in [
            (s::REMOTE_DEST_BUF_START, &[s::REMOTE_DEST_WR_PTR][..]),
            (reg::BUF_START, &[reg::RD_PTR, reg::WR_PTR][..]),
        ] {
            for &pointer in pointers {
                streams.write(off(9, pointer), 77).expect("a pointer");
                assert_eq!(streams.read(off(9, pointer)), Ok(77));
            }
            streams.write(off(9, start), 1).expect("a start");
            for &pointer in pointers {
                assert_eq!(streams.read(off(9, pointer)), Ok(0));
            }
        }
    }

    #[test]
    fn registers_have_their_width_and_exist_where_the_page_says() {
        let mut streams = Streams::new();
        // (register, bits, exists in stream 0, in stream 8, in stream 20)
        let table = [
            (4, 24, true, true, true),
            (6, 4, true, true, true),
            (7, 18, true, true, true),
            (9, 15, true, true, false),
            (24, 19, true, false, false),
            (25, 6, true, false, false),
            (36, 24, true, true, false),
            (41, 24, true, true, false),
        ];
        for (index, bits, in_0, in_8, in_20) in table {
            for (id, exists) in [(0, in_0), (8, in_8), (20, in_20)] {
                streams.write(off(id, index), u32::MAX).expect("a write, perhaps ignored");
                let value = if exists { (1 << bits) - 1 } else { 0 };
                assert_eq!(streams.read(off(id, index)), Ok(value), "register {index} of stream {id}");
            }
        }
    }

    #[test]
    fn other_registers_are_named_faults() {
        let mut streams = Streams::new();
        let fault = streams.write(off(5, 267), 1).expect_err("phase advance");
        assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
        assert!(fault.what.contains("register 267 of overlay stream 5"), "{fault}");
        for bad in [off(0, 512), off(64, 8), 2, u32::MAX] {
            assert!(streams.read(bad).is_err() && streams.write(bad, 0).is_err());
        }
    }

    proptest! {
        #[test]
        fn random_accesses_never_panic(accesses in prop::collection::vec((0..0x4_1000u32, any::<u32>()), 0..200)) {
            let mut streams = Streams::new();
            for (off, value) in accesses {
                let _ = streams.write(off, value);
                let _ = streams.read(off);
            }
        }
    }
}
