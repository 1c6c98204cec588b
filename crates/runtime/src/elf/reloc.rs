//! Moving a kernel: which of its bytes depend on where it is, and what they become.
//!
//! A kernel is linked at a nominal address with its relocations kept (`--emit-relocs`). What lies
//! inside the image moves with it: absolute references to it change by the distance, references
//! relative to the program counter do not. The kernel's data in local RAM moves by a distance of
//! its own, unless the kernel was linked with its firmware: then data and global pointer are where
//! that firmware expects them. What lies outside (registers, functions and data of the firmware)
//! stays: absolute references do not change, relative ones do. A symbol with an absolute section
//! index is outside whatever its value is, because it names an address of something else
//! (`--just-symbols`).
//!
//! Relocations are those of the RISC-V ELF psABI, section "Relocations". A type that is not known
//! here is refused by name; so is an instruction that does not hold what its relocation says,
//! because then the linker has rewritten it and the file does not say to what. A file whose code
//! has no relocations at all was linked without them: it would be placed elsewhere unchanged and
//! compute wrongly, so it is refused too.

use super::ElfError;
use super::read::Elf;
use object::elf::*;
use object::read::elf::{ElfFile32, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SymbolSection};
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use tilework_abi::convert::low32;

/// Budget of relocations.
const MAX_RELOCATIONS: usize = 1 << 20;

/// What a place holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A word.
    Word,
    /// Bits 31..12 of a `lui` or `auipc`.
    Hi20,
    /// The 12-bit immediate of a load or `addi`.
    LoI,
    /// The 12-bit immediate of a store.
    LoS,
    /// A conditional branch.
    Branch,
    /// A `jal`.
    Jal,
    /// An `auipc` and a `jalr` behind it.
    Call,
}

/// How far a kernel was moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Distance {
    /// Text, constants and initialisers.
    pub image: u32,
    /// Data in local RAM.
    pub local: u32,
}

/// The factors of the two distances in a value.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Slope {
    /// +1 for an absolute reference into the image, -1 for a relative one out of it.
    image: i32,
    /// +1 for a reference to local data.
    local: i32,
}

impl Slope {
    fn plus(self, other: Self, times: i32) -> Self {
        Self { image: self.image + times * other.image, local: self.local + times * other.local }
    }
    /// That of a reference relative to the program counter, which is in the image.
    fn relative(self) -> Self {
        Self { image: self.image - 1, ..self }
    }
    fn change(self, distance: Distance) -> u32 {
        let times = |n: i32, distance: u32| distance.wrapping_mul(n.cast_unsigned());
        times(self.image, distance.image).wrapping_add(times(self.local, distance.local))
    }
}

/// One place that depends on where the kernel is: what it holds is `value + slope * distance`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fix {
    /// Offset in the image.
    at: usize,
    form: Form,
    /// The value where the kernel was linked.
    value: u32,
    slope: Slope,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn put(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

fn hi20(value: u32) -> u32 {
    value.wrapping_add(0x800) & 0xFFFF_F000
}

impl Form {
    fn bytes(self) -> usize {
        if self == Self::Call { 8 } else { 4 }
    }

    /// The bits of the (first) word that hold the value.
    fn mask(self) -> u32 {
        match self {
            Self::Word => !0,
            Self::Hi20 | Self::Jal | Self::Call => 0xFFFF_F000,
            Self::LoI => 0xFFF0_0000,
            Self::LoS | Self::Branch => 0xFE00_0F80,
        }
    }

    /// Those bits for `value`; `None` when it does not fit.
    fn bits(self, value: u32) -> Option<u32> {
        let v = value.cast_signed();
        let even = v & 1 == 0;
        Some(match self {
            Self::Word => value,
            Self::Hi20 | Self::Call => hi20(value),
            Self::LoI => value << 20,
            Self::LoS => (value & 0xFE0) << 20 | (value & 0x1F) << 7,
            Self::Branch if even && (-0x1000..0x1000).contains(&v) => {
                (value >> 12 & 1) << 31 | (value >> 5 & 0x3F) << 25 | (value >> 1 & 0xF) << 8 | (value >> 11 & 1) << 7
            }
            Self::Jal if even && (-0x10_0000..0x10_0000).contains(&v) => {
                (value >> 20 & 1) << 31
                    | (value >> 1 & 0x3FF) << 21
                    | (value >> 11 & 1) << 20
                    | (value >> 12 & 0xFF) << 12
            }
            Self::Branch | Self::Jal => return None,
        })
    }

    /// The major opcodes of the instructions that the (first) word can be (RISC-V unprivileged
    /// specification, "RV32/64G Instruction Set Listings"); empty for what is no instruction.
    fn opcodes(self) -> &'static [u32] {
        match self {
            Self::Word => &[],
            // lui, auipc
            Self::Hi20 => &[0x37, 0x17],
            // loads, operations with an immediate, jalr
            Self::LoI => &[0x03, 0x13, 0x67],
            // stores
            Self::LoS => &[0x23],
            // branches, jal
            Self::Branch => &[0x63],
            Self::Jal => &[0x6F],
            // auipc, before a jalr
            Self::Call => &[0x17],
        }
    }

    /// Whether the bytes at `at` are such an instruction, or a word, that holds `value`.
    fn holds(self, bytes: &[u8], at: usize, value: u32) -> bool {
        let is = |word: u32, opcodes: &[u32]| opcodes.is_empty() || opcodes.contains(&(word & 0x7F));
        let first = word(bytes, at);
        is(first, self.opcodes())
            && self.bits(value).is_some_and(|bits| first & self.mask() == bits)
            && (self != Self::Call || {
                let second = word(bytes, at + 4);
                is(second, Self::LoI.opcodes()) && second & 0xFFF0_0000 == value << 20
            })
    }

    /// Stores `value` in the bytes at `at`; false when it does not fit.
    fn store(self, bytes: &mut [u8], at: usize, value: u32) -> bool {
        let Some(bits) = self.bits(value) else { return false };
        let old = word(bytes, at);
        put(bytes, at, old & !self.mask() | bits);
        if self == Self::Call {
            let old = word(bytes, at + 4);
            put(bytes, at + 4, old & 0x000F_FFFF | value << 20);
        }
        true
    }
}

