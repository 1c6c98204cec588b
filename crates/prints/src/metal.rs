//! Device prints of tt-metal's kernels (`DPRINT << ...`): from the records in their buffers to
//! lines.
//!
//! Follows the public headers of tt-metal up to the generation that prints by streams:
//! `hostdevcommon/dprint_common.h` (type ids, sizes, magic numbers, `TileSliceHostDev`),
//! `debug/dprint.h` (records, wrapping) and `debug/dprint_buffer.h` (whose buffer is which). A core
//! appends records of type, size and payload, and stores the new end of them (`wpos`); when there
//! is no room it waits until the host has read everything (`rpos`), and begins anew. Manipulators
//! work as those of C++ streams. Integers of 8 bits are shown as numbers.
//!
//! Later tt-metal (`DEVICE_PRINT`, one buffer for all cores, texts in the ELF file) has another
//! form: [`crate::device_print`].

use crate::copy::Copy;
use crate::elements;
use std::fmt::Write;
use tilework_abi::print::Element;
use tilework_abi::tensix::Processor;
use tilework_dtype::{DType, element};
use tilework_text::plain;

/// Bytes of a core's buffer (`DPRINT_BUFFER_SIZE`).
pub const BUFFER_BYTES: u32 = 204;
/// Bytes in front of its records: `wpos`, `rpos`, and the tile's coordinates (`Aux`).
pub const HEADER_BYTES: u32 = 12;
/// Offset of the end of the records (u32).
pub const WPOS: u32 = 0;
/// Offset of the end of what the host has read of them (u32).
pub const RPOS: u32 = 4;
/// The cores of the buffers of a tile, in their order (`DebugPrintHartIndex`).
pub const CORES: [Processor; 5] =
    [Processor::Ncrisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2, Processor::Brisc];
/// Bytes of all buffers of a tile.
pub const BYTES: u32 = 5 * BUFFER_BYTES;
/// What a host stores as `wpos` so that a core prints (`DEBUG_PRINT_SERVER_STARTING_MAGIC`).
pub const STARTING: u32 = 0x9898_9898;

/// Bytes of records in a buffer.
const DATA: usize = (BUFFER_BYTES - HEADER_BYTES) as usize;
/// Longest line that is kept together.
const MOST_CHARACTERS: usize = 1 << 12;

/// Type ids (`DPrintTypeID`).
mod id {
    pub(super) const CSTR: u8 = 0;
    pub(super) const ENDL: u8 = 1;
    pub(super) const SETW: u8 = 2;
    pub(super) const UINT8: u8 = 3;
    pub(super) const UINT16: u8 = 4;
    pub(super) const UINT32: u8 = 5;
    pub(super) const UINT64: u8 = 6;
    pub(super) const INT8: u8 = 7;
    pub(super) const INT16: u8 = 8;
    pub(super) const INT32: u8 = 9;
    pub(super) const INT64: u8 = 10;
    pub(super) const FLOAT32: u8 = 11;
    pub(super) const CHAR: u8 = 12;
    pub(super) const RAISE: u8 = 13;
    pub(super) const WAIT: u8 = 14;
    pub(super) const BFLOAT16: u8 = 15;
    pub(super) const SETPRECISION: u8 = 16;
    pub(super) const FIXED: u8 = 17;
    pub(super) const DEFAULTFLOAT: u8 = 18;
    pub(super) const HEX: u8 = 19;
    pub(super) const OCT: u8 = 20;
    pub(super) const DEC: u8 = 21;
    pub(super) const TILESLICE: u8 = 22;
    pub(super) const U32_ARRAY: u8 = 23;
    pub(super) const TYPED_U32_ARRAY: u8 = 24;
}

/// The base of integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Base {
    #[default]
    Ten,
    Sixteen,
    Eight,
}

/// The buffer of a core as a reader sees it, and the text that has come so far.
#[derive(Clone, Debug)]
pub struct Buffer {
    copy: Copy,
    /// Bytes of the records that have been read, and that the core knows to be.
    read: usize,
    given_back: usize,
    line: String,
    base: Base,
    width: usize,
    precision: usize,
    fixed: bool,
}

impl Default for Buffer {
    fn default() -> Self {
        let base = Base::default();
        // Six digits, as C++ streams begin.
        Self {
            copy: Copy::new(BUFFER_BYTES, HEADER_BYTES),
            read: 0,
            given_back: 0,
            line: String::new(),
            base,
            width: 0,
            precision: 6,
            fixed: false,
        }
    }
}

