//! Observers of a running model: the progress bar and dumps of intermediate tensors.

use super::args::DumpOp;
use super::tensors;

use crate::failure::Failure;
use crate::progress::OperationBar;
use std::path::PathBuf;
use tilework_engine::{Event, Flow, Observer, Output, Value};

/// Which intermediate tensors to keep, and where.
#[derive(Clone)]
pub struct Dump {
    /// Which operations.
    pub which: DumpOp,
    /// The folder.
    pub folder: PathBuf,
}

/// Watches a run: progress and dumps.
pub struct Watch {
    bar: OperationBar,
    dump: Option<Dump>,
    /// The program that was asked for.
    program: usize,
    /// Why a tensor could not be kept.
    pub failure: Option<Failure>,
}

impl Watch {
    /// Watches `program`, which has this many operations.
    pub fn new(program: usize, operations: usize, dump: Option<Dump>) -> Self {
        Self { bar: OperationBar::new(operations), dump, program, failure: None }
    }

    fn wants(&self, event: &Event<'_>) -> bool {
        match &self.dump {
            None => false,
            Some(Dump { which: DumpOp::All, .. }) => true,
            Some(Dump { which: DumpOp::One(index), .. }) => event.program == self.program && event.index == *index,
        }
    }
}

/// The name of the file of an operation's output, without the folder.
pub fn dump_name(event: &Event<'_>, output: usize, device: Option<usize>) -> String {
    let device = device.map(|device| format!("_dev{device}")).unwrap_or_default();
    format!("p{}_op{:04}_{}_{output}{device}.npy", event.program, event.index, event.kind().name())
}

/// Whether [`dump_name`] makes such names.
pub fn is_dump(name: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.strip_prefix('p').filter(|rest| rest.ends_with(".npy")).and_then(|rest| rest.split_once("_op"));
    parts
        .and_then(|(program, rest)| Some((program, rest.split_once('_')?.0)))
        .is_some_and(|(program, index)| digits(program) && digits(index))
}

impl Observer for Watch {
    fn before(&mut self, event: &Event<'_>) {
        if event.depth == 0 {
            self.bar.at(event.index, event.kind().name());
        }
    }

    fn wants_results(&self, event: &Event<'_>) -> bool {
        self.wants(event)
    }

    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        if self.wants(event)
            && let Some(dump) = &self.dump
        {
            for (k, output) in outputs.iter().enumerate() {
                for (device, tensor) in output.value.tensors().enumerate() {
                    let device = output.value.single().is_none().then_some(device);
                    let path = dump.folder.join(dump_name(event, k, device));
                    if let Err(failure) = tensors::array(tensor).write(&path) {
                        self.failure = Some(failure);
                        return Flow::Stop;
                    }
                }
            }
        }
        Flow::Continue
    }

    fn message(&mut self, event: &Event<'_>, text: &str, about: Option<&Value>) {
        let about = about.map(|value| format!(": {:?}", value.on(0).to_f32().iter().take(8).collect::<Vec<_>>()));
        self.bar.say(&format!("{}: {text}{}", event.place(), about.unwrap_or_default()));
    }
}
