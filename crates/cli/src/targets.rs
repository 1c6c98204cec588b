//! The files that a run will write, known before it begins.
//!
//! Three things are done with them before anything runs. They are checked: a run that takes minutes
//! and cannot keep its result helps nobody. What earlier runs left is removed, so that after a
//! failed run nothing old can be taken for its result. And temporary files of runs that were killed
//! go.

use crate::failure::{Failure, Outcome};
use crate::files::{self, shown};
use std::path::{Path, PathBuf};

/// Files to be written.
#[derive(Default)]
pub struct Targets {
    files: Vec<Target>,
    folder: Option<PathBuf>,
    /// Whether a file of the folder, by its name, is one that earlier runs left.
    old: Option<fn(&str) -> bool>,
}

struct Target {
    /// The option that names it, for one that is not in the folder of outputs.
    option: Option<&'static str>,
    path: PathBuf,
}

impl Targets {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Outputs of these names in `folder`, which is made when it does not exist.
    #[must_use]
    pub fn outputs(mut self, folder: &Path, names: impl IntoIterator<Item = String>) -> Self {
        self.folder = Some(folder.to_owned());
        self.files.extend(names.into_iter().map(|name| Target { option: None, path: folder.join(name) }));
        self
    }

    /// Also removes files of the folder whose names `old` knows.
    #[must_use]
    pub fn and_old(mut self, old: fn(&str) -> bool) -> Self {
        self.old = Some(old);
        self
    }

    /// A file that an option names, if it does.
    #[must_use]
    pub fn option(mut self, option: &'static str, path: Option<&Path>) -> Self {
        self.files.extend(path.map(|path| Target { option: Some(option), path: path.to_owned() }));
        self
    }

    /// Does what is to be done before a run that reads the files `read`, when nothing else was
    /// refused.
    ///
    /// # Errors
    /// A target that cannot be written, or whose option names a file of `read` or another target.
    /// Then everything is as it was.
    pub fn prepare(&self, read: &[PathBuf]) -> Outcome<()> {
        let Some(folder) = &self.folder else { return self.check(read).and_then(|()| self.clear(read)) };
        let made = !folder.exists();
        files::make_folder(folder)?;
        let checked = files::check_folder(folder).and_then(|()| self.check(read));
        if checked.is_err() && made {
            // It is empty; one that cannot be removed does no harm.
            let _ = std::fs::remove_dir(folder);
        }
        checked.and_then(|()| self.clear(read))
    }

    fn check(&self, read: &[PathBuf]) -> Outcome<()> {
        for (i, Target { option, path }) in self.files.iter().enumerate() {
            let Some(option) = option else {
                files::check_replaceable(path)?;
                continue;
            };
            let others = self.files.iter().enumerate().filter(|(other, _)| *other != i).map(|(_, target)| &target.path);
            if let Some(taken) = read.iter().chain(others).find(|taken| files::same_place(taken, path)) {
                return Err(Failure::option(option, format_args!(" would replace {}", shown(taken))));
            }
            files::check_writable(path)?;
        }
        Ok(())
    }

    /// Removes what earlier runs left: these files, those that [`Targets::and_old`] knows, and
    /// temporary files that nobody writes any more. The files `read` stay: a run may replace its
    /// inputs, but must not lose them.
    fn clear(&self, read: &[PathBuf]) -> Outcome<()> {
        let remove = |path: &Path| match read.iter().any(|input| files::same_place(input, path)) {
            true => Ok(()),
            false => remove(path),
        };
        for Target { path, .. } in &self.files {
            files::clear_leftovers(files::folder_of(path));
            remove(path)?;
        }
        let Some(folder) = &self.folder else { return Ok(()) };
        files::clear_leftovers(folder);
        let (Some(old), Ok(entries)) = (self.old, std::fs::read_dir(folder)) else { return Ok(()) };
        for entry in entries.flatten() {
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if is_file && entry.file_name().to_str().is_some_and(old) {
                remove(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn remove(path: &Path) -> Outcome<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            Err(files::cannot_write(path, format_args!("cannot remove the old {}: {e}", shown(path))))
        }
        _ => Ok(()),
    }
}
