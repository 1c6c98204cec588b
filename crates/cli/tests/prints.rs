//! What kernels print, as a user sees it.

use crate::common;
use common::{Ended, folder, repository, run_example, tilework};
use std::path::Path;

/// The lines of kernels on standard error, without the cycles, which must not fall.
fn lines(ended: &Ended) -> Vec<String> {
    let mut last = 0;
    let mut out = Vec::new();
    for line in ended.stderr.lines() {
        if let Some(rest) = line.strip_prefix('[') {
            let (cycle, rest) = rest.split_once(' ').unwrap();
            let cycle: u64 = cycle.parse().unwrap();
            assert!(cycle >= last, "{line}");
            last = cycle;
            out.push(rest.to_owned());
        } else if line.starts_with("  ") {
            out.push(line.to_owned());
        }
    }
    out
}

/// The example with another limit for its assertion.
fn with_limit(folder: &Path, limit: &str) -> Ended {
    let text = std::fs::read_to_string(repository().join("examples/prints/program.toml")).unwrap();
    let changed = text.replace("\"x.pages\",    #", &format!("{limit},    #"));
    assert_ne!(changed, text);
    let program = folder.join("program.toml");
    std::fs::write(&program, changed).unwrap();
    let input = format!("x={}", repository().join("examples/prints/x.npy").display());
    let (program, out) = (program.display().to_string(), folder.display().to_string());
    tilework(&["run", &program, "--input", &input, "--out", &out, "--report", "json"])
}

#[test]
fn the_example_prints_what_its_page_says() {
    let out = folder();
    let ended = run_example("prints", out.path(), &[]).code(0);
    let readme = std::fs::read_to_string(repository().join("examples/prints/README.md")).unwrap();
    // Of the first core the page shows everything.
    let shown: Vec<&str> = readme.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    let lines = lines(&ended);
    let own = lines.iter().skip_while(|line| !line.starts_with("(1,2) ")).collect::<Vec<_>>();
    assert_eq!(lines.iter().filter(|line| line.contains("brisc prebuilt:prints]")).count(), 4 * 6, "{lines:#?}");
    let mut checked = 0;
    for expected in shown.iter().filter_map(|line| line.split_once("] ").map(|(_, text)| text)) {
        assert!(own.iter().any(|line| line.ends_with(expected)), "{expected:?} of {lines:#?}");
        checked += 1;
    }
    assert_eq!(checked, 6);
}

