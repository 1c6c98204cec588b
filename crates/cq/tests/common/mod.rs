//! Generators of every command that the encoder accepts.

use proptest::collection::vec;
use proptest::prelude::*;
use tilework_abi::cq::dispatch::{WaitFlags, WritePackedLargeType, WritePackedType};
use tilework_abi::cq::prefetch::{DispatcherSelect, RingbufferFlags};
use tilework_cq::dispatch::*;
use tilework_cq::prefetch::*;
use tilework_cq::{DispatchCommand, PrefetchCommand};

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 1..=max)
}

fn linear() -> impl Strategy<Value = LinearWrite> {
    (any::<u8>(), 0..4u8, any::<u32>(), any::<u64>(), bytes(300)).prop_map(
        |(num_mcast_dests, write_offset_index, noc_xy, addr, data)| LinearWrite {
            num_mcast_dests,
            write_offset_index,
            noc_xy,
            addr,
            data,
        },
    )
}

fn paged() -> impl Strategy<Value = PagedWrite> {
    (any::<bool>(), any::<u16>(), any::<u32>(), 1..64u32, 1..8u32).prop_map(
        |(is_dram, start_page, base_addr, page_size, pages)| PagedWrite {
            is_dram,
            start_page,
            base_addr,
            page_size,
            data: (0..page_size * pages).map(|i| i as u8).collect(),
        },
    )
}

fn packed() -> impl Strategy<Value = PackedWrite> {
    let kind = prop_oneof![
        Just(WritePackedType::None),
        Just(WritePackedType::RuntimeArgs),
        Just(WritePackedType::Launch),
        Just(WritePackedType::Semaphores),
        Just(WritePackedType::Event),
        Just(WritePackedType::GoMsgIndex),
    ];
    let targets = prop_oneof![
        vec(any::<u32>(), 1..=118).prop_map(PackedTargets::Unicast),
        vec((any::<u32>(), 1..=u32::MAX), 1..=59).prop_map(PackedTargets::Multicast),
    ];
    (kind, 0..4u16, any::<u32>(), targets, bytes(70), any::<bool>()).prop_map(
        |(kind, write_offset_index, addr, targets, packet, shared)| PackedWrite {
            kind,
            write_offset_index,
            addr,
            packets: if shared {
                Packets::Shared(packet)
            } else {
                let each = |i: usize| packet.iter().map(|b| b.wrapping_add(i as u8)).collect();
                Packets::PerTarget((0..targets.len()).map(each).collect())
            },
            targets,
        },
    )
}

fn packed_large() -> impl Strategy<Value = PackedLargeWrite> {
    let kind = prop_oneof![
        Just(WritePackedLargeType::Unknown),
        Just(WritePackedLargeType::CbsSemsCrtas),
        Just(WritePackedLargeType::ProgramBinaries),
    ];
    let sub = (any::<u32>(), any::<u32>(), 1..=u8::MAX, any::<bool>(), bytes(100)).prop_map(
        |(noc_xy, addr, num_mcast_dests, unlink, data)| LargeSub { noc_xy, addr, num_mcast_dests, unlink, data },
    );
    (kind, 0..8u32, 0..4u16, vec(sub, 1..=35)).prop_map(|(kind, log_alignment, write_offset_index, subs)| {
        PackedLargeWrite { kind, alignment: 1 << log_alignment, write_offset_index, subs }
    })
}

fn go_signal() -> impl Strategy<Value = GoSignal> {
    let multicast = proptest::option::of(0..=254u8);
    (any::<u32>(), multicast, any::<u8>(), any::<u8>(), any::<u32>(), any::<u32>()).prop_map(
        |(go_signal, multicast_go_offset, n, start, wait_count, wait_stream)| GoSignal {
            go_signal,
            multicast_go_offset,
            num_unicast_txns: n,
            noc_data_start_index: start.min(255 - n),
            wait_count,
            wait_stream,
        },
    )
}

fn debug(max: usize) -> impl Strategy<Value = DebugMark> {
    let words = (any::<u16>(), any::<u32>(), any::<u32>());
    (words, vec(any::<u8>(), 0..max)).prop_map(|((key, size, checksum), body)| DebugMark { key, size, checksum, body })
}

