//! `tilework card`: runs a program that knows only a real card on a simulated one.
//!
//! The command makes a folder with the files of the card in `/dev` and `/sys`, from the telemetry
//! of such a chip, and a copy of the library of the crate `preload`, which the dynamic linker loads
//! before the program.

use crate::answer::{self, ReportForm, Subject};
use crate::args::{CardArgs, CardClock};
use crate::bundle::CardKeeper;
use crate::failure::{Failure, Outcome};
use crate::files;
use std::ffi::{OsStr, OsString};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use tilework_abi::board::Board;
use tilework_abi::simlib::text_of;
use tilework_abi::tlb::Bar;
use tilework_kmd::program::{Head, head};
use tilework_kmd::{BETWEEN_BOARDS, Card, MOST_CARDS, telemetry, tree_of};
use tilework_sim::{Chip, ChipConfig};

/// The chip whose telemetry the files show.
struct Asked(Chip);

impl Card for Asked {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        if self.0.bar_read(bar, offset, out).is_err() {
            out.fill(0xFF);
        }
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        // A wrong access would be a defect; the telemetry is then empty.
        let _ = self.0.bar_write(bar, offset, data);
    }
    fn reset(&mut self) {}
}

/// The exit code of a program into which the library cannot be loaded: no other end has it.
const UNSERVED: u8 = 103;

/// How the command has ended.
enum Ended {
    /// As its program has.
    AsProgram(ExitStatus),
    /// Its program finds no card, and was not started.
    Unserved(Failure),
}

/// Runs the program and ends as it does.
pub fn run(args: &CardArgs) -> ExitCode {
    let told = |failure| {
        let subject = Subject { kind: "card", command: "card", form: ReportForm::Text };
        answer::finish(subject, Err(failure))
    };
    match start(args) {
        Ok(Ended::AsProgram(status)) => exit_code(status),
        Ok(Ended::Unserved(why)) => {
            told(why);
            ExitCode::from(UNSERVED)
        }
        Err(failure) => told(failure),
    }
}

/// The program's exit code; 128 and its number for a signal, as shells have it.
fn code_of(status: ExitStatus) -> Option<u8> {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal: i32| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
}

fn exit_code(status: ExitStatus) -> ExitCode {
    code_of(status).map_or(ExitCode::FAILURE, ExitCode::from)
}

fn start(args: &CardArgs) -> Outcome<Ended> {
    let Some(library) = tilework_card::preload() else {
        return Err(Failure::usage(
            "this command has no card for programs: there is one on Linux on x86-64 with the GNU C library, in a \
             command that was built from its repository",
        ));
    };
    let variables = args.look.variables()?;
    if args.board.len() > MOST_CARDS {
        let why = format_args!(" was given {} times; a machine has {MOST_CARDS} cards at most", args.board.len());
        return Err(Failure::option("--board", why));
    }
    if args.look.gdb.is_some() && args.board.len() > 1 {
        return Err(Failure::option("--gdb", " works with one card"));
    }
    let boards: Vec<_> =
        args.board.iter().map(|&board| String::from_utf8_lossy(&text_of(board)).into_owned()).collect();
    let [program, rest @ ..] = &args.command[..] else { return Err(Failure::usage("no program was named")) };
    if let Some(path) = found(program)
        && let Err(why) = refuse_unserved(&path)
    {
        return Ok(Ended::Unserved(why));
    }
    let failed = |error: std::io::Error| Failure::usage(format!("the folder of the card cannot be made: {error}"));
    let folder = tempfile::Builder::new().prefix("tilework-card-").tempdir().map_err(failed)?;
    let root = folder.path().canonicalize().map_err(failed)?;
    tilework_card::without_large_pages();
    for (number, &board) in args.board.iter().enumerate() {
        write_files(number, board, &root).map_err(failed)?;
    }
    let file = root.join("libtilework_card.so");
    std::fs::write(&file, library).map_err(failed)?;
    let clock = match args.clock {
        CardClock::Lazy => "lazy",
        CardClock::Free => "free",
    };
    let keeper = args.look.bundle.as_deref().map(CardKeeper::begin).transpose()?;
    let mut child = Command::new(program);
    child
        .args(rest)
        .env("LD_PRELOAD", preloads(&file))
        .env("TILEWORK_CARD_ROOT", &root)
        .env("TILEWORK_CARD_BOARD", boards.join(&BETWEEN_BOARDS.to_string()))
        .env("TILEWORK_CARD_CLOCK", clock)
        .envs(variables);
    if let Some(keeper) = &keeper {
        child.env("TILEWORK_CARD_RECORD", keeper.folder());
    }
    let ended = child.status();
    remove_locks(&root);
    let ended = ended.map_err(|error| Failure::usage(format!("{} cannot be started: {error}", program.display())))?;
    if let Some(keeper) = keeper {
        keeper.keep(&args.board, &args.command, code_of(ended))?;
    }
    Ok(Ended::AsProgram(ended))
}

/// Removes the locks in shared memory that the library has given the program under the folder's
/// name.
fn remove_locks(root: &Path) {
    let Some(name) = root.file_name().map(|name| name.to_string_lossy().into_owned()) else { return };
    for entry in std::fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{name}.")) {
            // What cannot be removed is some empty bytes of memory.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// The library before those that the user loads already.
fn preloads(file: &Path) -> OsString {
    let mut all = file.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

#[cfg(unix)]
fn write_files(number: usize, board: Board, root: &Path) -> std::io::Result<()> {
    let chip = Chip::new(ChipConfig::of_card(number, board)).map_err(std::io::Error::other)?;
    tilework_kmd::write_tree(&tree_of(number, board, &telemetry(&mut Asked(chip))), root)
}

#[cfg(not(unix))]
fn write_files(_number: usize, _board: Board, _root: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The file of a program, as the system finds it.
fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders).map(|folder| folder.join(path)).find(|file| file.is_file())
}

/// Scripts whose interpreters are scripts, at most, as the system has it.
const SCRIPTS: usize = 5;

/// Refuses a program into which the dynamic linker would not load the library, also as the
/// interpreter of a script.
fn refuse_unserved(path: &Path) -> Outcome<()> {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS {
        // What is no file that can be read is told when it is started.
        let Ok((mut file, _)) = files::open_within(&path, u64::MAX, "the program") else { return Ok(()) };
        let found = head(|at, out| read_at(&mut file, at, out).unwrap_or(0));
        if let Some(why) = found.refusal() {
            return Err(Failure::file(&path, why));
        }
        let Head::Script(interpreter) = found else { return Ok(()) };
        path = PathBuf::from(String::from_utf8_lossy(interpreter.bytes()).into_owned());
    }
    Ok(())
}

/// Reads from an offset on: as many bytes as there are.
fn read_at(file: &mut (impl Read + Seek), at: u64, out: &mut [u8]) -> std::io::Result<usize> {
    file.seek(SeekFrom::Start(at))?;
    let mut done = 0;
    while done < out.len() {
        match file.read(&mut out[done..])? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}
