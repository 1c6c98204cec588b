//! `tilework board`: the tiles of a board and the memory maps of its cores.

use crate::answer::Answer;
use crate::board_option::BoardLayout;
use crate::board_report::BoardReport;
use std::io::Write;
use std::ops::Range;
use tilework_abi::addr::L1Addr;
use tilework_abi::board::{self, AICLK_MHZ, Board, ChipSpec, DRAM_BANK_BYTES};
use tilework_abi::cq::layout::{
    HOST_REGION_NOC_BASE, KERNEL_TEXT_OFFSET, L1Region, QueueId, SEMAPHORE_OFFSET, SemaphoreId, dispatch_core, host,
    prefetch_core, prefetch_d_core,
};
use tilework_abi::cq::status::{Kernel, STATUS_BYTES};
use tilework_abi::cq::tiles::{DispatchLayout, Part};
use tilework_abi::grid::{self, ETHERNET_TILES, Site};
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES, WORKER};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};
use tilework_abi::tensix::Processor;

/// Everything about a board.
pub fn show(board: BoardLayout) -> Answer {
    Answer::new(BoardReport::of(board), move |_, out| text(board, out))
}

fn text(whole: BoardLayout, out: &mut dyn Write) -> std::io::Result<()> {
    let BoardLayout { board, layout, .. } = whole;
    summary(whole, out)?;
    draw(whole, out)?;
    layouts(whole, out)?;
    banks(board, out)?;
    inert(board, out)?;
    table(out, "L1 of a worker", &worker_map())?;
    let (prefetch, dispatch) = (layout.prefetch_tile(board), layout.dispatch_tile(board));
    table(out, &format!("L1 of the prefetch core ({})", at(prefetch)), &prefetch_map(layout))?;
    table(out, &format!("L1 of the dispatch core ({})", at(dispatch)), &dispatch_map())?;
    let bytes = host::REGION_SIZE;
    table(
        out,
        &format!("Pinned host region of {bytes} bytes (offsets; the cores see it at {HOST_REGION_NOC_BASE:#x})"),
        &host_map(),
    )
}

fn at(xy: NocXy) -> String {
    format!("{}, {}", xy.x, xy.y)
}

fn summary(whole: BoardLayout, out: &mut dyn Write) -> std::io::Result<()> {
    let BoardLayout { board, layout, .. } = whole;
    let banks = board.dram().banks().len();
    writeln!(
        out,
        "{}: {} workers and {} dispatch cores in {} columns, {banks} DRAM banks of {} GiB, {AICLK_MHZ} MHz\n",
        board.name(),
        whole.workers().len(),
        layout.tile_count(),
        board.worker_columns().len(),
        DRAM_BANK_BYTES >> 30
    )?;
    match board.spec().chips {
        [_] => Ok(()),
        chips => {
            let lacks = |chip: &ChipSpec| chip.harvesting.to_string();
            let others: Vec<_> = chips[1..].iter().map(lacks).collect();
            let count = chips.len();
            writeln!(out, "This is the first of {count} chips. The others lack: {}\n", others.join("; "))
        }
    }
}

/// What stands for a tile of the command queue: its first part.
const fn mark(part: Part) -> &'static str {
    match part {
        Part::Prefetch => "P",
        Part::PrefetchH => "Ph",
        Part::PrefetchD => "Pd",
        Part::Dispatch => "D",
        Part::DispatchH => "Dh",
        Part::DispatchD => "Dd",
        Part::Subordinate => "S",
    }
}

