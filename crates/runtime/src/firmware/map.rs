//! The memory map of a set of firmware: found, completed and checked.
//!
//! Facts, "Worker L1", has the map of one generation. What depends on another address there depends
//! on it here too: the message structures on the mailbox, the staging areas and the bank table on
//! the kernel configuration. So a set that differs in one base needs one value.

use super::FirmwareError;
use crate::elf::Outline;
use std::ops::Range;
use tilework_abi::addr::L1Addr;
use tilework_abi::cb;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::DONE_STREAM;
use tilework_abi::l1::{GO_ENTRIES, LAUNCH_ENTRIES, LOW_END, MemoryMap, WORKER, bank_table, core_timing};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};
use tilework_prints::{device_print, metal};

/// The values of a memory map that the user gives; the others follow from the files and from the
/// original's map.
#[derive(serde::Deserialize, Clone, PartialEq, Eq, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct MapValues {
    /// See [`MemoryMap::mailbox`].
    pub mailbox: Option<u32>,
    /// See [`MemoryMap::launch`].
    pub launch: Option<u32>,
    /// See [`MemoryMap::keeps_launch`].
    pub keeps_launch: Option<bool>,
    /// See [`MemoryMap::go`].
    pub go: Option<u32>,
    /// See [`MemoryMap::go_index`].
    pub go_index: Option<u32>,
    /// See [`MemoryMap::profiler_control`].
    pub profiler_control: Option<u32>,
    /// See [`MemoryMap::dprint_buf`].
    pub dprint_buf: Option<u32>,
    /// See [`MemoryMap::device_print_buf`].
    pub device_print_buf: Option<u32>,
    /// See [`MemoryMap::kernel_config`].
    pub kernel_config: Option<u32>,
    /// See [`MemoryMap::kernel_config_size`].
    pub kernel_config_size: Option<u32>,
    /// See [`MemoryMap::bank_table`].
    pub bank_table: Option<u32>,
    /// See [`MemoryMap::text_cache`].
    pub text_cache: Option<u32>,
    /// See [`MemoryMap::text_cache_size`].
    pub text_cache_size: Option<u32>,
    /// See [`MemoryMap::data`].
    pub data: Option<u32>,
    /// See [`MemoryMap::cb_stream`].
    pub cb_stream: Option<u32>,
    /// See [`MemoryMap::local_init`].
    #[serde(default)]
    pub local_init: LocalInit,
}

/// Where the initialisers of each core's local data are staged.
#[derive(serde::Deserialize, Clone, PartialEq, Eq, Default, Debug)]
#[serde(deny_unknown_fields)]
pub struct LocalInit {
    /// Of BRISC.
    pub brisc: Option<u32>,
    /// Of NCRISC.
    pub ncrisc: Option<u32>,
    /// Of TRISC0.
    pub trisc0: Option<u32>,
    /// Of TRISC1.
    pub trisc1: Option<u32>,
    /// Of TRISC2.
    pub trisc2: Option<u32>,
}

impl LocalInit {
    fn of(&self, processor: Processor) -> Option<u32> {
        match processor {
            Processor::Brisc => self.brisc,
            Processor::Ncrisc => self.ncrisc,
            Processor::Trisc0 => self.trisc0,
            Processor::Trisc1 => self.trisc1,
            Processor::Trisc2 => self.trisc2,
        }
    }
}

/// Bytes of the mailbox's words in front of the messages (the original's `hw.py`: launch messages
/// begin 0x10 behind the mailbox base).
const MAILBOX_BYTES: u32 = WORKER.launch.get() - WORKER.mailbox.get();
const LAUNCH_BYTES: u32 = LAUNCH_ENTRIES * u32_of(LAUNCH_MSG_BYTES);
/// The largest kernel configuration space: offsets into it are 16 bits wide (launch message).
const MAX_CONFIG: u32 = 1 << 16;

