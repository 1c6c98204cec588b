//! `tilework check` and `show` of kernel programs: where everything lies, and everything that is
//! wrong, without running anything.

use crate::common;
use common::{Ended, example, example_input, files, folder, run_text, tilework};
use serde_json::{Value, json};
use std::path::Path;

/// Checks or shows a program file of the test's own.
fn of_text(verb: &str, folder: &Path, text: &str, more: &[&str]) -> Ended {
    let file = folder.join("program.toml");
    std::fs::write(&file, text).unwrap();
    tilework(&[&[verb, file.to_str().unwrap()], more].concat())
}

#[test]
fn a_program_is_shown_with_its_places_in_l1_and_dram_and_its_arguments() {
    let pipeline = example("pipeline").display().to_string();
    let ended = tilework(&["show", &pipeline]).code(0);
    for line in [
        "  circular buffer 0 \"tiles\": 4 x 2048 bytes\n",
        "    arguments of ncrisc on (1, 2): 64 0 5 2048 0\n",
        "    arguments of brisc on (1, 3): 0x3040 5 5 2048 0\n",
        "    and on 4 more cores (--report json has them)\n",
        "\nDRAM, each bank\n",
        "  0x00000040  0x00003040     12288  buffer x, its share of each of 7 banks\n",
        "\nL1 of each core\n",
        "arguments of ncrisc\n",
        "kernel prebuilt:reader of ncrisc, role copy\n",
        "  0x00037000  0x00039000      8192  circular buffer 0 \"tiles\"\n",
    ] {
        assert!(ended.stdout.contains(line), "{line:?} is missing in\n{}", ended.stdout);
    }
    let report = tilework(&["show", &pipeline, "--report", "json"]).code(0).json();
    let kernel = &report["roles"][0]["kernels"][0];
    assert_eq!((&kernel["core"], &kernel["arguments"][7]), (&json!("brisc"), &json!([12352, 33, 4, 2048, 0])));
    assert_eq!(report["circular_buffers"][0]["name"], "tiles");
    assert_eq!((&report["buffers"][1]["name"], &report["buffers"][1]["address"]), (&json!("y"), &json!(0x3040)));
    let l1 = report["l1"].as_array().unwrap();
    let text = l1.iter().find(|row| row["start"] == kernel["address"]).unwrap();
    assert_eq!(text["end"].as_u64().unwrap() - text["start"].as_u64().unwrap(), kernel["bytes"].as_u64().unwrap());
    assert!(l1.windows(2).all(|rows| rows[0]["start"].as_u64() <= rows[1]["start"].as_u64()), "by address");
}

#[test]
fn the_memory_map_shows_owners_and_what_is_free() {
    let pipeline = example("pipeline").display().to_string();
    let text = tilework(&["show", &pipeline, "--memory"]).code(0).stdout;
    for line in [
        "pipeline on a p100\n",
        "\nL1 of each of 118 workers: 1347584 bytes for buffers, 1339392 free, 1339392 of them in one piece\n",
        "  0x00000000  0x00000004           4  reset vector: a jump to the BRISC firmware\n",
        "kernel prebuilt:reader of ncrisc, role copy\n",
        "  0x00037000  0x00039000        8192  circular buffer 0 \"tiles\"\n",
        "  0x00039000  0x00180000     1339392  free\n",
        "\nDRAM, each of 7 banks: 4294967232 bytes for buffers, ",
        "  0x00000000  0x00000040          64  flags of a host's barrier\n",
        "  0x00000040  0x00003040       12288  buffer x, its share of each of 7 banks\n",
    ] {
        assert!(text.contains(line), "{line:?} is missing in\n{text}");
    }
    // On another board there are other numbers of banks.
    let p150 = tilework(&["show", &pipeline, "--memory", "--board", "p150"]).code(0).stdout;
    assert!(p150.contains("L1 of each of 138 workers") && p150.contains("DRAM, each of 8 banks"), "{p150}");
}

