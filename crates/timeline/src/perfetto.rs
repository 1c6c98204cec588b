//! Perfetto's trace format: a `Trace` message, which is a sequence of packets, so that it can be
//! written packet by packet (documents "Writing TrackEvent Protos Synthetically" and "Converting
//! arbitrary timestamped data to Perfetto" of <https://perfetto.dev/docs>).
//!
//! Tracks have names and no process. Their descriptions come first, then the events in order, with
//! each name at its first use.

mod wire;

use std::io::{self, Write};

use prost::Message as _;

use crate::event::{ArrowEnd, Kept, Told, TrackRecord, What};
use crate::names::{Name, Names};
use crate::order::{Mark, MarkKind};
use crate::{Clock, Timeline, TimelineError};
use wire::{
    ChildTracksOrdering, CounterDescriptor, InternedData, InternedName, Message, SEQ_INCREMENTAL_STATE_CLEARED,
    SEQ_NEEDS_INCREMENTAL_STATE, SiblingMergeBehavior, TracePacket, TrackDescriptor, Type, annotation,
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
    buffer: Message,
    interner: Interner,
}

impl Packets {
    fn put(&mut self, out: &mut impl Write, packet: &TracePacket) -> io::Result<()> {
        self.buffer.0.clear();
        self.buffer.message(PACKET, &packet.encode_to_vec());
        out.write_all(&self.buffer.0)
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
        let Self { buffer, interner } = self;
        buffer.0.clear();
        buffer.nested(PACKET, |packet| {
            packet.number(wire::TIMESTAMP, at);
            packet.number(wire::SEQUENCE_ID, SEQUENCE.into());
            packet.nested(wire::TRACK_EVENT, |event| interner.event(names, track, told, event));
            if let Some(new) = interner.new.take() {
                packet.message(wire::INTERNED_DATA, &new.encode_to_vec());
            }
            packet.number(wire::SEQUENCE_FLAGS, SEQ_NEEDS_INCREMENTAL_STATE.into());
        });
        out.write_all(&buffer.0)
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
    /// Writes an event.
    fn event(&mut self, names: &Names, track: u32, told: &Told<'_>, event: &mut Message) {
        let (kind, named) = match told {
            Told::End => (Type::SliceEnd, None),
            Told::Start(named) => (Type::SliceBegin, Some(named)),
            Told::Instant(named) => (Type::Instant, Some(named)),
            Told::Count(_) => (Type::Counter, None),
        };
        for arg in named.iter().flat_map(|named| named.args) {
            event.nested(wire::event::DEBUG_ANNOTATIONS, |part| {
                part.number(annotation::NAME_IID, self.key(names, arg.key));
                match arg.value {
                    Kept::U64(v) => part.number(annotation::UINT, v),
                    Kept::I64(v) => part.number(annotation::INT, v.cast_unsigned()),
                    Kept::F64(v) => part.fixed(annotation::DOUBLE, v.to_bits()),
                    Kept::Bool(v) => part.number(annotation::BOOL, v.into()),
                    Kept::Str(v) => part.number(annotation::STRING_IID, self.string(names, v)),
                }
            });
        }
        event.number(wire::event::TYPE, kind as u64);
        if let Some(named) = named {
            event.number(wire::event::NAME_IID, self.event_name(names, named.name));
        }
        event.number(wire::event::TRACK_UUID, uuid(track));
        if let Told::Count(value) = told {
            event.number(wire::event::COUNTER_VALUE, value.cast_unsigned());
        }
        for end in named.iter().flat_map(|named| named.arrows) {
            let (field, arrow) = match end {
                ArrowEnd::From(arrow) => (wire::event::FLOW_IDS, arrow),
                ArrowEnd::To(arrow) => (wire::event::TERMINATING_FLOW_IDS, arrow),
            };
            event.fixed(field, u64::from(arrow.0) + 1);
        }
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