#[test]
fn the_report_has_the_lines_as_data() {
    let out = folder();
    let report = run_example("prints", out.path(), &["--report", "json", "--quiet"]).code(0);
    assert_eq!(report.stderr, "");
    let prints = &report.json()["prints"];
    assert_eq!((prints["missed"].as_u64(), prints["left_out"].as_u64()), (Some(0), Some(0)));
    let lines = prints["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 4 * 6);
    let first = &lines[0];
    assert_eq!((first["core"].as_str(), first["kernel"].as_str()), (Some("brisc"), Some("prebuilt:prints")));
    assert!(first["file"].as_str().unwrap().ends_with("prints/src/main.rs") && first["line"].as_u64().unwrap() > 20);
    assert!(lines.iter().any(|line| line["text"] == "round 1 of 0xc1a0c1a0: true"), "{lines:#?}");
    // Of a program without prints there is nothing to say.
    let none = run_example("increment", out.path(), &["--report", "json"]).code(0).json();
    assert!(none.get("prints").is_none());
}

#[test]
fn an_assertion_that_fails_ends_the_run_with_its_place() {
    let folder = folder();
    let ended = with_limit(folder.path(), "1").code(1);
    assert!(ended.stderr.contains("assertion failed: page < rta(ctx, 4): page 1 is not below 1"), "{}", ended.stderr);
    let error = &ended.json()["error"];
    assert_eq!((error["class"].as_str(), error["core"].as_str()), (Some("assertion"), Some("brisc")));
    assert_eq!(error["condition"], "page < rta(ctx, 4)");
    assert!(error["source_file"].as_str().unwrap().ends_with("prints/src/main.rs"));
    assert!(error["source_line"].as_u64().unwrap() > 20);
    assert!(error["prints"]["lines"].as_array().unwrap().len() > 6);
    // Three cores fail; the error is that of the first one, which depends on when they start.
    let first = ended.stderr.lines().find(|line| line.contains("] assertion failed: ")).unwrap();
    let (cycle, x, y) = (&error["cycle"], &error["tile"]["x"], &error["tile"]["y"]);
    assert!(first.starts_with(&format!("[{cycle} ({x},{y}) brisc ")), "{first}: {error}");
}

/// A kernel that prints as tt-metal's do (public `dprint.h`: records of type, size and payload,
/// then the new end; when there is no room it waits until the host has read everything).
const DPRINT: &str = r#"#include "tilework.h"

#define BUFFER (0x500 + 204 * 4) /* that of BRISC */
#define DATA (BUFFER + 12)

static void print(uint32_t type, const void *payload, uint32_t size)
{
    const uint8_t *bytes = payload;
    if (tw_load(BUFFER) == 0x98989898) tw_store(BUFFER, 0), tw_store(BUFFER + 4, 0);
    uint32_t wpos = tw_load(BUFFER);
    if (wpos + size + 2 >= 192) {
        while (tw_load(BUFFER + 4) < tw_load(BUFFER)) tw_fence();
        tw_store(BUFFER, 0);
        tw_store(BUFFER + 4, 0);
        wpos = 0;
    }
    volatile uint8_t *to = (volatile uint8_t *)(DATA + wpos);
    to[0] = type;
    to[1] = size;
    for (uint32_t i = 0; i < size; i++) to[2 + i] = bytes[i];
    tw_store(BUFFER, wpos + 2 + size);
}

void kernel_main(void)
{
    tw_context c = tw_begin();
    uint32_t lines = tw_arg(&c, 0);
    for (uint32_t i = 0; i < lines; i++) {
        print(0, "line ", 6);
        print(5, &i, 4);
        print(1, "", 1);
    }
    print(0, "the end", 8);
}
"#;

/// A kernel that prints as those of later tt-metal do (public `device_print.h`: one buffer of a
/// tile, a header with the number of the text, the kernel's number first, and a mark where the
/// buffer begins anew). The lock is left out: only this core prints.
const DEVICE_PRINT: &str = r#"#include "tilework.h"

#define BUFFER 0x500
#define DATA (BUFFER + 20)
#define ROOM 1000
#define BRISC_KERNEL 1

__asm__(".pushsection .device_print_strings,\"R\",@progbits\n"
        "text: .string \"line {0,I} of {1,H:>4}\\n\"\n"
        "file: .string \"kernels/shown.cpp\"\n"
        ".popsection\n"
        ".pushsection .device_print_strings_info,\"R\",@progbits\n"
        ".word text, file, 17, 0\n"
        ".popsection\n");

static uint32_t room(uint32_t bytes)
{
    uint32_t wpos = tw_load(BUFFER);
    if (wpos + bytes > ROOM) {
        tw_store(BUFFER, wpos | 0x80000000);
        while (tw_load(BUFFER + 4) == 0 || wpos < tw_load(BUFFER + 4)) tw_fence();
        if (wpos + 4 <= ROOM) tw_store(DATA + wpos, 0xffff0000);
        wpos = 0;
        tw_store(BUFFER, 0);
    } else if (wpos > tw_load(BUFFER + 4)) {
        return wpos;
    }
    tw_store(BUFFER, wpos | 0x80000000);
    while (wpos < tw_load(BUFFER + 4) && wpos + bytes >= tw_load(BUFFER + 4)) tw_fence();
    tw_store(BUFFER, wpos);
    return wpos;
}

static void word(uint32_t value)
{
    uint32_t wpos = tw_load(BUFFER);
    tw_store(DATA + wpos, value);
    tw_store(BUFFER, wpos + 4);
}

void kernel_main(void)
{
    tw_context c = tw_begin();
    uint32_t lines = tw_arg(&c, 0);
    const struct tw_binding b = __tilework_binding;
    uint32_t launch = b.launch + TW_LAUNCH_BYTES * tw_load(b.launch_rd_ptr);
    if (tw_load(BUFFER) != 0x98989898) return;
    tw_store(BUFFER + 4, 0);
    tw_store(BUFFER, 0);
    word(BRISC_KERNEL | 1023 << 6 | tw_load16(launch + 80) << 16);
    for (uint32_t i = 0; i < lines; i++) {
        uint32_t wpos = room(12);
        tw_store(DATA + wpos, BRISC_KERNEL | 8 << 6);
        tw_store(DATA + wpos + 4, i);
        tw_store(DATA + wpos + 8, lines);
        tw_store(BUFFER, wpos + 12);
    }
}
"#;

fn starts(program: &str) -> bool {
    let started = std::process::Command::new(program).arg("--version").output().is_ok();
    if !started {
        println!("skipped: {program} does not start");
    }
    started
}

/// Runs a kernel in C, which is called `name`, on two workers whose memory map has `values`; the
/// report.
fn run_in_c(name: &str, kernel: &str, values: &str, dispatch: &str) -> Option<serde_json::Value> {
    if !starts("make") || !starts("riscv64-unknown-elf-gcc") {
        return None;
    }
    let folder = folder();
    let sdk = folder.path().join("sdk");
    tilework(&["sdk", sdk.to_str().unwrap()]).code(0);
    let c = sdk.join("c");
    std::fs::write(c.join(format!("{name}.c")), kernel).unwrap();
    let elf = format!("build/{name}.elf");
    let made = std::process::Command::new("make").arg("-C").arg(&c).args([&elf, "CORE=brisc"]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let program =
        format!("name = \"d\"\n[[roles]]\nname = \"r\"\ncores = 2\n[roles.brisc]\nelf = \"{elf}\"\nargs = [300]\n");
    std::fs::write(c.join("program.toml"), program).unwrap();
    let firmware = folder.path().join("firmware");
    std::fs::create_dir(&firmware).unwrap();
    for name in ["brisc.elf", "ncrisc.elf", "trisc0.elf", "trisc1.elf", "trisc2.elf"] {
        std::fs::copy(repository().join("firmware/prebuilt").join(name), firmware.join(name)).unwrap();
    }
    std::fs::write(firmware.join("memory-map.toml"), format!("{values}\nkeeps_launch = true\n")).unwrap();
    let [program, out, firmware] =
        [c.join("program.toml"), c.join("out"), firmware].map(|path| path.display().to_string());
    let args = ["run", &program, "--out", &out, "--firmware", &firmware, "--dispatch", dispatch, "--report", "json"];
    Some(tilework(&args).code(0).json())
}

/// The lines of a worker.
fn lines_of(report: &serde_json::Value, y: u64) -> Vec<&serde_json::Value> {
    assert_eq!(report["prints"]["missed"], 0);
    let lines = report["prints"]["lines"].as_array().unwrap();
    lines.iter().filter(|line| line["x"] == 1 && line["y"] == y).collect()
}

#[test]
fn device_prints_of_the_field_s_kernels_are_shown_and_the_cores_go_on() {
    for dispatch in ["fast", "slow"] {
        let Some(report) = run_in_c("dprint", DPRINT, "dprint_buf = 0x500", dispatch) else { return };
        for y in [2, 3] {
            let own = lines_of(&report, y);
            assert!(own.iter().all(|line| line["core"] == "brisc" && line["kernel"] == "DPRINT"), "{dispatch}");
            let mut expected: Vec<String> = (0..300).map(|i| format!("line {i}")).collect();
            expected.push("the end".to_owned());
            let texts: Vec<_> = own.iter().map(|line| line["text"].as_str().unwrap()).collect();
            assert_eq!(texts, expected, "{dispatch}");
        }
    }
}

#[test]
fn device_prints_with_texts_in_the_file_name_kernel_and_line() {
    for dispatch in ["fast", "slow"] {
        let Some(report) = run_in_c("shown", DEVICE_PRINT, "device_print_buf = 0x500", dispatch) else { return };
        for y in [2, 3] {
            let own = lines_of(&report, y);
            assert!(own.iter().all(|line| line["core"] == "brisc" && line["line"] == 17), "{dispatch}");
            assert!(own.iter().all(|line| line["file"] == "kernels/shown.cpp"), "{dispatch}");
            assert!(own.iter().all(|line| line["kernel"].as_str().unwrap().ends_with("shown.elf")), "{dispatch}");
            let expected: Vec<String> = (0..300).map(|i| format!("line {i} of  300")).collect();
            let texts: Vec<_> = own.iter().map(|line| line["text"].as_str().unwrap()).collect();
            assert_eq!(texts, expected, "{dispatch}");
        }
    }
}

#[test]
fn device_prints_that_nobody_reads_are_named() {
    for dispatch in ["fast", "slow"] {
        let Some(report) = run_in_c("unheard", DEVICE_PRINT, "", dispatch) else { return };
        assert_eq!(report["prints"]["lines"], serde_json::json!([]), "{dispatch}");
        let unread = report["prints"]["unread"].as_array().unwrap();
        assert!(unread.len() == 1 && unread[0].as_str().unwrap().ends_with("unheard.elf"), "{dispatch}: {unread:?}");
        let Some(report) = run_in_c("heard", DEVICE_PRINT, "device_print_buf = 0x500", dispatch) else { return };
        assert_eq!(report["prints"]["unread"], serde_json::json!([]), "{dispatch}");
    }
}
