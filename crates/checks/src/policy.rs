//! Which findings a user wants to see, and what becomes of a run that has some.

use crate::catalogue::{self, Certainty, Kind, Row};
use crate::told::Told;
use std::fmt;

/// What findings do to a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Nothing is checked.
    Off,
    /// Findings are reported.
    Warn,
    /// The first finding ends the run.
    Error,
}

/// A word of `--checks`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Word {
    /// A level.
    Level(Level),
    /// Also look for races.
    Races,
    /// Also report what correct programs do now and then.
    Suspicious,
}

impl Word {
    /// The words as users write them, with what they mean.
    pub const ALL: [(&'static str, Self, &'static str); 5] = [
        ("off", Self::Level(Level::Off), "check nothing"),
        ("warn", Self::Level(Level::Warn), "report findings"),
        ("error", Self::Level(Level::Error), "end the run at the first finding that is certainly a mistake"),
        ("races", Self::Races, "also look for accesses without order"),
        ("suspicious", Self::Suspicious, "also report what correct programs do now and then"),
    ];

    /// Reads a word.
    ///
    /// # Errors
    /// A word that is none of them.
    pub fn parse(text: &str) -> Result<Self, BadPolicy> {
        let known = Self::ALL.iter().find(|(name, ..)| *name == text);
        known.map(|(_, word, _)| *word).ok_or_else(|| BadPolicy::UnknownWord(text.to_owned()))
    }
}

/// One `--allow`: findings of an id that are meant to be, everywhere or in one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allow {
    /// The kind of finding.
    pub check: &'static Row,
    /// Where: none for everywhere.
    at: Option<At>,
}

/// A place by name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum At {
    /// A line of a file, whose path ends with this one.
    Line(String, u32),
    /// A file, whose path ends with this one, or a kernel of this name.
    Name(String),
}

/// Words that make no policy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BadPolicy {
    /// Nothing that `--checks` knows.
    UnknownWord(String),
    /// Two levels, or more to look for without checks.
    Both(&'static str, &'static str),
    /// No finding has this id.
    UnknownId(String),
    /// `@` without a place, or a line that is no number.
    BadPlace(String),
}

impl fmt::Display for BadPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownWord(_) => {
                let all: Vec<String> = Word::ALL.iter().map(|(name, _, what)| format!("{name} ({what})")).collect();
                write!(f, "expected {}", all.join(", "))
            }
            Self::Both(one, other) => write!(f, "{one} and {other} exclude each other"),
            Self::UnknownId(id) => {
                write!(f, "no finding has the id {id:?}")?;
                let near = catalogue::near(id);
                if near.is_empty() { Ok(()) } else { write!(f, "; there is {}", near.join(", ")) }
            }
            Self::BadPlace(text) => {
                write!(f, "{text:?}: expected ID, ID@KERNEL, ID@FILE or ID@FILE:LINE, with a line from 1 on")
            }
        }
    }
}

impl std::error::Error for BadPolicy {}

impl Allow {
    /// Reads `ID`, `ID@KERNEL`, `ID@FILE` or `ID@FILE:LINE`.
    ///
    /// # Errors
    /// An unknown id, or a place that cannot be read.
    pub fn parse(text: &str) -> Result<Self, BadPolicy> {
        let (id, place) = match text.split_once('@') {
            Some((id, place)) => (id, Some(place)),
            None => (text, None),
        };
        let check = catalogue::findings().find(|row| row.id == id);
        let check = check.ok_or_else(|| BadPolicy::UnknownId(id.to_owned()))?;
        let bad = || BadPolicy::BadPlace(text.to_owned());
        let at = match place.map(|place| (place, place.rsplit_once(':'))) {
            None => None,
            Some(("", _)) => return Err(bad()),
            // The kernels that come with the command are called so.
            Some((name, Some(("prebuilt", kernel)))) if !kernel.is_empty() => Some(At::Name(name.to_owned())),
            Some((_, Some((file, line)))) => {
                let line = line.parse().ok().filter(|&line| line > 0 && !file.is_empty()).ok_or_else(bad)?;
                Some(At::Line(file.to_owned(), line))
            }
            Some((name, None)) => Some(At::Name(name.to_owned())),
        };
        Ok(Self { check, at })
    }

