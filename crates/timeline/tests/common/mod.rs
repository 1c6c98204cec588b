//! A timeline with all kinds of events, and a protobuf reader that is independent of the writer.
#![allow(dead_code, reason = "every test file uses its part")]

use tilework_timeline::{Clock, Format, Timeline};

/// Two cores, a counter, nested slices, an arrow, an open slice, an instant, arguments
/// of every kind.
pub(crate) fn sample() -> Timeline {
    let mut t = Timeline::new(Clock::mhz("cycle", 2000));
    let cluster = t.track("cluster 0", None);
    let cube = t.track("AIC", Some(cluster));
    let vector = t.track("AIV0", Some(cluster));
    let full = t.counter_track("full", Some(cluster), "slots");
    let tile = t.arrow();
    // The inner slice comes first, as from a simulation that adds slices when they end.
    t.slice(cube, 110, 150, "move").arg("bytes", 4096_u32);
    t.slice(cube, 100, 220, "TPUSH").arg("slot", 3_u64).arg("split", "up/down").from_here(tile);
    t.slice(cube, 220, 220, "SET").arg("last", true).arg("delta", -2_i64).arg("part", 0.5_f64);
    t.count(full, 0, 0);
    t.count(full, 220, 1);
    t.slice(vector, 231, 260, "TPOP").to_here(tile);
    t.open(vector, 260, "WAIT");
    t.instant(vector, 300, "fault").arg("why", "overflow");
    t
}

/// Writes a timeline to a buffer.
pub(crate) fn written(timeline: &Timeline, format: Format) -> Vec<u8> {
    let mut out = Vec::new();
    timeline.write(format, &mut out).unwrap();
    out
}

/// A field of a protobuf message.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    Varint(u64),
    Fixed64(u64),
    Bytes(Vec<u8>),
}

/// The fields of a message with their numbers, in their order (protobuf.dev, "Encoding").
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut bytes)),
            1 => Field::Fixed64(u64::from_le_bytes(take(&mut bytes, 8).try_into().unwrap())),
            2 => {
                let length = varint(&mut bytes) as usize;
                Field::Bytes(take(&mut bytes, length).to_vec())
            }
            other => panic!("wire type {other}"),
        };
        out.push((key >> 3, field));
    }
    out
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(bytes, 1)[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes");
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

/// The numbers of a field.
pub(crate) fn numbers(message: &[(u64, Field)], tag: u64) -> Vec<u64> {
    let of = |field: &Field| match field {
        Field::Varint(v) | Field::Fixed64(v) => *v,
        Field::Bytes(_) => panic!("field {tag} is no number"),
    };
    message.iter().filter(|(t, _)| *t == tag).map(|(_, f)| of(f)).collect()
}

/// The number of a field that is there at most once.
pub(crate) fn number(message: &[(u64, Field)], tag: u64) -> Option<u64> {
    let all = numbers(message, tag);
    assert!(all.len() <= 1, "field {tag} is there {} times", all.len());
    all.first().copied()
}

/// The messages of a field.
pub(crate) fn messages(message: &[(u64, Field)], tag: u64) -> Vec<Vec<(u64, Field)>> {
    bytes(message, tag).iter().map(|b| fields(b)).collect()
}

/// The texts of a field.
pub(crate) fn texts(message: &[(u64, Field)], tag: u64) -> Vec<String> {
    bytes(message, tag).into_iter().map(|b| String::from_utf8(b).unwrap()).collect()
}

fn bytes(message: &[(u64, Field)], tag: u64) -> Vec<Vec<u8>> {
    let of = |field: &Field| match field {
        Field::Bytes(b) => b.clone(),
        other => panic!("field {tag} is {other:?}"),
    };
    message.iter().filter(|(t, _)| *t == tag).map(|(_, f)| of(f)).collect()
}
