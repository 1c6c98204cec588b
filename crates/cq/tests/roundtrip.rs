//! `parse(emit(x)) == x` for both command sets, and neither direction panics on anything.

mod common;

use common::{dispatch_command, prefetch_command};
use proptest::collection::vec;
use proptest::prelude::*;
use tilework_cq::dispatch::*;
use tilework_cq::{DispatchCommand, PrefetchCommand};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn dispatch_commands_survive_the_round_trip(
        command in dispatch_command(),
        before in vec(any::<u8>(), 0..40),
        behind in vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = before.clone();
        command.emit(&mut bytes).unwrap();
        let size = bytes.len() - before.len();
        prop_assert_eq!(&bytes[before.len()..], &command.to_bytes().unwrap()[..]);
        bytes.extend(&behind);
        let (parsed, consumed) = DispatchCommand::parse(&bytes[before.len()..]).unwrap();
        prop_assert_eq!(parsed, command);
        prop_assert_eq!(consumed, size);
    }

    #[test]
    fn prefetch_commands_survive_the_round_trip(
        command in prefetch_command(vec(any::<u8>(), 1..500)),
        behind in vec(any::<u8>(), 0..40),
    ) {
        let mut bytes = command.to_bytes().unwrap();
        let size = bytes.len();
        prop_assert!(size.is_multiple_of(64));
        bytes.extend(&behind);
        prop_assert_eq!(PrefetchCommand::parse(&bytes).unwrap(), (command, size));
    }

    #[test]
    fn truncated_commands_are_refused_with_an_offset_inside(
        command in dispatch_command(),
        keep in any::<prop::sample::Index>(),
    ) {
        let bytes = command.to_bytes().unwrap();
        let keep = keep.index(bytes.len());
        match DispatchCommand::parse(&bytes[..keep]) {
            Err(error) => prop_assert!(error.offset <= keep, "{error}"),
            // Only padding may be missing.
            Ok((parsed, consumed)) => {
                prop_assert_eq!(parsed, command);
                prop_assert_eq!(consumed, keep);
            }
        }
    }

    #[test]
    fn what_parses_can_be_emitted_and_parses_the_same(
        command in dispatch_command(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = command.to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((parsed, consumed)) = DispatchCommand::parse(&bytes) {
            prop_assert!(consumed <= bytes.len());
            let emitted = parsed.to_bytes().unwrap();
            prop_assert_eq!(DispatchCommand::parse(&emitted).unwrap().0, parsed);
        }
    }
}

fn packed(targets: PackedTargets, packets: Packets) -> DispatchCommand {
    DispatchCommand::WritePacked(PackedWrite {
        kind: Default::default(),
        write_offset_index: 0,
        addr: 0,
        targets,
        packets,
    })
}

/// The dispatcher copies sub-commands to local RAM without a check; the host must not send more
/// than fit.
#[test]
fn limits_of_the_firmware_are_limits_of_the_encoder() {
    let message = |command: DispatchCommand| command.to_bytes().unwrap_err().to_string();
    let one = || Packets::Shared(vec![1]);
    assert_eq!(
        message(packed(PackedTargets::Unicast(vec![0; 119]), one())),
        "WRITE_PACKED: found count 119, expected 1 to 118"
    );
    assert_eq!(
        message(packed(PackedTargets::Multicast(vec![(0, 1); 60]), one())),
        "WRITE_PACKED: found count 60, expected 1 to 59"
    );
    assert_eq!(
        message(packed(PackedTargets::Unicast(vec![0]), Packets::Shared(vec![0; 4097]))),
        "WRITE_PACKED: found size 4097, expected 1 to 4096"
    );
    assert_eq!(
        message(packed(PackedTargets::Unicast(vec![0; 2]), Packets::PerTarget(vec![vec![1]]))),
        "WRITE_PACKED: found number of packets 1, expected 2"
    );
    assert_eq!(
        message(DispatchCommand::SetGoSignalNocData(vec![0; 257])),
        "SET_GO_SIGNAL_NOC_DATA: found num_words 257, expected 0 to 256"
    );
    assert_eq!(
        message(DispatchCommand::SetWriteOffset(WriteOffsets { program_host_id: 0, offsets: vec![0; 5] })),
        "SET_WRITE_OFFSET: found offset_count 5, expected 0 to 4"
    );
    let sub = LargeSub { noc_xy: 0, addr: 0, num_mcast_dests: 1, unlink: true, data: vec![0; 65537] };
    let large = |subs| {
        let (kind, alignment, write_offset_index) = (Default::default(), 16, 0);
        DispatchCommand::WritePackedLarge(PackedLargeWrite { kind, alignment, write_offset_index, subs })
    };
    assert_eq!(message(large(vec![sub.clone()])), "WRITE_PACKED_LARGE: found packet size 65537, expected 1 to 65536");
    assert_eq!(message(large(vec![sub; 36])), "WRITE_PACKED_LARGE: found count 36, expected 1 to 35");
    let mut out = vec![1, 2, 3];
    assert!(DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: 9 }).emit(&mut out).is_err());
    assert_eq!(out, [1, 2, 3], "a failed emit leaves nothing behind");
}