/// Applies the fixes to `image`, moved by `distance`; `Err` is the offset of a place whose value
/// does not fit.
pub(super) fn apply(image: &mut [u8], fixes: &[Fix], distance: Distance) -> Result<(), usize> {
    for fix in fixes {
        let value = fix.value.wrapping_add(fix.slope.change(distance));
        if !fix.form.store(image, fix.at, value) {
            return Err(fix.at);
        }
    }
    Ok(())
}

/// The names of the relocation types by number; empty where there is none.
#[rustfmt::skip]
const NAMES: [&str; 66] = [
    "NONE", "32", "64", "RELATIVE", "COPY", "JUMP_SLOT", "TLS_DTPMOD32", "TLS_DTPMOD64", "TLS_DTPREL32",
    "TLS_DTPREL64", "TLS_TPREL32", "TLS_TPREL64", "TLSDESC", "", "", "", "BRANCH", "JAL", "CALL", "CALL_PLT",
    "GOT_HI20", "TLS_GOT_HI20", "TLS_GD_HI20", "PCREL_HI20", "PCREL_LO12_I", "PCREL_LO12_S", "HI20", "LO12_I",
    "LO12_S", "TPREL_HI20", "TPREL_LO12_I", "TPREL_LO12_S", "TPREL_ADD", "ADD8", "ADD16", "ADD32", "ADD64",
    "SUB8", "SUB16", "SUB32", "SUB64", "GOT32_PCREL", "", "ALIGN", "RVC_BRANCH", "RVC_JUMP", "RVC_LUI",
    "GPREL_I", "GPREL_S", "TPREL_I", "TPREL_S", "RELAX", "SUB6", "SET6", "SET8", "SET16", "SET32", "32_PCREL",
    "IRELATIVE", "PLT32", "SET_ULEB128", "SUB_ULEB128", "TLSDESC_HI20", "TLSDESC_LOAD_LO12",
    "TLSDESC_ADD_LO12", "TLSDESC_CALL",
];

/// The name of a relocation type.
fn name(r_type: RelocationType) -> String {
    match NAMES.get(r_type.0 as usize) {
        Some(name) if !name.is_empty() => format!("R_RISCV_{name}"),
        _ => format!("type {}", r_type.0),
    }
}

/// The same as `R_RISCV_GPREL_I` and `R_RISCV_GPREL_S`, as later linkers of GNU number them: they
/// are not for files, and only `--emit-relocs` shows them.
const GPREL_LO12_I: RelocationType = RelocationType(68);
const GPREL_LO12_S: RelocationType = RelocationType(69);

/// What relocations are accepted, for messages.
const ACCEPTED: &str = "R_RISCV_32, HI20, LO12_I, LO12_S, PCREL_HI20, PCREL_LO12_I, PCREL_LO12_S, BRANCH, JAL, CALL, \
                        CALL_PLT, ADD32 or SUB32";

/// A relocation as read, its symbol resolved.
struct Reloc {
    r_type: RelocationType,
    /// Address of the place.
    at: u32,
    /// Symbol plus addend.
    target: u32,
    /// The symbol's own value.
    symbol: u32,
    /// What the symbol moves with.
    moves: Slope,
}

impl Reloc {
    /// The field that errors name.
    fn field(&self) -> String {
        format!("relocation {} at {:#x}", name(self.r_type), self.at)
    }