/// The map of the files with these outlines.
pub(super) fn derive(outlines: &[Outline], file: &str, values: &MapValues) -> Result<MemoryMap, FirmwareError> {
    // Every sum stays in range: what is larger than L1 is refused first.
    for (field, value, _) in addresses(values) {
        if let Some(value) = value.filter(|&v| v >= L1_SIZE) {
            return Err(FirmwareError::map(
                file,
                field,
                format!("{value:#x}"),
                format!("an address in L1, below {L1_SIZE:#x}"),
            ));
        }
    }
    let or = |given: Option<u32>, usual| given.map_or(usual, L1Addr::new);
    // As far behind `base` as in the original's map.
    let behind = |base: L1Addr, usual: L1Addr, usual_base: L1Addr| base.offset(usual.get() - usual_base.get());
    let mailbox = or(values.mailbox, WORKER.mailbox);
    let behind_mailbox = |given, usual| or(given, behind(mailbox, usual, WORKER.mailbox));
    let kernel_config = or(values.kernel_config, WORKER.kernel_config);
    let behind_config = |given, usual| or(given, behind(kernel_config, usual, WORKER.kernel_config));
    let data = or(values.data, WORKER.data);
    let bank_table = behind_config(values.bank_table, WORKER.bank_table);
    let next = if bank_table > kernel_config { bank_table } else { data };
    let room = next.offset_from(kernel_config).unwrap_or(0).min(MAX_CONFIG);
    let mut map = MemoryMap {
        mailbox,
        launch: behind_mailbox(values.launch, WORKER.launch),
        keeps_launch: values.keeps_launch.unwrap_or(false),
        go: behind_mailbox(values.go, WORKER.go),
        go_index: behind_mailbox(values.go_index, WORKER.go_index),
        profiler_control: behind_mailbox(values.profiler_control, WORKER.profiler_control),
        prints: behind_mailbox(None, WORKER.prints),
        dprint_buf: values.dprint_buf.map(L1Addr::new),
        device_print_buf: values.device_print_buf.map(L1Addr::new),
        kernel_config,
        kernel_config_size: values.kernel_config_size.unwrap_or(room),
        bank_table,
        text_cache: or(values.text_cache, WORKER.text_cache),
        // What other firmware leaves free is not known unless its user says so.
        text_cache_size: values.text_cache_size.unwrap_or(0),
        data,
        cb_stream: values.cb_stream.unwrap_or(WORKER.cb_stream),
        ..WORKER
    };
    for (outline, processor) in outlines.iter().zip(Processor::ALL) {
        let i = processor.index();
        map.firmware_text[i] = L1Addr::new(outline.entry);
        // What the user gives; otherwise what the files' linker says; otherwise the original's map.
        map.local_init[i] = behind_config(values.local_init.of(processor).or(outline.staged_at), WORKER.local_init[i]);
        map.kernel_local[i] = outline.local.end;
    }
    for i in 0..map.firmware_end.len() {
        let start = map.firmware_text[i];
        let others = map.firmware_text.into_iter().chain([mailbox, kernel_config, bank_table, data]);
        map.firmware_end[i] = others.filter(|&other| other > start).min().unwrap_or(WORKER.data_end);
    }
    // Kernels of other firmware do not print this way; ours do where nothing else is.
    let prints = u64::from(map.prints.get())..u64::from(map.prints.get()) + u64::from(map.prints_size);
    let taken = |area: &Area| area.range.start < prints.end && prints.start < area.range.end;
    if prints.end > L1_SIZE.into() || areas(outlines, &map, file, values).iter().any(taken) {
        map.prints_size = 0;
    }
    Ok(map)
}

/// The values that are addresses in L1, with the alignment each must have.
fn addresses(values: &MapValues) -> Vec<(String, Option<u32>, u32)> {
    let mut out: Vec<(String, Option<u32>, u32)> = [
        ("mailbox", values.mailbox, L1_ALIGN),
        ("launch", values.launch, 4),
        ("go", values.go, 4),
        ("go_index", values.go_index, 4),
        ("profiler_control", values.profiler_control, L1_ALIGN),
        ("dprint_buf", values.dprint_buf, 4),
        ("device_print_buf", values.device_print_buf, 4),
        ("kernel_config", values.kernel_config, L1_ALIGN),
        ("bank_table", values.bank_table, 4),
        ("text_cache", values.text_cache, L1_ALIGN),
        ("data", values.data, DRAM_ALIGN),
    ]
    .map(|(field, value, align)| (field.to_owned(), value, align))
    .into();
    out.extend(Processor::ALL.map(|p| (staging_field(p), values.local_init.of(p), 4)));
    out
}

fn staging_field(processor: Processor) -> String {
    format!("local_init.{}", processor.name().to_lowercase())
}

/// A range of L1 that belongs to something.
struct Area {
    file: String,
    field: String,
    range: Range<u64>,
}

