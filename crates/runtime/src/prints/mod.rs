//! Prints of kernels: which kernels print, their rings on the cores, and the lines they make.
//!
//! Before a kernel with prints runs for the first time on a core, the counts of that core's ring
//! are cleared. A simulator then shows every store to the rings, so that no record is lost; on
//! another chip the rings are read when programs have ended, and what was overwritten by then is
//! counted. Either way the records carry their time, by which lines are put in order.
//!
//! Where the memory map says where tt-metal's kernels have the buffers of their device prints, the
//! host tells them that somebody reads, as tt-metal's print server does, and reads in the same way.
//! A core that has filled its buffer waits for the host. Where the chip shows stores, the host
//! gives it room when nothing else can go on; on another chip such a run ends with its budget, and
//! what the core said until then is shown.
//!
//! Layouts: `tilework_abi::print`. Texts: `tilework_prints`.

mod metal;

pub(crate) use metal::Form;

use crate::elf::KernelPrints;
use crate::queue::MakeRoom;
use metal::{Buffers, Said};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::convert::usize_of;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::print::STRIDE;
use tilework_abi::tensix::Processor;
use tilework_driver::SeenStore;
use tilework_prints::device_print::Texts;
use tilework_prints::{Kind, Record, Ring};

/// Records that wait for the end of a program; more are counted as missed.
const MOST_WAITING: usize = 1 << 20;

/// What a kernel printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrintLine {
    /// The wall clock of the tile when the print began.
    pub cycle: Cycle,
    /// The tile.
    pub tile: NocXy,
    /// The core.
    pub core: Processor,
    /// The kernel's file; [`DEVICE_PRINT`] for a device print of tt-metal's form of streams.
    pub kernel: Arc<str>,
    /// The source file and line of the call; without a name for such a device print, which has
    /// none.
    pub source: (String, u32),
    /// The condition that did not hold, of an assertion.
    pub condition: Option<String>,
    /// The text with its values. Tiles and arrays have several lines.
    pub text: String,
}

/// What stands for the kernel of a device print that does not name it.
pub const DEVICE_PRINT: &str = "DPRINT";

/// The message of an assertion that did not hold.
pub(crate) fn assertion(line: &PrintLine) -> String {
    let PrintLine { cycle, tile, core, kernel, source: (file, number), condition, text } = line;
    let condition = condition.as_deref().unwrap_or_default();
    let said = if text.is_empty() { String::new() } else { format!(": {text}") };
    format!(
        "assertion failed at cycle {cycle}: {condition}{said}\n  {core} of {tile}, kernel {kernel}\n    at {file}:{number}"
    )
}

/// A core of the chip, in the order in which lines of one cycle stand.
type Core = (NocXy, Processor);

/// What the cores have in their rings.
#[derive(Debug, Default)]
pub(crate) struct Rings {
    /// Where the rings of a tile begin.
    base: u32,
    rings: BTreeMap<Core, Ring>,
    waiting: Vec<(Core, Record)>,
    /// The buffers of device prints, if it is known where they are.
    metal: Option<Buffers>,
    said: Vec<(Core, Cycle, Said)>,
    missed: u64,
}

impl Rings {
    /// Keeps what cores have said at a cycle.
    fn keep(&mut self, cycle: Cycle, said: Vec<(Core, Said)>) {
        for (core, said) in said {
            match self.said.len() < MOST_WAITING {
                true => self.said.push((core, cycle, said)),
                false => self.missed += 1,
            }
        }
    }

    /// Takes a store of any core to the rings of its tile.
    fn store(&mut self, store: &SeenStore) {
        let offset = store.address.wrapping_sub(self.base);
        let Some(&core) = Processor::ALL.get(usize_of(u64::from(offset / STRIDE))) else { return };
        let core = (store.tile, core);
        let Some(ring) = self.rings.get_mut(&core) else { return };
        if ring.store(offset % STRIDE, store.value) {
            self.take(core);
        }
    }

    /// Takes the new records of a core.
    fn take(&mut self, core: Core) {
        let Some(ring) = self.rings.get_mut(&core) else { return };
        let (records, missed) = ring.take();
        self.missed += u64::from(missed);
        for record in records {
            match self.waiting.len() < MOST_WAITING {
                true => self.waiting.push((core, record)),
                false => self.missed += 1,
            }
        }
    }
}

