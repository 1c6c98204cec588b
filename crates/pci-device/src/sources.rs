//! Source lines of code on a card whose host tells nothing: by the ELF files of tt-metal's kernel
//! cache, whose text is compared with what lies in L1.
//!
//! tt-metal compiles kernels into the folder that `TT_METAL_CACHE` names, moves their code so that
//! it runs at any address, and keeps the moved files there, too (`NAME.elf.xip.elf`). The host
//! sends their text as it is, so the words around a program counter are found in exactly these
//! files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_checks::{Code, Frame, Place, Source};
use tilework_lines::{locate, text_of};
use tilework_sim::Chip;

/// The variable that names the folder of the cache.
const CACHE: &str = "TT_METAL_CACHE";
/// The ending of files of kernels as they are sent; firmware is sent as it was linked.
const MOVED: &str = ".elf.xip.elf";
/// Words that are compared, with the one at the program counter in the middle.
const WORDS: usize = 16;
/// Files of a cache that are looked at, and bytes of one.
const FILES: usize = 20_000;
const BYTES: u64 = 16 << 20;
/// Folders in folders.
const DEPTH: usize = 6;

/// An ELF file that is in use.
struct Elf {
    name: String,
    kernel: Option<String>,
    data: Vec<u8>,
    /// Offset and address of the text.
    text: (usize, usize, u32),
}

/// Looks code up, each instruction once.
pub(crate) struct Sources<'a> {
    chip: &'a Chip,
    /// The files of each core, when they are first needed.
    files: Option<[Vec<PathBuf>; 5]>,
    /// Files in which something was found: mostly the next thing is there, too.
    used: [Vec<Elf>; 5],
    known: BTreeMap<(NocXy, Code), Option<Source>>,
}

impl<'a> Sources<'a> {
    /// Nothing looked up yet.
    pub(crate) fn new(chip: &'a Chip) -> Self {
        Self { chip, files: None, used: Default::default(), known: BTreeMap::new() }
    }

    /// The source of the instruction at a place, if its file is found.
    pub(crate) fn of(&mut self, place: &Place) -> Option<Source> {
        let code = place.code?;
        let key = (place.tile, code);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let found = self.find(place.tile, code);
        self.known.insert(key, found.clone());
        found
    }

    fn find(&mut self, tile: NocXy, code: Code) -> Option<Source> {
        let l1 = self.chip.l1(tile)?;
        let pc = usize::try_from(code.pc).ok()?;
        // The text may begin or end near by: the words before are tried shorter and shorter.
        let windows = [WORDS / 2, WORDS / 4, 0].map(|before| pc.saturating_sub(4 * before));
        let windows = windows.map(|from| l1.get(from..from + 4 * WORDS).map(|bytes| (bytes, pc - from)));
        let core = code.core.index();
        for (bytes, behind) in windows.into_iter().flatten() {
            if let Some(source) = self.used[core].iter().find_map(|elf| elf.source(bytes, behind)) {
                return Some(source);
            }
        }
        let files = self.files.get_or_insert_with(cached);
        for path in &files[core] {
            let Some(elf) = Elf::read(path) else { continue };
            let source = windows.into_iter().flatten().find_map(|(bytes, behind)| elf.source(bytes, behind));
            if source.is_some() {
                self.used[core].push(elf);
                return source;
            }
        }
        None
    }
}

impl Elf {
    fn read(path: &Path) -> Option<Self> {
        if fs::metadata(path).ok()?.len() > BYTES {
            return None;
        }
        let data = fs::read(path).ok()?;
        let text = text_of(&data)?;
        let parts: Vec<String> = path.iter().rev().take(4).map(|part| part.to_string_lossy().into_owned()).collect();
        // .../kernels/NAME/HASH/CORE/CORE.elf.xip.elf, .../firmware/CORE/CORE.elf
        let is_kernel = path.iter().any(|part| part == "kernels");
        let kernel = parts.get(3).filter(|_| is_kernel).cloned();
        let core = parts.get(1).cloned().unwrap_or_default();
        let name = match &kernel {
            Some(kernel) => format!("kernel {kernel} ({core})"),
            None => format!("firmware {core}"),
        };
        Some(Self { name, kernel, data, text })
    }

    /// The source of the instruction `behind` the first of these bytes, if they are in the text.
    fn source(&self, bytes: &[u8], behind: usize) -> Option<Source> {
        let (offset, len, address) = self.text;
        let text = self.data.get(offset..offset + len)?;
        let at = text.windows(bytes.len()).step_by(4).position(|window| window == bytes)?;
        let pc = address.checked_add(u32::try_from(4 * at + behind).ok()?)?;
        let frames = locate(&self.data, pc).frames.into_iter();
        let frames = frames.map(|frame| Frame { function: frame.function, line: frame.line, column: frame.column });
        let frames: Vec<Frame> = frames.collect();
        // The kernel's own place is the innermost function that is not of tt-metal's headers.
        let of_library =
            |frame: &Frame| frame.line.as_ref().is_some_and(|(file, _)| file.ends_with(".h") || file.ends_with(".hpp"));
        let own = frames.iter().position(|frame| !of_library(frame)).unwrap_or(0);
        Some(Source { runs: self.name.clone(), kernel: self.kernel.clone(), frames, own })
    }
}

/// The files of the cache by core, those that were written last first: most are of other programs.
fn cached() -> [Vec<PathBuf>; 5] {
    let mut found = Vec::new();
    if let Some(folder) = std::env::var_os(CACHE) {
        collect(Path::new(&folder), DEPTH, &mut found);
    }
    found.sort();
    let mut files: [Vec<PathBuf>; 5] = Default::default();
    for (_, core, path) in found.into_iter().rev() {
        files[core].push(path);
    }
    files
}

/// A file with the time of its last change and its core.
type Found = (std::time::SystemTime, usize, PathBuf);

fn collect(folder: &Path, depth: usize, found: &mut Vec<Found>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if found.len() >= FILES {
            return;
        }
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, found);
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_core = |core: &Processor| {
            let core = core.name().to_lowercase();
            name == format!("{core}{MOVED}")
                || (name == format!("{core}.elf") && !path.with_extension("elf.xip.elf").exists())
        };
        let core = Processor::ALL.iter().position(of_core);
        if let (true, Some(core), Ok(changed)) = (kind.is_file(), core, entry.metadata().and_then(|m| m.modified())) {
            found.push((changed, core, path));
        }
    }
}
