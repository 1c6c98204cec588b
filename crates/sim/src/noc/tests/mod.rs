//! Tests of the NoC: coordinates, routes, NIUs and atomics, each against the page that it follows.

mod atomics;
mod grid;
mod late;
mod network;
mod niu_coordinates;
mod niu_counters;
mod niu_patterns;
mod niu_regs;

use super::{Body, Dest, Grid, GridBuilder, Packet, Place, Reply};
use crate::probe::RequestId;
use crate::{Cycle, Fault, FaultClass, Memory};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilework_abi::board::{self, Board};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::L1_SIZE;

/// The grid of a board, numbered Tensix tiles first, as the chip does it.
fn board_grid(board: Board) -> Arc<Grid> {
    let mut builder = GridBuilder::new(board.harvesting(), true);
    let mut node = 0;
    let mut next = || {
        node += 1;
        node - 1
    };
    for xy in board.tensix_tiles() {
        builder = builder.add(Place { node: next(), x: xy.x, y: xy.y }, xy);
    }
    for bank in board.dram().banks() {
        let node = next();
        for port in 0..board::DRAM_PORTS {
            let at = tilework_abi::grid::dram_port(bank.physical.into(), port);
            let translated = NocXy::new(bank.first_port.x, bank.first_port.y + port as u8);
            builder = builder.add(Place { node, x: at.x, y: at.y }, translated);
        }
    }
    let (pcie, arc) = (board::PCIE_PHYSICAL, board::ARC);
    builder = builder.add(Place { node: next(), x: pcie.x, y: pcie.y }, board::PCIE);
    builder = builder.add(Place { node: next(), x: arc.x, y: arc.y }, arc);
    Arc::new(builder.build().expect("a board's tiles fit"))
}

fn tile(grid: &Grid, x: u8, y: u8) -> Place {
    grid.resolve(0, NocXy::new(x, y).encode()).expect("a tile of the board")
}

/// A packet without data.
fn ping(noc: u8, from: Place, to: Place) -> Packet {
    let reply = Reply { to: from, trid: 0, addr: 0 };
    let body = Body::ReadRequest { addr: 0, len: 4, reply };
    Packet { noc, from, to: Dest::Unicast(to), id: RequestId::default(), body }
}

/// A posted write of `bytes` bytes.
fn write_of(noc: u8, from: Place, to: Dest, bytes: usize) -> Packet {
    let data = vec![0; bytes].into();
    Packet {
        noc,
        from,
        to,
        id: RequestId::default(),
        body: Body::WriteRequest { addr: 0, data, mask: None, reply: None },
    }
}

/// L1 and single registers above it.
struct Ram {
    l1: Vec<u8>,
    regs: BTreeMap<u64, u32>,
}

impl Ram {
    fn new() -> Self {
        Self { l1: vec![0; L1_SIZE as usize], regs: BTreeMap::new() }
    }
    fn word(&self, addr: usize) -> u32 {
        u32::from_le_bytes(self.l1[addr..addr + 4].try_into().expect("four bytes"))
    }
    fn set_word(&mut self, addr: usize, value: u32) {
        self.l1[addr..addr + 4].copy_from_slice(&value.to_le_bytes());
    }
    fn outside(addr: u64) -> Fault {
        Fault::new(FaultClass::UndefinedBehavior, "outside the test's memory", "nothing").at_addr(addr)
    }
}

impl Memory for Ram {
    fn read(&mut self, _at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let start = addr as usize;
        if let Some(bytes) = start.checked_add(out.len()).and_then(|end| self.l1.get(start..end)) {
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let out: &mut [u8; 4] = out.try_into().map_err(|_| Self::outside(addr))?;
        *out = self.regs.get(&addr).copied().unwrap_or(0).to_le_bytes();
        Ok(())
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        let start = addr as usize;
        if let Some(bytes) = start.checked_add(data.len()).and_then(|end| self.l1.get_mut(start..end)) {
            bytes.copy_from_slice(data);
            return Ok(());
        }
        let data: [u8; 4] = data.try_into().map_err(|_| Self::outside(addr))?;
        self.regs.insert(addr, u32::from_le_bytes(data));
        Ok(())
    }
    fn is_l1(&self, addr: u64) -> bool {
        addr < u64::from(L1_SIZE)
    }
}
