//! Compares the results of two libraries and reports them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::child::Played;
use super::generate::Kind;
use super::known;
use super::script::{Op, Reply};

/// Operations shown before the first difference.
const HISTORY: usize = 8;

/// Verdict on a case.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All replies are equal, except for known differences.
    Same,
    /// The replies to operation `.0` differ.
    Differ(usize),
    /// Ours ended or hung in a script that the other ran to its end.
    OursRefuses(String),
    /// The other ended in a script that ours ran to its end.
    TheirsRefuses(String),
    /// Both ended.
    BothRefuse(String, String),
}

/// Compares the replies that both have, then the ends. Known differences do not end the comparison;
/// their reasons are returned.
pub(crate) fn judge(ops: &[Op], ours: &Played, theirs: &Played) -> (Verdict, Vec<&'static str>) {
    let mut reasons = Vec::new();
    for (i, (a, b)) in ours.replies.iter().zip(&theirs.replies).enumerate().filter(|(_, (a, b))| a != b) {
        match known::find(&ops[i], a, b) {
            Some(known) => reasons.push(known.reason),
            None => return (Verdict::Differ(i), reasons),
        }
    }
    let verdict = match (&ours.ended, &theirs.ended) {
        (None, None) => Verdict::Same,
        (Some(ours), None) => Verdict::OursRefuses(ours.clone()),
        (None, Some(theirs)) => Verdict::TheirsRefuses(theirs.clone()),
        (Some(ours), Some(theirs)) => Verdict::BothRefuse(ours.clone(), theirs.clone()),
    };
    (verdict, reasons)
}

impl Verdict {
    /// Whether it is a finding: ours is wrong, or at least differs.
    pub(crate) const fn is_finding(&self) -> bool {
        matches!(self, Self::Differ(_) | Self::OursRefuses(_))
    }

    /// Whether it is the same kind of outcome; for refusals also the same message except
    /// for numbers.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::OursRefuses(a), Self::OursRefuses(b)) => without_numbers(a) == without_numbers(b),
            (Self::Differ(_), Self::Differ(_)) => true,
            _ => false,
        }
    }

    const fn column(&self) -> usize {
        match self {
            Self::Same => 0,
            Self::Differ(_) => 1,
            Self::OursRefuses(_) => 2,
            Self::TheirsRefuses(_) => 3,
            Self::BothRefuse(..) => 4,
        }
    }
}

/// A message without numbers, so that equal messages can be counted.
fn without_numbers(message: &str) -> String {
    let is_number = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("0x")
    };
    let word = |word: &str| match word.split_once('=') {
        Some((name, _)) => format!("{name}="),
        None if is_number(word) => "#".to_owned(),
        None => word.to_owned(),
    };
    message.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

/// The operations around the first difference, with the replies of both sides.
pub(crate) fn history(ops: &[Op], ours: &Played, theirs: &Played, at: usize) -> String {
    let mut out = String::new();
    for (i, op) in ops.iter().enumerate().take(at + 1).skip(at.saturating_sub(HISTORY)) {
        let show = |played: &Played| match (played.replies.get(i), &played.ended) {
            (Some(reply), _) => reply.to_string(),
            (None, Some(words)) => format!("ended: {words}"),
            (None, None) => "no answer".to_owned(),
        };
        let (a, b) = (show(ours), show(theirs));
        let _ = match a == b {
            true => writeln!(out, "  {i:4} {op} -> {a}"),
            false => writeln!(out, "  {i:4} {op}\n         ours:   {a}\n         theirs: {b}"),
        };
        if let (Some(Reply::Bytes(a)), Some(Reply::Bytes(b))) = (ours.replies.get(i), theirs.replies.get(i)) {
            let _ = write!(out, "{}", bytes_apart(a, b));
        }
    }
    out
}

/// Describes the difference of two reads: the first byte, the number of bytes, and the 16 bytes
/// around the first one on both sides.
fn bytes_apart(a: &[u8], b: &[u8]) -> String {
    let apart: Vec<usize> = a.iter().zip(b).enumerate().filter(|(_, (a, b))| a != b).map(|(i, _)| i).collect();
    let (Some(&first), true) = (apart.first(), a.len() > 16) else { return String::new() };
    let from = first & !15;
    let part = |data: &[u8]| data[from..].iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
    format!(
        "         {} of {} bytes differ, the first at +{first:#x}; from +{from:#x}: ours {} theirs {}\n",
        apart.len(),
        a.len(),
        part(a),
        part(b)
    )
}

