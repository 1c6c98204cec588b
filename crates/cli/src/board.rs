//! `tilework board`: the tiles of a board and the memory maps of its cores.

use crate::failure::Outcome;
use crate::print;
use std::io::Write;
use tilework_abi::board::{self, AICLK_MHZ, Board, DRAM_BANK_BYTES, DRAM_PHYSICAL_Y, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::cq::layout::{L1Region, dispatch_core, host, prefetch_core};
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES, WORKER};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};
use tilework_abi::tensix::{L1_SIZE, Processor};

/// Physical column of each half of the DRAM banks.
const DRAM_COLUMNS: [u8; 2] = [0, 9];
/// Tiles without a memory map here; positions from the public driver's tables (blackhole_implementation.h).
const ETHERNET_Y: u8 = 1;
/// See [`ETHERNET_Y`].
const L2CPU: [NocXy; 4] = [NocXy::new(8, 3), NocXy::new(8, 5), NocXy::new(8, 7), NocXy::new(8, 9)];

/// Prints everything about a board.
pub fn show(board: Board) -> Outcome<()> {
    print::to_stdout(|out| {
        summary(board, out)?;
        grid(board, out)?;
        banks(board, out)?;
        table(out, "L1 of a worker", &worker_map())?;
        table(out, &format!("L1 of the prefetch core ({})", at(board.prefetch_core())), &prefetch_map())?;
        table(out, &format!("L1 of the dispatch core ({})", at(board.dispatch_core())), &dispatch_map())?;
        table(out, "Pinned host region (offsets)", &host_map())
    })
}

fn at(xy: NocXy) -> String {
    format!("{}, {}", xy.x, xy.y)
}

fn summary(board: Board, out: &mut dyn Write) -> std::io::Result<()> {
    let banks = board.dram().banks().len();
    writeln!(
        out,
        "{}: {} workers and 2 dispatch cores in {} columns, {banks} DRAM banks of {} GiB, {AICLK_MHZ} MHz\n",
        board.name(),
        board.workers().count(),
        board.worker_columns().len(),
        DRAM_BANK_BYTES >> 30
    )
}

/// What a position of the grid holds, in two characters.
fn cell(board: Board, x: u8, y: u8) -> String {
    let xy = NocXy::new(x, y);
    let tensix_column = Board::P150.worker_columns().contains(&x);
    if xy == board.prefetch_core() {
        "P".into()
    } else if xy == board.dispatch_core() {
        "D".into()
    } else if board.is_tensix(xy) {
        "w".into()
    } else if tensix_column && (WORKER_Y_FIRST..=WORKER_Y_LAST).contains(&y) {
        "-".into()
    } else if let Some(half) = DRAM_COLUMNS.iter().position(|&column| column == x) {
        let of_half = DRAM_PHYSICAL_Y.iter().enumerate().skip(half * 4).take(4);
        match of_half.clone().find(|(_, ports)| ports.contains(&y)) {
            Some((bank, _)) if board.harvested_dram().is_some_and(|h| usize::from(h) == bank) => "--".into(),
            Some((bank, _)) => format!("d{bank}"),
            None => ".".into(),
        }
    } else if xy == board::PCIE_PHYSICAL {
        "pc".into()
    } else if xy == board::ARC {
        "ar".into()
    } else if y == ETHERNET_Y && tensix_column {
        "e".into()
    } else if L2CPU.contains(&xy) {
        "l2".into()
    } else {
        ".".into()
    }
}

fn grid(board: Board, out: &mut dyn Write) -> std::io::Result<()> {
    let columns: u8 = u8::try_from(GRID_X).expect("the grid has 17 columns");
    let rows: u8 = u8::try_from(GRID_Y).expect("the grid has 12 rows");
    let header: String = (0..columns).map(|x| format!("{x:>3}")).collect();
    writeln!(out, " y\\x{header}")?;
    for y in 0..rows {
        let line: String = (0..columns).map(|x| format!("{:>3}", cell(board, x, y))).collect();
        writeln!(out, "{y:>4}{line}")?;
    }
    writeln!(
        out,
        "\n w worker   P prefetcher   D dispatcher   d0..d7 port of a DRAM bank   pc PCIe   ar ARC\n \
         e Ethernet and l2 CPU tiles (not simulated)   - and -- harvested   . other"
    )?;
    writeln!(
        out,
        " Tensix tiles stand at their translated coordinates, where harvested columns come last; the others at their\n \
         physical ones. The PCIe tile is addressed as ({}), bank ports as below.\n",
        at(board::PCIE)
    )
}

