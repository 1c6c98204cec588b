//! Device prints of tt-metal's kernels, in the form that the memory map names: buffers of the cores
//! with streams of values (`dprint_buf`), or one of the tile with numbers of texts
//! (`device_print_buf`). The host says that somebody reads, reads, and gives room back, as
//! tt-metal's print server does.

use super::Core;
use std::collections::BTreeMap;
use tilework_abi::addr::L1Addr;
use tilework_abi::convert::{u32_of, usize_of};
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_driver::SeenStore;
use tilework_prints::{device_print, metal};

/// A form, and where its first buffer begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Streams of values, a buffer for each core.
    Streams(L1Addr),
    /// Numbers of texts, a buffer for all cores of a tile.
    Texts(L1Addr),
}

impl Form {
    /// That of a map, if it has one.
    pub(crate) fn of(map: &MemoryMap) -> Option<Self> {
        map.device_print_buf.map(Self::Texts).or(map.dprint_buf.map(Self::Streams))
    }

    /// Where the buffers begin.
    pub(crate) fn base(self) -> L1Addr {
        match self {
            Self::Streams(base) | Self::Texts(base) => base,
        }
    }

    /// Bytes of all buffers of a tile.
    pub(crate) fn bytes(self) -> u32 {
        match self {
            Self::Streams(_) => metal::BYTES,
            Self::Texts(_) => device_print::BUFFER_BYTES,
        }
    }

    /// What tells the kernels of a tile that somebody reads.
    pub(crate) fn starts(self) -> Vec<(L1Addr, Vec<u8>)> {
        match self {
            Self::Streams(base) => {
                let at = |buffer| base.offset(metal::BUFFER_BYTES * buffer).offset(metal::WPOS);
                (0..u32_of(metal::CORES.len())).map(|i| (at(i), metal::STARTING.to_le_bytes().to_vec())).collect()
            }
            Self::Texts(base) => {
                let mut header = vec![0; device_print::HEADER_BYTES as usize];
                header[..4].copy_from_slice(&device_print::STARTING.to_le_bytes());
                vec![(base.offset(device_print::WPOS), header)]
            }
        }
    }
}

/// What a core has printed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// A line.
    Line(String),
    /// A text with the bytes of its values.
    Text {
        /// The number of the kernel, if it has told it; none for the firmware.
        kernel: Option<u16>,
        by_kernel: bool,
        text: Option<u16>,
        values: Vec<u8>,
    },
}

/// What the buffer of a tile has told.
#[derive(Debug, Default)]
struct Tile {
    buffer: device_print::Buffer,
    /// The kernels that the cores run, by the numbers of their launch messages.
    kernels: [Option<u16>; Processor::ALL.len()],
}

/// The buffers of all tiles.
#[derive(Debug)]
pub(super) struct Buffers {
    form: Form,
    streams: BTreeMap<Core, metal::Buffer>,
    tiles: BTreeMap<NocXy, Tile>,
    /// Records of cores that a tile does not have.
    pub(super) missed: u64,
}

impl Buffers {
    pub(super) fn new(form: Form) -> Self {
        Self { form, streams: BTreeMap::new(), tiles: BTreeMap::new(), missed: 0 }
    }

    /// Takes a store of any core to the buffers of its tile.
    pub(super) fn store(&mut self, store: &SeenStore) -> Vec<(Core, Said)> {
        let Some(offset) = store.address.checked_sub(self.form.base().get()) else { return Vec::new() };
        let bytes = store.value.to_le_bytes();
        let bytes = &bytes[..usize::from(store.bytes).min(bytes.len())];
        if let Form::Texts(_) = self.form {
            let records = self.tiles.entry(store.tile).or_default().buffer.store(offset, bytes);
            return self.take(store.tile, records);
        }
        let Some(&core) = metal::CORES.get(usize_of(u64::from(offset / metal::BUFFER_BYTES))) else {
            return Vec::new();
        };
        let core = (store.tile, core);
        let lines = self.streams.entry(core).or_default().store(offset % metal::BUFFER_BYTES, bytes);
        lines.into_iter().map(|line| (core, Said::Line(line))).collect()
    }

    /// Takes the buffers of a tile as they are on the chip.
    pub(super) fn load(&mut self, tile: NocXy, bytes: &[u8]) -> Vec<(Core, Said)> {
        if let Form::Texts(_) = self.form {
            let records = self.tiles.entry(tile).or_default().buffer.load(bytes);
            return self.take(tile, records);
        }
        let mut said = Vec::new();
        for (core, buffer) in metal::CORES.into_iter().zip(bytes.chunks(metal::BUFFER_BYTES as usize)) {
            let lines = self.streams.entry((tile, core)).or_default().load(buffer);
            said.extend(lines.into_iter().map(|line| ((tile, core), Said::Line(line))));
        }
        said
    }

    fn take(&mut self, tile: NocXy, records: Vec<device_print::Record>) -> Vec<(Core, Said)> {
        use device_print::Record;
        let kernels = &mut self.tiles.entry(tile).or_default().kernels;
        let mut said = Vec::new();
        for record in records {
            match record {
                Record::Kernel { core: Some(core), id } => kernels[core.index()] = Some(id),
                Record::Print { core: Some(core), by_kernel, text, values } => {
                    let kernel = kernels[core.index()].filter(|_| by_kernel);
                    said.push(((tile, core), Said::Text { kernel, by_kernel, text, values }));
                }
                Record::Kernel { core: None, .. } | Record::Print { core: None, .. } => self.missed += 1,
            }
        }
        said
    }

    /// The buffers that have been read, with the words that say so. Each is there once.
    pub(super) fn room(&mut self) -> Vec<(NocXy, L1Addr, u32)> {
        let base = self.form.base();
        let mut words = Vec::new();
        for (&(tile, core), buffer) in &mut self.streams {
            let Some(number) = metal::CORES.iter().position(|&other| other == core) else { continue };
            let at = base.offset(metal::BUFFER_BYTES * u32_of(number)).offset(metal::RPOS);
            words.extend(buffer.give_back().map(|end| (tile, at, end)));
        }
        for (&tile, state) in &mut self.tiles {
            words.extend(state.buffer.give_back().map(|end| (tile, base.offset(device_print::RPOS), end)));
        }
        words
    }

    /// Lines that are not whole, when no more can come.
    pub(super) fn rest(&mut self) -> Vec<(Core, Said)> {
        let rest = |(&core, buffer): (&Core, &mut metal::Buffer)| Some((core, Said::Line(buffer.rest()?)));
        self.streams.iter_mut().filter_map(rest).collect()
    }
}