/// Where lines go.
type LineCall = Box<dyn FnMut(&PrintLine)>;

/// The prints of a device.
#[derive(Default)]
pub(crate) struct Prints {
    /// Kernels by number: file and texts.
    kernels: HashMap<u32, (Arc<str>, Arc<KernelPrints>)>,
    /// Texts of device prints, of kernels by number and of firmware by core.
    texts: HashMap<u16, (Arc<str>, Arc<Texts>)>,
    firmware: BTreeMap<Processor, (Arc<str>, Arc<Texts>)>,
    /// Kernels with such texts on firmware whose buffer for them is not known.
    pub(crate) unread: BTreeSet<Box<str>>,
    rings: Arc<Mutex<Rings>>,
    /// Whether the chip shows stores; not known before the first kernel that prints.
    pub(crate) watched: Option<bool>,
    /// The same of device prints.
    pub(crate) metal_watched: Option<bool>,
    pub(crate) call: Option<LineCall>,
}

impl Prints {
    /// Whether any kernel prints.
    pub(crate) fn is_used(&self) -> bool {
        self.watched.is_some()
    }

    /// Gets to know a kernel; false if another one has the same number.
    pub(crate) fn know(&mut self, number: u32, name: &str, prints: &Arc<KernelPrints>) -> bool {
        let (_, known) = self.kernels.entry(number).or_insert_with(|| (name.into(), Arc::clone(prints)));
        **known == **prints
    }

    /// The cores among these whose rings have not been cleared, which the caller then does.
    pub(crate) fn fresh(&self, cores: impl Iterator<Item = Core>) -> Vec<Core> {
        let mut rings = self.lock();
        cores.filter(|core| rings.rings.insert(*core, Ring::default()).is_none()).collect()
    }

    /// What the chip calls for every store to the rings, which begin at `base`.
    pub(crate) fn sink(&self, base: L1Addr) -> tilework_driver::StoreSink {
        self.lock().base = base.get();
        let rings = Arc::clone(&self.rings);
        Box::new(move |store| {
            if let Ok(mut rings) = rings.lock() {
                rings.store(store);
            }
        })
    }

    /// What the chip calls for every store to the buffers of device prints.
    pub(crate) fn metal_sink(&self, form: Form) -> tilework_driver::StoreSink {
        self.lock().metal = Some(Buffers::new(form));
        let rings = Arc::clone(&self.rings);
        Box::new(move |store| {
            let Ok(mut rings) = rings.lock() else { return };
            let said = rings.metal.as_mut().map(|buffers| buffers.store(store));
            rings.keep(store.cycle, said.unwrap_or_default());
        })
    }

    /// What a wait calls when the chip is quiescent: the buffers of device prints that have been
    /// read, with the words that say so. Each is there once.
    pub(crate) fn room(&self) -> Option<MakeRoom> {
        self.metal_watched.filter(|watched| *watched)?;
        let rings = Arc::clone(&self.rings);
        Some(Box::new(move || {
            let mut rings = rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            rings.metal.as_mut().map_or_else(Vec::new, Buffers::room)
        }))
    }

    /// Takes a tile's buffers of device prints as they are on the chip at `cycle`.
    pub(crate) fn metal_load(&self, tile: NocXy, cycle: Cycle, bytes: &[u8]) {
        let mut rings = self.lock();
        let said = rings.metal.as_mut().map(|buffers| buffers.load(tile, bytes));
        rings.keep(cycle, said.unwrap_or_default());
    }

    /// Ends the lines of device prints that are not whole, when no more can come.
    pub(crate) fn metal_end(&self, cycle: Cycle) {
        let mut rings = self.lock();
        let rest = rings.metal.as_mut().map(Buffers::rest);
        rings.keep(cycle, rest.unwrap_or_default());
    }

    /// Gets to know the texts of a kernel's device prints; false if another one has the same
    /// number.
    pub(crate) fn know_texts(&mut self, number: u16, name: &str, texts: &Arc<Texts>) -> bool {
        let (_, known) = self.texts.entry(number).or_insert_with(|| (name.into(), Arc::clone(texts)));
        **known == **texts
    }

