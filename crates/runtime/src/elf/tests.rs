//! Hand-made files: what is refused, and what moves.

use super::*;
use tilework_abi::addr::L1Addr;
use tilework_abi::l1::{MemoryMap, WORKER};
use tilework_abi::tensix::{LOCAL_BASE, Processor};

/// Link address of the text.
const TEXT: u32 = 0x1_0000;

/// A program header: address, load address, bytes, size in memory, flags.
type Load = (u32, u32, Vec<u8>, u32, u32);

/// A file as a linker would write it: load segments, one section per segment, and relocations for
/// the first.
pub(crate) struct Made {
    pub(crate) loads: Vec<Load>,
    /// Value and section index (0xFFF1: absolute), from symbol 1 on.
    symbols: Vec<(u32, u16)>,
    /// Address, type, symbol, addend.
    relocations: Vec<(u32, u8, u32, i32)>,
    /// Whether the file has a relocation section, if only an empty one.
    keeps_relocations: bool,
    entry: u32,
    /// Name and size of further symbols, which all lie behind the first word of the text.
    pub(crate) named: Vec<(&'static str, u32)>,
}

impl Made {
    fn text(words: &[u32]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let size = bytes.len() as u32;
        let loads = vec![(TEXT, TEXT, bytes, size, 5)];
        Self { loads, symbols: vec![], relocations: vec![], keeps_relocations: true, entry: TEXT, named: vec![] }
    }
    /// Four bytes of code that start at `entry`.
    pub(crate) fn firmware(entry: u32) -> Self {
        let mut made = Self::text(&[0x13]);
        made.entry = entry;
        (made.loads[0].0, made.loads[0].1) = (entry, entry);
        made
    }
    fn symbol(mut self, value: u32, section: u16) -> Self {
        self.symbols.push((value, section));
        self
    }
    fn reloc(mut self, at: u32, r_type: u8, symbol: u32, addend: i32) -> Self {
        self.relocations.push((TEXT + at, r_type, symbol, addend));
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fn put(out: &mut Vec<u8>, words: &[u32]) {
            out.extend(words.iter().flat_map(|w| w.to_le_bytes()));
        }
        let n = self.loads.len() as u32;
        let mut body = vec![0; 52 + 32 * n as usize];
        let mut sections = vec![[0u32; 10]];
        let mut headers = Vec::new();
        for (vaddr, paddr, bytes, memory, flags) in &self.loads {
            let (offset, size) = (body.len() as u32, bytes.len() as u32);
            body.extend_from_slice(bytes);
            headers.push([1, offset, *vaddr, *paddr, size, *memory, *flags, 4]);
            // SHT_PROGBITS, SHF_ALLOC, SHF_EXECINSTR of what PF_X says.
            sections.push([0, 1, 2 | (flags & 1) << 2, *vaddr, offset, size, 0, 0, 4, 0]);
        }
        let symtab = body.len() as u32;
        put(&mut body, &[0; 4]);
        for &(value, section) in &self.symbols {
            put(&mut body, &[0, value, 0, u32::from(section) << 16]);
        }
        let mut strings = vec![0];
        for (name, bytes) in &self.named {
            put(&mut body, &[strings.len() as u32, TEXT + 4, *bytes, 1 << 16]);
            strings.extend(name.bytes());
            strings.push(0);
        }
        // SHT_SYMTAB, its strings in the next section.
        sections.push([0, 2, 0, 0, symtab, body.len() as u32 - symtab, n + 2, 1, 4, 16]);
        sections.push([0, 3, 0, 0, body.len() as u32, strings.len() as u32, 0, 0, 1, 0]);
        body.extend(strings);
        body.resize(body.len().next_multiple_of(4), 0);
        let rela = body.len() as u32;
        for &(at, r_type, symbol, addend) in &self.relocations {
            put(&mut body, &[at, symbol << 8 | u32::from(r_type), addend as u32]);
        }
        // SHT_RELA for section 1, or nothing.
        if self.keeps_relocations {
            sections.push([0, 4, 0, 0, rela, body.len() as u32 - rela, n + 1, 1, 4, 12]);
        }
        let shoff = body.len() as u32;
        for section in &sections {
            put(&mut body, section);
        }
        let mut head = vec![0x7F, b'E', b'L', b'F', 1, 1, 1];
        head.resize(16, 0);
        // ET_EXEC, EM_RISCV, version, entry, tables.
        put(&mut head, &[2 | 243 << 16, 1, self.entry, 52, shoff, 0, 52 | 32 << 16, n | 40 << 16]);
        put(&mut head, &[sections.len() as u32 | (n + 2) << 16]);
        for header in headers {
            put(&mut head, &header);
        }
        body[..head.len()].copy_from_slice(&head);
        body
    }
    fn kernel(&self) -> Result<KernelImage, ElfError> {
        KernelImage::load("k.elf", self.bytes(), Processor::Brisc)
    }
    /// The words of the image at `base`.
    fn moved(&self, base: u32) -> Vec<u32> {
        let image = self.kernel().unwrap().relocate(L1Addr::new(base), &WORKER).unwrap();
        image.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
    }
}

/// A kernel of these words, of which none depends on its place.
pub(crate) fn kernel_of(words: &[u32], processor: Processor) -> std::sync::Arc<KernelImage> {
    std::sync::Arc::new(KernelImage::load("k.elf", Made::text(words).bytes(), processor).unwrap())
}

const TO: u32 = 0x8300;
const R_32: u8 = 1;
const R_JAL: u8 = 17;
const R_CALL: u8 = 19;
const R_PCREL_HI20: u8 = 23;
const R_PCREL_LO12_I: u8 = 24;
const R_HI20: u8 = 26;
const R_LO12_I: u8 = 27;
const R_LO12_S: u8 = 28;
const ABSOLUTE: u16 = 0xFFF1;

#[test]
fn absolute_references_to_the_text_move_and_those_to_local_ram_stay() {
    // lui a0, %hi(TEXT+16); addi a0, a0, %lo; lui a1, %hi(LOCAL+0x404); sw a0, %lo(a1); .word
    // TEXT+16
    let made = Made::text(&[0x0001_0537, 0x0105_0513, 0xFFB0_05B7, 0x40A5_A223, 0x0001_0010])
        .symbol(TEXT + 16, 1)
        .symbol(LOCAL_BASE + 0x404, 2)
        .reloc(0, R_HI20, 1, 0)
        .reloc(4, R_LO12_I, 1, 0)
        .reloc(8, R_HI20, 2, 0)
        .reloc(12, R_LO12_S, 2, 0)
        .reloc(16, R_32, 1, 0);
    assert_eq!(made.moved(TEXT), [0x0001_0537, 0x0105_0513, 0xFFB0_05B7, 0x40A5_A223, 0x0001_0010]);
    // 0x8310 is %hi 0x8, %lo 0x310.
    assert_eq!(made.moved(TO), [0x0000_8537, 0x3105_0513, 0xFFB0_05B7, 0x40A5_A223, 0x0000_8310]);
    // 0x8810 rounds up: %hi 0x9, %lo -0x7F0.
    assert_eq!(made.moved(0x8800)[..2], [0x0000_9537, 0x8105_0513]);
}

#[test]
fn local_data_moves_behind_that_of_the_firmware() {
    // lui a1, %hi(LOCAL+0x404); sw a0, %lo(a1); auipc a0, LOCAL+0x400 - here; addi a0, a0; .word
    // LOCAL+0x400; .word CSR
    let here = TEXT + 8;
    let far = (LOCAL_BASE + 0x400).wrapping_sub(here);
    let hi = far.wrapping_add(0x800) & 0xFFFF_F000;
    let words = [0xFFB0_05B7, 0x40A5_A223, hi | 0x517, far << 20 | 0x0005_0513, LOCAL_BASE + 0x400, LOCAL_BASE + 0x404];
    let mut made = Made::text(&words)
        .symbol(LOCAL_BASE + 0x404, 2)
        .symbol(LOCAL_BASE + 0x400, 2)
        .symbol(here, 1)
        .symbol(LOCAL_BASE + 0x404, ABSOLUTE)
        .reloc(0, R_HI20, 1, 0)
        .reloc(4, R_LO12_S, 1, 0)
        .reloc(8, R_PCREL_HI20, 2, 0)
        .reloc(12, R_PCREL_LO12_I, 3, 0)
        .reloc(16, R_32, 2, 0)
        .reloc(20, R_32, 4, 0);
    made.loads.push((LOCAL_BASE + 0x400, TEXT + 24, vec![1, 2, 3, 4], 0x800, 6));
    let kernel = made.kernel().unwrap();
    let moved = |behind: u32| {
        let mut map = WORKER;
        map.kernel_local[Processor::Brisc.index()] = LOCAL_BASE + behind;
        let image = kernel.relocate(L1Addr::new(TO), &map).map_err(|e| e.to_string())?;
        Ok::<_, String>(image.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect::<Vec<u32>>())
    };
    // Firmware that needs less than its share leaves the data where it is linked.
    assert_eq!(moved(0x40).unwrap(), moved(0x400).unwrap());
    // 0x828 is rounded up to 0x830: the data moves by 0x430. %hi(0xFFB00834) is 0xFFB01, %lo is
    // -0x7CC.
    let words = moved(0x828).unwrap();
    assert_eq!(words[..2], [0xFFB0_15B7, 0x82A5_AA23]);
    let reached = (TO + 8).wrapping_add(words[2] & 0xFFFF_F000).wrapping_add((words[3] as i32 >> 20) as u32);
    assert_eq!(reached, LOCAL_BASE + 0x830);
    assert_eq!(words[4..], [LOCAL_BASE + 0x830, LOCAL_BASE + 0x404, 0x0403_0201], "an absolute symbol is another's");
    // 0x800 bytes from 0x1000 on end where the stack begins.
    assert!(moved(0x1000).is_ok());
    assert_eq!(
        moved(0x1001).unwrap_err(),
        "k.elf: local data: found 2048 bytes behind the firmware's data, which ends at 0xffb01001, expected an end at or below \
         0xffb01800, where the stack begins"
    );
}

#[test]
fn the_loader_tells_a_kernel_where_the_mailbox_is_and_which_core_it_runs_on() {
    let image = |map: &MemoryMap, p| {
        let elf = crate::prebuilt::kernel_elf("spin").unwrap();
        KernelImage::load("spin", elf, p).unwrap().relocate(L1Addr::new(TEXT), map).unwrap()
    };
    let linked = image(&WORKER, Processor::Brisc);
    let words = |image: &[u8]| -> Vec<u32> {
        image.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect()
    };
    // The addresses of the original's `hw.py`.
    let binding = [0x6C, 0x70, 0x370, 0x112B0, 8, 0];
    let at = words(&linked).windows(6).position(|w| w == binding).unwrap();
    let [mailbox, launch, go, bank_table] = [0x80, 0x90, 0x400, 0x12000].map(L1Addr::new);
    let other = MemoryMap { mailbox, launch, go, bank_table, cb_stream: 0, ..WORKER };
    let moved = words(&image(&other, Processor::Trisc1));
    assert_eq!(moved[at..at + 6], [0x8C, 0x90, 0x400, 0x12000, 0, 3]);
    let mut expected = words(&linked);
    expected[at..at + 6].copy_from_slice(&moved[at..at + 6]);
    assert_eq!(moved, expected, "nothing else depends on the map");
}

#[test]
fn relative_references_inside_stay_and_those_outside_are_adjusted() {
    // 0: auipc a0, 0; 4: addi a0, a0, 16 (the text); 8: auipc a1, LOCAL - here; 12: lw a1, (a1);
    // 16: jal x0, 0
    let distance = (LOCAL_BASE + 0x400).wrapping_sub(TEXT + 8);
    let hi = distance.wrapping_add(0x800) & 0xFFFF_F000;
    let made = Made::text(&[0x0000_0517, 0x0105_0513, hi | 0x597, distance << 20 | 0x0005_A583, 0x0000_006F])
        .symbol(TEXT + 16, 1)
        .symbol(TEXT, 1)
        .symbol(LOCAL_BASE + 0x400, 2)
        .symbol(TEXT + 8, 1)
        .reloc(0, R_PCREL_HI20, 1, 0)
        .reloc(4, R_PCREL_LO12_I, 2, 0)
        .reloc(8, R_PCREL_HI20, 3, 0)
        .reloc(12, R_PCREL_LO12_I, 4, 0)
        .reloc(16, R_JAL, 1, 0);
    let words = made.moved(TO);
    assert_eq!(words[..2], [0x0000_0517, 0x0105_0513]);
    assert_eq!(words[4], 0x0000_006F);
    // Executed at TO + 8, the pair must still reach local RAM.
    let lo = (words[3] as i32 >> 20) as u32;
    let reached = (TO + 8).wrapping_add(words[2] & 0xFFFF_F000).wrapping_add(lo);
    assert_eq!(reached, LOCAL_BASE + 0x400);
}

#[test]
fn a_call_of_a_fixed_function_is_adjusted_and_refused_out_of_reach() {
    // auipc ra, 0x3840 - TEXT; jalr ra, ra
    let distance = 0x3840u32.wrapping_sub(TEXT);
    let hi = distance.wrapping_add(0x800) & 0xFFFF_F000;
    let call = Made::text(&[hi | 0x97, distance << 20 | 0x0000_80E7]).symbol(0x3840, ABSOLUTE).reloc(0, R_CALL, 1, 0);
    let words = call.moved(TO);
    let reached = TO.wrapping_add(words[0] & 0xFFFF_F000).wrapping_add((words[1] as i32 >> 20) as u32);
    assert_eq!(reached, 0x3840);
    // jal x0, 0x3840 - TEXT reaches one MiB, not further.
    let v = distance;
    let jal = (v >> 20 & 1) << 31 | (v >> 1 & 0x3FF) << 21 | (v >> 11 & 1) << 20 | (v >> 12 & 0xFF) << 12 | 0x6F;
    let made = Made::text(&[jal]).symbol(0x3840, ABSOLUTE).reloc(0, R_JAL, 1, 0);
    assert_eq!(made.moved(TEXT), [jal]);
    let error = made.kernel().unwrap().relocate(L1Addr::new(0x11_0000), &WORKER).unwrap_err().to_string();
    assert_eq!(
        error,
        "k.elf: reference at 0x10000: found a placement at 0x110000, expected one within reach of its target"
    );
}

#[test]
fn differences_of_labels_move_only_when_one_end_does() {
    // A jump table entry: label - label, both inside; and one whose second label is fixed.
    let made = Made::text(&[8, TEXT + 8 - 0x3840])
        .symbol(TEXT + 8, 1)
        .symbol(TEXT, 1)
        .symbol(0x3840, ABSOLUTE)
        .reloc(0, 35, 1, 0)
        .reloc(0, 39, 2, 0)
        .reloc(4, 35, 1, 0)
        .reloc(4, 39, 3, 0);
    assert_eq!(made.moved(TO), [8, TO + 8 - 0x3840]);
}

#[test]
fn what_cannot_be_moved_is_refused_by_name() {
    let got = Made::text(&[0x0000_0517]).symbol(TEXT, 1).reloc(0, 20, 1, 0).kernel().unwrap_err().to_string();
    assert!(
        got.starts_with("k.elf: relocation R_RISCV_GOT_HI20 at 0x10000: found R_RISCV_GOT_HI20, expected R_RISCV_32,"),
        "{got}"
    );
    let relaxed = Made::text(&[0x0000_0013]).symbol(TEXT + 0x800, 1).reloc(0, R_LO12_I, 1, 0).kernel().unwrap_err();
    assert_eq!(relaxed.field, "relocation R_RISCV_LO12_I at 0x10000");
    assert_eq!(relaxed.expected, "what the relocation says (link with --no-relax)");
    let lost = Made::text(&[0x0005_0513]).symbol(TEXT, 1).reloc(0, R_PCREL_LO12_I, 1, 0).kernel().unwrap_err();
    assert_eq!(lost.expected, "R_RISCV_PCREL_HI20 at its symbol");
}

#[test]
fn a_kernel_linked_without_its_relocations_is_refused() {
    let mut made = Made::text(&[0x0001_0537, 0x0105_0513]).symbol(TEXT + 16, 1);
    assert!(made.kernel().is_ok());
    made.keeps_relocations = false;
    let expected = "expected those of its code, because a kernel is moved: link the kernel with --emit-relocs";
    let error = made.kernel().unwrap_err().to_string();
    assert_eq!(error, format!("k.elf: relocations: found none for section 1, {expected}"));
    // Relocations of data alone do not help: section 1 is then not code, and section 2 has none.
    made.keeps_relocations = true;
    made.loads[0].4 = 4;
    made.loads.push((TEXT + 8, TEXT + 8, vec![0x13, 0, 0, 0], 4, 5));
    let error = made.kernel().unwrap_err().to_string();
    assert_eq!(error, format!("k.elf: relocations: found none for section 2, {expected}"));
    // A file without any section that says it is code is not taken for one that needs none.
    made.loads[1].4 = 4;
    let error = made.kernel().unwrap_err().to_string();
    assert_eq!(error, format!("k.elf: relocations: found no section with code, {expected}"));
}

#[test]
fn initialisers_follow_the_text() {
    let mut made = Made::text(&[0x13, 0x13]);
    made.loads.push((LOCAL_BASE + 0x400, TEXT + 8, vec![1, 2, 3, 4], 100, 6));
    let image = made.kernel().unwrap();
    assert_eq!(image.relocate(L1Addr::new(TO), &WORKER).unwrap(), [0x13, 0, 0, 0, 0x13, 0, 0, 0, 1, 2, 3, 4]);
    // Without a place in the image they would be lost.
    made.loads[1].1 = LOCAL_BASE + 0x400;
    let error = made.kernel().unwrap_err().to_string();
    assert_eq!(
        error,
        "k.elf: segment 1: found initialised data with load address 0xffb00400, expected a load address behind the text, in the image"
    );
}

#[test]
fn a_kernels_data_stays_between_the_firmwares_and_the_stack() {
    for (start, len, fits) in [(0x400, 0x1400, true), (0x3F0, 0x20, false), (0x400, 0x1410, false), (0x1900, 4, false)]
    {
        let mut made = Made::text(&[0x13, 0x13]);
        made.loads.push((LOCAL_BASE + start, TEXT + 8, vec![1, 2, 3, 4], len, 6));
        let result = made.kernel().map(|_| ()).map_err(|e| e.to_string());
        let end = start + len;
        let expected = format!(
            "k.elf: segment 1: found local RAM 0xffb{start:05x}..0xffb{end:05x}, expected 0xffb00400..0xffb01800: below is the firmware's data, above the stack"
        );
        assert_eq!(result, if fits { Ok(()) } else { Err(expected) });
    }
}

#[test]
fn foreign_and_broken_files_are_refused_with_the_field() {
    let good = Made::text(&[0x13]).bytes();
    let error = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut data = good.clone();
        change(&mut data);
        KernelImage::load("k.elf", data, Processor::Brisc).unwrap_err().to_string()
    };
    assert_eq!(error(&|d| d[0] = 0), "k.elf: magic number: found [00, 45, 4c, 46], expected [7f, 45, 4c, 46]");
    assert_eq!(error(&|d| d[4] = 2), "k.elf: class: found 2, expected 1 (32 bits)");
    assert_eq!(error(&|d| d[5] = 2), "k.elf: data encoding: found 2, expected 1 (little endian)");
    assert_eq!(error(&|d| d[18] = 62), "k.elf: machine: found 62, expected 243 (RISC-V)");
    assert_eq!(error(&|d| d[16] = 1), "k.elf: type: found 1, expected 2 (executable)");
    assert_eq!(error(&|d| d.truncate(10)), "k.elf: ELF header: found 10 bytes, expected at least 52 bytes");
    assert!(
        error(&|d| d[52 + 4..52 + 8].fill(0xFF)).starts_with("k.elf: segment 0: found bytes 0xffffffff to 0x100000003")
    );
    assert!(error(&|d| d[52 + 16] = 9).contains("found 9 bytes in the file, expected at most 4, its size in memory"));
    let outside = error(&|d| d[52 + 15] = 0x80);
    assert!(outside.contains("found load address 0x80010000..0x80010004, expected L1 (0x0..0x180000)"), "{outside}");
    assert!(error(&|d| d[24] = 4).starts_with("k.elf: entry point: found 0x10004, expected 0x10000: a kernel"));
    // No cut of the file panics.
    for n in 0..good.len() {
        let _ = KernelImage::load("k.elf", good[..n].to_vec(), Processor::Brisc);
    }
}

