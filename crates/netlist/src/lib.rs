//! Buda netlists as types (seed 003, section Netlist): the language with positions, the checks,
//! sizes and memory.
//!
//! [`types`] describes a checked netlist, in which every reference is resolved. Nothing here
//! runs a netlist.

#![forbid(unsafe_code)]
#![warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod check;
pub mod code;
mod diagnostic;
pub mod format;
mod kind;
mod load;
pub mod memory;
mod read;
pub mod size;
pub mod tree;
pub mod types;

pub use code::Code;
pub use diagnostic::{Diagnostic, Diagnostics, Record, Severity};
pub use format::FORMATS;
pub use types::{Arch, Netlist};

/// Options of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// The architecture that the netlist must be valid for. `None`: at least one of those that it
    /// names; violations on the others are warnings.
    pub arch: Option<Arch>,
    /// Bounds on the input.
    pub budget: tree::Budget,
}

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The netlist, if there is no error.
    pub netlist: Option<Netlist>,
    /// The architectures that it is valid for.
    pub archs: Vec<Arch>,
    /// All findings, including warnings.
    pub diagnostics: Diagnostics,
}

/// Reads a netlist from the text of a file and checks it. `name` is the file's name, for messages.
///
/// # Errors
/// All errors of the file. Warnings alone are no error; [`check`] returns them as well.
pub fn read(name: &str, text: &str) -> Result<Netlist, Diagnostics> {
    let Checked { netlist, diagnostics, .. } = check(name, text, &Options::default());
    netlist.ok_or(diagnostics)
}

/// Reads and checks a netlist and returns all findings.
pub fn check(name: &str, text: &str, options: &Options) -> Checked {
    let mut diagnostics = Diagnostics::new(name);
    let root = match read::template(text, &mut diagnostics) {
        true => None,
        false => load::load(text, options.budget, &mut diagnostics),
    };
    let source = root.as_ref().and_then(|root| read::read(root, &mut diagnostics));
    let archs = source.as_ref().map(|source| check::check(source, options.arch, &mut diagnostics)).unwrap_or_default();
    let netlist = source.map(|source| source.netlist);
    if root.is_none() && diagnostics.errors() == 0 {
        let message = "the file is empty, not a netlist";
        diagnostics.push(Diagnostic::new(code::NOT_A_NETLIST, tree::Span::default(), message));
    }
    diagnostics.finish(text);
    let netlist = netlist.filter(|_| diagnostics.errors() == 0);
    Checked { netlist, archs, diagnostics }
}
