//! The timeline of a run as Perfetto's own decoder reads it: the message types that the project
//! publishes (crate `perfetto_protos`), of which every byte of the file must be one, and the same
//! slices, counters and arrows as in the text form of the same run.

use crate::common;
use common::{example, example_input, folder, tilework};
use perfetto_protos::trace::Trace;
use perfetto_protos::trace_packet::TracePacket;
use perfetto_protos::track_event::TrackEvent;
use perfetto_protos::track_event::track_event::Type;
use protobuf::{Message, MessageDyn};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Fields of track_descriptor.proto that are younger than the crate's: `description` and
/// `sibling_merge_behavior`.
const YOUNGER: [u32; 2] = [14, 15];

/// Writes the timeline of the example `pipeline` in two forms.
fn timelines(out: &Path) -> (Vec<u8>, String) {
    let file = |name: &str| out.join(name).display().to_string();
    let (program, input) = (example("pipeline").display().to_string(), example_input("pipeline"));
    for trace in ["run.pftrace", "run.txt"] {
        let args = ["run", &program, "--input", &input, "--out", &file("out"), "--trace", &file(trace)];
        tilework(&args).code(0);
    }
    (std::fs::read(out.join("run.pftrace")).unwrap(), std::fs::read_to_string(out.join("run.txt")).unwrap())
}

/// The numbers of the fields that the published types do not have, of a message and of all that it
/// consists of.
fn unknown(message: &dyn MessageDyn, found: &mut BTreeSet<(String, u32)>) {
    use protobuf::reflect::{ReflectFieldRef, ReflectValueRef};
    let descriptor = message.descriptor_dyn();
    let name = descriptor.name().to_owned();
    found.extend(message.special_fields_dyn().unknown_fields().iter().map(|(number, _)| (name.clone(), number)));
    let mut inner = |value: ReflectValueRef<'_>| {
        if let ReflectValueRef::Message(message) = value {
            unknown(&*message, found);
        }
    };
    for field in descriptor.fields() {
        match field.get_reflect(message) {
            ReflectFieldRef::Optional(value) => value.value().into_iter().for_each(&mut inner),
            ReflectFieldRef::Repeated(values) => values.into_iter().for_each(&mut inner),
            ReflectFieldRef::Map(_) => {}
        }
    }
}

/// What the file says, with its tables of names resolved.
#[derive(Default)]
struct Read {
    /// By uuid: name with the names of its parents, and whether it counts.
    tracks: BTreeMap<u64, (String, bool)>,
    names: BTreeMap<u64, String>,
    keys: BTreeMap<u64, String>,
    strings: BTreeMap<u64, String>,
    /// Slices that begin, by track and name.
    slices: BTreeMap<(String, String), usize>,
    instants: BTreeMap<(String, String), usize>,
    counts: BTreeMap<String, Vec<i64>>,
    depth: BTreeMap<u64, i64>,
    flows: [BTreeSet<u64>; 2],
    programs: BTreeSet<String>,
    last: u64,
}

impl Read {
    fn packet(&mut self, packet: &TracePacket) {
        for name in &packet.interned_data.event_names {
            self.names.insert(name.iid(), name.name().to_owned());
        }
        for key in &packet.interned_data.debug_annotation_names {
            self.keys.insert(key.iid(), key.name().to_owned());
        }
        for string in &packet.interned_data.debug_annotation_string_values {
            self.strings.insert(string.iid(), String::from_utf8(string.str().to_vec()).unwrap());
        }
        if packet.has_track_descriptor() {
            let track = packet.track_descriptor();
            let name = match track.parent_uuid {
                Some(parent) => format!("{}/{}", self.tracks[&parent].0, track.name()),
                None => track.name().to_owned(),
            };
            let old = self.tracks.insert(track.uuid(), (name, track.counter.is_some()));
            assert!(old.is_none() && track.uuid() != 0);
        }
        if packet.has_track_event() {
            assert!(packet.timestamp() >= self.last, "the order of time");
            self.last = packet.timestamp();
            self.event(packet.track_event());
        }
    }

