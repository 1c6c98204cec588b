//! `tilework run`: a program file and arrays in, arrays and a report out.

use crate::args::{DispatchName, EngineName, Input, RunArgs, Source as ArraySource};
use crate::array::Array;
use crate::chip::{AnyChip, Device};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::program::Plan;
use crate::program::plan::PlannedBuffer;
use crate::program::schema::{Location, ProgramFile, Use};
use crate::program::source::Source;
use crate::progress::Progress;
use crate::report::{CoreTime, LIBRARY_TIMING, Output, Report, Session, TIMING_MODEL};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_runtime::{
    ArgSet, Buffer, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role,
    RunReport, RuntimeError, UniqueArgs, prebuilt,
};

/// Runs a program and prints its report.
pub fn run(args: &RunArgs) -> Outcome<()> {
    refuse_model_options(args)?;
    if dispatch(args) == DispatchName::Slow {
        for (given, option) in [(args.capture.is_some(), "--capture"), (args.core_timing, "--core-timing")] {
            if given {
                return Err(Failure::usage(format!("{option} needs --dispatch fast")));
            }
        }
    }
    if args.firmware.is_some() && args.core_timing {
        return Err(Failure::usage("--core-timing needs our own worker firmware: leave out --firmware"));
    }
    let failure = failure(&args.program);
    let progress = Progress::new();
    let started = Instant::now();
    let inputs = read_inputs(&args.input)?;
    let source = Source::read(&args.program, "a program file")?;
    let file = ProgramFile::parse(&source)?;
    let (chip, board) = AnyChip::power_on(args.chip.as_deref(), args.board)?;
    let plan = Plan::new(source, file, board, &inputs)?;
    let firmware = args.firmware.as_deref().map(crate::firmware::load).transpose()?;
    files::make_folder(&args.out)?;
    check_capture(args, &plan)?;

    progress.next();
    let mut device = open(chip, config(args, board), firmware).map_err(|error| not_started(failure(error), args))?;
    progress.next();
    let placed = place(&mut device, &plan).map_err(&failure)?;
    for (i, buffer) in plan.buffers_for(Use::Input) {
        if let (Some(dram), Some(array)) = (&placed.dram[i], inputs.get(&buffer.name)) {
            device.upload(dram, &array.data).map_err(&failure)?;
        }
    }
    let program = build(&plan, &placed)?;

    progress.next();
    let bar = progress.clone();
    device.on_progress(move |p| bar.cycles(p.cycles));
    let run_started = Instant::now();
    let ran = device.run(std::slice::from_ref(&program));
    let host_seconds = run_started.elapsed().as_secs_f64();
    // A capture is most wanted when the run failed, but a capture that cannot be written must not hide why it failed.
    let captured = match (&args.capture, device.captured()) {
        (Some(path), Some(records)) => files::write_whole(path, &[records]),
        _ => Ok(()),
    };
    let finished = ran.map_err(&failure).and_then(|ran| {
        progress.next();
        let arrays = download(&mut device, &plan, &placed).map_err(&failure)?;
        Ok((ran, write_outputs(arrays, &args.out)?))
    });
    let (ran, outputs) = match (finished, captured) {
        (Err(first), Err(capture)) => return Err(first.and(&capture)),
        (finished, captured) => {
            let finished = finished?;
            captured?;
            finished
        }
    };
    let session = session(&device, started.elapsed().as_secs_f64());
    drop(progress);
    report(args, &plan, &ran, host_seconds, session, outputs).print(args.report)
}

fn dispatch(args: &RunArgs) -> DispatchName {
    args.dispatch.unwrap_or(DispatchName::Fast)
}

fn refuse_model_options(args: &RunArgs) -> Outcome<()> {
    if args.engine == Some(EngineName::Native) {
        return Err(Failure::usage("--engine native: a kernel program is code for the chip and has no other meaning"));
    }
    match args.model_option().or(args.model.rounding.is_some().then_some("--rounding")) {
        Some(option) => Err(Failure::usage(format!("{option} is for compiled models (.ttnn)"))),
        None => Ok(()),
    }
}

/// Refuses a capture that would replace the program, an array or an output of the same run.
fn check_capture(args: &RunArgs, plan: &Plan) -> Outcome<()> {
    let Some(capture) = &args.capture else { return Ok(()) };
    let outputs = plan.buffers_for(Use::Output).map(|(_, buffer)| args.out.join(format!("{}.npy", buffer.name)));
    let inputs = args.input.iter().filter_map(|input| match &input.source {
        ArraySource::File { path, .. } => Some(path.clone()),
        ArraySource::Random(_) => None,
    });
    let taken = inputs.chain(outputs).chain([args.program.clone()]);
    match taken.into_iter().find(|path| files::same_place(path, capture)) {
        Some(path) => Err(Failure::usage(format!("--capture would replace {}", path.display()))),
        None => Ok(()),
    }
}

