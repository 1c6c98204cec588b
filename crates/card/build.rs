//! Says where cargo puts the shared libraries of `tilework-libttsim` and `tilework-preload`.
//!
//! A library of a path dependency has no hash in its name; that of one from a registry or from git
//! has, and this crate is then built without it.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(card)");
    println!("cargo::rustc-check-cfg=cfg(preload)");
    let var = |name| std::env::var(name).unwrap_or_default();
    let manifest = var("CARGO_MANIFEST_DIR");
    let hashed = ["/registry/src/", "/git/checkouts/"].iter().any(|place| manifest.contains(place));
    // PROFILE/build/PACKAGE/out: the libraries are in PROFILE/deps.
    if let Some(profile) = Path::new(&var("OUT_DIR")).ancestors().nth(3)
        && !hashed
        && var("CARGO_CFG_TARGET_OS") == "linux"
    {
        println!("cargo::rustc-cfg=card");
        println!("cargo::rustc-env=TILEWORK_CARD={}", profile.join("deps/libtilework.so").display());
        if var("CARGO_CFG_TARGET_ARCH") == "x86_64" && var("CARGO_CFG_TARGET_ENV") == "gnu" {
            println!("cargo::rustc-cfg=preload");
            let library = profile.join("deps/libtilework_preload.so");
            println!("cargo::rustc-env=TILEWORK_PRELOAD={}", library.display());
        }
    }
}
