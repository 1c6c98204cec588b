//! Perfetto's form is read back with the field numbers of its `.proto` files, written down here a
//! second time, and by the rules of "Writing TrackEvent Protos Synthetically".

mod common;

use common::{Field, messages, number, numbers, sample, texts, written};
use proptest::prelude::*;
use std::collections::BTreeMap;
use tilework_timeline::{Clock, Format, Label, Stream, Timeline, TimelineError};

/// trace.proto and trace_packet.proto.
const TRACE_PACKET: u64 = 1;
const TIMESTAMP: u64 = 8;
const SEQUENCE: u64 = 10;
const TRACK_EVENT: u64 = 11;
const INTERNED: u64 = 12;
const FLAGS: u64 = 13;
const DESCRIPTOR: u64 = 60;
/// track_event.proto.
const ANNOTATIONS: u64 = 4;
const TYPE: u64 = 9;
const NAME_IID: u64 = 10;
const TRACK_UUID: u64 = 11;
const COUNTER_VALUE: u64 = 30;
const FLOWS: u64 = 47;
const ENDING_FLOWS: u64 = 48;
/// interned_data.proto.
const EVENT_NAMES: u64 = 2;
const ARGUMENT_NAMES: u64 = 3;
const ARGUMENT_STRINGS: u64 = 29;

type Message = Vec<(u64, Field)>;

#[derive(Debug, Default)]
struct Read {
    /// uuid to (name, parent, whether it is a counter).
    tracks: BTreeMap<u64, (String, Option<u64>, bool)>,
    /// Time, kind, track, name.
    events: Vec<(u64, u64, u64, String)>,
    raw: Vec<Message>,
    arguments: Vec<Vec<(String, String)>>,
}

/// Reads as trace_processor does: names are looked up in the tables that stood in this packet
/// or before it.
fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    let mut tables: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for (index, packet) in messages(&common::fields(bytes), TRACE_PACKET).into_iter().enumerate() {
        assert_eq!(number(&packet, SEQUENCE), Some(1), "all packets are of one sequence");
        if index == 0 {
            assert_eq!(number(&packet, FLAGS), Some(1), "the first packet clears the tables");
        }
        for descriptor in messages(&packet, DESCRIPTOR) {
            let name = texts(&descriptor, 2).remove(0);
            let counter = !messages(&descriptor, 8).is_empty();
            let old = read.tracks.insert(number(&descriptor, 1).unwrap(), (name, number(&descriptor, 5), counter));
            assert_eq!(old, None, "uuids are told apart");
        }
        for table in messages(&packet, INTERNED) {
            for tag in [EVENT_NAMES, ARGUMENT_NAMES, ARGUMENT_STRINGS] {
                for entry in messages(&table, tag) {
                    let iid = number(&entry, 1).unwrap();
                    assert_ne!(iid, 0);
                    assert_eq!(tables.insert((tag, iid), texts(&entry, 2).remove(0)), None, "written once");
                }
            }
        }
        for event in messages(&packet, TRACK_EVENT) {
            assert_eq!(number(&packet, FLAGS), Some(2), "events need the tables");
            let name = number(&event, NAME_IID).map_or(String::new(), |iid| tables[&(EVENT_NAMES, iid)].clone());
            let (kind, track) = (number(&event, TYPE).unwrap(), number(&event, TRACK_UUID).unwrap());
            assert!(read.tracks.contains_key(&track), "tracks are described first");
            read.events.push((number(&packet, TIMESTAMP).unwrap(), kind, track, name));
            let arguments = messages(&event, ANNOTATIONS).into_iter().map(|a| argument(&a, &tables)).collect();
            read.arguments.push(arguments);
            read.raw.push(event);
        }
    }
    read
}

fn argument(annotation: &Message, tables: &BTreeMap<(u64, u64), String>) -> (String, String) {
    let value = annotation.iter().find(|(tag, _)| *tag != 1).unwrap();
    let text = match value {
        (2, Field::Varint(v)) => (*v == 1).to_string(),
        (3, Field::Varint(v)) => v.to_string(),
        (4, Field::Varint(v)) => (*v as i64).to_string(),
        (5, Field::Fixed64(v)) => f64::from_bits(*v).to_string(),
        (17, Field::Varint(v)) => tables[&(ARGUMENT_STRINGS, *v)].clone(),
        other => panic!("{other:?}"),
    };
    (tables[&(ARGUMENT_NAMES, number(annotation, 1).unwrap())].clone(), text)
}

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