/// The table of outcomes and the messages behind the refusals.
#[derive(Default)]
pub(crate) struct Table {
    rows: BTreeMap<Kind, [u64; 5]>,
    messages: BTreeMap<(&'static str, String), (u64, Kind, u64)>,
}

impl Table {
    /// Counts a case.
    pub(crate) fn count(&mut self, kind: Kind, seed: u64, verdict: &Verdict, known: &[&'static str]) {
        self.rows.entry(kind).or_default()[verdict.column()] += 1;
        let mut say = |who, words: &str| {
            let entry = self.messages.entry((who, without_numbers(words))).or_insert((0, kind, seed));
            entry.0 += 1;
        };
        for reason in known {
            say("known", reason);
        }
        match verdict {
            Verdict::Same | Verdict::Differ(_) => {}
            Verdict::OursRefuses(words) => say("ours", words),
            Verdict::TheirsRefuses(words) => say("theirs", words),
            Verdict::BothRefuse(ours, theirs) => {
                say("ours, as theirs", ours);
                say("theirs, as ours", theirs);
            }
        }
    }

    /// Cases in which ours is wrong or differs.
    pub(crate) fn findings(&self) -> u64 {
        self.rows.values().map(|row| row[1] + row[2]).sum()
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "| kind | cases | same | differ | only ours refuses | only theirs refuses | both refuse |")?;
        writeln!(f, "|---|---:|---:|---:|---:|---:|---:|")?;
        for (kind, row) in &self.rows {
            write!(f, "| {} | {} |", kind.name(), row.iter().sum::<u64>())?;
            for count in row {
                write!(f, " {count} |")?;
            }
            writeln!(f)?;
        }
        for ((who, words), (count, kind, seed)) in &self.messages {
            writeln!(f, "{count} times {who}: {words}\n    first: --only {} --seed {seed} --cases 1", kind.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::generate::Case;
    use super::super::script::Place;
    use super::*;

    fn read(addr: u64) -> Op {
        Op::Read(Place::new((1, 2), addr), 4)
    }
    fn played(answers: &[[u8; 4]], ended: Option<&str>) -> Played {
        Played {
            replies: answers.iter().map(|word| Reply::Bytes(word.to_vec())).collect(),
            ended: ended.map(str::to_owned),
        }
    }

    #[test]
    fn the_first_difference_counts_and_a_known_one_does_not() {
        let ops = [read(0x10), read(0xFFB2_0100), read(0x20)];
        let ours = played(&[[1; 4], [0, 0x40, 0, 0], [2; 4]], None);
        let theirs = played(&[[1; 4], [0; 4], [3; 4]], None);
        let (verdict, known) = judge(&ops, &ours, &theirs);
        assert_eq!(verdict, Verdict::Differ(2));
        assert_eq!(known.len(), 1);
        // With the sides exchanged it is not the known difference.
        assert_eq!(judge(&ops, &theirs, &ours).0, Verdict::Differ(1));
    }

    #[test]
    fn an_end_before_the_script_is_a_refusal_of_that_side() {
        let ops = [read(0), read(4)];
        let (whole, half) = (played(&[[1; 4], [2; 4]], None), played(&[[1; 4]], Some("no")));
        assert_eq!(judge(&ops, &whole, &half).0, Verdict::TheirsRefuses("no".into()));
        assert_eq!(judge(&ops, &half, &whole).0, Verdict::OursRefuses("no".into()));
        assert_eq!(judge(&ops, &half, &half).0, Verdict::BothRefuse("no".into(), "no".into()));
    }

    #[test]
    fn messages_that_differ_in_numbers_are_one() {
        let a = without_numbers("[17] ERROR: bar0: offset=0x1fc0081c size=4");
        assert_eq!(a, without_numbers("[0] ERROR: bar0: offset=0x1fc00004 size=8"));
        assert_ne!(a, without_numbers("[0] ERROR: bar4: offset=0x1fc00004 size=8"));
    }

    #[test]
    fn a_seed_is_a_case_and_parts_can_be_left_out() {
        for kind in Kind::ALL {
            let scripts: Vec<_> = (0..20)
                .map(|seed| {
                    let case = Case::new(kind, seed);
                    let all = vec![true; case.parts()];
                    assert_eq!(case.script(&all), Case::new(kind, seed).script(&all));
                    assert!(case.script(&vec![false; case.parts()]) != case.script(&all), "{} {seed}", kind.name());
                    case.script(&all)
                })
                .collect();
            assert!((1..20).all(|seed| scripts[seed] != scripts[0]), "{}", kind.name());
        }
    }

    #[test]
    fn no_generated_program_has_a_word_that_does_not_encode() {
        for seed in 0..200 {
            let case = Case::new(Kind::Programs, seed);
            for op in case.script(&vec![true; case.parts()]) {
                // Programs start at a multiple of 0x6000 (the code) and are the only writes there
                // of more than a word.
                if let Op::Write(Place { addr: 0 | 0x6000 | 0xC000 | 0x1_2000 | 0x1_8000, .. }, bytes) = op {
                    assert!(bytes.len() < 0x6000, "seed {seed}: the program runs into the next");
                    assert!(bytes.as_chunks::<4>().0.iter().all(|word| *word != [0xFF; 4]), "seed {seed}");
                }
            }
        }
    }
}