fn banks(board: Board, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "DRAM banks\n  logical  physical  port on NoC 0  port on NoC 1")?;
    let map = board.dram();
    for (i, bank) in map.banks().iter().enumerate() {
        let (port0, port1) = (at(map.port(i, 0)), at(map.port(i, 1)));
        writeln!(out, "  {i:>7}  {:>8}  {:>13}  {:>13}", bank.physical, format!("({port0})"), format!("({port1})"))?;
    }
    writeln!(out)
}

type Row = (u32, u32, String);

fn table(out: &mut dyn Write, title: &str, rows: &[Row]) -> std::io::Result<()> {
    writeln!(out, "{title}\n        from          to     bytes")?;
    for (start, end, what) in rows {
        writeln!(out, "  {start:#010x}  {end:#010x}  {:>8}  {what}", end - start)?;
    }
    writeln!(out)
}

fn worker_map() -> Vec<Row> {
    let m = WORKER;
    let launch_bytes = LAUNCH_ENTRIES * u32::try_from(LAUNCH_MSG_BYTES).expect("a launch message has 96 bytes");
    let mut rows = vec![
        (0, 4, "reset vector: a jump to the BRISC firmware".into()),
        (m.mailbox, m.launch, "mailbox: subordinate states, launch read pointer".into()),
        (m.launch, m.launch + launch_bytes, format!("{LAUNCH_ENTRIES} launch messages")),
        (m.go, m.go + GO_ENTRIES * 4, format!("{GO_ENTRIES} go messages")),
        (m.go_index, m.go_index + 4, "index of the go message in use".into()),
        (m.profiler_control, m.profiler_control + 32 * 4, "profiler control".into()),
    ];
    for processor in Processor::ALL {
        let i = processor.index();
        rows.push((m.firmware_text[i], m.firmware_end[i], format!("firmware of {}", processor.name())));
    }
    let config = (m.kernel_config, m.kernel_config + m.kernel_config_size);
    rows.extend([
        (config.0, config.1, "kernel configuration: arguments, semaphores, circular buffers, kernel text".into()),
        (m.bank_table, m.data, "bank table; the rest is free".into()),
        (m.data, m.data_end, "data: circular buffers and L1 buffers".into()),
    ]);
    rows
}

fn region(region: L1Region, what: &str) -> Row {
    (region.base(), region.end(), what.into())
}

fn prefetch_map() -> Vec<Row> {
    use prefetch_core as p;
    let pages = p::CMDDAT_Q.pages();
    vec![
        (p::PREFETCH_Q_RD_PTR, p::PREFETCH_Q_RD_PTR + 4, "prefetch queue read pointer".into()),
        (p::PREFETCH_Q_PCIE_RD_PTR, p::PREFETCH_Q_PCIE_RD_PTR + 4, "PCIe read pointer".into()),
        region(p::PREFETCH_Q, "prefetch queue: record sizes, 2 bytes each"),
        region(p::CMDDAT_Q.region(), &format!("command data queue: {pages} pages")),
        region(p::SCRATCH_DB, "scratch, double-buffered"),
        (p::SCRATCH_DB.end(), L1_SIZE, "free".into()),
    ]
}

fn dispatch_map() -> Vec<Row> {
    use dispatch_core as d;
    let pages = d::DISPATCH_CB.pages();
    vec![
        (d::COMPLETION_Q_WR_PTR, d::COMPLETION_Q_WR_PTR + 4, "completion write pointer".into()),
        (d::COMPLETION_Q_RD_PTR, d::COMPLETION_Q_RD_PTR + 4, "completion read pointer, written by the host".into()),
        region(d::SYNC_SEMS, "semaphores between dispatcher and subordinate"),
        region(d::DISPATCH_CB.region(), &format!("dispatch buffer: {pages} pages in 4 blocks")),
        region(d::DISPATCH_S_CB.region(), "subordinate's buffer"),
        (d::DISPATCH_S_CB.end(), L1_SIZE, "free".into()),
    ]
}

fn host_map() -> Vec<Row> {
    [
        (host::CQ_WR, "completion write pointer"),
        (host::CQ_RD, "completion read pointer"),
        (host::ISSUE, "issue region"),
        (host::COMPLETION, "completion FIFO"),
        (host::TIMESTAMPS, "timestamps"),
        (host::CORE_TIMING, "kernel start and end of each core"),
    ]
    .into_iter()
    .map(|(range, what)| (range.offset(), range.end(), what.to_owned()))
    .collect()
}