#[test]
fn everything_of_a_timeline_is_in_the_file() {
    let read = read(&written(&sample(), Format::Perfetto));
    let tracks: Vec<_> = read.tracks.values().map(|(name, parent, c)| (name.as_str(), *parent, *c)).collect();
    let expected =
        [("cluster 0", None, false), ("AIC", Some(1), false), ("AIV0", Some(1), false), ("full", Some(1), true)];
    assert_eq!(tracks, expected);
    // 2000 MHz: two cycles are a nanosecond.
    let events: Vec<_> =
        read.events.iter().map(|(at, kind, track, name)| (*at, *kind, *track, name.as_str())).collect();
    let expected = [
        (0, COUNTER, 4, ""),
        (50, BEGIN, 2, "TPUSH"),
        (55, BEGIN, 2, "move"),
        (75, END, 2, ""),
        (110, END, 2, ""),
        (110, BEGIN, 2, "SET"),
        (110, END, 2, ""),
        (110, COUNTER, 4, ""),
        (115, BEGIN, 3, "TPOP"),
        (130, END, 3, ""),
        (130, BEGIN, 3, "WAIT"),
        (150, INSTANT, 3, "fault"),
    ];
    assert_eq!(events, expected);
    let args: Vec<_> = read.arguments.iter().flatten().map(|(key, value)| format!("{key}={value}")).collect();
    let expected = ["slot=3", "split=up/down", "bytes=4096", "last=true", "delta=-2", "part=0.5", "why=overflow"];
    assert_eq!(args, expected);
    let counts: Vec<_> = read.raw.iter().filter_map(|event| number(event, COUNTER_VALUE)).collect();
    assert_eq!(counts, [0, 1]);
    let flows =
        |tag| read.raw.iter().map(|e| numbers(e, tag)).enumerate().filter(|(_, f)| !f.is_empty()).collect::<Vec<_>>();
    assert_eq!(flows(FLOWS), [(1, vec![1])]);
    assert_eq!(flows(ENDING_FLOWS), [(8, vec![1])]);
}

#[test]
fn an_arrow_within_one_time_starts_before_it_ends() {
    let mut t = Timeline::new(Clock::one_ns("cycle"));
    let (first, second) = (t.track("first", None), t.track("second", None));
    let arrow = t.arrow();
    t.instant(first, 5, "got").to_here(arrow);
    t.instant(first, 5, "then");
    t.instant(second, 5, "sent").from_here(arrow);
    let names: Vec<_> = read(&written(&t, Format::Perfetto)).events.into_iter().map(|e| e.3).collect();
    assert_eq!(names, ["sent", "got", "then"]);
}

#[test]
fn hostile_names_are_kept_as_they_are() {
    let mut t = Timeline::new(Clock::one_ns("cycle"));
    let names = ["", "\0", "a\nb\"\\", "\u{202e}x", &"long ".repeat(5000), "漢字"];
    for name in names {
        let track = t.track(name, None);
        t.instant(track, 1, name).arg(name, name);
    }
    let read = read(&written(&t, Format::Perfetto));
    assert_eq!(read.tracks.values().map(|t| t.0.as_str()).collect::<Vec<_>>(), names);
    assert_eq!(read.events.iter().map(|e| e.3.as_str()).collect::<Vec<_>>(), names);
    let args: Vec<_> = read.arguments.iter().flatten().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(args, names.map(|n| (n, n)));
}

