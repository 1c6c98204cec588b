//! Counts of instructions as counts of source lines, and as stacks of functions.

use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use tilework_abi::addr::L1Addr;
use tilework_profile::{CodeCounts, KernelKey, Profile};
use tilework_runtime::{KernelImage, Program, SourceLocation};

/// Where kernels are taken to lie when their lines are looked up.
const BASE: L1Addr = L1Addr::new(1 << 16);
/// Lines that the text shows.
const HOTTEST: usize = 20;
/// Bytes of a source file that is shown.
const BUDGET: u64 = 4 << 20;

/// The lines of all kernels of a profile.
#[derive(Serialize, Debug, Default)]
pub struct SourceProfile {
    /// Lines, the one with most cycles first.
    pub lines: Vec<Line>,
    /// The files whose lines were executed, with their text, where it was asked for and is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Annotated>,
}

/// A source line of a kernel.
#[derive(Serialize, Debug)]
pub struct Line {
    /// The kernel.
    pub kernel: String,
    /// The file; absent for code without line information.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// Instructions executed.
    pub instructions: u64,
    /// Their cycles.
    pub cycles: u64,
    /// Cycles of waiting there.
    pub waiting: u64,
}

/// A source file with the cost of its lines.
#[derive(Serialize, Debug)]
pub struct Annotated {
    /// Its name, as in the line information.
    pub file: String,
    /// Its lines; absent when it cannot be read.
    pub lines: Option<Vec<AnnotatedLine>>,
}

/// A line of a source file.
#[derive(Serialize, Debug)]
pub struct AnnotatedLine {
    /// Its text.
    pub text: String,
    /// Instructions, cycles and cycles of waiting, of all kernels.
    pub cost: [u64; 3],
}

/// The image of a kernel.
fn image<'a>(programs: &'a [Program], key: &KernelKey) -> Option<&'a KernelImage> {
    let kernels = programs.iter().flat_map(|program| &program.roles).flat_map(|role| &role.kernels).flatten();
    kernels.map(|kernel| &**kernel).find(|kernel| kernel.processor() == key.core && kernel.name() == &*key.name)
}

/// Source and counts of each instruction of a kernel.
fn located<'a>(
    profile: &'a Profile,
    programs: &'a [Program],
) -> impl Iterator<Item = (&'a KernelKey, Option<SourceLocation>, CodeCounts)> {
    profile.kernels.iter().flat_map(move |(key, totals)| {
        let image = image(programs, key);
        totals.code.iter().map(move |(&offset, &counts)| {
            let location = image.and_then(|image| image.locate(BASE.get().saturating_add(offset), BASE));
            (key, location, counts)
        })
    })
}

impl SourceProfile {
    /// The lines of the kernels of these programs; with the text of their files if wanted.
    pub fn of(profile: &Profile, programs: &[Program], annotate: bool, program: &Path) -> Self {
        type Place = (String, Option<(String, u32)>, String);
        let mut lines: BTreeMap<Place, [u64; 3]> = BTreeMap::new();
        for (key, location, counts) in located(profile, programs) {
            let frame = location.as_ref().and_then(|location| location.telling().next());
            let line = frame.and_then(|frame| frame.line.clone());
            let function = frame.map_or_else(|| "(unknown)".to_owned(), |frame| frame.function.clone());
            add(lines.entry((key.name.to_string(), line, function)).or_default(), counts);
        }
        let line = |((kernel, place, function), [instructions, cycles, waiting]): (Place, [u64; 3])| {
            let (file, line) = place.unzip();
            Line { kernel, file, line, function, instructions, cycles, waiting }
        };
        let mut lines: Vec<Line> = lines.into_iter().map(line).collect();
        lines.sort_by_key(|line| std::cmp::Reverse(line.cycles + line.waiting));
        let files = if annotate { annotated(&lines, program) } else { Vec::new() };
        Self { lines, files }
    }

