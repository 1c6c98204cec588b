//! What observes the card: checks, races, a timeline, a page of pictures, as [`Wanted`] says.
//!
//! The host on the other side of the library tells nothing about buffers, programs and kernels. So
//! the checks are those that need no owner ([`CheckObserver::of_stranger`]), and places are named
//! by program counter and, where the ELF file is found, by source line ([`Sources`]).

use crate::environment::Wanted;
use crate::messages::{Kind, say, say_lines};
use crate::sources::Sources;
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;
use tilework_checks::data::FindingData;
use tilework_checks::{Allow, CheckObserver, Checks, Level, RaceObserver, TellAll, Told};
use tilework_profile::{CLOCK, ChipTimeline, Choice, Listeners, Picture, Tracker, page};
use tilework_sim::{Chip, Event, Observer, Wants, What};
use tilework_timeline::Stream;

/// What was found on all cards since the library was loaded.
static FOUND: Mutex<Vec<CardData>> = Mutex::new(Vec::new());

/// The findings of a card. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct CardData {
    level: &'static str,
    races: bool,
    /// Loads, stores and atomics of cores that were looked at.
    accesses: u64,
    /// Requests of NIUs that were looked at.
    requests: u64,
    findings: Vec<FindingData>,
    allowed: u64,
    unused_allow: Vec<String>,
    left_out: u64,
}

/// The file of `TILEWORK_FINDINGS`.
#[derive(Serialize)]
struct FoundData<'a> {
    cards: &'a [CardData],
}

/// How much was looked at.
#[derive(Default, Debug)]
struct Counts {
    accesses: u64,
    requests: u64,
}

impl Observer for Counts {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::NOC
    }
    fn events(&mut self, events: &[Event]) {
        for event in events {
            match event.what {
                What::Load { .. } | What::Store { .. } | What::Atomic { .. } => self.accesses += 1,
                What::Request(_) => self.requests += 1,
                _ => {}
            }
        }
    }
}

/// Checks of a card.
struct Checked {
    checks: Arc<Mutex<Checks>>,
    races: Option<Arc<Mutex<RaceObserver>>>,
    counts: Arc<Mutex<Counts>>,
    file: Option<PathBuf>,
    /// Findings that were looked at: whether one of them is an error.
    judged: usize,
}

/// What observes a card.
#[derive(Default)]
pub(crate) struct Looking {
    checked: Option<Checked>,
    tracker: Option<Arc<Mutex<Tracker>>>,
    html: Option<PathBuf>,
    trace: Option<PathBuf>,
}

impl Looking {
    /// Has a chip observed as it is wanted.
    pub(crate) fn begin(wanted: Wanted, chip: &mut Chip, board: Board) -> Self {
        let checked = (wanted.policy.level() != Level::Off).then(|| Checked::begin(&wanted, chip, board));
        let (mut timeline, mut trace) = (None, None);
        if let Some((path, format)) = wanted.trace {
            let stream = File::create(&path).map_err(|error| error.to_string()).and_then(|file| {
                let out: Box<dyn Write + Send> = Box::new(BufWriter::new(file));
                Stream::new(out, format, CLOCK, wanted.window).map_err(|error| error.to_string())
            });
            match stream {
                Ok(stream) => {
                    timeline = Some(ChipTimeline::new(stream, Choice { tiles: wanted.tiles }));
                    trace = Some(path);
                }
                Err(error) => not_written("TILEWORK_TRACE", &path, &error),
            }
        }
        let picture = wanted.html.as_ref().map(|_| Picture::default());
        let listens = timeline.is_some() || picture.is_some();
        let tracker = listens.then(|| {
            let listeners = Listeners { timeline, picture, ..Listeners::default() };
            let tracker = Arc::new(Mutex::new(Tracker::new(WORKER, listeners)));
            chip.observe(Box::new(Arc::clone(&tracker)));
            tracker
        });
        Self { checked, tracker, html: wanted.html, trace }
    }

    /// Whether something was found that ends the process, by `TILEWORK_CHECKS=error`.
    #[inline]
    pub(crate) fn ends(&mut self, chip: &Chip) -> bool {
        self.checked.as_mut().is_some_and(|checked| checked.ends(chip))
    }

    /// Whether anything is looked at.
    pub(crate) fn is_on(&self) -> bool {
        self.checked.is_some() || self.tracker.is_some()
    }