/// The JSON form covers both memories: what is free and what is owned add up, and the rows are
/// those that the program is shown with.
#[test]
fn the_memory_map_adds_up() {
    for name in ["pipeline", "ring", "increment"] {
        let (program, array) = (example(name).display().to_string(), example_input(name));
        let input = if name == "increment" { vec!["--input", &array] } else { vec![] };
        let show = |more: &[&str]| tilework(&[&["show", &program, "--json"], &input[..], more].concat()).code(0).json();
        let (map, plain) = (show(&["--memory"]), show(&[]));
        assert_eq!((&map["program"], &map["board"]), (&plain["program"], &plain["board"]));
        let memories = map["memory"].as_array().unwrap();
        assert_eq!(memories.iter().map(|m| m["name"].as_str().unwrap()).collect::<Vec<_>>(), ["l1", "dram"]);
        for memory in memories {
            let number = |value: &Value, key: &str| value[key].as_u64().unwrap();
            let (start, end) = (number(memory, "start"), number(memory, "end"));
            let rows = memory["ranges"].as_array().unwrap();
            assert!(rows.iter().all(|row| number(row, "end") - number(row, "start") == number(row, "bytes")));
            assert!(rows.windows(2).all(|pair| number(&pair[0], "start") <= number(&pair[1], "start")), "by address");
            // The space of buffers is covered without a gap and nothing in it lies on anything
            // else.
            let inside: Vec<_> = rows.iter().filter(|row| start <= number(row, "start")).collect();
            assert_eq!(number(inside[0], "start"), start);
            assert!(inside.windows(2).all(|pair| number(pair[0], "end") == number(pair[1], "start")), "{memory}");
            assert_eq!(number(inside[inside.len() - 1], "end"), end);
            let free: Vec<u64> =
                inside.iter().filter(|row| row["owner"].is_null()).map(|row| number(row, "bytes")).collect();
            assert_eq!(number(memory, "free"), free.iter().sum::<u64>());
            assert_eq!(number(memory, "largest_free_block"), free.iter().copied().max().unwrap_or(0));
            for row in plain[memory["name"].as_str().unwrap()].as_array().unwrap() {
                let same = |other: &&Value| {
                    (&other["start"], &other["end"], &other["owner"]) == (&row["start"], &row["end"], &row["what"])
                };
                assert!(rows.iter().any(|other| same(&other)), "{row} is missing");
            }
        }
    }
}

#[test]
fn a_memory_map_of_what_does_not_fit_says_who_has_the_space() {
    let folder = folder();
    let text = "name = \"t\"\n[buffers.large]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [1000000]\npage_size = 64\nlocation = \"l1\"\n\
        [buffers.more]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [1000000]\npage_size = 64\nlocation = \"l1\"\n\
        [[roles]]\nname = \"idle\"\ncores = 1\nbrisc = { elf = \"prebuilt:spin\", args = [\"large.addr\"] }\n";
    let ended = of_text("show", folder.path(), text, &["--memory"]).code(2);
    let ended = ended.says("L1 overflow: more needs ");
    ended.says("large (");
}

/// The places that are shown are those of a run: the ring's kernels are given their own addresses.
#[test]
fn shown_addresses_are_those_of_a_run() {
    let folder = folder();
    let text = "name = \"t\"\n[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n\
        [[roles]]\nname = \"idle\"\ncores = 1\nbrisc = { elf = \"prebuilt:spin\", args = [\"word.addr\"] }\n";
    let shown = of_text("show", folder.path(), text, &["--json"]).code(0).json();
    let address = shown["buffers"][0]["address"].as_u64().unwrap();
    assert_eq!(shown["roles"][0]["kernels"][0]["arguments"], json!([[address]]));
    let ran = run_text(folder.path(), text, &["--report", "json"]).code(1).json();
    let waiting = ran["error"]["waiting"].as_array().unwrap();
    let spin = waiting.iter().find(|core| core["runs"].as_str().unwrap().contains("spin")).unwrap();
    assert_eq!(spin["words"][0]["address"], json!(address), "{ran}");
}