#[test]
fn overlapping_segments_are_refused() {
    let mut made = Made::text(&[0x13, 0x13]);
    made.loads.push((TEXT + 4, TEXT + 4, vec![0; 8], 8, 4));
    let error = made.kernel().unwrap_err().to_string();
    assert_eq!(
        error,
        "k.elf: segment 1: found load addresses 0x10004..0x1000c, expected no overlap with segment 0 at 0x10000..0x10008"
    );
}

#[test]
fn firmware_goes_to_its_place_and_its_data_to_the_staging_area() {
    let i = Processor::Ncrisc.index();
    let mut made = Made::firmware(WORKER.firmware_text[i].get());
    made.loads.push((LOCAL_BASE, LOCAL_BASE, vec![7], 4, 6));
    let load = |made: &Made, p| FirmwareImage::load("f.elf", made.bytes(), p, &WORKER);
    let firmware = load(&made, Processor::Ncrisc).unwrap();
    let segments: Vec<_> = firmware.segments().map(|(at, bytes)| (at.get(), bytes)).collect();
    assert_eq!(segments, [(0x5440, &[0x13, 0, 0, 0][..]), (0xA2B0, &[7, 0, 0, 0][..])]);
    let error = load(&made, Processor::Brisc).unwrap_err().to_string();
    assert_eq!(error, "f.elf: segment 0: found 0x5440..0x5444, expected 0x3840..0x5440, the space of BRISC");
}

