//! What an installed command has with it: the card's library, completions, manual pages; how much
//! it says, and in which colours.

use crate::common;
use common::{example_input, files, folder, repository, run_example, tilework};
use object::Object;
use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in a folder, with this in its environment.
fn run_in(folder: &Path, command: &Path, args: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(command);
    command.args(args).current_dir(folder).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.envs(environment.iter().copied()).output().unwrap()
}

#[test]
#[cfg(target_os = "linux")]
fn a_command_without_other_files_makes_a_card_that_runs_programs() {
    // A link, no copy: a file that a process of another test has open for writing does not start.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let command = folder.path().join("tilework");
    std::fs::hard_link(env!("CARGO_BIN_EXE_tilework"), &command).unwrap();
    let output = run_in(folder.path(), &command, &["simdir", "sim", "--board", "p100"], &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let sim = folder.path().join("sim");
    assert_eq!(files(&sim), ["libtilework.so", "soc_descriptor.yaml"]);
    let chip = sim.join("libtilework.so");
    let out = folder.path().join("out");
    let ended = run_example("ring", &out, &["--board", "p100", "--chip", chip.to_str().unwrap()]).code(0);
    assert!(ended.stdout.contains("118 cores"), "{}", ended.stdout);
}

#[test]
fn a_release_build_carries_no_debug_information() {
    let manifest = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = manifest.parse().unwrap();
    let profile = &manifest["profile"];
    assert_eq!(profile["release"]["strip"].as_bool(), Some(true));
    assert!(profile["release"].get("debug").is_none(), "{profile:?}");
    assert_eq!(profile["profiling"]["debug"].as_str(), Some("line-tables-only"));
    if cfg!(debug_assertions) {
        return println!("the command itself is looked at in release builds only");
    }
    let command = std::fs::read(env!("CARGO_BIN_EXE_tilework")).unwrap();
    let sections = object::File::parse(&command[..]).unwrap();
    assert!(sections.section_by_name(".debug_line").is_none());
    // The chip and its debugger are in it three times: in the command, in the card's library, and
    // in the library for programs that know only silicon.
    assert!(command.len() < 44 << 20, "{} bytes", command.len());
}

#[test]
fn shells_complete_commands_and_the_options_of_all_kinds() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = tilework(&["completions", shell]).code(0).stdout;
        for word in ["simdir", "max-cycles", "expect", "completions", "quiet"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let folder = folder();
    let file = folder.path().join("tilework.bash");
    std::fs::write(&file, tilework(&["completions", "bash"]).code(0).stdout).unwrap();
    match Command::new("bash").arg("-n").arg(&file).output() {
        Ok(read) => assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr)),
        Err(error) => println!("skipped: bash does not start ({error})"),
    }
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let first = tilework(&["man"]).code(0).stdout;
    assert!(first.contains(".TH tilework 1") && first.contains("Exit codes"));
    let folder = folder();
    let man = folder.path().join("man1");
    tilework(&["man", man.to_str().unwrap()]).code(0);
    let pages = files(&man);
    for page in ["tilework.1", "tilework-run.1", "tilework-cq-decode.1", "tilework-pto-run.1", "tilework-sdk.1"] {
        assert!(pages.iter().any(|found| found == page), "{page}: {pages:?}");
    }
    assert!(!pages.iter().any(|page| page.contains("help")), "{pages:?}");
    // Options of other kinds than kernel programs are there.
    let run = std::fs::read_to_string(man.join("tilework-run.1")).unwrap();
    for option in ["max\\-cycles", "rounding", "capture"] {
        assert!(run.contains(option), "{option}");
    }
}

#[test]
fn quiet_says_nothing_but_errors_and_verbose_tells_the_steps() {
    let folder = folder();
    let out = folder.path().join("out");
    let quiet = run_example("increment", &out, &["--quiet"]).code(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
    assert_eq!(files(&out), ["y.npy"]);
    tilework(&["run", "--quiet", "missing.toml", "--out", out.to_str().unwrap()]).code(2).says("error:");
    // What a command is asked for it prints.
    assert!(!tilework(&["board", "--quiet"]).code(0).stdout.is_empty());
    assert!(!run_example("increment", &out, &["-q", "--report", "json"]).code(0).stdout.is_empty());

    let usual = run_example("increment", &out, &[]).code(0);
    assert!(!usual.stderr.contains("uploading"));
    let verbose = run_example("increment", &out, &["-v"]).code(0);
    for step in ["reading", "starting the board", "uploading", "running", "downloading", "done"] {
        assert!(verbose.stderr.contains(step), "{step}: {}", verbose.stderr);
    }
    assert!(tilework(&["board", "-v"]).code(0).stderr.ends_with("done\n"));
    assert!(tilework(&["--help"]).code(0).stdout.contains("-q, --quiet"));
    tilework(&["board", "-q", "-v"]).code(2).says("cannot be used with");
    // In front of the command they count as well, with the options of any kind of file.
    let input = example_input("increment");
    let program = common::example("increment");
    let words = ["-q", "run", program.to_str().unwrap(), "--input", &input, "--out", out.to_str().unwrap()];
    assert_eq!(tilework(&[&words[..], &["--board", "p150"]].concat()).code(0).stdout, "");
}

#[test]
fn colours_are_for_terminals_and_as_the_environment_says() {
    let folder = folder();
    let coloured = |environment: &[(&str, &str)]| {
        let command = Path::new(env!("CARGO_BIN_EXE_tilework"));
        let output = run_in(folder.path(), command, &["run", "missing.toml", "--out", "out"], environment);
        assert_eq!(output.status.code(), Some(2));
        output.stderr.contains(&b'\x1b')
    };
    assert!(!coloured(&[]), "standard error is no terminal");
    assert!(coloured(&[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
}

#[test]
fn the_compiled_model_of_the_examples_gives_what_jax_gave() {
    let mlp = repository().join("examples/mlp");
    let model = mlp.join("mlp.ttnn");
    let (model, mlp) = (model.to_str().unwrap(), mlp.to_str().unwrap());
    tilework(&["check", model, "--expect", mlp]).code(0);
    let shown = tilework(&["show", model]).code(0).stdout;
    assert!(shown.contains("w1") && shown.contains("b2"), "{shown}");
}
