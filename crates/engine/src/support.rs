//! Which kinds of operations the native engine runs.

use tilework_model::ttnn::OpKind;

/// Whether a kind is supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is supported. A single operation can still be refused, for an attribute that host
    /// arithmetic does not implement.
    Yes,
    /// It is not supported, and why.
    No(&'static str),
}

/// Whether the native engine runs operations of a kind. Lowering comes from the same table, so that
/// the two cannot disagree.
pub fn support(kind: OpKind) -> Support {
    crate::lower::support(kind)
}
