//! The commands behind gdb's `monitor`: what gdb has no words for.

use crate::machine::Machine;
use crate::watch::Watch;
use gdbstub::target::ext::breakpoints::WatchKind;
use std::fmt::Write as _;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_sim::{Activity, Chip, CoreView, Spot, Thread};

/// A command: its words, what it does, and how.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: fn(&mut Machine, &[&str]) -> Result<String, String>,
}

/// All commands.
const COMMANDS: [Command; 13] = [
    Command {
        name: "where",
        arguments: "",
        about: "the cycle, why the chip stopped, and who runs what there",
        run: place,
    },
    Command { name: "symbols", arguments: "", about: "the commands that load the symbols of all code", run: symbols },
    Command {
        name: "threads",
        arguments: "[X-Y]",
        about: "the cores of a tile, or all that are not in reset",
        run: threads,
    },
    Command {
        name: "waiting",
        arguments: "",
        about: "the cores that wait, and the words that they wait for",
        run: waiting,
    },
    Command {
        name: "coprocessor",
        arguments: "[X-Y] PART [FROM [COUNT]]",
        about: "a part of a tile's coprocessor",
        run: coprocessor,
    },
    Command { name: "l1", arguments: "[X-Y] ADDRESS [BYTES]", about: "bytes of a tile's L1", run: l1 },
    Command { name: "dram", arguments: "BANK ADDRESS [BYTES]", about: "bytes of a physical DRAM bank", run: dram },
    Command {
        name: "findings",
        arguments: "",
        about: "what was found to be wrong up to now, if the run has --checks",
        run: findings,
    },
    Command {
        name: "watch",
        arguments: "l1 X-Y|dram BANK ADDRESS [BYTES [r|w|a]]",
        about: "stops at accesses to memory: reads, writes (unless given) or all",
        run: watch,
    },
    Command { name: "unwatch", arguments: "", about: "ends all these watches", run: unwatch },
    Command {
        name: "step-chip",
        arguments: "CYCLES",
        about: "the next continue stops the whole chip after so many cycles",
        run: step_chip,
    },
    Command {
        name: "goto",
        arguments: "CYCLE",
        about: "the next continue or reverse-continue goes to this cycle",
        run: goto,
    },
    Command {
        name: "checkpoints",
        arguments: "",
        about: "the cycles from which a run can be repeated, and the one of the last time",
        run: checkpoints,
    },
];

/// Bytes that are shown at once.
const MOST_BYTES: usize = 1 << 16;

/// Executes a command; what gdb is to print.
pub(crate) fn execute(machine: &mut Machine, line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((name, arguments)) = words.split_first() else { return help() };
    match COMMANDS.iter().find(|command| command.name == *name) {
        Some(command) => (command.run)(machine, arguments)
            .unwrap_or_else(|wrong| format!("{wrong}\nusage: monitor {} {}\n", command.name, command.arguments)),
        None if *name == "help" => help(),
        None => format!("no such command: {name}\n{}", help()),
    }
}

fn help() -> String {
    let mut text = String::new();
    for Command { name, arguments, about, .. } in &COMMANDS {
        let _ = writeln!(text, "{:36} {about}", format!("{name} {arguments}"));
    }
    for (part, about) in Chip::COPROCESSOR_PARTS {
        let _ = writeln!(text, "{:36} {about}", format!("    coprocessor {part}"));
    }
    text
}

/// The name of a core, with what it does when it does not execute.
pub(crate) fn name(core: &CoreView) -> String {
    let doing = match core.activity {
        Activity::Held => ": in reset",
        Activity::Running => "",
        Activity::Parked => ": polling",
        Activity::Paused => ": paused",
        Activity::Blocked { .. } => ": blocked",
    };
    format!("tile {}-{} {}{doing}", core.tile.x, core.tile.y, core.core.name())
}

/// `tile 1-2 BRISC`.
pub(crate) fn title(chip: &Chip, thread: Thread) -> String {
    let tile = chip.tiles().nth(thread.tile()).unwrap_or(NocXy::new(0, 0));
    format!("tile {}-{} {}", tile.x, tile.y, thread.core().name())
}

