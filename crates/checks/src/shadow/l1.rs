//! L1 of the Tensix tiles: whose bytes an access of a kernel touches.

use super::cbs::Wrong;
use super::dram::bytes;
use super::observer::{CheckObserver, Span, in_l1};
use super::report::Actor;
use super::tile::Tile;
use super::written::Shadow;
use crate::catalogue::{Row, memory as rows, protocol};
use crate::finding::{Agent, Target};
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES, MemoryMap, bank_table};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::tensix::Processor;
use tilework_driver::{ArgumentsNote, BankNote, LaunchNote};

/// Where BRISC's first instruction is: the address of a pointer that is zero.
const NULL: Range<u32> = 0..4;

/// Bytes of a semaphore's place.
const SEMAPHORE: u32 = tilework_abi::L1_ALIGN;

impl CheckObserver {
    /// Somebody reads L1 of the own tile, whoever it is: where a pointer that is zero leads.
    #[inline]
    pub(super) fn reads_null(&mut self, actor: Actor, target: Target) {
        if target.addr < NULL.end.into() {
            let words = || ("reads through a pointer that is zero".to_owned(), None);
            self.reports.report(&rows::L1_NULL, actor, Some(target), words);
        }
    }

    /// A kernel writes to L1 of its own tile.
    #[inline]
    pub(super) fn write_l1(&mut self, tile: &mut Tile, core: Option<Processor>, actor: Actor, span: Span) {
        if core.is_some_and(|core| tile.cores[core.index()].owns(span)) {
            return self.write_cb(tile, core, actor, span, None);
        }
        if let Some(launch) = tile.launch.clone() {
            self.write_l1_of(tile, core, actor, span, &launch);
        }
    }

    /// A kernel of `launch` writes to L1 of any tile.
    pub(super) fn write_l1_of(
        &mut self,
        tile: &mut Tile,
        core: Option<Processor>,
        actor: Actor,
        span: Span,
        launch: &Arc<LaunchNote>,
    ) {
        let Some(firmware) = self.firmware.clone() else { return };
        let map = &firmware.map;
        if span.addr >= map.data.get() {
            self.data(tile, core, actor, span, launch, "writes");
            if core.is_some() {
                self.write_cb(tile, core, actor, span, Some(launch));
            }
            return;
        }
        let found = match tile.is_queue {
            true => Some((&rows::L1_FIRMWARE, "memory of the command queue".to_owned())),
            false => below_data(tile, map, span, launch),
        };
        if let Some((row, what)) = found {
            let target = Some(in_l1(tile.xy, span));
            self.reports.report(row, actor, target, || {
                (format!("writes {} at {:#x}, {what}", bytes(span.len.into()), span.addr), None)
            });
        }
    }

    /// A kernel reads L1 of its own tile: by itself or by what it has set off.
    #[inline]
    pub(super) fn read_l1(&mut self, tile: &mut Tile, core: Processor, actor: Actor, span: Span) {
        if tile.cores[core.index()].owns(span) {
            return self.read_cb(tile, actor, span);
        }
        let Some(map) = self.firmware.as_ref().map(|firmware| firmware.map) else { return };
        let Some(launch) = tile.launch.clone() else { return };
        if span.addr >= map.data.get() {
            self.data(tile, Some(core), actor, span, &launch, "reads");
            self.read_cb(tile, actor, span);
            return;
        }
        let what = match (NULL.contains(&span.addr), actor.agent) {
            (true, _) => Some((&rows::L1_NULL, "reads through a pointer that is zero".to_owned())),
            (false, Agent::Core(_)) if launch.config.contains(&span.addr) => {
                let past = past_arguments(tile, core, actor, span, &launch);
                if let (None, Some(code)) = (&past, actor.code) {
                    let is_semaphore = semaphores(&launch).contains(&span.addr);
                    self.may_know_loader(tile, core, (code.pc, span.addr, is_semaphore), actor.at);
                }
                past.map(|what| (&rows::ARGS_PAST_END, what))
            }
            _ => None,
        };
        if let Some((row, what)) = what {
            self.reports.report(row, actor, Some(in_l1(tile.xy, span)), || (what, None));
        }
    }

