//! The instructions of an ELF file in their order, with functions and source lines.

use super::{ElfError, MAX_FILE_BYTES};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use tilework_lines::{demangle, with_lines};

/// One instruction word of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedWord {
    /// Its link address.
    pub address: u32,
    /// The word.
    pub word: u32,
    /// The source file and line, when the debug information has them.
    pub line: Option<(String, u32)>,
}

/// A run of instructions under one symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedFunction {
    /// The section.
    pub section: String,
    /// The function's name; the section's, where no symbol holds the instructions.
    pub name: String,
    /// Its instructions, in the order of their addresses.
    pub words: Vec<ListedWord>,
}

/// Lists the executable sections of a 32-bit RISC-V file. Compressed instructions do not exist on
/// these cores, so every word of four bytes is one instruction.
///
/// # Errors
/// [`ElfError`] if the file is not such an ELF file or has no executable section.
pub fn list(name: &str, data: &[u8]) -> Result<Vec<ListedFunction>, ElfError> {
    let fail = |field: &str, found: String, expected: &str| Err(ElfError::new(name, field.to_owned(), found, expected));
    if data.len() > MAX_FILE_BYTES {
        return fail("size", format!("{} bytes", data.len()), &format!("at most {MAX_FILE_BYTES}"));
    }
    let file = match object::File::parse(data) {
        Ok(file) => file,
        Err(error) => return fail("ELF header", error.to_string(), "a 32-bit ELF file for RISC-V"),
    };
    if file.architecture() != object::Architecture::Riscv32 || !file.is_little_endian() {
        return fail("machine", format!("{:?}", file.architecture()), "32-bit little-endian RISC-V");
    }
    let mut functions = Vec::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let section_name = tilework_text::plain(section.name().unwrap_or("?")).into_owned();
        let bytes = match section.uncompressed_data() {
            Ok(bytes) => bytes,
            Err(error) => return fail(&section_name, error.to_string(), "bytes inside the file"),
        };
        let Ok(start) = u32::try_from(section.address()) else {
            return fail(&section_name, format!("address {:#x}", section.address()), "a 32-bit address");
        };
        split(&file, &section_name, section.index(), start, &bytes, &mut functions);
    }
    if functions.is_empty() {
        return fail("sections", "no executable one".into(), "at least one with instructions");
    }
    Ok(functions)
}

/// Adds the functions of one section.
fn split(
    file: &object::File<'_>,
    section: &str,
    index: object::SectionIndex,
    start: u32,
    bytes: &[u8],
    functions: &mut Vec<ListedFunction>,
) {
    let mut symbols: Vec<(u32, String)> = file
        .symbols()
        .filter(|s| matches!(s.kind(), SymbolKind::Text) && s.section_index() == Some(index))
        .filter_map(|s| Some((u32::try_from(s.address()).ok()?, demangle(s.name().ok()?))))
        .collect();
    symbols.sort();
    symbols.dedup_by_key(|(address, _)| *address);
    let mut symbols = symbols.into_iter().peekable();
    with_lines(file, |line_of| {
        for (i, word) in bytes.chunks_exact(4).enumerate() {
            let Some(address) = u32::try_from(4 * i).ok().and_then(|offset| start.checked_add(offset)) else { return };
            let mut name = (i == 0).then(|| section.to_owned());
            while let Some((_, symbol)) = symbols.next_if(|(at, _)| *at <= address) {
                name = Some(symbol);
            }
            if let Some(name) = name {
                functions.push(ListedFunction { section: section.to_owned(), name, words: Vec::new() });
            }
            let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            if let Some(function) = functions.last_mut() {
                function.words.push(ListedWord { address, word, line: line_of(address) });
            }
        }
    });
}
