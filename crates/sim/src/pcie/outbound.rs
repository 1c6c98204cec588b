//! Outbound NOC TLBs of the PCIe tile: what a NoC address of it means to the host.
//!
//! Bits 63..58 of an address choose one of 64 entries, the others are the address itself. The
//! chip's firmware sets up the first eight (tt-zephyr-platforms `pcie.c`, `SetupOutboundTlbs`):
//! four go to the host's bus as they are (`atu_bypass`), four through the controller's address
//! translation. The driver hands out addresses of entry 4 (tt-kmd `blackhole.c`,
//! `noc_pcie_offset`), which have bit 60 set and 63..61 clear. The bare bus address of a pinned
//! page, without any of these bits, is entry 0. Within each four, entries differ in relaxed
//! ordering and no-snoop, which have no effect here. Nothing public says what the other entries do,
//! but for the controller's own registers in entry 62 (tt-kmd `PCIE_DBI_ADDR`), which are not
//! built.

use super::windows::READ;
use crate::{Fault, FaultClass};

/// Bits of the address within an entry (tt-kmd `noc_dma_limit`).
pub(super) const ADDRESS_BITS: u32 = 58;
/// Entries that bypass the address translation.
const BYPASS: u64 = 4;
/// Entries that go to the host.
const HOST: u64 = 8;
/// The entry of the controller's own registers.
const REGISTERS: u64 = 62;

/// An address that the host's side of the tile gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Outbound {
    /// The address, below 2^58.
    pub addr: u64,
    /// Whether the address translation applies.
    pub translated: bool,
}

/// What the NoC address `addr` means.
///
/// # Errors
/// An entry that does not go to the host.
pub(super) fn outbound(addr: u64) -> Result<Outbound, Fault> {
    let entry = addr >> ADDRESS_BITS;
    let refuse = |class, what: String| Err(Fault::new(class, what, READ).at_addr(addr));
    match entry {
        0..HOST => Ok(Outbound { addr: addr & ((1 << ADDRESS_BITS) - 1), translated: entry >= BYPASS }),
        REGISTERS => {
            let what = "the registers of the PCIe controller (outbound NOC TLB 62)".to_owned();
            refuse(FaultClass::UnimplementedFunctionality, what)
        }
        _ => {
            let what = "a NoC address of the PCIe tile outside host memory: outbound NOC TLB";
            refuse(
                FaultClass::MissingSpecification,
                format!("{what} {entry} (bits 63..58), of which nothing is public"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_eight_entries_go_to_the_host() {
        for entry in 0..8 {
            let expected = Outbound { addr: 0x10_8000_0000, translated: entry >= 4 };
            assert_eq!(outbound(entry << 58 | 0x10_8000_0000), Ok(expected));
        }
        assert_eq!(outbound((1 << 58) - 1).unwrap().addr, (1 << 58) - 1);
        for (entry, class) in [
            (8, FaultClass::MissingSpecification),
            (61, FaultClass::MissingSpecification),
            (62, FaultClass::UnimplementedFunctionality),
            (63, FaultClass::MissingSpecification),
        ] {
            assert_eq!(outbound(entry << 58).unwrap_err().class, class, "{entry}");
        }
    }
}
