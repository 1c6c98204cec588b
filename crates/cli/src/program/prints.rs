//! What kernels print: lines on standard error as they come, and the same as data of the report.

use crate::chip::Device;
use crate::failure::Failure;
use crate::loudness::{self, Loudness};
use crate::progress::Progress;
use serde::Serialize;
use std::cell::RefCell;
use std::rc::Rc;
use tilework_runtime::PrintLine;
use tilework_text::plain;

/// Lines that a report carries; the rest is counted.
const MOST_LINES: usize = 10_000;

/// A line as data. The fields are those of the JSON form, in their order.
#[derive(Serialize, Clone, Debug)]
pub struct LineData {
    cycle: u64,
    x: u8,
    y: u8,
    core: String,
    kernel: String,
    file: String,
    line: u32,
    text: String,
}

/// What kernels printed in a run.
#[derive(Serialize, Clone, Debug, Default)]
pub struct PrintsReport {
    /// The lines, in the order of time.
    pub lines: Vec<LineData>,
    /// Lines that are not among them, because there were too many for a report.
    pub left_out: u64,
    /// Prints that were overwritten before they could be read.
    pub missed: u64,
    /// Kernels whose device prints nobody reads: the memory map does not say where they are.
    pub unread: Vec<String>,
}

impl PrintsReport {
    /// Whether there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.left_out == 0 && self.missed == 0 && self.unread.is_empty()
    }
}

/// The prints of a device as they come.
#[derive(Default)]
pub struct Prints(Rc<RefCell<PrintsReport>>);

impl Prints {
    /// Shows what kernels print from now on, above the progress bar.
    pub fn show(device: &mut Device, progress: &Progress) -> Self {
        let prints = Self::default();
        let (kept, progress) = (Rc::clone(&prints.0), progress.clone());
        device.on_print(move |line| {
            if loudness::chosen() != Loudness::Quiet {
                progress.say(&text(line));
            }
            let mut kept = kept.borrow_mut();
            match kept.lines.len() < MOST_LINES {
                true => kept.lines.push(data(line)),
                false => kept.left_out += 1,
            }
        });
        prints
    }

    /// Everything that was printed, for the report. Says so when something is missing.
    pub fn report(&self, device: &Device) -> PrintsReport {
        let mut report = self.0.borrow().clone();
        report.missed = device.missed_prints();
        report.unread = device.unread_prints().map(str::to_owned).collect();
        if loudness::chosen() == Loudness::Quiet {
            return report;
        }
        if report.missed > 0 {
            eprintln!("{} prints of kernels were overwritten before they could be read", report.missed);
        }
        for kernel in &report.unread {
            eprintln!(
                "warning: kernel {} has texts of DEVICE_PRINT, and nothing of them is shown: the memory map of the \
                 firmware does not say where device_print_buf is (docs/program.md)",
                plain(kernel)
            );
        }
        report
    }

    /// A failure together with what was printed before.
    pub fn with(&self, device: &Device, failure: Failure) -> Failure {
        match self.report(device) {
            report if report.is_empty() => failure,
            report => failure.with("prints", report),
        }
    }
}

/// A line for people.
fn text(line: &PrintLine) -> String {
    let PrintLine { cycle, tile, core, kernel, condition, text, .. } = line;
    let failed = condition.as_ref().map(|condition| format!("assertion failed: {condition}"));
    let said = match (failed, text.is_empty()) {
        (Some(failed), true) => failed,
        (Some(failed), false) => format!("{failed}: {text}"),
        (None, _) => text.clone(),
    };
    format!("[{cycle} {tile} {} {kernel}] {said}", core.name().to_lowercase())
}

fn data(line: &PrintLine) -> LineData {
    let (file, number) = &line.source;
    LineData {
        cycle: line.cycle,
        x: line.tile.x,
        y: line.tile.y,
        core: line.core.name().to_lowercase(),
        kernel: line.kernel.to_string(),
        file: file.clone(),
        line: *number,
        text: line.text.clone(),
    }
}
