//! The program file as it is written: TOML to plain structures. `docs/program.md` is its
//! description for users.
//!
//! Unknown fields are refused. What can be wrong beyond the form keeps its byte range
//! ([`Spanned`]), so that the checks of [`super::plan`] can point at it.

use super::launches::LaunchDecl;
use super::sections;
use super::source::Source;
use super::steps::StepDecl;
use super::wrong::{Wrong, consequence};
use crate::failure::Outcome;
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;
use tilework_text::is_hidden;
use toml::Spanned;

/// A program file.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ProgramFile {
    /// The program's name in reports.
    pub name: Spanned<String>,
    /// The workers that it may use; all unless given.
    pub workers: Option<Spanned<Vec<CoreItem>>>,
    /// Buffers by name, in the order of the file.
    #[serde(default)]
    pub buffers: Buffers,
    /// Circular buffers.
    #[serde(default)]
    pub cb: Vec<Spanned<CbDecl>>,
    /// Semaphores; their ids are their positions.
    #[serde(default)]
    pub semaphores: Vec<Spanned<SemaphoreDecl>>,
    /// Which cores run which kernels.
    pub roles: Vec<Spanned<RoleDecl>>,
    /// Run-time arguments that all cores share.
    #[serde(default)]
    pub common_args: CommonArgs,
    /// How often it runs, and with what; once unless given.
    #[serde(default)]
    pub launch: Vec<Spanned<LaunchDecl>>,
    /// What the host puts into the command queue, step by step. Unless given, inputs are written,
    /// then all launches run, then outputs are read.
    #[serde(default)]
    pub queue: Vec<Spanned<StepDecl>>,
    /// Findings that are meant to be, as `--allow` has them.
    #[serde(default)]
    pub allow: Vec<Spanned<String>>,
    /// What is missing because its form is wrong.
    #[serde(skip)]
    pub broken: Broken,
}

/// Parts of a program file that cannot be read.
#[derive(Debug, Default)]
pub struct Broken {
    /// The names of such buffers.
    pub buffers: Vec<String>,
    /// Whether there is such a circular buffer.
    pub cb: bool,
    /// Whether there is such a semaphore.
    pub semaphores: bool,
    /// Whether there is such a role.
    pub roles: bool,
    /// Whether there is such a launch.
    pub launches: bool,
    /// Whether there is such a step.
    pub steps: bool,
}

/// The arguments that all cores share: one list for each of the three argument sets of a
/// launch message.
#[derive(serde::Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub struct CommonArgs {
    /// For the BRISC kernels.
    #[serde(default)]
    pub brisc: Vec<Spanned<Value>>,
    /// For the NCRISC kernels.
    #[serde(default)]
    pub ncrisc: Vec<Spanned<Value>>,
    /// For the kernels of the three TRISCs.
    #[serde(default)]
    pub trisc: Vec<Spanned<Value>>,
}

/// What a buffer is for.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// Filled from an array of the command line before the run.
    Input,
    /// Written to a file after the run.
    Output,
    /// Neither.
    Scratch,
}

/// Where a buffer lives.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    /// Pages interleaved over the DRAM banks.
    Dram,
    /// The same range in the L1 of every core of the program.
    L1,
}

/// What the pages of a buffer are distributed over.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum Memory {
    /// The DRAM banks, page by page.
    Dram,
    /// The L1 of all workers, page by page.
    L1,
    /// The L1 of some workers, in shards.
    Sharded,
}

/// In which direction a sharded buffer is divided.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
pub enum ShardBy {
    /// Whole rows of pages.
    Height,
    /// Whole columns of pages.
    Width,
    /// Both.
    Block,
}

/// In which order the cores of a grid take shards.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "lowercase")]
pub enum Orientation {
    /// Along x first.
    #[default]
    Row,
    /// Along y first.
    Column,
}

/// The shards of a buffer.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct ShardDecl {
    /// The direction.
    pub by: ShardBy,
    /// Rows and columns of a shard in elements: integers or expressions.
    pub shape: Spanned<Vec<Spanned<Value>>>,
    /// The cores.
    pub grid: Spanned<Vec<CoreItem>>,
    /// The order of the cores.
    #[serde(default)]
    pub orientation: Orientation,
}

/// In which order the elements of a buffer lie.
#[derive(serde::Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Row by row.
    #[default]
    Row,
    /// Tiles of 32 x 32.
    Tile,
}

