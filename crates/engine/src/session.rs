//! Engines, and sessions that run programs of a model on them.

use std::collections::HashMap;
use std::rc::Rc;

use tilework_model::Model;
use tilework_model::ttnn::Program;
use tilework_native::NativeHost;
use tilework_ops::mesh::{Mesh, Placements};
use tilework_ops::{DType, Shape, Tensor};

use crate::cache::Cache;
use crate::error::{Reason, RunError, Subject};
use crate::inputs::{self, Given, InputInfo};
use crate::ledger::Ledger;
use crate::machine::{Machine, Native};
use crate::observe::Observer;
use crate::plan::{Outline, Plan};
use crate::run::{Runner, Traces, take};
use crate::sharding;
use crate::value::Value;

/// Where results of floating-point operations are rounded to the types that the program states.
/// Each operation computes in float32 either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// After each operation, as a device does that holds its tensors in these types. This is the
    /// meaning of the program.
    #[default]
    Operations,
    /// At the inputs and outputs of the program only; everything between is float32. This is what a
    /// reference that was widened to float32 computes, and separates rounding errors from others.
    Ends,
}

impl Rounding {
    /// The type that elements of a stated type have while the program runs.
    pub fn kept(self, stated: DType) -> DType {
        if self == Self::Ends && stated.is_float() { DType::F32 } else { stated }
    }
}

/// Limits, permissions and rounding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What runs functions of native libraries in the file, if they may run. They have all rights
    /// of the user.
    pub native_code: Option<NativeHost>,
    /// Where results are rounded.
    pub rounding: Rounding,
    /// Maximum number of operations and loop iterations of one run, those of called programs
    /// included; 100 million by default. The smallest operations take about 0.2 microseconds each,
    /// so that this many take about half a minute.
    pub max_operations: u64,
    /// Maximum depth of nested calls, 64 by default; at most [`Options::DEEPEST`], because each
    /// call uses part of the thread's stack.
    pub max_call_depth: usize,
    /// Maximum bytes of tensors that are alive at once, as [`RunResult::peak_bytes`] counts them;
    /// 16 GiB by default. Operations use some more while they compute.
    pub max_bytes: usize,
}

impl Options {
    /// The deepest calls that [`Options::max_call_depth`] can allow.
    pub const DEEPEST: usize = 256;

    pub(crate) fn call_depth(&self) -> usize {
        self.max_call_depth.min(Self::DEEPEST)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            native_code: None,
            rounding: Rounding::Operations,
            max_operations: 100_000_000,
            max_call_depth: 64,
            max_bytes: 16 << 30,
        }
    }
}

/// An engine that runs programs.
#[derive(Clone, Debug, Default)]
pub struct Engine {
    options: Options,
}

impl Engine {
    /// The native engine: host arithmetic on all cores.
    pub fn native(options: Options) -> Self {
        Self { options }
    }

    /// A session with a model, which must be a `.ttnn` file.
    pub fn session<'m>(&self, model: &'m Model) -> Result<Session<'m>, RunError> {
        Session::on(model, self.options.clone(), Native)
    }
}

/// Summary of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramInfo {
    /// Its index in the file.
    pub index: usize,
    /// Its name.
    pub name: String,
    /// Whether it is only called by others.
    pub private: bool,
    /// Its inputs.
    pub inputs: Vec<InputInfo>,
    /// Its outputs.
    pub outputs: Vec<InputInfo>,
    /// Number of operations.
    pub operations: usize,
    /// Rows and columns of the mesh of devices that it is for.
    pub mesh: (i32, i32),
}

/// Result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// The outputs in the order of the program.
    pub outputs: Vec<Value>,
    /// Inputs that the program changed in place, by position: as they are now.
    pub changed: Vec<(usize, Value)>,
    /// The most bytes of tensors that were alive at once: inputs, results, kept constants. A tensor
    /// counts once, however many names it has.
    pub peak_bytes: usize,
    /// Operations and loop iterations that ran, those of called programs included.
    pub operations: u64,
}

