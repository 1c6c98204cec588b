//! Images: what of an ELF file goes into L1, and where.

use super::exports::{Exports, Imports};
use super::prints::KernelPrints;
use super::read::Elf;
use super::reloc::{self, Distance, Fix, Movable};
use super::{ElfError, read::Segment};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::convert::{low32, u32_of};
use tilework_abi::globals::{GLOBAL_POINTER_SYMBOL, LOCAL_END_SYMBOL};
use tilework_abi::kernel::{BINDING_SYMBOL, BINDING_WORDS, Binding, KERNEL_LOCAL_DM, KERNEL_LOCAL_TRISC, STACK_BYTES};
use tilework_abi::l1::MemoryMap;
use tilework_abi::tensix::{L1_SIZE, LOCAL_BASE, Processor};
use tilework_driver::CodeNote;
use tilework_lines::{self as symbols, SourceLocation};
use tilework_prints::device_print;
use tilework_riscv::{Insn, Op, encode};

/// The places that a firmware file names for its parts.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// The file's name.
    pub file: String,
    /// Where the code starts.
    pub entry: u32,
    /// What goes to L1 and stays there, with names for messages.
    pub l1: Vec<(String, Range<u32>)>,
    /// Local RAM from its start to the end of the firmware's data.
    pub local: Range<u32>,
    /// Where in L1 the initialisers of all local RAM begin, if the file says so.
    pub staged_at: Option<u32>,
}

impl Outline {
    /// Reads the file called `name` as firmware of `processor`, whatever its map.
    ///
    /// # Errors
    /// A file that is not firmware.
    pub(crate) fn read(name: &str, data: &[u8], processor: Processor) -> Result<Self, ElfError> {
        let elf = Elf::parse(name, data, processor)?;
        let mut outline = Self {
            file: name.to_owned(),
            entry: elf.entry(),
            l1: Vec::new(),
            local: LOCAL_BASE..LOCAL_BASE,
            staged_at: None,
        };
        for s in &elf.segments {
            if s.vaddr < LOCAL_BASE {
                outline.l1.push((s.field(), s.loaded()));
                continue;
            }
            outline.local.end = outline.local.end.max(s.vaddr + s.memory);
            if !s.is_local() && !s.bytes.is_empty() {
                outline.staged_at = s.paddr.checked_sub(s.vaddr - LOCAL_BASE);
            }
        }
        // Our globals are symbols without a segment.
        if let Some(end) = symbols::address_of(data, LOCAL_END_SYMBOL) {
            let room = LOCAL_BASE..=LOCAL_BASE + processor.local_size();
            if !room.contains(&end) {
                let expected = format!("an address in {:#x}..={:#x}", room.start(), room.end());
                return Err(ElfError::new(name, format!("symbol {LOCAL_END_SYMBOL}"), format!("{end:#x}"), expected));
            }
            outline.local.end = outline.local.end.max(end);
        }
        let lowest = outline.l1.iter().map(|(_, range)| range.start).min();
        match lowest {
            Some(lowest) if lowest == outline.entry => Ok(outline),
            Some(lowest) => {
                let expected = format!("{lowest:#x}, where the text in L1 starts");
                Err(ElfError::new(name, "entry point", format!("{:#x}", outline.entry), expected))
            }
            None => Err(ElfError::new(name, "load segments", "none in L1", "text in L1")),
        }
    }
}

/// Value of the symbol called `name`.
pub(crate) fn symbol_address(elf: &[u8], name: &str) -> Option<u32> {
    symbols::address_of(elf, name)
}

/// Bytes of the object symbol called `name`.
pub(crate) fn symbol_size(elf: &[u8], name: &str) -> Option<u32> {
    symbols::size_of(elf, name)
}

/// Firmware of one processor: bytes for fixed addresses in L1.
#[derive(Clone, Debug)]
pub struct FirmwareImage {
    name: String,
    processor: Processor,
    segments: Vec<(L1Addr, Vec<u8>)>,
    text: Range<u32>,
    elf: Arc<[u8]>,
}