const WRONG: &str = "name = \"t\"
[buffers.a]
use = \"scratch\"
dtype = \"u32\"
shape = [1]
page_size = 48
[buffers.b]
use = \"output\"
like = \"a\"
page_size = 64
[buffers.big]
use = \"scratch\"
dtype = \"u8\"
shape = [2000000]
page_size = 64
location = \"l1\"
[[cb]]
name = \"in\"
index = 32
pages = 0
page_size = 24
[[roles]]
name = \"one\"
cores = [[1, 2]]
brisc = { elf = \"prebuilt:nothing\", args = [\"a.addr\", \"big.adr\", \"cb.in\", \"core.z\"] }
[[roles]]
name = \"two\"
cores = [[1, 2]]
ncrisc = { elf = \"prebuilt:spin\", args = [\"1 +\"] }
";

#[test]
fn everything_wrong_is_told_at_once() {
    let folder = folder();
    let ended = of_text("check", folder.path(), WRONG, &[]).code(2);
    let told = |ended: &Ended| -> Vec<String> {
        let lines = ended.stderr.lines().filter_map(|line| line.split_once("program.toml:"));
        lines.map(|(_, rest)| rest.to_owned()).collect()
    };
    let expected = [
        "6:13: buffer \"a\": page_size is 48; expected a multiple of 64",
        "11:10: L1 overflow: big needs 2000000 bytes",
        "19:9: the index of a circular buffer is 32; expected 0 to 31",
        "20:9: pages of a circular buffer is 0; expected 1 to 65535",
        "21:13: page_size of a circular buffer is 24; expected a multiple of 16",
        "25:17: BRISC: no prebuilt kernel is named \"nothing\"",
        "25:56: role \"one\", BRISC, args[1]: unknown name \"big.adr\"",
        "25:76: role \"one\", BRISC, args[3]: unknown name \"core.z\"",
        "28:9: core (1, 2) of role \"two\" already belongs to role \"one\"",
        "29:47: the expression ends too early",
    ];
    let lines = told(&ended);
    assert_eq!(lines.len(), expected.len(), "{}", ended.stderr);
    for (line, expected) in lines.iter().zip(expected) {
        assert!(line.starts_with(expected), "found {line}\nexpected {expected}");
    }
    assert_eq!(ended.stdout, "");
    // As data, each with its place; and `show` says the same.
    let report = of_text("check", folder.path(), WRONG, &["--report", "json"]).code(2).json();
    let findings = report["error"]["findings"].as_array().unwrap();
    assert_eq!((findings.len(), &findings[2]["line"], &findings[2]["column"]), (10, &json!(19), &json!(9)));
    assert_eq!(of_text("show", folder.path(), WRONG, &[]).code(2).stderr, ended.stderr);
    // A run refuses it as well, before it makes anything.
    run_text(folder.path(), WRONG, &[]).code(2).says("6:13").says("29:47");
    assert_eq!(files(&folder.path().join("out")), [""; 0]);
}

#[test]
fn mistakes_of_form_in_several_places_are_told_at_once() {
    let text = "name = 3\nextra = 1\n[buffers.a]\nuse = \"skratch\"\npage_size = 64\n[buffers.b]\nuse = \"output\"\ndtype = \"u8\"\n\
        shape = [1]\npage_size = 65\n[[cb]]\nindx = 1\npages = 1\npage_size = 16\n[[semaphores]]\ninitial = \"x\"\n\
        [[roles]]\ncores = \"most\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:spin\", args = [\"a.addr\", \"cb.x\", \"sem.y\", \"z\"] }\n";
    let folder = folder();
    let report = of_text("check", folder.path(), text, &["--json"]).code(2).json();
    let findings = report["error"]["findings"].as_array().unwrap();
    let places: Vec<&Value> = findings.iter().map(|finding| &finding["line"]).collect();
    // What only follows from another mistake is left out: the uses of a, cb.x and sem.y.
    assert_eq!(places, [1, 2, 4, 10, 12, 16, 18, 21], "{report}");
    assert!(findings[7]["message"].as_str().unwrap().contains("unknown name \"z\""), "{report}");
    // A text that is no TOML has all its errors.
    let report = of_text("check", folder.path(), "a = \nb = [1\nc == 2\n", &["--json"]).code(2).json();
    assert!(report["error"]["findings"].as_array().is_some_and(|all| all.len() >= 2), "{report}");
}

#[test]
fn a_buffer_or_a_circular_buffer_that_overflows_l1_has_its_line() {
    let role = "[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let l1 = "[buffers.big]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [1000000]\npage_size = 64\nlocation = \"l1\"\n";
    let cb = "[[cb]]\nname = \"in\"\nindex = 5\npages = 200\npage_size = 4096\n";
    let folder = folder();
    for (text, place) in [
        (format!("name = \"t\"\n{}{role}", l1.replace("1000000", "2000000")), "program.toml:2:10: L1 overflow: big"),
        (format!("name = \"t\"\n{l1}{cb}{role}"), "program.toml:8:1: L1 overflow: circular buffer 5 \"in\" of t"),
    ] {
        of_text("check", folder.path(), &text, &[]).code(2).says(place);
        run_text(folder.path(), &text, &[]).code(2).says(place);
    }
}

/// Kernels that cannot be used have their place, too, all of them.
#[test]
fn kernels_that_cannot_be_used_are_told_with_their_lines() {
    let folder = folder();
    std::fs::write(folder.path().join("bad.elf"), b"no ELF file").unwrap();
    let text =
        "name = \"t\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"bad.elf\" }\nncrisc = { elf = \"missing.elf\" }\n";
    let ended = of_text("check", folder.path(), text, &[]).code(2);
    ended
        .says("program.toml:4:17: BRISC: bad.elf: ELF header: found 11 bytes")
        .says("program.toml:5:18: NCRISC: cannot read");
}

#[test]
fn a_file_of_no_known_kind_says_so() {
    let folder = folder();
    for name in ["picture.png", "kernel.elf", "noending"] {
        let file = folder.path().join(name);
        std::fs::write(&file, "x").unwrap();
        let file = file.display().to_string();
        for args in [vec!["run", &file, "--out", "out"], vec!["check", &file], vec!["show", &file]] {
            let ended = tilework(&args).code(2);
            let said = format!(
                "error: {file}: not a compiled model, a netlist or a program: a kernel program ends in .toml, \
                 a compiled model ends in .ttnn, .ttm, .ttsys, a Buda netlist ends in .yaml, .yml\n"
            );
            assert_eq!(ended.stderr, said);
        }
        let report = tilework(&["show", &file, "--json"]).code(2).json();
        assert_eq!((&report["kind"], &report["error"]["file"]), (&json!("unknown"), &json!(file)));
    }
    tilework(&["show", "/no/such/file"]).code(2).says("cannot read /no/such/file");
    // The case of an ending does not matter.
    let upper = folder.path().join("RING.TOML");
    std::fs::copy(example("ring"), &upper).unwrap();
    tilework(&["check", upper.to_str().unwrap()]).code(0);
}

#[test]
fn an_input_without_an_array_does_not_hide_other_mistakes() {
    let increment = example("increment").display().to_string();
    let folder = folder();
    let text = std::fs::read_to_string(&increment).unwrap().replace("\"slots.addr\"", "\"slot.addr\"");
    let ended = of_text("check", folder.path(), &text, &[]).code(2);
    let ended = ended.says("no array for input \"x\"").says("\"slot.addr\" is no buffer's address here");
    assert_eq!(ended.stderr.matches("program.toml:").count(), 2, "{}", ended.stderr);
    of_text("check", folder.path(), &text, &["--input", &example_input("increment")]).code(2).says("slot.addr");
}

#[test]
fn many_mistakes_are_summed_up() {
    let folder = folder();
    let wrong: String = (0..3000).map(|i| format!("\"n{i}\", ")).collect();
    let text =
        format!("name = \"t\"\n[[roles]]\ncores = 118\nbrisc = {{ elf = \"prebuilt:spin\", args = [{wrong}] }}\n");
    let ended = of_text("check", folder.path(), &text, &["--json"]).code(2);
    let error = &ended.json()["error"];
    assert_eq!((error["findings"].as_array().map(Vec::len), &error["left_out"]), (Some(100), &json!(2900)));
    assert!(ended.stderr.ends_with("and 2900 more mistakes\n"), "{} bytes", ended.stderr.len());
}