    /// Gets to know the texts of a core's firmware.
    pub(crate) fn know_firmware(&mut self, core: Processor, name: &str, texts: Arc<Texts>) {
        self.firmware.insert(core, (name.into(), texts));
    }

    /// All cores that print, with the addresses of their rings.
    pub(crate) fn cores(&self, map: &MemoryMap) -> Vec<(Core, L1Addr)> {
        let ring = |&core: &Core| Some((core, tilework_abi::print::ring(map, core.1)?));
        self.lock().rings.keys().filter_map(ring).collect()
    }

    /// Takes a ring as it is on the chip.
    pub(crate) fn load(&self, core: Core, bytes: &[u8]) {
        let mut rings = self.lock();
        if let Some(ring) = rings.rings.get_mut(&core) {
            ring.load(bytes);
            rings.take(core);
        }
    }

    /// Hands over the lines of what has come, in the order of time; returns the first assertion
    /// that did not hold.
    pub(crate) fn tell(&mut self) -> Option<PrintLine> {
        let (waiting, device) = {
            let mut rings = self.lock();
            (std::mem::take(&mut rings.waiting), std::mem::take(&mut rings.said))
        };
        let mut lines: Vec<PrintLine> = waiting.iter().map(|(core, record)| self.line(*core, record)).collect();
        lines.extend(device.into_iter().map(|(core, cycle, said)| self.said(core, cycle, said)));
        // Stable: the lines of a core keep their order.
        lines.sort_by_key(|line| (line.cycle, line.tile, line.core));
        let mut failed = None;
        for line in lines {
            if let Some(call) = &mut self.call {
                call(&line);
            }
            if failed.is_none() && line.condition.is_some() {
                failed = Some(line);
            }
        }
        failed
    }

    /// Records that nobody has seen.
    pub(crate) fn missed(&self) -> u64 {
        let rings = self.lock();
        rings.missed + rings.metal.as_ref().map_or(0, |buffers| buffers.missed)
    }

    /// The line of a device print.
    fn said(&self, (tile, core): Core, cycle: Cycle, said: Said) -> PrintLine {
        let plain = |text| {
            let (kernel, source) = (DEVICE_PRINT.into(), Default::default());
            PrintLine { cycle, tile, core, kernel, source, condition: None, text }
        };
        let (kernel, by_kernel, text, values) = match said {
            Said::Line(line) => return plain(line),
            Said::Text { kernel, by_kernel, text, values } => (kernel, by_kernel, text, values),
        };
        let known = match by_kernel {
            true => kernel.and_then(|number| self.texts.get(&number)),
            false => self.firmware.get(&core),
        };
        let of = |(name, texts): &(Arc<str>, Arc<Texts>)| {
            let text = texts.get(text?)?;
            // Every line of a print server ends where its text does.
            let shown = texts.show(text, &values);
            let shown = shown.strip_suffix(r"\n").unwrap_or(&shown).to_owned();
            let source = (text.file.clone(), text.line);
            Some(PrintLine { kernel: Arc::clone(name), source, ..plain(shown) })
        };
        let unknown = || plain(format!("(text {text:?} of kernel {kernel:?}, which is not known)"));
        known.and_then(of).unwrap_or_else(unknown)
    }

    fn line(&self, (tile, core): Core, record: &Record) -> PrintLine {
        let kernel = self.kernels.get(&record.kernel);
        let text = kernel.and_then(|(_, prints)| prints.texts().get(record.text));
        let unknown = || format!("(text {:#x} of a kernel that is not known)", record.text);
        PrintLine {
            cycle: record.cycle,
            tile,
            core,
            kernel: kernel.map_or_else(|| "?".into(), |(name, _)| Arc::clone(name)),
            source: text.map_or_else(Default::default, |text| (text.file.clone(), text.line)),
            condition: text.filter(|text| text.kind == Kind::Assert).map(|text| text.condition.clone()),
            text: text.map_or_else(unknown, |text| text.show(record)),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Rings> {
        // Nobody panics while it is locked; what is there is whole all the same.
        self.rings.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
