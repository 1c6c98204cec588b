//! `tilework show`: what is in a compiled model.

use super::args::ModelShowArgs;
use super::{memory, open};
use crate::answer::{Answer, ReportForm};
use crate::args::ShowArgs;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::io::{Result, Write};
use tilework_dtype::DType;
use tilework_dtype::block::BLOCK;
use tilework_engine::{Engine, InputInfo, Options, Session};
use tilework_model::common::{DataType, TensorLayout};
use tilework_model::metal::TTMetalBinary;
use tilework_model::system::SystemDesc;
use tilework_model::ttnn::{Program, TensorRef};
use tilework_model::{Contents, Direction, Model};
use tilework_text::plain;

/// Shows what is asked for.
pub fn show(args: &ShowArgs, own: &ModelShowArgs) -> Outcome<Answer> {
    let model = open(&args.file, own.schema)?;
    if own.mlir && args.report.form() == ReportForm::Json {
        return Err(Failure::option(
            "--mlir",
            " prints the compiler's text, and --report json a JSON object; choose one",
        ));
    }
    if own.ops && args.report.form() == ReportForm::Json {
        return Err(Failure::option("--ops", " is for people: a JSON report has all operations"));
    }
    if own.ops && !matches!(model.contents, Contents::Ttnn(_)) {
        let is = format_args!(" is for TTNN programs (.ttnn); {} has none", args.file.display());
        return Err(Failure::option("--ops", is));
    }
    if own.memory {
        return memory::show(&model, own.board.board(), &args.file);
    }
    if own.board.given.is_some() {
        return Err(Failure::option("--board", " is for --memory"));
    }
    if own.mlir && model.mlir().is_none() {
        return Err(Failure::file(&args.file, "there is no text of the compiler in it"));
    }
    let (mlir, ops) = (own.mlir, own.ops);
    Ok(Answer::new(model, move |model, out| match model.mlir() {
        Some(text) if mlir => out.write_all(text.source.as_bytes()),
        _ => describe(model, ops, out),
    }))
}

fn describe(model: &Model, ops: bool, out: &mut dyn Write) -> Result<()> {
    let engine = Engine::native(Options::default());
    let session = engine.session(model).ok();
    head(model, out)?;
    match &model.contents {
        Contents::Ttnn(root) => {
            for (index, program) in root.programs.iter().enumerate() {
                show_program(session.as_ref(), index, program, ops, out)?;
            }
        }
        Contents::Metal(root) => show_metal(root, out)?,
        Contents::System(_) => {}
    }
    for (program, library) in model.dylibs() {
        let whose = program.map(|name| format!(" of program {}", plain(name))).unwrap_or_default();
        writeln!(
            out,
            "native library {}{whose}: {} bytes, executed only with --allow-native-code",
            library.dylib_id,
            library.raw_file.len()
        )?;
    }
    match model.system() {
        Some(system) => show_system(system, out),
        None => Ok(()),
    }
}

fn head(model: &Model, out: &mut dyn Write) -> Result<()> {
    let kind = match &model.contents {
        Contents::Ttnn(_) => "TTNN programs",
        Contents::Metal(_) => "TTMetal programs",
        Contents::System(_) => "system description",
    };
    writeln!(out, "{kind}, {} bytes", model.size)?;
    writeln!(out, "  schema   {} ({})", plain(model.schema_hash()), model.schema_name.unwrap_or("unknown"))?;
    let version = model.version().map(|v| format!("{}.{}.{}", v.major, v.minor, v.patch)).unwrap_or_default();
    writeln!(out, "  compiler {version}, commit {}", plain(model.compiler_git_hash()))?;
    match model.mlir() {
        Some(mlir) => {
            writeln!(out, "  text     {} of {} bytes (--mlir prints it)", plain(&mlir.name), mlir.source.len())
        }
        None => Ok(()),
    }
}

