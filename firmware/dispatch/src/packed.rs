//! `WRITE_PACKED`: packets of one size to the same address of many tiles (seed 001 section 4.3).
//!
//! This runs once per program and core, so its inner loop only stores what differs between two cores. A packet that crosses the end of what
//! is present is cut; with `NO_STRIDE` the one packet may be cut as well, and then each piece goes to all targets before the next, so
//! that no piece is needed twice (the original loses its place here when the piece ends at the ring's end).

use tilework_abi::L1_ALIGN;
use tilework_abi::align_up;
use tilework_abi::cq::dispatch::{
    WRITE_PACKED_MAX_MULTICAST_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS, WritePacked, WritePackedFlags,
};
use tilework_abi::cq::status::Fault;
use tilework_abi::noc::{MAX_PACKET_BYTES, init};
use tilework_cq_core::command;
use tilework_cq_core::initiators::dispatch::WRITES;
use tilework_cq_core::local::Table;
use tilework_cq_core::span::{packet, whole_packets};
use tilework_rt::niu::{MULTICAST, WRITE};

use crate::HEADER;
use crate::core::Core;

/// The sub-commands of the command being executed: one word for a unicast target, two for a multicast target.
static TARGETS: Table<WRITE_PACKED_MAX_UNICAST_SUBS> = Table::new();
const _: () = assert!(2 * WRITE_PACKED_MAX_MULTICAST_SUBS <= WRITE_PACKED_MAX_UNICAST_SUBS);

/// What every packet of a command has in common.
#[derive(Clone, Copy)]
struct Shape {
    /// Destination address.
    to: u32,
    /// Bytes.
    size: u32,
    /// Bytes with padding.
    padded: u32,
}

impl Core {
    /// `WRITE_PACKED` in its four forms.
    pub fn write_packed(&mut self) {
        let cmd: WritePacked = command(self.at());
        let flags = WritePackedFlags::from_bits_retain(cmd.flags);
        let multicast = flags.contains(WritePackedFlags::MULTICAST);
        let count = u32::from(cmd.count.get());
        let (words, most) = if multicast {
            (2 * count, WRITE_PACKED_MAX_MULTICAST_SUBS)
        } else {
            (count, WRITE_PACKED_MAX_UNICAST_SUBS)
        };
        if count as usize > most {
            return self.refuse(Fault::TooMany, count);
        }
        let size = u32::from(cmd.size.get());
        if size == 0 || count == 0 {
            return self.refuse(Fault::BadSize, 0);
        }
        let to = cmd.addr.get().wrapping_add(self.offset(u32::from(cmd.write_offset_index.get())));
        let shape = Shape { to, size, padded: align_up(size, L1_ALIGN) };
        TARGETS.fill(0, self.at() + HEADER, words as usize);
        let targets = TARGETS.words(0, words as usize);
        // Header and targets lie in the first page.
        self.advance(align_up(HEADER + 4 * words, L1_ALIGN));
        let same = flags.contains(WritePackedFlags::NO_STRIDE);
        if multicast {
            self.setup_writes(MULTICAST, 0);
            self.packed_multicast(targets, shape, same);
        } else {
            self.setup_writes(WRITE, 0);
            if same { self.packed_same(targets, shape) } else { self.packed_unicast(targets, shape) }
        }
    }

    /// A packet for each target.
    fn packed_unicast(&mut self, targets: &[u32], shape: Shape) {
        let mut left = targets;
        while !left.is_empty() {
            let here = self.wait_for_data();
            let whole = if shape.size <= MAX_PACKET_BYTES {
                whole_packets(left.len() as u32, shape.size, shape.padded, here)
            } else {
                0
            };
            let (now, later) = left.split_at(whole as usize);
            if !now.is_empty() {
                self.burst(now, shape.to, shape.size, shape.padded);
                // Ring addresses and pages are multiples of 16, so the padding of a packet that is present is present.
                self.advance(whole * shape.padded);
                left = later;
            } else if let Some((&xy, later)) = left.split_first() {
                self.cut_packet(shape, |core, at, to, n| core.write(at, xy, to, n, 1));
                left = later;
            }
        }
    }

    /// One packet for all targets.
    fn packed_same(&mut self, targets: &[u32], shape: Shape) {
        self.cut_packet(shape, |core, at, to, n| {
            let _ = at;
            core.burst(targets, to, n, 0);
        });
    }

    /// Packets for rectangles. Every multicast reserves its path anew, for which nothing else may be under way.
    #[inline(never)]
    fn packed_multicast(&mut self, targets: &[u32], shape: Shape, same: bool) {
        let send = |core: &mut Self, target: &[u32], at, to, n| {
            if let &[rect, recipients] = target {
                core.barrier();
                core.write(at, rect, to, n, recipients);
            }
        };
        if same {
            self.cut_packet(shape, |core, at, to, n| {
                for target in targets.chunks_exact(2) {
                    send(core, target, at, to, n);
                }
            });
        } else {
            for target in targets.chunks_exact(2) {
                self.cut_packet(shape, |core, at, to, n| send(core, target, at, to, n));
            }
        }
    }

    /// Passes over one packet with its padding, in pieces that are present and fit a NoC packet; `send(core, from, to, bytes)` writes each.
    #[inline(always)]
    fn cut_packet(&mut self, shape: Shape, mut send: impl FnMut(&mut Self, u32, u32, u32)) {
        let mut done = 0;
        while done < shape.size {
            let here = self.wait_for_data();
            let n = packet(shape.size - done, here);
            let at = self.at();
            send(self, at, shape.to + done, n);
            self.advance(n);
            done += n;
        }
        self.advance(shape.padded - shape.size);
    }

    /// The hot loop: `bytes` from the present place, `stride` apart, to address `to` of each target.
    #[inline(always)]
    fn burst(&mut self, targets: &[u32], to: u32, bytes: u32, stride: u32) {
        let my_xy = self.my_xy;
        let mut from = self.at();
        WRITES.wait_ready();
        WRITES.set(init::RET_ADDR_LO, to);
        WRITES.set(init::AT_LEN_BE, bytes);
        for &xy in targets {
            WRITES.wait_ready();
            WRITES.set(init::TARG_ADDR_LO, from);
            WRITES.set(init::TARG_ADDR_HI, my_xy);
            WRITES.set(init::RET_ADDR_HI, xy);
            WRITES.start();
            from = from.wrapping_add(stride);
        }
        self.expect(targets.len() as u32);
    }
}
