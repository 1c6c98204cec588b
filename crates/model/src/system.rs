//! The machine that a program is compiled for.
//!
//! Source: `Common/types.fbs` and `Common/system_desc.fbs` of the schema ([`crate::schema`]).

use serde::Serialize;

use crate::common::{DataType, Dim2d, Version};
use crate::error::{Reason, Result};
use crate::flat::declare::{enums, structs, tables};
use crate::flat::field::Inline;

/// What a chip can do, as a set of bits. Bit 0: the host reaches it over PCIe itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ChipCapability(pub u32);

/// All bits are accepted: those without a name here are of later compilers.
impl Inline for ChipCapability {
    const NAME: &'static str = "ChipCapability";
    const SIZE: usize = 4;
    const ALIGN: usize = 4;
    const ABSENT: Option<Self> = Some(Self(0));

    fn parse(bytes: &[u8]) -> Result<Self, (usize, Reason)> {
        u32::parse(bytes).map(Self)
    }
}

enums! {
    /// Whether a processor is the host's or a device's.
    CPURole: u8 { Host, Device }

    /// The generation of a chip.
    Arch: u32 { Wormhole_b0, Blackhole, Quasar }
}

structs! {
    /// Where a chip is in the machine room.
    ChipCoord { rack: u32, shelf: u32, y: u32, x: u32 }

    /// An Ethernet link between two chips.
    ChipChannel { device_id0: u32, ethernet_core_coord0: Dim2d, device_id1: u32, ethernet_core_coord1: Dim2d }
}

tables! {
    /// A chip: grids, memory, alignments.
    ChipDesc {
        arch: Arch, grid_size: Dim2d, coord_translation_offsets: Option<Dim2d>, l1_size: u64,
        num_dram_channels: u32, dram_channel_size: u64, noc_l1_address_align_bytes: u32,
        pcie_address_align_bytes: u32, noc_dram_address_align_bytes: u32, l1_unreserved_base: u32,
        erisc_l1_unreserved_base: u32, dram_unreserved_base: u32, dram_unreserved_end: u32,
        supported_data_types: Vec<DataType>, supported_tile_sizes: Vec<Dim2d>, dst_physical_size_tiles: u32,
        num_cbs: u32, num_compute_threads: u32, num_datamovement_threads: u32, dram_grid_size: Option<Dim2d>,
        dram_bank_to_logical_worker_noc0: Vec<Dim2d>, dram_bank_to_logical_worker_noc1: Vec<Dim2d>,
    }

    /// A processor that is not a chip of this kind.
    CPUDesc { role: CPURole, target_triple: String }

    /// The machine that a program was compiled for.
    SystemDesc {
        cpu_descs: Vec<CPUDesc>, chip_descs: Vec<ChipDesc>, chip_desc_indices: Vec<u32>,
        chip_capabilities: Vec<ChipCapability>, chip_coords: Vec<ChipCoord>, chip_channels: Vec<ChipChannel>,
    }

    /// The root of a `.ttsys` file.
    SystemDescRoot {
        version: Option<Version>, schema_hash: String, ttmlir_git_hash: String, product_identifier: String,
        system_desc: SystemDesc,
    }
}