pub(crate) fn dispatch_command() -> impl Strategy<Value = DispatchCommand> {
    use DispatchCommand as C;
    let wait = (0..32u8, any::<u16>(), any::<u32>(), any::<u32>()).prop_map(|(flags, stream, addr, count)| {
        C::Wait(Wait { flags: WaitFlags::from_bits_truncate(flags), stream, addr, count })
    });
    let host = (any::<bool>(), bytes(300))
        .prop_map(|(is_event, payload)| C::WriteLinearHHost(HostWrite { is_event, payload }));
    prop_oneof![
        linear().prop_map(C::WriteLinear),
        linear().prop_map(C::WriteLinearH),
        host,
        paged().prop_map(C::WritePaged),
        packed().prop_map(C::WritePacked),
        packed_large().prop_map(C::WritePackedLarge),
        wait,
        Just(C::Sink),
        debug(100).prop_map(C::Debug),
        any::<u32>().prop_map(|iterations| C::Delay(Delay { iterations })),
        Just(C::ExecBufEnd),
        (any::<u16>(), vec(any::<u32>(), 0..=4))
            .prop_map(|(program_host_id, offsets)| { C::SetWriteOffset(WriteOffsets { program_host_id, offsets }) }),
        Just(C::Terminate),
        go_signal().prop_map(C::SendGoSignal),
        (any::<bool>(), 0..256u16)
            .prop_map(|(wait, index_bitmask)| C::NotifySubordinateGoSignal(NotifySubordinate { wait, index_bitmask })),
        (0..=8u32).prop_map(|count| C::SetNumWorkerSems(NumWorkerSems { count })),
        vec(any::<u32>(), 0..=256).prop_map(C::SetGoSignalNocData),
        (any::<u32>(), any::<u32>()).prop_map(|(noc_xy, addr)| C::Timestamp(Timestamp { noc_xy, addr })),
    ]
}

fn inline(payload: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Inline> {
    let dispatcher = prop_oneof![Just(DispatcherSelect::Master), Just(DispatcherSelect::Subordinate)];
    (dispatcher, payload).prop_map(|(dispatcher, payload)| Inline { dispatcher, payload })
}

/// Every prefetch command; relays carry what `payload` generates.
pub(crate) fn prefetch_command(
    payload: impl Strategy<Value = Vec<u8>> + Clone + 'static,
) -> impl Strategy<Value = PrefetchCommand> {
    use PrefetchCommand as C;
    let paged = (any::<bool>(), 0..0x8000u16, any::<u8>(), any::<u32>(), 1..=u32::MAX, 1..=u32::MAX).prop_map(
        |(is_dram, length_adjust, start_page, base_addr, page_size, pages)| {
            C::RelayPaged(PagedRelay { is_dram, length_adjust, start_page, base_addr, page_size, pages })
        },
    );
    let source = (any::<u16>(), 0..32u16, any::<u32>(), 1..=65536u32).prop_map(
        |(start_page, log_page_size, base_addr, length)| PagedSource { start_page, log_page_size, base_addr, length },
    );
    let to_ring = (any::<bool>(), 0..32u8, any::<u8>(), any::<u32>(), any::<u32>(), 1..=131_072u32).prop_map(
        |(reset, log2_page_size, start_page, wp_offset_update, base_addr, length)| {
            let mut flags = RingbufferFlags::empty();
            flags.set(RingbufferFlags::RESET_TO_START, reset);
            C::PagedToRingbuffer(PagedToRing { flags, log2_page_size, start_page, wp_offset_update, base_addr, length })
        },
    );
    let piece = (any::<u32>(), 1..=u32::MAX).prop_map(|(start, length)| RingPiece { start, length });
    prop_oneof![
        (any::<u32>(), any::<u64>(), 1..=u64::MAX).prop_map(|(noc_xy, addr, length)| C::RelayLinear(LinearRelay {
            noc_xy,
            addr,
            length
        })),
        (any::<u32>(), any::<u64>(), 1..=131_008u32).prop_map(|(noc_xy, addr, length)| C::RelayLinearH(LinearRelayH {
            noc_xy,
            addr,
            length
        })),
        paged,
        vec(source, 1..=35).prop_map(C::RelayPagedPacked),
        inline(payload.clone()).prop_map(C::RelayInline),
        inline(payload.clone()).prop_map(C::RelayInlineNoflush),
        inline(payload).prop_map(C::ExecBufEnd),
        (any::<u32>(), 0..32u32, 1..=u32::MAX)
            .prop_map(|(base_addr, log_page_size, pages)| { C::ExecBuf(ExecBuf { base_addr, log_page_size, pages }) }),
        Just(C::Stall),
        (any::<u16>(), any::<u32>(), 1..4usize, any::<u8>()).prop_map(|(key, size, n, byte)| {
            C::Debug(DebugMark { key, size, checksum: size, body: vec![byte; n * 64 - 16] })
        }),
        Just(C::Terminate),
        to_ring,
        (any::<u32>(), any::<bool>())
            .prop_map(|(offset, update_wp)| C::SetRingbufferOffset(RingOffset { offset, update_wp })),
        vec(piece, 1..=52).prop_map(C::RelayRingbuffer),
    ]
}
