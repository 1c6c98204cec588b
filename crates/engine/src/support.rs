//! Which kinds of operations the native engine runs.

use tilework_model::ttnn::OpKind;

/// Whether a kind is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is. Single uses can still be refused, for an attribute that host arithmetic has no
    /// meaning for.
    Yes,
    /// It is not, and why.
    No(&'static str),
}

/// Whether the native engine runs operations of a kind. Lowering is made of the same table, so this
/// cannot be out of date.
pub fn support(kind: OpKind) -> Support {
    crate::lower::support(kind)
}
