//! The bytes of every dispatch command, worked out by hand from the original's `cq_commands.hpp`;
//! not by the encoder.

use tilework_abi::cq::dispatch::{WaitFlags, WritePackedLargeType, WritePackedType};
use tilework_cq::dispatch::*;

#[track_caller]
fn golden(command: DispatchCommand, bytes: &[u8]) {
    assert_eq!(command.to_bytes().unwrap(), bytes, "emit");
    assert_eq!(DispatchCommand::parse(bytes).unwrap(), (command, bytes.len()), "parse");
}

fn linear() -> LinearWrite {
    LinearWrite {
        num_mcast_dests: 3,
        write_offset_index: 2,
        noc_xy: 0x0102_0304,
        addr: 0x1122_3344_5566_7788,
        data: vec![0xaa, 0xbb, 0xcc],
    }
}

#[rustfmt::skip]
fn linear_bytes(id: u8) -> Vec<u8> {
    vec![
        id, 3, 2, 0, // id, multicast destinations, offset index, pad
        0x04, 0x03, 0x02, 0x01, // xy
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // address
        3, 0, 0, 0, 0, 0, 0, 0, // length
        0, 0, 0, 0, 0, 0, 0, 0, // up to 32
        0xaa, 0xbb, 0xcc,
    ]
}

#[test]
fn write_linear() {
    golden(DispatchCommand::WriteLinear(linear()), &linear_bytes(1));
}

#[test]
fn write_linear_h() {
    golden(DispatchCommand::WriteLinearH(linear()), &linear_bytes(2));
}

#[test]
#[rustfmt::skip]
fn write_linear_h_host_event() {
    golden(DispatchCommand::host_event(0x0102_0304), &[
        3, 1, 0, 0, 0, 0, 0, 0, // id, is_event, pads
        32, 0, 0, 0, 0, 0, 0, 0, // length, header included
        4, 3, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // event, padded to 16
    ]);
}