impl FirmwareImage {
    /// Checks `data`, the file called `name`, as firmware of `processor` on `map`. Segments of
    /// local RAM are staged at the map's `local_init`, from where the start code copies them
    /// (the original's `hw.py`).
    ///
    /// # Errors
    /// A file that is not such firmware.
    pub fn load(
        name: &str,
        data: impl Into<Arc<[u8]>>,
        processor: Processor,
        map: &MemoryMap,
    ) -> Result<Self, ElfError> {
        let data = data.into();
        let elf = Elf::parse(name, &data, processor)?;
        let i = processor.index();
        let space = map.firmware_text[i].get()..map.firmware_end[i].get();
        let staged_at = map.local_init[i].get();
        let staging = staged_at..staged_at + processor.local_size();
        let mut segments = Vec::new();
        let mut text = space.start..space.start;
        for s in &elf.segments {
            let address = if s.is_local() { staging.start + (s.paddr - LOCAL_BASE) } else { s.paddr };
            let end = address + s.memory;
            let home = if s.is_local() || staging.contains(&address) { &staging } else { &space };
            if address < home.start || end > home.end {
                let found = format!("{address:#x}..{end:#x}");
                let expected = format!("{:#x}..{:#x}, the space of {processor}", home.start, home.end);
                return Err(ElfError::new(name, s.field(), found, expected));
            }
            if s.executable {
                text = address..end;
            }
            segments.push((L1Addr::new(address), padded(s)));
        }
        if elf.entry() != space.start {
            let expected = format!("{:#x}, where {processor} starts", space.start);
            return Err(ElfError::new(name, "entry point", format!("{:#x}", elf.entry()), expected));
        }
        let image = Self { name: name.to_owned(), processor, segments, text, elf: data };
        if processor == Processor::Brisc {
            image.boot_jump()?;
        }
        Ok(image)
    }

