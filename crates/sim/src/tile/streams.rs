//! Overlay streams as general-purpose registers.
//!
//! Dispatch and circular buffers use idle streams as counters that every core and every other tile
//! can reach (WormholeB0/NoC/Overlay/AsGeneralUse.md). Only that use is modelled: the registers are
//! rows of [`reg::STREAM`], hold values and have the side effects that the page lists, and the
//! read-only ones read as those of an idle stream. A write that would start a stream, and any
//! access to another register, is a fault that names the register. Most streams of most tiles are
//! never touched, so a stream gets its registers on the first write.

use crate::{Fault, FaultClass};
use tilework_abi::reg::{Access, Slot};
use tilework_abi::stream::{self, PHASE_NUM_INCR, reg};

const READ: &str = "WormholeB0/NoC/Overlay/AsGeneralUse.md";
/// Registers below this index have a word of storage each, but for [`Counters`]; the last is a
/// scratch register.
const LOW: usize = 42;
/// Words of storage: the low registers, the three of the source mask, `SCRATCH32`, and the address
/// of the next message.
const STORED: usize = LOW + 5;
/// Where `NEXT_RECEIVED_MSG_ADDR` is stored.
const NEXT_ADDR: usize = LOW + 4;
const RECEIVERS: usize = stream::RECEIVERS as usize;

/// The registers in which circular buffers count. Those of all streams lie side by side: each
/// launch of a program sets those of most.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    start: u32,
    size: u32,
    write_pointer: u32,
    /// `SPACE_AVAILABLE` of the first receiver.
    space: u32,
}

/// The other registers of one stream.
#[derive(Clone, Debug)]
struct Stream {
    stored: [u32; STORED],
    /// `SPACE_AVAILABLE` of the other receivers, if it can multicast.
    space_of_others: [u32; RECEIVERS - 1],
}

impl Stream {
    const IDLE: Self = Self { stored: [0; STORED], space_of_others: [0; RECEIVERS - 1] };
}

/// The 64 overlay streams of a tile.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    counters: Box<[Counters; stream::COUNT as usize]>,
    others: [Option<Box<Stream>>; stream::COUNT as usize],
}

impl Default for Streams {
    fn default() -> Self {
        Self::new()
    }
}

impl Streams {
    /// All streams idle, all registers zero.
    pub(crate) fn new() -> Self {
        Self {
            counters: Box::new([Counters::default(); stream::COUNT as usize]),
            others: [const { None }; stream::COUNT as usize],
        }
    }

    /// Reads the register at byte offset `off` from the first stream register. No read has a side
    /// effect.
    ///
    /// # Errors
    /// A register that the page does not offer for general use.
    pub(crate) fn read(&self, off: u32) -> Result<u32, Fault> {
        let Located { id, index, slot } = locate(off)?;
        let Some(slot) = slot else { return Err(unknown("read", id, index)) };
        let has = slot.reg.is_in(id as u32);
        match slot.reg.access {
            Access::Rw if has => {
                let base = base_of(index).map_or(0, |base| self.word(id, base));
                Ok(self.word(id, index).wrapping_sub(base) & width(slot))
            }
            Access::Rw => Ok(0),
            Access::Ro if has && (!is_counter(slot) || counter(id, slot.index).is_some()) => {
                Ok(self.idle_status(id, slot))
            }
            _ => Err(refused("read", id, index, slot)),
        }
    }