/// What a position of the grid holds, in two characters.
fn cell(whole: BoardLayout, x: u8, y: u8) -> String {
    let board = whole.board;
    let xy = NocXy::new(x, y);
    match Site::at(x, y) {
        Some(Site::Tensix) if board.is_tensix(xy) => {
            whole.layout.parts_at(board, xy).first().map_or("w", |&part| mark(part)).into()
        }
        Some(Site::Tensix) => "-".into(),
        Some(Site::Dram { bank, .. }) if board.harvested_dram() == Some(bank) => "--".into(),
        Some(Site::Dram { bank, .. }) => format!("d{bank}"),
        Some(Site::Pcie { .. }) if xy == board::PCIE_PHYSICAL => "pc".into(),
        Some(Site::Pcie { .. }) => "--".into(),
        Some(Site::Arc) => "ar".into(),
        Some(site @ Site::Ethernet { .. }) if !board.harvesting().has(x, site) => "--".into(),
        Some(Site::Ethernet { .. }) => "e".into(),
        Some(Site::L2Cpu { .. }) => "l2".into(),
        Some(Site::Security) => "se".into(),
        Some(Site::Empty) | None => ".".into(),
    }
}

fn draw(whole: BoardLayout, out: &mut dyn Write) -> std::io::Result<()> {
    let BoardLayout { board, layout, .. } = whole;
    let columns: u8 = u8::try_from(GRID_X).expect("the grid has 17 columns");
    let rows: u8 = u8::try_from(GRID_Y).expect("the grid has 12 rows");
    let header: String = (0..columns).map(|x| format!("{x:>3}")).collect();
    writeln!(out, " y\\x{header}")?;
    for y in 0..rows {
        let line: String = (0..columns).map(|x| format!("{:>3}", cell(whole, x, y))).collect();
        writeln!(out, "{y:>4}{line}")?;
    }
    let queue: Vec<_> =
        layout.tiles(board).map(|(_, parts)| format!("{} {}", mark(parts[0]), parts[0].name())).collect();
    writeln!(
        out,
        "\n w worker   {}   d0..d7 port of a DRAM bank   pc PCIe   ar ARC\n \
         e Ethernet, l2 L2CPU and se security tile, inert   - and -- harvested or idle   . router only",
        queue.join("   ")
    )?;
    writeln!(
        out,
        " Tensix tiles stand at their translated coordinates, where harvested columns come last; the others at their\n \
         physical ones. The PCIe tile is addressed as ({}), bank ports as below.\n",
        at(board::PCIE)
    )
}

/// The dispatch layouts, with the workers that each leaves.
fn layouts(whole: BoardLayout, out: &mut dyn Write) -> std::io::Result<()> {
    let BoardLayout { board, layout: here, .. } = whole;
    writeln!(out, "Dispatch layouts (--dispatch-layout; here {here})\n  name              workers  with two queues")?;
    for layout in DispatchLayout::ALL {
        let [one, two] = [1, 2].map(|queues| layout.queues(queues).workers(board).count());
        writeln!(out, "  {:<16}  {one:>7}  {two:>15}  {}", layout.name(), layout.row().about)?;
    }
    let second = here.queue(QueueId::SECOND).tiles(board);
    let second: Vec<_> = second.map(|(xy, parts)| format!("{} ({})", parts[0].name(), at(xy))).collect();
    writeln!(out, "  A second queue takes {}.\n", second.join(", "))
}