    /// An access to the space of buffers.
    fn data(
        &mut self,
        tile: &mut Tile,
        core: Option<Processor>,
        actor: Actor,
        span: Span,
        launch: &Arc<LaunchNote>,
        verb: &str,
    ) {
        let end = span.addr.saturating_add(span.len);
        let in_launch = tile.runs(launch) || launch.cores.contains(&tile.xy);
        let cbs = launch.cbs.iter().filter(|_| in_launch);
        let range =
            |cb: &tilework_driver::CbNote| cb.address..cb.address.saturating_add(cb.page_size.saturating_mul(cb.pages));
        let cb = cbs.clone().filter(|cb| range(cb).contains(&span.addr)).max_by_key(|cb| range(cb).end);
        let owned = match cb {
            Some(cb) if end <= range(cb).end => Ok(range(cb)),
            _ => {
                let kinds = [&rows::L1_PAST_BUFFER, &rows::L1_UNOWNED];
                let at = (u64::from(span.addr), u64::from(span.len));
                let found = self.outside(BankNote::Core(tile.xy), at, launch.number, kinds);
                match (found, cb.or_else(|| cbs.clone().find(|cb| range(cb).end == span.addr))) {
                    // Below 2^32, as L1 is.
                    (Ok(range), _) => Ok(range.start as u32..range.end as u32),
                    (Err(_), Some(cb)) => {
                        let past = bytes(u64::from(end - range(cb).end));
                        let name = &cb.name;
                        let words = format!("{past} past the end of circular buffer {name} in L1 of {}", tile.xy);
                        Err((kinds[0], words))
                    }
                    (Err(wrong), None) => Err(wrong),
                }
            }
        };
        match (owned, core) {
            (Ok(range), Some(core)) => tile.cores[core.index()].owned = range,
            (Ok(_), None) => {}
            (Err((row, what)), _) => {
                let target = Some(in_l1(tile.xy, span));
                self.reports.report(row, actor, target, || (format!("{verb} {what}"), None));
            }
        }
    }

    /// Somebody reads L1: reports a run of at least `least` bytes that nobody has written.
    #[inline]
    pub(super) fn check_written(&mut self, tile: &Tile, actor: Actor, span: Span, least: u32) {
        let Span { addr, len } = span;
        let gap = match actor.agent {
            Agent::Core(_) => {
                if tile.l1.any(addr.into(), len.into()) {
                    return;
                }
                Some((addr.into(), len.into()))
            }
            _ => tile.l1.gap(addr.into(), len.into(), least.into()),
        };
        if let Some((from, gap)) = gap {
            let target = Some(in_l1(tile.xy, Span { addr: from as u32, len: gap as u32 }));
            self.reports.report(&rows::L1_UNWRITTEN_READ, actor, target, || {
                (format!("reads {} at {from:#x} in L1 of {} that nobody has written", bytes(gap), tile.xy), None)
            });
        }
    }

    /// A write to a circular buffer of the program that runs, by a core of the tile or from
    /// elsewhere, for a program of the same tile or, if it is given, another one.
    pub(super) fn write_cb(
        &mut self,
        tile: &mut Tile,
        core: Option<Processor>,
        actor: Actor,
        span: Span,
        launch: Option<&Arc<LaunchNote>>,
    ) {
        let number = |launch: &Arc<LaunchNote>| launch.number;
        let same = launch.is_none_or(|launch| tile.launch.as_ref().map(number) == Some(launch.number));
        let Some(number) = alone(tile, span.addr).filter(|_| same) else { return };
        if let Some(wrong) = tile.cbs[number].write(core, actor, span.addr, span.len) {
            self.report_cb(tile, number, actor, Some(in_l1(tile.xy, span)), &wrong);
        }
    }

    /// A read from a circular buffer of the own tile.
    fn read_cb(&mut self, tile: &mut Tile, actor: Actor, span: Span) {
        let Some(number) = alone(tile, span.addr) else { return };
        if let Some(wrong) = tile.cbs[number].read(actor, span.addr, span.len) {
            self.report_cb(tile, number, actor, Some(in_l1(tile.xy, span)), &wrong);
        }
    }

    /// Reports what is wrong with circular buffer number `number` of the program.
    pub(super) fn report_cb(
        &mut self,
        tile: &Tile,
        number: usize,
        actor: Actor,
        target: Option<Target>,
        wrong: &Wrong,
    ) {
        let note = &tile.cbs[number].note;
        let (name, all) = (&note.name, note.pages);
        let (row, what): (&'static Row, String) = match wrong {
            Wrong::NotReserved { page, held } => (
                &rows::CB_PAGE_NOT_RESERVED,
                format!("writes page {page} of circular buffer {name}, of whose {all} pages {held} are the consumer's"),
            ),
            Wrong::NotAsked { page } => (
                &rows::CB_PAGE_NOT_RESERVED,
                format!("writes page {page} of circular buffer {name} and has not asked whether any page is free"),
            ),
            Wrong::NotReceived { page } => (
                &rows::CB_PAGE_NOT_RECEIVED,
                format!("reads page {page} of circular buffer {name}, which has not been waited for"),
            ),
            Wrong::Pushed { pages, room } => (
                &protocol::CB_PUSHED_TOO_MANY,
                format!("pushes {pages} pages into circular buffer {name}, which has room for {room} of {all}"),
            ),
            Wrong::Popped { pages, there } => (
                &protocol::CB_POPPED_TOO_MANY,
                format!("pops {pages} pages from circular buffer {name}, which holds {there}"),
            ),
        };
        self.reports.report(row, actor, target, || (what, None));
    }
}