    /// Whether it names a place.
    pub fn has_place(&self) -> bool {
        self.at.is_some()
    }

    /// Whether a finding is one of those. It is by either of its sides, and by any of the functions
    /// that an instruction was inlined into.
    pub fn covers(&self, told: &Told) -> bool {
        let Some(at) = &self.at else { return told.finding.check == self.check };
        let sides = [&told.source, &told.other_source].into_iter().flatten();
        told.finding.check == self.check
            && sides.into_iter().any(|source| {
                let mut lines = source.frames.iter().filter_map(|frame| frame.line.as_ref());
                match at {
                    At::Line(file, line) => lines.any(|(path, at)| at == line && is_file(path, file)),
                    At::Name(name) => {
                        source.kernel.as_ref() == Some(name) || lines.any(|(path, _)| is_file(path, name))
                    }
                }
            })
    }
}

/// Whether a path ends with the parts of another.
fn is_file(path: &str, end: &str) -> bool {
    path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('/') || end.starts_with('/'))
}

impl fmt::Display for Allow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.at {
            None => f.write_str(self.check.id),
            Some(At::Line(file, line)) => write!(f, "{}@{file}:{line}", self.check.id),
            Some(At::Name(name)) => write!(f, "{}@{name}", self.check.id),
        }
    }
}

/// What is looked for, and what becomes of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    level: Level,
    races: bool,
    suspicious: bool,
    allow: Vec<Allow>,
}

impl Default for Policy {
    fn default() -> Self {
        Self { level: Level::Warn, races: false, suspicious: false, allow: Vec::new() }
    }
}

impl Policy {
    /// The policy of these words, in any order; without a level it is [`Level::Warn`].
    ///
    /// # Errors
    /// Words that exclude each other: two levels, or races with checks off.
    pub fn new(words: &[Word], allow: Vec<Allow>) -> Result<Self, BadPolicy> {
        let mut level = None;
        for word in words {
            match (word, level) {
                (Word::Level(one), Some(other)) if *one != other => {
                    return Err(BadPolicy::Both(name(other), name(*one)));
                }
                (Word::Level(one), _) => level = Some(*one),
                (Word::Races | Word::Suspicious, _) => {}
            }
        }
        let [races, suspicious] = [Word::Races, Word::Suspicious].map(|word| words.contains(&word));
        let level = level.unwrap_or(Level::Warn);
        match (level, races) {
            (Level::Off, true) => Err(BadPolicy::Both("off", "races")),
            (Level::Off, _) if suspicious => Err(BadPolicy::Both("off", "suspicious")),
            _ => Ok(Self { level, races, suspicious, allow }),
        }
    }

    /// The policy of two lists with commas, as the environment has them: words, and what is
    /// allowed. Without words nothing is checked.
    ///
    /// # Errors
    /// An unknown word or id, a place that cannot be read, words that exclude each other.
    pub fn parse(words: &str, allow: &str) -> Result<Self, BadPolicy> {
        fn list(text: &str) -> impl Iterator<Item = &str> {
            text.split(',').map(str::trim).filter(|part| !part.is_empty())
        }
        let words: Vec<Word> = list(words).map(Word::parse).collect::<Result<_, _>>()?;
        let allow = list(allow).map(Allow::parse).collect::<Result<_, _>>()?;
        if words.is_empty() { Ok(Self { allow, ..Self::off() }) } else { Self::new(&words, allow) }
    }

    /// A policy that checks nothing.
    pub fn off() -> Self {
        Self { level: Level::Off, ..Self::default() }
    }

    /// The level of what is certainly a mistake.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Whether accesses without order are looked for.
    pub fn races(&self) -> bool {
        self.races
    }

    /// What is allowed.
    pub fn allow(&self) -> &[Allow] {
        &self.allow
    }

