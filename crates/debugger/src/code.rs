//! Which code lies where: firmware at its fixed place, kernels wherever they were loaded.
//!
//! A kernel is moved when it is loaded. Where it lies is found in the launch messages of each tile
//! when a core enters code that is not known yet; a place counts if the bytes there are those of
//! the kernel for that place.

use object::{Object, ObjectSection, SectionFlags};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap, WORKER};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg};
use tilework_abi::tensix::{LOCAL_BASE, Processor};
use tilework_sim::{Chip, Thread};
use zerocopy::FromBytes;

/// Bytes of unknown code that are looked up together.
const UNKNOWN: u32 = 64;

/// What an image is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    /// Firmware, at the address that it was linked for.
    Firmware,
    /// A kernel of the command queue.
    Queue,
    /// A kernel of the program.
    Kernel,
}

/// Code of one processor.
pub struct Image {
    /// Its name in gdb.
    pub name: String,
    /// What it is.
    pub kind: ImageKind,
    /// The processor that it is for.
    pub processor: Processor,
    /// The ELF file.
    pub elf: Arc<[u8]>,
    /// The address that it was linked for.
    pub link_base: u32,
    /// Bytes in L1.
    pub size: u32,
    /// How far its data in local RAM lies from where it was linked.
    pub local_distance: u32,
    /// The bytes in L1 when it is placed at an address; `None` if it cannot be placed there.
    pub placed_at: Box<dyn Fn(u32) -> Option<Vec<u8>> + Send>,
}

/// An image at a place.
struct Placed {
    image: usize,
    base: u32,
    /// By number of the tile.
    tiles: Vec<bool>,
}

/// All code that may run, and where it was found.
pub struct Code {
    images: Vec<Image>,
    map: MemoryMap,
    placed: Vec<Placed>,
}

/// What a core runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    image: usize,
    base: u32,
}

/// The name of a file that gdb may read, and the addresses of its sections.
pub(crate) struct Library {
    pub(crate) name: String,
    /// Each allocated section, in the file's order.
    pub(crate) sections: Vec<Section>,
}

/// A section of a file.
pub(crate) struct Section {
    name: String,
    /// Where it is in the file.
    linked: u32,
    /// Where it is on the chip.
    placed: u32,
}

impl Code {
    /// These images, on tiles whose firmware has `map`.
    pub fn new(images: Vec<Image>, map: MemoryMap) -> Self {
        Self { images, map, placed: Vec::new() }
    }

    /// Nothing is known of the code that may run.
    pub(crate) fn unknown() -> Self {
        Self::new(Vec::new(), WORKER)
    }

    /// Whether nothing is.
    pub(crate) fn is_unknown(&self) -> bool {
        self.images.is_empty()
    }

    /// The code at `pc` as `thread` runs it, and the addresses that it covers; empty when it is
    /// unknown. The second value says whether code has been found that was not known before.
    pub(crate) fn enter(&mut self, chip: &Chip, thread: Thread, pc: u32) -> (Option<Place>, Range<u32>, bool) {
        if let Some((image, range)) = self.firmware_at(thread.core(), pc) {
            return (Some(Place { image, base: range.start }), range, false);
        }
        // The text there may be that of a program that came later.
        let known = self.kernel_at(chip, thread, pc);
        let (found, is_new) = match known {
            Some(place) => (Some(place), false),
            None => {
                let is_new = self.discover(chip);
                (self.kernel_at(chip, thread, pc), is_new)
            }
        };
        // Of code that nobody knows, as a jump at the start, not every instruction is looked up.
        let unknown = pc & !(UNKNOWN - 1)..(pc | (UNKNOWN - 1)).saturating_add(1);
        let range = found.map_or(unknown, |place| place.base..place.base + self.images[place.image].size);
        (found, range, is_new)
    }

    /// What an image is.
    pub(crate) fn kind(&self, place: Place) -> ImageKind {
        self.images[place.image].kind
    }

