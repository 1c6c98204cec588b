//! Rings and schedules of a file, for `tilework pto run` and `tilework pto explore`. `docs/pto.md`
//! describes the format.

use super::args::{ARCHS, Names, OverArgs, PROFILES, find, list};
use crate::failure::{Failure, Outcome};
use crate::program::source::Source;
use crate::program::wrong::Wrong;
use serde::de::{self, Deserialize, Deserializer};
use std::path::Path;
use tilework_pto::{Action, Arch, DType, Direction, Profile, RingSpec, Schedule, Shape, Split};
use toml::Spanned;

/// Budget of a file's rings; there are 16 semaphore ids.
const MAX_RINGS: usize = 16;
/// Budget of a core's actions, repetitions counted.
const MAX_ACTIONS: usize = 1 << 20;
/// Budget of nested repetitions.
const MAX_DEPTH: usize = 8;

/// Directions of rings.
pub const DIRECTIONS: Names<Direction> = &[
    ("c2v", "Cube to Vectors", Direction::C2V),
    ("v2c", "Vectors to Cube", Direction::V2C),
    ("both", "Both", Direction::Both),
    ("v2c-ctrl", "Control words from Vector 0 to the Cube", Direction::V2cCtrl),
    ("c2v-gm", "Cube to Vectors through global memory, on a5", Direction::C2vGm),
    ("v2c-gm", "Vectors to Cube through global memory, on a5", Direction::V2cGm),
    ("both-gm", "Both through global memory, on a5", Direction::BothGm),
];

const SPLITS: Names<Split> = &[
    ("up-down", "Upper and lower half", Split::UpDown),
    ("left-right", "Left and right half", Split::LeftRight),
    ("up-down-odd", "The same of an odd number of rows", Split::UpDownOdd),
    ("left-right-odd", "The same of an odd number of columns", Split::LeftRightOdd),
    ("none", "Vector 0 has it all", Split::None),
];

const DTYPES: Names<DType> = &[
    ("f32", "", DType::F32),
    ("f16", "", DType::F16),
    ("i32", "", DType::I32),
    ("i16", "", DType::I16),
    ("i8", "", DType::I8),
];

/// A file as it is written.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct RingFile {
    name: String,
    arch: Option<Spanned<String>>,
    rings: Vec<Spanned<RingDecl>>,
    schedule: Spanned<ScheduleDecl>,
}

#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct RingDecl {
    name: Spanned<String>,
    direction: Spanned<String>,
    tile: [usize; 2],
    v2c_tile: Option<[usize; 2]>,
    dtype: Option<Spanned<String>>,
    slots: Option<u32>,
    local_slots: Option<u32>,
    slot_bytes: Option<usize>,
    split: Option<Spanned<String>>,
    profile: Option<Spanned<String>>,
    flag: Option<u8>,
}

#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct ScheduleDecl {
    cube: Option<Vec<Spanned<Item>>>,
    vectors: Option<Vec<Spanned<Item>>>,
    vector0: Option<Vec<Spanned<Item>>>,
    vector1: Option<Vec<Spanned<Item>>>,
}