#[test]
fn the_reset_vector_leads_to_the_firmware_of_brisc() {
    let [brisc, ..] = crate::prebuilt::worker_firmware(&WORKER).unwrap();
    // By hand: imm 10..1 = 0x20 at bit 21, imm 11 = 1 at bit 20, imm 19..12 = 3 at bit 12.
    assert_eq!((brisc.entry(), brisc.boot_jump().unwrap()), (0x3840, 0x0410_306F));
    let text = [(0x0F_FFFC, true), (0x10_0000, false)];
    for (at, fits) in text {
        let mut map = WORKER;
        (map.firmware_text[0], map.firmware_end[0]) = (L1Addr::new(at), L1Addr::new(at + 0x100));
        let load = |p| FirmwareImage::load("f.elf", Made::firmware(at).bytes(), p, &map);
        let loaded = load(Processor::Brisc);
        assert_eq!(loaded.is_ok(), fits);
        if let Err(error) = loaded {
            let expected = "f.elf: entry point: found 0x100000, expected an even address below 1 MiB, in reach of the \
                            `jal` at address 0";
            assert_eq!(error.to_string(), expected);
        }
    }
}

#[test]
fn the_prebuilt_images_load_and_know_their_names() {
    let firmware = crate::prebuilt::worker_firmware(&WORKER).unwrap();
    for (f, p) in firmware.iter().zip(Processor::ALL) {
        assert_eq!((f.processor(), f.entry()), (p, WORKER.firmware_text[p.index()].get()));
        assert!(!f.locate(f.entry()).unwrap().frames.is_empty(), "{}", f.name());
    }
    for &(name, elf) in crate::prebuilt::KERNELS {
        let kernel = KernelImage::load(name, elf, Processor::Brisc).unwrap();
        assert_eq!(
            kernel.relocate(L1Addr::new(kernel.link_base()), &WORKER).unwrap().len() as u32,
            kernel.size(),
            "{name}"
        );
    }
    let kernels = crate::prebuilt::cq_kernels().unwrap();
    let at = kernels.dispatch.locate(0x9000, L1Addr::new(0x9000)).unwrap();
    assert_eq!(at.frames[0].function, "_start");
    assert_eq!(kernels.dispatch.locate(0x9000 + kernels.dispatch.size(), L1Addr::new(0x9000)), None);
}

