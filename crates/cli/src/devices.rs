//! `tilework list devices`: what a program can be run on. There are simulated boards only.

use crate::answer::Answer;
use serde::Serialize;
use std::io::Write;
use tilework_abi::board::{AICLK_MHZ, Board, DRAM_BANK_BYTES, WORKER_Y_FIRST, WORKER_Y_LAST};
use tilework_abi::cq::tiles::DispatchLayout;

/// The devices. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct DevicesReport {
    devices: Vec<DeviceView>,
}

/// A device: the first chip of a board, which is the one that programs run on.
#[derive(Serialize)]
struct DeviceView {
    /// The name that `--board` takes.
    board: &'static str,
    /// What it is: `simulated`.
    source: &'static str,
    /// Chips of the board.
    chips: usize,
    tensix_tiles: usize,
    /// Tiles that run programs under fast dispatch; under slow dispatch all do.
    workers: usize,
    /// The same with two command queues.
    workers_with_two_queues: usize,
    /// The columns and the first and the last row of the tiles, which programs choose workers from.
    tensix_columns: Vec<u8>,
    tensix_rows: [u8; 2],
    /// Tiles that run a command queue under fast dispatch.
    dispatch_cores: usize,
    dram_banks: usize,
    dram_bytes: u64,
    aiclk_mhz: u32,
}

impl DeviceView {
    fn of(board: Board) -> Self {
        let (tensix_tiles, workers) = (board.tensix_count(), board.workers().count());
        let dram_banks = board.dram().banks().len();
        Self {
            board: board.name(),
            source: "simulated",
            chips: board.spec().chips.len(),
            tensix_tiles,
            workers,
            workers_with_two_queues: DispatchLayout::default().queues(2).workers(board).count(),
            tensix_columns: board.worker_columns().to_vec(),
            tensix_rows: [WORKER_Y_FIRST, WORKER_Y_LAST],
            dispatch_cores: tensix_tiles - workers,
            dram_banks,
            dram_bytes: dram_banks as u64 * DRAM_BANK_BYTES,
            aiclk_mhz: AICLK_MHZ,
        }
    }
}

/// All devices.
pub fn list() -> Answer {
    let devices = Board::ALL.into_iter().map(DeviceView::of).collect();
    Answer::new(DevicesReport { devices }, text)
}

fn text(report: &DevicesReport, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(
        out,
        "board  chips  Tensix  columns    rows  workers  with two queues  dispatch cores  DRAM               clock     source"
    )?;
    for device in &report.devices {
        let DeviceView { board, source, chips, tensix_tiles, workers, dispatch_cores, dram_banks, .. } = device;
        let two = device.workers_with_two_queues;
        let dram = format!("{dram_banks} banks, {} GiB", device.dram_bytes >> 30);
        let clock = format!("{} MHz", device.aiclk_mhz);
        let (columns, [first, last]) = (spans(&device.tensix_columns), device.tensix_rows);
        let rows = format!("{first}-{last}");
        writeln!(
            out,
            "{board:<5}  {chips:>5}  {tensix_tiles:>6}  {columns:<9}  {rows:<4}  {workers:>7}  {two:>15}  {dispatch_cores:>14}  {dram:<17}  {clock}  {source}"
        )?;
    }
    writeln!(
        out,
        "\nPrograms run on the first chip of a board, chosen by --board; a file says what another chip lacks \
         (docs/card.md).\nEach command queue has its own dispatch cores. Under slow dispatch they are workers, too; a program \
         may choose some of the workers (docs/program.md)."
    )
}

/// Ascending numbers as spans: `1-7,10-14`.
fn spans(numbers: &[u8]) -> String {
    let mut spans: Vec<(u8, u8)> = Vec::new();
    for &n in numbers {
        match spans.last_mut() {
            Some((_, end)) if *end + 1 == n => *end = n,
            _ => spans.push((n, n)),
        }
    }
    let text = |&(start, end): &(u8, u8)| if start == end { start.to_string() } else { format!("{start}-{end}") };
    spans.iter().map(text).collect::<Vec<_>>().join(",")
}