fn read_inputs(given: &[Input]) -> Outcome<BTreeMap<String, Array>> {
    let mut inputs = BTreeMap::new();
    for Input { name, source } in given {
        let array = match source {
            ArraySource::File { path, key } => Array::open(path, key.as_deref())?,
            ArraySource::Random(_) => {
                return Err(Failure::usage(format!(
                    "--input {name}: random numbers are for the inputs of compiled models"
                )));
            }
        };
        if inputs.insert(name.clone(), array).is_some() {
            return Err(Failure::usage(format!("--input {name} is given twice")));
        }
    }
    Ok(inputs)
}

fn open(chip: AnyChip, config: DeviceConfig, firmware: Option<FirmwareSet>) -> Result<Device, RuntimeError> {
    match firmware {
        Some(firmware) => Device::open_with(chip, config, firmware, prebuilt::cq_kernels()?),
        None => Device::open(chip, config),
    }
}

/// A failed start with what to look at first, when the firmware is not ours.
fn not_started(failure: Failure, args: &RunArgs) -> Failure {
    match (&args.firmware, failure) {
        (Some(folder), Failure::Failed(message)) => Failure::failed(format!(
            "{message}\nthe worker firmware of {} did not start; does its memory map differ from the one that it was given \
             (docs/program.md, \"memory-map.toml\")?",
            folder.display()
        )),
        (_, failure) => failure,
    }
}

fn config(args: &RunArgs, board: Board) -> DeviceConfig {
    let mut config = DeviceConfig::new(board);
    config.dispatch = match dispatch(args) {
        DispatchName::Fast => Dispatch::Fast,
        DispatchName::Slow => Dispatch::Slow,
    };
    config.core_timing = args.core_timing;
    config.capture = args.capture.is_some();
    config.max_cycles = args.max_cycles.unwrap_or(config.max_cycles);
    config
}

/// What the runtime refuses before anything runs is wrong use of the program file; what happens on the device is a failed run.
fn failure(program: &Path) -> impl Fn(RuntimeError) -> Failure {
    move |error| match error {
        RuntimeError::Program(_) | RuntimeError::Elf(_) | RuntimeError::Memory(_) | RuntimeError::Encode(_) => {
            Failure::usage(format!("{}: {error}", program.display()))
        }
        RuntimeError::Firmware(_) => Failure::usage(error.to_string()),
        other => Failure::failed(other.to_string()),
    }
}

/// Where the buffers of a plan are, in its order.
struct Placed {
    addresses: Vec<u64>,
    dram: Vec<Option<Buffer>>,
}

fn place(device: &mut Device, plan: &Plan) -> Result<Placed, RuntimeError> {
    let mut placed = Placed { addresses: Vec::new(), dram: Vec::new() };
    for buffer in &plan.buffers {
        let (address, dram) = match buffer.location {
            Location::L1 => {
                let bytes = u64::from(buffer.pages) * u64::from(buffer.page_size);
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                (device.alloc_l1(&buffer.name, bytes)?.address.into(), None)
            }
            Location::Dram => {
                let dram = alloc_dram(device, buffer)?;
                (dram.address.get(), (buffer.pages > 0).then_some(dram))
            }
        };
        placed.addresses.push(address);
        placed.dram.push(dram);
    }
    Ok(placed)
}

fn alloc_dram(device: &mut Device, buffer: &PlannedBuffer) -> Result<Buffer, RuntimeError> {
    // The runtime has no empty buffers; a byte does as well.
    let bytes = buffer.bytes.max(1);
    let dtype = if buffer.bytes > 0 { buffer.dtype } else { DType::U8 };
    let elements = usize::try_from(bytes).unwrap_or(usize::MAX) / (dtype.bits() as usize / 8);
    device.alloc_dram(&buffer.name, &[elements], dtype, buffer.page_size)
}

