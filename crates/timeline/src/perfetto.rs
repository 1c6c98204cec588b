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

use crate::event::{ArrowEnd, Kept, Named, Told, TrackRecord, What};
use crate::names::{Name, Names};
use crate::order::{Mark, MarkKind};
use crate::{Clock, Timeline, TimelineError};
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
    let mut packets = Packets::default();
    packets.start(out)?;
    for (index, record) in (0..).zip(&timeline.tracks) {
        packets.track(out, timeline.clock, index, record)?;
    }
    for mark in marks {
        let event = &timeline.events[mark.event];
        let told = match &event.what {
            What::Slice(..) if mark.kind == MarkKind::End => Told::End,
            What::Slice(_, details) => Told::Start(timeline.named(details)),
            What::Instant(details) => Told::Instant(timeline.named(details)),
            What::Count(value) => Told::Count(*value),
        };
        packets.event(out, &timeline.names, timeline.clock.checked(mark.at)?, event.track, &told)?;
    }
    Ok(())
}

/// Writes packets of one sequence.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packets {
    buffer: Vec<u8>,
    interner: Interner,
}

impl Packets {
    fn put(&mut self, out: &mut impl Write, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        encode_key(PACKET, WireType::LengthDelimited, &mut self.buffer);
        packet.encode_length_delimited(&mut self.buffer).map_err(io::Error::other)?;
        out.write_all(&self.buffer)
    }

    /// The first packet.
    pub(crate) fn start(&mut self, out: &mut impl Write) -> io::Result<()> {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(SEQ_INCREMENTAL_STATE_CLEARED),
            first_packet_on_sequence: Some(true),
            ..TracePacket::default()
        };
        self.put(out, &packet)
    }

    /// Describes a track, before its first event.
    pub(crate) fn track(
        &mut self,
        out: &mut impl Write,
        clock: Clock,
        index: u32,
        record: &TrackRecord,
    ) -> io::Result<()> {
        self.put(out, &descriptor(clock, index, record))
    }

    /// An event at a time in nanoseconds.
    pub(crate) fn event(
        &mut self,
        out: &mut impl Write,
        names: &Names,
        at: u64,
        track: u32,
        told: &Told<'_>,
    ) -> io::Result<()> {
        let event = self.interner.event(names, track, told);
        let packet = TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            trusted_packet_sequence_id: Some(SEQUENCE),
            interned_data: self.interner.new.take(),
            sequence_flags: Some(SEQ_NEEDS_INCREMENTAL_STATE),
            ..TracePacket::default()
        };
        self.put(out, &packet)
    }
}

/// The identifier of a track, not 0.
fn uuid(track: u32) -> u64 {
    u64::from(track) + 1
}

fn descriptor(clock: Clock, index: u32, record: &TrackRecord) -> TracePacket {
    let clock = || format!("Times of the simulation: {clock}");
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
#[derive(Clone, Debug, Default)]
struct Interner {
    events: Vec<bool>,
    keys: Vec<bool>,
    strings: Vec<bool>,
    new: Option<InternedData>,
}

impl Interner {
    fn event(&mut self, names: &Names, track: u32, told: &Told<'_>) -> TrackEvent {
        let plain = |kind: Type| TrackEvent {
            r#type: Some(kind.into()),
            track_uuid: Some(uuid(track)),
            ..TrackEvent::default()
        };
        match told {
            Told::End => plain(Type::SliceEnd),
            Told::Start(named) => self.detailed(names, plain(Type::SliceBegin), *named),
            Told::Instant(named) => self.detailed(names, plain(Type::Instant), *named),
            Told::Count(value) => TrackEvent { counter_value: Some(*value), ..plain(Type::Counter) },
        }
    }

    fn detailed(&mut self, names: &Names, mut event: TrackEvent, named: Named<'_>) -> TrackEvent {
        event.name_iid = Some(self.event_name(names, named.name));
        for end in named.arrows {
            match end {
                ArrowEnd::From(arrow) => event.flow_ids.push(u64::from(arrow.0) + 1),
                ArrowEnd::To(arrow) => event.terminating_flow_ids.push(u64::from(arrow.0) + 1),
            }
        }
        for arg in named.args {
            let name_iid = Some(self.key(names, arg.key));
            let value = Some(match arg.value {
                Kept::U64(v) => Annotation::Uint(v),
                Kept::I64(v) => Annotation::Int(v),
                Kept::F64(v) => Annotation::Double(v),
                Kept::Bool(v) => Annotation::Bool(v),
                Kept::Str(v) => Annotation::StringIid(self.string(names, v)),
            });
            event.debug_annotations.push(DebugAnnotation { name_iid, value });
        }
        event
    }

    fn event_name(&mut self, names: &Names, name: Name) -> u64 {
        if is_new(&mut self.events, name) {
            self.new.get_or_insert_default().event_names.push(entry(names, name));
        }
        iid(name)
    }

    fn key(&mut self, names: &Names, name: Name) -> u64 {
        if is_new(&mut self.keys, name) {
            self.new.get_or_insert_default().debug_annotation_names.push(entry(names, name));
        }
        iid(name)
    }

    fn string(&mut self, names: &Names, name: Name) -> u64 {
        if is_new(&mut self.strings, name) {
            self.new.get_or_insert_default().debug_annotation_string_values.push(entry(names, name));
        }
        iid(name)
    }
}

/// Whether a name has not been written, as it is from now on.
fn is_new(known: &mut Vec<bool>, name: Name) -> bool {
    let index = name.0 as usize;
    if known.len() <= index {
        known.resize(index + 1, false);
    }
    !std::mem::replace(&mut known[index], true)
}

fn entry(names: &Names, name: Name) -> InternedName {
    InternedName { iid: Some(iid(name)), name: Some(names.get(name).to_owned()) }
}

fn iid(name: Name) -> u64 {
    u64::from(name.0) + 1
}
