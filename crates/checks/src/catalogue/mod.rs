//! The catalogue: a row for each kind of finding, and for each way in which a run ends early.
//!
//! Ids are stable: none is used for something else later, and none is removed while a program file
//! or a script may name it.

pub mod memory;
pub mod protocol;
pub mod races;
pub mod stops;

use std::fmt;

/// One kind of finding.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The stable name, in lower case with hyphens; users write it.
    pub id: &'static str,
    /// What it is about.
    pub kind: Kind,
    /// How sure the simulator is that it is a mistake.
    pub certainty: Certainty,
    /// Whether anything looks for it. What nothing looks for yet has a row so that its id is known,
    /// and nobody takes its absence for a good sign.
    pub looked_for: bool,
    /// What it is, in one sentence without a full stop.
    pub title: &'static str,
    /// Why it is wrong and what comes of it.
    pub about: &'static str,
    /// A few lines of wrong code; empty where code does not show it.
    pub wrong: &'static str,
    /// The same lines, repaired.
    pub right: &'static str,
    /// What to do about it, in words.
    pub repair: &'static str,
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Memory: who owns it, and whether it was written.
    Memory,
    /// Rules between cores, NoC and coprocessor.
    Protocol,
    /// Accesses without order.
    Race,
    /// A way in which a run ends before its time.
    Stop,
}

impl Kind {
    /// All kinds, in the order of the documents.
    pub const ALL: [Self; 4] = [Self::Memory, Self::Protocol, Self::Race, Self::Stop];

    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Protocol => "protocol",
            Self::Race => "race",
            Self::Stop => "stop",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How sure the simulator is that something is a mistake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Certainty {
    /// No correct program does this.
    Certain,
    /// A correct program may do this for a reason. It is shown to who asks for it, and
    /// never ends a run.
    Suspicious,
}

impl Certainty {
    /// Its name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Certain => "certain",
            Self::Suspicious => "suspicious",
        }
    }
}

/// Rows of one kind: a name in code for each, and the list of them. `pending` behind the certainty
/// says that nothing looks for it yet.
macro_rules! rows {
    ($kind:ident; $($name:ident $id:literal $certainty:ident $($pending:ident)? $title:literal
        about $about:literal
        $(wrong $wrong:literal right $right:literal)?
        repair $repair:literal;)*) => {
        $(
            #[doc = concat!($title, ".")]
            pub static $name: $crate::catalogue::Row = $crate::catalogue::Row {
                id: $id,
                kind: $crate::catalogue::Kind::$kind,
                certainty: $crate::catalogue::Certainty::$certainty,
                looked_for: <[&str]>::is_empty(&[$(stringify!($pending))?]),
                title: $title,
                about: $about,
                wrong: concat!($($wrong)?),
                right: concat!($($right)?),
                repair: $repair,
            };
        )*
        /// The rows of this kind.
        pub static ROWS: &[&$crate::catalogue::Row] = &[$(&$name),*];
    };
}
pub(crate) use rows;

/// All rows: memory, protocol, races, stops.
pub fn all() -> impl Iterator<Item = &'static Row> {
    [memory::ROWS, protocol::ROWS, races::ROWS, stops::ROWS].into_iter().flatten().copied()
}

/// The rows of findings: all but those of ways in which a run ends.
pub fn findings() -> impl Iterator<Item = &'static Row> {
    all().filter(|row| row.kind != Kind::Stop)
}

/// The row of an id. Reports as data write the classes of faults with underscores; they are taken
/// as well.
pub fn find(id: &str) -> Option<&'static Row> {
    let id = id.replace('_', "-");
    all().find(|row| row.id == id)
}