    /// Tells what was found and writes the files, once: at the end of the card, or when it stops.
    pub(crate) fn finish(&mut self, chip: &mut Chip) {
        if !self.is_on() {
            return;
        }
        chip.settle_observers();
        if let Some(checked) = self.checked.take() {
            checked.finish(chip);
        }
        let listeners = self
            .tracker
            .take()
            .and_then(|tracker| tracker.lock().ok().map(|mut tracker| std::mem::take(&mut tracker.listeners)));
        let Some(Listeners { timeline, picture, .. }) = listeners else { return };
        if let (Some(path), Some(timeline)) = (self.trace.take(), timeline)
            && let Err(error) = timeline.finish()
        {
            not_written("TILEWORK_TRACE", &path, &error);
        }
        if let (Some(path), Some(mut picture)) = (self.html.take(), picture) {
            picture.finish(chip.now());
            let scene = chip.fault().map(ToString::to_string);
            let page = page(&picture, "the card", chip.now(), scene.as_deref());
            if let Err(error) = std::fs::write(&path, page) {
                not_written("TILEWORK_HTML", &path, &error);
            }
        }
    }
}

impl Checked {
    fn begin(wanted: &Wanted, chip: &mut Chip, board: Board) -> Self {
        let checks = Arc::new(Mutex::new(Checks::new(wanted.policy.clone())));
        chip.observe(Box::new(CheckObserver::of_stranger(Arc::clone(&checks))));
        let races = wanted
            .policy
            .races()
            .then(|| Arc::new(Mutex::new(RaceObserver::of_stranger(board).telling(Arc::clone(&checks)))));
        if let Some(races) = &races {
            chip.observe(Box::new(Arc::clone(races)));
        }
        let counts = Arc::new(Mutex::new(Counts::default()));
        chip.observe(Box::new(Arc::clone(&counts)));
        Self { checks, races, counts, file: wanted.findings.clone(), judged: 0 }
    }

    fn ends(&mut self, chip: &Chip) -> bool {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let found = checks.findings();
        let new = found.len() > self.judged;
        let ends = new && checks.policy().level() == Level::Error && {
            let told = told(chip, &found[self.judged..]);
            told.iter().any(|told| checks.policy().level_of(told) == Level::Error)
        };
        self.judged = found.len();
        ends
    }

    fn finish(self, chip: &Chip) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(races) = &self.races {
            races.lock().unwrap_or_else(PoisonError::into_inner).hand_over(&mut checks);
        }
        let Counts { accesses, requests } =
            std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let policy = checks.policy();
        let all = TellAll::of(policy, told(chip, checks.findings()), checks.left_out());
        // A driver that powers the card on and off to see what it is does nothing with it.
        if accesses > 0 {
            say_lines(&format!("checked {accesses} accesses of cores and {requests} requests\n{all}"));
            for allow in &all.unused {
                say(Kind::Environment, &format!("TILEWORK_ALLOW={allow} was not needed"));
            }
        }
        let TellAll { findings, allowed, unused, left_out } = all;
        let data = CardData {
            level: if policy.level() == Level::Error { "error" } else { "warn" },
            races: policy.races(),
            accesses,
            requests,
            findings: findings.into_iter().map(FindingData::of).collect(),
            allowed,
            unused_allow: unused.iter().map(Allow::to_string).collect(),
            left_out,
        };
        let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
        found.push(data);
        if let Some(path) = &self.file {
            let json = serde_json::to_vec(&FoundData { cards: &found }).unwrap_or_default();
            if let Err(error) = std::fs::write(path, json) {
                not_written("TILEWORK_FINDINGS", path, &error);
            }
        }
    }
}

/// Findings with their source lines, as far as they can be found.
fn told(chip: &Chip, findings: &[tilework_checks::Finding]) -> Vec<Told> {
    let mut sources = Sources::new(chip);
    let all = findings.iter().map(|finding| {
        let source = sources.of(&finding.place);
        let other = finding.other.as_ref().and_then(|other| sources.of(other));
        Told::new(finding.clone(), source, other)
    });
    all.collect()
}

fn not_written(variable: &str, path: &Path, error: &dyn std::fmt::Display) {
    say(Kind::Environment, &format!("{variable}: cannot write {}: {error}", path.display()));
}
