//! Every latency and bandwidth of the chip, with the source of each number (design decision 5).
//!
//! Instruction latencies are in `tilework_riscv::timing`. All values are AI clock cycles (1.35 GHz:
//! 1 us = 1350 cycles) unless a name says otherwise. Numbers marked "estimate" have no document;
//! they are round and stated, never tuned to a result.

/// NIU to its router (BlackholeA0/NoC/README.md, "Performance": about 5).
pub(crate) const NIU_TO_ROUTER: u64 = 5;
/// Router to the neighbouring router (BlackholeA0/NoC/README.md: 9).
pub(crate) const ROUTER_HOP: u64 = 9;
/// Router to its NIU (BlackholeA0/NoC/README.md: about 5).
pub(crate) const ROUTER_TO_NIU: u64 = 5;
/// Cycles that one flit occupies a link (BlackholeA0/NoC/README.md: one flit per cycle).
pub(crate) const FLIT: u64 = 1;
/// No packet reaches another node sooner than this after it left: NIU, one hop, NIU, one flit. A
/// packet to its own tile turns around in its router, which is charged as one hop (estimate), so
/// that this holds for it too.
pub(crate) const LOOKAHEAD: u64 = NIU_TO_ROUTER + ROUTER_HOP + ROUTER_TO_NIU + FLIT;
/// From the write of `NOC_CMD_CTRL` to the first flit, when the NIU is idle: queue, coordinate
/// translation, virtual channel, first read of L1 (estimate). Requests that follow leave when the
/// flits before them have left.
pub(crate) const NIU_ISSUE: u64 = 8;
/// From the last flit of a read request to the first flit of its answer, in a Tensix tile
/// (estimate: one read of L1, as [`LOAD_L1`]).
pub(crate) const SERVE_READ: u64 = 8;
/// From the last flit of a write request to its acknowledgement, in a Tensix tile (estimate: one
/// write of L1, as [`STORE_L1_INTERVAL`]).
pub(crate) const SERVE_WRITE: u64 = 5;
/// From an atomic request to its answer (estimate: one atomic on L1, as [`ATOMIC_L1`]).
pub(crate) const SERVE_ATOMIC: u64 = 12;
/// No Tensix tile answers a packet sooner, or starts a request because of one.
pub(crate) const SERVE_FIRST: u64 = SERVE_WRITE;
const _: () = assert!(SERVE_FIRST <= SERVE_READ && SERVE_FIRST <= SERVE_ATOMIC && SERVE_FIRST <= NIU_ISSUE);
/// Load latency of mailboxes, PC buffers and Tensix semaphores (BabyRISCV/README.md: at least 3).
pub(crate) const LOAD_MAILBOX: u32 = 3;
/// Load latency of Tensix GPRs, backend configuration and TDMA registers (BabyRISCV/README.md: at
/// least 4).
pub(crate) const LOAD_CONFIG: u32 = 4;
/// Load latency of Dst by way of its window (estimate: as [`LOAD_CONFIG`]).
pub(crate) const LOAD_DST: u32 = LOAD_CONFIG;
/// Load latency of tile control, NIU and overlay registers (BabyRISCV/README.md: at least 7).
pub(crate) const LOAD_TILE_REG: u32 = 7;
/// Load latency of L1 on an L0 miss and of local RAM by the slow path (BabyRISCV/README.md: at
/// least 8).
pub(crate) const LOAD_L1: u32 = 8;
/// Load latency of local RAM and of an L0 hit (BabyRISCV/README.md: 2).
pub(crate) const LOAD_LOCAL: u32 = 2;
/// Latency of an atomic on L1 (BabyRISCV/README.md: at least 12).
pub(crate) const ATOMIC_L1: u32 = 12;
/// Stores to L1 that do not coalesce leave the store queue one per this many cycles
/// (BabyRISCV/README.md: 5).
pub(crate) const STORE_L1_INTERVAL: u64 = 5;
/// Entries of the store queue (BabyRISCV/MemoryOrdering.md: four).
pub(crate) const STORE_QUEUE: u64 = 4;
/// From the write that releases a core from soft reset to its first instruction (estimate).
pub(crate) const RESET_RELEASE: u64 = 10;
/// How long a Tensix unit of single-cycle instructions counts as busy with one
/// (WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md and MiscellaneousUnit.md, latencies of
/// those that are built: 1).
pub(crate) const TENSIX_UNIT: u64 = 1;
/// From an arithmetic instruction of the matrix unit to its results (MatrixUnit.md: 5).
pub(crate) const MATRIX_ARITHMETIC: u64 = 5;
/// Latency of `MOVA2D`, `MOVB2D` and `MOVB2A` (MatrixUnit.md: 4), and how long what must not follow
/// `MOVA2D`, `MOVB2D` or `MOVD2B` waits (their pages: not in the next three cycles). The latency of
/// `MOVD2B` is not stated: as long (estimate).
pub(crate) const MATRIX_MOVE: u64 = 4;
/// Latency of `MOVD2A` (MatrixUnit.md: 2), and how long what must not follow it or `MOVB2A` waits
/// (MOVD2A.md and MOVB2A.md: not in the next cycle).
pub(crate) const MATRIX_MOVE_TO_A: u64 = 2;
/// Cycles of `SHIFTXB` (MatrixUnit.md: latency 2, one in two cycles).
pub(crate) const MATRIX_SHIFT: u64 = 2;
/// From an instruction that writes to an aligned block of eight rows of Dst to the first one that
/// can read it (BlackholeA0/TensixTile/TensixCoprocessor/Dst.md: not in the next four cycles).
pub(crate) const DST_READABLE: u64 = 5;
/// From an instruction of the matrix unit that writes to Dst to the first `SFPLOAD` that may read
/// the same block (BlackholeA0/TensixTile/TensixCoprocessor/SFPLOAD.md: three other instructions
/// between). Hardware does not wait for it.
pub(crate) const DST_LOADABLE: u64 = 4;
/// From the cycle in which the packer takes no more of a `PACR` to the end of its pipeline
/// (estimate: a read of Dst, as the four cycles of Dst.md, two conversions, a write of L1, as
/// [`STORE_L1_INTERVAL`]).
pub(crate) const TENSIX_PACK: u64 = 12;
/// Bytes that one of an unpacker's four connections to L1 reads in a cycle, and that one of the
/// packer's four read interfaces writes: twice Wormhole's 16 (L1.md, UNPACR_Regular.md). tt-llk#916
/// says 32 for the packer of Blackhole, and tt-llk#130 that 25 cycles for an unpacked tile of 2048
/// bytes are 63 % of what is possible there, which is 128 bytes a cycle. The documents of Blackhole
/// do not say (estimate for both).
pub(crate) const L1_WORD: u64 = 32;
/// How many times as long the packer takes when it adds to L1: an accumulation takes a bank of L1
/// twice, for its read and for its write (tt-metal#51901; L1.md: two cycles of one that is not
/// atomic, five of one that is).
pub(crate) const PACK_ACCUMULATE: u64 = 2;
/// Cycles to the result of an instruction of the vector unit's MAD sub-unit, and of `SFPSWAP` and
/// the shuffles of lanes (BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md, "Instructions").
pub(crate) const TENSIX_VECTOR_MAD: u64 = 2;
/// Cycles of `ADDDMAREG` and its like; one more when both operands are registers of different
/// groups of four (ADDDMAREG.md).
pub(crate) const TENSIX_ARITHMETIC: u64 = 3;
/// Cycles of `REG2FLOP` and `FLUSHDMA` (ScalarUnit.md: at least 2).
pub(crate) const TENSIX_REG2FLOP: u64 = 2;
/// Cycles for which a load, store or atomic occupies the scalar unit (ScalarUnit.md: at least 3).
pub(crate) const TENSIX_REQUEST: u64 = 3;
/// From a scalar unit's load to its result (LOADIND.md: its three cycles and seven `DMANOP`s
/// suffice in most cases).
pub(crate) const TENSIX_LOAD: u64 = 10;
/// From a scalar unit's store to the end of its request (estimate: as [`TENSIX_LOAD`]).
pub(crate) const TENSIX_STORE: u64 = 10;
/// From `ATINCGET` to its result (ATINCGET.md: its three cycles and 24 `DMANOP`s suffice in most
/// cases).
pub(crate) const TENSIX_ATOMIC: u64 = 27;
/// At best one `ATINCGET` or `ATSWAP` in this many cycles (ATINCGET.md).
pub(crate) const TENSIX_ATOMIC_INTERVAL: u64 = 12;
/// Cycles of `ATCAS` and `ATINCGETPTR`, and from one of their attempts to the next (ATCAS.md: 15 or
/// more).
pub(crate) const TENSIX_ATOMIC_RETRY: u64 = 15;
/// Cycles that an `UNPACR` spends on its first input address, in which its thread and other
/// `UNPACR` wait (WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md, "Performance": two
/// for uncompressed data; compressed data need more, which has no document).
pub(crate) const UNPACR_ADDRESS: u64 = 2;
/// Instructions that an unpacker has in flight: one that moves data and one that waits (estimate).
pub(crate) const UNPACKER_IN_FLIGHT: usize = 2;
/// From a mover command to its first block (estimate: one read of L1, as [`LOAD_L1`]).
pub(crate) const MOVER_START: u64 = 8;
/// The mover copies eight blocks of 16 bytes in eleven cycles (Mover.md, ideal conditions): "bytes"
/// counts blocks. It clears one a cycle.
pub(crate) const MOVER_COPY: Rate = Rate { cycles: 11, bytes: 8 };
/// Cycles for a block that the mover copies or clears while another client uses its ports of L1
/// (Mover.md, with some contention). That is so here if the packer is busy when the mover starts
/// (estimate; the packer and the mover share ports, L1.md).
pub(crate) const MOVER_COPY_CONTENDED: u64 = 4;
/// The same for a block that it clears in L1 (Mover.md).
pub(crate) const MOVER_CLEAR_CONTENDED: u64 = 3;
/// From a write of the device to host memory until a polling host acts on it: about 100 ns
/// (estimate).
pub(crate) const HOST_NOTICE: u64 = 135;
const _: () = assert!(HOST_NOTICE >= LOOKAHEAD);

