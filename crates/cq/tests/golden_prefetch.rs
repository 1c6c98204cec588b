//! The bytes of every prefetch command and of whole records, worked out by hand from
//! the original's `cq_commands.hpp`; not by the encoder.

use tilework_abi::cq::prefetch::{DispatcherSelect, RingbufferFlags};
use tilework_cq::dispatch::DebugMark;
use tilework_cq::prefetch::*;
use tilework_cq::{DispatchCommand, PrefetchCommand, Record, relay_inline};

/// `head`, then zeros up to `size` bytes.
#[track_caller]
fn golden(command: PrefetchCommand, head: &[u8], size: usize) {
    let mut bytes = head.to_vec();
    bytes.resize(size, 0);
    assert_eq!(command.to_bytes().unwrap(), bytes, "emit");
    assert_eq!(PrefetchCommand::parse(&bytes).unwrap(), (command, size), "parse");
}

#[test]
#[rustfmt::skip]
fn relay_linear() {
    let command = PrefetchCommand::RelayLinear(LinearRelay {
        noc_xy: 0x0403_0201, addr: 0x1122_3344_5566_7788, length: 0x1_0000_0002,
    });
    golden(command, &[
        1, 0, 0, // id, pad
        2, 0, 0, 0, 1, 0, 0, 0, // length
        1, 2, 3, 4, // xy
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // address
    ], 64);
}

#[test]
#[rustfmt::skip]
fn relay_linear_h() {
    let command = PrefetchCommand::RelayLinearH(LinearRelayH {
        noc_xy: 0x0403_0201, addr: 0x1122_3344_5566_7788, length: 0x0001_0203,
    });
    golden(command, &[
        2, 0, 0, 0, // id, pads
        1, 2, 3, 4, // xy
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // address
        0x03, 0x02, 0x01, 0x00, // length
    ], 64);
}

#[test]
#[rustfmt::skip]
fn relay_paged() {
    let relay = PagedRelay {
        is_dram: true, length_adjust: 0x0020, start_page: 6,
        base_addr: 0x0403_0201, page_size: 2048, pages: 3,
    };
    golden(PrefetchCommand::RelayPaged(relay), &[
        3, 6, 0x20, 0x80, 1, 2, 3, 4, 0, 8, 0, 0, 3, 0, 0, 0,
    ], 64);
}

#[test]
#[rustfmt::skip]
fn relay_paged_packed() {
    let source = |start_page, length| PagedSource {
        start_page, log_page_size: 11, base_addr: 0x0403_0201, length,
    };
    golden(PrefetchCommand::RelayPagedPacked(vec![source(0x0102, 0x40), source(3, 0x100)]), &[
        4, 0, 2, 0, // id, pad, count
        0x40, 1, 0, 0, // 0x40 + 0x100
        64, 0, 0, 0, 0, 0, 0, 0, // stride: 16 + 24, rounded up
        2, 1, 11, 0, 1, 2, 3, 4, 0x40, 0, 0, 0,
        3, 0, 11, 0, 1, 2, 3, 4, 0, 1, 0, 0,
    ], 64);
}

#[test]
#[rustfmt::skip]
fn relay_inline_and_noflush() {
    let inline = |dispatcher, len| Inline { dispatcher, payload: vec![0xab; len] };
    let mut head = vec![5, 0, 0, 0, 3, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0xab, 0xab, 0xab];
    golden(PrefetchCommand::RelayInline(inline(DispatcherSelect::Master, 3)), &head, 64);
    head[0] = 6;
    golden(PrefetchCommand::RelayInlineNoflush(inline(DispatcherSelect::Master, 3)), &head, 64);
    head[0] = 5;
    head[1] = 1;
    golden(PrefetchCommand::RelayInline(inline(DispatcherSelect::Subordinate, 3)), &head, 64);
    // 16 + 49 bytes need two units of 64.
    let mut head = vec![5, 0, 0, 0, 49, 0, 0, 0, 128, 0, 0, 0, 0, 0, 0, 0];
    head.resize(16 + 49, 0xab);
    golden(PrefetchCommand::RelayInline(inline(DispatcherSelect::Master, 49)), &head, 128);
}