#[test]
#[rustfmt::skip]
fn write_linear_h_host_data() {
    let write = HostWrite { is_event: false, payload: vec![7; 5] };
    golden(DispatchCommand::WriteLinearHHost(write), &[
        3, 0, 0, 0, 0, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 7, 7, 7, 7, 7,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_paged() {
    let write = PagedWrite {
        is_dram: true, start_page: 0x0201, base_addr: 0x0605_0403, page_size: 2,
        data: vec![1, 2, 3, 4, 5, 6],
    };
    golden(DispatchCommand::WritePaged(write), &[
        4, 1, 0x01, 0x02, // id, is_dram, first page
        0x03, 0x04, 0x05, 0x06, // base
        2, 0, 0, 0, 3, 0, 0, 0, // page size, pages
        1, 2, 3, 4, 5, 6,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_packed_unicast_one_packet_each() {
    let write = PackedWrite {
        kind: WritePackedType::RuntimeArgs, write_offset_index: 1, addr: 0x82b0,
        targets: PackedTargets::Unicast(vec![0x81, 0x82]), // (1,2) and (2,2)
        packets: Packets::PerTarget(vec![vec![1; 4], vec![2; 4]]),
    };
    golden(DispatchCommand::WritePacked(write), &[
        5, 0x10, 2, 0, // id, flags (type 1), count
        1, 0, 4, 0, // offset index, size
        0xb0, 0x82, 0, 0, 0, 0, 0, 0, // address, up to 16
        0x81, 0, 0, 0, 0x82, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // nodes, padded to 16
        1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // packets, each padded to 16
        2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_packed_unicast_shared_packet() {
    let write = PackedWrite {
        kind: WritePackedType::None, write_offset_index: 0, addr: 0x370,
        targets: PackedTargets::Unicast(vec![1, 2, 3, 4]),
        packets: Packets::Shared(vec![0, 0, 0, 0xe0]),
    };
    golden(DispatchCommand::WritePacked(write), &[
        5, 2, 4, 0, 0, 0, 4, 0, 0x70, 3, 0, 0, 0, 0, 0, 0, // flags: no stride
        1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, // four nodes need no padding
        0, 0, 0, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_packed_multicast_shared_packet() {
    // Rectangle (1,2)..(7,11): 11 << 18 | 7 << 12 | 2 << 6 | 1 = 0x2c_7081, 70 nodes.
    let write = PackedWrite {
        kind: WritePackedType::GoMsgIndex, write_offset_index: 0, addr: 0x3a0,
        targets: PackedTargets::Multicast(vec![(0x002c_7081, 70)]),
        packets: Packets::Shared(vec![9]),
    };
    golden(DispatchCommand::WritePacked(write), &[
        5, 0x53, 1, 0, 0, 0, 1, 0, 0xa0, 3, 0, 0, 0, 0, 0, 0,
        0x81, 0x70, 0x2c, 0, 70, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_packed_large() {
    let sub = |noc_xy, addr, num_mcast_dests, unlink, data: &[u8]| LargeSub {
        noc_xy, addr, num_mcast_dests, unlink, data: data.to_vec(),
    };
    let write = PackedLargeWrite {
        kind: WritePackedLargeType::ProgramBinaries, alignment: 16, write_offset_index: 3,
        subs: vec![
            sub(0x002c_7081, 0x82b0, 70, false, &[0x11; 3]),
            sub(0x002c_7081, 0x9000, 70, true, &[0x22; 17]),
        ],
    };
    golden(DispatchCommand::WritePackedLarge(write), &[
        6, 2, 2, 0, 16, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, // type, count, alignment, offset index
        0x81, 0x70, 0x2c, 0, 0xb0, 0x82, 0, 0, 2, 0, 70, 0, // length - 1, destinations, flags
        0x81, 0x70, 0x2c, 0, 0x00, 0x90, 0, 0, 16, 0, 70, 1,
        0, 0, 0, 0, 0, 0, 0, 0, // 24 bytes of sub-commands, padded to 32
        0x11, 0x11, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
        0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn write_packed_large_of_65536_bytes_stores_ffff() {
    let subs = vec![LargeSub { noc_xy: 0, addr: 0, num_mcast_dests: 1, unlink: true, data: vec![5; 65536] }];
    let write = PackedLargeWrite {
        kind: WritePackedLargeType::Unknown, alignment: 16, write_offset_index: 0, subs,
    };
    let bytes = DispatchCommand::WritePackedLarge(write).to_bytes().unwrap();
    assert_eq!(bytes[24..28], [0xff, 0xff, 1, 1]);
    assert_eq!(bytes.len(), 16 + 16 + 65536);
}

#[test]
#[rustfmt::skip]
fn wait() {
    golden(DispatchCommand::wait_stream_and_clear(48, 118), &[
        7, 0x18, 48, 0, 0, 0, 0, 0, 118, 0, 0, 0, 0, 0, 0, 0,
    ]);
    golden(DispatchCommand::barrier(), &[7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let flags = WaitFlags::NOTIFY_PREFETCH | WaitFlags::WAIT_MEMORY;
    let wait = Wait { flags, stream: 0x0201, addr: 0x0001_9710, count: 0xffff_fffe };
    golden(DispatchCommand::Wait(wait), &[
        7, 6, 1, 2, 0x10, 0x97, 1, 0, 0xfe, 0xff, 0xff, 0xff, 0, 0, 0, 0,
    ]);
}

#[test]
fn sink() {
    golden(DispatchCommand::Sink, &[8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
#[rustfmt::skip]
fn debug() {
    golden(DispatchCommand::Debug(DebugMark { key: 0x0201, size: 2, checksum: 0, body: vec![5, 6] }), &[
        9, 0, 1, 2, 2, 0, 0, 0, 18, 0, 0, 0, 0, 0, 0, 0, 5, 6,
    ]);
}

#[test]
fn delay() {
    golden(DispatchCommand::Delay(Delay { iterations: 1000 }), &[10, 0, 0, 0, 0xe8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn exec_buf_end() {
    golden(DispatchCommand::ExecBufEnd, &[11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
#[rustfmt::skip]
fn set_write_offset() {
    let offsets = vec![0x82b0, 0xffff_ffff, 1];
    golden(DispatchCommand::SetWriteOffset(WriteOffsets { program_host_id: 0x0201, offsets }), &[
        12, 3, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0xb0, 0x82, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0,
    ]);
}

#[test]
fn terminate() {
    golden(DispatchCommand::Terminate, &[13, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
#[rustfmt::skip]
fn send_go_signal() {
    // Go message: GO (0x80), master (14,3), offset 0.
    let go = GoSignal {
        go_signal: 0x8003_0e00, multicast_go_offset: None, num_unicast_txns: 118,
        noc_data_start_index: 5, wait_count: 0x0403_0201, wait_stream: 48,
    };
    golden(DispatchCommand::SendGoSignal(go), &[
        14, 0x00, 0x0e, 0x03, 0x80, 0xff, 118, 5, 1, 2, 3, 4, 48, 0, 0, 0,
    ]);
    let go = GoSignal { multicast_go_offset: Some(2), ..go };
    golden(DispatchCommand::SendGoSignal(go), &[
        14, 0x00, 0x0e, 0x03, 0x80, 2, 118, 5, 1, 2, 3, 4, 48, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn notify_subordinate_go_signal() {
    golden(DispatchCommand::NotifySubordinateGoSignal(NotifySubordinate { wait: true, index_bitmask: 0x81 }), &[
        15, 1, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]);
}

#[test]
fn set_num_worker_sems() {
    golden(
        DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: 8 }),
        &[16, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    );
}

#[test]
#[rustfmt::skip]
fn set_go_signal_noc_data() {
    // Not padded: the original's host ends the payload with the last word.
    golden(DispatchCommand::SetGoSignalNocData(vec![0x81, 0x82, 0xc1]), &[
        17, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0x81, 0, 0, 0, 0x82, 0, 0, 0, 0xc1, 0, 0, 0,
    ]);
}

#[test]
#[rustfmt::skip]
fn timestamp() {
    // PCIe tile (19,24) with the host mark: 1 << 24 | 24 << 6 | 19 = 0x0100_0613.
    golden(DispatchCommand::Timestamp(Timestamp { noc_xy: 0x0100_0613, addr: 0x4600_0100 }), &[
        18, 0, 0, 0, 0x13, 6, 0, 1, 0x00, 0x01, 0x00, 0x46, 0, 0, 0, 0,
    ]);
}