/// The circular buffer at `addr`; none where two share their storage, of which either may be meant.
fn alone(tile: &Tile, addr: u32) -> Option<usize> {
    let mut all = tile.cbs.iter().enumerate().filter(|(_, cb)| cb.has(addr)).map(|(number, _)| number);
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// What is wrong with a write below the space of buffers.
fn below_data(tile: &Tile, map: &MemoryMap, span: Span, launch: &Arc<LaunchNote>) -> Option<(&'static Row, String)> {
    let end = span.addr.saturating_add(span.len);
    let meets = |range: &Range<u32>| span.addr < range.end && range.start < end;
    if meets(&NULL) {
        return Some((&rows::L1_NULL, "through a pointer that is zero".into()));
    }
    for kernel in tile.kernels(launch) {
        if meets(&kernel.text) {
            return Some((&rows::L1_TEXT, format!("the code of kernel {:?} of {}", kernel.name, kernel.processor)));
        }
    }
    if span.addr >= launch.config.start && end <= launch.config.end {
        return None;
    }
    let sized = |start: u32, bytes: u32| start..start.saturating_add(bytes);
    let areas = [
        ("launch messages", sized(map.launch.get(), LAUNCH_ENTRIES * LAUNCH_MSG_BYTES as u32)),
        ("go messages", sized(map.go.get(), 4 * GO_ENTRIES)),
        ("the bank table", sized(map.bank_table.get(), bank_table::BYTES)),
        ("kernel configurations", sized(map.kernel_config.get(), map.kernel_config_size)),
        ("kernel text", sized(map.text_cache.get(), map.text_cache_size)),
    ];
    let texts = map
        .firmware_text
        .iter()
        .zip(map.firmware_end)
        .map(|(text, end)| ("the firmware's code", text.get()..end.get()));
    let found = areas.into_iter().chain(texts).find(|(_, range)| meets(range));
    found.map(|(name, _)| (&rows::L1_FIRMWARE, format!("which are {name}")))
}

/// The arguments that a launch gives to a core.
fn arguments_of(launch: &LaunchNote, core: Processor) -> &ArgumentsNote {
    match core {
        Processor::Brisc => &launch.arguments[0],
        Processor::Ncrisc => &launch.arguments[1],
        _ => &launch.arguments[2],
    }
}

/// Where the semaphores of a launch are.
fn semaphores(launch: &LaunchNote) -> Range<u32> {
    launch.semaphores..launch.semaphores + SEMAPHORE * launch.semaphore_count
}

/// What a core of tile number `number` of a launch may read of its configuration: its own
/// arguments, and all others.
fn readable(launch: &LaunchNote, core: Processor, number: usize) -> (Range<u32>, [Range<u32>; 3]) {
    let arguments = arguments_of(launch, core);
    let others = [
        arguments.common..arguments.common + 4 * arguments.common_words,
        semaphores(launch),
        launch.cb_config..launch.cb_config + cb_bytes(launch),
    ];
    (arguments.unique..arguments.unique + 4 * arguments.words(number), others)
}

/// Whether a load of a kernel from its configuration goes past its arguments, in words.
fn past_arguments(tile: &mut Tile, core: Processor, actor: Actor, span: Span, launch: &LaunchNote) -> Option<String> {
    let arguments = arguments_of(launch, core);
    let (own, others) = readable(launch, core, tile.number);
    // Most loads: nothing of what follows is about them.
    if own.contains(&span.addr) {
        return None;
    }
    let given = (own.end - own.start) / 4;
    // What is reached from the first argument is one, whatever else lies there.
    let insn = tile.cores[core.index()].instruction(actor.code?.pc);
    let base = insn.map(|insn| span.addr.wrapping_sub_signed(insn.imm));
    let by_name = |unique: u32, given: u32| {
        base == Some(unique)
            && span.addr >= unique + 4 * given
            && others.iter().all(|r| r.is_empty() || r.start != unique)
    };
    let index = (span.addr.checked_sub(arguments.unique)? / 4) + 1;
    let words = || Some(format!("reads argument {} of {}; the program gives {given}", index - 1, core.name()));
    if by_name(arguments.unique, given) && given > 0 {
        return words();
    }
    if others.iter().any(|range| range.contains(&span.addr)) {
        return None;
    }
    let common = &others[0];
    // What lies right behind the common arguments is mostly meant to be one.
    if !common.is_empty() && span.addr >= common.end && own.end <= common.start {
        let (index, given) = ((span.addr - common.start) / 4, arguments.common_words);
        return Some(format!("reads common argument {index} of {}; the program gives {given}", core.name()));
    }
    words()
}

/// Bytes of the circular buffers' configurations.
fn cb_bytes(launch: &LaunchNote) -> u32 {
    launch.cbs.iter().map(|cb| (cb.index + 1) * tilework_abi::cb::CONFIG_BYTES as u32).max().unwrap_or(0)
}
