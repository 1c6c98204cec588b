//! Reading back issue regions and captures, good and bad.

mod common;

use common::{dispatch_command, prefetch_command};
use proptest::collection::vec;
use proptest::prelude::*;
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_cq::decode::InnerCommand;
use tilework_cq::dispatch::*;
use tilework_cq::prefetch::{Inline, LinearRelay};
use tilework_cq::{DispatchCommand, PrefetchCommand, Record, decode_stream};

fn stream(commands: &[DispatchCommand]) -> Vec<u8> {
    commands.iter().flat_map(|c| Record::dispatch(c).unwrap().bytes().to_vec()).collect()
}

/// The seed's launch (001 section 6), its event, and the end of a fresh issue region.
fn launch() -> Vec<u8> {
    let go = GoSignal {
        go_signal: 0x8003_0e00,
        multicast_go_offset: None,
        num_unicast_txns: 2,
        noc_data_start_index: 0,
        wait_count: 0,
        wait_stream: 48,
    };
    let mut bytes = stream(&[
        DispatchCommand::SetGoSignalNocData(vec![0x81, 0x82]),
        DispatchCommand::wait_stream_and_clear(48, 0),
        DispatchCommand::SendGoSignal(go),
        DispatchCommand::wait_stream_and_clear(48, 2),
        DispatchCommand::host_event(7),
    ]);
    bytes.resize(bytes.len() + 4096, 0);
    bytes
}

fn messages(bytes: &[u8]) -> Vec<String> {
    decode_stream(bytes)
        .map(|record| match record {
            Ok(record) => record.to_string(),
            Err(error) => error.to_string(),
        })
        .collect()
}

#[test]
fn a_launch_reads_back_line_by_line_and_ends_at_the_zeros() {
    let expected = "\
0x00000000  RELAY_INLINE 24 bytes to the dispatcher, record of 64 bytes
0x00000010    SET_GO_SIGNAL_NOC_DATA 2 nodes: (1,2) (2,2)
0x00000040  RELAY_INLINE 16 bytes to the dispatcher, record of 64 bytes
0x00000050    WAIT until stream 48 >= 0, clear stream 48
0x00000080  RELAY_INLINE 16 bytes to the dispatcher, record of 64 bytes
0x00000090    SEND_GO_SIGNAL 0x80030e00 to 2 nodes from word 0, when stream 48 >= 0
0x000000c0  RELAY_INLINE 16 bytes to the dispatcher, record of 64 bytes
0x000000d0    WAIT until stream 48 >= 2, clear stream 48
0x00000100  RELAY_INLINE 32 bytes to the dispatcher, record of 64 bytes
0x00000110    WRITE_LINEAR_H_HOST event 7";
    assert_eq!(messages(&launch()).join("\n"), expected);
}

#[test]
fn empty_and_zeroed_inputs_hold_no_records() {
    assert_eq!(decode_stream(&[]).count(), 0);
    assert_eq!(decode_stream(&[0; 1000]).count(), 0);
}

/// tt-metal#16167: the decoder stops at the first bad command and says why.
#[test]
fn issue_16167_the_first_bad_byte_ends_the_decoding() {
    let last = |bytes: &[u8]| messages(bytes).pop().unwrap();
    let mut bytes = launch();
    bytes[0x40] = 0x77;
    assert_eq!(messages(&bytes).len(), 2);
    assert_eq!(last(&bytes), "offset 0x40: prefetch command: found command id 119, expected 1 to 14");
    let mut bytes = launch();
    bytes[0x90] = 19;
    assert_eq!(last(&bytes), "offset 0x90: dispatch command: found command id 19, expected 1 to 18");
    let mut bytes = launch();
    bytes[0xd1] = 0x20;
    assert_eq!(last(&bytes), "offset 0xd1: WAIT: found flags 32, expected bits 0 to 4 only");
    let mut bytes = launch();
    bytes[0x48] = 8;
    assert_eq!(last(&bytes), "offset 0x48: RELAY_INLINE: found stride 8, expected 32 to 262144");
    let mut bytes = launch();
    bytes[0x14] = 1;
    assert_eq!(
        last(&bytes),
        "offset 0x24: SET_GO_SIGNAL_NOC_DATA: found byte 0x82 behind the command, expected zero padding"
    );
    assert_eq!(last(&launch()[..0x125]), "offset 0x110: RELAY_INLINE: payload needs 32 bytes, found 21");
    // A gap of zeros is not the end when something follows.
    let mut bytes = launch();
    bytes[0x40..0x80].fill(0);
    assert_eq!(last(&bytes), "offset 0x40: prefetch command: found command id 0, expected 1 to 14");
}