    /// Writes the register at byte offset `off` from the first stream register. Bits beyond a
    /// register's width are dropped, and registers that a stream does not have ignore the write, as
    /// the page says.
    ///
    /// # Errors
    /// A register that the page does not offer for general use, that is read only, or a write that
    /// would start the stream.
    pub(crate) fn write(&mut self, off: u32, value: u32) -> Result<(), Fault> {
        if self.count(off, value) {
            return Ok(());
        }
        let Located { id, index, slot } = locate(off)?;
        if index == stream::SPACE_AVAILABLE_UPDATE {
            return self.add_space(id, value);
        }
        let Some(slot) = slot else { return Err(unknown("write", id, index)) };
        if slot.reg.access != Access::Rw {
            return Err(refused("write", id, index, slot));
        }
        if value & slot.reg.fixed != 0 {
            let what = format!("write of {slot} of overlay stream {id}: {}", slot.reg.refused);
            return Err(Fault::new(FaultClass::UnimplementedFunctionality, what, READ));
        }
        let width = if slot.reg.is_in(id as u32) { width(slot) } else { 0 };
        let base = base_of(index).map_or(0, |base| self.word(id, base));
        let kept = value.wrapping_add(base) & width;
        *self.word_mut(id, index) = kept;
        match index {
            reg::BUF_START => {
                *self.word_mut(id, reg::RD_PTR) = 0;
                *self.word_mut(id, reg::WR_PTR) = 0;
            }
            reg::RD_PTR => {
                let next = self.word(id, reg::BUF_START).wrapping_add(kept) & stream::COUNTER_MASK;
                self.touch(id).stored[NEXT_ADDR] = next;
            }
            reg::PHASE_AUTO_CFG_HEADER => {
                let phase = self.word(id, reg::CURR_PHASE).wrapping_add(value & PHASE_NUM_INCR);
                *self.word_mut(id, reg::CURR_PHASE) = phase & ((1 << stream::PHASE_BITS) - 1);
                *self.word_mut(id, reg::PHASE_AUTO_CFG_HEADER) = value & !PHASE_NUM_INCR;
            }
            _ => {}
        }
        Ok(())
    }

    /// Does what [`Streams::write`] does for the two registers in which circular buffers count;
    /// `false` for any other. Every stream has them, with all bits of a counter.
    #[inline]
    fn count(&mut self, off: u32, value: u32) -> bool {
        const SIZE: u32 = 4 * stream::REMOTE_DEST_BUF_SIZE;
        const START: u32 = 4 * stream::REMOTE_DEST_BUF_START;
        let id = (off / stream::STRIDE) as usize;
        let Some(counters) = self.counters.get_mut(id) else { return false };
        let kept = value & stream::COUNTER_MASK;
        match off % stream::STRIDE {
            START => (counters.start, counters.write_pointer) = (kept, 0),
            SIZE => {
                (counters.size, counters.space) = (kept, kept);
                if multicasts(id) {
                    self.touch(id).space_of_others.fill(kept);
                }
            }
            _ => return false,
        }
        true
    }

    /// `SPACE_AVAILABLE_UPDATE`: `n << 6 | i` adds n to counter i, modulo 2^17. Bits above n belong
    /// to the message info buffer, which no idle stream uses; a negative n sets them.
    fn add_space(&mut self, id: usize, value: u32) -> Result<(), Fault> {
        let receiver = value & ((1 << stream::UPDATE_INC_SHIFT) - 1);
        let Some(i) = counter(id, receiver) else {
            return Err(Fault::new(
                FaultClass::MissingSpecification,
                format!("stream {id} has no SPACE_AVAILABLE counter {receiver} to update"),
                READ,
            ));
        };
        let space = match i {
            0 => &mut self.counters[id].space,
            _ => &mut self.touch(id).space_of_others[i - 1],
        };
        *space = space.wrapping_add(value >> stream::UPDATE_INC_SHIFT) & stream::COUNTER_MASK;
        Ok(())
    }

    /// What is stored for a register that keeps what is written.
    fn word(&self, id: usize, index: u32) -> u32 {
        let counters = &self.counters[id];
        match index {
            stream::REMOTE_DEST_BUF_START => counters.start,
            stream::REMOTE_DEST_BUF_SIZE => counters.size,
            stream::REMOTE_DEST_WR_PTR => counters.write_pointer,
            _ => self.others(id).stored[stored(index)],
        }
    }

