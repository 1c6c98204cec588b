//! The `soc_descriptor.yaml` that outside software wants beside a simulated chip.
//!
//! The format is tt-umd's (its schema is `docs/yaml_schemas/soc_descriptor.yaml`), with the DRAM views that tt-metal adds to it. The content
//! comes from our own tables, in NoC 0 coordinates, and is that of the whole chip for every board, as in tt-metal's own file: a driver asks the
//! ARC's telemetry what is harvested and takes it away from these lists. (A driver that opens a chip without reading telemetry, as tt-umd's
//! `TTSimTTDevice.create` does, believes that all of it works.) Ethernet tiles are left out: their cores do not run here, and tt-metal starts
//! firmware on every Ethernet tile that works and waits for it.

use std::fmt::Write;
use tilework_abi::board::{Board, DRAM_BANK_BYTES, DRAM_BANK_PORT};
use tilework_abi::grid::{self, DRAM_PORTS, ETHERNET_L1_BYTES, Site};
use tilework_abi::noc::{GRID_X, GRID_Y, NocXy};
use tilework_abi::tensix::L1_SIZE;

/// Bytes at the end of each DRAM bank that tt-metal leaves alone (its descriptor of the whole chip has views of 4 GiB less 16 MiB).
const DRAM_RESERVED: u64 = 16 << 20;
/// Places of a list on one line.
const PER_LINE: usize = 14;

/// The text of the `soc_descriptor.yaml` of `board`.
pub fn soc_descriptor(board: Board) -> String {
    let mut text = format!(
        "# A simulated Blackhole of a {} board, written by tilework. Places are x-y in NoC 0 coordinates.\n\
         arch_name: BLACKHOLE\n\
         grid:\n  x_size: {GRID_X}\n  y_size: {GRID_Y}\n",
        board.name()
    );
    list(&mut text, "functional_workers", &places(|site| site == Site::Tensix));
    list(&mut text, "harvested_workers", &[]);
    dram(&mut text);
    list(&mut text, "eth", &[]);
    list(&mut text, "arc", &[grid::ARC_TILE]);
    list(&mut text, "pcie", &grid::PCIE_TILES);
    list(&mut text, "security", &[grid::SECURITY_TILE]);
    list(&mut text, "l2cpu", &places(|site| matches!(site, Site::L2Cpu { .. })));
    list(&mut text, "router_only", &places(|site| site == Site::Empty));
    text += &format!(
        "worker_l1_size: {L1_SIZE}\neth_l1_size: {ETHERNET_L1_BYTES}\n\
         noc0_x_to_noc1_x: {}\nnoc0_y_to_noc1_y: {}\n{FEATURES}",
        mirrored(GRID_X),
        mirrored(GRID_Y)
    );
    text
}

/// What tt-metal wants to know of an architecture; the same words stand in its own descriptor of every Blackhole.
const FEATURES: &str = "\
features:
  noc:
    translation_id_enabled: True
  unpacker:
    version: 2
    inline_srca_trans_without_srca_trans_instr: True
  math:
    dst_size_alignment: 32768
  packer:
    version: 2
  overlay:
    version: 2
";

/// The places of the grid that `wanted` picks, row by row.
fn places(wanted: impl Fn(Site) -> bool) -> Vec<NocXy> {
    let (columns, rows) = (GRID_X as u8, GRID_Y as u8);
    let all = (0..rows).flat_map(|y| (0..columns).map(move |x| NocXy::new(x, y)));
    all.filter(|&xy| Site::at(xy.x, xy.y).is_some_and(&wanted)).collect()
}

fn names(places: &[NocXy]) -> String {
    places.iter().map(|xy| format!("{}-{}", xy.x, xy.y)).collect::<Vec<_>>().join(", ")
}

fn list(text: &mut String, key: &str, places: &[NocXy]) {
    *text += &format!("{key}: [");
    for line in places.chunks(PER_LINE) {
        *text += &format!("\n  {},", names(line));
    }
    *text += if places.is_empty() { "]\n" } else { "\n]\n" };
}