#[test]
fn a_noflush_relay_may_end_inside_its_command() {
    let write = DispatchCommand::WriteLinear(LinearWrite {
        num_mcast_dests: 0,
        write_offset_index: 0,
        noc_xy: 0x81,
        addr: 0x37000,
        data: vec![1; 1000],
    });
    let payload = write.to_bytes().unwrap()[..32].to_vec();
    let inline = Inline { dispatcher: DispatcherSelect::Master, payload };
    let head = PrefetchCommand::RelayInlineNoflush(inline.clone());
    let data = PrefetchCommand::RelayLinear(LinearRelay { noc_xy: 0x411, addr: 64, length: 1000 });
    let bytes = [head.to_bytes().unwrap(), data.to_bytes().unwrap()].concat();
    let lines = messages(&bytes).join("\n");
    assert!(lines.contains("0x00000010    WRITE_LINEAR (the next relay brings the other 1000 bytes)"), "{lines}");
    assert!(lines.contains("0x00000040  RELAY_LINEAR 1000 bytes from (17,16) 0x40"), "{lines}");
    // The same payload in a flushing relay is a command without its data.
    let bytes = PrefetchCommand::RelayInline(inline).to_bytes().unwrap();
    let expected = "offset 0x30: WRITE_LINEAR: data needs 1000 bytes, found 0";
    assert_eq!(messages(&bytes), [expected]);
}

#[test]
fn commands_of_a_long_payload_begin_on_dispatch_pages() {
    let mut payload = DispatchCommand::barrier().to_bytes().unwrap();
    payload.resize(4096, 0);
    payload.extend(DispatchCommand::Terminate.to_bytes().unwrap());
    let bytes = PrefetchCommand::relay_inline(payload).to_bytes().unwrap();
    let records: Vec<_> = decode_stream(&bytes).map(Result::unwrap).collect();
    let inner: Vec<_> = records[0].inner.iter().map(|i| (i.offset, i.command.name())).collect();
    assert_eq!(inner, [(16, "WAIT"), (16 + 4096, "TERMINATE")]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn streams_read_back_as_they_were_written(
        commands in vec(dispatch_command(), 0..12),
        zeros in 0..300usize,
    ) {
        let mut bytes = stream(&commands);
        let end = bytes.len();
        bytes.resize(end + zeros, 0);
        let mut decoder = decode_stream(&bytes);
        for command in commands {
            let record = decoder.next().unwrap().unwrap();
            prop_assert_eq!(record.inner.len(), 1);
            prop_assert!(!record.to_string().is_empty());
            prop_assert_eq!(&record.inner[0].command, &InnerCommand::Whole(command));
        }
        prop_assert!(decoder.next().is_none());
        prop_assert_eq!(decoder.offset(), end);
    }

    #[test]
    fn arbitrary_bytes_end_in_at_most_one_error(bytes in vec(any::<u8>(), 0..4096)) {
        check_bounded(&bytes)?;
    }

    #[test]
    fn plausible_bytes_end_in_at_most_one_error(
        words in vec(prop_oneof![Just(0u8), 1..20u8, Just(16), Just(64), any::<u8>()], 0..2048),
    ) {
        check_bounded(&words)?;
    }

    #[test]
    fn damaged_streams_end_in_at_most_one_error(
        commands in vec(prefetch_command(dispatch_bytes()), 1..8),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut bytes: Vec<u8> =
            commands.iter().flat_map(|command| command.to_bytes().unwrap()).collect();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(keep.index(bytes.len() + 1));
        check_bounded(&bytes)?;
    }
}

fn dispatch_bytes() -> impl Strategy<Value = Vec<u8>> + Clone {
    std::rc::Rc::new(dispatch_command()).prop_map(|command| command.to_bytes().unwrap())
}

/// Every record lies in the input, in order; an error is last and points into the input.
fn check_bounded(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut end = 0;
    let mut failed = false;
    for record in decode_stream(bytes) {
        prop_assert!(!failed, "records behind an error");
        match record {
            Ok(record) => {
                prop_assert_eq!(record.offset, end);
                prop_assert!(record.size > 0);
                end += record.size;
                prop_assert!(end <= bytes.len());
                for inner in &record.inner {
                    prop_assert!(inner.offset + inner.size <= end);
                }
                let _ = record.to_string();
            }
            Err(error) => {
                prop_assert!(error.offset <= bytes.len(), "{error}");
                failed = true;
            }
        }
    }
    Ok(())
}
