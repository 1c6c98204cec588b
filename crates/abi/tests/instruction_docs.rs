//! `docs/tensix-instructions.md` says what the instruction table says.

use std::fmt::Write;
use std::path::Path;
use tilework_abi::tensix::insn::{Field, Kind, Row, Unit};

const HEAD: &str = "\
# Tensix instructions

Every opcode of the public Blackhole list, by the unit that executes it. The table is
`crates/abi/src/tensix/insn`; this page is written from it by
`TILEWORK_BLESS=1 cargo test -p tilework-abi --test instruction_docs`, and the same test fails when they differ.

- *opcode*: bits 31 to 24 of the word.
- *operands*: name and bits, from the highest bit down. `if [7]=1` behind an operand: only the form of the
  instruction in which bit 7 is one has it. `rN` are general-purpose registers of the thread, `rN.lo` and `rN.hi`
  their halves, `lN` registers of the vector unit.
- *class*: the `op_class` of `RESOURCEDECL`, by which Auto TTSync knows what the instruction uses.
- *page*: the page of `tenstorrent/tt-isa-documentation` that the row follows, in
  `BlackholeA0/TensixTile/TensixCoprocessor` (B) or `WormholeB0/TensixTile/TensixCoprocessor` (W); *list*: only the
  public list, `tt_llk_blackhole/instructions/assembly.yaml` of `tenstorrent/tt-llk`, has it.
- *built*: whether the simulator executes it, or what the documents lack so that it could. What is not built is a
  fault that names the instruction, and what is missing, when it reaches its unit.

To build an instruction: move its row from `not_built` to `built` in the file of its unit, give it a meaning in the
unit (`crates/sim/src/tensix`; it does not compile before), test that meaning, and rewrite this page.
";
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tensix-instructions.md");

fn bits(hi: u32, lo: u32) -> String {
    if hi == lo { format!("[{hi}]") } else { format!("[{hi}:{lo}]") }
}

fn operand(field: &Field) -> String {
    let kind = match field.kind {
        Kind::Flag | Kind::Uint | Kind::Hex | Kind::Format => "",
        Kind::Signed => " signed",
        Kind::Gpr => " rN",
        Kind::GprHalf => " rN.lo/hi",
        Kind::LReg => " lN",
    };
    let form = field.when.map_or(String::new(), |when| {
        let (lo, hi) = (when.mask.trailing_zeros(), 31 - when.mask.leading_zeros());
        format!(" if {}={}", bits(hi, lo), when.value >> lo)
    });
    format!("`{}{}`{kind}{form}", field.name, bits(field.hi, field.lo))
}

fn line(row: &Row) -> String {
    let operands: Vec<String> = row.fields.iter().map(operand).collect();
    let class = row.class.index().map_or("none".into(), |class| class.to_string());
    let page = match row.page.rsplit_once('/') {
        Some(("BlackholeA0/TensixTile/TensixCoprocessor", page)) => format!("B {page}"),
        Some(("WormholeB0/TensixTile/TensixCoprocessor", page)) => format!("W {page}"),
        _ => "list".into(),
    };
    let built = row.missing.map_or("yes".into(), |missing| format!("no: {missing}"));
    let (opcode, name) = (row.opcode, row.mnemonic);
    format!("| {opcode:#04x} | `{name}` | {} | {class} | {page} | {built} |\n", operands.join(", "))
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    let rows = || Unit::ALL.into_iter().flat_map(Unit::rows);
    let built = rows().filter(|row| row.is_built()).count();
    write!(page, "\n{} of {} instructions are built.\n", built, rows().count()).unwrap();
    for unit in Unit::ALL {
        let mut name = unit.name().to_owned();
        name[..1].make_ascii_uppercase();
        let blocking: Vec<String> =
            (0..9).filter(|bit| unit.block_bits() >> bit & 1 != 0).map(|bit| format!("B{bit}")).collect();
        write!(page, "\n## {name}\n\n").unwrap();
        match blocking.len() {
            0 => page.push_str("Never reaches the wait gate.\n\n"),
            _ => write!(page, "Blocked by {} of a wait instruction.\n\n", blocking.join(", ")).unwrap(),
        }
        if unit == Unit::Misc {
            page.push_str("Only all nine bits together block `NOP`.\n\n");
        }
        page.push_str("| opcode | instruction | operands | class | page | built |\n|---|---|---|---|---|---|\n");
        let mut sorted: Vec<&Row> = unit.rows().iter().collect();
        sorted.sort_by_key(|row| row.opcode);
        sorted.iter().for_each(|row| page.push_str(&line(row)));
    }
    page
}

/// With `TILEWORK_BLESS=1` the test writes the page instead of comparing it.
#[test]
fn the_page_is_written_from_the_table() {
    let (path, page) = (Path::new(PATH), page());
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(path, &page).expect("the page can be written");
    }
    let found = std::fs::read_to_string(path).expect("the page exists");
    let changed = found.lines().zip(page.lines()).find(|(found, expected)| found != expected);
    assert!(found == page, "{} is stale; first difference: {changed:?}", path.display());
}
