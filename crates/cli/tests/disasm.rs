//! `tilework disasm`: what stands in a file, word by word.

use crate::common;
use common::{folder, repository, tilework};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Rmwcib1, Setc16, Setrwc};

/// An ELF file with one section of instructions at 0x5000 and the function `main` 4 bytes into it.
fn elf(words: &[u32]) -> Vec<u8> {
    let text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let names = b"\0.text\0.symtab\0.strtab\0main\0";
    let symbol = |name: u32, value: u32, info: u8, section: u16| {
        let mut s = Vec::new();
        [name, value, 4].iter().for_each(|word| s.extend(word.to_le_bytes()));
        s.extend([info, 0]);
        s.extend(section.to_le_bytes());
        s
    };
    // A function (2) that is global (1).
    let symbols = [vec![0; 16], symbol(23, 0x5004, 1 << 4 | 2, 1)].concat();
    let (text_at, symbols_at) = (52, 52 + text.len());
    let (names_at, headers_at) = (symbols_at + symbols.len(), symbols_at + symbols.len() + names.len());
    let mut file = b"\x7fELF\x01\x01\x01".to_vec();
    file.resize(16, 0);
    // Executable, RISC-V, version 1; entry, no program headers, section headers.
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]);
    [0x5000, 0, headers_at as u32, 0].iter().for_each(|word: &u32| file.extend(word.to_le_bytes()));
    [52u16, 32, 0, 40, 4, 3].iter().for_each(|half| file.extend(half.to_le_bytes()));
    file.extend([&text[..], &symbols, names].concat());
    // Name, type, flags, address, offset, size, link, info, alignment, entry size.
    let sections = [
        [0; 10],
        [1, 1, 6, 0x5000, text_at, text.len() as u32, 0, 0, 4, 0],
        [7, 2, 0, 0, symbols_at as u32, symbols.len() as u32, 3, 1, 4, 16],
        [15, 3, 0, 0, names_at as u32, names.len() as u32, 0, 0, 1, 0],
    ];
    sections.iter().flatten().for_each(|word| file.extend(word.to_le_bytes()));
    file
}

/// `.ttinsn` of a Tensix instruction: its bits turned by two places.
fn ttinsn(word: u32) -> u32 {
    word.rotate_left(2)
}

fn write(words: &[u32]) -> (tempfile::TempDir, String) {
    let folder = folder();
    let file = folder.path().join("kernel.elf");
    std::fs::write(&file, elf(words)).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (folder, name)
}

#[test]
fn both_instruction_sets_stand_in_order_with_operands() {
    let offset = u32::from(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word);
    // addi a0, a0, 1 first.
    let words = [
        0x0015_0513,
        ttinsn(Setc16::build().cfg_index(offset).new_value(0x200).word()),
        ttinsn(Setrwc::build().clear_dvalid(3).dst(true).word()),
        ttinsn(Rmwcib1::build().index4(1).mask(0x20).word()),
    ];
    let (_folder, file) = write(&words);
    let text = tilework(&["disasm", &file]).code(0).stdout;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], ".text (.text):");
    assert!(lines[1].ends_with("addi a0, a0, 1"), "{text}");
    assert_eq!(lines[3], "main (.text):");
    assert!(
        lines[4].contains("T SETC16 cfg_index=1, new_value=0x200   # DEST_TARGET_REG_CFG_MATH_Offset=0x200"),
        "{text}"
    );
    assert!(lines[5].contains("T SETRWC clear_dvalid=0x3"), "{text}");
    assert!(lines[6].contains("RMWCIB1"), "{text}");
    assert_eq!(lines.last(), Some(&"1 RISC-V and 3 Tensix instructions"));

    let json = tilework(&["disasm", &file, "--report", "json", "--tensix"]).code(0).json();
    let shown = &json["functions"][1]["instructions"];
    assert_eq!((json["riscv"].as_u64(), json["tensix"].as_u64()), (Some(0), Some(3)));
    assert_eq!((shown[0]["mnemonic"].as_str(), shown[0]["address"].as_u64()), (Some("SETC16"), Some(0x5004)));
    let only = tilework(&["disasm", &file, "--function", "main"]).code(0).stdout;
    assert!(!only.contains("addi") && only.contains("SETRWC"), "{only}");
}

#[test]
fn our_own_firmware_lists_every_word_of_its_text() {
    let file = repository().join("firmware/prebuilt/brisc.elf");
    let json = tilework(&["disasm", file.to_str().unwrap(), "--report", "json"]).code(0).json();
    let functions = json["functions"].as_array().unwrap();
    let mut count = 0;
    for function in functions {
        let words = function["instructions"].as_array().unwrap();
        let addresses: Vec<_> = words.iter().map(|insn| insn["address"].as_u64().unwrap()).collect();
        assert!(addresses.windows(2).all(|pair| pair[1] == pair[0] + 4), "no word is left out: {}", function["name"]);
        count += addresses.len() as u64;
    }
    let names: Vec<_> = functions.iter().map(|function| function["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|name| name.contains("main")), "{names:?}");
    let sets = ["riscv", "tensix"].map(|set| json[set].as_u64().unwrap());
    assert_eq!(sets.iter().sum::<u64>(), count);
}

#[test]
fn what_cannot_be_listed_is_refused_with_the_reason() {
    let (folder, file) = write(&[0x13]);
    tilework(&["disasm", &file, "--function", "nobody"]).code(2).says("no function is called nobody; there are .text");
    let bad = folder.path().join("bad.elf");
    std::fs::write(&bad, b"\x7fELF nonsense").unwrap();
    tilework(&["disasm", bad.to_str().unwrap()]).code(2).says("bad.elf");
    tilework(&["disasm", folder.path().join("none").to_str().unwrap()]).code(2).says("none");
    let whole = std::fs::read(&file).unwrap();
    for cut in (0..whole.len()).step_by(7) {
        std::fs::write(&bad, &whole[..cut]).unwrap();
        let ended = tilework(&["disasm", bad.to_str().unwrap()]);
        assert!(!ended.stderr.contains("panicked"), "{cut}: {}", ended.stderr);
    }
}
