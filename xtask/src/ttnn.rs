//! `cargo xtask ttnn`: runs the real ttnn with its dispatch kernels on our library, in fast and in
//! slow dispatch, and optionally on another library. With `--ops` it compares operations instead.
//!
//! Needs a folder with ttnn, its compiler and an `env.sh` that takes the library's path and sets
//! `TTNN_PYTHON` and `TTNN_SOC` (docs/ttnn.md says how to make one). The script is
//! `tests/python/ttnn_dm.py`, or one that prints its times in the same form.

mod features;
mod findings;
mod ops;
mod programs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::own_library;

/// The project's own script, from the repository's root.
const SCRIPT: &str = "tests/python/ttnn_dm.py";
/// ttnn's descriptor of the whole chip, for other libraries.
const WHOLE_CHIP: &str = "blackhole_140_arch.yaml";

/// Arguments of `cargo xtask ttnn`.
#[derive(Args, Debug)]
pub struct TtnnArgs {
    /// Folder with ttnn and env.sh.
    #[arg(long, env = "TILEWORK_TTNN", value_name = "DIR")]
    setup: PathBuf,
    /// Our library; without it, it is built from this checkout.
    #[arg(long, value_name = "LIB")]
    own: Option<PathBuf>,
    /// Another library with the libttsim interface for comparison.
    #[arg(long, value_name = "LIB")]
    compare: Option<PathBuf>,
    /// Script to run instead of the project's own; it prints lines like `read: 0.12 s`.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Also run traces and events on one and two hardware queues, and a program under the watcher
    /// with device prints, on our library.
    #[arg(long, conflicts_with_all = ["script", "ops"])]
    features: bool,
    /// Script that runs operations of ttnn (docs/ttnn.md): prints the seconds of each one.
    #[arg(long, value_name = "FILE", conflicts_with = "script")]
    ops: Option<PathBuf>,
    /// Which operations: names or prefixes that end in `*`, with commas between them.
    #[arg(long, value_name = "NAMES", requires = "ops")]
    only: Option<String>,
    /// Cycles and host seconds of stock programs of ttnn beside those of our device programs for
    /// operations of compiled models.
    #[arg(long, conflicts_with_all = ["script", "ops", "compare", "features", "checks", "runs"])]
    programs: bool,
    /// Instead of times, what our library's checks find in the script's run, or in that of
    /// operations: off, warn, error, races, suspicious, with commas between them (docs/others.md).
    #[arg(long, value_name = "WORDS", conflicts_with_all = ["compare", "features"])]
    checks: Option<String>,
    /// Board of our library.
    #[arg(long, default_value = "p150")]
    board: String,
    /// Runs of each kind. The first one compiles kernels that are not cached; the times of the last
    /// one are shown.
    #[arg(long, default_value_t = 2)]
    runs: usize,
}

/// Runs the script in fast and slow dispatch, or the operations, and prints a table of seconds.
///
/// # Errors
/// If the set-up is missing or a run fails.
pub fn run(root: &Path, args: &TtnnArgs) -> Result<()> {
    let setup = args.setup.canonicalize().with_context(|| format!("{} is not there", args.setup.display()))?;
    ensure!(setup.join("env.sh").is_file(), "{} has no env.sh", setup.display());
    let script = args.ops.clone().or_else(|| args.script.clone()).unwrap_or_else(|| root.join(SCRIPT));
    let script = script.canonicalize().with_context(|| script.display().to_string())?;
    let folder = tempfile::tempdir()?;
    if let Some(words) = &args.checks {
        let library = own_folder(root, args, &folder.path().join("own"))?;
        let only = args.only.as_deref().map_or_else(Vec::new, |only| vec!["--only", only]);
        print!("{}", findings::run(&setup, &library, &script, &only, words, folder.path())?);
        return Ok(());
    }
    if args.programs {
        ensure!(args.board == "p150", "--programs compares on a p150: ours run on that board");
        let library = own_folder(root, args, &folder.path().join("own"))?;
        print!("{}", programs::run(root, &setup, &library, folder.path())?);
        return Ok(());
    }
    let mut libraries = vec![("ours", own_folder(root, args, &folder.path().join("own"))?)];
    if let Some(other) = &args.compare {
        libraries.push(("theirs", other_folder(&setup, other, &folder.path().join("other"))?));
    }
    if args.ops.is_some() {
        let run = |(_, library): &(_, PathBuf)| ops::run(&setup, library, &script, args.only.as_deref(), folder.path());
        let reports: Vec<_> = libraries.iter().map(run).collect::<Result<_>>()?;
        if let [ours, others @ ..] = &reports[..] {
            print!("{}", ops::table(ours, others.first()));
        }
        return Ok(());
    }
    let mut columns = Vec::new();
    for (name, library) in &libraries {
        for slow in [false, true] {
            let mut times = Vec::new();
            for _ in 0..args.runs.max(1) {
                times = one(&setup, library, &script, slow, folder.path())?;
            }
            columns.push((format!("{name}, {}", if slow { "slow" } else { "fast" }), times));
        }
    }
    print!("{}", table(&columns));
    if args.features {
        for column in features::run(root, &setup, &libraries[0].1, folder.path())? {
            print!("\n{}", table(&[column]));
        }
    }
    Ok(())
}

