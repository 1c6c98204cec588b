//! Findings with the source lines of their places, as they are told to a user.

use crate::finding::Finding;
use crate::policy::{Allow, Level, Policy};
use std::collections::BTreeMap;
use std::fmt;
use tilework_abi::noc::NocXy;

/// Where an instruction is in the source, and in what.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Source {
    /// What runs there, in words: the firmware, or a kernel of a program.
    pub runs: String,
    /// The name of the kernel; none for firmware and unknown code.
    pub kernel: Option<String>,
    /// The function, and those that it was inlined into, innermost first.
    pub frames: Vec<Frame>,
    /// The position of the frame that is the kernel's own: further in are those of libraries.
    pub own: usize,
}

/// A function, and where in it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Frame {
    /// The function.
    pub function: String,
    /// The file and the line, from 1 on, as the debug information has them.
    pub line: Option<(String, u32)>,
    /// The column, from 1 on.
    pub column: Option<u32>,
}

impl Source {
    /// The place in the kernel's own code.
    pub fn place(&self) -> Option<&Frame> {
        self.frames.get(self.own)
    }
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match (&self.line, self.column) {
            (Some((file, line)), Some(column)) => write!(f, " ({file}:{line}:{column})"),
            (Some((file, line)), None) => write!(f, " ({file}:{line})"),
            (None, _) => Ok(()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.runs)?;
        if let Some(own) = self.place() {
            write!(f, ", {own}")?;
        }
        match self.frames.first() {
            Some(inner) if self.own > 0 => write!(f, "\n    through {inner}"),
            _ => Ok(()),
        }
    }
}

/// A finding with the sources of its two sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// The finding; of several that are told as one the first.
    pub finding: Finding,
    /// The source of its place.
    pub source: Option<Source>,
    /// The source of its other side.
    pub other_source: Option<Source>,
    /// The tiles on which it was seen, in the order of the findings.
    pub tiles: Vec<NocXy>,
}

impl Told {
    /// A finding of one tile.
    pub fn new(finding: Finding, source: Option<Source>, other_source: Option<Source>) -> Self {
        let tiles = vec![finding.place.tile];
        Self { finding, source, other_source, tiles }
    }
}

/// All that is told at the end of a run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TellAll {
    /// The findings, those of one source line on several tiles as one.
    pub findings: Vec<Told>,
    /// How often something was found that is allowed where it is.
    pub allowed: u64,
    /// `--allow`s with a place that no finding needed.
    pub unused: Vec<Allow>,
    /// How often something was found that nobody could keep.
    pub left_out: u64,
}

impl TellAll {
    /// What a policy leaves of all findings.
    pub fn of(policy: &Policy, all: impl IntoIterator<Item = Told>, left_out: u64) -> Self {
        let mut told = Self { left_out, unused: policy.allow().to_vec(), ..Self::default() };
        let mut known = BTreeMap::new();
        for one in all {
            if policy.level_of(&one) == Level::Off {
                told.unused.retain(|allow| !allow.covers(&one));
                told.allowed += one.finding.count;
                continue;
            }
            // Without a line, code is told by its address.
            let code = |source: &Option<Source>, place: Option<&crate::Place>| {
                let frame = source.as_ref().and_then(Source::place).filter(|frame| frame.line.is_some()).cloned();
                let code = if frame.is_none() { place.and_then(|place| place.code) } else { None };
                (source.as_ref().map(|source| source.runs.clone()), frame, code)
            };
            let Finding { check, place, other, .. } = &one.finding;
            let sides = (code(&one.source, Some(place)), code(&one.other_source, other.as_ref()));
            let key = (check.id, place.agent, other.as_ref().map(|other| other.agent), sides);
            match known.get(&key) {
                Some(&at) => {
                    let same: &mut Told = &mut told.findings[at];
                    same.finding.count += one.finding.count;
                    let new = one.tiles.into_iter().filter(|tile| !same.tiles.contains(tile));
                    let new: Vec<NocXy> = new.collect();
                    same.tiles.extend(new);
                }
                None => {
                    known.insert(key, told.findings.len());
                    told.findings.push(one);
                }
            }
        }
        // One for everywhere keeps findings from being made: nobody knows whether it was needed.
        told.unused.retain(Allow::has_place);
        told
    }
}

/// The lines for people, each ended; none when there is nothing to say.
impl fmt::Display for TellAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { findings, allowed, unused: _, left_out } = self;
        match (findings.len(), allowed) {
            (0, 0) => {}
            (0, n) => writeln!(f, "no findings but for {n} that are allowed")?,
            (n, 0) => writeln!(f, "findings: {n}")?,
            (n, allowed) => writeln!(f, "findings: {n}, and {allowed} that are allowed")?,
        }
        for told in findings {
            writeln!(f, "{told}\n  tilework explain {} says more", told.finding.check.id)?;
        }
        if *left_out > 0 { writeln!(f, "and {left_out} more, which are only counted") } else { Ok(()) }
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Tiles that are named one by one.
        const NAMED: usize = 6;
        let Finding { check, place, what, other, missing, count } = &self.finding;
        write!(f, "{}: {what}", check.id)?;
        let side = |f: &mut fmt::Formatter<'_>, place: &crate::Place, source: &Option<Source>| {
            write!(f, "\n  {place}")?;
            source.as_ref().map_or(Ok(()), |source| write!(f, "\n    in {source}"))
        };
        side(f, place, &self.source)?;
        if let Some(other) = other {
            side(f, other, &self.other_source)?;
        }
        if let Some(missing) = missing {
            write!(f, "\n  missing: {missing}")?;
        }
        if *count > 1 || self.tiles.len() > 1 {
            let named: Vec<String> = self.tiles.iter().take(NAMED).map(NocXy::to_string).collect();
            let more = self.tiles.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            write!(f, "\n  seen {count} times, on {}{more}", named.join(" "))?;
        }
        Ok(())
    }
}
