//! What runs a compiled model: host arithmetic, or the chip.

use super::args::{CompareName, ModelArgs, ModelRunArgs, OnChipArgs, RoundingName};
use super::{native, run};
use crate::args::EngineName;
use crate::chip::{AnyChip, Settings};
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use crate::program::args::DispatchName;
use crate::program::findings::{self, ChecksReport};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use tilework_checks::Policy;
use tilework_driver::HostLink;
use tilework_engine::{
    Beside, Both, Engine, Event, Findings, Held, Machine, Native, OperationPlace, Options, Outline, Reason, Rounding,
    Work,
};
use tilework_model::Model;
use tilework_model::ttnn::TensorRef;
use tilework_onchip::{Carried, Chips, OnChip, PlacedMark, PlacedOn, forecast, memory_plan};
use tilework_ops::{DType, Tensor};
use tilework_runtime::{DeviceConfig, Dispatch, RuntimeError};

/// A session on either.
pub type Session<'m> = tilework_engine::Session<'m, AnyMachine>;

/// Host arithmetic or the chip.
pub enum AnyMachine {
    /// Host arithmetic.
    Native(Native),
    /// The chip, or one for each device of a mesh.
    Chip(Box<Beside<Chips<AnyChip>>>),
}

/// A tensor of either.
#[derive(Clone)]
pub enum AnyTensor {
    /// An array of the host.
    Native(Tensor),
    /// A tensor of a run on the chip.
    Chip(Both<PlacedOn>),
}

/// What remembers a tensor of either.
pub enum AnyMark {
    Native(<Tensor as Held>::Mark),
    Chip(PlacedMark),
}

impl AnyTensor {
    /// One of a run on the chip.
    fn placed(&self) -> Option<&Both<PlacedOn>> {
        match self {
            Self::Chip(placed) => Some(placed),
            Self::Native(_) => None,
        }
    }
}

impl Held for AnyTensor {
    type Mark = AnyMark;

    fn address(&self) -> usize {
        match self {
            Self::Native(tensor) => tensor.address(),
            Self::Chip(placed) => placed.address(),
        }
    }
    fn bytes(&self) -> usize {
        match self {
            Self::Native(tensor) => Held::bytes(tensor),
            Self::Chip(placed) => placed.bytes(),
        }
    }
    fn mark(&self) -> AnyMark {
        match self {
            Self::Native(tensor) => AnyMark::Native(tensor.mark()),
            Self::Chip(placed) => AnyMark::Chip(placed.mark()),
        }
    }
    fn is(&self, mark: &AnyMark) -> bool {
        match (self, mark) {
            (Self::Native(tensor), AnyMark::Native(mark)) => tensor.is(mark),
            (Self::Chip(placed), AnyMark::Chip(mark)) => placed.is(mark),
            _ => false,
        }
    }
    fn gone(mark: &AnyMark) -> bool {
        match mark {
            AnyMark::Native(mark) => Tensor::gone(mark),
            AnyMark::Chip(mark) => Both::<PlacedOn>::gone(mark),
        }
    }
}

/// A machine has only been given tensors of its own.
fn foreign<T>() -> Result<T, Reason> {
    Err(Reason::Value("a tensor of another machine".into()))
}

impl Machine for AnyMachine {
    type Tensor = AnyTensor;