/// A buffer.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct BufferDecl {
    /// Input, output or scratch.
    #[serde(rename = "use")]
    pub usage: Spanned<Use>,
    /// Element type.
    pub dtype: Option<Spanned<crate::array::ElementType>>,
    /// Shape: integers or expressions. An input without a shape takes any.
    pub shape: Option<Spanned<Vec<Spanned<Value>>>>,
    /// Takes dtype and shape from an earlier buffer.
    pub like: Option<Spanned<String>>,
    /// In which order its elements lie; that of `like` unless given.
    pub layout: Option<Spanned<Layout>>,
    /// Bytes of a page; those of a tile unless given.
    pub page_size: Option<Spanned<Value>>,
    /// Where it lives, if it is not distributed.
    pub location: Option<Location>,
    /// What its pages are distributed over.
    pub memory: Option<Spanned<Memory>>,
    /// Its shards.
    pub shard: Option<Spanned<ShardDecl>>,
}

/// A circular buffer, on every core of the program.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct CbDecl {
    /// The name that expressions use: `cb.NAME` is the index.
    pub name: Option<Spanned<String>>,
    /// Index, 0 to 31.
    pub index: Spanned<Value>,
    /// Pages.
    pub pages: Spanned<Value>,
    /// Bytes of a page.
    pub page_size: Spanned<Value>,
}

/// A semaphore, on every core of the program.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct SemaphoreDecl {
    /// The name that expressions use: `sem.NAME` is the id.
    pub name: Option<Spanned<String>>,
    /// The value at the start of the program.
    #[serde(default)]
    pub initial: u32,
}

/// Kernels and the cores that run them.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct RoleDecl {
    /// The name that messages and expressions use.
    pub name: Option<Spanned<String>>,
    /// The cores.
    pub cores: Spanned<Cores>,
    /// Kernel of the first data-movement core.
    pub brisc: Option<Spanned<KernelDecl>>,
    /// Kernel of the second data-movement core.
    pub ncrisc: Option<Spanned<KernelDecl>>,
    /// Kernel of the unpack core.
    pub trisc0: Option<Spanned<KernelDecl>>,
    /// Kernel of the math core.
    pub trisc1: Option<Spanned<KernelDecl>>,
    /// Kernel of the pack core.
    pub trisc2: Option<Spanned<KernelDecl>>,
}

/// One kernel of a role.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct KernelDecl {
    /// ELF file relative to the program file, or `prebuilt:NAME`.
    pub elf: Spanned<String>,
    /// Run-time arguments, evaluated for each core. The kernels of the three TRISCs share theirs:
    /// one of them gives the list.
    #[serde(default)]
    pub args: Vec<Spanned<Value>>,
}

impl ProgramFile {
    /// Reads the form of a program file.
    pub fn parse(source: &Source) -> Outcome<Self> {
        let mut wrong = Wrong::default();
        let file = Self::parse_or(source, &mut wrong);
        wrong.outcome()?;
        // Without a file something is wrong.
        file.ok_or_else(consequence)
    }

    /// The same; what cannot be read is kept as wrong, and missing. `None`: nothing can be read.
    pub fn parse_or(source: &Source, wrong: &mut Wrong) -> Option<Self> {
        let file = match source.toml() {
            Ok(file) => Some(file),
            Err(whole) => {
                let file = sections::read(source, wrong);
                // The error of the whole is the first of its parts.
                if wrong.is_empty() {
                    wrong.add(whole);
                }
                file
            }
        };
        for name in file.iter().flat_map(Self::shown_names).filter(|name| name.get_ref().contains(is_hidden)) {
            wrong.add(source.error(name.span(), format!("{:?} has a control character", name.get_ref())));
        }
        file
    }

    /// The names that stand in messages and tables.
    fn shown_names(&self) -> impl Iterator<Item = Spanned<String>> {
        let kernels = |role: &RoleDecl| {
            let all = [&role.brisc, &role.ncrisc, &role.trisc0, &role.trisc1, &role.trisc2];
            all.into_iter().flatten().map(|kernel| kernel.get_ref().elf.clone()).collect::<Vec<_>>()
        };
        let roles = self.roles.iter().map(Spanned::get_ref);
        let launches = self.launch.iter().filter_map(|launch| launch.get_ref().name.clone());
        let roles = roles.flat_map(move |role| role.name.iter().cloned().chain(kernels(role)));
        roles.chain(launches).chain([self.name.clone()])
    }
}

/// The buffers of a program file.
pub type Buffers = Tables<BufferDecl>;

/// Named items in the order of the file.
#[derive(Debug)]
pub struct Tables<T>(pub Vec<(Spanned<String>, Spanned<T>)>);

impl<T> Default for Tables<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Tables<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Named<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Named<T> {
            type Value = Tables<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with names as keys")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Tables<T>, A::Error> {
                let mut items = Vec::new();
                while let Some(entry) = map.next_entry::<Spanned<String>, Spanned<T>>()? {
                    items.push(entry);
                }
                items.sort_by_key(|(name, _)| name.span().start);
                Ok(Tables(items))
            }
        }
        deserializer.deserialize_map(Named(PhantomData))
    }
}

