//! What a kernel was linked with of its firmware, and what firmware has.
//!
//! Kernels of tt-metal are linked against the firmware's symbols (`--just-symbols`) and read its
//! variables at the addresses that they had there; their own data begins where the firmware's ends
//! (`__fw_export_ldm_end`). Under other firmware they would read something else without a word, so
//! such a kernel says what it was linked with ([`Imports`]) and is compared with the firmware that
//! it meets ([`Exports`]).

use super::ElfError;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SymbolSection};
use std::collections::{BTreeMap, HashSet};
use tilework_abi::globals::{
    BANK_TABLE_SYMBOL, DRAM_BANK_XY, GLOBAL_POINTER_SYMBOL, L1_BANK_XY, LOCAL_END_SYMBOL, TEXT_END_SYMBOL,
};
use tilework_abi::l1::bank_table::{SEED_BANKS, SEED_L1_BANKS};
use tilework_abi::tensix::LOCAL_BASE;

/// The symbols of a firmware file that kernels may be linked with.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Exports {
    file: String,
    symbols: BTreeMap<String, u32>,
    /// Where it reads the bank table, if that is not where the map has it.
    table: Option<u32>,
}

impl Exports {
    /// Those of the firmware file called `file`, on a map whose bank table is at `bank_table`. With
    /// another table than ours is built for, ours does not fill in its globals, and has none.
    pub(crate) fn read(file: &str, elf: &[u8], bank_table: u32) -> Self {
        let mut symbols = BTreeMap::new();
        if let Ok(parsed) = object::File::parse(elf) {
            for symbol in parsed.symbols().filter(|s| s.is_global()) {
                if let (Ok(name), Ok(address)) = (symbol.name(), u32::try_from(symbol.address())) {
                    symbols.insert(name.to_owned(), address);
                }
            }
        }
        let table = symbols.get(BANK_TABLE_SYMBOL).copied().filter(|&own| own != bank_table);
        Self { file: file.to_owned(), symbols, table }
    }
}

/// What a kernel was linked with of its firmware; nothing in a kernel of our own.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Imports {
    symbols: BTreeMap<String, u32>,
    /// How many banks it is compiled for, of each table that it reads.
    banks: [Option<u32>; 2],
}

/// The tables of banks, with what a kernel may say about them (`--defsym`) and what it is taken for
/// when neither it nor the firmware that it was linked with does: compiled for the seed's board.
const TABLES: [(&str, &str, u32); 2] = [
    (DRAM_BANK_XY.symbol, "__tilework_dram_banks", SEED_BANKS),
    (L1_BANK_XY.symbol, "__tilework_l1_banks", SEED_L1_BANKS),
];
/// Bytes of a table for each bank: two coordinates of 16 bits.
const TABLE_BYTES: u32 = 4;

impl Imports {
    /// Those of a kernel file that was checked before.
    pub(crate) fn read(elf: &[u8]) -> Self {
        let Ok(file) = object::File::parse(elf) else { return Self::default() };
        let absolute: BTreeMap<String, u32> = file
            .symbols()
            .filter(|s| s.section() == SymbolSection::Absolute)
            .filter_map(|s| Some((s.name().ok()?.to_owned(), u32::try_from(s.address()).ok()?)))
            .collect();
        if !absolute.contains_key(LOCAL_END_SYMBOL) && !absolute.contains_key(TEXT_END_SYMBOL) {
            return Self::default();
        }
        let used = referred(&file);
        let always = [LOCAL_END_SYMBOL, TEXT_END_SYMBOL, GLOBAL_POINTER_SYMBOL];
        let wanted = |name: &str, address: u32| always.contains(&name) || address >= LOCAL_BASE && used.contains(name);
        let banks = TABLES.map(|(table, says, usual)| {
            let size = super::symbol_size(elf, table).map(|bytes| bytes / TABLE_BYTES);
            used.contains(table).then(|| absolute.get(says).copied().or(size).unwrap_or(usual))
        });
        Self { symbols: absolute.into_iter().filter(|(name, address)| wanted(name, *address)).collect(), banks }
    }

    /// Whether the kernel was linked without any firmware.
    pub(crate) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// The address that a symbol had in the firmware that the kernel was linked with.
    pub(crate) fn address(&self, symbol: &str) -> Option<u32> {
        self.symbols.get(symbol).copied()
    }

    /// Checks that kernel `name` is compiled for so many banks of DRAM and of L1, where
    /// it uses them.
    ///
    /// # Errors
    /// Another number.
    pub(crate) fn check_banks(&self, name: &str, banks: [u32; 2]) -> Result<(), ElfError> {
        for (((_, says, _), compiled), banks) in TABLES.iter().zip(self.banks).zip(banks) {
            if let Some(found) = compiled.filter(|&compiled| compiled != banks) {
                let expected =
                    format!("{banks}: compile for the board's banks, and say so with --defsym={says}={banks}");
                return Err(ElfError::new(name, format!("banks ({says})"), found, expected));
            }
        }
        Ok(())
    }

    /// Checks that the firmware has each symbol where kernel `name` expects it.
    ///
    /// # Errors
    /// The first symbol that is elsewhere, or that the firmware does not have.
    pub(crate) fn check(&self, name: &str, exports: &Exports) -> Result<(), ElfError> {
        if let (Some(table), Some((symbol, address))) = (exports.table, self.symbols.first_key_value()) {
            let expected = format!("a kernel without firmware: {} reads the bank table at {table:#x}", exports.file);
            return Err(ElfError::new(name, format!("firmware symbol {symbol}"), format!("{address:#x}"), expected));
        }
        for (symbol, &address) in &self.symbols {
            let expected = match exports.symbols.get(symbol) {
                Some(&own) if own == address => continue,
                Some(own) => format!("{own:#x}, where {} has it", exports.file),
                None => format!("a symbol that {} has", exports.file),
            };
            let expected =
                format!("{expected}: the kernel was linked with other firmware; link it with this (--just-symbols)");
            return Err(ElfError::new(name, format!("firmware symbol {symbol}"), format!("{address:#x}"), expected));
        }
        Ok(())
    }
}

/// The names of the symbols that what is loaded refers to.
fn referred(file: &object::File<'_>) -> HashSet<String> {
    let loaded = file.sections().filter(|s| match s.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.0 & object::elf::SHF_ALLOC.0 != 0,
        _ => false,
    });
    let targets = loaded.flat_map(|s| s.relocations().map(|(_, reloc)| reloc.target()).collect::<Vec<_>>());
    let name = |target| match target {
        RelocationTarget::Symbol(index) => Some(file.symbol_by_index(index).ok()?.name().ok()?.to_owned()),
        _ => None,
    };
    targets.filter_map(name).collect()
}
