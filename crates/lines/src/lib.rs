//! From program counters to functions and source lines, by the symbol table and DWARF line tables
//! of ELF files.

#![forbid(unsafe_code)]

use addr2line::Context;
use gimli::{EndianSlice, RunTimeEndian};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::borrow::Cow;
use std::fmt;
use tilework_text::plain;

/// A function, and where in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFrame {
    /// The function's name.
    pub function: String,
    /// The source file and line, when the debug information has them.
    pub line: Option<(String, u32)>,
    /// The column in the line, from 1 on, when the debug information has it.
    pub column: Option<u32>,
}

/// Where a program counter is: the function, and the functions it was inlined into.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SourceLocation {
    /// Innermost first; empty when nothing is known.
    pub frames: Vec<SourceFrame>,
}

impl fmt::Display for SourceFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match &self.line {
            Some((file, line)) => write!(f, " ({file}:{line})"),
            None => Ok(()),
        }
    }
}

/// Frames that a report shows.
const SHOWN: usize = 4;

impl SourceLocation {
    /// The frames of the program's own code: those of the Rust core library are left out where
    /// others exist.
    pub fn telling(&self) -> impl Iterator<Item = &SourceFrame> {
        let core = |f: &&SourceFrame| f.line.as_ref().is_some_and(|(file, _)| file.contains("/library/core/src/"));
        let only_core = self.frames.iter().all(|f| core(&f));
        self.frames.iter().filter(move |f| only_core || !core(f))
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.frames.is_empty() {
            return f.write_str("unknown function");
        }
        for (i, frame) in self.telling().take(SHOWN).enumerate() {
            if i > 0 {
                f.write_str(", in ")?;
            }
            write!(f, "{frame}")?;
        }
        Ok(())
    }
}

/// Looks `pc` (a link address) up in a file that was checked when it was loaded. Debug information
/// is only for reports, so what cannot be read is left out.
pub fn locate(elf: &[u8], pc: u32) -> SourceLocation {
    let Ok(file) = object::File::parse(elf) else { return SourceLocation::default() };
    let mut frames = dwarf_frames(&file, pc).unwrap_or_default();
    if frames.is_empty() {
        frames.extend(symbol_of(&file, pc).map(|function| SourceFrame { function, line: None, column: None }));
    }
    SourceLocation { frames }
}

/// The section `.text`: its offset in the file, its bytes, its address.
pub fn text_of(elf: &[u8]) -> Option<(usize, usize, u32)> {
    let file = object::File::parse(elf).ok()?;
    let text = file.section_by_name(".text")?;
    let (offset, bytes) = text.file_range()?;
    Some((usize::try_from(offset).ok()?, usize::try_from(bytes).ok()?, u32::try_from(text.address()).ok()?))
}

/// Address and bytes of the symbol called `name`; of several, the first.
fn find(elf: &[u8], name: &str) -> Option<(u32, u32)> {
    let file = object::File::parse(elf).ok()?;
    let symbol = file.symbols().find(|s| s.name_bytes() == Ok(name.as_bytes()))?;
    // A 32-bit file has no others.
    Some((symbol.address().try_into().ok()?, symbol.size().try_into().ok()?))
}

/// The address of a symbol.
pub fn address_of(elf: &[u8], name: &str) -> Option<u32> {
    find(elf, name).map(|(address, _)| address)
}

/// The word that a variable has when the file is loaded, if the file has the variable.
pub fn initial_word(elf: &[u8], name: &str) -> Option<u32> {
    let file = object::File::parse(elf).ok()?;
    let symbol = file.symbols().find(|s| s.name_bytes() == Ok(name.as_bytes()))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let word = section.data_range(symbol.address(), 4).ok()??;
    Some(u32::from_le_bytes(word.try_into().ok()?))
}

/// The size of a symbol, if the file has it.
pub fn size_of(elf: &[u8], name: &str) -> Option<u32> {
    find(elf, name).map(|(_, bytes)| bytes).filter(|&bytes| bytes > 0)
}

/// The function symbol whose range holds `pc`.
fn symbol_of(file: &object::File, pc: u32) -> Option<String> {
    let pc = u64::from(pc);
    let holds =
        |s: &object::Symbol| s.kind() == SymbolKind::Text && s.address() <= pc && (pc - s.address() < s.size().max(1));
    let symbol = file.symbols().filter(holds).max_by_key(ObjectSymbol::address)?;
    Some(demangle(symbol.name().ok()?))
}

/// A symbol's name as people know it, without what a terminal obeys. Of C++ the name alone, without
/// arguments.
pub fn demangle(name: &str) -> String {
    if let Some(name) = of_cpp(name) {
        return plain(&name).into_owned();
    }
    plain(&format!("{:#}", rustc_demangle::demangle(name))).into_owned()
}

