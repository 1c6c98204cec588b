//! Elements of tiles and arrays as text.

use tilework_abi::print::{ELEMENT_FRONT_WORDS, Element, Slice};
use tilework_dtype::block::BlockFormat;
use tilework_dtype::{DType, element};

/// Elements of an array in a line of text.
const LINE: usize = 8;

/// The element type as the tables of conversions know it.
const fn dtype(element: Element) -> DType {
    match element {
        Element::F32 => DType::F32,
        Element::F16 => DType::F16,
        Element::Bfp8 => DType::Bfp8,
        Element::Bfp4 => DType::Bfp4,
        Element::Bf16 => DType::BF16,
        Element::Bfp8B => DType::Bfp8B,
        Element::Bfp4B => DType::Bfp4B,
        Element::I32 => DType::I32,
        Element::U16 => DType::U16,
        Element::Bfp2 => DType::Bfp2,
        Element::I8 => DType::I8,
        Element::Bfp2B => DType::Bfp2B,
        Element::U32 => DType::U32,
        Element::U8 => DType::U8,
    }
}

/// An element as text: floats as Rust's `{:?}` has them.
pub(crate) fn shown(element: Element, word: u32, in_tile: bool) -> String {
    let [low, exponent, ..] = word.to_le_bytes();
    match element {
        Element::U8 | Element::U16 | Element::U32 => word.to_string(),
        Element::I8 if !in_tile => low.cast_signed().to_string(),
        Element::I32 if !in_tile => word.cast_signed().to_string(),
        Element::I8 => sign_and_magnitude(low & 0x80 != 0, u32::from(low & 0x7F)),
        Element::I32 => sign_and_magnitude(word >> 31 != 0, word & 0x7FFF_FFFF),
        _ => match BlockFormat::of(dtype(element)) {
            Some(format) => format!("{:?}", format.decode(low, exponent)),
            None => format!("{:?}", element::decode(dtype(element), word)),
        },
    }
}

fn sign_and_magnitude(negative: bool, magnitude: u32) -> String {
    format!("{}{magnitude}", if negative { "-" } else { "" })
}

/// The values of a record of elements.
struct Elements<'a> {
    address: u32,
    element: Element,
    asked: u32,
    words: &'a [u32],
}

impl<'a> Elements<'a> {
    fn of(values: &'a [u32]) -> Result<Self, String> {
        let broken = || "(a record that something else overwrote)".to_owned();
        let (front, words) = values.split_at_checked(ELEMENT_FRONT_WORDS as usize).ok_or_else(broken)?;
        let &[address, code, asked] = front else { return Err(broken()) };
        let element = Element::of(code).ok_or_else(|| format!("(element type {code} is not known)"))?;
        Ok(Self { address, element, asked, words })
    }

    /// What was asked for, and what there is of it.
    fn head(&self, what: &str, asked: u32) -> String {
        let left = asked.saturating_sub(tilework_abi::convert::u32_of(self.words.len()));
        let more = if left > 0 { format!(", {left} more left out") } else { String::new() };
        format!("{} at {:#x}, {what}{more}", self.element.name(), self.address)
    }

    /// Lines of so many elements, in columns.
    fn lines(&self, in_line: usize, in_tile: bool) -> String {
        let texts: Vec<String> = self.words.iter().map(|&word| shown(self.element, word, in_tile)).collect();
        let width = texts.iter().map(String::len).max().unwrap_or(0);
        let mut out = String::new();
        for line in texts.chunks(in_line.max(1)) {
            out += "\n ";
            // Writing to a string cannot fail.
            out.extend(line.iter().map(|text| format!(" {text:>width$}")));
        }
        out
    }
}