    /// Whether a finding of this kind may be of interest: it is not switched off, and not allowed
    /// everywhere.
    pub fn wants(&self, check: &'static Row) -> bool {
        let on = self.level != Level::Off
            && (check.kind != Kind::Race || self.races)
            && (check.certainty != Certainty::Suspicious || self.suspicious);
        on && !self.allow.iter().any(|allow| allow.check == check && allow.at.is_none())
    }

    /// Whether a finding of this kind ends the run wherever it is. What may be allowed at its place
    /// is judged at the end of the run, when places are known.
    pub fn ends_at_once(&self, check: &'static Row) -> bool {
        self.level == Level::Error
            && check.certainty == Certainty::Certain
            && self.wants(check)
            && !self.allow.iter().any(|allow| allow.check == check)
    }

    /// Whether it is not known before the end of the run if a finding of this kind is allowed where
    /// it is.
    pub fn waits_for_place(&self, check: &'static Row) -> bool {
        self.allow.iter().any(|allow| allow.check == check && allow.at.is_some())
    }

    /// What a finding does to the run: nothing, if it is allowed where it is.
    pub fn level_of(&self, told: &Told) -> Level {
        let check = told.finding.check;
        match check.certainty {
            _ if !self.wants(check) || self.allow.iter().any(|allow| allow.covers(told)) => Level::Off,
            Certainty::Certain => self.level,
            Certainty::Suspicious => Level::Warn,
        }
    }
}