    /// The instruction at address 0, where BRISC leaves reset, that leads to the firmware:
    /// `jal x0, entry`.
    ///
    /// # Errors
    /// An entry point out of its reach.
    pub(crate) fn boot_jump(&self) -> Result<u32, ElfError> {
        let entry = self.entry();
        encode(Insn { op: Op::Jal, rd: 0, rs1: 0, rs2: 0, imm: entry.cast_signed() }).ok_or_else(|| {
            let expected = "an even address below 1 MiB, in reach of the `jal` at address 0";
            ElfError::new(&self.name, "entry point", format!("{entry:#x}"), expected)
        })
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The processor it is for.
    pub fn processor(&self) -> Processor {
        self.processor
    }
    /// L1 addresses and bytes.
    pub fn segments(&self) -> impl Iterator<Item = (L1Addr, &[u8])> {
        self.segments.iter().map(|(address, bytes)| (*address, bytes.as_slice()))
    }
    /// Where the code starts.
    pub fn entry(&self) -> u32 {
        self.text.start
    }
    /// What observers of a chip are told of it.
    pub(crate) fn note(&self) -> CodeNote {
        let (name, processor, text) = (self.name.clone(), self.processor, self.text.clone());
        CodeNote { name, processor, text, local: 0..0, code: Arc::default() }
    }
    /// Where the code lies in L1.
    pub fn text(&self) -> Range<u32> {
        self.text.clone()
    }
    /// The ELF file.
    pub fn elf(&self) -> &Arc<[u8]> {
        &self.elf
    }
    /// What kernels may be linked with, on this map.
    pub(crate) fn exports(&self, map: &MemoryMap) -> Exports {
        Exports::read(&self.name, &self.elf, map.bank_table.get())
    }
    /// The function and source line of `pc`; `None` when the firmware's code is elsewhere.
    pub fn locate(&self, pc: u32) -> Option<SourceLocation> {
        self.text.contains(&pc).then(|| symbols::locate(&self.elf, pc))
    }
}

/// The bytes of a segment, zeros up to its size in memory.
fn padded(s: &Segment) -> Vec<u8> {
    let mut bytes = s.bytes.to_vec();
    bytes.resize(s.memory as usize, 0);
    bytes
}

/// A kernel: bytes that can be placed anywhere in a kernel configuration space. Text, constants and
/// the initialisers of its local data.
#[derive(Clone, Debug)]
pub struct KernelImage {
    name: String,
    processor: Processor,
    link_base: u32,
    image: Arc<[u8]>,
    fixes: Vec<Fix>,
    /// Its data in local RAM, by link addresses.
    local: Option<Range<u32>>,
    /// Where in the image the loader stores its words for the kernel.
    binding: Option<usize>,
    /// Its prints, if it has any.
    prints: Option<Arc<KernelPrints>>,
    /// The texts of its device prints, if it has any of tt-metal's later form.
    device_texts: Option<Arc<device_print::Texts>>,
    /// What of its firmware it was linked with.
    imports: Imports,
    /// Hash of what is stored in L1, to tell kernels apart quickly.
    digest: u64,
    elf: Arc<[u8]>,
}

/// The local RAM of `processor` where kernels are linked.
fn kernel_local(processor: Processor) -> Range<u32> {
    let start = match processor {
        Processor::Brisc | Processor::Ncrisc => KERNEL_LOCAL_DM,
        _ => KERNEL_LOCAL_TRISC,
    };
    start..LOCAL_BASE + processor.local_size() - STACK_BYTES
}

/// Checks that a kernel's data lies where kernels have theirs in local RAM.
fn check_local(name: &str, elf: &Elf, processor: Processor, imports: &Imports) -> Result<(), ElfError> {
    for s in elf.segments.iter().filter(|s| s.vaddr >= LOCAL_BASE) {
        let mut own = kernel_local(processor);
        own.start = imports.address(LOCAL_END_SYMBOL).unwrap_or(own.start);
        let range = s.vaddr..s.vaddr + s.memory;
        if range.start < own.start || range.end > own.end {
            let found = format!("local RAM {:#x}..{:#x}", range.start, range.end);
            let expected = format!("{:#x}..{:#x}: below is the firmware's data, above the stack", own.start, own.end);
            return Err(ElfError::new(name, s.field(), found, expected));
        }
    }
    Ok(())
}

/// Stores compile-time arguments in the image of file `name`; `offset_of` finds so many bytes of an
/// address in it.
fn store_arguments(
    name: &str,
    data: &[u8],
    image: &mut [u8],
    arguments: &[(&str, u32)],
    offset_of: impl Fn(u32, usize) -> Option<usize>,
) -> Result<(), ElfError> {
    for (i, &(symbol, value)) in arguments.iter().enumerate() {
        let twice = arguments[..i].iter().any(|(other, _)| *other == symbol);
        let at = symbols::address_of(data, symbol).and_then(|address| offset_of(address, 4));
        match at.filter(|_| !twice && symbols::size_of(data, symbol) == Some(4)) {
            Some(at) => image[at..at + 4].copy_from_slice(&value.to_le_bytes()),
            None => return Err(not_an_argument(name, data, symbol, twice)),
        }
    }
    Ok(())
}

/// The error for a compile-time argument that the kernel does not have.
fn not_an_argument(name: &str, data: &[u8], symbol: &str, twice: bool) -> ElfError {
    let found = match (twice, symbols::address_of(data, symbol), symbols::size_of(data, symbol)) {
        (true, ..) => "a second value".into(),
        (_, None, _) => "no such symbol".into(),
        (_, Some(address), bytes) => format!("{} bytes at {address:#x}", bytes.unwrap_or(0)),
    };
    let expected = "a word of the kernel's constants, given once";
    ElfError::new(name, format!("compile-time argument {symbol}"), found, expected)
}

impl KernelImage {
    /// Checks `data`, the file called `name`, as a kernel of `processor`.
    ///
    /// # Errors
    /// A file that is not such a kernel, or that cannot be moved.
    pub fn load(name: &str, data: impl Into<Arc<[u8]>>, processor: Processor) -> Result<Self, ElfError> {
        Self::load_with(name, data, processor, &[])
    }