fn place(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    let focus = machine.state.focus;
    let (title, place) = (title(&machine.chip, focus), machine.place(focus));
    Ok(format!("cycle {}: {}\n{title}: {place}\n", machine.chip.clock_now(), machine.state.why))
}

fn checkpoints(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    let mut text = String::from("checkpoints at cycles 0");
    for at in machine.state.history.cycles() {
        let _ = write!(text, ", {at}");
    }
    text.push('\n');
    if let Some(base) = machine.base {
        let _ = writeln!(text, "repeated from cycle {base}");
    }
    Ok(text)
}

fn findings(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    let Some(found) = machine.all_found() else {
        let how = "run with --checks warn, error or races; a replay looks for what its bundle's run looked for";
        return Ok(format!("nothing is looked for: {how}\n"));
    };
    let mut text = String::new();
    for found in &found {
        let who = machine.thread_of(Some(found.tile), found.core);
        let _ = writeln!(text, "cycle {}, {}: {}", found.at, title(&machine.chip, who), found.what);
    }
    if text.is_empty() { Ok("nothing was found up to now\n".into()) } else { Ok(text) }
}

fn symbols(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    machine.state.code.discover(&machine.chip);
    Ok(machine.state.code.symbol_files(machine.state.focus.tile()))
}

fn threads(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let wanted = match words {
        [] => None,
        [word, ..] => Some(tile(machine, word).ok_or_else(|| no_tile(word))?),
    };
    let mut text = String::new();
    for thread in machine.chip.threads().collect::<Vec<_>>() {
        let shown = match wanted {
            Some(tile) => thread.tile() == tile,
            None => machine.chip.core(thread).is_some_and(|core| core.activity != Activity::Held),
        };
        if shown {
            let (title, place) = (title(&machine.chip, thread), machine.place(thread));
            let _ = writeln!(text, "{:4}  {title}: {place}", thread.number() + 1);
        }
    }
    Ok(text)
}

fn waiting(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    let mut text = String::new();
    for core in machine.chip.waiting() {
        let _ = write!(text, "tile {}-{} {} at {:#x}:", core.tile.x, core.tile.y, core.core.name(), core.pc);
        for word in &core.watched {
            let stale = if word.stale { " (a cached copy: a fence is missing)" } else { "" };
            let _ = write!(text, " {:#x} is {:#x}{stale}", word.watch.addr, word.watch.value);
        }
        if let Some(address) = core.blocked_on {
            let _ = write!(text, " blocked in an access to {address:#x}");
        }
        core.coprocessor.iter().for_each(|(what, origin)| {
            let _ = write!(text, "; {what}, {origin}");
        });
        text.push('\n');
    }
    Ok(text)
}

fn coprocessor(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let (at, words) = tile_first(machine, words)?;
    let [part, numbers @ ..] = words else { return Err("which part?".into()) };
    let numbers = numbers.iter().map(|word| number(word)).collect::<Result<Vec<u64>, _>>()?;
    let size = |i: usize, default| numbers.get(i).map_or(default, |&n| usize::try_from(n).unwrap_or(usize::MAX));
    let thread = Thread::new(at * Processor::ALL.len());
    let shown = machine.chip.coprocessor(thread, part, size(0, 0), size(1, 16).min(MOST_BYTES));
    shown.ok_or_else(|| format!("no such part: {part}"))
}

fn l1(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let (at, words) = tile_first(machine, words)?;
    let (address, bytes) = span(words)?;
    let xy = machine.chip.tiles().nth(at).ok_or("no such tile")?;
    let start = usize::try_from(address).unwrap_or(usize::MAX);
    let l1 = machine.chip.l1(xy).and_then(|l1| l1.get(start..start.saturating_add(bytes)));
    l1.map(|l1| dump(address, l1)).ok_or_else(|| "that is not in L1".to_owned())
}

fn dram(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let [bank, words @ ..] = words else { return Err("which bank?".into()) };
    let (address, bytes) = span(words)?;
    let mut data = vec![0; bytes];
    let bank = usize::try_from(number(bank)?).unwrap_or(usize::MAX);
    let is_there = machine.chip.peek_dram(bank, address, &mut data);
    if is_there { Ok(dump(address, &data)) } else { Err("no such memory".into()) }
}

