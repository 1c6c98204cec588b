//! The documents agree with the sources they describe.

use crate::common;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What follows `const` in the declaration of a constant that other modules see.
fn constant(line: &str) -> Option<&str> {
    line.strip_prefix("pub const ").or_else(|| line.strip_prefix("pub(crate) const "))
}

/// The table of a timing file: every constant that other modules see, with its value and its
/// documentation.
fn table(source: &str) -> String {
    let mut out = String::from("| name | value | what it is, and its source |\n|---|---|---|\n");
    let mut doc = String::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if let Some(text) = line.strip_prefix("///") {
            write!(doc, "{text}").unwrap();
        } else if let Some(rest) = constant(line).filter(|rest| !rest.starts_with("fn ")) {
            let mut rest = rest.to_owned();
            while !rest.ends_with(';') {
                rest += lines.next().expect("a constant ends with a semicolon").trim();
            }
            let (name, value) = rest.split_once(':').expect("a constant has a type");
            let (_, value) = value.split_once('=').expect("a constant has a value");
            let value = value.trim().trim_end_matches(';');
            let text = doc.trim().replace("[`", "`").replace("`]", "`").replace('|', "\\|");
            writeln!(out, "| `{name}` | `{value}` | {text} |").unwrap();
        } else {
            doc.clear();
        }
        if constant(line).is_some() {
            doc.clear();
        }
    }
    out
}

/// With `TILEWORK_BLESS=1` the test writes the tables instead of comparing them.
#[test]
fn every_constant_of_the_timing_models_is_in_its_page() {
    for (page, files) in [
        (
            "docs/timing.md",
            &["crates/sim/src/timing.rs", "crates/riscv/src/timing.rs", "crates/runtime/src/queue/timing.rs"][..],
        ),
        ("docs/pto.md", &["crates/pto/src/timing.rs"]),
    ] {
        let path = repository().join(page);
        let found = std::fs::read_to_string(&path).unwrap();
        let mut expected = found.clone();
        for file in files {
            let source = std::fs::read_to_string(repository().join(file)).unwrap();
            let (begin, end) = (format!("<!-- begin {file} -->\n"), format!("<!-- end {file} -->"));
            let start = expected.find(&begin).expect("the page has the table's start") + begin.len();
            let stop = expected.find(&end).expect("the page has the table's end");
            let table = table(&source);
            assert!(table.lines().count() > 5, "{file} has no constants");
            expected.replace_range(start..stop, &table);
        }
        if std::env::var_os("TILEWORK_BLESS").is_some() {
            std::fs::write(&path, expected).unwrap();
        } else {
            assert!(
                found == expected,
                "{page} is stale: TILEWORK_BLESS=1 cargo test -p tilework-cli --test end_to_end docs"
            );
        }
    }
}

/// As above, for the list of documented bugs.
#[test]
fn every_documented_bug_is_in_its_page() {
    let path = repository().join("docs/card.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let mut table = String::from("| name | what the chip does | page |\n|---|---|---|\n");
    for bug in tilework_sim::Bug::ALL {
        writeln!(table, "| `{bug}` | {} | {} |", bug.what(), bug.page()).unwrap();
    }
    let (begin, end) = ("<!-- begin bugs -->\n", "<!-- end bugs -->");
    let start = found.find(begin).expect("the page has the table's start") + begin.len();
    let stop = found.find(end).expect("the page has the table's end");
    let mut expected = found.clone();
    expected.replace_range(start..stop, &table);
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert!(
            found == expected,
            "docs/card.md is stale: TILEWORK_BLESS=1 cargo test -p tilework-cli --test end_to_end docs"
        );
    }
}