fn build(plan: &Plan, placed: &Placed) -> Outcome<Program> {
    let arguments = plan.arguments(&placed.addresses)?;
    let cores = plan.roles.iter().flat_map(|r| r.cores.iter().copied()).collect();
    let mut program = Program::new(&plan.name, Cores::List(cores));
    for planned in &plan.roles {
        let mut role = Role::on(planned.cores.clone());
        for kernel in &planned.kernels {
            let image = KernelImage::load(&kernel.label, kernel.elf.clone(), kernel.processor)
                .map_err(|e| Failure::usage(format!("role \"{}\", {}: {e}", planned.name, kernel.processor.name())))?;
            role = role.kernel(kernel.processor, Arc::new(image));
        }
        program = program.role(role);
    }
    for cb in &plan.cbs {
        let (index, page_size, pages) = (cb.index.into(), cb.page_size, PageCount::new(cb.pages));
        program = program.circular_buffer(CircularBuffer { index, page_size, pages });
    }
    program.semaphores = plan.semaphores.clone();
    let sets = [ArgSet::Brisc, ArgSet::Ncrisc, ArgSet::Compute];
    for ((set, lists), common) in sets.into_iter().zip(arguments.per_core).zip(arguments.common) {
        program = program.unique_args(set, even(lists)).common_args(set, common);
    }
    Ok(program)
}

/// The lists of all cores in one length: a role without a kernel, or with fewer arguments, gets zeros it does not look at.
fn even(mut lists: Vec<Vec<u32>>) -> UniqueArgs {
    let longest = lists.iter().map(Vec::len).max().unwrap_or(0);
    for list in &mut lists {
        list.resize(longest, 0);
    }
    match lists.split_first() {
        Some((first, rest)) if rest.iter().all(|list| list == first) => UniqueArgs::Uniform(first.clone()),
        _ => UniqueArgs::PerCore(lists),
    }
}

/// The output arrays by name.
fn download(device: &mut Device, plan: &Plan, placed: &Placed) -> Result<Vec<(String, Array)>, RuntimeError> {
    let array = |(i, buffer): (usize, &PlannedBuffer)| {
        let data = match &placed.dram[i] {
            Some(dram) => device.download(dram)?,
            None => Vec::new(),
        };
        Ok((buffer.name.clone(), Array { dtype: buffer.dtype, shape: buffer.shape.clone(), data }))
    };
    plan.buffers_for(Use::Output).map(array).collect()
}

fn write_outputs(arrays: Vec<(String, Array)>, out: &Path) -> Outcome<BTreeMap<String, Output>> {
    let mut outputs = BTreeMap::new();
    for (name, array) in arrays {
        let output = Output::write(array, &out.join(format!("{name}.npy")))?;
        outputs.insert(name, output);
    }
    Ok(outputs)
}

fn session(device: &Device, host_seconds: f64) -> Session {
    let all = device.statistics().chip;
    Session {
        cycles: all.map(|all| all.cycles),
        host_seconds,
        instructions: all.map(|all| all.instructions),
        pcie_bytes: all.map(|all| all.pcie_bytes),
        noc_bytes: all.map(|all| all.noc_bytes),
    }
}

fn report(
    args: &RunArgs,
    plan: &Plan,
    ran: &RunReport,
    host_seconds: f64,
    session: Session,
    outputs: BTreeMap<String, Output>,
) -> Report {
    let counts = ran.statistics.chip;
    let times = ran.programs.iter().flat_map(|p| &p.core_times);
    let times = times.map(|t| CoreTime { x: t.core.x, y: t.core.y, start: t.start, end: t.end });
    Report {
        program: plan.name.clone(),
        board: plan.board.name(),
        chip: AnyChip::name(args.chip.as_deref()),
        dispatch: dispatch(args).name(),
        firmware: args.firmware.as_ref().map_or_else(|| "prebuilt".to_owned(), |folder| folder.display().to_string()),
        cycles: ran.cycles,
        simulated_seconds: ran.cycles.map(Report::seconds),
        host_seconds,
        program_cycles: ran.programs.first().and_then(tilework_runtime::ProgramReport::cycles),
        instructions: counts.map(|counts| counts.instructions),
        skipped_instructions: counts.map(|counts| counts.skipped),
        mips: counts.map(|counts| counts.instructions as f64 / host_seconds / 1e6),
        programs: ran.statistics.programs,
        commands: ran.statistics.commands,
        pcie_bytes: counts.map(|counts| counts.pcie_bytes),
        noc_bytes: counts.map(|counts| counts.noc_bytes),
        cores: plan.roles.iter().map(|r| r.cores.len()).sum(),
        core_timing: args.core_timing.then(|| times.collect()),
        session,
        outputs,
        timing_model: if args.chip.is_some() { LIBRARY_TIMING } else { TIMING_MODEL },
    }
}