impl Buffer {
    /// Takes a store of some bytes, `offset` from the buffer's start; returns the lines that it
    /// completes.
    pub fn store(&mut self, offset: u32, bytes: &[u8]) -> Vec<String> {
        self.copy.store(offset, bytes).map_or_else(Vec::new, |end| self.end(end))
    }

    /// Takes the buffer as it is in L1 now; returns the lines that have come.
    pub fn load(&mut self, bytes: &[u8]) -> Vec<String> {
        self.copy.load(bytes).map_or_else(Vec::new, |end| self.end(end))
    }

    /// What has come of a line that does not end.
    pub fn rest(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        (!line.is_empty()).then_some(line)
    }

    /// The end of what has been read, for the core, if it does not know it.
    pub fn give_back(&mut self) -> Option<u32> {
        let new = self.read > std::mem::replace(&mut self.given_back, self.read);
        new.then(|| tilework_abi::convert::u32_of(self.read))
    }

    /// The records end at `end` now.
    fn end(&mut self, end: u32) -> Vec<String> {
        let mut lines = Vec::new();
        // A magic number is no end; the core begins anew with zero.
        let Some(end) = usize::try_from(end).ok().filter(|&end| end <= DATA) else { return lines };
        if end < self.read {
            // The core has stored zero for both ends.
            (self.read, self.given_back) = (0, 0);
        }
        while let Some(&[kind, size]) = self.copy.records()[self.read..end].get(..2) {
            let from = self.read + 2;
            let Some(payload) = self.copy.records()[..end].get(from..from + usize::from(size)) else { break };
            let payload = payload.to_vec();
            self.read = from + payload.len();
            self.take(kind, &payload, &mut lines);
        }
        self.read = end;
        lines
    }

    /// Takes one record.
    fn take(&mut self, kind: u8, payload: &[u8], lines: &mut Vec<String>) {
        let unsigned = little_endian(payload);
        let first = payload.first().copied().unwrap_or(0);
        match kind {
            id::CSTR => {
                let end = payload.iter().position(|&byte| byte == 0).unwrap_or(payload.len());
                self.text(&String::from_utf8_lossy(&payload[..end]), lines);
            }
            id::ENDL => self.text("\n", lines),
            id::CHAR => self.text(&char::from(first).to_string(), lines),
            id::SETW => self.width = first.into(),
            id::SETPRECISION => self.precision = first.into(),
            id::FIXED => self.fixed = true,
            id::DEFAULTFLOAT => self.fixed = false,
            id::HEX => self.base = Base::Sixteen,
            id::OCT => self.base = Base::Eight,
            id::DEC => self.base = Base::Ten,
            id::UINT8 | id::UINT16 | id::UINT32 | id::UINT64 => self.integer(unsigned, unsigned.into(), lines),
            id::INT8 | id::INT16 | id::INT32 | id::INT64 => {
                let shift = 64 - 8 * payload.len().clamp(1, 8);
                let signed = (unsigned << shift).cast_signed() >> shift;
                self.integer(unsigned, signed.into(), lines);
            }
            id::FLOAT32 => self.float(f32::from_bits(word(payload)), lines),
            id::BFLOAT16 => self.float(element::decode(DType::BF16, word(payload)), lines),
            id::TILESLICE => self.text(&tile_slice(payload), lines),
            id::U32_ARRAY => self.text(&words(payload), lines),
            id::TYPED_U32_ARRAY => {
                // The last word has the type of the others.
                let (values, kind) = payload.split_at(payload.len().saturating_sub(4));
                self.text(&format!("(type {:#x}){}", word(kind), words(values)), lines);
            }
            // Signals between cores, in older headers; they print nothing.
            id::RAISE | id::WAIT => {}
            _ => self.text(&format!("(a record of type {kind}, which is not known)"), lines),
        }
    }

    /// Adds text; the width holds for one item.
    fn text(&mut self, text: &str, lines: &mut Vec<String>) {
        let width = std::mem::take(&mut self.width);
        let fill = if text == "\n" { 0 } else { width.saturating_sub(text.chars().count()) };
        self.line.extend(std::iter::repeat_n(' ', fill));
        let mut parts = text.split('\n');
        self.line += &plain(parts.next().unwrap_or_default());
        for part in parts {
            lines.push(std::mem::replace(&mut self.line, plain(part).into_owned()));
        }
        if self.line.len() > MOST_CHARACTERS {
            lines.push(std::mem::take(&mut self.line));
        }
    }

