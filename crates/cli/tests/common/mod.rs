//! What the end-to-end tests share: the built command, the repository's files, arrays.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How a command ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// Asserts the exit code, showing what was printed.
    #[track_caller]
    pub(crate) fn code(self, expected: i32) -> Self {
        assert_eq!(self.code, expected, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
    /// Standard output as JSON, which must be all of it.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {}\n{}", self.stdout, self.stderr))
    }
    /// Asserts that standard error contains a text.
    #[track_caller]
    pub(crate) fn says(self, expected: &str) -> Self {
        assert!(self.stderr.contains(expected), "expected on standard error: {expected}\nfound:\n{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// Runs `tilework`.
pub(crate) fn tilework<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> Ended {
    let output = Command::new(env!("CARGO_BIN_EXE_tilework")).args(args).output().unwrap();
    Ended {
        code: output.status.code().expect("the command ends by itself"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `tilework` under limits of the shell (`ulimit`), with more in its environment. A limit ends
/// it with an error: not by a signal, not by a panic.
#[cfg(unix)]
#[track_caller]
pub(crate) fn limited(limits: &str, environment: &[(&str, &str)], args: &[&str]) -> Ended {
    let output = Command::new("sh")
        .args(["-c", &format!("{limits}; exec \"$@\""), "sh", env!("CARGO_BIN_EXE_tilework")])
        .args(args)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    let code = output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}\n{stderr}", output.status));
    assert!(!stderr.contains("panicked"), "{stderr}");
    Ended { code, stdout, stderr }
}

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program file of an example.
pub(crate) fn example(name: &str) -> PathBuf {
    repository().join("examples").join(name).join("program.toml")
}

/// `x=FILE` for the input array of an example.
pub(crate) fn example_input(name: &str) -> String {
    format!("x={}", repository().join("examples").join(name).join("x.npy").display())
}

/// Runs an example of the repository with its outputs in `out`.
pub(crate) fn run_example(name: &str, out: &Path, more: &[&str]) -> Ended {
    let mut args = vec!["run".to_owned(), example(name).display().to_string()];
    if name != "ring" {
        args.extend(["--input".to_owned(), example_input(name)]);
    }
    args.extend(["--out".to_owned(), out.display().to_string()]);
    args.extend(more.iter().map(|s| (*s).to_owned()));
    tilework(&args)
}

/// Our own library, at or above the folder of this test.
pub(crate) fn library() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let found =
        test.ancestors().skip(1).take(2).map(|folder| folder.join("libtilework.so")).find(|file| file.is_file());
    if found.is_none() {
        println!("left out: no libtilework.so at or above {}", test.display());
    }
    found
}

/// A folder for one test.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The elements and the shape of an array, read by a library that the command does not use.
pub(crate) fn read_npy<T: npyz::Deserialize>(path: &Path) -> (Vec<u64>, Vec<T>) {
    let file = npyz::NpyFile::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).unwrap();
    (file.shape().to_vec(), file.into_vec().unwrap())
}

/// Writes an array with that library.
pub(crate) fn write_npy<T: npyz::AutoSerialize + Copy>(path: &Path, shape: &[u64], values: &[T]) {
    use npyz::WriterBuilder;
    let file = std::fs::File::create(path).unwrap();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(shape).writer(file).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
}

/// Runs a program file of the test's own, on a P100 with its outputs in `folder/out`.
pub(crate) fn run_text(folder: &Path, program: &str, more: &[&str]) -> Ended {
    let file = folder.join("program.toml");
    std::fs::write(&file, program).unwrap();
    let out = folder.join("out");
    let mut args = vec!["run".to_owned(), file.display().to_string(), "--out".to_owned(), out.display().to_string()];
    args.extend(more.iter().map(|s| (*s).to_owned()));
    tilework(&args)
}

/// The names of the files in a folder; empty when it does not exist.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect(),
        Err(_) => Vec::new(),
    };
    names.sort();
    names
}