/// Offset of `e_flags` in the header of a 32-bit file.
const FLAGS: usize = 36;

#[test]
fn code_for_other_extensions_is_told_what_to_compile_with() {
    for (flags, what) in [
        (1, "flags: found compressed instructions (the extension C), flags 0x1"),
        (5, "compressed instructions"),
        (2, "arguments in registers for floats"),
        (8, "16 registers (RV32E)"),
    ] {
        let mut bytes = Made::text(&[0x13]).bytes();
        bytes[FLAGS] = flags;
        let error = KernelImage::load("k.elf", bytes, Processor::Brisc).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains("-march=rv32im -mabi=ilp32"), "{error}");
    }
}

#[test]
fn compile_time_arguments_are_words_of_the_image() {
    let mut made = Made::text(&[0x13, 7, 0x13]);
    made.named = vec![("TILES", 4), ("TABLE", 8)];
    let load = |arguments: &[(&str, u32)]| KernelImage::load_with("k.elf", made.bytes(), Processor::Brisc, arguments);
    let words = |kernel: &KernelImage| {
        let image = kernel.relocate(L1Addr::new(TO), &WORKER).unwrap();
        image.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap())).collect::<Vec<_>>()
    };
    let (default, four, five) = (load(&[]).unwrap(), load(&[("TILES", 4)]).unwrap(), load(&[("TILES", 5)]).unwrap());
    assert_eq!([words(&default)[1], words(&four)[1], words(&five)[1]], [7, 4, 5]);
    // Another value is another kernel; the same value, loaded again, is the same.
    assert!(!four.same(&five) && !four.same(&default) && four.digest() != five.digest());
    assert!(four.same(&load(&[("TILES", 4)]).unwrap()) && default.same(&load(&[("TILES", 7)]).unwrap()));
    let error = |arguments: &[(&str, u32)]| load(arguments).unwrap_err().to_string();
    let expected = "expected a word of the kernel's constants, given once";
    assert_eq!(error(&[("ROWS", 1)]), format!("k.elf: compile-time argument ROWS: found no such symbol, {expected}"));
    assert_eq!(
        error(&[("TABLE", 1)]),
        format!("k.elf: compile-time argument TABLE: found 8 bytes at 0x10004, {expected}")
    );
    assert_eq!(
        error(&[("TILES", 1), ("TILES", 1)]),
        format!("k.elf: compile-time argument TILES: found a second value, {expected}")
    );
}
