//! The known schemas and their differences.
//!
//! A file states the hash of the schema that its compiler was built with; the format itself does
//! not describe the layout of tables, and version numbers are always 0.0.0. A file of an unknown
//! schema is therefore refused, unless the caller asks to read it by the names of its operations
//! ([`crate::Options`]). Then each edition's layouts are tried, and the file must be readable as a
//! whole by one of them.
//!
//! The kind of an operation is resolved by its ordinal in the list of a known schema, and by its
//! name; where both exist they must agree. Only the list of the public schema is complete: those of
//! the plugin hold what was seen in their files.
//!
//! The layouts are those of the public schema, `include/ttmlir/Target/**.fbs` of tt-mlir at commit
//! 19c86fca45 (2026-08-21). The changes of later compilers were inferred from files that the PyPI
//! package `jax-tt-plugin` 0.1.0 to 0.1.3 wrote.

mod known;

use crate::error::Reason;
use crate::ttnn::{OpKind, names};

/// The editions of the layouts, in chronological order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum Edition {
    /// The public schema of August 2026.
    #[default]
    #[serde(rename = "public_2026_08")]
    August2026,
    /// `jax-tt-plugin` 0.1.0: matrix products can be fused with SwiGLU, traces are
    /// chosen by inputs.
    #[serde(rename = "plugin_0_1_0")]
    Plugin010,
    /// `jax-tt-plugin` 0.1.1: matrix products are as in the public schema again.
    #[serde(rename = "plugin_0_1_1")]
    Plugin011,
    /// `jax-tt-plugin` 0.1.2: functions of two tensors have activations before and after, the angle
    /// (`atan2`) is a separate kind, and three-dimensional convolutions have a dilation.
    #[serde(rename = "plugin_0_1_2")]
    Plugin012,
    /// `jax-tt-plugin` 0.1.3: average pooling can be given its divisor; traces are no longer chosen
    /// by inputs, but state how many of their inputs stay on the device; products of matrices can
    /// be asked to keep float32.
    #[serde(rename = "plugin_0_1_3")]
    Plugin013,
}

/// The features of an edition, to which the declarations of tables refer.
impl Edition {
    /// All editions, the most likely layouts of an unknown schema first.
    pub(crate) const ALL: [Self; 5] =
        [Self::Plugin013, Self::Plugin012, Self::Plugin011, Self::Plugin010, Self::August2026];

    pub(crate) fn fused_swiglu(self) -> bool {
        self == Self::Plugin010
    }

    pub(crate) fn trace_keys(self) -> bool {
        (Self::Plugin010..=Self::Plugin012).contains(&self)
    }

    pub(crate) fn resident_inputs(self) -> bool {
        self >= Self::Plugin013
    }

    pub(crate) fn fp32_exact(self) -> bool {
        self >= Self::Plugin013
    }

    pub(crate) fn activations(self) -> bool {
        self >= Self::Plugin012
    }

    pub(crate) fn atan2_apart(self) -> bool {
        self >= Self::Plugin012
    }

    pub(crate) fn divisor_override(self) -> bool {
        self >= Self::Plugin013
    }

    pub(crate) fn conv3d_dilation(self) -> bool {
        self >= Self::Plugin012
    }
}

/// A schema that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// Identifier of the files.
    pub(crate) identifier: &'static str,
    /// Hash that they state.
    pub(crate) hash: &'static str,
    /// The compiler that writes such files.
    pub(crate) name: &'static str,
    /// Their layouts.
    pub(crate) edition: Edition,
}

/// The schema of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schema {
    /// Its layouts.
    pub(crate) edition: Edition,
    /// Its entry in the list of known ones.
    pub(crate) known: Option<&'static Known>,
    /// Its hash, as the file states it.
    pub(crate) hash: String,
    /// Kinds of the ordinals that were resolved by name, in the order in which they occurred.
    pub(crate) resolved: Vec<(u8, OpKind)>,
}

impl Schema {
    /// The schema of that hash in files of that identifier, with these layouts if it is not known.
    pub(crate) fn of(identifier: &str, hash: &str, edition_if_unknown: Edition) -> Self {
        let known = known::KNOWN.iter().find(|known| known.identifier == identifier && known.hash == hash);
        let edition = known.map_or(edition_if_unknown, |known| known.edition);
        Self { edition, known, hash: hash.to_owned(), resolved: Vec::new() }
    }

    /// Names of the known schemas of that identifier, for messages.
    pub(crate) fn names_of_known(identifier: &str) -> String {
        let names: Vec<_> =
            known::KNOWN.iter().filter(|known| known.identifier == identifier).map(|known| known.name).collect();
        names.join(", ")
    }

    /// The kind of an operation, from its ordinal and its text. They must agree with each other and
    /// with the operations before it.
    pub(crate) fn resolve(&mut self, ordinal: u8, debug_info: &str) -> Result<OpKind, Reason> {
        let listed = self.known.and_then(|known| find(known.ordinals(), ordinal));
        let named = names::meaning_of(debug_info, self.edition).map(|meaning| meaning.kind);
        let name = || names::name_of(debug_info).unwrap_or("without a name").to_owned();
        let conflict = |first: OpKind, because: String, second: OpKind| Reason::AmbiguousOrdinal {
            ordinal,
            first: first.name(),
            because,
            name: name(),
            second: second.name(),
        };
        let kind = match (listed, named) {
            (Some(kind), None) => return Ok(kind),
            (Some(kind), Some(second)) if kind == second => return Ok(kind),
            (Some(first), Some(second)) => {
                let because = format!("by the schema of {}", self.known.map_or("", |known| known.name));
                return Err(conflict(first, because, second));
            }
            // An operation without a name is of the kind of others with its ordinal; one with an
            // unknown name could be of any kind.
            (None, None) => {
                let earlier = find(self.resolved(), ordinal).filter(|_| names::name_of(debug_info).is_none());
                let unknown = || Reason::UnknownOperation { name: name(), ordinal, hash: self.hash.clone() };
                return earlier.ok_or_else(unknown);
            }
            (None, Some(kind)) => kind,
        };
        match find(self.resolved(), ordinal) {
            Some(first) if first == kind => return Ok(kind),
            Some(first) => return Err(conflict(first, "by the name of an operation before it".into(), kind)),
            None => {}
        }
        let listed = self.known.into_iter().flat_map(Known::ordinals);
        if let Some((first, _)) = listed.chain(self.resolved()).find(|(_, other)| *other == kind) {
            return Err(Reason::AmbiguousKind { kind: kind.name(), first, second: ordinal });
        }
        self.resolved.push((ordinal, kind));
        Ok(kind)
    }

    fn resolved(&self) -> impl Iterator<Item = (u8, OpKind)> {
        self.resolved.iter().copied()
    }
}

fn find(mut ordinals: impl Iterator<Item = (u8, OpKind)>, ordinal: u8) -> Option<OpKind> {
    ordinals.find(|(known, _)| *known == ordinal).map(|(_, kind)| kind)
}