/// As above, for the steps of programs.
#[test]
fn every_step_of_programs_is_in_its_page() {
    use tilework_abi::eltwise::{Function, image};
    let path = repository().join("docs/kernels.md");
    let found = std::fs::read_to_string(&path).unwrap();
    let mut table =
        String::from("| number | name | slots | numbers | images | what it is |\n|---|---|---|---|---|---|\n");
    for &function in Function::ALL {
        let images =
            [(image::FUNCTIONS, "`functions`"), (image::SPECIAL, "`special`"), (image::INTEGERS, "`integers`")];
        let in_some: Vec<_> =
            images.into_iter().filter(|(bit, _)| function.images() & bit != 0).map(|(_, name)| name).collect();
        let images = if in_some.len() == images.len() { "all".to_owned() } else { in_some.join(", ") };
        let (number, name, kind) = (function as u32, function.name(), function.kind());
        writeln!(table, "| {number} | `{name}` | {kind:?} | {} | {images} | {} |", function.numbers(), function.text())
            .unwrap();
    }
    let (begin, end) = ("<!-- begin steps -->\n", "<!-- end steps -->");
    let start = found.find(begin).expect("the page has the table's start") + begin.len();
    let stop = found.find(end).expect("the page has the table's end");
    let mut expected = found.clone();
    expected.replace_range(start..stop, &table);
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, expected).unwrap();
    } else {
        assert!(
            found == expected,
            "docs/kernels.md is stale: TILEWORK_BLESS=1 cargo test -p tilework-cli --test end_to_end docs"
        );
    }
}

#[test]
fn the_documents_link_only_to_files_that_exist() {
    let root = repository();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("CHANGELOG.md")];
    for folder in [
        "docs",
        "examples/increment",
        "examples/mlp",
        "examples/pipeline",
        "examples/ring",
        "examples/rings",
        "examples/wrong",
    ] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "md") {
                pages.push(path);
            }
        }
    }
    assert!(pages.len() >= 10);
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        for (_, after) in text.match_indices("](").map(|(i, m)| text.split_at(i + m.len())) {
            let target = after.split([')', '#']).next().unwrap();
            if target.is_empty() || target.starts_with("http") {
                continue;
            }
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{} links to {target}, which does not exist", page.display());
        }
    }
}

#[test]
fn the_programs_in_the_documents_are_those_of_the_examples() {
    let page = std::fs::read_to_string(repository().join("docs/program.md")).unwrap();
    let example = std::fs::read_to_string(repository().join("examples/increment/program.toml")).unwrap();
    let block =
        page.lines().skip_while(|l| !l.starts_with("    ")).take_while(|l| l.is_empty() || l.starts_with("    "));
    let shown: toml::Table = block.collect::<Vec<_>>().join("\n").parse().unwrap();
    let example: toml::Table = example.parse().unwrap();
    assert!(shown.contains_key("roles"));
    assert_eq!(shown, example);
}

#[test]
fn the_linker_script_in_the_documents_has_the_addresses_of_the_kernels() {
    use tilework_abi::kernel::{KERNEL_LINK_BASE, KERNEL_LOCAL_DM, KERNEL_LOCAL_TRISC, kernel_local_end};
    use tilework_abi::tensix::Processor;
    let page = std::fs::read_to_string(repository().join("docs/program.md")).unwrap();
    for part in [
        format!(". = {KERNEL_LINK_BASE:#x};"),
        format!(". = 0x{KERNEL_LOCAL_DM:X};"),
        format!("ASSERT(__bss_end <= 0x{:X},", kernel_local_end(Processor::Brisc)),
        format!("0x{:X} on the TRISCs", kernel_local_end(Processor::Trisc0)),
    ] {
        assert!(page.contains(&part), "docs/program.md does not have {part}");
    }
    assert_eq!(KERNEL_LOCAL_DM, KERNEL_LOCAL_TRISC, "the page names one start for all cores");
}

#[test]
fn the_budget_of_cycles_in_the_documents_is_the_one_of_the_device() {
    let config = tilework_runtime::DeviceConfig::new(tilework_abi::board::Board::P100);
    assert_eq!(config.max_cycles, None);
    let usual = [tilework_runtime::default_cycles([1]), tilework_runtime::default_cycles([1 << 20])];
    assert_eq!(usual, [12_000_000_000, 100_000_000]);
    for file in ["README.md", "docs/report.md", "crates/cli/src/program/args.rs"] {
        let text = std::fs::read_to_string(repository().join(file)).unwrap();
        let named = text.contains("12 billion") && text.contains("100 million");
        assert!(named, "{file} does not name the budget");
    }
}

#[test]
fn the_report_page_names_every_key_of_the_report() {
    let page = std::fs::read_to_string(repository().join("docs/report.md")).unwrap();
    let source = std::fs::read_to_string(repository().join("crates/cli/src/program/report.rs")).unwrap();
    let report = source.split("pub struct KernelReport {").nth(1).and_then(|s| s.split("\n}").next()).unwrap();
    let keys: Vec<_> =
        report.lines().filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(':')).map(|k| k.0).collect();
    assert!(keys.len() >= 15, "{keys:?}");
    for key in keys {
        assert!(page.contains(&format!("`{key}`")), "docs/report.md does not name {key}");
    }
}

