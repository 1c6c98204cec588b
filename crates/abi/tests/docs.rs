//! The pages that are made of this crate's tables agree with them.
//!
//! With `TILEWORK_BLESS=1` the test writes the pages instead of comparing them.

use std::fmt::Write;
use std::path::Path;
use tilework_abi::reg::{Access, BLOCKS, Block, Reg};

/// Columns of a line of a document.
const COLUMNS: usize = 120;

const HEAD: &str = "\
# Registers

The registers that the simulator has, and those of the public documents that it does not. This page is made of the
tables in `crates/abi` from which the simulator decodes accesses and takes the names in its faults and deadlock
reports; a test keeps it true (`TILEWORK_BLESS=1 cargo test -p tilework-abi --test docs` rewrites it).

Offsets count in bytes from the start of a copy of the block. `NAME(4)` stands for four registers, `NAME(0)` to
`NAME(3)`, one word apart where the offset names no other distance. Access is one of these:

| access | a read gives | a write |
|---|---|---|
| rw | what was written, or what hardware makes of it | is kept, or has an effect |
| ro | what hardware says | is a fault |
| ro, i | what hardware says | is ignored |
| wo | zero | has an effect |
| wo, f | a fault | has an effect |
| w1c | zero | clears what its ones stand for |
| - | a fault: the simulator does not have the register | a fault |

Under *bits* stand the bits that a write changes, if they are not all 32 (the others are dropped); behind *not*, the
bits that a write must not change, because the simulator does not have what they stand for (it is a fault); the value
after reset, if it is not zero; and which copies have the register, if not all. *Page* is the number of the document
behind the table; [sources.md](sources.md) says where they are.
";

/// Breaks `text` into lines.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.len() > COLUMNS {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

/// The set bits of `mask`, as ranges.
fn ranges(mask: u64) -> String {
    let bits: Vec<u32> = (0..64).filter(|bit| mask >> bit & 1 != 0).collect();
    let runs = bits.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [one] => one.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    runs.collect::<Vec<_>>().join(", ")
}

/// What of a row is not as usual.
fn bits(reg: &Reg) -> String {
    let mut parts = Vec::new();
    let kept = reg.mask | reg.fixed;
    if kept != u32::MAX && kept != 0 {
        parts.push(format!("{kept:#x}"));
    }
    if reg.fixed != 0 {
        let all = reg.fixed == u32::MAX;
        parts.push(if all { "not any".into() } else { format!("not {:#x}", reg.fixed) });
    }
    if reg.reset != 0 {
        parts.push(format!("reset {:#x}", reg.reset));
    }
    if reg.copies != u64::MAX {
        parts.push(format!("only {}", ranges(reg.copies)));
    }
    parts.join(", ")
}

fn row(reg: &Reg, page: usize) -> String {
    let count = if reg.count > 1 { format!("({})", reg.count) } else { String::new() };
    let step = if reg.count > 1 && reg.stride != 4 { format!(" + {:#x} i", reg.stride) } else { String::new() };
    let what = reg.what.trim().trim_end_matches('.').replace('|', "\\|");
    let (name, access) = (reg.name, reg.access.name());
    format!("| {:#x}{step} | `{name}{count}` | {access} | {} | {what} | {page} |", reg.offset, bits(reg))
}

fn section(block: &Block) -> String {
    let mut pages: Vec<&str> = Vec::new();
    let mut table =
        String::from("| offset | register | access | bits | what it is | page |\n|---|---|---|---|---|---|\n");
    let mut regs: Vec<&Reg> = block.regs.iter().collect();
    regs.sort_by_key(|reg| reg.offset);
    for reg in regs {
        let known = pages.iter().position(|page| *page == reg.page);
        let page = known.unwrap_or_else(|| {
            pages.push(reg.page);
            pages.len() - 1
        });
        writeln!(table, "{}", row(reg, page + 1)).unwrap();
    }
    let copies = match block.copies {
        1 => String::new(),
        n => format!(", {n} copies, one every {:#x} bytes", block.stride),
    };
    let place = format!("From {:#x}{copies}.", block.base);
    let mut name = block.name.to_owned();
    name[..1].make_ascii_uppercase();
    let mut out = format!("\n## {name}\n\n{}\n\n{table}\n", wrapped(&format!("{} {place}", block.about)));
    let pages = pages.iter().enumerate().map(|(i, page)| format!("({}) {page}", i + 1));
    writeln!(out, "{}", wrapped(&pages.collect::<Vec<_>>().join("; "))).unwrap();
    out
}

#[test]
fn every_register_is_in_its_page() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/registers.md");
    let expected = BLOCKS.iter().fold(String::from(HEAD), |page, block| page + &section(block));
    let long: Vec<&str> = expected.lines().filter(|line| line.chars().count() > COLUMNS).collect();
    assert!(long.is_empty(), "more than {COLUMNS} columns:\n{}", long.join("\n"));
    assert!(expected.contains("`NIU_MST_RD_RESP_RECEIVED` | ro"), "a row that is known to be there");
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/registers.md is not what the tables give; TILEWORK_BLESS=1 writes it");
}

#[test]
fn the_page_explains_every_access() {
    use Access::{NotBuilt, Ro, RoIgnore, Rw, W1c, Wo, WoFault};
    for access in [Rw, Ro, RoIgnore, Wo, WoFault, W1c, NotBuilt] {
        assert!(HEAD.contains(&format!("| {} |", access.name())), "{access:?}");
    }
}