/// Runs programs of a model. Results that depend on constants and weights only are kept from one
/// run to the next, as long as the same tensors are given for the weights.
pub struct Session<'m, M: Machine = Native> {
    model: &'m Model,
    options: Options,
    machine: M,
    plans: HashMap<usize, Rc<Plan<'m>>>,
    cache: Cache<M::Tensor>,
    traces: Traces<M::Tensor>,
}

/// Inputs of a program where it wants them ([`Session::place`]).
pub struct Placed<T> {
    program: usize,
    values: Vec<Value<T>>,
}

impl<'m, M: Machine> Session<'m, M> {
    /// A session with a model, which must be a `.ttnn` file, whose programs run on `machine`.
    ///
    /// # Errors
    /// Another kind of file.
    pub fn on(model: &'m Model, options: Options, machine: M) -> Result<Self, RunError> {
        if model.ttnn().is_none() {
            let error = RunError::new(Subject::Model, Reason::NotTtnn);
            return Err(error.of_file(model.file.as_deref()));
        }
        Ok(Session { model, options, machine, plans: HashMap::new(), cache: Cache::default(), traces: HashMap::new() })
    }

    /// What its programs run on.
    pub fn machine(&self) -> &M {
        &self.machine
    }

    /// The same, to be asked or told something.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The model.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// All programs of the file.
    pub fn programs(&self) -> Vec<ProgramInfo> {
        let of = |(index, program): (usize, &Program)| ProgramInfo {
            index,
            name: program.name.clone(),
            private: program.private,
            inputs: inputs::describe(self.model, program),
            outputs: inputs::describe_outputs(program),
            operations: program.operations.len(),
            mesh: program.mesh_shape.map_or((1, 1), |shape| (shape.y, shape.x)),
        };
        self.model.programs().iter().enumerate().map(of).collect()
    }

    /// Checks a program without running it; the errors are all that keep it from running.
    pub fn check(&mut self, program: usize) -> Result<(), Vec<RunError>> {
        self.plan(program).map(|_| ())
    }

