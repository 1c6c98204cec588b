//! The text form line by line, the JSON form through a parser.

mod common;

use common::{sample, written};
use serde_json::{Value, json};
use std::path::Path;
use tilework_timeline::{Clock, Format, Label, Stream, Timeline, TimelineError};

#[test]
fn the_text_form_has_a_line_for_each_event() {
    let text = String::from_utf8(written(&sample(), Format::Text)).unwrap();
    let expected = "\
# 1 cycle = 1000/2000 ns
# start +duration track: event argument=value... arrows
# track cluster 0
# track cluster 0/AIC
# track cluster 0/AIV0
# counter cluster 0/full [slots]
0 cluster 0/full = 0
100 +120 cluster 0/AIC: TPUSH slot=3 split=\"up/down\" 1>
110 +40 cluster 0/AIC: move bytes=4096
220 +0 cluster 0/AIC: SET last=true delta=-2 part=0.5
220 cluster 0/full = 1
231 +29 cluster 0/AIV0: TPOP >1
260 +? cluster 0/AIV0: WAIT
300 cluster 0/AIV0: fault why=\"overflow\"
";
    assert_eq!(text, expected);
}

fn json_of(timeline: &Timeline) -> Value {
    serde_json::from_slice(&written(timeline, Format::Json)).expect("the file is JSON")
}

fn events<'a>(file: &'a Value, phase: &str) -> Vec<&'a Value> {
    file["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == phase).collect()
}

#[test]
fn the_json_form_has_the_phases_of_trace_events() {
    let file = json_of(&sample());
    assert_eq!(file["displayTimeUnit"], "ns");
    assert_eq!(file["otherData"], json!({"unit": "cycle", "clock": "1 cycle = 1000/2000 ns"}));
    let names: Vec<_> =
        events(&file, "M").iter().filter(|e| e["name"] == "thread_name").map(|e| &e["args"]["name"]).collect();
    assert_eq!(names, ["cluster 0", "AIC", "AIV0"]);
    let slices: Vec<_> = events(&file, "X")
        .iter()
        .map(|e| (e["name"].clone(), e["tid"].clone(), e["ts"].clone(), e["dur"].clone()))
        .collect();
    let slice = |name: &str, tid: u32, ts: f64, dur: f64| (json!(name), json!(tid), json!(ts), json!(dur));
    let expected = [
        slice("TPUSH", 2, 0.05, 0.06),
        slice("move", 2, 0.055, 0.02),
        slice("SET", 2, 0.11, 0.0),
        slice("TPOP", 3, 0.115, 0.015),
    ];
    assert_eq!(slices, expected);
    assert_eq!(events(&file, "X")[2]["args"], json!({"last": true, "delta": -2, "part": 0.5}));
    assert_eq!(events(&file, "B")[0]["name"], "WAIT");
    assert_eq!(events(&file, "i")[0]["args"]["why"], "overflow");
    let counts: Vec<_> = events(&file, "C").iter().map(|e| (&e["name"], &e["args"])).collect();
    assert_eq!(counts, [(&json!("full"), &json!({"slots": 0})), (&json!("full"), &json!({"slots": 1}))]);
    for (phase, tid, ts) in [("s", 2, 0.05), ("f", 3, 0.115)] {
        let [arrow] = events(&file, phase)[..] else { panic!("one {phase}") };
        assert_eq!((&arrow["id"], &arrow["tid"], &arrow["ts"]), (&json!(1), &json!(tid), &json!(ts)));
    }
}