    /// As [`KernelImage::load`] with compile-time arguments: the word of each symbol gets its
    /// value. A kernel defines such a symbol as a word of its constants and reads it volatile
    /// (docs/program.md); every other value is another kernel with text of its own.
    ///
    /// # Errors
    /// As [`KernelImage::load`]; a symbol that is no word of the image, or that is given twice.
    pub fn load_with(
        name: &str,
        data: impl Into<Arc<[u8]>>,
        processor: Processor,
        arguments: &[(&str, u32)],
    ) -> Result<Self, ElfError> {
        let data = data.into();
        let elf = Elf::parse(name, &data, processor)?;
        let imports = Imports::read(&data);
        check_local(name, &elf, processor, &imports)?;
        // What is only cleared has no bytes to load: the kernel's start code knows where it is.
        let loaded: Vec<&Segment> = elf.segments.iter().filter(|s| !s.bytes.is_empty()).collect();
        if let Some(s) = loaded.iter().find(|s| s.is_local()) {
            let found = format!("initialised data with load address {:#x}", s.paddr);
            return Err(ElfError::new(name, s.field(), found, "a load address behind the text, in the image"));
        }
        let base = loaded.iter().map(|s| s.paddr).min();
        let end = loaded.iter().map(|s| s.paddr + u32_of(s.bytes.len())).max();
        let (Some(base), Some(end)) = (base, end) else {
            return Err(ElfError::new(name, "load segments", "none with bytes", "text in L1"));
        };
        if elf.entry() != base {
            let found = format!("{:#x}", elf.entry());
            let expected = format!("{base:#x}: a kernel is entered at its first byte");
            return Err(ElfError::new(name, "entry point", found, expected));
        }
        // Constants and text in L1 keep their whole size in memory.
        let in_l1 = |s: &&&Segment| s.vaddr < L1_SIZE;
        let end = loaded.iter().filter(in_l1).map(|s| s.paddr + s.memory).max().unwrap_or(end).max(end);
        let mut image = vec![0; (end - base) as usize];
        for s in &loaded {
            let at = (s.paddr - base) as usize;
            image[at..at + s.bytes.len()].copy_from_slice(s.bytes);
            if s.executable && s.vaddr != s.paddr {
                let found = format!("address {:#x}, load address {:#x}", s.vaddr, s.paddr);
                return Err(ElfError::new(name, s.field(), found, "code that is loaded where it runs"));
            }
        }
        let offset_of = |address: u32, bytes: usize| {
            let s = loaded.iter().find(|s| address >= s.vaddr && address - s.vaddr < u32_of(s.bytes.len()))?;
            let into = (address - s.vaddr) as usize;
            (into + bytes <= s.bytes.len()).then_some((s.paddr - base) as usize + into)
        };
        let local = elf.segments.iter().filter(|s| s.vaddr >= LOCAL_BASE).map(|s| s.vaddr..s.vaddr + s.memory);
        let local = local.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end));
        let inside = local.as_ref().map(|local| local.start..=local.end);
        let movable = Movable {
            image: base..=end,
            // Where the firmware's data ends is where it was linked.
            local: inside.filter(|_| imports.is_empty()),
            global_pointer: imports.address(GLOBAL_POINTER_SYMBOL),
        };
        let fixes = reloc::collect(&elf, &image, &movable, offset_of)?;
        let binding = match symbols::address_of(&data, BINDING_SYMBOL) {
            None => None,
            Some(address) => Some(offset_of(address, 4 * BINDING_WORDS).ok_or_else(|| {
                let expected = format!("{} bytes of the image", 4 * BINDING_WORDS);
                ElfError::new(name, format!("symbol {BINDING_SYMBOL}"), format!("{address:#x}"), expected)
            })?),
        };
        store_arguments(name, &data, &mut image, arguments, offset_of)?;
        let prints = KernelPrints::read(name, &data, offset_of)?;
        let device_texts = super::device_texts(name, &data)?;
        let name = name.to_owned();
        let mut hasher = DefaultHasher::new();
        (processor.index(), base, &image).hash(&mut hasher);
        if let Some(prints) = &prints {
            // Kernels that differ in their texts only have the same image.
            prints.section().hash(&mut hasher);
        }
        if let Some(texts) = &device_texts {
            texts.hash(&mut hasher);
        }
        let digest = hasher.finish();
        let (prints, image) = (prints.map(Arc::new), image.into());
        Ok(Self {
            name,
            processor,
            link_base: base,
            image,
            fixes,
            local,
            binding,
            prints,
            device_texts,
            imports,
            digest,
            elf: data,
        })
    }

    /// A hash of what is stored in L1, the same in every process.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }
    /// Whether `other` has the same bytes wherever both are placed.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.digest == other.digest
            && (self.processor, self.link_base, &self.image) == (other.processor, other.link_base, &other.image)
            && (&self.fixes, &self.local, self.binding) == (&other.fixes, &other.local, other.binding)
            && (&self.prints, &self.device_texts) == (&other.prints, &other.device_texts)
            && self.imports == other.imports
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// The processor it is for.
    pub fn processor(&self) -> Processor {
        self.processor
    }
    /// Bytes of the image.
    pub fn size(&self) -> u32 {
        // Segments lie in L1.
        u32_of(self.image.len())
    }
    /// Where it was linked.
    pub fn link_base(&self) -> u32 {
        self.link_base
    }
    /// The ELF file.
    pub fn elf(&self) -> &Arc<[u8]> {
        &self.elf
    }

    /// Whether the loader stores words for it ([`Binding`]), as for kernels of our own.
    pub(crate) fn takes_binding(&self) -> bool {
        self.binding.is_some()
    }
    /// Its prints, if it has any.
    pub(crate) fn prints(&self) -> Option<&Arc<KernelPrints>> {
        self.prints.as_ref()
    }
    /// The number by which its records name it.
    pub(crate) fn print_number(&self) -> u32 {
        low32(self.digest)
    }
    /// The texts of its device prints, if it has any.
    pub(crate) fn device_texts(&self) -> Option<&Arc<device_print::Texts>> {
        self.device_texts.as_ref()
    }
    /// The number by which its device prints name it (`watcher_kernel_ids` of its launch message);
    /// 0 without any.
    pub(crate) fn device_print_number(&self) -> u16 {
        let [low, high, ..] = self.digest.to_le_bytes();
        self.device_texts.as_ref().map_or(0, |_| u16::from_le_bytes([low, high]).max(1))
    }
    /// Whether it reads nothing of the firmware's local RAM.
    pub fn is_self_contained(&self) -> bool {
        self.imports.is_empty()
    }
    /// Checks that `exports` is the firmware that it was linked with, if it was linked with any.
    ///
    /// # Errors
    /// A symbol of the firmware that is elsewhere.
    pub(crate) fn check_firmware(&self, exports: &Exports) -> Result<(), ElfError> {
        self.imports.check(&self.name, exports)
    }

    /// Checks that it is compiled for so many banks of DRAM and of L1, if it uses the firmware's
    /// tables.
    ///
    /// # Errors
    /// Another number.
    pub(crate) fn check_banks(&self, banks: [u32; 2]) -> Result<(), ElfError> {
        self.imports.check_banks(&self.name, banks)
    }

    /// How far the kernel's local data moves, so that it lies behind that of firmware with `map`.
    ///
    /// # Errors
    /// No room behind the firmware's data.
    pub fn local_distance(&self, map: &MemoryMap) -> Result<u32, ElfError> {
        let Some(local) = self.local.as_ref().filter(|_| self.is_self_contained()) else { return Ok(0) };
        let own = kernel_local(self.processor);
        let behind = map.kernel_local[self.processor.index()];
        let distance = behind.saturating_sub(own.start).next_multiple_of(L1_ALIGN);
        if local.end + distance > own.end {
            let found =
                format!("{} bytes behind the firmware's data, which ends at {behind:#x}", local.end - own.start);
            let expected = format!("an end at or below {:#x}, where the stack begins", own.end);
            return Err(ElfError::new(&self.name, "local data", found, expected));
        }
        Ok(distance)
    }

    /// The bytes to store at `base`, a multiple of 4, for firmware with `map`.
    ///
    /// # Errors
    /// A reference out of the image that cannot reach its target from there; local data for which
    /// the firmware leaves no room.
    pub fn relocate(&self, base: L1Addr, map: &MemoryMap) -> Result<Vec<u8>, ElfError> {
        let mut image = self.image.to_vec();
        let distance = Distance { image: base.get().wrapping_sub(self.link_base), local: self.local_distance(map)? };
        reloc::apply(&mut image, &self.fixes, distance).map_err(|at| {
            let field = format!("reference at {:#x}", self.link_base as usize + at);
            ElfError::new(&self.name, field, format!("a placement at {base}"), "one within reach of its target")
        })?;
        if let Some(at) = self.binding {
            let words = Binding::new(map, self.processor).words();
            for (place, word) in image[at..].chunks_exact_mut(4).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
        }
        if let Some(prints) = &self.prints {
            prints.bind(&self.name, &mut image, map, self.processor, self.print_number())?;
        }
        Ok(image)
    }

    /// What observers of a chip are told of the kernel while it is placed at `base`, with firmware
    /// that has `map`.
    pub(crate) fn note(&self, base: u32, map: &MemoryMap) -> CodeNote {
        let moved = self.local_distance(map).unwrap_or(0);
        let local = self.local.as_ref().map_or(0..0, |local| local.start + moved..local.end + moved);
        let (name, processor, code) = (self.name.clone(), self.processor, Arc::clone(&self.image));
        CodeNote { name, processor, text: base..base.saturating_add(self.size()), local, code }
    }

    /// The function and source line of `pc` while the kernel is placed at `base`; `None` when it is
    /// not in the kernel.
    pub fn locate(&self, pc: u32, base: L1Addr) -> Option<SourceLocation> {
        let offset = pc.checked_sub(base.get()).filter(|&o| o < self.size())?;
        Some(symbols::locate(&self.elf, self.link_base + offset))
    }
}
