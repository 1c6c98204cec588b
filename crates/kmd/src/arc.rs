//! The chip's firmware as the driver talks to it: telemetry and messages (`blackhole.c`,
//! `msgqueue.c`).

use crate::{Card, windows};
use std::collections::BTreeMap;
use tilework_abi::board::ARC;
use tilework_abi::telemetry as abi;
use tilework_abi::tlb::Bar;

/// Words of a message.
const WORDS: usize = 8;
/// Bytes of a queue's header (`ARC_MSG_QUEUE_HEADER_SIZE`), and in it the pointers that count
/// requests written, answers read, requests read and answers written.
const HEADER: u64 = 32;
const REQUEST_WRITTEN: u64 = 0;
const ANSWER_READ: u64 = 4;
const REQUEST_READ: u64 = 16;
const ANSWER_WRITTEN: u64 = 20;
/// Rings the firmware (`ARC_MSI_FIFO`).
const DOORBELL: u64 = 0x800B_0000;
/// `ARC_MSG_TYPE_POWER_SETTING`.
pub(crate) const POWER_SETTING: u32 = 0x21;
/// `ARC_MSG_TYPE_ASIC_STATE0`: the driver takes the card.
pub(crate) const ASIC_STATE_0: u32 = 0xA0;
/// Looks at the answer queue before the driver gives up: each takes a round trip over PCIe, so this
/// is about `ARC_MSG_TIMEOUT_MS`.
const LOOKS: u32 = 100_000;

fn read(card: &mut dyn Card, addr: u64) -> u32 {
    let at = windows::aim(card, (ARC.x.into(), ARC.y.into()), addr, 0);
    card.read32(Bar::Bar0, at)
}

fn write(card: &mut dyn Card, addr: u64, value: u32) {
    let at = windows::aim(card, (ARC.x.into(), ARC.y.into()), addr, 0);
    card.write32(Bar::Bar0, at, value);
}

/// Whether `addr` lies in the memory that the firmware shares.
fn shared(addr: u64) -> bool {
    (abi::CSM_BASE..abi::CSM_BASE + abi::CSM_BYTES).contains(&addr)
}

/// Sends a message by the driver's queue, the first. Whether the firmware has taken it.
pub(crate) fn message(card: &mut dyn Card, words: [u32; WORDS]) -> bool {
    let control = u64::from(read(card, abi::QUEUE_POINTER));
    if !shared(control) {
        return false;
    }
    let (queue, info) = (u64::from(read(card, control)), read(card, control + 4));
    let entries = info & 0xFF;
    if !shared(queue) || entries == 0 {
        return false;
    }
    let (size, entry) = (u64::from(entries), |slot: u64| queue + HEADER + 4 * WORDS as u64 * slot);
    let written = read(card, queue + REQUEST_WRITTEN);
    let waiting = written.wrapping_sub(read(card, queue + REQUEST_READ)) % (2 * entries);
    if waiting >= entries {
        return false;
    }
    for (at, word) in (0u64..).zip(words) {
        write(card, entry(u64::from(written % entries)) + 4 * at, word);
    }
    write(card, queue + REQUEST_WRITTEN, (written + 1) % (2 * entries));
    write(card, DOORBELL, 0);
    let taken = read(card, queue + ANSWER_READ);
    if !(0..LOOKS).any(|_| read(card, queue + ANSWER_WRITTEN) != taken) {
        return false;
    }
    let answer = read(card, entry(size + u64::from(taken % entries)));
    write(card, queue + ANSWER_READ, (taken + 1) % (2 * entries));
    answer == 0
}

/// The telemetry of the chip, by tag; empty if its firmware has none.
pub fn telemetry(card: &mut dyn Card) -> BTreeMap<u16, u32> {
    let (table, data) = (u64::from(read(card, abi::TABLE_POINTER)), u64::from(read(card, abi::DATA_POINTER)));
    if !shared(table) || !shared(data) {
        return BTreeMap::new();
    }
    let count = read(card, table + abi::ENTRIES).min(abi::MAX_ENTRIES);
    (0..u64::from(count))
        .filter_map(|index| {
            let entry = read(card, table + abi::FIRST_ENTRY + 4 * index);
            let tag = u16::try_from(entry & 0xFFFF).ok()?;
            Some((tag, read(card, data + 4 * u64::from(entry >> 16))))
        })
        .collect()
}

/// Writes a word of a tile, as a file's last wish.
pub(crate) fn noc_write(card: &mut dyn Card, tile: (u16, u16), addr: u64, noc: u8, value: u32) {
    let at = windows::aim(card, tile, addr, noc);
    card.write32(Bar::Bar0, at, value);
}