/// The name of a function of C++ (Itanium C++ ABI, `<encoding>`): `_Z`, and a name with its length
/// in front or several between `N` and `E`. None where it has parts of other kinds; Rust's older
/// names end in a hash and are left to their own reader.
fn of_cpp(symbol: &str) -> Option<String> {
    fn part(text: &str) -> Option<(&str, &str)> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (len, rest) = text.split_at(digits);
        rest.split_at_checked(len.parse().ok()?)
    }
    let rest = symbol.strip_prefix("_Z")?;
    let Some(mut rest) = rest.strip_prefix('N') else {
        return part(rest.strip_prefix('L').unwrap_or(rest)).map(|(name, _)| name.to_owned());
    };
    let mut names = Vec::new();
    while let Some((name, after)) = part(rest) {
        names.push(name);
        rest = after;
    }
    let is_hash = |name: &&str| name.len() == 17 && name.starts_with('h');
    (!names.is_empty() && !names.last().is_some_and(is_hash)).then(|| names.join("::"))
}

/// Calls `then` with a look-up from an address to its source file and line; it finds nothing where
/// the debug information is missing or cannot be read.
pub fn with_lines(file: &object::File, then: impl FnOnce(&dyn Fn(u32) -> Option<(String, u32)>)) {
    let Ok(sections) = dwarf_sections(file) else { return then(&|_| None) };
    let dwarf = sections.borrow(|data| EndianSlice::new(data, RunTimeEndian::Little));
    let Ok(context) = Context::from_dwarf(dwarf) else { return then(&|_| None) };
    then(&|address| {
        let location = context.find_location(u64::from(address)).ok()??;
        Some((plain(location.file?).into_owned(), location.line?))
    });
}

/// The debug sections of a file; those that it lacks are empty.
fn dwarf_sections<'a>(file: &object::File<'a>) -> gimli::Result<gimli::DwarfSections<Cow<'a, [u8]>>> {
    gimli::DwarfSections::load(|id| {
        let data = file.section_by_name(id.name()).and_then(|s| s.uncompressed_data().ok());
        Ok(data.unwrap_or(Cow::Borrowed(&[])))
    })
}

fn dwarf_frames(file: &object::File, pc: u32) -> Option<Vec<SourceFrame>> {
    let sections = dwarf_sections(file).ok()?;
    let dwarf = sections.borrow(|data| EndianSlice::new(data, RunTimeEndian::Little));
    let context = Context::from_dwarf(dwarf).ok()?;
    let mut frames = Vec::new();
    let mut found = context.find_frames(u64::from(pc)).skip_all_loads().ok()?;
    while let Ok(Some(frame)) = found.next() {
        let function = match frame.function.as_ref().and_then(|f| f.raw_name().ok()) {
            Some(name) => demangle(&name),
            None => symbol_of(file, pc)?,
        };
        // DWARF has column 0 for what belongs to the whole line.
        let column = frame.location.as_ref().and_then(|l| l.column).filter(|&column| column > 0);
        let line = frame.location.and_then(|l| Some((plain(from_root(l.file?)).into_owned(), l.line?)));
        frames.push(SourceFrame { function, line, column });
    }
    Some(frames)
}

/// The name of a file from the root of its sources. Images that have no local paths call that `.`,
/// which is then also in front of files of packages outside the folder that was compiled:
/// `./firmware/./crates/abi/src/noc.rs`.
fn from_root(file: &str) -> &str {
    match file.rfind("/./") {
        Some(at) if file.starts_with("./") => &file[at + 1..],
        _ => file,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_from_the_root_of_the_sources() {
        for (file, name) in [
            ("./firmware/./crates/abi/src/noc.rs", "./crates/abi/src/noc.rs"),
            ("./firmware/rt/src/reg.rs", "./firmware/rt/src/reg.rs"),
            ("/home/user/./kernel.c", "/home/user/./kernel.c"),
            ("kernel.c", "kernel.c"),
        ] {
            assert_eq!(from_root(file), name);
        }
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (symbol, name) in [
            ("_Z11kernel_mainv", "kernel_main"),
            ("_Z18noc_semaphore_waitU11rvtt_l1_ptrPVmm", "noc_semaphore_wait"),
            ("_ZN7ckernel6packer13pack_untilizeEv", "ckernel::packer::pack_untilize"),
            ("_ZL4helpi", "help"),
            ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("main", "main"),
            ("_Z99short", "_Z99short"),
            ("_Z", "_Z"),
        ] {
            assert_eq!(demangle(symbol), name, "{symbol}");
        }
    }
}
