//! Reading the parts of an ELF file that loading needs, with every check.
//!
//! Follows the System V ABI (ELF) and the RISC-V ELF psABI.

use super::{ElfError, MAX_FILE_BYTES};
use object::LittleEndian;
use object::elf::{self, FileHeader32, ProgramHeader32};
use object::read::elf::{FileHeader, ProgramHeader};
use std::ops::Range;
use tilework_abi::tensix::{L1_SIZE, LOCAL_BASE, Processor};

const LE: LittleEndian = LittleEndian;
/// Budget of load segments.
const MAX_SEGMENTS: usize = 16;

/// One load segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    /// Its number among the program headers.
    pub number: usize,
    /// Where the code expects it.
    pub vaddr: u32,
    /// Where the loader puts it.
    pub paddr: u32,
    /// Its bytes in the file.
    pub bytes: &'a [u8],
    /// Its bytes in memory.
    pub memory: u32,
    /// Whether it is code.
    pub executable: bool,
}

impl Segment<'_> {
    /// Loaded addresses.
    pub(super) fn loaded(&self) -> Range<u32> {
        self.paddr..self.paddr + self.memory
    }
    /// Whether it is loaded into local RAM.
    pub(super) fn is_local(&self) -> bool {
        self.paddr >= LOCAL_BASE
    }
    pub(super) fn field(&self) -> String {
        format!("segment {}", self.number)
    }
}

/// A checked file.
pub(super) struct Elf<'a> {
    pub file: &'a str,
    pub data: &'a [u8],
    pub header: &'a FileHeader32<LittleEndian>,
    pub segments: Vec<Segment<'a>>,
}

impl<'a> Elf<'a> {
    /// Reads headers and segments of a file for `processor`.
    pub(super) fn parse(file: &'a str, data: &'a [u8], processor: Processor) -> Result<Self, ElfError> {
        let fail = |field: &str, found: String, expected: &str| Err(ElfError::new(file, field, found, expected));
        if data.len() > MAX_FILE_BYTES {
            return fail("size", format!("{} bytes", data.len()), &format!("at most {MAX_FILE_BYTES}"));
        }
        let Some(ident) = data.get(..16) else {
            return fail("ELF header", format!("{} bytes", data.len()), "at least 52 bytes");
        };
        if ident[..4] != elf::ELFMAG {
            return fail("magic number", format!("{:02x?}", &ident[..4]), "[7f, 45, 4c, 46]");
        }
        for (field, found, value, expected) in [
            ("class", ident[4], elf::ELFCLASS32.0, "1 (32 bits)"),
            ("data encoding", ident[5], elf::ELFDATA2LSB.0, "1 (little endian)"),
        ] {
            if found != value {
                return fail(field, found.to_string(), expected);
            }
        }
        let header = FileHeader32::<LittleEndian>::parse(data)
            .map_err(|e| ElfError::new(file, "ELF header", e, "a readable header"))?;
        for (field, found, value, expected) in [
            ("machine", header.e_machine(LE).0, elf::EM_RISCV.0, "243 (RISC-V)"),
            ("type", header.e_type(LE).0, elf::ET_EXEC.0, "2 (executable)"),
        ] {
            if found != value {
                return fail(field, found.to_string(), expected);
            }
        }
        check_flags(file, header.e_flags(LE))?;
        let headers = header
            .program_headers(LE, data)
            .map_err(|e| ElfError::new(file, "program headers", e, "a table inside the file"))?;
        let mut segments = Vec::new();
        for (number, p) in headers.iter().enumerate() {
            if p.p_type(LE) == elf::PT_LOAD && p.p_memsz(LE) > 0 {
                segments.push(segment(file, data, number, p, processor)?);
            }
        }
        if segments.is_empty() || segments.len() > MAX_SEGMENTS {
            return fail("load segments", segments.len().to_string(), &format!("1 to {MAX_SEGMENTS}"));
        }
        let elf = Self { file, data, header, segments };
        elf.check_overlap()?;
        Ok(elf)
    }

    fn check_overlap(&self) -> Result<(), ElfError> {
        for (i, a) in self.segments.iter().enumerate() {
            for b in &self.segments[..i] {
                let (x, y) = (a.loaded(), b.loaded());
                if x.start < y.end && y.start < x.end {
                    let found = format!("load addresses {:#x}..{:#x}", x.start, x.end);
                    let expected = format!("no overlap with segment {} at {:#x}..{:#x}", b.number, y.start, y.end);
                    return Err(ElfError::new(self.file, a.field(), found, expected));
                }
            }
        }
        Ok(())
    }

    /// The entry point.
    pub(super) fn entry(&self) -> u32 {
        self.header.e_entry.get(LE)
    }
}

/// Refuses code for extensions that the cores do not have, by the flags of the RISC-V ELF psABI,
/// "File Header".
fn check_flags(file: &str, flags: elf::FileFlags) -> Result<(), ElfError> {
    let expected = "none: the cores have no such registers or instructions; compile with -march=rv32im -mabi=ilp32";
    for (flag, found) in [
        (elf::EF_RISCV_RVC.0, "compressed instructions (the extension C)"),
        (elf::EF_RISCV_FLOAT_ABI, "arguments in registers for floats (another ABI than ilp32)"),
        (elf::EF_RISCV_RVE.0, "the base of 16 registers (RV32E)"),
    ] {
        if flags.0 & flag != 0 {
            return Err(ElfError::new(file, "flags", format!("{found}, flags {:#x}", flags.0), expected));
        }
    }
    Ok(())
}

fn segment<'a>(
    file: &str,
    data: &'a [u8],
    number: usize,
    p: &ProgramHeader32<LittleEndian>,
    processor: Processor,
) -> Result<Segment<'a>, ElfError> {
    let field = format!("segment {number}");
    let (vaddr, memory) = (p.p_vaddr(LE), p.p_memsz(LE));
    // A linker that knows no load addresses writes zero (seed's system, `iter_pt_load`).
    let paddr = if p.p_paddr(LE) == 0 { vaddr } else { p.p_paddr(LE) };
    let (offset, size) = (p.p_offset(LE), p.p_filesz(LE));
    let bytes = data.get(offset as usize..).and_then(|rest| rest.get(..size as usize));
    let Some(bytes) = bytes else {
        let found = format!("bytes {offset:#x} to {:#x}", u64::from(offset) + u64::from(size));
        return Err(ElfError::new(file, field, found, format!("a range in a file of {:#x} bytes", data.len())));
    };
    if size > memory {
        return Err(ElfError::new(
            file,
            field,
            format!("{size} bytes in the file"),
            format!("at most {memory}, its size in memory"),
        ));
    }
    let local_end = LOCAL_BASE + processor.local_size();
    for (what, start) in [("load address", paddr), ("address", vaddr)] {
        let end = u64::from(start) + u64::from(memory);
        let in_l1 = end <= u64::from(L1_SIZE);
        let in_local = start >= LOCAL_BASE && end <= u64::from(local_end);
        if !in_l1 && !in_local {
            let expected =
                format!("L1 (0x0..{L1_SIZE:#x}) or local RAM of {processor} ({LOCAL_BASE:#x}..{local_end:#x})");
            return Err(ElfError::new(file, field, format!("{what} {start:#x}..{end:#x}"), expected));
        }
    }
    let executable = p.p_flags(LE).0 & elf::PF_X.0 != 0;
    Ok(Segment { number, vaddr, paddr, bytes, memory, executable })
}
