//! `tilework disasm`: the instructions of a kernel or firmware file.
//!
//! RISC-V and Tensix instructions stand in the order of the file. What a core pushes as `.ttinsn`
//! is shown with operands by name, and configuration by the fields of `cfg_defines.h`. Words that a
//! core makes at run time and stores to the push buffer are data to it and cannot be shown.

use crate::answer::{Answer, ReportArgs};
use crate::failure::{Failure, Outcome};
use crate::files;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use tilework_abi::tensix::cfg::{Space, fields_of};
use tilework_abi::tensix::insn::{ConfigOp, Insn as TensixInsn, row};
use tilework_riscv::{Insn, Op, disassemble};
use tilework_runtime::elf::{self, ListedFunction, ListedWord};

/// Words that one 128-bit write of configuration covers.
const WIDE: u32 = 4;

/// Arguments of `tilework disasm`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Words that a core computes and stores to its push buffer are data in the file; they are not shown as Tensix instructions.

Example:
  tilework disasm trisc1.elf
  tilework disasm trisc1.elf --tensix --function main")]
pub struct DisasmArgs {
    /// The ELF file of a kernel or of firmware.
    pub file: PathBuf,
    /// Only this function; once for each. NAME is the whole name or a part of it.
    #[arg(long, value_name = "NAME")]
    pub function: Vec<String>,
    /// Only the Tensix instructions.
    #[arg(long)]
    pub tensix: bool,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// The fields are those of the JSON form, in their order.
#[derive(serde::Serialize)]
struct Listing {
    file: String,
    riscv: usize,
    tensix: usize,
    functions: Vec<FunctionView>,
}

#[derive(serde::Serialize)]
struct FunctionView {
    name: String,
    section: String,
    instructions: Vec<InsnView>,
}

#[derive(serde::Serialize)]
struct InsnView {
    address: u32,
    word: u32,
    /// `riscv` or `tensix`.
    set: &'static str,
    mnemonic: String,
    text: String,
    /// The configuration fields that a Tensix instruction reads or writes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    configuration: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// Lists the instructions of a file.
pub fn list(args: &DisasmArgs) -> Outcome<Answer> {
    let path = &args.file;
    let bytes = files::read_within(path, elf::MAX_FILE_BYTES as u64, "an ELF file")?;
    let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
    let functions = elf::list(&name, &bytes).map_err(|error| Failure::file(path, error))?;
    for wanted in &args.function {
        if !functions.iter().any(|function| function.name.contains(wanted.as_str())) {
            return Err(no_function(path, wanted, &functions));
        }
    }
    let chosen = |function: &ListedFunction| {
        args.function.is_empty() || args.function.iter().any(|wanted| function.name.contains(wanted.as_str()))
    };
    let functions: Vec<_> = functions.into_iter().filter(chosen).map(|f| view(f, args.tensix)).collect();
    let count = |set| functions.iter().flat_map(|f| &f.instructions).filter(|insn| insn.set == set).count();
    let (riscv, tensix) = (count("riscv"), count("tensix"));
    Ok(Answer::new(Listing { file: path.display().to_string(), riscv, tensix, functions }, text))
}

fn no_function(path: &Path, wanted: &str, functions: &[ListedFunction]) -> Failure {
    let names: Vec<_> = functions.iter().map(|function| function.name.as_str()).take(10).collect();
    Failure::file(path, format!("no function is called {wanted}; there are {}", names.join(", ")))
}

fn view(function: ListedFunction, only_tensix: bool) -> FunctionView {
    let insns = function.words.into_iter().map(instruction).filter(|insn| !only_tensix || insn.set == "tensix");
    FunctionView { instructions: insns.collect(), name: function.name, section: function.section }
}

fn instruction(listed: ListedWord) -> InsnView {
    let ListedWord { address, word, line } = listed;
    let (source, line) = line.unzip();
    let insn = Insn::decode(word);
    if insn.op != Op::Ttinsn {
        let text = disassemble(word, address);
        let mnemonic = text.split(' ').next().unwrap_or_default().to_owned();
        return InsnView { address, word, set: "riscv", mnemonic, text, configuration: Vec::new(), source, line };
    }
    let pushed = insn.imm.cast_unsigned();
    let tensix = TensixInsn::decode(pushed);
    let mnemonic = row(pushed).map_or("undefined", |row| row.mnemonic).to_owned();
    let (text, configuration) = (tensix.to_string(), configuration(tensix));
    InsnView { address, word: pushed, set: "tensix", mnemonic, text, configuration, source, line }
}

/// The configuration fields that an instruction reads or writes, with the values that it gives.
fn configuration(insn: TensixInsn) -> Vec<String> {
    let names = |word: u32| fields_of(Space::Bank, word).map(|(field, copy)| field_name(field.name, copy)).collect();
    let byte = |byte: u32, index: u32, mask: u32, value: u32| {
        values(Space::Bank, index, mask << (8 * byte), value << (8 * byte))
    };
    match insn {
        TensixInsn::Config(ConfigOp::Setc16(i)) => values(Space::Thread, i.cfg_index(), u32::MAX, i.new_value()),
        TensixInsn::Config(ConfigOp::Wrcfg(i)) if i.is_128bit() => {
            let first = i.cfg_index() / WIDE * WIDE;
            (first..first + WIDE).flat_map(|word| -> Vec<String> { names(word) }).collect()
        }
        TensixInsn::Config(ConfigOp::Wrcfg(i)) => names(i.cfg_index()),
        TensixInsn::Config(ConfigOp::Rdcfg(i)) => names(i.cfg_index()),
        TensixInsn::Config(ConfigOp::Cfgshiftmask(i)) => names(i.cfg_index()),
        TensixInsn::Config(ConfigOp::Rmwcib0(i)) => byte(0, i.index4(), i.mask(), i.new_value()),
        TensixInsn::Config(ConfigOp::Rmwcib1(i)) => byte(1, i.index4(), i.mask(), i.new_value()),
        TensixInsn::Config(ConfigOp::Rmwcib2(i)) => byte(2, i.index4(), i.mask(), i.new_value()),
        TensixInsn::Config(ConfigOp::Rmwcib3(i)) => byte(3, i.index4(), i.mask(), i.new_value()),
        _ => Vec::new(),
    }
}

/// The fields of the configuration word `index` under `mask`, with what `value` gives them. Where
/// several become zero, they are one entry with what their names have in common.
fn values(space: Space, index: u32, mask: u32, value: u32) -> Vec<String> {
    let (mut zeros, mut shown): (Vec<String>, Vec<String>) = Default::default();
    for (field, copy) in fields_of(space, index).filter(|(field, _)| field.mask() & mask != 0) {
        let name = field_name(field.name, copy);
        match (field.mask() & !mask, field.of(value)) {
            (0, 0) => zeros.push(name),
            (0, value) => shown.push(format!("{name}={value:#x}")),
            // A part of a field has no value of its own.
            _ => shown.push(name),
        }
    }
    match zeros.as_slice() {
        [] => {}
        [one] => shown.push(format!("{one}=0")),
        several => shown.push(format!("{}*=0", common_start(several))),
    }
    shown
}

/// What all names begin with.
fn common_start(names: &[String]) -> &str {
    let [first, rest @ ..] = names else { return "" };
    let shared = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let length = rest.iter().map(|name| shared(first, name)).min().unwrap_or(first.len());
    &first[..length]
}

/// The name of copy `copy` of a field, as `cfg_defines.h` spells it.
fn field_name(name: &str, copy: u32) -> String {
    name.replacen("_SEC_", &format!("_SEC{copy}_"), 1)
}

fn text(listing: &Listing, out: &mut dyn Write) -> Result<()> {
    for function in listing.functions.iter().filter(|function| !function.instructions.is_empty()) {
        writeln!(out, "{} ({}):", function.name, function.section)?;
        let mut place = None;
        for insn in &function.instructions {
            let here = insn.source.as_deref().zip(insn.line);
            if here != place {
                if let Some((source, line)) = here {
                    writeln!(out, "  ; {source}:{line}")?;
                }
                place = here;
            }
            let mark = if insn.set == "tensix" { "T" } else { " " };
            write!(out, "{:8x}: {:08x} {mark} {}", insn.address, insn.word, insn.text)?;
            match insn.configuration.as_slice() {
                [] => writeln!(out)?,
                fields => writeln!(out, "   # {}", fields.join(" "))?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "{} RISC-V and {} Tensix instructions", listing.riscv, listing.tensix)
}