    fn word_mut(&mut self, id: usize, index: u32) -> &mut u32 {
        match index {
            stream::REMOTE_DEST_BUF_START => &mut self.counters[id].start,
            stream::REMOTE_DEST_BUF_SIZE => &mut self.counters[id].size,
            stream::REMOTE_DEST_WR_PTR => &mut self.counters[id].write_pointer,
            _ => &mut self.touch(id).stored[stored(index)],
        }
    }

    fn others(&self, id: usize) -> &Stream {
        self.others[id].as_deref().unwrap_or(&Stream::IDLE)
    }

    fn touch(&mut self, id: usize) -> &mut Stream {
        self.others[id].get_or_insert_with(|| Box::new(Stream::IDLE))
    }

    /// The value of a read-only register of an idle stream, which has received nothing and waits
    /// for nothing.
    fn idle_status(&self, id: usize, slot: Slot) -> u32 {
        let first = self.counters[id].space;
        let others = self.others(id);
        match slot.reg.offset / 4 {
            stream::SPACE_AVAILABLE => match slot.index as usize {
                0 => first,
                i => others.space_of_others[i - 1],
            },
            reg::NEXT_RECEIVED_MSG_ADDR => others.stored[NEXT_ADDR],
            reg::MSG_INFO_CAN_PUSH_NEW_MSG => {
                u32::from(self.word(id, reg::MSG_INFO_PTR) == self.word(id, reg::MSG_INFO_WR_PTR))
            }
            reg::DEBUG_STATUS_2 => {
                let all = first != 0 && (!multicasts(id) || others.space_of_others.iter().all(|&n| n != 0));
                if all { stream::ALL_SPACE_AVAILABLE } else { 0 }
            }
            _ => slot.reg.reset,
        }
    }
}

/// Offset of an address from the first stream register, if it is that of one. Circular buffers
/// count in these registers, so this is also the fast path of their accesses.
#[inline(always)]
pub(super) const fn offset_of(addr: u32) -> Option<u32> {
    let offset = addr.wrapping_sub(stream::BASE);
    if offset < stream::COUNT * stream::STRIDE { Some(offset) } else { None }
}

/// The register at a byte offset.
struct Located {
    /// The stream.
    id: usize,
    /// The register's index in it.
    index: u32,
    /// The register, if a row has it.
    slot: Option<Slot>,
}

fn locate(off: u32) -> Result<Located, Fault> {
    let (id, at) = (off / stream::STRIDE, off % stream::STRIDE);
    let index = at / 4;
    if id < stream::COUNT && index < stream::REGS && off.is_multiple_of(4) {
        return Ok(Located { id: id as usize, index, slot: reg::STREAM.at(at) });
    }
    let what = format!("an access at offset {off:#x} of the overlay streams, where there is no register");
    Err(Fault::new(FaultClass::UndefinedBehavior, what, READ))
}

/// The bits that a register keeps, in a stream that has it.
const fn width(slot: Slot) -> u32 {
    slot.reg.mask | slot.reg.fixed
}

/// Whether the stream can transmit in multicast mode.
const fn multicasts(id: usize) -> bool {
    stream::MULTICAST >> id & 1 != 0
}

/// Whether a register is one of the `SPACE_AVAILABLE` counters, of which streams have one or all.
const fn is_counter(slot: Slot) -> bool {
    slot.reg.offset == 4 * stream::SPACE_AVAILABLE
}

/// Position of `SPACE_AVAILABLE` counter `receiver`, if the stream has it.
fn counter(id: usize, receiver: u32) -> Option<usize> {
    let i = receiver as usize;
    (i == 0 || i < RECEIVERS && multicasts(id)).then_some(i)
}

/// The storage word of a register that keeps what is written.
const fn stored(index: u32) -> usize {
    match index {
        reg::LOCAL_SRC_MASK..=reg::LOCAL_SRC_MASK_2 => LOW + (index - reg::LOCAL_SRC_MASK) as usize,
        reg::SCRATCH32 => LOW + 3,
        _ => index as usize,
    }
}