#[test]
fn what_cannot_be_shown_is_refused_and_named() {
    let new = || {
        let mut t = Timeline::new(Clock::one_ns("cycle"));
        let top = t.track("cluster", None);
        let track = t.track("AIC", Some(top));
        (t, track)
    };
    let error = |t: &Timeline| t.write(Format::Perfetto, &mut Vec::new()).unwrap_err();
    let (mut t, track) = new();
    t.slice(track, 10, 20, "a");
    t.slice(track, 15, 25, "b");
    let text = error(&t).to_string();
    assert!(text.starts_with(r#"track "cluster/AIC": "b" starts at 15, in "a", and ends after it"#), "{text}");
    let (mut t, track) = new();
    t.slice(track, 10, 9, "a");
    assert_eq!(error(&t).to_string(), r#"track "cluster/AIC": "a" starts at 10 and ends at 9, before that"#);
    let (mut t, track) = new();
    t.slice(track, 0, u64::MAX, "a");
    assert!(matches!(error(&t), TimelineError::TooLate { time: u64::MAX, .. }));
    let (mut t, _) = new();
    let mut other = Timeline::new(Clock::one_ns("cycle"));
    let foreign = (0..3).map(|_| other.track("x", None)).last().unwrap();
    t.instant(foreign, 0, "a");
    assert_eq!(error(&t).to_string(), "track 2 is not one of this timeline, which has 2");
    let (mut t, track) = new();
    let arrow = other.arrow();
    t.instant(track, 0, "a").from_here(arrow);
    assert_eq!(error(&t).to_string(), "arrow 0 is not one of this timeline, which has 0");
}

/// Slices that lie in each other, from a tree of lengths.
fn nested(t: &mut Timeline, track: tilework_timeline::Track, mut at: u64, tree: &[Vec<u64>]) {
    for (i, parts) in tree.iter().enumerate() {
        let start = at;
        for (j, long) in parts.iter().enumerate() {
            t.slice(track, at, at + long, &format!("{i}.{j}"));
            at += long;
        }
        t.slice(track, start, at, &format!("{i}"));
    }
}

proptest! {
    /// Read in the file's order, which is that of time, each end closes the slice that was opened
    /// last, and at its time.
    #[test]
    fn ends_belong_to_the_innermost_slice(
        trees in prop::collection::vec(prop::collection::vec(prop::collection::vec(0_u64..4, 0..4), 0..5), 1..4),
        mhz in 1_u64..4000,
    ) {
        let clock = Clock::mhz("cycle", mhz);
        let mut t = Timeline::new(clock);
        let mut expected: Vec<BTreeMap<(String, u64, u64), usize>> = Vec::new();
        for tree in &trees {
            let track = t.track("t", None);
            nested(&mut t, track, 7, tree);
            let mut slices = BTreeMap::new();
            let mut at = 7;
            for (i, parts) in tree.iter().enumerate() {
                let ns = |time| clock.nanoseconds(time).unwrap();
                let start = at;
                for (j, long) in parts.iter().enumerate() {
                    *slices.entry((format!("{i}.{j}"), ns(at), ns(at + long))).or_default() += 1;
                    at += long;
                }
                *slices.entry((format!("{i}"), ns(start), ns(at))).or_default() += 1;
            }
            expected.push(slices);
        }
        let read = read(&written(&t, Format::Perfetto));
        prop_assert!(read.events.is_sorted_by_key(|e| e.0));
        let mut found = vec![BTreeMap::new(); trees.len()];
        let mut stacks: Vec<Vec<(u64, String)>> = vec![Vec::new(); trees.len()];
        for (at, kind, track, name) in read.events {
            let track = track as usize - 1;
            if kind == BEGIN {
                stacks[track].push((at, name));
            } else {
                let (start, name) = stacks[track].pop().unwrap();
                *found[track].entry((name, start, at)).or_default() += 1;
            }
        }
        prop_assert_eq!(found, expected);
        prop_assert!(stacks.iter().all(Vec::is_empty));
    }
}

/// Events of a stream that was advanced as it grew.
fn streamed(format: Format, window: std::ops::Range<u64>) -> Vec<u8> {
    let mut stream = Stream::new(Vec::new(), format, Clock::one_ns("cycle"), window).unwrap();
    let core = stream.track("core", None);
    let arrow = stream.arrow();
    stream.begin(core, 10, &Label { name: "kernel", args: &[("launch", 7_u64.into())], ..Label::default() });
    stream.begin(core, 20, &Label { name: "wait", from: Some(arrow), ..Label::default() });
    stream.advance(15).unwrap();
    stream.end(core, 40);
    // A track may come later, and events before others that are not settled.
    let bank = stream.track("bank", None);
    let level = stream.counter_track("level", Some(bank), "pages");
    stream.instant(bank, 30, &Label { to: Some(arrow), ..Label::named("read") });
    stream.count(level, 16, 2);
    stream.count(level, 35, 3);
    stream.advance(41).unwrap();
    stream.end(core, 60);
    stream.begin(core, 70, &Label::named("next"));
    stream.end(core, 80);
    stream.finish().unwrap()
}

#[test]
fn a_stream_has_its_events_in_the_order_of_time() {
    let read = read(&streamed(Format::Perfetto, 0..u64::MAX));
    let events: Vec<_> =
        read.events.iter().map(|(at, kind, track, name)| (*at, *kind, *track, name.as_str())).collect();
    let expected = [
        (10, BEGIN, 1, "kernel"),
        (16, COUNTER, 3, ""),
        (20, BEGIN, 1, "wait"),
        (30, INSTANT, 2, "read"),
        (35, COUNTER, 3, ""),
        (40, END, 1, ""),
        (60, END, 1, ""),
        (70, BEGIN, 1, "next"),
        (80, END, 1, ""),
    ];
    assert_eq!(events, expected);
    assert_eq!(read.arguments[0], [("launch".to_owned(), "7".to_owned())]);
    assert_eq!(numbers(&read.raw[2], FLOWS), numbers(&read.raw[3], ENDING_FLOWS));
}

#[test]
fn a_window_begins_with_what_is_open_and_ends_with_it() {
    let text = String::from_utf8(streamed(Format::Text, 25..50)).unwrap();
    let events: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected = [
        "25 ( core: kernel launch=7",
        "25 ( core: wait 1>",
        "25 bank/level = 2",
        "30 bank: read >1",
        "35 bank/level = 3",
        "40 ) core",
        "50 ) core",
    ];
    assert_eq!(events, expected);
    let none = String::from_utf8(streamed(Format::Text, 90..100)).unwrap();
    assert!(none.lines().all(|line| line.starts_with('#') || line.contains("level = 3")), "{none}");
}

#[test]
fn a_stream_in_json_is_json() {
    let json: serde_json::Value = serde_json::from_slice(&streamed(Format::Json, 0..u64::MAX)).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    let kinds: String = events.iter().map(|event| event["ph"].as_str().unwrap()).collect();
    assert_eq!(kinds.matches('B').count(), kinds.matches('E').count());
    assert_eq!(kinds.matches('B').count(), 3);
    assert!(kinds.contains('s') && kinds.contains('f') && kinds.contains('i') && kinds.contains('C'), "{kinds}");
}