fn show_program(
    session: Option<&Session<'_>>,
    index: usize,
    program: &Program,
    ops: bool,
    out: &mut dyn Write,
) -> Result<()> {
    let private = if program.private { ", private" } else { "" };
    let mesh = program.mesh_shape.map(|shape| format!(", mesh {}x{}", shape.y, shape.x)).unwrap_or_default();
    writeln!(
        out,
        "\nprogram {index} {}{private}{mesh}: {} operations",
        plain(&program.name),
        program.operations.len()
    )?;
    let infos: Vec<InputInfo> = session.and_then(|session| session.inputs(index).ok()).unwrap_or_default();
    for (i, input) in program.inputs.iter().enumerate() {
        let name = infos.get(i).and_then(|info| info.name.as_ref());
        let name = name.map(|name| format!(" {}", plain(name))).unwrap_or_default();
        let part = if infos.get(i).is_some_and(|info| info.sharded) { ", each device its own" } else { "" };
        writeln!(out, "  in{i:<3} {}{name}{part}", tensor(input))?;
    }
    for (i, output) in program.outputs.iter().enumerate() {
        writeln!(out, "  out{i:<2} {}", tensor(output))?;
    }
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for operation in &program.operations {
        *kinds.entry(operation.kind().name()).or_default() += 1;
    }
    let listed: Vec<String> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    writeln!(out, "  {}", listed.join(", "))?;
    writeln!(out, "  tensors: {:.1} KiB in inputs, {:.1} KiB in results", kib(program, true), kib(program, false))?;
    if ops {
        for (i, operation) in program.operations.iter().enumerate() {
            let operands = operation.operands();
            let list = |wanted: fn(Direction) -> bool| {
                let chosen = operands.iter().filter(|operand| wanted(operand.direction));
                chosen
                    .map(|operand| format!("{}: {}", operand.role, tensor(operand.tensor)))
                    .collect::<Vec<_>>()
                    .join(", ")
            };
            let (read, made) = (list(|d| d != Direction::Out), list(|d| d != Direction::In));
            writeln!(out, "  {i:>4} {} ({read}) -> {made}", operation.kind().name())?;
        }
    }
    Ok(())
}

/// A tensor as people write it: `%7 bf16[32x128] tile DRAM`.
fn tensor(tensor: &TensorRef) -> String {
    let memory = &tensor.desc.layout.memory_desc;
    let shape: Vec<String> = tensor.desc.shape.iter().map(i32::to_string).collect();
    let layout =
        if (memory.tile_shape.y, memory.tile_shape.x) == (1, 1) { TensorLayout::RowMajor } else { TensorLayout::Tile };
    let place = match &memory.memory_config {
        Some(config) => format!("{} {}", config.buffer_type, config.tensor_memory_layout),
        None => memory.storage_type.to_string(),
    };
    format!("%{} {}[{}] {layout} {place}", tensor.global_id, memory.data_type, shape.join("x"))
}

/// KiB of a program's inputs, or of what its operations make.
fn kib(program: &Program, inputs: bool) -> f64 {
    let bytes = |tensor: &TensorRef| {
        let elements: f64 = tensor.desc.shape.iter().map(|&n| f64::from(n)).product();
        elements * bits(tensor.desc.layout.memory_desc.data_type) / 8.0
    };
    let total: f64 = if inputs {
        program.inputs.iter().map(bytes).sum()
    } else {
        let operands = program.operations.iter().flat_map(|operation| operation.operands());
        operands.filter(|operand| operand.direction == Direction::Out).map(|operand| bytes(operand.tensor)).sum()
    };
    // The sum of nothing is -0.
    total.max(0.0) / 1024.0
}

/// Bits of an element; those of blocks share an exponent of 8 bits among 16.
fn bits(dtype: DataType) -> f64 {
    let format = DType::from(dtype);
    f64::from(format.bits()) + if format.is_block() { 8.0 / BLOCK as f64 } else { 0.0 }
}

fn show_metal(root: &TTMetalBinary, out: &mut dyn Write) -> Result<()> {
    for (index, program) in root.programs.iter().enumerate() {
        writeln!(out, "\nprogram {index} {}: {} device programs", plain(&program.name), program.device_programs.len())?;
        writeln!(out, "  {} inputs, {} outputs", program.inputs.len(), program.outputs.len())?;
        for (k, device) in program.device_programs.iter().enumerate() {
            for queue in &device.command_queues {
                writeln!(out, "  device program {k}, queue {}: {} commands", plain(&queue.name), queue.commands.len())?;
                for (i, command) in queue.commands.iter().enumerate() {
                    // Commands have few fields, most of them numbers: as data they fit a line.
                    let mut fields = serde_json::to_value(&command.kind)?;
                    if let Some(fields) = fields.as_object_mut() {
                        fields.remove("kind");
                    }
                    let kind = command.kind.name().trim_end_matches("Command");
                    writeln!(out, "  {i:>4} {kind} {fields}")?;
                }
            }
        }
    }
    Ok(())
}

fn show_system(system: &SystemDesc, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "\nsystem: {} chips", system.chip_descs.len())?;
    for (i, chip) in system.chip_descs.iter().enumerate() {
        writeln!(
            out,
            "  chip {i}: {}, grid {}x{}, L1 {} KiB a core, {} DRAM channels of {} MiB",
            chip.arch,
            chip.grid_size.y,
            chip.grid_size.x,
            chip.l1_size / 1024,
            chip.num_dram_channels,
            chip.dram_channel_size >> 20
        )?;
    }
    Ok(())
}
