//! Where the tiles of a chip are.

use crate::noc::{Grid, GridBuilder, GridError, NodeId, Place};
use tilework_abi::board::{self, DramMap, Harvesting};
use tilework_abi::grid;
use tilework_abi::noc::NocXy;

/// The place of each tile and its coordinates on NoC 0. Node indices: Tensix tiles that work,
/// column by column; the eight physical DRAM banks; PCIe; ARC; one for all inert tiles.
pub(super) struct Layout {
    pub(super) tensix: Vec<(Place, NocXy)>,
    pub(super) dram: Vec<(Place, NocXy)>,
    pub(super) pcie: (Place, NocXy),
    pub(super) arc: (Place, NocXy),
    pub(super) inert: NodeId,
}

impl Layout {
    pub(super) fn of(harvesting: Harvesting, translation: bool) -> Self {
        let at = |node: usize, xy: NocXy| Place { node: node as NodeId, x: xy.x, y: xy.y };
        let rows = board::WORKER_Y_FIRST..=board::WORKER_Y_LAST;
        let tensix: Vec<_> = harvesting
            .columns()
            .zip(grid::TENSIX_COLUMNS)
            .flat_map(|(column, translated)| rows.clone().map(move |y| (column, translated, y)))
            .enumerate()
            .map(|(i, (column, translated, y))| {
                let x = if translation { translated } else { column };
                (at(i, NocXy::new(column, y)), NocXy::new(x, y))
            })
            .collect();
        let first = tensix.len();
        let map = DramMap::new(harvesting.dram_bank());
        let port = |bank: usize, port: usize| {
            let place = at(first + bank, grid::dram_port(bank, port));
            let logical = map.banks().iter().find(|b| usize::from(b.physical) == bank && translation);
            let xy = logical.map(|b| NocXy::new(b.first_port.x, b.first_port.y + port as u8));
            (place, xy.unwrap_or(NocXy::new(place.x, place.y)))
        };
        let banks = (0..board::DRAM_BANKS).filter(|&bank| harvesting.dram & 1 << bank == 0);
        let dram = banks.flat_map(|bank| (0..board::DRAM_PORTS).map(move |i| port(bank, i))).collect();
        let pcie = first + board::DRAM_BANKS;
        let pcie_xy = if translation { board::PCIE } else { board::PCIE_PHYSICAL };
        Self {
            tensix,
            dram,
            pcie: (at(pcie, board::PCIE_PHYSICAL), pcie_xy),
            arc: (at(pcie + 1, board::ARC), board::ARC),
            inert: (pcie + 2) as NodeId,
        }
    }
    /// The places of the NIUs of each node that packets reach often. The others have many, or, as
    /// the PCIe tile, are near the host, where no node is to run far ahead of the rest.
    pub(super) fn places(&self, nodes: usize) -> Vec<Vec<Place>> {
        let mut places = vec![Vec::new(); nodes];
        self.tensix.iter().chain(&self.dram).for_each(|&(place, _)| places[usize::from(place.node)].push(place));
        places
    }
    pub(super) fn grid(&self, harvesting: Harvesting, translation: bool) -> Result<Grid, GridError> {
        let tiles = self.tensix.iter().chain(&self.dram).chain([&self.pcie, &self.arc]);
        let builder = GridBuilder::new(harvesting, translation);
        tiles.fold(builder, |builder, &(place, xy)| builder.add(place, xy)).fill(self.inert).build()
    }
}