    fn take(&mut self, array: Tensor, described: &TensorRef) -> Result<AnyTensor, Reason> {
        match self {
            Self::Native(native) => native.take(array, described).map(AnyTensor::Native),
            Self::Chip(chip) => chip.take(array, described).map(AnyTensor::Chip),
        }
    }
    fn take_on(&mut self, device: usize, array: Tensor, described: &TensorRef) -> Result<AnyTensor, Reason> {
        match self {
            Self::Native(native) => native.take_on(device, array, described).map(AnyTensor::Native),
            Self::Chip(chip) => chip.take_on(device, array, described).map(AnyTensor::Chip),
        }
    }
    fn has_devices(&self) -> bool {
        match self {
            Self::Native(native) => native.has_devices(),
            Self::Chip(chip) => chip.has_devices(),
        }
    }
    fn begin_exchange(&mut self, event: &Event<'_>) {
        match self {
            Self::Native(native) => native.begin_exchange(event),
            Self::Chip(chip) => chip.begin_exchange(event),
        }
    }
    fn end_exchange(&mut self) {
        match self {
            Self::Native(native) => native.end_exchange(),
            Self::Chip(chip) => chip.end_exchange(),
        }
    }
    fn give(&mut self, tensor: &AnyTensor) -> Result<Tensor, Reason> {
        match (self, tensor) {
            (Self::Native(native), AnyTensor::Native(tensor)) => native.give(tensor),
            (Self::Chip(chip), AnyTensor::Chip(placed)) => chip.give(placed),
            _ => foreign(),
        }
    }
    fn cast(&mut self, tensor: &AnyTensor, dtype: DType, described: &TensorRef) -> Result<AnyTensor, Reason> {
        match (self, tensor) {
            (Self::Native(native), AnyTensor::Native(tensor)) => {
                native.cast(tensor, dtype, described).map(AnyTensor::Native)
            }
            (Self::Chip(chip), AnyTensor::Chip(placed)) => chip.cast(placed, dtype, described).map(AnyTensor::Chip),
            _ => foreign(),
        }
    }
    fn operate(&mut self, work: &Work<'_, AnyTensor>) -> Result<Vec<AnyTensor>, Reason> {
        match self {
            Self::Native(native) => {
                let own = work.with_operands(|tensor| match tensor {
                    AnyTensor::Native(tensor) => Some(tensor),
                    AnyTensor::Chip(_) => None,
                });
                let made = own.map_or_else(foreign, |work| native.operate(&work))?;
                Ok(made.into_iter().map(AnyTensor::Native).collect())
            }
            Self::Chip(chip) => {
                let own = work.with_operands(|tensor| match tensor {
                    AnyTensor::Chip(placed) => Some(placed),
                    AnyTensor::Native(_) => None,
                });
                let made = own.map_or_else(foreign, |work| chip.operate(&work))?;
                Ok(made.into_iter().map(AnyTensor::Chip).collect())
            }
        }
    }
    fn begin_trace(&mut self) -> Result<(), Reason> {
        match self {
            Self::Native(native) => native.begin_trace(),
            Self::Chip(chip) => chip.begin_trace(),
        }
    }
    fn end_trace(&mut self) -> Result<Option<u64>, Reason> {
        match self {
            Self::Native(native) => native.end_trace(),
            Self::Chip(chip) => chip.end_trace(),
        }
    }
    fn replay(
        &mut self,
        trace: u64,
        place: OperationPlace,
        inputs: &[(&AnyTensor, &AnyTensor)],
        results: &[&AnyTensor],
    ) -> Result<bool, Reason> {
        let Self::Chip(chip) = self else { return Ok(false) };
        let pairs = inputs.iter().map(|(from, to)| Some((from.placed()?, to.placed()?))).collect::<Option<Vec<_>>>();
        let results = results.iter().map(|tensor| tensor.placed()).collect::<Option<Vec<_>>>();
        match (pairs, results) {
            (Some(inputs), Some(results)) => chip.replay(trace, place, &inputs, &results),
            _ => foreign(),
        }
    }
    fn release(&mut self, trace: u64) -> Result<(), Reason> {
        match self {
            Self::Native(native) => native.release(trace),
            Self::Chip(chip) => chip.release(trace),
        }
    }
    fn finish(&mut self) -> Result<(), Reason> {
        match self {
            Self::Native(native) => native.finish(),
            Self::Chip(chip) => chip.finish(),
        }
    }
}

impl AnyMachine {
    /// Forgets what became of operations, and gives the chip's time if it is one.
    pub fn begin_run(&mut self) -> Option<u64> {
        if let Self::Chip(chip) = self {
            chip.machine_mut().forget_records();
            chip.forget_findings();
        }
        self.cycles()
    }

    /// What a comparison with host arithmetic has found.
    pub fn findings(&self) -> Option<&Findings> {
        match self {
            Self::Native(_) => None,
            Self::Chip(chip) => chip.findings(),
        }
    }

    /// The chip's time; of several the latest.
    pub fn cycles(&self) -> Option<u64> {
        match self {
            Self::Native(_) => None,
            Self::Chip(chip) => chip.machine().all().map(|chip| chip.device().chip().cycles()).max(),
        }
    }

    /// Its name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Chip(_) => "chip",
        }
    }
}

/// The engine of a run.
pub struct Chosen {
    pub engine: EngineName,
    /// Why it is not the chip, though nobody asked for another; of operations the first ones.
    pub not_chip: Vec<String>,
}

impl Chosen {
    fn native(not_chip: Vec<String>) -> Self {
        Self { engine: EngineName::Native, not_chip }
    }

    const fn chip() -> Self {
        Self { engine: EngineName::Chip, not_chip: Vec::new() }
    }
}