    /// The name of an image.
    pub(crate) fn name(&self, place: Place) -> &str {
        &self.images[place.image].name
    }

    fn firmware_at(&self, processor: Processor, pc: u32) -> Option<(usize, Range<u32>)> {
        let of = |image: &Image| image.link_base..image.link_base + image.size;
        let mut own = self.images.iter().enumerate().filter(|(_, image)| image.kind == ImageKind::Firmware);
        let found = own.find(|(_, image)| image.processor == processor && of(image).contains(&pc));
        found.map(|(i, image)| (i, of(image)))
    }

    /// The known kernel at `pc`, if its bytes are still there.
    fn kernel_at(&self, chip: &Chip, thread: Thread, pc: u32) -> Option<Place> {
        let l1 = tile_l1(chip, thread.tile())?;
        let holds = |placed: &&Placed| {
            let image = &self.images[placed.image];
            image.processor == thread.core()
                && (placed.base..placed.base + image.size).contains(&pc)
                && placed.tiles.get(thread.tile()).is_some_and(|&on| on)
                && is_at(image, l1, placed.base)
        };
        self.placed.iter().find(holds).map(|placed| Place { image: placed.image, base: placed.base })
    }

    /// Looks for kernels in the launch messages of all tiles; true when some are new.
    pub(crate) fn discover(&mut self, chip: &Chip) -> bool {
        let mut is_new = false;
        let tiles: Vec<_> = chip.tiles().collect();
        for (tile, xy) in tiles.iter().enumerate() {
            let Some(l1) = chip.l1(*xy) else { continue };
            for (processor, base) in launched(l1, &self.map) {
                let fits = |image: &Image| {
                    image.kind != ImageKind::Firmware && image.processor == processor && is_at(image, l1, base)
                };
                let Some(image) = self.images.iter().position(fits) else { continue };
                is_new |= self.note(image, base, tile, tiles.len());
            }
        }
        is_new
    }

    fn note(&mut self, image: usize, base: u32, tile: usize, tiles: usize) -> bool {
        match self.placed.iter_mut().find(|placed| (placed.image, placed.base) == (image, base)) {
            Some(placed) => {
                placed.tiles[tile] = true;
                false
            }
            None => {
                let mut on = vec![false; tiles];
                on[tile] = true;
                self.placed.push(Placed { image, base, tiles: on });
                true
            }
        }
    }

    /// All code with a place. Where kernels of different tiles overlap, that of `tile` is listed if
    /// it has one, because gdb has one program at an address.
    pub(crate) fn libraries(&self, tile: usize) -> Vec<Library> {
        let firmware = self.images.iter().filter(|image| image.kind == ImageKind::Firmware);
        let mut list: Vec<_> = firmware.map(|image| self.library(image, image.link_base)).collect();
        let mut taken: Vec<Range<u32>> = Vec::new();
        let (own, others): (Vec<_>, Vec<_>) = self.placed.iter().partition(|placed| placed.tiles[tile]);
        // What was loaded last is what is there.
        for placed in own.into_iter().rev().chain(others.into_iter().rev()) {
            let image = &self.images[placed.image];
            let range = placed.base..placed.base + image.size;
            if taken.iter().all(|other| range.end <= other.start || other.end <= range.start) {
                taken.push(range);
                list.push(self.library(image, placed.base));
            }
        }
        list
    }

    fn library(&self, image: &Image, base: u32) -> Library {
        let move_by = base.wrapping_sub(image.link_base);
        let moved = |address: u32| {
            let distance = if address < LOCAL_BASE { move_by } else { image.local_distance };
            address.wrapping_add(distance)
        };
        let section = |(name, linked)| Section { name, linked, placed: moved(linked) };
        let sections = allocated(&image.elf).into_iter().map(section).collect();
        Library { name: library_name(image, base), sections }
    }