/// An item of a schedule: an action, or a repeated list of items.
#[derive(Debug)]
enum Item {
    Action(String),
    Repeat { repeat: usize, items: Vec<Spanned<Item>> },
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Repeat {
            repeat: usize,
            r#do: Vec<Spanned<Item>>,
        }
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Item;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an action in a string, or { repeat = N, do = [...] }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Item, E> {
                Ok(Item::Action(text.to_owned()))
            }
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Item, A::Error> {
                let Repeat { repeat, r#do } = Repeat::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Item::Repeat { repeat, items: r#do })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A schedule with its architecture.
pub struct Scheduled {
    /// The file's name for it.
    pub name: String,
    /// The architecture.
    pub arch: Arch,
    /// Rings and actions.
    pub schedule: Schedule,
}

/// Reads a file; what the command line gives replaces what the file states.
pub fn read(path: &Path, over: &OverArgs) -> Outcome<Scheduled> {
    let source = Source::read(path, "a file of rings")?;
    let file: RingFile = source.toml()?;
    let mut reader = Reader { source: &source, over, wrong: Wrong::default(), names: Vec::new() };
    let of_file = file.arch.as_ref().and_then(|arch| reader.named(ARCHS, "arch", arch));
    let arch = over.arch.map(|arch| arch.value).or(of_file).unwrap_or(ARCHS[0].2);
    if let Some(extra) = file.rings.get(MAX_RINGS) {
        reader.wrong.add(source.error(extra.span(), format!("{} rings; at most {MAX_RINGS}", file.rings.len())));
    }
    let mut rings: Vec<RingSpec> = Vec::new();
    for ring in file.rings.iter().take(MAX_RINGS) {
        let next = rings.iter().map(RingSpec::flag_end).max().unwrap_or(0);
        rings.extend(reader.ring(ring, next, arch));
        reader.names.push(ring.get_ref().name.get_ref().clone());
    }
    let schedule = reader.schedule(&file.schedule, rings, arch);
    reader.wrong.outcome()?;
    schedule.check(arch).map_err(|error| source.error(file.schedule.span(), error))?;
    Ok(Scheduled { name: file.name, arch, schedule })
}

struct Reader<'a> {
    source: &'a Source,
    over: &'a OverArgs,
    wrong: Wrong,
    /// Names of the rings so far.
    names: Vec<String>,
}

impl Reader<'_> {
    fn named<T: Copy>(&mut self, names: Names<T>, what: &str, given: &Spanned<String>) -> Option<T> {
        let found = find(names, given.get_ref()).map(|named| named.value);
        if found.is_none() {
            let message = format!("{what} \"{}\"; expected {}", given.get_ref(), list(names));
            self.wrong.add(self.source.error(given.span(), message));
        }
        found
    }

    /// A ring whose semaphores begin at `next` unless it says otherwise; `None` when something is
    /// wrong with it.
    fn ring(&mut self, ring: &Spanned<RingDecl>, next: u32, arch: Arch) -> Option<RingSpec> {
        let (span, decl) = (ring.span(), ring.get_ref());
        if self.names.contains(decl.name.get_ref()) {
            let message = format!("two rings are named \"{}\"", decl.name.get_ref());
            self.wrong.add(self.source.error(decl.name.span(), message));
        }
        let usual = |given: &Option<Spanned<String>>, usual: &str| match given {
            Some(given) => given.clone(),
            None => Spanned::new(span.clone(), usual.to_owned()),
        };
        let direction = self.named(DIRECTIONS, "direction", &decl.direction);
        let dtype = self.named(DTYPES, "dtype", &usual(&decl.dtype, DTYPES[0].0));
        let profile = self.named(PROFILES, "profile", &usual(&decl.profile, PROFILES[0].0));
        let split = match &decl.split {
            Some(split) => self.named(SPLITS, "split", split).map(Some)?,
            None => None,
        };
        let (direction, dtype, profile): (Direction, DType, Profile) = (direction?, dtype?, profile?);
        let shape = |[rows, cols]: [usize; 2]| Shape::new(rows, cols, dtype);
        let mut spec = RingSpec::new(decl.name.get_ref(), direction, shape(decl.tile));
        spec = spec.profile(self.over.profile.map_or(profile, |over| over.value));
        spec = spec.flag(decl.flag.unwrap_or_else(|| u8::try_from(next).unwrap_or(u8::MAX)));
        if let Some(slots) = self.over.slots.or(decl.slots) {
            spec = spec.slots(slots);
        }
        if let Some(slots) = decl.local_slots {
            spec = spec.local_slots(slots);
        }
        if let Some(split) = split {
            spec = spec.split(split);
        }
        if let Some(tile) = decl.v2c_tile {
            spec = spec.v2c_tile(shape(tile));
        }
        if let Some(bytes) = decl.slot_bytes {
            spec = spec.slot_bytes(bytes);
        }
        self.wrong.keep(spec.check(arch).map_err(|error| self.source.error(span, error)))?;
        Some(spec)
    }

    fn schedule(&mut self, decl: &Spanned<ScheduleDecl>, rings: Vec<RingSpec>, arch: Arch) -> Schedule {
        let ScheduleDecl { cube, vectors, vector0, vector1 } = decl.get_ref();
        let mut actions = |items: &Option<Vec<Spanned<Item>>>| {
            let mut actions = Vec::new();
            let done = self.actions(items.as_deref().unwrap_or_default(), &mut actions, MAX_DEPTH);
            self.wrong.keep(done);
            actions
        };
        let (cube, both) = (actions(cube), actions(vectors));
        let own = [actions(vector0), actions(vector1)];
        if vectors.is_some() && (vector0.is_some() || vector1.is_some()) {
            let message = "give vectors, what both Vectors do, or vector0 and vector1";
            self.wrong.add(self.source.error(decl.span(), message));
        }
        match vectors {
            Some(_) => Schedule::with_vectors(rings, cube, both, arch),
            None => {
                let [first, second] = own;
                Schedule { rings, actions: [cube, first, second] }
            }
        }
    }

    /// Adds the actions of some items. Wrong ones are kept; an error ends the list.
    fn actions(&mut self, items: &[Spanned<Item>], into: &mut Vec<Action>, depth: usize) -> Outcome<()> {
        for item in items {
            match item.get_ref() {
                Item::Action(text) => {
                    let action = self.action(text).map_err(|message| self.source.error(item.span(), message));
                    into.extend(self.wrong.keep(action));
                }
                Item::Repeat { .. } if depth == 0 => {
                    let message = format!("more than {MAX_DEPTH} repetitions inside one another");
                    return Err(self.source.error(item.span(), message));
                }
                Item::Repeat { repeat, items } => {
                    let mut once = Vec::new();
                    self.actions(items, &mut once, depth - 1)?;
                    let all = once.len().saturating_mul(*repeat).saturating_add(into.len());
                    if all > MAX_ACTIONS {
                        return Err(self.too_many(item.span()));
                    }
                    into.extend(once.repeat(*repeat));
                }
            }
        }
        Ok(())
    }

    fn too_many(&self, span: std::ops::Range<usize>) -> Failure {
        self.source.error(span, format!("more than {MAX_ACTIONS} actions of one core"))
    }

    /// Reads `push RING`, `pop RING`, `free RING` or `work CYCLES`.
    fn action(&self, text: &str) -> Result<Action, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let ring = |name: &str| {
            let position = self.names.iter().position(|known| known == name);
            position.ok_or_else(|| format!("there is no ring \"{name}\"; there are {}", self.names.join(", ")))
        };
        match words[..] {
            ["push", name] => ring(name).map(Action::Push),
            ["pop", name] => ring(name).map(Action::Pop),
            ["free", name] => ring(name).map(Action::Free),
            ["work", cycles] => {
                let wrong = |_| format!("\"{cycles}\" is no number of cycles");
                cycles.replace('_', "").parse().map(Action::Work).map_err(wrong)
            }
            _ => Err(format!("\"{text}\" is no action; expected push, pop or free with a ring, or work with cycles")),
        }
    }
}