/// The values of a record of a tile.
pub(crate) fn tile(values: &[u32]) -> String {
    let elements = match Elements::of(values) {
        Ok(elements) => elements,
        Err(text) => return text,
    };
    let slice = Slice::of(elements.asked);
    let Slice { row, rows, column, columns } = slice;
    let end = |first: u8, count: u8| u32::from(first) + u32::from(count);
    let what = format!("rows {row}..{}, columns {column}..{}", end(row, rows), end(column, columns));
    match slice.is_in_a_tile() {
        true => elements.head(&what, slice.elements()) + &elements.lines(columns.into(), true),
        false => format!("{what}: beyond a tile of 32 by 32"),
    }
}

/// The values of a record of an array.
pub(crate) fn array(values: &[u32]) -> String {
    match Elements::of(values) {
        Ok(elements) if elements.element.is_block() => {
            format!("{}: elements that share exponents are in tiles only", elements.element.name())
        }
        Ok(elements) => {
            elements.head(&format!("{} elements", elements.asked), elements.asked) + &elements.lines(LINE, false)
        }
        Err(text) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_dtype::block::BLOCK;

    #[test]
    fn every_type_has_a_row_of_the_table_with_its_bits_and_code() {
        for &element in Element::ALL {
            let dtype = dtype(element);
            assert_eq!((element.bits(), element.is_block()), (dtype.bits(), dtype.is_block()), "{element:?}");
            // tt-metal's `UInt32` has no code in netlists.
            if element != Element::U32 {
                assert_eq!(dtype.buda_code().map(u32::from), Some(element.code()), "{element:?}");
            }
        }
    }

    #[test]
    fn a_tile_shows_its_rows_and_what_is_left_out() {
        let slice = Slice { row: 1, rows: 2, column: 14, columns: 3 };
        let bits = |value: f32| element::encode(DType::BF16, value);
        let values = [0x4000, Element::Bf16.code(), slice.word(), bits(1.0), bits(-2.5), bits(0.125), bits(3.0)];
        let text = "Bf16 at 0x4000, rows 1..3, columns 14..17, 2 more left out\n    1.0  -2.5 0.125\n    3.0";
        assert_eq!(tile(&values), text);
        let beyond = Slice { row: 31, ..slice };
        assert!(tile(&[0, Element::Bf16.code(), beyond.word()]).contains("beyond a tile"));
    }

    #[test]
    fn block_elements_have_their_exponents() {
        let format = BlockFormat::of(DType::Bfp8B).unwrap();
        let mut values = [0.0; BLOCK];
        values[..3].copy_from_slice(&[1.5, -0.75, 100.0]);
        let mut data = [0; BLOCK];
        let exponent = format.pack(&values, &mut data);
        let slice = Slice { row: 0, rows: 1, column: 0, columns: 3 };
        let words = data[..3].iter().map(|&byte| u32::from(exponent) << 8 | u32::from(byte));
        let record: Vec<u32> = [0, Element::Bfp8B.code(), slice.word()].into_iter().chain(words).collect();
        assert_eq!(tile(&record), "Bfp8B at 0x0, rows 0..1, columns 0..3\n    2.0  -1.0 100.0");
    }

    #[test]
    fn signed_integers_are_of_two_kinds() {
        let values = |element: Element, word| [0, element.code(), 1, word];
        assert!(array(&values(Element::I32, (-5_i32).cast_unsigned())).ends_with(" -5"));
        assert!(array(&values(Element::I8, 0xFF)).ends_with(" -1"));
        let one = Slice { row: 0, rows: 1, column: 0, columns: 1 }.word();
        assert!(tile(&[0, Element::I32.code(), one, 1 << 31 | 5]).ends_with(" -5"));
        assert!(tile(&[0, Element::I8.code(), one, 0x85]).ends_with(" -5"));
    }

    #[test]
    fn broken_records_are_told() {
        assert!(array(&[1, 2]).contains("overwrote"));
        assert!(tile(&[0, 99, 0]).contains("99 is not known"));
        assert!(array(&[0, Element::Bfp8.code(), 4]).contains("tiles only"));
    }
}