#[test]
fn hostile_names_neither_break_lines_nor_json() {
    let names = ["", "\0", "a\nb\"\\", "},{", "\u{2028}\u{7f}", "漢字"];
    let mut t = Timeline::new(Clock::one_ns("cycle"));
    for name in names {
        let track = t.track(name, None);
        t.instant(track, 1, name).arg(name, name);
        let counter = t.counter_track(name, Some(track), "a\"b");
        t.count(counter, 1, i64::MIN);
    }
    let file = json_of(&t);
    assert_eq!(events(&file, "i").iter().map(|e| e["name"].as_str().unwrap()).collect::<Vec<_>>(), names);
    for (event, name) in events(&file, "i").iter().zip(names) {
        assert_eq!(event["args"], json!({ name: name }));
    }
    let text = String::from_utf8(written(&t, Format::Text)).unwrap();
    assert_eq!(text.lines().count(), 2 + 4 * names.len());
    assert!(!text.contains(|c: char| c.is_control() && c != '\n') && !text.contains('\u{2028}'));
    assert!(text.contains(r#"1 a\nb"\: a\nb"\ a\nb"\="a\nb\"\\""#), "{text}");
}

#[test]
fn numbers_that_javascript_cannot_hold_are_strings() {
    let mut t = Timeline::new(Clock::one_ns("cycle"));
    let track = t.track("t", None);
    t.instant(track, 1 << 60, "n")
        .arg("exact", 1_u64 << 53)
        .arg("large", u64::MAX)
        .arg("small", i64::MIN)
        .arg("nan", f64::NAN)
        .arg("inf", f64::NEG_INFINITY);
    let args = events(&json_of(&t), "i")[0]["args"].clone();
    let expected = json!({
        "exact": 1_u64 << 53, "large": "18446744073709551615", "small": "-9223372036854775808",
        "nan": "NaN", "inf": "-inf",
    });
    assert_eq!(args, expected);
    let text = String::from_utf8(written(&t, Format::Json)).unwrap();
    assert!(text.contains("\"ts\":1152921504606846.976,"), "{text}");
}

#[test]
fn the_same_timeline_gives_the_same_bytes_and_an_empty_one_is_a_file() {
    for format in [Format::Perfetto, Format::Json, Format::Text] {
        assert_eq!(written(&sample(), format), written(&sample(), format));
        assert!(!written(&Timeline::new(Clock::one_ns("cycle")), format).is_empty());
    }
    assert_eq!(json_of(&Timeline::new(Clock::one_ns("cycle")))["traceEvents"], json!([]));
}

/// What comes for a time far ahead stays through many rounds, with its arguments and in its place
/// among those of its time.
#[test]
fn a_stream_keeps_what_waits_in_the_order_of_its_coming() {
    const EVENTS: u64 = 30_000;
    let mut stream = Stream::new(Vec::new(), Format::Text, Clock::one_ns("cycle"), 0..u64::MAX).unwrap();
    let (core, level) = (stream.track("core", None), stream.counter_track("level", None, ""));
    // Many of one time, some of a time that is long ahead.
    let time = |i: u64| if i.is_multiple_of(7) { 2 * i + 900 * (i % 31) } else { i / 10 * 20 };
    let (mut rounds, mut expected) = (0, Vec::new());
    for i in 0..EVENTS {
        let (at, args) = (time(i), [("number", i.into()), ("half", (i / 2).into())]);
        match i % 3 {
            0 => stream.count(level, at, i64::try_from(i).unwrap()),
            n => stream.instant(core, at, &Label { name: "now", args: &args[..n as usize], ..Label::default() }),
        }
        let rest = match i % 3 {
            0 => format!("level = {i}"),
            1 => format!("core: now number={i}"),
            _ => format!("core: now number={i} half={}", i / 2),
        };
        expected.push((at, rest));
        if stream.is_due() {
            rounds += 1;
            // Nothing more comes for a time before that.
            stream.advance((i + 1) / 10 * 20).unwrap();
        }
    }
    assert!(rounds > 3, "{rounds}");
    expected.sort_by_key(|(at, _)| *at);
    let text = String::from_utf8(stream.finish().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let expected: Vec<String> = expected.iter().map(|(at, rest)| format!("{at} {rest}")).collect();
    assert_eq!(lines.len(), expected.len());
    let found = lines.iter().zip(&expected).find(|(line, expected)| *line != expected);
    assert_eq!(found, None);
}

/// Events on tracks that come while others are written, and spans that are told when they are over,
/// or later: the first one every `late` steps. Time comes as far as it is told every `step` steps.
fn in_steps(format: Format, step: u64, late: u64) -> Vec<u8> {
    let mut stream = Stream::new(Vec::new(), format, Clock::one_ns("cycle"), 100..200_000).unwrap();
    let top = stream.track("top", None);
    let units = [stream.track("b", Some(top)), stream.track("a", Some(top))];
    stream.expect(&Label::named("busy"));
    let (mut tracks, mut over) = (Vec::new(), Vec::new());
    for i in 0..30_000 {
        if i % 700 == 0 {
            tracks.push(stream.track(&format!("track {i}"), Some(top)));
        }
        // Of both units at once.
        if i % 10 == 9 {
            over.push((10 * i - 50, 10 * i - 5));
        }
        stream.instant(tracks[i as usize % tracks.len()], 10 * i, &Label::named("now"));
        if i % late == 0 {
            for (from, until) in over.drain(..) {
                let number = (from / 10 % 2) as usize;
                for unit in [units[number], units[1 - number]] {
                    stream.span(unit, from, until, &Label::named("busy"));
                }
            }
        }
        if i % step == 0 {
            // The next span may have begun.
            let next = 10 * ((i + 1) / 10 * 10 + 9) - 50;
            let first = over.first().map_or(next, |(from, _)| *from);
            stream.advance(first.min(10 * i)).unwrap();
        }
    }
    stream.finish().unwrap()
}

#[test]
fn what_a_stream_writes_does_not_depend_on_how_it_is_advanced() {
    for format in [Format::Perfetto, Format::Json, Format::Text] {
        let once = in_steps(format, u64::MAX, 1);
        for (step, late) in [(1, 1), (900, 1), (1, 50), (77, 333)] {
            assert!(in_steps(format, step, late) == once, "{format:?}, every {step} steps, spans every {late}");
        }
    }
}

#[test]
fn the_ending_of_a_file_names_its_form() {
    let folder = tempfile::tempdir().unwrap();
    for (name, format) in [
        ("a.pftrace", Format::Perfetto),
        ("a.perfetto-trace", Format::Perfetto),
        ("a.JSON", Format::Json),
        ("a.b.txt", Format::Text),
    ] {
        let path = folder.path().join(name);
        sample().save(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), written(&sample(), format));
    }
    for (name, says) in [("trace.pb", "the ending .pb"), ("trace", "a name without an ending")] {
        let error = sample().save(Path::new(name)).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: {says} names no form")), "{error}");
        assert!([".pftrace", ".json", ".txt"].iter().all(|e| error.contains(e)), "{error}");
    }
    let nowhere = folder.path().join("no/a.txt");
    assert!(matches!(sample().save(&nowhere), Err(TimelineError::File { path, .. }) if path == nowhere));
}

/// Takes some bytes, then fails.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::Error::other("the disk is full"))?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_of_every_form() {
    for format in [Format::Perfetto, Format::Json, Format::Text] {
        let error = sample().write(format, &mut Full(100)).unwrap_err();
        assert_eq!(error.to_string(), "the timeline cannot be written: the disk is full");
    }
}