/// The coordinates of the other NoC, which counts from the opposite corner.
fn mirrored(size: u32) -> String {
    let axis: Vec<_> = (0..size).rev().map(|v| v.to_string()).collect();
    format!("[{}]", axis.join(", "))
}

/// The banks, and for each the ports that workers and Ethernet tiles use on NoC 0 and NoC 1. A channel is a bank in the order of those that work.
fn dram(text: &mut String) {
    let view = DRAM_BANK_BYTES - DRAM_RESERVED;
    let mut views = String::new();
    *text += "dram: [\n";
    for (channel, [noc0, noc1]) in DRAM_BANK_PORT.into_iter().enumerate() {
        let ports: Vec<_> = (0..DRAM_PORTS).map(|port| grid::dram_port(channel, port)).collect();
        *text += &format!("  [{}],\n", names(&ports));
        // Writing to a string cannot fail.
        let _ = writeln!(
            views,
            "  - {{ channel: {channel}, worker_endpoint: [{noc0}, {noc1}], eth_endpoint: [{noc0}, {noc1}], address_offset: 0 }}"
        );
    }
    *text += &format!("]\ndram_bank_size: {view}\ndram_view_size: {view}\ndram_views:\n{views}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places under `key`, as they are written.
    fn under(text: &str, key: &str) -> Vec<String> {
        let after = text.split(&format!("\n{key}: [")).nth(1).expect("the key exists");
        let inside = after.split("]\n").next().expect("the list ends");
        inside.split([',', '\n', ' ']).filter(|place| !place.is_empty()).map(str::to_owned).collect()
    }

    /// The lists of tt-umd's own descriptor of the whole chip (`tests/soc_descs/blackhole_140_arch.yaml`).
    #[test]
    fn a_p150_is_the_whole_chip() {
        let text = soc_descriptor(Board::P150);
        let workers = under(&text, "functional_workers");
        assert_eq!((workers.len(), &*workers[0], &*workers[7], &*workers[139]), (140, "1-2", "10-2", "16-11"));
        assert!(under(&text, "harvested_workers").is_empty() && under(&text, "eth").is_empty());
        let routers = ["1-0", "3-0", "4-0", "5-0", "6-0", "7-0", "10-0", "12-0", "13-0", "14-0", "15-0", "16-0"];
        let mut router_only = under(&text, "router_only");
        assert_eq!(router_only.drain(..12).collect::<Vec<_>>(), routers);
        assert_eq!(router_only, ["8-1", "8-4", "8-6", "8-8", "8-10", "8-11"]);
        for (key, places) in [("arc", "8-0"), ("pcie", "2-0 11-0"), ("security", "8-2"), ("l2cpu", "8-3 8-5 8-7 8-9")] {
            assert_eq!(under(&text, key).join(" "), places, "{key}");
        }
        for bank in ["[0-2, 0-10, 0-3]", "[0-9, 0-4, 0-8]", "[0-5, 0-7, 0-6]", "[9-0, 9-1, 9-11]", "[9-5, 9-7, 9-6]"] {
            assert!(text.contains(bank), "{bank}");
        }
        assert!(text.contains("dram_view_size: 4278190080\n") && text.contains("worker_l1_size: 1572864\n"));
    }

    /// Telemetry says what a board lacks; the lists of all boards are the same.
    #[test]
    fn every_board_has_the_whole_chips_lists() {
        let of = |board: Board| soc_descriptor(board).lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(of(Board::P100), of(Board::P150));
        assert_eq!(of(Board::P300), of(Board::P150));
        let text = soc_descriptor(Board::P100);
        assert_eq!(text.matches("address_offset").count(), 8);
        // tt-metal's endpoints by channel: (2, 1) for channels 0 and 4..7, (0, 1) for 1..3.
        for part in ["channel: 3, worker_endpoint: [0, 1]", "channel: 4, worker_endpoint: [2, 1]"] {
            assert!(text.contains(part), "{part}");
        }
    }
}