// Every register that keeps what is written has a word.
const _: () = {
    assert!(reg::SCRATCH + 6 == LOW as u32 && reg::LOCAL_SRC_MASK >= LOW as u32);
    assert!(stored(reg::LOCAL_SRC_MASK_2) < LOW + 3 && LOW + 3 < NEXT_ADDR && NEXT_ADDR < STORED);
};

/// The register that is added on writes of this one and subtracted on reads (AsGeneralUse.md).
fn base_of(index: u32) -> Option<u32> {
    match index {
        reg::CURR_PHASE | reg::REMOTE_SRC_PHASE => Some(reg::CURR_PHASE_BASE),
        reg::PHASE_AUTO_CFG_PTR => Some(reg::PHASE_AUTO_CFG_PTR_BASE),
        _ => None,
    }
}

/// An access to an index without a register.
fn unknown(access: &str, id: usize, index: u32) -> Fault {
    let what = format!("{access} of register {index} of overlay stream {id}");
    Fault::new(FaultClass::UnimplementedFunctionality, what, READ)
}

/// An access that the register does not allow.
fn refused(access: &str, id: usize, index: u32, slot: Slot) -> Fault {
    let why = match slot.reg.access {
        Access::Ro if access == "read" => "which the stream does not have",
        Access::Ro => "which is read only",
        Access::WoFault => "which is write only",
        _ => "which is not built",
    };
    let what = format!("{access} of {slot} (register {index} of overlay stream {id}), {why}");
    Fault::new(FaultClass::UnimplementedFunctionality, what, slot.reg.page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilework_abi::stream::{self as s, reg};

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
            (18, 17, true, true, true),
            (28, 20, true, true, true),
            (26, 18, true, false, false),
            (224, 24, true, false, false),
            (226, 16, true, false, false),
            (35, 16, true, false, false),
            (256, 32, true, true, false),
        ];
        for (index, bits, in_0, in_8, in_20) in table {
            for (id, exists) in [(0, in_0), (8, in_8), (20, in_20)] {
                streams.write(off(id, index), u32::MAX).expect("a write, perhaps ignored");
                let value = if exists { u32::MAX >> (32 - bits) } else { 0 };
                assert_eq!(streams.read(off(id, index)), Ok(value), "register {index} of stream {id}");
            }
        }
    }

    #[test]
    fn phases_and_configuration_pointers_are_relative_to_their_base() {
        let mut streams = Streams::new();
        for (base, relative) in [
            (reg::CURR_PHASE_BASE, reg::CURR_PHASE),
            (reg::CURR_PHASE_BASE, reg::REMOTE_SRC_PHASE),
            (reg::PHASE_AUTO_CFG_PTR_BASE, reg::PHASE_AUTO_CFG_PTR),
        ] {
            streams.write(off(20, base), 100).expect("a base");
            streams.write(off(20, relative), 7).expect("a relative value");
            assert_eq!(streams.read(off(20, relative)), Ok(7));
            streams.write(off(20, base), 40).expect("a base");
            assert_eq!(streams.read(off(20, relative)), Ok(67), "107 is what was stored");
        }
    }

    #[test]
    fn a_phase_header_stores_its_high_bits_and_adds_its_low_ones_to_the_phase() {
        let mut streams = Streams::new();
        streams.write(off(20, reg::CURR_PHASE), 0xF_FFFF).expect("a phase");
        streams.write(off(20, reg::PHASE_AUTO_CFG_HEADER), 0xABCD_E003).expect("a header");
        assert_eq!(streams.read(off(20, reg::PHASE_AUTO_CFG_HEADER)), Ok(0xABCD_E000));
        assert_eq!(streams.read(off(20, reg::CURR_PHASE)), Ok(2), "20-bit wrap");
    }

    #[test]
    fn read_only_registers_say_what_an_idle_stream_says() {
        let mut streams = Streams::new();
        let (ptr, wr_ptr) = (off(30, reg::MSG_INFO_PTR), off(30, reg::MSG_INFO_WR_PTR));
        let can_push = off(30, reg::MSG_INFO_CAN_PUSH_NEW_MSG);
        assert_eq!(streams.read(can_push), Ok(1));
        streams.write(ptr, 5).expect("a pointer");
        assert_eq!(streams.read(can_push), Ok(0));
        streams.write(wr_ptr, 5).expect("a pointer");
        assert_eq!(streams.read(can_push), Ok(1));
        streams.write(off(30, reg::BUF_START), 0x1_0000).expect("a start");
        streams.write(off(30, reg::RD_PTR), 0x21).expect("a pointer");
        assert_eq!(streams.read(off(30, reg::NEXT_RECEIVED_MSG_ADDR)), Ok(0x1_0021));
        assert_eq!(streams.read(off(30, reg::NEXT_RECEIVED_MSG_SIZE)), Ok(0));
        for id in [2, 30] {
            assert_eq!(streams.read(off(id, reg::DEBUG_STATUS_2)), Ok(0));
            streams.write(off(id, s::REMOTE_DEST_BUF_SIZE), 1).expect("a size");
            assert_eq!(streams.read(off(id, reg::DEBUG_STATUS_2)), Ok(1 << 3));
            streams.write(off(id, s::SPACE_AVAILABLE_UPDATE), u32::MAX << 6).expect("an update");
            assert_eq!(streams.read(off(id, reg::DEBUG_STATUS_2)), Ok(0), "one counter is zero again");
            assert!(streams.write(off(id, reg::DEBUG_STATUS_2), 0).is_err());
        }
    }

    #[test]
    fn starting_a_stream_is_a_named_fault() {
        let mut streams = Streams::new();
        streams.write(off(3, reg::ONETIME_MISC_CFG), 2).expect("auto advance alone starts nothing");
        let fault = streams.write(off(3, reg::ONETIME_MISC_CFG), 1).expect_err("auto configuration");
        assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
        assert_eq!(streams.read(off(3, reg::ONETIME_MISC_CFG)), Ok(2));
    }

    #[test]
    fn registers_take_the_accesses_of_their_rows() {
        for (id, reg) in (0..s::COUNT).flat_map(|id| reg::STREAM.regs.iter().map(move |reg| (id, reg))) {
            let mut streams = Streams::new();
            let at = off(id, reg.offset / 4);
            let (read, written) = (streams.read(at), streams.write(at, !reg.fixed));
            let (name, has) = (reg.name, reg.is_in(id));
            match reg.access {
                Access::Rw => {
                    let ignored = if reg.offset == 4 * reg::PHASE_AUTO_CFG_HEADER { PHASE_NUM_INCR } else { 0 };
                    let kept = if has { reg.mask & !ignored } else { 0 };
                    assert_eq!((read, written, streams.read(at)), (Ok(0), Ok(()), Ok(kept)), "{name} of {id}");
                    assert_eq!(streams.write(at, u32::MAX).is_err(), reg.fixed != 0, "{name} of {id}");
                }
                Access::Ro => assert_eq!((read.is_ok(), written.is_ok()), (has, false), "{name} of {id}"),
                Access::WoFault => assert!(read.is_err(), "{name} of {id}"),
                _ => assert!(read.is_err() && written.is_err_and(|fault| fault.what.contains(name)), "{name}"),
            }
        }
    }

    #[test]
    fn other_registers_are_named_faults() {
        let mut streams = Streams::new();
        let fault = streams.write(off(5, 267), 1).expect_err("phase advance");
        assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
        assert!(fault.what.contains("STREAM_PHASE_ADVANCE (register 267 of overlay stream 5)"), "{fault}");
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