    /// What a program and all that it may call consist of, without running it.
    ///
    /// # Errors
    /// As [`Session::check`].
    pub fn outline(&mut self, program: usize) -> Result<Vec<Outline<'m>>, Vec<RunError>> {
        Ok(self.plan(program)?.outline())
    }

    fn plan(&mut self, program: usize) -> Result<Rc<Plan<'m>>, Vec<RunError>> {
        if let Some(plan) = self.plans.get(&program) {
            return Ok(Rc::clone(plan));
        }
        let file = self.model.file.as_deref();
        let of_file = |errors: Vec<RunError>| errors.into_iter().map(|error| error.of_file(file)).collect::<Vec<_>>();
        let plan = Rc::new(Plan::of(self.model, program, &self.options).map_err(of_file)?);
        self.plans.insert(program, Rc::clone(&plan));
        Ok(plan)
    }

    /// Puts inputs that are given by position or name into the order of the program.
    pub fn bind(&self, program: usize, given: Vec<Given>) -> Result<Vec<Value>, RunError> {
        self.in_program(program, |of| inputs::bind(self.model, of, given))
    }

    /// The inputs of a program.
    pub fn inputs(&self, program: usize) -> Result<Vec<InputInfo>, RunError> {
        self.in_program(program, |of| Ok(inputs::describe(self.model, of)))
    }

    /// The devices of a program.
    pub fn mesh(&self, program: usize) -> Result<Mesh, RunError> {
        self.in_program(program, |of| Ok(inputs::mesh_of(of)))
    }

    /// The parts of a whole array for an input of a program for several devices, if their shape
    /// leaves no choice how it is split.
    pub fn split_input(&self, program: usize, position: usize, whole: &Tensor) -> Result<Value, RunError> {
        self.in_program(program, |of| inputs::split(of, position, whole))
    }

    /// The parts of a whole array for the devices of a program.
    pub fn split(&self, program: usize, whole: &Tensor, placements: Placements) -> Result<Value, RunError> {
        self.in_program(program, |of| sharding::split(whole, placements, inputs::mesh_of(of)))
    }

    /// The whole that the parts of the devices make up; replicas must be equal.
    pub fn join(&self, program: usize, value: &Value, placements: Placements) -> Result<Tensor, RunError> {
        self.in_program(program, |of| sharding::join(value, placements, inputs::mesh_of(of)))
    }

    /// The same for a whole of that shape, if it leaves no choice how.
    pub fn join_to(&self, program: usize, value: &Value, whole: &Shape) -> Result<Tensor, RunError> {
        self.in_program(program, |of| sharding::join_to(value, whole, inputs::mesh_of(of)))
    }

    /// Runs a program. Inputs are in its order; they are converted to the types that it states.
    pub fn run(
        &mut self,
        program: usize,
        inputs: Vec<Value>,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        let placed = self.place(program, inputs)?;
        self.run_placed(&placed, observer)
    }

    /// Converts inputs to the types that a program states and brings them where it wants them, for
    /// any number of runs. Kept results that depend on them are those of the first run.
    pub fn place(&mut self, program: usize, inputs: Vec<Value>) -> Result<Placed<M::Tensor>, RunError> {
        self.planned(program)?;
        let inputs = self.in_program(program, |of| inputs::convert(of, inputs, self.options.rounding))?;
        let of = &self.model.programs()[program];
        let mesh = inputs::mesh_of(of);
        let taken = inputs.iter().zip(&of.inputs).map(|(value, input)| take(&mut self.machine, value, input, mesh));
        let values = taken.collect::<Result<_, _>>().map_err(|reason| self.at_ends(program, reason))?;
        Ok(Placed { program, values })
    }

    /// The plan of a program; of several errors the first.
    fn planned(&mut self, program: usize) -> Result<Rc<Plan<'m>>, RunError> {
        self.plan(program).map_err(|mut errors| {
            let others = errors.len() - 1;
            errors.swap_remove(0).with_others(others)
        })
    }

    fn at_ends(&self, program: usize, reason: Reason) -> RunError {
        let name = self.model.programs().get(program).map(|program| program.name.clone()).unwrap_or_default();
        RunError::new(Subject::Program(program, name), reason).of_file(self.model.file.as_deref())
    }

    /// Runs a program whose inputs are in place. They stay as they are: what the program changes in
    /// place is in the result.
    pub fn run_placed(
        &mut self,
        inputs: &Placed<M::Tensor>,
        observer: &mut dyn Observer,
    ) -> Result<RunResult, RunError> {
        let program = inputs.program;
        let plan = self.planned(program)?;
        let of = &self.model.programs()[program];
        let file = self.model.file.as_deref();
        let at_ends = |reason| RunError::new(Subject::Program(program, of.name.clone()), reason).of_file(file);
        let mut runner = Runner {
            plan: &plan,
            options: &self.options,
            machine: &mut self.machine,
            cache: &mut self.cache,
            traces: &mut self.traces,
            recorded: None,
            observer,
            ledger: Ledger::default(),
            operations: 0,
            kept: HashMap::new(),
        };
        let finished = runner.program(program, inputs.values.clone(), 0).map_err(|error| error.of_file(file))?;
        let mut given =
            |value: &Value<M::Tensor>, tensor| Ok(inputs::stated(&runner.give(value).map_err(at_ends)?, tensor));
        let outputs = finished.outputs.iter().zip(&of.outputs).map(|(value, output)| given(value, output));
        let outputs = outputs.collect::<Result<_, RunError>>()?;
        let changed = finished.changed.iter().map(|(&at, value)| Ok((at, given(value, &of.inputs[at])?)));
        let changed = changed.collect::<Result<_, RunError>>()?;
        runner.machine.finish().map_err(at_ends)?;
        Ok(RunResult { outputs, changed, peak_bytes: runner.ledger.peak(), operations: runner.operations })
    }

    fn in_program<T>(&self, index: usize, f: impl FnOnce(&Program) -> Result<T, String>) -> Result<T, RunError> {
        let programs = self.model.programs();
        let result = match programs.get(index) {
            None => Err(RunError::new(Subject::Model, Reason::NoProgram { index, count: programs.len() })),
            Some(program) => {
                let subject = || Subject::Program(index, program.name.clone());
                f(program).map_err(|what| RunError::new(subject(), Reason::Input(what)))
            }
        };
        result.map_err(|error| error.of_file(self.model.file.as_deref()))
    }
}