/// The indented block of a page that begins with this line.
fn block(page: &str, first: &str) -> String {
    let rest = page.lines().skip_while(|l| l.strip_prefix("    ") != Some(first));
    let block = rest.take_while(|l| l.is_empty() || l.starts_with("    "));
    let text: Vec<&str> = block.map(|l| l.strip_prefix("    ").unwrap_or(l)).collect();
    assert!(!text.is_empty(), "no block begins with {first}");
    text.join("\n")
}

#[test]
fn the_kernel_in_the_documents_compiles_and_gives_what_the_page_says() {
    let page = std::fs::read_to_string(repository().join("docs/program.md")).unwrap();
    let command = block(&page, "riscv64-unknown-elf-gcc -march=rv32im -mabi=ilp32 -O2 -g -ffreestanding -nostdlib \\");
    let words: Vec<&str> = command.split_whitespace().filter(|w| *w != "\\").collect();
    if let Err(e) = std::process::Command::new(words[0]).arg("--version").output() {
        eprintln!("skipped: {} does not start ({e})", words[0]);
        return;
    }
    let folder = common::folder();
    for (name, first) in
        [("kernel.ld", "ENTRY(_start)"), ("kernel.c", "#include <stdint.h>"), ("program.toml", "name = \"c-kernel\"")]
    {
        std::fs::write(folder.path().join(name), block(&page, first)).unwrap();
    }
    let built = std::process::Command::new(words[0]).args(&words[1..]).current_dir(folder.path()).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let outside = std::env::var("TILEWORK_BH_FIRMWARE").ok();
    let more: Vec<Vec<&str>> = vec![vec![], outside.iter().flat_map(|f| ["--firmware", f.as_str()]).collect()];
    for more in more {
        let (program, out) = (folder.path().join("program.toml"), folder.path().join("out"));
        let mut args = vec!["run", program.to_str().unwrap(), "--out", out.to_str().unwrap()];
        args.extend(more);
        common::tilework(&args).code(0);
        let (shape, y) = common::read_npy::<u32>(&out.join("y.npy"));
        let expected: Vec<u32> = (0..16).map(|i| 3 * i + 1).collect();
        assert_eq!((shape, y), (vec![16], expected));
    }
}

#[test]
fn the_memory_map_in_the_documents_has_every_key_and_the_usual_values() {
    use tilework_abi::l1::WORKER;
    let page = std::fs::read_to_string(repository().join("docs/program.md")).unwrap();
    let source = std::fs::read_to_string(repository().join("crates/runtime/src/firmware/map.rs")).unwrap();
    let values = source.split("pub struct MapValues {").nth(1).and_then(|s| s.split("\n}").next()).unwrap();
    let keys: Vec<_> = values.lines().filter_map(|l| l.trim().strip_prefix("pub ")?.split_once(':')).collect();
    assert!(keys.len() >= 10, "{keys:?}");
    for (key, _) in keys {
        assert!(page.contains(&format!("| `{key}")), "docs/program.md does not name {key}");
    }
    let m = WORKER;
    for default in [
        format!("| {} |", m.mailbox),
        format!("| `mailbox` + {:#x} |", m.launch.get() - m.mailbox.get()),
        format!("| `mailbox` + {:#x} |", m.go.get() - m.mailbox.get()),
        format!("| `mailbox` + {:#x} |", m.go_index.get() - m.mailbox.get()),
        format!("| `mailbox` + {:#x} |", m.profiler_control.get() - m.mailbox.get()),
        format!("| 0x{:X} |", m.kernel_config.get()),
        format!("| `kernel_config` + {:#x} |", m.bank_table.get() - m.kernel_config.get()),
        format!("| {} |", m.data),
        format!("| {} |", m.cb_stream),
    ] {
        assert!(page.contains(&default), "docs/program.md does not have {default}");
    }
}

