//! What the environment wants to see of the card: checks, a timeline, a page of pictures. What
//! cannot be understood is told and has no effect.

use crate::messages::{Kind, say};
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;
use tilework_checks::{Level, Policy};
use tilework_profile::{cycles, tile};
use tilework_timeline::Format;

/// In the name of a file: the number of the process, for hosts that start many.
const PROCESS: &str = "%p";

/// What is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wanted {
    /// `TILEWORK_CHECKS` and `TILEWORK_ALLOW`; without the first nothing is checked.
    pub policy: Policy,
    /// `TILEWORK_FINDINGS`: where findings are written as JSON.
    pub findings: Option<PathBuf>,
    /// `TILEWORK_TRACE`: a timeline, and its form.
    pub trace: Option<(PathBuf, Format)>,
    /// `TILEWORK_TRACE_CYCLES`: what of it.
    pub window: Range<Cycle>,
    /// `TILEWORK_TRACE_TILES`: whose; empty for all.
    pub tiles: Vec<NocXy>,
    /// `TILEWORK_HTML`: a page of pictures.
    pub html: Option<PathBuf>,
}

impl Wanted {
    /// The same for card `number` of the process: files of all but the first have the number before
    /// the ending.
    pub(crate) fn of_card(mut self, number: usize) -> Self {
        let files = [self.findings.as_mut(), self.trace.as_mut().map(|trace| &mut trace.0), self.html.as_mut()];
        for path in files.into_iter().flatten().filter(|_| number > 0) {
            let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
            path.set_extension(format!("{number}.{ending}"));
        }
        self
    }

    /// What the environment of the process says.
    pub(crate) fn by_environment() -> Self {
        let (wanted, wrong) = Self::of(|name| std::env::var_os(name));
        wrong.iter().for_each(|what| say(Kind::Environment, what));
        wanted
    }

    /// What variables say, and what is wrong with them.
    fn of(value: impl Fn(&str) -> Option<OsString>) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let text = |name| value(name).map(|text| text.to_string_lossy().into_owned());
        let policy =
            Policy::parse(&text("TILEWORK_CHECKS").unwrap_or_default(), &text("TILEWORK_ALLOW").unwrap_or_default());
        let refused = policy.is_err();
        let policy = policy.unwrap_or_else(|error| {
            wrong.push(format!("TILEWORK_CHECKS or TILEWORK_ALLOW: {error}. Nothing is checked"));
            Policy::off()
        });
        let mut file = |name| value(name).and_then(|path| writable(name, &path).map_err(|what| wrong.push(what)).ok());
        let [findings, trace, html] = ["TILEWORK_FINDINGS", "TILEWORK_TRACE", "TILEWORK_HTML"].map(&mut file);
        let trace = trace.and_then(|path| match Format::of(&path) {
            Ok(format) => Some((path, format)),
            Err(error) => {
                wrong.push(format!("TILEWORK_TRACE: {error}; nothing will be written"));
                None
            }
        });
        let mut choose = |name, read: &mut dyn FnMut(&str) -> Result<(), String>| {
            if let Some(text) = text(name)
                && let Err(error) = read(&text)
            {
                wrong.push(format!("{name} is {text:?}: {error}. All are taken"));
            }
        };
        let (mut window, mut tiles) = (0..Cycle::MAX, Vec::new());
        choose("TILEWORK_TRACE_CYCLES", &mut |text| {
            window = cycles(text)?;
            Ok(())
        });
        choose("TILEWORK_TRACE_TILES", &mut |text| {
            tiles = text.split(',').map(tile).collect::<Result<_, _>>()?;
            Ok(())
        });
        // What is wrong was told above, and that nothing is checked.
        let checks = policy.level() != Level::Off || refused;
        for (without, name, of) in [
            (!checks, "TILEWORK_ALLOW", "TILEWORK_CHECKS"),
            (!checks, "TILEWORK_FINDINGS", "TILEWORK_CHECKS"),
            (trace.is_none(), "TILEWORK_TRACE_CYCLES", "TILEWORK_TRACE"),
            (trace.is_none(), "TILEWORK_TRACE_TILES", "TILEWORK_TRACE"),
        ] {
            if without && value(name).is_some() {
                wrong.push(format!("{name} has no effect without {of}"));
            }
        }
        (Self { policy, findings, trace, window, tiles, html }, wrong)
    }
}

