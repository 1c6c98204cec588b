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

use crate::elf::KernelPrints;
use crate::queue::MakeRoom;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::print::STRIDE;
use tilework_abi::tensix::Processor;
use tilework_driver::SeenStore;
use tilework_prints::{Kind, Record, Ring, metal};

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
    /// The kernel's file; [`DEVICE_PRINT`] for a device print of tt-metal.
    pub kernel: Arc<str>,
    /// The source file and line of the call; without a name for a device print, which has none.
    pub source: (String, u32),
    /// The condition that did not hold, of an assertion.
    pub condition: Option<String>,
    /// The text with its values. Tiles and arrays have several lines.
    pub text: String,
}

/// What stands for the kernel of a device print.
pub const DEVICE_PRINT: &str = "DPRINT";

/// The line of a device print.
fn device_print((tile, core): Core, cycle: Cycle, text: String) -> PrintLine {
    let (kernel, source) = (DEVICE_PRINT.into(), Default::default());
    PrintLine { cycle, tile, core, kernel, source, condition: None, text }
}

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
    /// Where the buffers of device prints begin, if they are known.
    metal_base: Option<u32>,
    metal: BTreeMap<Core, metal::Buffer>,
    metal_lines: Vec<(Core, Cycle, String)>,
    missed: u64,
}

impl Rings {
    /// Takes a store of any core to the buffers of device prints of its tile.
    fn metal_store(&mut self, store: &SeenStore) {
        let Some(offset) = self.metal_base.and_then(|base| store.address.checked_sub(base)) else { return };
        let Some(&core) = metal::CORES.get(usize_of(u64::from(offset / metal::BUFFER_BYTES))) else { return };
        let bytes = store.value.to_le_bytes();
        let bytes = &bytes[..usize::from(store.bytes).min(bytes.len())];
        let core = (store.tile, core);
        let lines = self.metal.entry(core).or_default().store(offset % metal::BUFFER_BYTES, bytes);
        self.metal_take(core, store.cycle, lines);
    }

    fn metal_take(&mut self, core: Core, cycle: Cycle, lines: Vec<String>) {
        for line in lines {
            match self.metal_lines.len() < MOST_WAITING {
                true => self.metal_lines.push((core, cycle, line)),
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

    /// What the chip calls for every store to the buffers of device prints, which begin at `base`.
    pub(crate) fn metal_sink(&self, base: L1Addr) -> tilework_driver::StoreSink {
        self.lock().metal_base = Some(base.get());
        let rings = Arc::clone(&self.rings);
        Box::new(move |store| {
            if let Ok(mut rings) = rings.lock() {
                rings.metal_store(store);
            }
        })
    }

    /// What a wait calls when the chip is quiescent: the buffers of device prints that have been
    /// read, with the words that say so. Each is there once.
    pub(crate) fn room(&self) -> Option<MakeRoom> {
        self.metal_watched.filter(|watched| *watched)?;
        let rings = Arc::clone(&self.rings);
        Some(Box::new(move || {
            let Ok(mut rings) = rings.lock() else { return Vec::new() };
            let Some(base) = rings.metal_base else { return Vec::new() };
            let of = |(&(tile, core), buffer): (&Core, &mut metal::Buffer)| {
                let number = metal::CORES.iter().position(|&other| other == core)?;
                let at = L1Addr::new(base).offset(metal::BUFFER_BYTES * u32_of(number)).offset(metal::RPOS);
                Some((tile, at, buffer.give_back()?))
            };
            rings.metal.iter_mut().filter_map(of).collect()
        }))
    }

    /// Takes a buffer of device prints as it is on the chip at `cycle`.
    pub(crate) fn metal_load(&self, core: Core, cycle: Cycle, bytes: &[u8]) {
        let mut rings = self.lock();
        let lines = rings.metal.entry(core).or_default().load(bytes);
        rings.metal_take(core, cycle, lines);
    }

    /// Ends the lines of device prints that are not whole, when no more can come.
    pub(crate) fn metal_end(&self, cycle: Cycle) {
        let mut rings = self.lock();
        let rest = |(&core, buffer): (&Core, &mut metal::Buffer)| Some((core, cycle, buffer.rest()?));
        let mut rest: Vec<_> = rings.metal.iter_mut().filter_map(rest).collect();
        rings.metal_lines.append(&mut rest);
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
            (std::mem::take(&mut rings.waiting), std::mem::take(&mut rings.metal_lines))
        };
        let mut lines: Vec<PrintLine> = waiting.iter().map(|(core, record)| self.line(*core, record)).collect();
        lines.extend(device.into_iter().map(|(core, cycle, text)| device_print(core, cycle, text)));
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
        self.lock().missed
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
