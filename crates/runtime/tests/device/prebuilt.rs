//! The firmware images that are built into the runtime belong to the sources beside them.

use std::path::Path;

#[test]
fn prebuilt_firmware_belongs_to_its_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Err(e) = xtask::firmware::check(&root) {
        panic!("{e:#}");
    }
}
