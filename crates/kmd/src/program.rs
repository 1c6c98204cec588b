//! Whether the dynamic linker loads a library before a program, by the program's file.
//!
//! The card of `tilework card` is such a library. A program that is statically linked has no
//! dynamic linker, one of another class has one that cannot load it, and neither would find the
//! card. Files are those of the System V gABI, chapters 4 and 5, and of execve(2).

/// How a file begins, as far as it says who loads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "it is made without a heap, and nobody keeps many")]
pub enum Head {
    /// A program that the dynamic linker starts, or what is none: whoever starts it says so.
    Loads,
    /// An ELF program without a dynamic linker.
    Static,
    /// An ELF program that is not of 64 bits.
    OtherClass,
    /// A script, whose interpreter is a program: the path of it.
    Script(Path),
}

/// The longest path of an interpreter that is looked at.
const LONGEST: usize = 255;

/// A path in a file's first line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Path {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Head {
    /// Why the card's library is not loaded into such a program; `None` if it is.
    pub const fn refusal(self) -> Option<&'static str> {
        match self {
            Self::Loads | Self::Script(_) => None,
            Self::Static => Some("is statically linked, and the card's library cannot be loaded into it"),
            Self::OtherClass => Some("is not a program of 64 bits, and the card's library cannot be loaded into it"),
        }
    }
}

const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const ET_EXEC: u16 = 2;
const DT_NULL: u64 = 0;
const DT_FLAGS_1: u64 = 0x6FFF_FFFB;
/// The file is a program, though it may be placed anywhere.
const DF_1_PIE: u64 = 0x0800_0000;
/// Bytes of the ELF header, of a program header and of an entry of the dynamic section.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const DYNAMIC: usize = 16;
/// Program headers and dynamic entries that are looked at; linkers make fewer.
const MOST: u64 = 512;

/// Looks at a file, of which `read` gives bytes from an offset on: as many as there are, at most as
/// many as it is asked for.
pub fn head(mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Head {
    let mut start = [0; LONGEST];
    let len = read(0, &mut start).min(LONGEST);
    let start = &start[..len];
    if let Some(line) = start.strip_prefix(b"#!") {
        return interpreter(line).map_or(Head::Loads, Head::Script);
    }
    match (start.starts_with(b"\x7fELF"), start.get(4)) {
        (true, Some(2)) if len >= HEADER => elf(start, read),
        (true, Some(1)) => Head::OtherClass,
        _ => Head::Loads,
    }
}

/// The interpreter that a script's first line names.
fn interpreter(line: &[u8]) -> Option<Path> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let line = line.split(|&byte| byte == b'\n').next()?;
    let from = line.iter().position(|byte| !is_blank(byte))?;
    let path = line[from..].split(is_blank).next()?;
    let mut bytes = [0; LONGEST];
    bytes.get_mut(..path.len())?.copy_from_slice(path);
    Some(Path { bytes, len: path.len() })
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(found) = bytes.get(at..at + 8) {
        word.copy_from_slice(found);
    }
    u64::from_le_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes.get(at).copied().unwrap_or(0), bytes.get(at + 1).copied().unwrap_or(0)])
}

fn elf(header: &[u8], mut read: impl FnMut(u64, &mut [u8]) -> usize) -> Head {
    let (kind, table) = (half(header, 16), word(header, 32));
    let (size, count) = (u64::from(half(header, 54)), u64::from(half(header, 56)));
    let mut dynamic = None;
    for index in 0..count.min(MOST) {
        let mut entry = [0; PROGRAM_HEADER];
        if read(table.saturating_add(index * size), &mut entry) < PROGRAM_HEADER {
            return Head::Loads;
        }
        let [a, b, c, d, ..] = entry;
        match u32::from_le_bytes([a, b, c, d]) {
            PT_INTERP => return Head::Loads,
            PT_DYNAMIC => dynamic = Some((word(&entry, 8), word(&entry, 32))),
            _ => {}
        }
    }
    // A library without an interpreter that is started as a program is the dynamic linker itself.
    let is_program = kind == ET_EXEC || dynamic.is_some_and(|dynamic| is_pie(dynamic, read));
    if count > 0 && is_program { Head::Static } else { Head::Loads }
}