/// The path of a file that may be written.
///
/// # Errors
/// Why it may not, in words.
pub(crate) fn writable(name: &str, path: &OsString) -> Result<PathBuf, String> {
    let path = match path.to_str() {
        Some(text) => PathBuf::from(text.replace(PROCESS, &std::process::id().to_string())),
        None => PathBuf::from(path),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let why = if folder.is_some_and(|folder| !folder.is_dir()) {
        "its folder does not exist"
    } else if path.exists() && !is_file(&path) {
        "it is no regular file"
    } else {
        return Ok(path);
    };
    Err(format!("{name}: {}: {why}; nothing will be written", path.display()))
}

fn is_file(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Wanted, Vec<String>) {
        Wanted::of(|name| variables.iter().find(|(other, _)| *other == name).map(|(_, text)| text.into()))
    }

    #[test]
    fn without_variables_nothing_is_looked_at() {
        let (wanted, wrong) = of(&[]);
        assert_eq!((wanted.policy, wanted.trace, wanted.html), (Policy::off(), None, None));
        assert!(wrong.is_empty());
    }

    #[test]
    fn further_cards_have_files_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        let text = |name: &str| file(name).to_str().unwrap().to_owned();
        let variables = [("TILEWORK_TRACE", text("t.txt")), ("TILEWORK_HTML", text("page.html"))];
        let (wanted, wrong) = of(&variables.each_ref().map(|(name, text)| (*name, text.as_str())));
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(wanted.clone().of_card(0), wanted);
        let second = wanted.of_card(1);
        let trace = second.trace.map(|(path, _)| path);
        assert_eq!((trace, second.html), (Some(file("t.1.txt")), Some(file("page.1.html"))));
    }

    #[test]
    fn variables_say_what_is_looked_at() {
        let (wanted, wrong) = of(&[
            ("TILEWORK_CHECKS", "error,races"),
            ("TILEWORK_ALLOW", "l1-null@dispatch.cpp:7"),
            ("TILEWORK_FINDINGS", "found-%p.json"),
            ("TILEWORK_TRACE", "t.pftrace"),
            ("TILEWORK_TRACE_CYCLES", "5..9"),
            ("TILEWORK_TRACE_TILES", "1-2,3-4"),
            ("TILEWORK_HTML", "page.html"),
        ]);
        assert_eq!(wrong, [""; 0]);
        assert_eq!((wanted.policy.level(), wanted.policy.races()), (Level::Error, true));
        assert_eq!(wanted.findings, Some(format!("found-{}.json", std::process::id()).into()));
        assert_eq!((wanted.trace, wanted.window), (Some(("t.pftrace".into(), Format::Perfetto)), 5..9));
        assert_eq!(wanted.tiles, [NocXy::new(1, 2), NocXy::new(3, 4)]);
    }

    #[test]
    fn what_is_wrong_is_told_and_has_no_effect() {
        for (variables, what) in [
            (&[("TILEWORK_CHECKS", "wran")][..], "TILEWORK_CHECKS or TILEWORK_ALLOW: expected off ("),
            (&[("TILEWORK_CHECKS", "warn"), ("TILEWORK_ALLOW", "l1-nul")], "no finding has the id \"l1-nul\""),
            (&[("TILEWORK_ALLOW", "l1-null")], "TILEWORK_ALLOW has no effect without TILEWORK_CHECKS"),
            (&[("TILEWORK_FINDINGS", "f.json")], "TILEWORK_FINDINGS has no effect without TILEWORK_CHECKS"),
            (&[("TILEWORK_TRACE", "t.png")], "TILEWORK_TRACE: "),
            (&[("TILEWORK_TRACE", "/nowhere/at/all/t.txt")], "its folder does not exist"),
            (&[("TILEWORK_HTML", "/")], "it is no regular file"),
            (&[("TILEWORK_TRACE_TILES", "1-2")], "TILEWORK_TRACE_TILES has no effect without TILEWORK_TRACE"),
            (&[("TILEWORK_TRACE", "t.txt"), ("TILEWORK_TRACE_CYCLES", "9..1")], "expected A..B"),
        ] {
            let (wanted, wrong) = of(variables);
            assert!(wrong.len() == 1 && wrong[0].contains(what), "{variables:?}: {wrong:?}");
            assert_eq!((wanted.window, wanted.html), (0..Cycle::MAX, None));
        }
    }
}