    /// The ELF file with a name of a library, whatever tile it lies on.
    pub(crate) fn file(&self, name: &[u8]) -> Option<&Arc<[u8]>> {
        let firmware = self.images.iter().map(|image| (image, image.link_base));
        let placed = self.placed.iter().map(|placed| (&self.images[placed.image], placed.base));
        let mut all = firmware.chain(placed);
        all.find(|(image, base)| library_name(image, *base).as_bytes() == name).map(|(image, _)| &image.elf)
    }

    /// The libraries in the form of the GDB manual, "Library List Format".
    pub(crate) fn xml(&self, tile: usize) -> String {
        let mut xml = String::from("<library-list version=\"1.0\">");
        for library in self.libraries(tile) {
            let _ = write!(xml, "<library name=\"{}\">", escaped(&library.name));
            for section in &library.sections {
                // gdb adds it to the addresses of the file, in 64 bits.
                let distance = u64::from(section.placed).wrapping_sub(section.linked.into());
                let _ = write!(xml, "<section address=\"{distance:#x}\"/>");
            }
            xml.push_str("</library>");
        }
        xml.push_str("</library-list>");
        xml
    }

    /// The same as commands of gdb.
    pub(crate) fn symbol_files(&self, tile: usize) -> String {
        let mut lines = String::new();
        for library in self.libraries(tile) {
            let _ = write!(lines, "add-symbol-file target:{}", library.name);
            for Section { name, placed, .. } in library.sections {
                let _ = write!(lines, " -s {name} {placed:#x}");
            }
            lines.push('\n');
        }
        lines
    }
}

/// The name of a library: several kernels may have one file name, and one kernel may lie at two
/// places.
fn library_name(image: &Image, base: u32) -> String {
    let place = if image.kind == ImageKind::Firmware { String::new() } else { format!("@{base:x}") };
    let core = image.processor.name().to_lowercase();
    let stem = image.name.trim_end_matches(".elf").trim_start_matches("prebuilt:");
    let stem: String = stem.chars().map(|c| if c.is_ascii_graphic() && c != '/' { c } else { '_' }).collect();
    format!("/tilework/{core}/{stem}{place}.elf")
}

fn tile_l1(chip: &Chip, tile: usize) -> Option<&[u8]> {
    chip.l1(chip.tiles().nth(tile)?)
}

/// The processors and text addresses of the launch messages in a tile's L1.
fn launched(l1: &[u8], map: &MemoryMap) -> Vec<(Processor, u32)> {
    let first = map.launch.get() as usize;
    let messages = l1.get(first..).unwrap_or_default().chunks_exact(LAUNCH_MSG_BYTES).take(LAUNCH_ENTRIES as usize);
    let texts = messages.filter_map(|bytes| LaunchMsg::read_from_bytes(bytes).ok()).flat_map(|message| {
        let of = move |processor: Processor| {
            let i = processor.index();
            let enabled = message.enables.get() >> i & 1 != 0;
            let base = message.kernel_config_base[0].get().checked_add(message.kernel_text_offset[i].get());
            base.filter(|_| enabled).map(|base| (processor, base))
        };
        Processor::ALL.into_iter().filter_map(of)
    });
    texts.collect()
}

fn is_at(image: &Image, l1: &[u8], base: u32) -> bool {
    let there = l1.get(base as usize..base.saturating_add(image.size) as usize);
    there.is_some_and(|there| (image.placed_at)(base).is_some_and(|bytes| bytes == there))
}

/// Name and address of each section that is loaded, in the file's order, as gdb counts them.
fn allocated(elf: &[u8]) -> Vec<(String, u32)> {
    let Ok(file) = object::File::parse(elf) else { return Vec::new() };
    let is_allocated = |section: &object::Section<'_, '_>| match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_ALLOC),
        _ => false,
    };
    let sections = file.sections().filter(is_allocated);
    let address = |section: &object::Section<'_, '_>| u32::try_from(section.address()).unwrap_or(0);
    sections.map(|section| (section.name().unwrap_or("?").to_owned(), address(&section))).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
