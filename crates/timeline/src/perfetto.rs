//! Perfetto's trace format: a `Trace` message, which is a sequence of packets, so that it can be
//! written packet by packet (documents "Writing TrackEvent Protos Synthetically" and "Converting
//! arbitrary timestamped data to Perfetto" of <https://perfetto.dev/docs>).
//!
//! Tracks have names and no process. Their descriptions come first, then the events in order, with
//! each name at its first use.

mod wire;

use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key};

use crate::event::{ArrowEnd, Details, Kept, TrackRecord, What};
use crate::names::Name;
use crate::order::{Mark, MarkKind};
use crate::{Timeline, TimelineError};
use wire::{
    Annotation, ChildTracksOrdering, CounterDescriptor, DebugAnnotation, InternedData, InternedName,
    SEQ_INCREMENTAL_STATE_CLEARED, SEQ_NEEDS_INCREMENTAL_STATE, SiblingMergeBehavior, TracePacket, TrackDescriptor,
    TrackEvent, Type,
};

/// Field `packet` of `Trace` (`trace.proto`).
const PACKET: u32 = 1;
/// All packets belong to one sequence; any number but 0.
const SEQUENCE: u32 = 1;

pub(crate) fn write(timeline: &Timeline, marks: &[Mark], out: &mut impl Write) -> Result<(), TimelineError> {
    let mut buffer = Vec::new();
    let mut put = |packet: &TracePacket| -> io::Result<()> {
        buffer.clear();
        encode_key(PACKET, WireType::LengthDelimited, &mut buffer);
        packet.encode_length_delimited(&mut buffer).map_err(io::Error::other)?;
        out.write_all(&buffer)
    };
    put(&TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
        first_packet_on_sequence: Some(true),
        ..TracePacket::default()
    })?;
    for (index, record) in (0..).zip(&timeline.tracks) {
        put(&descriptor(timeline, index, record))?;
    }
    let mut interner = Interner::new(timeline);
    for mark in marks {
        let event = interner.event(mark);
        put(&TracePacket {
            timestamp: Some(timeline.clock.checked(mark.at)?),
            track_event: Some(event),
            trusted_packet_sequence_id: Some(SEQUENCE),
            interned_data: interner.new.take(),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        })?;
    }
    Ok(())
}

/// The identifier of a track, not 0.
fn uuid(track: u32) -> u64 {
    u64::from(track) + 1
}

fn descriptor(timeline: &Timeline, index: u32, record: &TrackRecord) -> TracePacket {
    let clock = || format!("Times of the simulation: {}", timeline.clock);
    TracePacket {
        trusted_packet_sequence_id: Some(SEQUENCE),
        track_descriptor: Some(TrackDescriptor {
            uuid: Some(uuid(index)),
            parent_uuid: record.parent.map(uuid),
            name: Some(record.name.clone()),
            description: record.parent.is_none().then(clock),
            counter: record.unit.map(|unit| CounterDescriptor { unit_name: Some(unit.to_owned()) }),
            child_ordering: Some(ChildTracksOrdering::Explicit.into()),
            sibling_order_rank: Some(i32::try_from(index).unwrap_or(i32::MAX)),
            sibling_merge_behavior: Some(SiblingMergeBehavior::None.into()),
        }),
        ..TracePacket::default()
    }
}

/// The three tables of interned names of a sequence, and their new entries since the last packet.
struct Interner<'a> {
    timeline: &'a Timeline,
    events: Vec<bool>,
    keys: Vec<bool>,
    strings: Vec<bool>,
    new: Option<InternedData>,
}

impl<'a> Interner<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let known = vec![false; timeline.names.len()];
        Self { timeline, events: known.clone(), keys: known.clone(), strings: known, new: None }
    }

    fn event(&mut self, mark: &Mark) -> TrackEvent {
        let timeline = self.timeline;
        let event = &timeline.events[mark.event];
        let plain = |kind: Type| TrackEvent {
            r#type: Some(kind.into()),
            track_uuid: Some(uuid(event.track)),
            ..TrackEvent::default()
        };
        match &event.what {
            What::Slice(..) if mark.kind == MarkKind::End => plain(Type::SliceEnd),
            What::Slice(_, details) => self.detailed(plain(Type::SliceBegin), details),
            What::Instant(details) => self.detailed(plain(Type::Instant), details),
            What::Count(value) => TrackEvent { counter_value: Some(*value), ..plain(Type::Counter) },
        }
    }

    fn detailed(&mut self, mut event: TrackEvent, details: &Details) -> TrackEvent {
        event.name_iid = Some(self.event_name(details.name));
        for end in &self.timeline.arrows[details.arrows.clone()] {
            match end {
                ArrowEnd::From(arrow) => event.flow_ids.push(u64::from(arrow.0) + 1),
                ArrowEnd::To(arrow) => event.terminating_flow_ids.push(u64::from(arrow.0) + 1),
            }
        }
        for arg in &self.timeline.args[details.args.clone()] {
            let name_iid = Some(self.key(arg.key));
            let value = Some(match arg.value {
                Kept::U64(v) => Annotation::Uint(v),
                Kept::I64(v) => Annotation::Int(v),
                Kept::F64(v) => Annotation::Double(v),
                Kept::Bool(v) => Annotation::Bool(v),
                Kept::Str(v) => Annotation::StringIid(self.string(v)),
            });
            event.debug_annotations.push(DebugAnnotation { name_iid, value });
        }
        event
    }

    fn event_name(&mut self, name: Name) -> u64 {
        if !std::mem::replace(&mut self.events[name.0 as usize], true) {
            let entry = self.entry(name);
            self.new.get_or_insert_default().event_names.push(entry);
        }
        iid(name)
    }

    fn key(&mut self, name: Name) -> u64 {
        if !std::mem::replace(&mut self.keys[name.0 as usize], true) {
            let entry = self.entry(name);
            self.new.get_or_insert_default().debug_annotation_names.push(entry);
        }
        iid(name)
    }

    fn string(&mut self, name: Name) -> u64 {
        if !std::mem::replace(&mut self.strings[name.0 as usize], true) {
            let entry = self.entry(name);
            self.new.get_or_insert_default().debug_annotation_string_values.push(entry);
        }
        iid(name)
    }

    fn entry(&self, name: Name) -> InternedName {
        InternedName { iid: Some(iid(name)), name: Some(self.timeline.names.get(name).to_owned()) }
    }
}

fn iid(name: Name) -> u64 {
    u64::from(name.0) + 1
}