/// Checks the values, and that no two areas overlap.
pub(super) fn check(
    outlines: &[Outline],
    map: &MemoryMap,
    file: &str,
    values: &MapValues,
) -> Result<(), FirmwareError> {
    for (field, value, align) in addresses(values) {
        if let Some(value) = value.filter(|v| !v.is_multiple_of(align)) {
            return Err(FirmwareError::map(file, field, format!("{value:#x}"), format!("a multiple of {align}")));
        }
    }
    if let (Some(_), Some(buffer)) = (map.dprint_buf, map.device_print_buf) {
        let expected = "one of dprint_buf and device_print_buf: firmware has one form of device prints";
        return Err(FirmwareError::map(file, "device_print_buf", format!("{buffer}"), expected));
    }
    if map.cb_stream > DONE_STREAM - cb::COUNT {
        let expected = format!(
            "at most {}: {} circular buffers, and stream {DONE_STREAM} counts workers",
            DONE_STREAM - cb::COUNT,
            cb::COUNT
        );
        return Err(FirmwareError::map(file, "cb_stream", map.cb_stream, expected));
    }
    let size = map.kernel_config_size;
    if size == 0 || size > MAX_CONFIG {
        let expected = format!("1 to {MAX_CONFIG:#x} bytes: offsets into it have 16 bits");
        return Err(FirmwareError::map(file, "kernel_config_size", format!("{size:#x}"), expected));
    }
    let cache = map.text_cache_size;
    if cache > L1_SIZE || (cache > 0 && cache < size) {
        let expected = format!("0, or {size:#x} to {L1_SIZE:#x} bytes: room for the text of the largest program");
        return Err(FirmwareError::map(file, "text_cache_size", format!("{cache:#x}"), expected));
    }
    let areas = areas(outlines, map, file, values);
    for (i, area) in areas.iter().enumerate() {
        if area.range.end > L1_SIZE.into() {
            let expected = format!("an end at or below {L1_SIZE:#x}, that of L1");
            return Err(FirmwareError::map(&area.file, &area.field, show(&area.range), expected));
        }
        apart(area, &areas[..i])?;
    }
    // The initialisers are read before any kernel configuration is written.
    let mut staged = areas;
    staged.retain(|area| !area.field.starts_with("kernel_config"));
    for (outline, processor) in outlines.iter().zip(Processor::ALL) {
        let start = map.local_init[processor.index()].get();
        let given = values.local_init.of(processor).is_some();
        let range = u64::from(start)..u64::from(start) + u64::from(outline.local.end - outline.local.start);
        let area = Area { file: file.to_owned(), field: named(staging_field(processor), given), range };
        if area.range.end > L1_SIZE.into() {
            let expected = format!("an end at or below {L1_SIZE:#x}, that of L1");
            return Err(FirmwareError::map(&area.file, &area.field, show(&area.range), expected));
        }
        apart(&area, &staged)?;
        staged.push(area);
    }
    Ok(())
}

fn named(field: impl Into<String>, given: bool) -> String {
    let field = field.into();
    if given { field } else { format!("{field} (not given)") }
}

/// The areas that must not overlap.
fn areas(outlines: &[Outline], map: &MemoryMap, file: &str, values: &MapValues) -> Vec<Area> {
    let area = |file: &str, field: String, start: u32, bytes: u32| {
        let start = u64::from(start);
        Area { file: file.to_owned(), field, range: start..start + u64::from(bytes) }
    };
    let mut areas = vec![area("every map", "reset vector and scratch words".into(), 0, LOW_END)];
    for outline in outlines {
        for (field, range) in &outline.l1 {
            areas.push(area(&outline.file, field.clone(), range.start, range.end - range.start));
        }
    }
    let dprint_bytes = map.dprint_buf.map_or(0, |_| metal::BYTES);
    let device_print_bytes = map.device_print_buf.map_or(0, |_| device_print::BUFFER_BYTES);
    let of_map = [
        ("mailbox", values.mailbox, map.mailbox, MAILBOX_BYTES),
        ("launch", values.launch, map.launch, LAUNCH_BYTES),
        ("go", values.go, map.go, 4 * GO_ENTRIES),
        ("go_index", values.go_index, map.go_index, 4),
        ("profiler_control", values.profiler_control, map.profiler_control, 4 * core_timing::WORDS),
        ("dprint_buf", values.dprint_buf, map.dprint_buf.unwrap_or(map.data), dprint_bytes),
        ("device_print_buf", values.device_print_buf, map.device_print_buf.unwrap_or(map.data), device_print_bytes),
        ("kernel_config", values.kernel_config, map.kernel_config, map.kernel_config_size),
        ("bank_table", values.bank_table, map.bank_table, bank_table::BYTES),
        ("text_cache", values.text_cache, map.text_cache, map.text_cache_size),
        ("data", values.data, map.data, L1_SIZE - map.data.get()),
    ];
    // An area without bytes overlaps nothing.
    areas.extend(
        of_map
            .into_iter()
            .filter(|&(.., bytes)| bytes > 0)
            .map(|(field, given, start, bytes)| area(file, named(field, given.is_some()), start.get(), bytes)),
    );
    areas
}

fn show(range: &Range<u64>) -> String {
    format!("{:#x}..{:#x}", range.start, range.end)
}

/// Checks that `area` overlaps none of `others`.
fn apart(area: &Area, others: &[Area]) -> Result<(), FirmwareError> {
    let overlaps = |other: &&Area| area.range.start < other.range.end && other.range.start < area.range.end;
    match others.iter().find(overlaps) {
        None => Ok(()),
        Some(other) => {
            let expected = format!("no overlap with {} of {} at {}", other.field, other.file, show(&other.range));
            Err(FirmwareError::map(&area.file, &area.field, show(&area.range), expected))
        }
    }
}