/// The tiles whose cores do not run.
fn inert(board: Board, out: &mut dyn Write) -> std::io::Result<()> {
    let place = |xy: NocXy| format!("({})", at(xy));
    let works = |&channel: &usize| board.harvesting().ethernet & 1 << channel == 0;
    let ethernet: Vec<_> = (0..ETHERNET_TILES).filter(works).map(|channel| place(grid::ethernet(channel))).collect();
    let l2cpu: Vec<_> = grid::L2CPU_TILES.into_iter().map(place).collect();
    let ethernet = if ethernet.is_empty() { "none".into() } else { ethernet.join(" ") };
    writeln!(
        out,
        "Inert tiles (they answer over the NoC, their cores do not run)\n  Ethernet, by channel  {ethernet}\n  L2CPU, by index       {}\n",
        l2cpu.join(" ")
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

/// A range of a memory: its first address, the one behind it, and what it is for.
pub type Row = (u32, u32, String);

fn table(out: &mut dyn Write, title: &str, rows: &[Row]) -> std::io::Result<()> {
    writeln!(out, "{title}\n        from          to     bytes")?;
    for (start, end, what) in rows {
        writeln!(out, "  {start:#010x}  {end:#010x}  {:>8}  {what}", end - start)?;
    }
    writeln!(out)
}

pub fn worker_map() -> Vec<Row> {
    let m = WORKER;
    let launch_bytes = LAUNCH_ENTRIES * u32::try_from(LAUNCH_MSG_BYTES).expect("a launch message has 96 bytes");
    let mut rows = vec![
        (0, 4, "reset vector: a jump to the BRISC firmware".into()),
        row(m.mailbox..m.launch, "mailbox: subordinate states, launch read pointer"),
        row(m.launch..m.launch.offset(launch_bytes), format!("{LAUNCH_ENTRIES} launch messages")),
        row(m.go..m.go.offset(GO_ENTRIES * 4), format!("{GO_ENTRIES} go messages")),
        row(m.go_index..m.go_index.offset(4), "index of the go message in use"),
        row(m.profiler_control..m.profiler_control.offset(32 * 4), "profiler control"),
        row(m.prints..m.prints.offset(m.prints_size), "prints of kernels: a ring of records for each core"),
    ];
    for processor in Processor::ALL {
        let i = processor.index();
        rows.push(row(m.firmware_text[i]..m.firmware_end[i], format!("firmware of {}", processor.name())));
    }
    let config = m.kernel_config..m.kernel_config.offset(m.kernel_config_size);
    rows.extend([
        row(config, "kernel configuration: arguments, semaphores, circular buffers, kernel text"),
        row(m.bank_table..m.data, "bank table; the rest is free"),
        row(m.data..m.data_end, "data: circular buffers and L1 buffers"),
    ]);
    rows
}

/// A range of L1.
fn row(range: Range<L1Addr>, what: impl Into<String>) -> Row {
    (range.start.get(), range.end.get(), what.into())
}

fn region(region: L1Region, what: &str) -> Row {
    row(region.base()..region.end(), what)
}

/// A word of L1.
fn word(address: u32, what: &str) -> Row {
    (address, address + 4, what.into())
}

/// What both dispatch cores have: a worker's firmware, and their own kernels in the kernel
/// configuration space.
fn kernel_rows() -> [Row; 3] {
    let m = WORKER;
    let [semaphores, text, end] =
        [SEMAPHORE_OFFSET, KERNEL_TEXT_OFFSET, m.kernel_config_size].map(|offset| m.kernel_config.offset(offset));
    let what =
        format!("kernel configuration: {} semaphores, 16 bytes each, behind empty arguments", SemaphoreId::COUNT);
    [
        row(L1Addr::default()..m.kernel_config, "as on a worker"),
        row(m.kernel_config..text, format!("{what} (from {semaphores})")),
        row(text..end, "kernel configuration: kernel text"),
    ]
}

fn status_row(kernel: Kernel) -> Row {
    let what = format!("status of {}: error, detail, address, commands", kernel.name());
    row(kernel.status()..kernel.status().offset(STATUS_BYTES), what)
}

pub fn prefetch_map(layout: DispatchLayout) -> Vec<Row> {
    use prefetch_core as p;
    let pages = p::CMDDAT_Q.pages();
    let mut rows = kernel_rows().to_vec();
    rows.extend([
        word(p::PREFETCH_Q_RD_PTR, "prefetch queue read pointer"),
        word(p::PREFETCH_Q_PCIE_RD_PTR, "PCIe read pointer"),
        status_row(Kernel::Prefetch),
        region(p::PREFETCH_Q, "prefetch queue: record sizes, 2 bytes each"),
        region(p::CMDDAT_Q.region(), &format!("command data queue: {pages} pages")),
        region(p::SCRATCH_DB, "scratch, double-buffered"),
    ]);
    let mut end = p::SCRATCH_DB.end();
    if layout == DispatchLayout::Split {
        let records = prefetch_d_core::RECORDS;
        rows.push(row(end..records.base(), "free"));
        rows.push(region(records.region(), &format!("records of the host side: {} pages", records.pages())));
        end = records.end();
    }
    rows.push(row(end..WORKER.data_end, "free"));
    rows
}

pub fn dispatch_map() -> Vec<Row> {
    use dispatch_core as d;
    let pages = d::DISPATCH_CB.pages();
    let mut rows = kernel_rows().to_vec();
    rows.extend([
        word(d::COMPLETION_Q_WR_PTR, "completion write pointer"),
        word(d::COMPLETION_Q_RD_PTR, "completion read pointer, written by the host"),
        word(d::COMPLETION_Q0_EVENT, "last event of queue 0"),
        word(d::COMPLETION_Q1_EVENT, "last event of queue 1"),
        region(d::SYNC_SEMS, "semaphores between dispatcher and subordinate"),
        status_row(Kernel::Dispatch),
        status_row(Kernel::DispatchS),
        region(d::DISPATCH_CB.region(), &format!("dispatch buffer: {pages} pages in 4 blocks")),
        region(d::DISPATCH_S_CB.region(), "subordinate's buffer"),
        row(d::DISPATCH_S_CB.end()..WORKER.data_end, "free"),
    ]);
    rows
}

pub fn host_map() -> Vec<Row> {
    [
        (host::CQ_WR, "completion write pointer"),
        (host::CQ_RD, "completion read pointer"),
        (host::ISSUE, "issue region"),
        (host::COMPLETION, "completion FIFO"),
        (host::TIMESTAMPS, "timestamps"),
        (host::CORE_TIMING, "kernel start and end of each core"),
        (host::SYSTEM, "buffers of programs in host memory"),
    ]
    .into_iter()
    .map(|(range, what)| (range.offset(), range.end(), what.to_owned()))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::cq::status;

    /// The places that `layout.rs` names in a module: its words, regions, rings and ranges.
    fn named(module: &str) -> Vec<&'static str> {
        let source = include_str!("../../abi/src/cq/layout.rs");
        let after = source.split(&format!("pub mod {module} {{")).nth(1).expect("the module exists");
        let body = after.split("\n}").next().expect("the module ends");
        let mut names = Vec::new();
        let mut doc = "";
        for line in body.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("/// ") {
                doc = if doc.is_empty() { text } else { doc };
            } else {
                if let Some((name, rest)) = line.strip_prefix("pub const ").and_then(|l| l.split_once(": ")) {
                    let region = ["L1Region", "PageRing", "HostRange"].iter().any(|t| rest.starts_with(t));
                    if region || doc.starts_with("Word:") {
                        names.push(name);
                    }
                }
                doc = "";
            }
        }
        names
    }

    #[track_caller]
    fn shows(rows: &[Row], module: &str, places: &[(&str, u32, u32)]) {
        assert_eq!(places.iter().map(|p| p.0).collect::<Vec<_>>(), named(module));
        for (name, start, end) in places {
            assert!(rows.iter().any(|r| (r.0, r.1) == (*start, *end)), "{name} at {start:#x} is not shown");
        }
        for pair in rows.windows(2) {
            assert!(pair[0].0 < pair[0].1 && pair[0].1 <= pair[1].0, "{pair:?}");
        }
    }

    fn at_region(name: &'static str, region: L1Region) -> (&'static str, u32, u32) {
        (name, region.base().get(), region.end().get())
    }

    fn at_word(name: &'static str, address: u32) -> (&'static str, u32, u32) {
        (name, address, address + 4)
    }

    #[test]
    fn the_grid_shows_all_kinds_of_tiles() {
        let count = |board: Board, what: &str| {
            let places = (0..17).flat_map(|x| (0..12).map(move |y| (x, y)));
            places.filter(|&(x, y)| cell(board.into(), x, y) == what).count()
        };
        // BlackholeA0/README.md: 14 Ethernet tiles, of which a p150 has 12 and a p100 none; 4 L2CPU
        // tiles; one idle PCIe tile.
        let kinds = ["w", "-", "e", "--", "l2", "se", "ar", "pc", "."];
        assert_eq!(kinds.map(|kind| count(Board::P150, kind)), [138, 0, 12, 3, 4, 1, 1, 1, 18]);
        assert_eq!(kinds.map(|kind| count(Board::P100, kind)), [118, 20, 0, 18, 4, 1, 1, 1, 18]);
        // Two columns and two Ethernet tiles less than the whole chip.
        assert_eq!(kinds.map(|kind| count(Board::P300, kind)), [118, 20, 12, 3, 4, 1, 1, 1, 18]);
        assert_eq!(count(Board::P100, "d3") + count(Board::P150, "d7"), 6);
    }

    #[test]
    fn the_maps_show_every_place_of_the_command_queue() {
        use dispatch_core as d;
        use prefetch_core as p;
        let prefetch = [
            at_word("PREFETCH_Q_RD_PTR", p::PREFETCH_Q_RD_PTR),
            at_word("PREFETCH_Q_PCIE_RD_PTR", p::PREFETCH_Q_PCIE_RD_PTR),
            at_region("PREFETCH_Q", p::PREFETCH_Q),
            at_region("CMDDAT_Q", p::CMDDAT_Q.region()),
            at_region("SCRATCH_DB", p::SCRATCH_DB),
        ];
        shows(&prefetch_map(DispatchLayout::Dispatcher), "prefetch_core", &prefetch);
        let records = [at_region("RECORDS", prefetch_d_core::RECORDS.region())];
        shows(&prefetch_map(DispatchLayout::Split), "prefetch_d_core", &records);
        let dispatch = [
            at_word("COMPLETION_Q_WR_PTR", d::COMPLETION_Q_WR_PTR),
            at_word("COMPLETION_Q_RD_PTR", d::COMPLETION_Q_RD_PTR),
            at_word("COMPLETION_Q0_EVENT", d::COMPLETION_Q0_EVENT),
            at_word("COMPLETION_Q1_EVENT", d::COMPLETION_Q1_EVENT),
            at_region("SYNC_SEMS", d::SYNC_SEMS),
            at_region("DISPATCH_CB", d::DISPATCH_CB.region()),
            at_region("DISPATCH_S_CB", d::DISPATCH_S_CB.region()),
        ];
        shows(&dispatch_map(), "dispatch_core", &dispatch);
        let ranges = [
            ("CQ_WR", host::CQ_WR),
            ("CQ_RD", host::CQ_RD),
            ("ISSUE", host::ISSUE),
            ("COMPLETION", host::COMPLETION),
            ("TIMESTAMPS", host::TIMESTAMPS),
            ("CORE_TIMING", host::CORE_TIMING),
            ("SYSTEM", host::SYSTEM),
        ];
        shows(&host_map(), "host", &ranges.map(|(name, range)| (name, range.offset(), range.end())));
        assert_eq!(host_map().last().map(|row| row.1), Some(host::REGION_SIZE));
    }

    #[test]
    fn the_dispatch_cores_show_their_kernels_and_status_blocks() {
        let config = WORKER.kernel_config.get();
        for rows in [prefetch_map(DispatchLayout::Dispatcher), dispatch_map()] {
            assert!(rows.iter().any(|r| (r.0, r.1) == (config, config + KERNEL_TEXT_OFFSET)));
            assert!(
                rows.iter().any(|r| (r.0, r.1) == (config + KERNEL_TEXT_OFFSET, config + WORKER.kernel_config_size))
            );
            assert!(rows.iter().any(|r| r.0 == status::STATUS.base().get() && r.1 - r.0 == STATUS_BYTES));
        }
        assert!(dispatch_map().iter().any(|r| r.1 == status::STATUS.end().get()));
    }
}