/// The engine of a run: as the options say, otherwise the chip if it carries out all operations of
/// the program and has room for its tensors.
pub fn choose(model: &Model, own: &ModelRunArgs, given: Option<EngineName>) -> Outcome<Chosen> {
    if let Some(engine) = given {
        return Ok(Chosen { engine, not_chip: Vec::new() });
    }
    if own.is_for_chip() {
        return Ok(Chosen::chip());
    }
    let rounding = own.model.rounding.unwrap_or_default().value();
    // What cannot run at all is told later.
    let native_code = if own.model.allow_native_code { Some(native::host(model)?) } else { None };
    let options = Options { native_code, rounding, ..Options::default() };
    let Ok(mut session) = Engine::native(options).session(model) else { return Ok(Chosen::native(Vec::new())) };
    let program = super::choose(&session, own.model.entry.as_deref())?;
    let devices = session.mesh(program).map_or(1, |mesh| mesh.devices());
    if devices > MOST_DEVICES {
        let why = format!("the program is for {devices} devices, and at most {MOST_DEVICES} are simulated");
        return Ok(Chosen::native(vec![why]));
    }
    let Ok(outline) = session.outline(program) else { return Ok(Chosen::native(Vec::new())) };
    let config = DeviceConfig::new(own.on_chip.board.board());
    let mut not_chip = by_host(&config, model, &outline, rounding);
    if not_chip.is_empty() {
        let programs: BTreeSet<usize> = outline.iter().map(|outline| outline.place.program).chain([program]).collect();
        let plans = programs.into_iter().filter_map(|program| model.programs().get(program));
        let plans = plans.map(|program| memory_plan(&config, program, rounding));
        not_chip.extend(plans.filter_map(|plan| plan.refused).take(1));
    }
    not_chip.truncate(super::SHOWN);
    Ok(if not_chip.is_empty() { Chosen::chip() } else { Chosen::native(not_chip) })
}

/// The operations that the chip has no program for, and why.
fn by_host(config: &DeviceConfig, model: &Model, outline: &[Outline<'_>], rounding: Rounding) -> Vec<String> {
    let foreseen = forecast(config, model.programs(), outline, rounding).into_iter();
    let by_host = foreseen.filter_map(|(outline, carried)| match carried {
        Carried::Host(why) => Some(format!("{}: {why}", outline.place)),
        Carried::Chip | Carried::Moved | Carried::Exchanged | Carried::Stated => None,
    });
    by_host.collect()
}

/// What is looked for in the kernels of a model, and what has been found so far.
pub struct Looks {
    checks: findings::Shared,
    races: RefCell<Option<findings::Races>>,
}

impl Looks {
    /// Nothing found yet, under a policy.
    pub fn new(policy: Policy) -> Self {
        Self { checks: findings::shared(policy), races: RefCell::new(None) }
    }

    /// What was found on the chip of a machine.
    pub fn report(&self, machine: &mut AnyMachine) -> Option<ChecksReport> {
        let AnyMachine::Chip(chip) = machine else { return None };
        let device = chip.machine_mut().each().next()?.device_mut();
        findings::report(device, &self.checks, self.races.borrow().as_ref())
    }
}

/// A session with a model: on the chip if that is asked for, otherwise in host arithmetic.
pub fn session<'m>(
    model: &'m Model,
    args: &ModelArgs,
    rounding: RoundingName,
    engine: Option<EngineName>,
    on_chip: &OnChipArgs,
    compare: Option<CompareName>,
    looks: Option<&Looks>,
) -> Outcome<Session<'m>> {
    crate::limits::start_threads()?;
    let native_code = if args.allow_native_code { Some(native::host(model)?) } else { None };
    let options = Options { native_code, rounding: rounding.value(), ..Options::default() };
    let machine = match engine {
        Some(EngineName::Chip) => {
            let dispatch = match on_chip.dispatch {
                Some(DispatchName::Slow) => Dispatch::Slow,
                Some(DispatchName::Fast) | None => Dispatch::Fast,
            };
            on_chip.refuse(looks.is_some())?;
            // Another chip says itself which board it is.
            let (mut taken, board) = match &on_chip.place.library {
                Some(library) => {
                    let (chip, board) = AnyChip::power_on(Some(library), on_chip.board.given, Settings::default())?;
                    (Some(chip), board)
                }
                None => (None, on_chip.board.board()),
            };
            let config = DeviceConfig { dispatch, ..DeviceConfig::new(board) };
            let devices = devices_for(model, args, &options, on_chip.strict.then_some(&config))?;
            if looks.is_some() && devices > 1 {
                let why = format_args!(" looks into one device; the program is for {devices}");
                return Err(Failure::option("--checks", why));
            }
            if taken.is_some() && devices > 1 {
                let why = format_args!(" is one device; the program is for {devices}");
                return Err(Failure::option("--chip", why));
            }
            let config = DeviceConfig { remember_programs: looks.is_some(), ..config };
            let mut open =
                || Ok::<_, Failure>(OnChip::new(open(taken.take(), on_chip, config, looks)?, on_chip.strict));
            let chip = Chips::new(open()?, (1..devices).map(|_| open()).collect::<Outcome<_>>()?);
            AnyMachine::Chip(Box::new(match compare {
                None => Beside::alone(chip),
                Some(with) => Beside::compared(chip, with.feed(), model),
            }))
        }
        Some(EngineName::Native) | None => {
            if let Some(option) = on_chip.given() {
                return Err(Failure::option(option, " is for --engine chip"));
            }
            if compare.is_some() {
                return Err(Failure::option("--compare", " is for --engine chip"));
            }
            AnyMachine::Native(Native)
        }
    };
    tilework_engine::Session::on(model, options, machine).map_err(run::refusal)
}

