//! Native code of a compiled model: the process that it runs in, and the warning before.

use crate::args::NATIVE_CALL;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeSet;
use std::io::Write;
use std::time::Duration;
use tilework_engine::NativeHost;
use tilework_model::Model;
use tilework_model::ttnn::Op;

/// How long one call may take.
const TIME: Duration = Duration::from_secs(60);

/// This command as the program that executes calls, after a warning if the model has any.
pub fn host(model: &Model) -> Outcome<NativeHost> {
    let program = std::env::current_exe()
        .map_err(|e| Failure::failed("native", format!("no process for native code: {e}")).with("option", OPTION))?;
    let functions = functions(model);
    if !functions.is_empty() {
        let file = model.file.as_deref().map(|file| format!("{} ", file.display())).unwrap_or_default();
        let listed: Vec<&str> = functions.iter().map(String::as_str).collect();
        // Standard error may be closed; the user has asked for this in any case.
        let _ = writeln!(
            std::io::stderr(),
            "warning: {OPTION}: native code that came with {file}runs on this machine with all your rights, \
             each call in a process of its own: {}",
            listed.join(", ")
        );
    }
    Ok(NativeHost { program, arguments: vec![NATIVE_CALL.into()], time: TIME })
}

const OPTION: &str = "--allow-native-code";

/// The functions that the model's programs call, escaped: names come from the file.
fn functions(model: &Model) -> BTreeSet<String> {
    let operations = model.programs().iter().flat_map(|program| &program.operations);
    operations
        .filter_map(|operation| match &operation.op {
            Op::Cpu(op) => Some(op.func_name.escape_debug().to_string()),
            _ => None,
        })
        .collect()
}