/// A bandwidth as an exact fraction: `bytes` bytes take `cycles` cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate {
    /// Cycles.
    pub cycles: u64,
    /// Bytes that pass in them.
    pub bytes: u64,
}

/// Bandwidth of one DRAM bank: 512 GB/s over eight banks is 64 GB/s, 47.4 bytes a cycle
/// (docs/sources.md, figures).
pub(crate) const DRAM_BANK: Rate = Rate { cycles: 27, bytes: 1280 };
/// A DRAM endpoint takes one read per 16.4 cycles per NoC (tt-metal#55898):
/// "bytes" counts reads.
pub(crate) const DRAM_ENDPOINT: Rate = Rate { cycles: 82, bytes: 5 };
/// From the arrival of a request at a DRAM endpoint to its data, or to the acknowledgement of a
/// write: 90 ns, by which a host read of DRAM takes longer than one of L1 on Wormhole
/// (WormholeB0/PCIExpressTile/README.md, 761 and 671 ns). A lower bound for Blackhole.
pub(crate) const DRAM_ACCESS: u64 = 122;
/// PCIe link, each direction: Gen5 x16, 63 GB/s raw (docs/sources.md, figures).
pub(crate) const PCIE_LINK: Rate = Rate { cycles: 27, bytes: 1260 };
/// Payload of one PCIe packet (docs/sources.md, figures: 128 to 256 bytes).
pub(crate) const PCIE_PAYLOAD: u64 = 128;
/// Bytes that travel with each payload: header, sequence number and checksums (PCIe base
/// specification; gives the 55 GB/s of docs/sources.md).
pub(crate) const PCIE_OVERHEAD: u64 = 20;
/// Bandwidth of host stores through a window: 21.5 GB/s (docs/sources.md, figures).
pub(crate) const PCIE_STORE: Rate = Rate { cycles: 27, bytes: 430 };
/// From a host store to its packet at the PCIe tile's NIU, and as much back from the NIU to the
/// host's register for loads: half of 671 ns less 110 ns on the NoC
/// (WormholeB0/PCIExpressTile/README.md, "Host-initiated reads and writes").
pub(crate) const PCIE_HOST_ONE_WAY: u64 = 379;
/// A host load asks for this many bytes at a time, one after the other (same page: `memcpy` from
/// the device, 0.10 GB/s).
pub(crate) const PCIE_LOAD_CHUNK: u64 = 64;
/// Cycles for each further chunk of a host load: 64 bytes at 0.10 GB/s (same page).
pub(crate) const PCIE_LOAD_NEXT: u64 = 864;
/// From the PCIe tile's NIU to host memory, and as much back: half of 150 + 430 ns (same page,
/// "Device-initiated reads and writes").
pub(crate) const PCIE_MEMORY_ONE_WAY: u64 = 392;
/// From the arrival of a write at the PCIe tile to its acknowledgement, which the middle of the
/// controller gives: 150 ns (same page).
pub(crate) const PCIE_WRITE_ACK: u64 = 203;
/// Accesses of a host that may be in flight before it is held: the posted-header credits that a
/// root port is usually given (estimate).
pub(crate) const PCIE_POSTED: usize = 64;
/// An access of the ARC's registers over the NoC (estimate: as [`LOAD_TILE_REG`], twice for the
/// slower clock).
pub(crate) const ARC_ACCESS: u64 = 14;
/// What a posted write through a BAR costs the host: about 20 ns of write combining and ordering
/// per call (estimate).
pub(crate) const HOST_WRITE: u64 = 27;
