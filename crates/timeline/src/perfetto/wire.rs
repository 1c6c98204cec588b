//! The messages of Perfetto's trace format that a timeline needs, with the field numbers of
//! `protos/perfetto/trace/**.proto` of <https://github.com/google/perfetto> (as of package
//! `perfetto` 0.59.1).
//!
//! They are declared by hand: the generated bindings of all of Perfetto (`perfetto_protos` 0.51.1)
//! take four minutes to build on two cores. `tests/perfetto.rs` reads the output with its own
//! field numbers.

/// `trace_packet.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TracePacket {
    #[prost(message, optional, tag = "60")]
    pub(crate) track_descriptor: Option<TrackDescriptor>,
    /// Names are interned for each sequence of packets.
    #[prost(uint32, optional, tag = "10")]
    pub(crate) trusted_packet_sequence_id: Option<u32>,
    #[prost(uint32, optional, tag = "13")]
    pub(crate) sequence_flags: Option<u32>,
    #[prost(bool, optional, tag = "87")]
    pub(crate) first_packet_on_sequence: Option<bool>,
}

/// `TracePacket.SequenceFlags`: nothing was interned before.
pub(crate) const SEQ_INCREMENTAL_STATE_CLEARED: u32 = 1;
/// `TracePacket.SequenceFlags`: this packet uses interned names.
pub(crate) const SEQ_NEEDS_INCREMENTAL_STATE: u32 = 2;

/// `track_event/track_descriptor.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(crate) uuid: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    pub(crate) parent_uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
    #[prost(string, optional, tag = "14")]
    pub(crate) description: Option<String>,
    #[prost(message, optional, tag = "8")]
    pub(crate) counter: Option<CounterDescriptor>,
    #[prost(enumeration = "ChildTracksOrdering", optional, tag = "11")]
    pub(crate) child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub(crate) sibling_order_rank: Option<i32>,
    #[prost(enumeration = "SiblingMergeBehavior", optional, tag = "15")]
    pub(crate) sibling_merge_behavior: Option<i32>,
}

/// How the tracks below a track are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum ChildTracksOrdering {
    Unknown = 0,
    /// By `sibling_order_rank`.
    Explicit = 3,
}

/// Whether tracks of one name are shown as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SiblingMergeBehavior {
    Unspecified = 0,
    None = 2,
}

/// `track_event/counter_descriptor.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CounterDescriptor {
    #[prost(string, optional, tag = "6")]
    pub(crate) unit_name: Option<String>,
}

/// `TracePacket.timestamp`, in nanoseconds.
pub(crate) const TIMESTAMP: u32 = 8;
/// `TracePacket.trusted_packet_sequence_id`.
pub(crate) const SEQUENCE_ID: u32 = 10;
/// `TracePacket.track_event`.
pub(crate) const TRACK_EVENT: u32 = 11;
/// `TracePacket.interned_data`.
pub(crate) const INTERNED_DATA: u32 = 12;
/// `TracePacket.sequence_flags`.
pub(crate) const SEQUENCE_FLAGS: u32 = 13;

/// Fields of `TrackEvent` (`track_event/track_event.proto`).
pub(crate) mod event {
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
}

/// Fields of `DebugAnnotation` (`track_event/debug_annotation.proto`): an argument.
pub(crate) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const DOUBLE: u32 = 5;
    pub(crate) const STRING_IID: u32 = 17;
}

/// `TrackEvent.Type`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Type {
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// A message as it is written, field by field: events are many, and are not made as objects first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

/// Kinds of fields (Protocol Buffers, "Encoding").
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

impl Message {
    #[inline]
    fn put(&mut self, mut value: u64) {
        // Most of what has more than one byte has two: seven bits each.
        if (0x80..0x4000).contains(&value) {
            let [low, high, ..] = (value << 1).to_le_bytes();
            return self.0.extend_from_slice(&[low >> 1 | 0x80, high]);
        }
        while value >= 0x80 {
            // Seven bits, and that more follow.
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }

    /// A number, or a boolean.
    #[inline]
    pub(crate) fn number(&mut self, field: u32, value: u64) {
        let key = u64::from(field << 3 | VARINT);
        match (key, value) {
            // Mostly.
            (..0x80, ..0x80) => self.0.extend_from_slice(&[key.to_le_bytes()[0], value.to_le_bytes()[0]]),
            _ => {
                self.put(key);
                self.put(value);
            }
        }
    }

    /// A number of 64 bits, or the bits of a floating-point number.
    #[inline]
    pub(crate) fn fixed(&mut self, field: u32, value: u64) {
        self.put(u64::from(field << 3 | FIXED64));
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A message within this one, as `fields` writes it behind what is here.
    #[inline]
    pub(crate) fn nested(&mut self, field: u32, fields: impl FnOnce(&mut Self)) {
        self.put(u64::from(field << 3 | LENGTH_DELIMITED));
        // Most have fewer than 128 bytes, so that one byte has their length.
        let at = self.0.len();
        self.0.push(0);
        fields(self);
        let mut len = self.0.len() - at - 1;
        let more = (len.max(1).ilog2() / 7) as usize;
        if more > 0 {
            let end = self.0.len();
            self.0.resize(end + more, 0);
            self.0.copy_within(at + 1..end, at + 1 + more);
        }
        for byte in &mut self.0[at..at + more] {
            *byte = len.to_le_bytes()[0] | 0x80;
            len >>= 7;
        }
        // What is left of it has seven bits.
        self.0[at + more] = len.to_le_bytes()[0];
    }

    /// A message within this one.
    #[inline]
    pub(crate) fn message(&mut self, field: u32, bytes: &[u8]) {
        self.put(u64::from(field << 3 | LENGTH_DELIMITED));
        self.put(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

/// `interned_data/interned_data.proto`.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InternedData {
    #[prost(message, repeated, tag = "2")]
    pub(crate) event_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) debug_annotation_names: Vec<InternedName>,
    #[prost(message, repeated, tag = "29")]
    pub(crate) debug_annotation_string_values: Vec<InternedName>,
}

/// `EventName`, `DebugAnnotationName` and `InternedString`, which are alike on the wire.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct InternedName {
    /// Not 0.
    #[prost(uint64, optional, tag = "1")]
    pub(crate) iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(crate) name: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn numbers_have_seven_bits_in_a_byte() {
        let mut message = Message::default();
        for value in [0, 1, 127, 128, 300, 0x3FFF, 0x4000, u64::MAX] {
            message.number(2, value);
            message.number(30, value);
        }
        let mut bytes = message.0.iter();
        let mut next = || {
            let mut value = 0;
            for shift in (0..).step_by(7) {
                let byte = bytes.next().copied()?;
                value |= u64::from(byte & 0x7F) << shift;
                if byte < 0x80 {
                    return Some(value);
                }
            }
            None
        };
        for value in [0, 1, 127, 128, 300, 0x3FFF, 0x4000, u64::MAX] {
            assert_eq!([next(), next(), next(), next()], [Some(2 << 3), Some(value), Some(30 << 3), Some(value)]);
        }
        assert_eq!(next(), None);
    }

    #[test]
    fn a_nested_message_is_written_as_one_that_was_made_before() {
        for len in [0, 1, 127, 128, 129, 16_383, 16_384, 40_000] {
            let inner = vec![7; len];
            let (mut nested, mut copied) = (Message(vec![1]), Message(vec![1]));
            nested.nested(3, |part| part.0.extend_from_slice(&inner));
            copied.message(3, &inner);
            assert_eq!(nested.0, copied.0, "{len}");
        }
    }
}