    /// In other bases than ten, signed numbers are their bits.
    fn integer(&mut self, bits: u64, value: i128, lines: &mut Vec<String>) {
        let text = match self.base {
            Base::Ten => value.to_string(),
            Base::Sixteen => format!("{bits:x}"),
            Base::Eight => format!("{bits:o}"),
        };
        self.text(&text, lines);
    }

    fn float(&mut self, value: f32, lines: &mut Vec<String>) {
        let text = match (self.fixed && value.is_finite(), self.precision) {
            (true, precision) => format!("{value:.precision$}"),
            (false, precision) => general(value.into(), precision.max(1)),
        };
        self.text(&text, lines);
    }
}

/// A float with so many significant digits, without zeros at its end, as C++ streams write it.
pub(crate) fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return value.to_string().to_lowercase();
    }
    let scientific = format!("{value:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let short = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if (-4..limit).contains(&exponent) {
        let behind = usize::try_from(limit - 1 - exponent).unwrap_or(0);
        return short(&format!("{value:.behind$}"));
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", short(digits), exponent.abs())
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// The first word of some bytes, zero-extended.
fn word(bytes: &[u8]) -> u32 {
    tilework_abi::convert::low32(little_endian(&bytes[..bytes.len().min(4)]))
}

pub(crate) fn words(bytes: &[u8]) -> String {
    bytes.chunks(4).fold(String::new(), |mut out, bytes| {
        // Writing to a string cannot fail.
        let _ = write!(out, " {:#x}", word(bytes));
        out
    })
}

/// Rows of a tile (`TileSliceHostDev`): where, range and step of rows and columns, circular buffer,
/// format, number of elements, whether rows are lines, a code, a byte that is not used, elements.
pub(crate) fn tile_slice(payload: &[u8]) -> String {
    let (Some(address), Some(rest)) = (payload.get(..4).map(word), payload.get(4..16)) else {
        return "(a tile slice that is too short)".to_owned();
    };
    let &[_, _, _, w0, w1, ws, cb, format, count, rows, code, _] = rest else { return String::new() };
    let name = match code {
        2 => None,
        3 => Some("bad tile index"),
        4 => Some("bad pointer"),
        5 => Some("format that cannot be printed"),
        6 => Some("math thread has no circular buffers"),
        7 => Some("Ethernet core has no circular buffers"),
        _ => Some("unknown code"),
    };
    if let Some(name) = name {
        return format!("(tile of circular buffer {cb} at {address:#x}: {name})");
    }
    let Some(element) = Element::of(format.into()) else { return format!("(tile of format {format})") };
    let bytes = if element.is_block() { 2 } else { (element.bits() / 8) as usize };
    let columns = usize::from(w1.saturating_sub(w0)).div_ceil(usize::from(ws.max(1))).max(1);
    let mut out = String::new();
    for (i, element_bytes) in payload[16..].chunks_exact(bytes).take(count.into()).enumerate() {
        let bits = match (element.is_block(), element_bytes) {
            // Exponent first; a record of our own has it above.
            (true, &[exponent, mantissa]) => u32::from(exponent) << 8 | u32::from(mantissa),
            (_, bytes) => word(bytes),
        };
        out += if i == 0 {
            ""
        } else if i % columns == 0 && rows != 0 {
            "\n"
        } else {
            " "
        };
        out += &elements::shown(element, bits, true);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A core that prints.
    #[derive(Default)]
    struct Core {
        buffer: Buffer,
        wpos: u32,
        lines: Vec<String>,
    }

    impl Core {
        /// `debug_print`: byte by byte, then `wpos`; begins anew when there is no room.
        fn print(&mut self, kind: u8, payload: &[u8]) -> &mut Self {
            if self.wpos as usize + payload.len() + 2 >= DATA {
                self.wpos = 0;
                self.lines.extend(self.buffer.store(WPOS, &[0; 4]));
            }
            let size = u8::try_from(payload.len()).unwrap();
            for byte in [kind, size].iter().chain(payload) {
                self.buffer.store(HEADER_BYTES + self.wpos, &[*byte]);
                self.wpos += 1;
            }
            self.lines.extend(self.buffer.store(WPOS, &self.wpos.to_le_bytes()));
            self
        }
        fn text(&mut self, text: &str) -> &mut Self {
            self.print(id::CSTR, &[text.as_bytes(), &[0]].concat())
        }
    }

    #[test]
    fn a_stream_of_values_becomes_lines() {
        let mut core = Core::default();
        core.buffer.store(WPOS, &STARTING.to_le_bytes());
        core.text("x = ").print(id::UINT32, &7_u32.to_le_bytes()).text(", ").print(id::INT16, &(-3_i16).to_le_bytes());
        core.text(", ").print(id::HEX, &[0]).print(id::UINT32, &0xBEEF_u32.to_le_bytes()).print(id::DEC, &[0]);
        core.text(" ").print(id::SETW, &[6]).print(id::UINT8, &[200]).print(id::ENDL, &[0]);
        core.print(id::FLOAT32, &1.5_f32.to_le_bytes()).text(" ").print(id::BFLOAT16, &0x4049_u16.to_le_bytes());
        core.text(" ").print(id::SETPRECISION, &[2]).print(id::FIXED, &[0]).print(id::FLOAT32, &1.0_f32.to_le_bytes());
        core.text("\nrest");
        assert_eq!(core.lines, ["x = 7, -3, beef    200", "1.5 3.14062 1.00"]);
        assert_eq!(core.buffer.rest().as_deref(), Some("rest"));
        assert_eq!(core.buffer.rest(), None);
    }

    #[test]
    fn a_buffer_that_begins_anew_loses_nothing() {
        let mut core = Core::default();
        for i in 0..200_u32 {
            core.text("line ").print(id::UINT32, &i.to_le_bytes()).print(id::ENDL, &[0]);
        }
        let expected: Vec<String> = (0..200).map(|i| format!("line {i}")).collect();
        assert_eq!(core.lines, expected);
    }

    #[test]
    fn a_buffer_is_read_from_memory() {
        let mut core = Core::default();
        core.text("hello").print(id::ENDL, &[0]);
        let mut bytes = vec![0; BUFFER_BYTES as usize];
        bytes[..4].copy_from_slice(&core.wpos.to_le_bytes());
        bytes[HEADER_BYTES as usize..].copy_from_slice(core.buffer.copy.records());
        let mut other = Buffer::default();
        assert_eq!(other.load(&bytes), ["hello"]);
        assert_eq!(other.load(&bytes), [""; 0]);
        assert_eq!((other.give_back(), other.give_back()), (Some(core.wpos), None));
    }

    #[test]
    fn a_tile_slice_has_its_rows() {
        let header = |format: u8, count: u8, code: u8| [0, 0x40, 1, 0, 0, 4, 2, 0, 4, 2, 3, format, count, 1, code, 0];
        let halves = [0x3F80_u16, 0x4000, 0x4040, 0x4080].map(u16::to_le_bytes).concat();
        assert_eq!(tile_slice(&[&header(5, 4, 2)[..], &halves].concat()), "1.0 2.0\n3.0 4.0");
        assert_eq!(tile_slice(&[&header(6, 1, 2)[..], &[127, 0x40]].concat()), "1.0");
        assert!(tile_slice(&header(5, 0, 4)).contains("circular buffer 3 at 0x14000: bad pointer"));
        assert!(tile_slice(&[0; 7]).contains("too short"));
    }

    #[test]
    fn floats_are_written_as_streams_of_c_write_them() {
        let cases =
            [(0.0, "0"), (100.0, "100"), (1e6, "1e+06"), (123_456.0, "123456"), (0.0001, "0.0001"), (1e-5, "1e-05")];
        for (value, text) in cases {
            assert_eq!(general(value, 6), text);
        }
        assert_eq!([general(f64::NEG_INFINITY, 6), general(f64::NAN, 6), general(-2.5, 6)], ["-inf", "nan", "-2.5"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(stores in proptest::collection::vec((0..220_u32, any::<[u8; 4]>()), 0..200)) {
            let mut buffer = Buffer::default();
            for (offset, bytes) in stores {
                buffer.store(offset, &bytes[..if offset % 3 == 0 { 4 } else { 1 }]);
                buffer.store(WPOS, &[bytes[0], 0, 0, 0]);
            }
            buffer.load(&[0xFF; 100]);
        }
    }
}