/// Ids that an unknown one may have meant, the nearest first: at most three. Those that it is a
/// part of, whose words begin with its words in the same order, or that differ in few letters.
pub fn near(id: &str) -> Vec<&'static str> {
    /// From which similarity on an id is suggested: 1 less the part of the letters that differ.
    const LIKE: f64 = 0.6;
    let id = id.to_lowercase().replace(['_', ' '], "-");
    let begins = |row: &Row| {
        let mut words = row.id.split('-');
        id.split('-').all(|part| words.any(|word| word.starts_with(part)))
    };
    let likeness = |row: &Row| match id.len() > 2 && (row.id.contains(&id) || begins(row)) {
        true => 1.0,
        false => strsim::normalized_damerau_levenshtein(row.id, &id),
    };
    let mut known: Vec<(f64, &str)> =
        all().map(|row| (likeness(row), row.id)).filter(|(like, _)| *like > LIKE).collect();
    // A stable sort: equally near ones stay in the order of the catalogue.
    known.sort_by(|a, b| b.0.total_cmp(&a.0));
    known.into_iter().take(3).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_texts_have_one_form() {
        let mut seen = BTreeSet::new();
        for row in all() {
            let Row { id, title, about, wrong, right, repair, .. } = row;
            assert!(seen.insert(*id), "{id} twice");
            assert!(id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{id}");
            assert!(!title.ends_with('.') && title.len() <= 90, "{id}: {title}");
            assert!(about.ends_with('.') && repair.ends_with('.'), "{id}");
            assert_eq!(wrong.is_empty(), right.is_empty(), "{id}");
            assert_ne!((wrong, wrong.is_empty()), (right, false), "{id}: the repair changes something");
            for line in wrong.lines().chain(right.lines()) {
                assert!(line.len() <= 84 && !line.ends_with(' '), "{id}: {line}");
            }
            assert_eq!(find(id), Some(row));
        }
        assert_eq!(find("undefined_behaviour"), find("undefined-behaviour"));
        assert!(find("undefined_behaviour").is_some());
        assert_eq!(find(""), None);
    }

    mod sample {
        #![allow(unreachable_pub, reason = "rows are public")]
        crate::catalogue::rows! { Memory;
            PENDING "sample-pending" Certain pending "Is not looked for" about "It has a row." repair "Wait.";
            LOOKED_FOR "sample-looked-for" Certain "Is looked for" about "It has a row." repair "Change it.";
        }
    }

    #[test]
    fn a_row_may_be_there_before_anything_looks_for_it() {
        let looked_for: Vec<bool> = sample::ROWS.iter().map(|row| row.looked_for).collect();
        assert_eq!(looked_for, [false, true]);
    }

    /// The Rust sources of a folder but for those of the catalogue, in one text.
    fn sources(folder: &std::path::Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true if path.ends_with("catalogue") => {}
                true => sources(&path, text),
                false => *text += &std::fs::read_to_string(&path).unwrap(),
            }
        }
    }

    #[test]
    fn what_is_said_not_to_be_looked_for_and_nothing_else_is_reported_nowhere() {
        let mut text = String::new();
        sources(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
        let name = |row: &Row| row.id.replace('-', "_").to_uppercase();
        let words: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let pending: Vec<&Row> = all().filter(|row| !row.looked_for).collect();
        assert!(pending.iter().all(|row| row.kind != Kind::Stop));
        for row in pending {
            assert!(!words.contains(name(row).as_str()), "{} is looked for: its row need not be pending", row.id);
        }
        for row in findings().filter(|row| row.looked_for) {
            assert!(words.contains(name(row).as_str()), "{} is looked for nowhere: its row is pending", row.id);
        }
    }

    #[test]
    fn an_unknown_id_has_neighbours() {
        assert_eq!(near("l1-unwriten-read")[0], "l1-unwritten-read");
        assert_eq!(near("CB_PAGE_NOT_RESERVED")[0], "cb-page-not-reserved");
        assert!(near("trid").contains(&"noc-trid-reused"));
        assert!(near("noc-wait").contains(&"noc-not-waited"));
        for other in ["0123456789", "FOO", "noc-xyzzy-quux", "help", "-", ""] {
            assert_eq!(near(other), [""; 0], "{other}");
        }
    }
}
