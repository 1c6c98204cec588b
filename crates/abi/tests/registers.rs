//! What must hold of every row of the register tables.

use std::collections::BTreeSet;
use tilework_abi::reg::{Access, BLOCKS, Block, Reg, TileRegister};
use tilework_abi::{arc, noc, stream, tensix};

fn rows() -> impl Iterator<Item = (&'static Block, &'static Reg)> {
    BLOCKS.into_iter().flat_map(|block| block.regs.iter().map(move |reg| (block, reg)))
}

/// Offsets of the registers of a row.
fn offsets(reg: &Reg) -> impl Iterator<Item = u32> {
    let (first, stride) = (reg.offset, reg.stride);
    (0..reg.count).map(move |i| first + i * stride)
}

#[test]
fn names_are_unique() {
    let mut names = BTreeSet::new();
    // The NIU's error correction and that of the tile have the same name but for the prefix.
    assert!(rows().all(|(_, reg)| names.insert(reg.name)));
    assert_eq!(BLOCKS.map(|block| block.name).into_iter().collect::<BTreeSet<_>>().len(), BLOCKS.len());
}

#[test]
fn a_register_is_found_at_its_offset_and_nothing_anywhere_else() {
    for block in BLOCKS {
        let mut found = 0;
        for offset in 0..block.span + 8 {
            let Some(slot) = block.at(offset) else { continue };
            assert_eq!(slot.reg.offset + slot.index * slot.reg.stride, offset, "{}", block.name);
            assert!(slot.index < slot.reg.count && offset + 4 <= block.span);
            found += 1;
        }
        let rows: u32 = block.regs.iter().map(|reg| reg.count).sum();
        assert_eq!(found, rows, "{}", block.name);
        assert!(block.copies == 1 || block.stride >= block.span, "copies of {} overlap", block.name);
    }
}

#[test]
fn rows_are_complete_and_consistent() {
    for (block, reg) in rows() {
        let name = reg.name;
        assert!(!reg.page.is_empty() && reg.what.starts_with(' ') && reg.what.ends_with('.'), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_eq!(reg.mask & reg.fixed, 0, "{name}");
        let writes = matches!(reg.access, Access::Rw | Access::Wo | Access::WoFault | Access::W1c);
        assert_eq!(writes, (reg.mask | reg.fixed) != 0, "{name}");
        assert!((0..block.copies).any(|copy| reg.is_in(copy)), "{name} is in no copy of {}", block.name);
    }
}

#[test]
fn a_write_keeps_the_mask_and_leaves_what_is_fixed() {
    for (_, reg) in rows() {
        let old = reg.reset & (reg.mask | reg.fixed);
        for value in [0, u32::MAX, 0xAAAA_AAAA, 0x5555_5555, 1, 1 << 31] {
            match reg.written(old, value) {
                None => assert_ne!((old ^ value) & reg.fixed, 0, "{}", reg.name),
                Some(new) => {
                    assert_eq!(new & reg.mask, value & reg.mask, "{}", reg.name);
                    assert_eq!(new & reg.fixed, old & reg.fixed, "{}", reg.name);
                    assert_eq!(new & !(reg.mask | reg.fixed), 0, "{}", reg.name);
                }
            }
        }
        assert_eq!(reg.written(old, old), Some(old), "{}: the old value is taken", reg.name);
    }
}

#[test]
fn the_parts_of_an_niu_do_not_overlap() {
    let own = noc::NIU.regs.iter().flat_map(offsets);
    let counters = noc::counter::COUNTERS_BLOCK.regs.iter().flat_map(offsets).map(|offset| noc::COUNTERS + offset);
    let fields = noc::init::INITIATOR.regs.iter().flat_map(offsets);
    let initiators = fields.flat_map(|field| (0..noc::CMD_BUFS).map(move |i| i * noc::CMD_BUF_STRIDE + field));
    let mut all = BTreeSet::new();
    assert!(own.chain(counters).chain(initiators).all(|offset| all.insert(offset)));
    // Each is found where it is.
    assert!(all.into_iter().all(|offset| noc::register(offset).is_some()));
}

#[test]
fn constants_are_those_of_their_rows() {
    let name = |address| TileRegister::at(address).map(|register| register.to_string());
    for (address, expected) in [
        (noc::NIU0_BASE + noc::ID_LOGICAL, "NOC_ID_LOGICAL of NIU 0"),
        (noc::NIU1_BASE + noc::COUNTERS + 4 * 17, "NIU_MST_REQS_OUTSTANDING_ID(1) of NIU 1"),
        (noc::NIU1_BASE + 3 * noc::CMD_BUF_STRIDE, "NOC_TARG_ADDR_LO of initiator 3 of NIU 1"),
        (stream::reg_addr(48, stream::SPACE_AVAILABLE), "STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE(0) of stream 48"),
        (tensix::WALL_CLOCK_L, "RISCV_DEBUG_REG_WALL_CLOCK_0"),
        (tensix::PC_SNAPSHOT + 8, "RISCV_PC_SNAPSHOT(2)"),
        (tensix::TDMA_BASE + 0x39C, "RISCV_TDMA_REG_ACC_PACKED_SIZE_2(3)"),
        (tensix::PC_BUF_BASE + tensix::PC_BUF_STRIDE, "PC_BUF of PC buffer 1"),
    ] {
        assert_eq!(name(address).as_deref(), Some(expected), "{address:#x}");
    }
    for nothing in [0, tensix::LOCAL_BASE, noc::NIU0_BASE + 0x38, tensix::WALL_CLOCK_L + 1, u32::MAX] {
        assert_eq!(TileRegister::at(nothing), None, "{nothing:#x}");
    }
    assert_eq!(arc::RESET_UNIT.base + 0x434, tilework_abi::telemetry::TABLE_POINTER);
}
