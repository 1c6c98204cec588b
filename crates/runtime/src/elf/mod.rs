//! ELF files of firmware and kernels: checks, loading, relocation and symbols.
//!
//! Firmware is linked for its final place and copied there ([`FirmwareImage`]). A kernel runs
//! wherever the kernel configuration puts it, so it is one run of bytes with a list of the places
//! that depend on its address ([`KernelImage`], `reloc`). Both keep their file, because reports
//! turn program counters into functions and source lines (`symbols`). A kernel that was linked with
//! firmware runs under no other (`exports`).
//!
//! A file from outside is hostile until it is checked: every offset is bounds-checked, sizes have
//! budgets, and an error names the file, the field, what was found and what was expected.

mod exports;
mod image;
mod listing;
mod prints;
mod read;
mod reloc;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use exports::Exports;
pub use image::{FirmwareImage, KernelImage};
pub(crate) use image::{Outline, symbol_address, symbol_size};
pub use listing::{ListedFunction, ListedWord, list};
pub(crate) use prints::{KernelPrints, device_texts};
pub(crate) use tilework_lines::initial_word;
pub use tilework_lines::{SourceFrame, SourceLocation};

/// Budget of an ELF file in bytes: debug information included, far more than any kernel has.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// What is wrong with an ELF file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}: {field}: found {found}, expected {expected}")]
pub struct ElfError {
    /// The file.
    pub file: String,
    /// The field, segment or relocation.
    pub field: String,
    /// What is there.
    pub found: String,
    /// What should be there.
    pub expected: String,
}

impl ElfError {
    pub(crate) fn new(file: &str, field: impl Into<String>, found: impl ToString, expected: impl Into<String>) -> Self {
        let (field, found, expected) = (field.into(), found.to_string(), expected.into());
        // Some of it are names of the file.
        let shown = |text: &str| tilework_text::plain(text).into_owned();
        Self { file: shown(file), field: shown(&field), found: shown(&found), expected }
    }
}
