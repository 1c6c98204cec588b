//! The C header and the linker scripts, made from the tables of `tilework_abi`.
//!
//! A register is a macro with the address of its first copy, under the name that the public headers
//! give it; what it is comes from its row.

use super::constants::{CONSTANTS, Constant};
use std::fmt::Write;
use tilework_abi::kernel::{KERNEL_LINK_BASE, KERNEL_LOCAL_DM, kernel_local_end};
use tilework_abi::l1::WORKER;
use tilework_abi::noc::counter::COUNTERS_BLOCK;
use tilework_abi::noc::{NIU, init::INITIATOR};
use tilework_abi::reg::{Access, Block, Reg};
use tilework_abi::stream::reg::STREAM;
use tilework_abi::tensix::{DEBUG, PIC, Processor, pc_buf::PC_BUF, tdma::TDMA};

/// The registers that a kernel sees.
const TILE_BLOCKS: [&Block; 8] = [&INITIATOR, &NIU, &COUNTERS_BLOCK, &STREAM, &DEBUG, &PIC, &TDMA, &PC_BUF];

/// The template of our own kernels' script. Its first comment is about the template.
const SCRIPT: &str = include_str!("../../../../firmware/link/kernel.ld");

/// The header `tilework_registers.h`.
pub fn registers() -> String {
    let mut out = String::from(
        "/* Registers of a Tensix tile as its cores see them, and what a kernel must know about L1.\n\n   \
         Made by `tilework sdk`. A register's number is the address of its first copy. */\n\
         #ifndef TILEWORK_REGISTERS_H\n#define TILEWORK_REGISTERS_H\n\n",
    );
    for Constant { name, value, what } in CONSTANTS {
        line(&mut out, name, *value, what);
    }
    for block in TILE_BLOCKS {
        comment(&mut out, block);
        for reg in block.regs {
            register(&mut out, block, reg);
        }
    }
    out += "\n#endif\n";
    out
}

/// What a block is, and where its copies are.
fn comment(out: &mut String, block: &Block) {
    // Writing to a string cannot fail, here and below.
    let _ = write!(out, "\n/* {}:{}", block.name, block.about.trim_end());
    if block.copies > 1 {
        let _ = write!(out, " {} copies, {:#x} bytes apart.", block.copies, block.stride);
    }
    *out += " */\n";
}

fn register(out: &mut String, block: &Block, reg: &Reg) {
    let address = u32::try_from(block.base).unwrap_or(u32::MAX) + reg.offset;
    let mut what = match reg.access {
        Access::NotBuilt => String::from("not built, an access is a fault:"),
        access => format!("{}:", access.name()),
    };
    what += reg.what.trim_end();
    if reg.count > 1 {
        let _ = write!(what, " {} of them, {} bytes apart.", reg.count, reg.stride);
    }
    line(out, reg.name, address, &what);
}

fn line(out: &mut String, name: &str, value: u32, what: &str) {
    let _ = writeln!(out, "#define {name} {value:#x} /* {} */", what.trim());
}

/// The template, for a core.
fn script_of(core: Processor) -> String {
    let about = "text at a nominal place (the loader moves it), data and bss in local RAM, their initialisers behind\n   \
                 the text. Made by `tilework sdk`.";
    let script = SCRIPT.split_once("*/").map_or(SCRIPT, |(_, script)| script);
    format!("/* A kernel of {core}: {about} */{script}")
}

/// The linker script for kernels of a core.
pub fn script(core: Processor) -> String {
    [
        ("TEXT", KERNEL_LINK_BASE),
        ("TEXT_SIZE", WORKER.kernel_config_size),
        ("LOCAL", KERNEL_LOCAL_DM),
        ("LOCAL_END", kernel_local_end(core)),
    ]
    .into_iter()
    .fold(script_of(core), |script, (name, value)| script.replace(&format!("@{name}@"), &format!("{value:#x}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Names and values of the header's macros.
    fn defined(header: &str) -> Vec<(&str, u32)> {
        let defines = header.lines().filter_map(|line| line.strip_prefix("#define ")?.split_once(" 0x"));
        defines
            .map(|(name, rest)| {
                let digits = rest.split(' ').next().unwrap();
                (name, u32::from_str_radix(digits, 16).unwrap())
            })
            .collect()
    }

    #[test]
    fn the_header_has_every_register_of_a_tile_once_at_its_address() {
        let header = registers();
        let defined = defined(&header);
        let names: HashSet<_> = defined.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), defined.len(), "a name is defined twice");
        assert!(names.iter().all(|n| n.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')));
        let rows: usize = TILE_BLOCKS.iter().map(|block| block.regs.len()).sum();
        assert_eq!(defined.len(), rows + CONSTANTS.len());
        for (name, address) in
            [("NOC_CMD_CTRL", 0xFFB2_0040), ("NIU_MST_WR_ACK_RECEIVED", 0xFFB2_0204), ("NOC_ID_LOGICAL", 0xFFB2_0148)]
        {
            assert!(defined.contains(&(name, address)), "{name}");
        }
        assert_eq!(header.matches("/*").count(), header.matches("*/").count());
    }

    #[test]
    fn the_scripts_have_no_name_left_to_fill_in() {
        for core in Processor::ALL {
            let script = script(core);
            assert!(!script.contains('@'), "{script}");
            assert!(script.contains(&format!("{:#x}", kernel_local_end(core))));
        }
    }
}
