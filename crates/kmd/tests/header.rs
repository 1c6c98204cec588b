//! Numbers and layouts against the driver's public header, compiled by a C compiler.
//!
//! `TILEWORK_TT_KMD` names a checkout of `tenstorrent/tt-kmd`; without it, or without `cc`, the
//! test says that it is left out.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use tilework_kmd::layout::{Request, STRUCTURES};

/// The header's name of each structure, and how far into it ours begins.
const NAMES: [(&str, &str); 22] = [
    ("SizeIn", "get_device_info_in"),
    ("DeviceInfo", "get_device_info_out"),
    ("QueryMappingsIn", "query_mappings_in"),
    ("MappingOut", "mapping"),
    ("AllocateDmaBufIn", "allocate_dma_buf_in"),
    ("AllocateDmaBufOut", "allocate_dma_buf_out"),
    ("DriverInfo", "get_driver_info_out"),
    ("ResetIn", "reset_device_in"),
    ("ResetOut", "reset_device_out"),
    ("PinIn", "pin_pages_in"),
    ("PinOut", "pin_pages_out_extended"),
    ("UnpinIn", "unpin_pages_in"),
    ("LockIn", "lock_ctl_in"),
    ("LockOut", "lock_ctl_out"),
    ("PeerBarIn", "map_peer_bar_in"),
    ("AllocateTlbIn", "allocate_tlb_in"),
    ("AllocateTlbOut", "allocate_tlb_out"),
    ("FreeTlbIn", "free_tlb_in"),
    ("ConfigureTlbIn", "configure_tlb_in"),
    ("NocCleanup", "set_noc_cleanup"),
    ("PowerState", "power_state"),
    ("ExportTlb", "export_tlb_dmabuf"),
];

#[test]
fn numbers_and_layouts_are_those_of_the_header() {
    let Some(folder) = std::env::var_os("TILEWORK_TT_KMD").map(PathBuf::from) else {
        return println!("the driver's header is left out: TILEWORK_TT_KMD names no checkout of tenstorrent/tt-kmd");
    };
    assert_eq!(NAMES.map(|row| row.0).to_vec(), STRUCTURES.iter().map(|row| row.0).collect::<Vec<_>>());
    let mut code = "#include <stddef.h>\n#include \"ioctl.h\"\n".to_owned();
    for request in Request::ALL {
        let (name, command) = (request.name(), request.command());
        writeln!(code, "_Static_assert(TENSTORRENT_IOCTL_{name} == {command}, \"{name}\");").unwrap();
    }
    for ((_, bytes, fields), (_, name)) in STRUCTURES.iter().zip(NAMES) {
        writeln!(code, "_Static_assert(sizeof(struct tenstorrent_{name}) == {bytes}, \"{name}\");").unwrap();
        for (field, at) in *fields {
            // The window's fields are in a structure of their own, whose own `reserved0` counts.
            let inner = name == "configure_tlb_in" && !["id", "reserved"].contains(field);
            let path = if inner { format!("config.{field}") } else { (*field).to_owned() };
            writeln!(code, "_Static_assert(offsetof(struct tenstorrent_{name}, {path}) == {at}, \"{name}.{path}\");")
                .unwrap();
        }
    }
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("header.c");
    std::fs::write(&source, code).unwrap();
    match Command::new("cc").arg("-fsyntax-only").arg("-I").arg(&folder).arg(&source).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("the driver's header is left out: cc does not start: {error}"),
    }
}