#[test]
fn the_program_of_the_readme_is_that_of_the_runtime_s_page_which_is_tested() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a program");
    let page = std::fs::read_to_string(repository().join("crates/runtime/src/lib.rs")).unwrap();
    let tested = page.split("//! ```\n").nth(1).expect("a program on the crate's page");
    let lines: Vec<&str> = tested
        .lines()
        .map(|line| line.strip_prefix("//! ").unwrap_or_default())
        .filter(|line| !line.starts_with("# "))
        .collect();
    assert_eq!(shown.trim_end(), lines.join("\n").trim_end());
}

#[test]
fn the_requests_in_the_documents_are_those_of_the_registers() {
    use tilework_abi::noc::{self, atomic, counter, ctrl, init, vc};
    use tilework_abi::{cb, l1, stream};
    let page = std::fs::read_to_string(repository().join("docs/program.md")).unwrap();
    let channel = ctrl::VC_STATIC | vc::UNICAST << ctrl::STATIC_VC_SHIFT;
    let answered = ctrl::RESP_MARKED | channel;
    let at = |index: usize| noc::COUNTERS + 4 * u32::try_from(index).unwrap();
    for part in [
        format!("0x{:X} for NoC 0 and at 0x{:X} for NoC 1", noc::niu_base(0), noc::niu_base(1)),
        format!("initiators, 0x{:X} bytes apart", noc::CMD_BUF_STRIDE),
        format!(
            "| 0x{:02X}, 0x{:02X}, 0x{:02X} | `NOC_TARG_ADDR_LO`",
            init::TARG_ADDR_LO,
            init::TARG_ADDR_MID,
            init::TARG_ADDR_HI
        ),
        format!(
            "| 0x{:02X}, 0x{:02X}, 0x{:02X} | `NOC_RET_ADDR_LO`",
            init::RET_ADDR_LO,
            init::RET_ADDR_MID,
            init::RET_ADDR_HI
        ),
        format!("| 0x{:X} | `NOC_PACKET_TAG` | transaction id (0 to 15) << {}", init::PACKET_TAG, noc::TAG_TRID_SHIFT),
        format!("| 0x{:X} | `NOC_CTRL` | 0x{:X} |", init::CTRL, ctrl::CMD_RD | answered),
        format!("0x{:X}; without an answer (\"posted\") 0x{:X}", ctrl::CMD_WR | answered, ctrl::CMD_WR | channel),
        format!("| 0x{:X} | `NOC_AT_LEN_BE` | bytes, 1 to {} |", init::AT_LEN_BE, noc::MAX_PACKET_BYTES),
        format!("| 0x{:X} | `NOC_AT_DATA`", init::AT_DATA),
        format!("| 0x{:X} | `NOC_CMD_CTRL`", init::CMD_CTRL),
        format!("`NOC_ID_LOGICAL` (0x{:X})", noc::ID_LOGICAL),
        format!("| 0x{:X} | `NIU_MST_ATOMIC_RESP_RECEIVED`", at(counter::MST_ATOMIC_RESP_RECEIVED)),
        format!("| 0x{:X} | `NIU_MST_WR_ACK_RECEIVED`", at(counter::MST_WR_ACK_RECEIVED)),
        format!("| 0x{:X} | `NIU_MST_RD_RESP_RECEIVED`", at(counter::MST_RD_RESP_RECEIVED)),
        format!("| 0x{:X} | `NIU_MST_NONPOSTED_WR_REQ_SENT`", at(counter::MST_NONPOSTED_WR_REQ_SENT)),
        format!("| 0x{:X} | `NIU_MST_POSTED_WR_REQ_SENT`", at(counter::MST_POSTED_WR_REQ_SENT)),
        format!("| 0x{:X} + 4 i | `NIU_MST_REQS_OUTSTANDING_ID`", at(counter::MST_REQS_OUTSTANDING_ID)),
        format!("pages received at 0x{:X} + 0x{:X} s", cb::received_addr(0, 0), stream::STRIDE),
        format!("pages acknowledged at 0x{:X} + 0x{:X} s", cb::acked_addr(0, 0), stream::STRIDE),
        format!("`NOC_CTRL`\n0x{:X}, target", ctrl::CMD_AT | answered),
        format!("`NOC_AT_LEN_BE` 0x{:X} +", atomic::incr32(0)),
        format!("return address {} (a word", l1::ATOMIC_RETURN),
    ] {
        assert!(page.contains(&part), "docs/program.md does not have {part}");
    }
}
