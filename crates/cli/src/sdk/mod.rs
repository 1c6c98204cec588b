//! `tilework sdk`: a folder with everything that a kernel of one's own needs.
//!
//! It has a C header, linker scripts, the library of our own kernels in Rust, and for each language
//! a reader, a compute kernel and a writer that build and run as they are. Addresses come from the
//! tables of `tilework_abi` ([`header`]); the library is that of the repository ([`library`]).

mod constants;
mod header;
mod library;

pub use library::is_library;

use crate::answer::{Answer, ReportArgs};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::files;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilework_abi::tensix::Processor;
use tilework_dtype::DType;
use toml::{Table, Value};

/// Arguments of `tilework sdk`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
DIR gets a C header, the linker script of each core, and templates in C and Rust that build and run as they are.
DIR/README.md has the commands; docs/program.md explains kernels.

Example:
  tilework sdk kernels
  make -C kernels/c
  tilework run kernels/c/program.toml --input x=kernels/c/x.npy --out out")]
pub struct SdkArgs {
    /// The folder; made when it does not exist. What is in it must not be in the way.
    pub dir: PathBuf,
    /// Write over files that are there.
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// The folder that was made. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct Folder {
    folder: String,
    files: usize,
}

/// The C files as they are.
const C: [(&str, &str); 9] = [
    ("include/tilework.h", include_str!("../../sdk/c/tilework.h")),
    ("include/tilework_print.h", include_str!("../../sdk/c/tilework_print.h")),
    ("include/runtime.c", include_str!("../../sdk/c/runtime.c")),
    ("c/Makefile", include_str!("../../sdk/c/Makefile")),
    ("c/program.toml", include_str!("../../sdk/c/program.toml")),
    ("c/reader.c", include_str!("../../sdk/c/reader.c")),
    ("c/compute.c", include_str!("../../sdk/c/compute.c")),
    ("c/writer.c", include_str!("../../sdk/c/writer.c")),
    ("c/.gitignore", "/build\n"),
];

/// The Rust files as they are. Reader and writer are those of the repository.
const RUST: [(&str, &str); 9] = [
    ("rust/.cargo/config.toml", include_str!("../../sdk/rust/config.toml")),
    // The versions that the library is tested with.
    ("rust/Cargo.lock", include_str!("../../../../firmware/Cargo.lock")),
    ("rust/program.toml", include_str!("../../sdk/rust/program.toml")),
    ("rust/kernels/Cargo.toml", include_str!("../../sdk/rust/kernels.toml")),
    ("rust/kernels/build.rs", include_str!("../../sdk/rust/build.rs")),
    ("rust/kernels/src/lib.rs", include_str!("../../sdk/rust/lib.rs")),
    ("rust/kernels/src/reader.rs", include_str!("../../../../firmware/kernels/reader/src/main.rs")),
    ("rust/kernels/src/writer.rs", include_str!("../../../../firmware/kernels/writer/src/main.rs")),
    ("rust/.gitignore", "/target\n"),
];

/// The two workspaces whose values the template's has.
const WORKSPACE: &str = include_str!("../../../../Cargo.toml");
const FIRMWARE_WORKSPACE: &str = include_str!("../../../../firmware/Cargo.toml");

/// A file of the folder.
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl File {
    fn new(path: impl Into<PathBuf>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), bytes: bytes.into() }
    }
}

/// Makes the folder.
pub fn make(args: &SdkArgs) -> Outcome<Answer> {
    let files = all()?;
    if !args.force {
        let taken = files.iter().map(|file| args.dir.join(&file.path)).find(|path| path.symlink_metadata().is_ok());
        if let Some(path) = taken {
            return Err(Failure::file(&path, "is there already; --force writes over it"));
        }
    }
    for File { path, bytes } in &files {
        let path = args.dir.join(path);
        files::make_folder(path.parent().unwrap_or(&args.dir))?;
        files::write_whole(&path, &[bytes])?;
    }
    let report = Folder { folder: args.dir.display().to_string(), files: files.len() };
    Ok(Answer::new(report, |Folder { folder, files }, out| {
        writeln!(out, "{files} files in {folder}; {}", Path::new(folder).join("README.md").display())
    }))
}

