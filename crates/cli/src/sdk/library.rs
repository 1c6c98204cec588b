//! The sources of the Rust library for kernels, which the folder gets as they are here.

/// A file: its path in the repository and its text.
pub type Source = (&'static str, &'static str);

macro_rules! sources {
    ($($folder:literal: $($file:literal)+;)*) => {
        /// Every file of the library.
        pub const LIBRARY: &[Source] = &[$($(
            (concat!($folder, "/", $file), include_str!(concat!("../../../../", $folder, "/", $file)))
        ),+),*];
    };
}

sources! {
    "crates/abi":
        "Cargo.toml" "src/addr.rs" "src/address_map.rs" "src/arc.rs" "src/board.rs" "src/cb.rs"
        "src/conv.rs" "src/convert.rs" "src/cq/completion.rs" "src/cq/count.rs" "src/cq/dispatch.rs" "src/cq/layout.rs"
        "src/cq/mod.rs" "src/cq/prefetch.rs" "src/cq/status.rs" "src/cq/tiles.rs" "src/cq/wire.rs" "src/edges.rs" "src/eltwise.rs"
        "src/flash.rs" "src/globals.rs" "src/grid.rs" "src/kernel.rs" "src/kmd.rs" "src/l1.rs" "src/lib.rs" "src/lines.rs" "src/msg.rs"
        "src/noc.rs"
        "src/pci.rs" "src/print.rs" "src/random.rs" "src/rearrange.rs" "src/reg.rs"
        "src/reg_tile.rs" "src/rowwise.rs" "src/simlib.rs" "src/stream.rs" "src/telemetry.rs" "src/tensix.rs"
        "src/tensix/cfg/data.rs" "src/tensix/cfg/global.rs" "src/tensix/cfg/mod.rs"
        "src/tensix/cfg/thcon.rs" "src/tensix/cfg/thread.rs" "src/tensix/insn/config.rs"
        "src/tensix/insn/front.rs" "src/tensix/insn/matrix.rs" "src/tensix/insn/misc.rs"
        "src/tensix/insn/mod.rs" "src/tensix/insn/mode.rs" "src/tensix/insn/pack.rs"
        "src/tensix/insn/row.rs" "src/tensix/insn/scalar.rs" "src/tensix/insn/sync.rs"
        "src/tensix/insn/text.rs" "src/tensix/insn/vector.rs" "src/tlb.rs" "src/walk.rs";
    "firmware/rt":
        "Cargo.toml" "src/cb.rs" "src/context.rs" "src/dram.rs" "src/globals.rs" "src/lib.rs" "src/niu.rs"
        "src/noc.rs" "src/print.rs" "src/reg.rs" "src/sem.rs" "src/start.rs" "src/worker.rs";
    "firmware/link":
        "Cargo.toml" "firmware.ld" "kernel.ld" "src/lib.rs";
    "firmware/compute":
        "Cargo.toml" "src/addr_mod.rs" "src/cb.rs" "src/flash.rs" "src/format.rs" "src/functions.rs" "src/lib.rs"
        "src/math.rs" "src/mop.rs" "src/pack.rs" "src/program.rs" "src/program/vector.rs" "src/push.rs" "src/rotary.rs"
        "src/rowwise.rs" "src/sfpu/binary.rs" "src/sfpu/exponential.rs" "src/sfpu/flash.rs" "src/sfpu/integer.rs"
        "src/sfpu/inverse.rs" "src/sfpu/mod.rs" "src/sfpu/power.rs" "src/sfpu/quotient.rs"
        "src/sfpu/random.rs" "src/sfpu/round.rs" "src/sfpu/rows.rs" "src/sfpu/special.rs" "src/sfpu/spread.rs"
        "src/sfpu/statistic.rs" "src/sfpu/ternary.rs"
        "src/sfpu/topk.rs" "src/sfpu/trig.rs" "src/sfpu/typecast.rs" "src/sfpu/words.rs" "src/softmax.rs"
        "src/sync.rs" "src/thread.rs" "src/topk.rs" "src/transpose.rs" "src/unpack.rs";
}

/// The headers of the library in C, wherever a user keeps them, and its source file.
const IN_C: [&str; 4] = ["tilework.h", "tilework_print.h", "tilework_registers.h", "include/runtime.c"];

/// Whether a source file is one of the library, here or in a folder of `tilework sdk`.
pub fn is_library(file: &str) -> bool {
    let ends_with = |name: &&str| file.strip_suffix(*name).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
    if IN_C.iter().any(ends_with) {
        return true;
    }
    let within = |known: &'static str| known.split_once('/').map_or(known, |(_, within)| within);
    let is = |known: &'static str, root: &str| {
        let before = file.strip_suffix(within(known)).and_then(|before| before.strip_suffix(root));
        before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    LIBRARY.iter().any(|(known, _)| ["library/", "firmware/", "crates/"].iter().any(|root| is(known, root)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn files(folder: &Path, found: &mut Vec<String>, root: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files(&path, found, root);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn files_of_the_library_are_told_from_others() {
        for file in ["./firmware/rt/src/reg.rs", "/home/me/sdk/rust/library/rt/src/noc.rs", "crates/abi/src/noc.rs"] {
            assert!(is_library(file), "{file}");
        }
        for file in ["/home/me/sdk/c/../include/tilework.h", "tilework_print.h", "sdk/include/runtime.c"] {
            assert!(is_library(file), "{file}");
        }
        for file in [
            "src/main.rs",
            "mylibrary/rt/src/reg.rs",
            "rt/src/reg.rs",
            "./firmware/kernels/spin/src/main.rs",
            "my/runtime.c",
            "mytilework.h",
            "",
        ] {
            assert!(!is_library(file), "{file}");
        }
    }

    #[test]
    fn the_library_is_whole() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = Vec::new();
        for package in ["crates/abi", "firmware/rt", "firmware/link", "firmware/compute"] {
            files(&root.join(package), &mut found, &root);
        }
        found.retain(|file| !file.starts_with("crates/abi/tests/"));
        found.sort();
        let mut listed: Vec<_> = LIBRARY.iter().map(|(path, _)| (*path).to_owned()).collect();
        listed.sort();
        assert_eq!(listed, found);
    }
}
