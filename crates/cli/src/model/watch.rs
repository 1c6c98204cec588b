//! What looks on while a model runs: the progress bar, dumps of intermediate tensors, and times.

use super::tensors;
use crate::args::DumpOp;
use crate::failure::Failure;
use crate::progress::OperationBar;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tilework_engine::{Event, Flow, Observer, Output, Value};

/// The time of one operation.
#[derive(Serialize, Clone, Debug)]
pub struct OpTime {
    /// Its program's index in the file.
    pub program: usize,
    /// Its index in the program.
    pub operation: usize,
    /// Its kind.
    pub kind: String,
    /// Where it comes from in the user's source.
    pub loc: String,
    /// Host seconds, those of called programs included.
    pub seconds: f64,
}

/// Which intermediate tensors to keep, and where.
pub struct Dump {
    /// Which operations.
    pub which: DumpOp,
    /// The folder.
    pub folder: PathBuf,
}

/// All that is looked at.
pub struct Watch {
    bar: OperationBar,
    dump: Option<Dump>,
    /// The program that was asked for.
    program: usize,
    started: Vec<Instant>,
    /// Times of operations in the order in which they ended, when they are wanted.
    pub times: Option<Vec<OpTime>>,
    /// Why a tensor could not be kept.
    pub failure: Option<Failure>,
}

impl Watch {
    /// Looks at `program` of `operations` operations.
    pub fn new(program: usize, operations: usize, dump: Option<Dump>, profile: bool) -> Self {
        let bar = OperationBar::new(operations);
        Self { bar, dump, program, started: Vec::new(), times: profile.then(Vec::new), failure: None }
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

impl Observer for Watch {
    fn before(&mut self, event: &Event<'_>) {
        if event.depth == 0 {
            self.bar.at(event.index, event.kind().name());
        }
        self.started.push(Instant::now());
    }

    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        let elapsed = self.started.pop().map_or(Duration::ZERO, |started| started.elapsed());
        if let Some(times) = &mut self.times {
            times.push(OpTime {
                program: event.program,
                operation: event.index,
                kind: event.kind().name().to_owned(),
                loc: event.operation.loc_info.clone(),
                seconds: elapsed.as_secs_f64(),
            });
        }
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
