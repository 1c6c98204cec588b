//! Prints of kernels: which kernels print, their rings on the cores, and the lines they make.
//!
//! Before a kernel with prints runs for the first time on a core, the counts of that core's ring
//! are cleared. A simulator then shows every store to the rings, so that no record is lost; on
//! another chip the rings are read when programs have ended, and what was overwritten by then is
//! counted. Either way the records carry their time, by which lines are put in order.
//!
//! Layouts: `tilework_abi::print`. Texts: `tilework_prints`.

use crate::elf::KernelPrints;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tilework_abi::addr::{Cycle, L1Addr};
use tilework_abi::convert::usize_of;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::print::STRIDE;
use tilework_abi::tensix::Processor;
use tilework_driver::SeenStore;
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
    /// The kernel's file.
    pub kernel: Arc<str>,
    /// The source file and line of the call.
    pub source: (String, u32),
    /// The condition that did not hold, of an assertion.
    pub condition: Option<String>,
    /// The text with its values. Tiles and arrays have several lines.
    pub text: String,
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
    missed: u64,
}

impl Rings {
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
        let mut waiting = std::mem::take(&mut self.lock().waiting);
        waiting.sort_by_key(|(core, record)| (record.cycle, *core));
        let mut failed = None;
        for (core, record) in &waiting {
            let line = self.line(*core, record);
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