/// Every file of the folder.
fn all() -> Outcome<Vec<File>> {
    let rust = value_of(FIRMWARE_WORKSPACE, &["workspace", "package", "rust-version"])?;
    let rust = rust.as_str().unwrap_or_default();
    let mut files = vec![
        File::new("README.md", include_str!("../../sdk/README.md").replace("@RUST@", rust)),
        File::new("include/tilework_registers.h", header::registers()),
        File::new("c/x.npy", integers()),
        File::new("rust/x.npy", tiles()),
        File::new("rust/Cargo.toml", workspace()?),
    ];
    for core in Processor::ALL {
        let name = core.name().to_ascii_lowercase();
        files.push(File::new(format!("link/{name}.ld"), header::script(core)));
    }
    files.extend(C.iter().chain(&RUST).map(|(path, text)| File::new(*path, *text)));
    for (thread, module) in [("Unpack", "unpack"), ("Math", "math"), ("Pack", "pack")] {
        let text = include_str!("../../sdk/rust/thread.rs").replace("@THREAD@", thread);
        files.push(File::new(format!("rust/kernels/src/square-{module}.rs"), text));
    }
    for (path, text) in library::LIBRARY {
        let within = path.split_once('/').map_or(*path, |(_, within)| within);
        files.push(File::new(format!("rust/library/{within}"), *text));
    }
    Ok(files)
}

/// The manifest of the Rust workspace: dependencies, lints and profile are those of the
/// repository's own.
fn workspace() -> Outcome<String> {
    let mut dependencies = Table::new();
    for package in ["abi", "rt", "link", "compute"] {
        let path = Table::from_iter([("path".to_owned(), Value::from(format!("library/{package}")))]);
        dependencies.insert(format!("tilework-{package}"), path.into());
    }
    for name in ["zerocopy", "bitflags"] {
        dependencies.insert(name.to_owned(), value_of(WORKSPACE, &["workspace", "dependencies", name])?);
    }
    let mut release = value_of(FIRMWARE_WORKSPACE, &["profile", "release"])?;
    if let Some(profile) = release.as_table_mut() {
        // Profiles of single packages, which are not here.
        profile.remove("package");
    }
    let table = |pairs: Vec<(&str, Value)>| -> Value {
        pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Table>().into()
    };
    let whole = table(vec![
        (
            "workspace",
            table(vec![
                ("resolver", "3".into()),
                ("members", vec!["kernels", "library/*"].into()),
                // The library has parts for the build scripts, which the target cannot have.
                ("default-members", vec!["kernels"].into()),
                ("package", value_of(FIRMWARE_WORKSPACE, &["workspace", "package"])?),
                ("dependencies", dependencies.into()),
                ("lints", value_of(FIRMWARE_WORKSPACE, &["workspace", "lints"])?),
            ]),
        ),
        ("profile", table(vec![("release", release)])),
    ]);
    let text = toml::to_string_pretty(&whole).map_err(|error| broken(&error.to_string()))?;
    Ok(format!("# Kernels in Rust, and the library that Tilework's own kernels use.\n{text}"))
}

/// A value of a manifest that is built in.
fn value_of(manifest: &str, path: &[&str]) -> Outcome<Value> {
    let table: Table = manifest.parse().map_err(|error: toml::de::Error| broken(error.message()))?;
    let found = path.iter().try_fold(&Value::Table(table), |value, key| value.get(key)).cloned();
    found.ok_or_else(|| broken(&path.join(".")))
}

/// The template itself is at fault, which the tests exclude.
fn broken(what: &str) -> Failure {
    Failure::failed("defect", format!("the template of the Rust workspace: {what}"))
}

/// The example's input in C: 40 pages of 256 numbers.
fn integers() -> Vec<u8> {
    let elements = (0..40 * 256_u32).flat_map(u32::to_le_bytes);
    [Array::header(DType::U32, &[40, 256]), elements.collect()].concat()
}

/// The example's input in Rust: ten tiles of numbers whose squares bfloat16 has.
fn tiles() -> Vec<u8> {
    let elements = (0..=15_u8).cycle().take(64 * 160).flat_map(|i| f32::from(i).to_le_bytes());
    [Array::header(DType::F32, &[64, 160]), elements.collect()].concat()
}
