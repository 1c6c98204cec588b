//! `tilework run --gdb`: a kernel program under gdb. docs/debugger.md describes it.

use super::findings::{Races, Shared};
use super::plan::Plan;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::l1::MemoryMap;
use tilework_checks::{CheckObserver, Checks, Finding, Level, RaceObserver};
use tilework_debugger::{Code, Debugger, Found, Image, ImageKind, Witness};
use tilework_runtime::prebuilt::CqKernels;
use tilework_runtime::{FirmwareSet, KernelImage};
use tilework_sim::Observer;

/// Where a run of a card begins under gdb.
pub const POWER_ON: &str = "before the chip's first cycle";

/// Runs a program, once more each time that the user goes back: a run is a pure function of program
/// and arrays.
pub fn run(port: u16, once: impl Fn(&Debugger) -> Outcome<Answer>) -> Outcome<Answer> {
    run_from(port, "at the first kernel", once)
}

/// The same for what begins at the place that `from` names.
pub fn run_from(port: u16, from: &'static str, once: impl Fn(&Debugger) -> Outcome<Answer>) -> Outcome<Answer> {
    let refused = |error: std::io::Error| Failure::option("--gdb", format_args!(" {port}: {error}"));
    let ready = move |port| eprintln!("waiting for gdb {from}: target remote localhost:{port}");
    let debugger = Debugger::new(port, Box::new(ready), interrupt::flag()).map_err(refused)?;
    loop {
        let outcome = once(&debugger);
        if debugger.goes_back() {
            continue;
        }
        let outcome = match outcome {
            Err(_) if debugger.killed() => Err(Failure::failed("debugger", "gdb has ended the run")),
            outcome => outcome,
        };
        debugger.end(outcome.as_ref().err().map_or(0, Failure::exit_code));
        return outcome;
    }
}

/// What is looked for under a debugger when `--checks` does not say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unasked {
    /// Nothing: the chip stops at what is found, where that was asked for.
    Nothing,
    /// What is looked for without a debugger, and the chip does not stop there: it is listed.
    Listed,
}

/// The checks of a run that is debugged: gdb is told of what they find, and they go back with it.
pub struct Looking {
    checks: Shared,
    observer: Arc<Mutex<CheckObserver>>,
    races: Option<Races>,
    /// The chip stops at what they find; otherwise it is only listed.
    stops: bool,
}

/// What they know at a checkpoint.
struct Known {
    checks: Checks,
    observer: CheckObserver,
    races: Option<RaceObserver>,
}

impl Looking {
    /// Those that the policy of `checks` wants, if it wants any. Whether the chip stops at what
    /// they find is said by `stops`.
    pub fn new(checks: &Shared, board: Board, stops: bool) -> Option<Self> {
        let policy = lock(checks).policy().clone();
        if policy.level() == Level::Off {
            return None;
        }
        let observer = Arc::new(Mutex::new(CheckObserver::new(Arc::clone(checks))));
        let races = || Arc::new(Mutex::new(RaceObserver::new(board).telling(Arc::clone(checks))));
        Some(Self { checks: Arc::clone(checks), observer, races: policy.races().then(races), stops })
    }

    /// Who looks for races.
    pub fn races(&self) -> Option<Races> {
        self.races.clone()
    }
}

impl Witness for Looking {
    fn observers(&self) -> Vec<Box<dyn Observer>> {
        let mut all: Vec<Box<dyn Observer>> = vec![Box::new(Arc::clone(&self.observer))];
        all.extend(self.races.iter().map(|races| Box::new(Arc::clone(races)) as Box<dyn Observer>));
        all
    }

    fn keep(&self) -> Arc<dyn Any + Send + Sync> {
        let races = self.races.as_ref().map(|races| lock(races).clone());
        Arc::new(Known { checks: lock(&self.checks).clone(), observer: lock(&self.observer).clone(), races })
    }

    fn put(&self, kept: &dyn Any) {
        let Some(kept) = kept.downcast_ref::<Known>() else { return };
        *lock(&self.checks) = kept.checks.clone();
        lock(&self.observer).put_back(&kept.observer);
        if let (Some(races), Some(kept)) = (&self.races, &kept.races) {
            lock(races).put_back(kept);
        }
    }

    fn found(&self, known: usize) -> Vec<Found> {
        let checks = lock(&self.checks);
        // What may be allowed at its place is judged when places are known, as without a debugger.
        let stops = |finding: &Finding| self.stops && !checks.policy().waits_for_place(finding.check);
        let new = checks.findings().get(known..).unwrap_or_default();
        new.iter().map(|finding| found(finding, stops(finding))).collect()
    }
}

fn found(finding: &Finding, stops: bool) -> Found {
    let Finding { check, place, what, other, missing, .. } = finding;
    let mut what = format!("{}: {what}\n  {place}", check.id);
    if let Some(other) = other {
        what += &format!("\n  {other}");
    }
    if let Some(missing) = missing {
        what += &format!("\n  missing: {missing}");
    }
    Found { at: place.cycle, tile: place.tile, core: place.code.map(|code| code.core), what, stops }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All code that may run.
pub fn code(plan: &Plan, firmware: &FirmwareSet, queue: &CqKernels) -> Code {
    let map = firmware.map();
    let mut images: Vec<Image> = firmware
        .images()
        .iter()
        .map(|image| Image {
            name: image.name().to_owned(),
            kind: ImageKind::Firmware,
            processor: image.processor(),
            elf: Arc::clone(image.elf()),
            link_base: image.entry(),
            size: image.text().end - image.entry(),
            local_distance: 0,
            placed_at: Box::new(|_| None),
        })
        .collect();
    let CqKernels { prefetch, prefetch_h, prefetch_d, dispatch, dispatch_s } = queue;
    let queue = [prefetch, prefetch_h, prefetch_d, dispatch, dispatch_s];
    images.extend(queue.into_iter().map(|image| kernel(image, ImageKind::Queue, map)));
    let kernels = plan.roles.iter().flat_map(|role| &role.kernels).filter_map(|kernel| kernel.image.as_ref());
    images.extend(kernels.map(|image| kernel(image, ImageKind::Kernel, map)));
    Code::new(images, *map)
}

fn kernel(image: &Arc<KernelImage>, kind: ImageKind, map: &MemoryMap) -> Image {
    let (own, map) = (Arc::clone(image), *map);
    Image {
        name: image.name().to_owned(),
        kind,
        processor: image.processor(),
        elf: Arc::clone(image.elf()),
        link_base: image.link_base(),
        size: image.size(),
        // A kernel without room for its data is refused before it runs.
        local_distance: image.local_distance(&map).unwrap_or(0),
        placed_at: Box::new(move |base| own.relocate(L1Addr::new(base), &map).ok()),
    }
}