/// The most devices of a mesh that are simulated at once.
const MOST_DEVICES: usize = 8;

/// How many devices a program is for. Refuses what the chip does not run: programs for too many
/// devices, and with the configuration of a device operations that it has no program for. What
/// cannot run at all is told later.
fn devices_for(model: &Model, args: &ModelArgs, options: &Options, strict: Option<&DeviceConfig>) -> Outcome<usize> {
    let Ok(mut session) = Engine::native(options.clone()).session(model) else { return Ok(1) };
    let Ok(program) = super::choose(&session, args.entry.as_deref()) else { return Ok(1) };
    let devices = session.mesh(program).map_or(1, |mesh| mesh.devices());
    if devices > MOST_DEVICES {
        let why = format_args!(" chip: the program is for {devices} devices, and at most {MOST_DEVICES} are simulated");
        return Err(Failure::option("--engine", why));
    }
    let (Some(config), Ok(outline)) = (strict, session.outline(program)) else { return Ok(devices) };
    let by_host = by_host(config, model, &outline, options.rounding);
    if by_host.is_empty() {
        return Ok(devices);
    }
    let shown = by_host[..by_host.len().min(super::SHOWN)].join("\n");
    let count = by_host.len();
    Err(Failure::option("--strict", format_args!(": the chip has no program for {count} operations\n{shown}")))
}

/// Opens a device on a chip that was taken, or on the built-in one.
fn open(
    taken: Option<AnyChip>,
    args: &OnChipArgs,
    config: DeviceConfig,
    looks: Option<&Looks>,
) -> Outcome<crate::chip::Device> {
    let failed = |error: RuntimeError| Failure::failed("device", error.to_string());
    if let Some(mut chip) = taken {
        chip.prepare(&config)?;
        let mut device = crate::chip::Device::open(chip, config).map_err(failed)?;
        // A card is left in order also when the user interrupts.
        let interrupted = interrupt::flag();
        device.on_progress(move |_| match interrupted.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        return Ok(device);
    }
    let settings = Settings { threads: args.threads, ..Settings::default() };
    let (mut chip, _) = AnyChip::power_on(None, Some(config.board), settings)?;
    if let Some(looks) = looks {
        *looks.races.borrow_mut() = chip.check(&looks.checks, config.board);
    }
    crate::chip::Device::open(chip, config).map_err(failed)
}

impl RoundingName {
    const fn value(self) -> Rounding {
        match self {
            Self::Operations => Rounding::Operations,
            Self::Ends => Rounding::Ends,
        }
    }
}

impl ModelRunArgs {
    /// Whether an option for the chip was given.
    fn is_for_chip(&self) -> bool {
        self.trace.is_some()
            || self.compare.is_some()
            || self.on_chip.given().is_some()
            || self.checks.given().is_some()
    }
}

impl OnChipArgs {
    /// Refuses options that only the built-in chip has.
    fn refuse(&self, looks: bool) -> Outcome<()> {
        let of_built_in = [(self.threads.is_some(), "--threads"), (looks, "--checks")];
        match of_built_in.into_iter().find(|&(given, _)| given && self.place.library.is_some()) {
            Some((_, option)) => Err(Failure::option(option, " is for the built-in chip: leave out --chip")),
            None => Ok(()),
        }
    }

    /// The first of the options that was given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            (self.place.library.is_some(), "--chip"),
            (self.board.given.is_some(), "--board"),
            (self.dispatch.is_some(), "--dispatch"),
            (self.threads.is_some(), "--threads"),
            (self.strict, "--strict"),
        ];
        given.into_iter().find_map(|(given, option)| given.then_some(option))
    }
}