fn watch(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let [space, at, words @ ..] = words else { return Ok(watches(machine)) };
    let spot = match *space {
        "l1" => {
            Spot::Tensix(tile(machine, at).and_then(|tile| machine.chip.tiles().nth(tile)).ok_or_else(|| no_tile(at))?)
        }
        "dram" => Spot::Dram(u8::try_from(number(at)?).map_err(|_| format!("no such bank: {at}"))?),
        _ => return Err(format!("no such memory: {space}")),
    };
    let (numbers, kind) = match words {
        [numbers @ .., "r"] => (numbers, WatchKind::Read),
        [numbers @ .., "a"] => (numbers, WatchKind::ReadWrite),
        [numbers @ .., "w"] => (numbers, WatchKind::Write),
        numbers => (numbers, WatchKind::Write),
    };
    let [address, bytes @ ..] = numbers else { return Err("which address?".into()) };
    let (address, bytes) = (number(address)?, bytes.first().map_or(Ok(4), |word| number(word))?);
    let watch = Watch { spot, core: None, address, len: bytes, kind, gdb: None, thread: None };
    machine.add_watch(watch);
    Ok(format!("watching {bytes} bytes at {address:#x} of {spot}\n"))
}

fn watches(machine: &Machine) -> String {
    let mut text = String::new();
    for Watch { spot, core, address, len, kind, .. } in &machine.state.watches {
        let core = core.map_or("", |core: Processor| core.name());
        let _ = writeln!(text, "{kind:?}: {len} bytes at {address:#x} of {spot} {core}");
    }
    text
}

fn unwatch(machine: &mut Machine, _: &[&str]) -> Result<String, String> {
    machine.remove_watch(|watch| watch.gdb.is_none());
    Ok("no watches\n".into())
}

fn step_chip(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let [cycles] = words else { return Err("how many cycles?".into()) };
    let until = machine.chip.clock_now().saturating_add(number(cycles)?);
    machine.state.until = Some(until);
    Ok(format!("continue stops at cycle {until}\n"))
}

fn goto(machine: &mut Machine, words: &[&str]) -> Result<String, String> {
    let [cycle] = words else { return Err("which cycle?".into()) };
    let (until, now) = (number(cycle)?, machine.chip.clock_now());
    if until < now && !machine.state.history.goes_back() {
        return Err(format!("the chip is at cycle {now}, and this host cannot be run again to go back"));
    }
    machine.state.until = Some(until);
    let command = if until < now { "reverse-continue" } else { "continue" };
    Ok(format!("the chip is at cycle {now}: {command} goes to cycle {until}\n"))
}

/// The tile that the words begin with, or that of the last stop.
fn tile_first<'a>(machine: &Machine, words: &'a [&'a str]) -> Result<(usize, &'a [&'a str]), String> {
    match words.split_first() {
        Some((word, rest)) if word.contains('-') => Ok((tile(machine, word).ok_or_else(|| no_tile(word))?, rest)),
        _ => Ok((machine.state.focus.tile(), words)),
    }
}

fn no_tile(word: &str) -> String {
    format!("no Tensix tile has the coordinates {word}")
}

fn tile(machine: &Machine, word: &str) -> Option<usize> {
    let (x, y) = word.split_once('-')?;
    let xy = NocXy::new(x.parse().ok()?, y.parse().ok()?);
    machine.chip.tiles().position(|tile| tile == xy)
}

fn number(word: &str) -> Result<u64, String> {
    let number = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    number.map_err(|_| format!("not a number: {word}"))
}

/// An address, and how many bytes: 64 unless given.
fn span(words: &[&str]) -> Result<(u64, usize), String> {
    let [address, bytes @ ..] = words else { return Err("which address?".into()) };
    let bytes = bytes.first().map_or(Ok(64), |word| number(word))?;
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if bytes > MOST_BYTES {
        return Err(format!("at most {MOST_BYTES} bytes"));
    }
    Ok((number(address)?, bytes))
}

/// Words of memory, four on a line.
fn dump(address: u64, data: &[u8]) -> String {
    let mut text = String::new();
    for (line, at) in data.chunks(16).zip((address..).step_by(16)) {
        let _ = write!(text, "{at:#010x}:");
        for word in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            let _ = write!(text, " {:08x}", u32::from_le_bytes(bytes));
        }
        text.push('\n');
    }
    text
}
