//! Tracks, events and their arguments.

use crate::names::{Name, Names};

/// A track of slices and instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Track(pub(crate) u32);

/// A track of a counter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterTrack(pub(crate) u32);

/// An arrow from one slice or instant to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Arrow(pub(crate) u32);

/// The value of an event's argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// An unsigned number.
    U64(u64),
    /// A signed number.
    I64(i64),
    /// A floating-point number.
    F64(f64),
    /// A boolean.
    Bool(bool),
    /// A text.
    Str(&'a str),
}

macro_rules! values {
    ($($variant:ident $type:ty),*) => {$(
        impl From<$type> for Value<'_> {
            fn from(value: $type) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}
values!(U64 u64, U64 u32, U64 u16, U64 u8, I64 i64, I64 i32, F64 f64, F64 f32, Bool bool);

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Str(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(value: &'a String) -> Self {
        Self::Str(value)
    }
}

impl From<usize> for Value<'_> {
    fn from(value: usize) -> Self {
        Self::U64(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

/// A track of either kind.
#[derive(Clone, Debug)]
pub(crate) struct TrackRecord {
    pub(crate) name: String,
    pub(crate) parent: Option<u32>,
    /// The unit of a counter's values; None for slices.
    pub(crate) unit: Option<&'static str>,
}

/// The name of a track with those of its ancestors.
pub(crate) fn path(tracks: &[TrackRecord], track: u32) -> String {
    let mut names = Vec::new();
    let mut next = Some(track);
    while let Some(record) = next.and_then(|t| tracks.get(t as usize)) {
        names.push(record.name.as_str());
        next = record.parent;
    }
    names.reverse();
    names.join("/")
}

/// The top-level ancestor of a track.
pub(crate) fn top(tracks: &[TrackRecord], mut track: u32) -> u32 {
    while let Some(parent) = tracks[track as usize].parent {
        track = parent;
    }
    track
}

/// A slice, an instant or a value.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) track: u32,
    pub(crate) start: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A slice with its end, if it has one.
    Slice(Option<u64>, Details),
    Instant(Details),
    Count(i64),
}

/// Name, and arguments and arrows as ranges of the timeline's lists.
#[derive(Clone, Debug)]
pub(crate) struct Details {
    pub(crate) name: Name,
    pub(crate) args: std::ops::Range<usize>,
    pub(crate) arrows: std::ops::Range<usize>,
}

/// A name with arguments and arrows, as a writer takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named<'a> {
    pub(crate) name: Name,
    pub(crate) args: &'a [Arg],
    pub(crate) arrows: &'a [ArrowEnd],
}

/// What a writer writes at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Told<'a> {
    Start(Named<'a>),
    End,
    Instant(Named<'a>),
    Count(i64),
}

/// A stored argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arg {
    pub(crate) key: Name,
    pub(crate) value: Kept,
}

impl Arg {
    pub(crate) fn new(names: &mut Names, key: &str, value: Value<'_>) -> Self {
        let value = Kept::new(names, value);
        Self { key: names.add(key), value }
    }

    /// With a key that is a constant.
    pub(crate) fn with_constant(names: &mut Names, key: &'static str, value: Value<'_>) -> Self {
        let value = Kept::new(names, value);
        Self { key: names.add_constant(key), value }
    }
}

impl Kept {
    #[inline]
    fn new(names: &mut Names, value: Value<'_>) -> Self {
        match value {
            Value::U64(v) => Self::U64(v),
            Value::I64(v) => Self::I64(v),
            Value::F64(v) => Self::F64(v),
            Value::Bool(v) => Self::Bool(v),
            Value::Str(v) => Self::Str(names.add(v)),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kept {
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Str(Name),
}

/// Which end of an arrow is at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrowEnd {
    From(Arrow),
    To(Arrow),
}