    /// The factor of its label in the sum at its place; `None` for what is no term of a sum.
    fn term(&self) -> Option<i32> {
        match self.r_type {
            R_RISCV_ADD32 => Some(1),
            R_RISCV_SUB32 => Some(-1),
            _ => None,
        }
    }
}

/// The ranges of a kernel that move, by link addresses, ends included: linkers place labels there.
pub(super) struct Movable {
    /// Text, constants and initialisers.
    pub image: RangeInclusive<u32>,
    /// Data in local RAM, if there is any that moves.
    pub local: Option<RangeInclusive<u32>>,
    /// The global pointer of the firmware that the kernel was linked with, if it was with any.
    pub global_pointer: Option<u32>,
}

impl Movable {
    fn slope(&self, symbol: u32) -> Slope {
        let local = self.local.as_ref().is_some_and(|local| local.contains(&symbol));
        Slope { image: self.image.contains(&symbol).into(), local: local.into() }
    }
}

/// Reads the relocations of a kernel and keeps what depends on its place. `offset_of` maps the
/// address of `n` bytes to their offset in the image.
pub(super) fn collect(
    elf: &Elf,
    image: &[u8],
    movable: &Movable,
    offset_of: impl Fn(u32, usize) -> Option<usize>,
) -> Result<Vec<Fix>, ElfError> {
    let relocs = read(elf, movable)?;
    let highs: HashMap<u32, &Reloc> =
        relocs.iter().filter(|r| r.r_type == R_RISCV_PCREL_HI20).map(|r| (r.at, r)).collect();
    let mut fixes = Vec::new();
    // Sums of labels: by place, the sum of what the added labels move with, less that of the
    // subtracted ones.
    let mut sums: BTreeMap<u32, Slope> = BTreeMap::new();
    for r in &relocs {
        if let Some(times) = r.term() {
            let sum = sums.entry(r.at).or_default();
            *sum = sum.plus(r.moves, times);
            continue;
        }
        let Some((form, value, slope)) = reference(elf, r, &highs, movable.global_pointer)? else { continue };
        let Some(at) = offset_of(r.at, form.bytes()) else {
            return Err(ElfError::new(elf.file, r.field(), "a place outside the image", "a place inside a segment"));
        };
        if !form.holds(image, at, value) {
            let found = format!("{:#010x}, which does not refer to {value:#x}", word(image, at));
            return Err(ElfError::new(elf.file, r.field(), found, "what the relocation says (link with --no-relax)"));
        }
        if slope != Slope::default() {
            fixes.push(Fix { at, form, value, slope });
        }
    }
    fix_sums(elf, image, sums, offset_of, &mut fixes)?;
    Ok(fixes)
}

/// What the place of `r` holds, at its link address, and how the value moves; `None` for a marker.
/// `highs` are the relocations `PCREL_HI20` by place.
fn reference(
    elf: &Elf,
    r: &Reloc,
    highs: &HashMap<u32, &Reloc>,
    global_pointer: Option<u32>,
) -> Result<Option<(Form, u32, Slope)>, ElfError> {
    let (absolute, relative) = (r.moves, r.moves.relative());
    let pc_relative = r.target.wrapping_sub(r.at);
    Ok(Some(match r.r_type {
        R_RISCV_NONE | R_RISCV_RELAX | R_RISCV_ALIGN => return Ok(None),
        R_RISCV_32 => (Form::Word, r.target, absolute),
        R_RISCV_HI20 => (Form::Hi20, r.target, absolute),
        R_RISCV_LO12_I => (Form::LoI, r.target, absolute),
        R_RISCV_LO12_S => (Form::LoS, r.target, absolute),
        R_RISCV_BRANCH => (Form::Branch, pc_relative, relative),
        R_RISCV_JAL => (Form::Jal, pc_relative, relative),
        R_RISCV_CALL | R_RISCV_CALL_PLT => (Form::Call, pc_relative, relative),
        R_RISCV_PCREL_HI20 => (Form::Hi20, pc_relative, relative),
        R_RISCV_PCREL_LO12_I | R_RISCV_PCREL_LO12_S => {
            // The symbol is the label of the auipc whose relocation has the target.
            let Some(high) = highs.get(&r.symbol) else {
                let expected = "R_RISCV_PCREL_HI20 at its symbol";
                return Err(ElfError::new(elf.file, r.field(), format!("none at {:#x}", r.symbol), expected));
            };
            let store = r.r_type == R_RISCV_PCREL_LO12_S;
            let form = if store { Form::LoS } else { Form::LoI };
            (form, high.target.wrapping_sub(high.at), high.moves.relative())
        }
        // Types that only a linker makes, when it shortens what refers to data near the global
        // pointer.
        R_RISCV_GPREL_I | R_RISCV_GPREL_S | GPREL_LO12_I | GPREL_LO12_S => {
            // The firmware's own pointer is where it was, and so is what is referred to. The linker
            // has taken the pointer from the addend.
            if global_pointer.is_some() && r.moves == Slope::default() {
                let store = matches!(r.r_type, R_RISCV_GPREL_S | GPREL_LO12_S);
                let form = if store { Form::LoS } else { Form::LoI };
                return Ok(Some((form, r.target, Slope::default())));
            }
            let found = format!("{}, made by relaxation", name(r.r_type));
            return Err(ElfError::new(elf.file, r.field(), found, "references as compiled (link with --no-relax)"));
        }
        _ => return Err(ElfError::new(elf.file, r.field(), name(r.r_type), ACCEPTED)),
    }))
}

