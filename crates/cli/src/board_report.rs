//! What `tilework board` says, as data.

use crate::board::{Row, dispatch_map, host_map, prefetch_map, worker_map};
use crate::board_option::BoardLayout;
use serde::Serialize;
use tilework_abi::board::{AICLK_MHZ, DRAM_BANK_BYTES};
use tilework_abi::cq::layout::QueueId;
use tilework_abi::cq::tiles::Part;
use tilework_abi::noc::NocXy;

/// A board. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
pub struct BoardReport {
    board: &'static str,
    aiclk_mhz: u32,
    dispatch_layout: &'static str,
    worker_columns: Vec<u8>,
    /// Tensix tiles that run kernels, by their translated coordinates.
    workers: Vec<TileView>,
    /// The tile that reads the host's records.
    prefetch_core: TileView,
    /// The tile that writes the host's completion FIFO.
    dispatch_core: TileView,
    /// All tiles of the command queue and what they run.
    queue_tiles: Vec<QueueTileView>,
    /// What a second queue would take beside them.
    second_queue: SecondQueueView,
    dram_banks: Vec<BankView>,
    memory_maps: MapsView,
}

#[derive(Serialize)]
struct TileView {
    x: u8,
    y: u8,
}

#[derive(Serialize)]
struct QueueTileView {
    x: u8,
    y: u8,
    runs: Vec<&'static str>,
}

#[derive(Serialize)]
struct SecondQueueView {
    tiles: Vec<QueueTileView>,
    /// Workers of a device with two queues.
    workers: usize,
}

#[derive(Serialize)]
struct BankView {
    logical: usize,
    physical: u64,
    bytes: u64,
    port_noc0: TileView,
    port_noc1: TileView,
}

/// Places of memories, each by its first address and the one behind it.
#[derive(Serialize)]
struct MapsView {
    worker: Vec<RangeView>,
    prefetch_core: Vec<RangeView>,
    dispatch_core: Vec<RangeView>,
    /// Offsets in the pinned region.
    host: Vec<RangeView>,
}

#[derive(Serialize)]
struct RangeView {
    start: u32,
    end: u32,
    what: String,
}

impl BoardReport {
    /// The report of a board.
    pub fn of(whole: BoardLayout) -> Self {
        let BoardLayout { board, layout, .. } = whole;
        let tiles = |queue| {
            let view = |(xy, parts): (NocXy, &[Part])| QueueTileView {
                x: xy.x,
                y: xy.y,
                runs: parts.iter().map(|part| part.name()).collect(),
            };
            layout.queue(queue).tiles(board).map(view).collect()
        };
        let workers = layout.queues(2).workers(board).count();
        let map = board.dram();
        let banks = map.banks().iter().enumerate().map(|(logical, bank)| BankView {
            logical,
            physical: bank.physical.into(),
            bytes: DRAM_BANK_BYTES,
            port_noc0: tile(map.port(logical, 0)),
            port_noc1: tile(map.port(logical, 1)),
        });
        Self {
            board: board.name(),
            aiclk_mhz: AICLK_MHZ,
            dispatch_layout: layout.name(),
            worker_columns: board.worker_columns().to_vec(),
            workers: whole.workers().into_iter().map(tile).collect(),
            prefetch_core: tile(layout.issue_tile(board)),
            dispatch_core: tile(layout.completion_tile(board)),
            queue_tiles: tiles(QueueId::FIRST),
            second_queue: SecondQueueView { tiles: tiles(QueueId::SECOND), workers },
            dram_banks: banks.collect(),
            memory_maps: MapsView {
                worker: ranges(worker_map()),
                prefetch_core: ranges(prefetch_map(layout)),
                dispatch_core: ranges(dispatch_map()),
                host: ranges(host_map()),
            },
        }
    }
}

fn tile(xy: NocXy) -> TileView {
    TileView { x: xy.x, y: xy.y }
}

fn ranges(rows: Vec<Row>) -> Vec<RangeView> {
    rows.into_iter().map(|(start, end, what)| RangeView { start, end, what }).collect()
}