/// Whether a dynamic section is that of a program.
fn is_pie((start, bytes): (u64, u64), mut read: impl FnMut(u64, &mut [u8]) -> usize) -> bool {
    for index in 0..(bytes / DYNAMIC as u64).min(MOST) {
        let mut entry = [0; DYNAMIC];
        if read(start.saturating_add(index * DYNAMIC as u64), &mut entry) < DYNAMIC {
            return false;
        }
        match word(&entry, 0) {
            DT_NULL => return false,
            DT_FLAGS_1 => return word(&entry, 8) & DF_1_PIE != 0,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &[u8]) -> Head {
        head(|at, out| {
            let from = usize::try_from(at).unwrap_or(usize::MAX).min(file.len());
            let len = out.len().min(file.len() - from);
            out[..len].copy_from_slice(&file[from..from + len]);
            len
        })
    }

    /// An ELF file with program headers of these kinds; the dynamic section stands behind them.
    fn file(kind: u16, headers: &[u32], flags: u64) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + headers.len() * PROGRAM_HEADER];
        bytes[..5].copy_from_slice(b"\x7fELF\x02");
        bytes[16..18].copy_from_slice(&kind.to_le_bytes());
        (bytes[32], bytes[54]) = (64, 56);
        bytes[56..58].copy_from_slice(&u16::try_from(headers.len()).unwrap().to_le_bytes());
        let end = bytes.len() as u64;
        for (i, header) in headers.iter().enumerate() {
            let at = HEADER + i * PROGRAM_HEADER;
            bytes[at..at + 4].copy_from_slice(&header.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&end.to_le_bytes());
            bytes[at + 32..at + 40].copy_from_slice(&48u64.to_le_bytes());
        }
        for (tag, value) in [(1, 7), (DT_FLAGS_1, flags), (DT_NULL, 0)] {
            bytes.extend(u64::to_le_bytes(tag));
            bytes.extend(u64::to_le_bytes(value));
        }
        bytes
    }

    const ET_DYN: u16 = 3;

    #[test]
    fn a_program_without_an_interpreter_is_static() {
        assert_eq!(of(&file(ET_EXEC, &[1, 1], 0)), Head::Static);
        assert_eq!(of(&file(ET_EXEC, &[1, PT_INTERP], 0)), Head::Loads);
        assert_eq!(of(&file(ET_DYN, &[1, PT_DYNAMIC], DF_1_PIE)), Head::Static);
        assert_eq!(of(&file(ET_DYN, &[PT_INTERP, PT_DYNAMIC], DF_1_PIE)), Head::Loads);
        // The dynamic linker.
        assert_eq!(of(&file(ET_DYN, &[1, PT_DYNAMIC], 0)), Head::Loads);
        let mut other = file(ET_EXEC, &[1], 0);
        other[4] = 1;
        assert_eq!(of(&other), Head::OtherClass);
        for cut in [0, 3, 4, 20, 64, 70] {
            assert_eq!(of(&file(ET_EXEC, &[1, 1], 0)[..cut]), Head::Loads, "{cut}");
        }
    }

    #[test]
    fn the_first_line_of_a_script_names_its_interpreter() {
        for (text, path) in [("#!/bin/sh -e\nls", "/bin/sh"), ("#! /a b\n", "/a"), ("#!/x", "/x")] {
            let Head::Script(found) = of(text.as_bytes()) else { panic!("{text}") };
            assert_eq!(found.bytes(), path.as_bytes());
        }
        assert_eq!(of(b"echo"), Head::Loads);
    }
}
