//! Findings as data: the form of their JSON, which a run's report and the library's file share.
//! docs/report.md lists the keys.

use crate::finding::{Agent, Finding, Place, Space};
use crate::told::{Frame, Source, Told};
use serde::Serialize;
use std::fmt;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// A tile by its coordinates.
#[derive(Serialize, Debug)]
pub struct TileData {
    x: u8,
    y: u8,
}

impl TileData {
    /// A tile.
    pub fn of(xy: NocXy) -> Self {
        Self { x: xy.x, y: xy.y }
    }

    /// Several tiles.
    pub fn all(tiles: &[NocXy]) -> Vec<Self> {
        tiles.iter().copied().map(Self::of).collect()
    }
}

/// The core as program files name it: `brisc`.
pub fn core_name(core: Processor) -> String {
    core.name().to_lowercase()
}

/// A finding. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct FindingData {
    id: &'static str,
    about: &'static str,
    certainty: &'static str,
    what: String,
    #[serde(flatten)]
    place: PlaceData,
    /// The other side, of a race or of who wrote the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<PlaceData>,
    /// Of a race: what would have ordered the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    count: u64,
    tiles: Vec<TileData>,
}

/// Who did something, where and when.
#[derive(Serialize, Debug)]
struct PlaceData {
    tile: TileData,
    agent: String,
    core: Option<String>,
    pc: Option<u32>,
    cycle: u64,
    #[serde(flatten)]
    access: Option<AccessData>,
    runs: Option<String>,
    source: Option<Vec<SourceData>>,
}

/// The bytes of an access.
#[derive(Serialize, Debug)]
struct AccessData {
    memory: &'static str,
    memory_tile: TileData,
    address: u64,
    bytes: u32,
}

/// A function, and where in it.
#[derive(Serialize, Debug)]
struct SourceData {
    function: String,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

impl FindingData {
    /// What makes it the same finding in another run.
    pub fn key(&self) -> (&'static str, Option<&str>, Option<u32>) {
        (self.id, self.place.core.as_deref(), self.place.pc)
    }

    /// A finding as it is told.
    pub fn of(told: Told) -> Self {
        let Told { finding, source, other_source, tiles } = told;
        let Finding { check, place, what, other, missing, count } = finding;
        Self {
            id: check.id,
            about: check.kind.name(),
            certainty: check.certainty.name(),
            what,
            place: PlaceData::of(&place, source),
            other: other.map(|other| PlaceData::of(&other, other_source)),
            missing,
            count,
            tiles: TileData::all(&tiles),
        }
    }
}

impl fmt::Display for FindingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

impl PlaceData {
    fn of(place: &Place, source: Option<Source>) -> Self {
        let access = place.target.map(|target| AccessData {
            memory: memory(target.space),
            memory_tile: TileData::of(target.tile),
            address: target.addr,
            bytes: target.bytes,
        });
        let runs = source.as_ref().map(|source| source.runs.clone());
        let frame = |Frame { function, line, column }: Frame| {
            let (file, line) = line.unzip();
            SourceData { function, file, line, column }
        };
        let source = source.map(|source| source.frames.into_iter().map(frame).collect());
        Self {
            tile: TileData::of(place.tile),
            agent: agent(place.agent),
            core: place.code.map(|code| core_name(code.core)),
            pc: place.code.map(|code| code.pc),
            cycle: place.cycle,
            access,
            runs,
            source,
        }
    }
}

/// An agent as one word: `brisc`, `noc_0_read`, `unpacker_1`.
fn agent(agent: Agent) -> String {
    match agent {
        Agent::Core(core) => core_name(core),
        Agent::NocRead(noc) => format!("noc_{noc}_read"),
        Agent::NocWrite(noc) => format!("noc_{noc}_write"),
        Agent::NocAtomic(noc) => format!("noc_{noc}_atomic"),
        Agent::Unpacker(unit) => format!("unpacker_{unit}"),
        Agent::Packer(unit) => format!("packer_{unit}"),
        Agent::Thread(thread) => format!("thread_{thread}"),
        Agent::Host => "host".to_owned(),
    }
}

/// A kind of memory as one word.
fn memory(space: Space) -> &'static str {
    match space {
        Space::L1 => "l1",
        Space::Local(_) => "local",
        Space::Dram => "dram",
        Space::Host => "host",
        Space::Registers => "registers",
    }
}