#[test]
#[rustfmt::skip]
fn exec_buf_and_end() {
    let command = PrefetchCommand::ExecBuf(ExecBuf { base_addr: 0x0403_0201, log_page_size: 12, pages: 5 });
    golden(command, &[7, 0, 0, 0, 1, 2, 3, 4, 12, 0, 0, 0, 5, 0, 0, 0], 64);
    let payload = DispatchCommand::ExecBufEnd.to_bytes().unwrap();
    let end = Inline { dispatcher: DispatcherSelect::Master, payload };
    golden(PrefetchCommand::ExecBufEnd(end), &[
        8, 0, 0, 0, 16, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0, 11,
    ], 64);
}

#[test]
fn stall_and_terminate() {
    golden(PrefetchCommand::Stall, &[9], 64);
    golden(PrefetchCommand::Terminate, &[11], 64);
}

#[test]
#[rustfmt::skip]
fn debug() {
    let mark = DebugMark { key: 0x0201, size: 48, checksum: 0, body: vec![7; 48] };
    let mut head = vec![10, 0, 1, 2, 48, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0];
    head.resize(64, 7);
    golden(PrefetchCommand::Debug(mark), &head, 64);
}

#[test]
#[rustfmt::skip]
fn paged_to_ringbuffer() {
    let command = PrefetchCommand::PagedToRingbuffer(PagedToRing {
        flags: RingbufferFlags::RESET_TO_START, log2_page_size: 11, start_page: 3,
        wp_offset_update: 0x0403_0201, base_addr: 0x0807_0605, length: 0x0001_0a09,
    });
    golden(command, &[12, 1, 11, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 0], 64);
}

#[test]
fn set_ringbuffer_offset() {
    let command = PrefetchCommand::SetRingbufferOffset(RingOffset { offset: 0x0403_0201, update_wp: true });
    golden(command, &[13, 1, 2, 3, 4, 0, 0, 0, 1], 64);
}

#[test]
#[rustfmt::skip]
fn relay_ringbuffer() {
    let piece = |start, length| RingPiece { start, length };
    golden(PrefetchCommand::RelayRingbuffer(vec![piece(0x0201, 16), piece(0, 0x0403)]), &[
        14, 0, 2, 0, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        1, 2, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0,
    ], 64);
}

/// Seed 001 section 2.2: header of 16 bytes, stride rounded up to 64, entry = stride >> 4.
#[test]
#[rustfmt::skip]
fn a_record_is_a_relay_padded_to_64_and_its_entry_counts_16_byte_units() {
    let record = Record::dispatch(&DispatchCommand::host_event(9)).unwrap();
    let mut expected = vec![
        5, 0, 0, 0, 32, 0, 0, 0, 64, 0, 0, 0, 0, 0, 0, 0,
        3, 1, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0,
        9, 0, 0, 0,
    ];
    expected.resize(64, 0);
    assert_eq!(record.bytes(), expected);
    assert_eq!((record.size(), record.entry()), (64, 4));
    for (len, entry) in [(1, 4), (48, 4), (49, 8), (4096, 260), (262_128, 16384)] {
        assert_eq!(relay_inline(&vec![1; len]).unwrap().entry(), entry, "{len} bytes");
    }
}

/// tt-metal#37233: nothing that rounds to a transfer of zero bytes leaves the host.
#[test]
fn issue_37233_zero_length_payloads_are_refused_both_ways() {
    let error = relay_inline(&[]).unwrap_err();
    assert_eq!(error.to_string(), "RELAY_INLINE: found length 0, expected 1 to 262128");
    let mut bytes = relay_inline(&[1]).unwrap().bytes().to_vec();
    bytes[4] = 0;
    let error = PrefetchCommand::parse(&bytes).unwrap_err();
    let expected = "offset 0x4: RELAY_INLINE: found length 0, expected 1 to 262128";
    assert_eq!(error.to_string(), expected);
    assert!(relay_inline(&vec![0; 262_129]).is_err());
}