fn name(level: Level) -> &'static str {
    Word::ALL.iter().find(|(_, word, _)| *word == Word::Level(level)).map_or("", |(name, ..)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{memory, protocol};
    use crate::finding::{Agent, Code, Finding, Place};
    use crate::told::{Frame, Source, TellAll};
    use tilework_abi::noc::NocXy;
    use tilework_abi::tensix::Processor;

    /// A finding at a line of a file, in kernel `reader` of the tile in column `x`.
    fn told(check: &'static Row, x: u8, file: &str, line: u32) -> Told {
        let core = Processor::Ncrisc;
        let code = Some(Code { core, pc: line });
        let place = Place { tile: NocXy::new(x, 2), agent: Agent::Core(core), code, cycle: 7, target: None };
        let source = Source {
            runs: "kernel reader of program p".into(),
            kernel: Some("reader".into()),
            frames: vec![Frame { function: "main".into(), line: Some((file.into(), line)), column: None }],
            own: 0,
        };
        Told::new(Finding::new(check, place, "reads 4 bytes"), Some(source), None)
    }

    const ERROR: Word = Word::Level(Level::Error);

    #[test]
    fn words_make_one_level_and_races_with_it() {
        let policy = |words: &[Word]| Policy::new(words, Vec::new());
        assert_eq!(policy(&[]), Ok(Policy::default()));
        let races = policy(&[Word::Races]).unwrap();
        assert_eq!((races.level(), races.races()), (Level::Warn, true));
        let both = policy(&[Word::Races, ERROR, ERROR]).unwrap();
        assert_eq!((both.level(), both.races()), (Level::Error, true));
        let off = Word::Level(Level::Off);
        assert_eq!(policy(&[off, ERROR]), Err(BadPolicy::Both("off", "error")));
        assert_eq!(policy(&[Word::Races, off]), Err(BadPolicy::Both("off", "races")));
        assert_eq!(policy(&[Word::Suspicious, off]), Err(BadPolicy::Both("off", "suspicious")));
        assert!(!policy(&[off]).unwrap().wants(&memory::L1_NULL));
        let wants = |words: &[Word]| policy(words).unwrap().wants(&memory::LOCAL_UNWRITTEN_READ);
        assert_eq!([wants(&[]), wants(&[Word::Suspicious])], [false, true]);
    }

    #[test]
    fn lists_of_the_environment_are_words_and_what_is_allowed() {
        let policy = Policy::parse("races, error", "l1-null@reader.rs:41,l1-text").unwrap();
        assert_eq!((policy.level(), policy.races(), policy.allow().len()), (Level::Error, true, 2));
        assert_eq!(Policy::parse("", ""), Ok(Policy::off()));
        assert_eq!(Policy::parse("warn", "").unwrap().level(), Level::Warn);
        assert_eq!(Policy::parse("races,wran", ""), Err(BadPolicy::UnknownWord("wran".into())));
        assert_eq!(Policy::parse("warn", "l1-nul"), Err(BadPolicy::UnknownId("l1-nul".into())));
        assert!(Policy::parse("off,races", "").is_err());
    }

    #[test]
    fn an_error_is_what_is_certain_and_not_allowed() {
        let allow = ["l1-null@reader.rs:41", "l1-text"].map(|text| Allow::parse(text).unwrap());
        let policy = Policy::new(&[ERROR, Word::Suspicious], allow.into()).unwrap();
        let level = |told: Told| policy.level_of(&told);
        assert_eq!(level(told(&memory::L1_NULL, 1, "src/reader.rs", 41)), Level::Off);
        assert_eq!(level(told(&memory::L1_NULL, 1, "src/reader.rs", 42)), Level::Error);
        assert_eq!(level(told(&memory::L1_TEXT, 1, "src/reader.rs", 1)), Level::Off);
        assert_eq!(level(told(&protocol::NOC_TOO_LONG, 1, "src/reader.rs", 1)), Level::Warn);
        assert!(policy.wants(&memory::L1_NULL) && !policy.wants(&memory::L1_TEXT));
    }

    #[test]
    fn an_allowed_place_is_a_line_a_file_or_a_kernel() {
        let finding = told(&memory::L1_NULL, 1, "/home/me/kernels/reader.rs", 41);
        for (text, covers) in [
            ("l1-null", true),
            ("l1-text", false),
            ("l1-null@reader", true),
            ("l1-null@read", false),
            ("l1-null@reader.rs", true),
            ("l1-null@kernels/reader.rs", true),
            ("l1-null@prebuilt:reader", false),
            ("l1-null@/home/me/kernels/reader.rs", true),
            ("l1-null@der.rs", false),
            ("l1-null@reader.rs:41", true),
            ("l1-null@reader.rs:4", false),
        ] {
            let allow = Allow::parse(text).unwrap();
            assert_eq!(allow.covers(&finding), covers, "{text}");
            assert_eq!(allow.to_string(), text);
        }
        for wrong in ["l1-nul", "", "deadlock", "l1-null@", "l1-null@a.rs:0", "l1-null@a.rs:x", "l1-null@:4"] {
            assert!(Allow::parse(wrong).is_err(), "{wrong}");
        }
        assert!(Allow::parse("l1-nul").unwrap_err().to_string().contains("l1-null"));
    }

    #[test]
    fn one_line_on_several_tiles_is_told_once() {
        let allow = ["l1-null@reader.rs:9", "l1-text@nowhere"].map(|text| Allow::parse(text).unwrap());
        let policy = Policy::new(&[], allow.into()).unwrap();
        let null = |x, line| told(&memory::L1_NULL, x, "reader.rs", line);
        let all = [null(1, 41), null(2, 41), null(1, 9), null(2, 42), null(2, 41)];
        let told = TellAll::of(&policy, all, 3);
        let seen: Vec<_> = told.findings.iter().map(|t| (t.finding.count, t.tiles.len())).collect();
        assert_eq!(seen, [(3, 2), (1, 1)]);
        assert_eq!((told.allowed, told.left_out), (1, 3));
        let unused: Vec<String> = told.unused.iter().map(Allow::to_string).collect();
        assert_eq!(unused, ["l1-text@nowhere"]);
        let text = told.findings[0].to_string();
        let expected = "\
l1-null: reads 4 bytes
  NCRISC of (1,2), cycle 7, pc 0x29
    in kernel reader of program p, main (reader.rs:41)
  seen 3 times, on (1,2) (2,2)";
        assert_eq!(text, expected);
    }
}
