//! The configuration of docs/debugger.md for VS Code: gdb's machine interface, with the commands
//! that its C/C++ extension sends.

use super::common::{folder, repository};
use super::rsp::Debugged;
use super::session::{built, in_order, starts};
use serde_json::Value;
use std::process::{Command, Stdio};

/// What the extension sends after the configuration: it sets a breakpoint, goes on, asks for
/// threads, frames and variables, steps, goes back, and goes on to the end.
const COMMANDS: &str = "\
-break-insert -f compute.c:24
-exec-continue
-thread-info
-stack-list-frames
-var-create - * factor
-data-evaluate-expression pages_done
-break-delete
-exec-next
-data-evaluate-expression pages_done
-exec-next --reverse
-data-evaluate-expression pages_done
-exec-continue
-gdb-exit
";

/// The configuration of the page.
fn configuration() -> Value {
    let page = std::fs::read_to_string(repository().join("docs/debugger.md")).unwrap();
    let (_, behind) = page.split_once("## VS Code").unwrap();
    let json: String = behind.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    serde_json::from_str(&json).unwrap()
}

fn texts(commands: &Value) -> impl Iterator<Item = &str> {
    commands.as_array().unwrap().iter().map(|command| command["text"].as_str().unwrap())
}

#[test]
fn an_editor_drives_gdb_by_its_machine_interface() {
    let configuration = configuration();
    let gdb = configuration["miDebuggerPath"].as_str().unwrap();
    if !starts(gdb) {
        return println!("skipped: no {gdb}");
    }
    let folder = folder();
    let Some(c) = built(folder.path()) else { return };
    let (out, input) = (folder.path().join("out"), format!("x={}", c.join("x.npy").display()));
    let run = Debugged::of(&c.join("program.toml"), &out, &["--input", &input]);
    let program = configuration["program"].as_str().unwrap().replace("${workspaceFolder}", c.to_str().unwrap());
    assert!(std::path::Path::new(&program).is_file(), "{program}");
    let server = configuration["miDebuggerServerAddress"].as_str().unwrap();
    let server = server.replace("3333", &run.port.to_string());
    let console = |text: &str| format!("-interpreter-exec console \"{text}\"\n");
    let mut script = String::new();
    texts(&configuration["setupCommands"]).for_each(|text| script += &console(text));
    script += &format!("-file-exec-and-symbols {program}\n-target-select remote {server}\n");
    texts(&configuration["postRemoteConnectCommands"]).for_each(|text| script += &console(text));
    script += COMMANDS;
    let file = folder.path().join("commands");
    std::fs::write(&file, script).unwrap();
    let mut session = Command::new(gdb);
    session.current_dir(&c).args(["-nx", "-q", "--interpreter=mi2"]).stdin(std::fs::File::open(&file).unwrap());
    let session = session.stdout(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&session.stdout).into_owned();
    in_order(
        &said,
        &[
            "^connected",
            "^done,bkpt={number=\"1\"",
            "^running",
            "*stopped,reason=\"breakpoint-hit\"",
            "line=\"24\"",
            "^done,threads=[",
            "tile 1-3 TRISC1",
            "^done,stack=[frame={level=\"0\"",
            "func=\"kernel_main\"",
            "value=\"3\"",
            "^done,value=\"0\"",
            "*stopped,reason=\"end-stepping-range\"",
            "^done,value=\"1\"",
            "*stopped,",
            "^done,value=\"0\"",
            "*stopped,reason=\"exited-normally\"",
        ],
    );
    run.end().code(0);
}