/// Creates a folder with our library and its description by `tilework simdir`; returns the
/// library's path.
fn own_folder(root: &Path, args: &TtnnArgs, folder: &Path) -> Result<PathBuf> {
    let library = match &args.own {
        Some(library) => library.clone(),
        None => own_library::build(root)?,
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(root)
        .args(["run", "--quiet", "--release", "--bin", "tilework", "--", "simdir"])
        .arg(folder)
        .args(["--board", &args.board, "--library"])
        .arg(library.canonicalize().with_context(|| library.display().to_string())?)
        .output()
        .context("cargo could not be started")?;
    ensure!(output.status.success(), "tilework simdir: {}", String::from_utf8_lossy(&output.stderr));
    Ok(folder.join("libtilework.so"))
}

/// Creates a folder with another library and ttnn's description of a whole chip; returns the
/// library's path.
fn other_folder(setup: &Path, library: &Path, folder: &Path) -> Result<PathBuf> {
    let output = in_setup(setup, library, "echo \"$TTNN_SOC\"").output()?;
    let descriptors = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
    let descriptor = descriptors.join(WHOLE_CHIP);
    std::fs::create_dir_all(folder)?;
    std::fs::copy(&descriptor, folder.join("soc_descriptor.yaml")).with_context(|| descriptor.display().to_string())?;
    let copy = folder.join(library.file_name().context("the library has no file name")?);
    std::fs::copy(library, &copy).with_context(|| library.display().to_string())?;
    Ok(copy)
}

/// A shell that runs `what` with the set-up's environment for `library`.
fn in_setup(setup: &Path, library: &Path, what: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-ec", &format!(". \"$0/env.sh\" \"$1\"; {what}")]).arg(setup).arg(library);
    shell
}

/// Runs the script once in `folder`, where ttnn writes its files; returns the times in the order
/// of its lines.
fn one(setup: &Path, library: &Path, script: &Path, slow: bool, folder: &Path) -> Result<Vec<(String, f64)>> {
    let mut shell = in_setup(setup, library, "exec \"$TTNN_PYTHON\" \"$2\"");
    shell.arg(script).current_dir(folder).env_remove("TT_METAL_SLOW_DISPATCH_MODE");
    if slow {
        shell.env("TT_METAL_SLOW_DISPATCH_MODE", "1");
    }
    let output = shell.output().context("bash could not be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        let kind = if slow { "slow" } else { "fast" };
        anyhow::bail!("{} in {kind} dispatch: {}\n{said}{errors}", library.display(), output.status);
    }
    Ok(said.lines().filter_map(time_of).collect())
}

/// Name and seconds of a line like `write 128 KiB: 0.120 s OK` or `open_s 0.31 MeshDevice`.
fn time_of(line: &str) -> Option<(String, f64)> {
    if let Some((name, rest)) = line.split_once(": ") {
        let (seconds, unit) = rest.split_once(' ')?;
        return (unit.split(' ').next() == Some("s")).then_some((name.to_owned(), seconds.parse().ok()?));
    }
    let (name, rest) = line.split_once("_s ")?;
    Some((name.to_owned(), rest.split(' ').next()?.parse().ok()?))
}

/// A table with a row for each name, in the order of the first column, and a column for each run.
/// Repeated names are numbered.
fn table(columns: &[(String, Vec<(String, f64)>)]) -> String {
    let columns: Vec<(&str, Vec<(String, f64)>)> =
        columns.iter().map(|(title, times)| (title.as_str(), numbered(times))).collect();
    let mut out = String::from("| seconds |");
    for (title, _) in &columns {
        out += &format!(" {title} |");
    }
    out += &format!("\n|---|{}\n", "---:|".repeat(columns.len()));
    for (name, _) in columns.first().map_or(&[][..], |(_, times)| times) {
        out += &format!("| {name} |");
        for (_, times) in &columns {
            let time = times.iter().find(|(other, _)| other == name);
            out += &time.map_or(" |".to_owned(), |(_, seconds)| format!(" {seconds:.4} |"));
        }
        out += "\n";
    }
    out
}

/// Numbers the second and further times of the same name.
fn numbered(times: &[(String, f64)]) -> Vec<(String, f64)> {
    let mut seen = BTreeMap::new();
    let number = |(name, seconds): &(String, f64)| {
        let count = seen.entry(name.clone()).and_modify(|count| *count += 1).or_insert(1);
        (if *count == 1 { name.clone() } else { format!("{name} ({count})") }, *seconds)
    };
    times.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_in_lines_of_both_forms() {
        assert_eq!(time_of("cached program: 0.0625 s"), Some(("cached program".into(), 0.0625)));
        assert_eq!(time_of("read: 0.050 s OK"), Some(("read".into(), 0.05)));
        assert_eq!(time_of("open_s 9.30 MeshDevice(1x1 grid)"), Some(("open".into(), 9.3)));
        for other in ["all data are right", "2026-11-21 info: 3 of 4", "took: long s", "size: 3 KiB"] {
            assert_eq!(time_of(other), None, "{other}");
        }
    }

    #[test]
    fn rows_are_matched_by_name() {
        let ours = ("ours".to_owned(), vec![("read".to_owned(), 1.0), ("read".to_owned(), 2.0), ("x".to_owned(), 3.0)]);
        let theirs = ("theirs".to_owned(), vec![("read".to_owned(), 4.0), ("read".to_owned(), 5.0)]);
        let text = table(&[ours, theirs]);
        assert!(
            text.contains("| read | 1.0000 | 4.0000 |\n| read (2) | 2.0000 | 5.0000 |\n| x | 3.0000 | |\n"),
            "{text}"
        );
    }
}
