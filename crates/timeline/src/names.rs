//! Interned names, numbered in the order of first use, so that numbers do not depend on hashes.

use std::collections::HashMap;

/// A name's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) u32);

/// Names that are found by a few of their bytes, without a hash: mostly they are the same ones.
const RECENT: usize = 1 << RECENT_BITS;
const RECENT_BITS: u32 = 8;
/// Constants that are kept with their numbers.
const CONSTANTS: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// The numbers of names that were last found for such bytes; others may have the same.
    recent: [u32; RECENT],
    /// Constants with their numbers, by where they are: the same place is the same text.
    constants: [(&'static str, u32); CONSTANTS],
}

impl Default for Names {
    fn default() -> Self {
        Self {
            texts: Vec::new(),
            numbers: HashMap::new(),
            recent: [u32::MAX; RECENT],
            constants: [("", u32::MAX); CONSTANTS],
        }
    }
}

/// Where a name is looked for, by its length and its first and last bytes.
#[inline]
fn place(text: &str) -> usize {
    let bytes = text.as_bytes();
    let long = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let short = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    let (first, last) = match bytes.len() {
        0..4 => (bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), 0),
        4..8 => (short(bytes.first_chunk()), short(bytes.last_chunk())),
        _ => (long(bytes.first_chunk()), long(bytes.last_chunk())),
    };
    // Multiplied by an odd number near 2^64 divided by the golden ratio: the upper bits depend on
    // all (Knuth, "The Art of Computer Programming", 6.4).
    let mixed = (first ^ last.rotate_left(29) ^ bytes.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> (u64::BITS - RECENT_BITS)) as usize
}

impl Names {
    pub(crate) fn add(&mut self, text: &str) -> Name {
        let place = place(text);
        let recent = self.recent[place];
        if self.texts.get(recent as usize).is_some_and(|known| **known == *text) {
            return Name(recent);
        }
        let number = self.find(text);
        self.recent[place] = number;
        Name(number)
    }

    /// A name that is a constant.
    #[inline]
    pub(crate) fn add_constant(&mut self, text: &'static str) -> Name {
        let place = (text.as_ptr() as usize / 4 + text.len()) % CONSTANTS;
        let (known, number) = self.constants[place];
        if std::ptr::eq(known, text) && number != u32::MAX {
            return Name(number);
        }
        let name = self.add(text);
        self.constants[place] = (text, name.0);
        name
    }

    fn find(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).expect("memory ends before names do");
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub(crate) fn get(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn a_name_has_one_number_whatever_was_found_last() {
        // Far more than are found without a hash, of all lengths, many alike at both ends.
        let texts: Vec<String> = (0..4000).map(|i| format!("{}{i:0width$}{}", i % 3, i % 5, width = i % 20)).collect();
        let (mut names, mut known) = (Names::default(), Vec::<&str>::new());
        for _ in 0..3 {
            for text in &texts {
                let at = known.iter().position(|of| of == text).unwrap_or_else(|| {
                    known.push(text);
                    known.len() - 1
                });
                let name = names.add(text);
                assert_eq!((name.0 as usize, names.get(name)), (at, text.as_str()));
            }
        }
        for constant in ["bytes", "core", "bytes", "12", "core", ""] {
            let name = names.add_constant(constant);
            assert_eq!(names.add(constant), name);
            assert_eq!(names.get(name), constant);
        }
        let empty = names.add("");
        assert_eq!(names.add(""), empty);
        assert_eq!(names.get(empty), "");
    }
}