/// Adds the sums of labels that depend on the kernel's place.
fn fix_sums(
    elf: &Elf,
    image: &[u8],
    sums: BTreeMap<u32, Slope>,
    offset_of: impl Fn(u32, usize) -> Option<usize>,
    fixes: &mut Vec<Fix>,
) -> Result<(), ElfError> {
    for (address, slope) in sums.into_iter().filter(|&(_, slope)| slope != Slope::default()) {
        let Some(at) = offset_of(address, 4) else {
            let field = format!("relocation R_RISCV_ADD32 at {address:#x}");
            return Err(ElfError::new(elf.file, field, "a place outside the image", "a place inside a segment"));
        };
        fixes.push(Fix { at, form: Form::Word, value: word(image, at), slope });
    }
    Ok(())
}

/// All relocations of sections that are loaded.
fn read(elf: &Elf, movable: &Movable) -> Result<Vec<Reloc>, ElfError> {
    let bad = |what: &str, e: object::Error| ElfError::new(elf.file, what, e, "a readable table");
    let file = ElfFile32::<LittleEndian>::parse(elf.data).map_err(|e| bad("sections", e))?;
    require(elf, &file)?;
    let mut out = Vec::new();
    for section in file.sections() {
        let object::SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags.0 & SHF_ALLOC.0 == 0 {
            continue;
        }
        for (at, reloc) in section.relocations() {
            let at = address(elf, at)?;
            let RelocationFlags::Elf { r_type } = reloc.flags() else { continue };
            if out.len() == MAX_RELOCATIONS {
                return Err(ElfError::new(elf.file, "relocations", "more", format!("at most {MAX_RELOCATIONS}")));
            }
            let (symbol, is_absolute) = match reloc.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = file.symbol_by_index(index).map_err(|e| bad("symbols", e))?;
                    (address(elf, symbol.address())?, symbol.section() == SymbolSection::Absolute)
                }
                // Without a symbol: what relaxation leaves, and the markers RELAX and ALIGN.
                _ => (0, true),
            };
            let target = symbol.wrapping_add(low32(reloc.addend().cast_unsigned()));
            // Linker scripts of tt-metal name the start of the text so.
            let is_text = movable.global_pointer.is_some() && movable.image.contains(&symbol);
            let moves = if is_absolute && !is_text { Slope::default() } else { movable.slope(symbol) };
            out.push(Reloc { r_type, at, target, symbol, moves });
        }
    }
    Ok(out)
}

/// An address of a 32-bit file.
fn address(elf: &Elf, value: u64) -> Result<u32, ElfError> {
    let bad = |_| ElfError::new(elf.file, "relocations", format!("address {value:#x}"), "one of 32 bits");
    value.try_into().map_err(bad)
}

/// Refuses a file that was linked without its relocations. `--emit-relocs` is for a whole link, so
/// one relocation section for any code is proof of it.
fn require(elf: &Elf, file: &ElfFile32<LittleEndian>) -> Result<(), ElfError> {
    let table = file.elf_section_table();
    let symbols = file.elf_symbol_table().section();
    let mut code = Vec::new();
    for (index, header) in table.enumerate() {
        let flags = header.sh_flags(LittleEndian);
        let both = SHF_ALLOC.0 | SHF_EXECINSTR.0;
        if flags.0 & both != both || header.sh_size(LittleEndian) == 0 {
            continue;
        }
        let applies = |r: &SectionHeader32<LittleEndian>| {
            r.sh_type(LittleEndian) == SHT_RELA && r.info_link(LittleEndian) == index && r.link(LittleEndian) == symbols
        };
        if table.iter().any(applies) {
            return Ok(());
        }
        let name = table.section_name(LittleEndian, header).unwrap_or_default();
        code.push(match name {
            [] => format!("section {}", index.0),
            _ => String::from_utf8_lossy(name).into_owned(),
        });
    }
    let found = match code.is_empty() {
        true => "no section with code".to_owned(),
        false => format!("none for {}", code.join(", ")),
    };
    let expected = "those of its code, because a kernel is moved: link the kernel with --emit-relocs";
    Err(ElfError::new(elf.file, "relocations", found, expected))
}