    /// The form for people.
    pub fn text(&self, out: &mut dyn Write) -> Result<()> {
        if !self.lines.is_empty() {
            writeln!(out, "  hottest lines: instructions, cycles, cycles of waiting")?;
        }
        for line in self.lines.iter().take(HOTTEST) {
            let place = match (&line.file, line.line) {
                (Some(file), Some(number)) => format!("{file}:{number}"),
                _ => "(no line)".to_owned(),
            };
            let Line { kernel, function, instructions, cycles, waiting, .. } = line;
            writeln!(out, "  {instructions:>10} {cycles:>10} {waiting:>10}  {place} {function} ({kernel})")?;
        }
        for Annotated { file, lines } in &self.files {
            writeln!(out, "\n{file}")?;
            let Some(lines) = lines else {
                writeln!(out, "  cannot be read here")?;
                continue;
            };
            for (number, AnnotatedLine { text, cost: [instructions, cycles, waiting] }) in (1..).zip(lines) {
                match instructions + cycles + waiting {
                    0 => writeln!(out, "{:>32} {number:>5}  {text}", "")?,
                    _ => writeln!(out, "{instructions:>10} {cycles:>10} {waiting:>10} {number:>5}  {text}")?,
                }
            }
        }
        Ok(())
    }
}

fn add(sum: &mut [u64; 3], counts: CodeCounts) {
    let CodeCounts { executed, cycles, waiting } = counts;
    sum.iter_mut().zip([executed, cycles, waiting]).for_each(|(sum, more)| *sum += more);
}

/// The files of these lines. Names that are not absolute are looked for beside the program file and
/// where the command runs.
fn annotated(lines: &[Line], program: &Path) -> Vec<Annotated> {
    let mut files: BTreeMap<&str, BTreeMap<u32, [u64; 3]>> = BTreeMap::new();
    for line in lines {
        if let (Some(file), Some(number)) = (&line.file, line.line) {
            let sum = files.entry(file).or_default().entry(number).or_default();
            add(sum, CodeCounts { executed: line.instructions, cycles: line.cycles, waiting: line.waiting });
        }
    }
    let annotated = |(file, costs): (&str, BTreeMap<u32, [u64; 3]>)| {
        let text = [crate::files::folder_of(program).join(file), PathBuf::from(file)].into_iter().find_map(|path| {
            let bytes = crate::files::read_within(&path, BUDGET, "a source file").ok()?;
            String::from_utf8(bytes).ok()
        });
        let line = |(number, text): (u32, &str)| AnnotatedLine {
            text: text.to_owned(),
            cost: costs.get(&number).copied().unwrap_or_default(),
        };
        Annotated { file: file.to_owned(), lines: text.map(|text| (1..).zip(text.lines()).map(line).collect()) }
    };
    files.into_iter().map(annotated).collect()
}

/// Cycles, those of waiting included, by stack: program, role, core, kernel, the functions from the
/// outermost to the innermost, the line. One stack a line, in order, as tools for flame graphs read
/// it.
pub fn folded(profile: &Profile, programs: &[Program]) -> String {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for (key, location, counts) in located(profile, programs) {
        let cycles = counts.cycles + counts.waiting;
        if cycles == 0 {
            continue;
        }
        let mut parts = vec![key.program.to_string(), key.role.to_string(), key.core.to_string(), key.name.to_string()];
        let frames: Vec<_> = location.as_ref().map(|location| location.telling().collect()).unwrap_or_default();
        parts.extend(frames.iter().rev().map(|frame| frame.function.clone()));
        let line = frames.first().and_then(|frame| frame.line.as_ref());
        parts.extend(line.map(|(file, line)| format!("{file}:{line}")));
        // A semicolon divides frames.
        let stack: Vec<String> = parts.iter().map(|part| part.replace(';', ",")).collect();
        *stacks.entry(stack.join(";")).or_default() += cycles;
    }
    stacks.into_iter().map(|(stack, cycles)| format!("{stack} {cycles}\n")).collect()
}
