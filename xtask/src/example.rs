//! Examples of crates, which measure what is not in a command.

use std::path::Path;
use std::process::Command;

/// The command that runs an example, built for release; its arguments are to be added.
pub(crate) fn example(root: &Path, package: &str, example: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root);
    command.args(["run", "--quiet", "--release", "--package", package, "--example", example, "--"]);
    command
}
