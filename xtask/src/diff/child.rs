//! Runs a script: the child process uses the library, the parent watches the child.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::script::{Op, Place, Reply};
use tilework_abi::tlb::Bar;
use tilework_libttsim_client::Client;

/// How long a child may take before it counts as hung. Cases take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Host memory of the child's chip; no script uses it, but a library may ask for it at start.
const HOST_BYTES: usize = 1 << 20;

/// Result of a script on a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Played {
    /// The replies, one for each completed operation.
    pub replies: Vec<Reply>,
    /// If the process ended before the script: its last output.
    pub ended: Option<String>,
}

/// The child: runs the script of file `script` on `library` and writes the replies to `answers`.
///
/// # Errors
/// If a file cannot be read or written, or the library cannot be loaded.
pub fn play(library: &OsStr, script: &Path, answers: &Path) -> Result<()> {
    let ops: Vec<Op> = serde_json::from_reader(BufReader::new(File::open(script)?))?;
    let mut out = File::create(answers)?;
    let mut client = Client::open(library, HOST_BYTES)?;
    for op in &ops {
        let mut line = serde_json::to_vec(&answer(&mut client, op))?;
        line.push(b'\n');
        out.write_all(&line)?;
    }
    Ok(())
}

fn answer(client: &mut Client, op: &Op) -> Reply {
    let mut read = |at: &Place, len: u32| {
        let mut out = vec![0; len as usize];
        client.read(at.window, at.window(), at.addr, &mut out);
        out
    };
    match op {
        Op::Config(offset) => Reply::Bytes(client.config(*offset).to_le_bytes().to_vec()),
        Op::BarWord(offset) => {
            let mut word = vec![0; 4];
            client.bar_read(Bar::Bar0, *offset, &mut word);
            Reply::Bytes(word)
        }
        Op::Read(at, len) => Reply::Bytes(read(at, *len)),
        Op::Write(at, data) => {
            client.write(at.window, at.window(), at.addr, data);
            Reply::Done
        }
        Op::Clock(n) => {
            client.clock(*n);
            Reply::Done
        }
        Op::Wait { at, value, step, turns } => {
            let mut last = 0;
            for _ in 0..*turns {
                let mut word = [0; 4];
                client.read(at.window, at.window(), at.addr, &mut word);
                last = u32::from_le_bytes(word);
                if last == *value {
                    return Reply::Done;
                }
                client.clock(*step);
            }
            Reply::Never(last)
        }
    }
}

/// The parent: runs `ops` on `library` in a child, with its files in `dir`.
///
/// # Errors
/// If the child cannot be started, or files cannot be read.
pub(crate) fn watch(library: &Path, ops: &[Op], dir: &Path) -> Result<Played> {
    let [script, answers, words] = ["script", "answers", "words"].map(|name| dir.join(name));
    serde_json::to_writer(File::create(&script)?, ops)?;
    File::create(&answers)?;
    let said = File::create(&words)?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg("diff-child")
        .args([library, &script, &answers])
        // By default our library answers after a fault; here both sides must end.
        .env("TILEWORK_ON_FAULT", "abort")
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        .spawn()
        .context("the child could not be started")?;
    let started = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(pause);
        pause = (pause * 3 / 2).min(Duration::from_millis(20));
    };
    let replies = BufReader::new(File::open(&answers)?)
        .lines()
        .map_while(|line| serde_json::from_str(&line.ok()?).ok())
        .collect::<Vec<Reply>>();
    let ended = match status {
        Some(status) if status.success() && replies.len() == ops.len() => None,
        Some(status) => Some(last_words(&words).unwrap_or_else(|| status.to_string())),
        None => Some(format!("hung for {} s", PATIENCE.as_secs())),
    };
    Ok(Played { replies, ended })
}

/// Our library's line after that of a fault.
const ABORTS: &str = "TILEWORK_ON_FAULT=abort";

/// The last line of the child's output that tells why it ended, if any.
fn last_words(path: &Path) -> Option<String> {
    let said = std::fs::read(path).ok()?;
    let said = String::from_utf8_lossy(&said);
    said.lines().rev().map(str::trim).find(|line| !line.is_empty() && !line.contains(ABORTS)).map(str::to_owned)
}