/// A number: an integer, or an expression in a string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// Written as an integer.
    Integer(i64),
    /// Written as a string, not parsed yet.
    Expression(String),
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Value;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an integer or an expression in a string")
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
                Ok(Value::Integer(value))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
                i64::try_from(value).map(Value::Integer).map_err(|_| E::custom("integer out of range"))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                Ok(Value::Expression(text.to_owned()))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

/// Which cores a role takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// Every worker.
    All,
    /// Every worker that no other role takes.
    Rest,
    /// The first workers that no other role takes, in board order.
    Count(u64),
    /// Single cores and rectangles.
    List(Vec<CoreItem>),
}

/// An item of a list of cores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CoreItem {
    /// `[x, y]`.
    One([u64; 2]),
    /// `[[x, y], [x, y]]`: two opposite corners, both included.
    Rectangle([u64; 2], [u64; 2]),
}

const CORES: &str = "\"all\", \"rest\", a number of cores, or a list of cores [x, y] and rectangles [[x, y], [x, y]]";

impl<'de> Deserialize<'de> for Cores {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Choice;
        impl<'de> Visitor<'de> for Choice {
            type Value = Cores;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(CORES)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Cores, E> {
                match text {
                    "all" => Ok(Cores::All),
                    "rest" => Ok(Cores::Rest),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Cores, E> {
                u64::try_from(value)
                    .map(Cores::Count)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Cores, E> {
                Ok(Cores::Count(value))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cores, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    items.push(item);
                }
                Ok(Cores::List(items))
            }
        }
        deserializer.deserialize_any(Choice)
    }
}

impl<'de> Deserialize<'de> for CoreItem {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        let pair = |value: &toml::Value| match value.as_array()?.as_slice() {
            [x, y] => {
                let number = |v: &toml::Value| u64::try_from(v.as_integer()?).ok();
                Some([number(x)?, number(y)?])
            }
            _ => None,
        };
        let item = match value.as_array().map(Vec::as_slice) {
            Some([a, b]) if a.is_array() => pair(a).zip(pair(b)).map(|(a, b)| Self::Rectangle(a, b)),
            _ => pair(&value).map(Self::One),
        };
        item.ok_or_else(|| {
            de::Error::custom(format!("found {value}, expected a core [x, y] or a rectangle [[x, y], [x, y]]"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ProgramFile, String> {
        ProgramFile::parse(&Source::of(text)).map_err(|e| e.to_string())
    }

    const HEAD: &str = "name = \"t\"\n";

    #[test]
    fn buffers_keep_the_order_of_the_file() {
        let buffer = "use = \"scratch\"\ndtype = \"u32\"\nshape = [1]\npage_size = 64\n";
        let text = format!("{HEAD}[buffers.z]\n{buffer}[buffers.a]\n{buffer}[[roles]]\ncores = 1\n");
        let names: Vec<_> = parse(&text).unwrap().buffers.0.into_iter().map(|(n, _)| n.into_inner()).collect();
        assert_eq!(names, ["z", "a"]);
    }

    #[test]
    fn core_choices() {
        let cores = |text: &str| {
            parse(&format!("{HEAD}[[roles]]\ncores = {text}\n")).map(|p| p.roles[0].get_ref().cores.get_ref().clone())
        };
        assert_eq!(cores("\"all\""), Ok(Cores::All));
        assert_eq!(cores("7"), Ok(Cores::Count(7)));
        assert_eq!(
            cores("[[1, 2], [[3, 4], [5, 6]]]"),
            Ok(Cores::List(vec![CoreItem::One([1, 2]), CoreItem::Rectangle([3, 4], [5, 6])]))
        );
        let message = cores("\"some\"").unwrap_err();
        assert!(message.starts_with("program.toml:3:9: invalid value: string \"some\", expected \"all\""), "{message}");
        assert!(cores("[[1, -2]]").unwrap_err().contains("found [1, -2], expected a core"));
        assert!(cores("-1").is_err());
    }

    #[test]
    fn unknown_fields_and_wrong_types_are_refused_with_their_place() {
        let message = parse("name = \"t\"\nroles = []\nkernel = 1\n").unwrap_err();
        assert!(message.starts_with("program.toml:3:1: unknown field `kernel`, expected one of `name`"), "{message}");
        let message = parse("name = 3\nroles = []\n").unwrap_err();
        assert!(message.starts_with("program.toml:1:8: invalid type: integer `3`, expected a string"), "{message}");
        let message = parse("name = \"t\"\n").unwrap_err();
        assert!(message.contains("missing field `roles`"), "{message}");
        let message = parse("name = \"t\n").unwrap_err();
        assert!(message.starts_with("program.toml:1:"), "{message}");
    }
}