    fn event(&mut self, event: &TrackEvent) {
        let (track, is_counter) = self.tracks[&event.track_uuid()].clone();
        assert_eq!(is_counter, event.type_() == Type::TYPE_COUNTER, "{track}");
        let name = || self.names[&event.name_iid()].clone();
        match event.type_() {
            Type::TYPE_SLICE_BEGIN => {
                *self.slices.entry((track, name())).or_default() += 1;
                *self.depth.entry(event.track_uuid()).or_default() += 1;
            }
            Type::TYPE_SLICE_END => {
                let depth = self.depth.entry(event.track_uuid()).or_default();
                *depth -= 1;
                assert!(*depth >= 0, "{track}");
            }
            Type::TYPE_INSTANT => *self.instants.entry((track, name())).or_default() += 1,
            Type::TYPE_COUNTER => self.counts.entry(track).or_default().push(event.counter_value()),
            Type::TYPE_UNSPECIFIED => panic!("an event without a type"),
        }
        self.flows[0].extend(&event.flow_ids);
        self.flows[1].extend(&event.terminating_flow_ids);
        for annotation in &event.debug_annotations {
            if self.keys[&annotation.name_iid()] == "program" {
                self.programs.insert(self.strings[&annotation.string_value_iid()].clone());
            }
        }
    }
}

/// The same of the text form.
fn slices_of(text: &str) -> BTreeMap<(String, String), usize> {
    let mut slices: BTreeMap<(String, String), usize> = BTreeMap::new();
    let lines = text.lines().filter_map(|line| line.split_once(' ')?.1.strip_prefix("( ")?.split_once(": "));
    for (track, what) in lines {
        // Arguments have the form key=value.
        let words = what.split(' ').take_while(|word| !word.contains('=') && !word.ends_with('>'));
        let name = words.collect::<Vec<_>>().join(" ");
        *slices.entry((track.to_owned(), name)).or_default() += 1;
    }
    slices
}

#[test]
fn perfettos_own_types_read_the_timeline_of_a_run() {
    let out = folder();
    let (bytes, text) = timelines(out.path());
    let trace = Trace::parse_from_bytes(&bytes).unwrap();
    let mut strange = BTreeSet::new();
    unknown(&trace, &mut strange);
    let younger = |(message, number): &(String, u32)| message == "TrackDescriptor" && YOUNGER.contains(number);
    assert!(strange.iter().all(younger), "fields that do not exist: {strange:?}");
    let mut read = Read::default();
    trace.packet.iter().for_each(|packet| read.packet(packet));

    assert!(read.slices.len() > 30, "{:?}", read.slices);
    let expected = slices_of(&text);
    let slices: BTreeMap<_, _> = read.slices.iter().map(|(key, count)| (key.clone(), *count)).collect();
    for (key, count) in &expected {
        assert_eq!(slices.get(key), Some(count), "{key:?}");
    }
    assert_eq!(slices.values().sum::<usize>(), expected.values().sum::<usize>());
    let has = |part: &str| read.slices.keys().any(|(track, name)| format!("{track}: {name}").contains(part));
    for part in ["/BRISC: WRITE_PACKED: pipeline", "waits for pages of circular buffer", "NoC 0 requests 0: read"] {
        assert!(has(part), "{part}: {:?}", read.slices);
    }
    let level = read.counts.iter().find(|(track, _)| track.contains("/circular buffer ")).unwrap().1;
    assert!(level.contains(&1) && level.iter().all(|&pages| pages >= 0), "{level:?}");
    assert!(read.instants.keys().any(|(_, name)| name == "go: pipeline"));
    // Every arrow that ends somewhere begins somewhere.
    let [from, to] = &read.flows;
    assert!(!to.is_empty() && to.is_subset(from));
    assert!(read.programs.contains("pipeline") && read.programs.contains("command queue 0"), "{:?}", read.programs);
}
