//! Programs of the real compiler on the chip, with inputs and expected outputs that JAX made
//! (`data/ttnn/README.md`).

use crate::chip::common;
use std::path::Path;

use tilework_abi::board::Board;
use tilework_engine::{Comparison, Options, Rounding, Session, Tolerance, Value};
use tilework_model::Model;
use tilework_onchip::{Carried, OnChip};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_string_lossy().into_owned()
}

/// The results that differ by more than the data's README allows.
fn wrong(folder: &Path, board: Board, rounding: Rounding) -> Vec<String> {
    let model = Model::open(folder.join("program.ttnn")).unwrap_or_else(|error| panic!("{error}"));
    let chip = Chip::new(ChipConfig::new(board)).unwrap();
    let device = Device::open(chip, DeviceConfig::new(board)).unwrap();
    let options = Options { rounding, ..Options::default() };
    let mut session = Session::on(&model, options, OnChip::new(device, false)).unwrap();
    let inputs: Vec<Value> = common::arrays(folder, "in").into_iter().map(Value::from).collect();
    let started = std::time::Instant::now();
    let result = session.run(0, inputs, &mut ()).unwrap_or_else(|error| panic!("{}: {error}", name(folder)));
    let seconds = started.elapsed().as_secs_f64();
    let records = session.machine().records();
    let count = |carried: &str| records.iter().filter(|record| record.carried.name() == carried).count();
    println!(
        "{}: {seconds:.3} s, {} on the chip, {} moved, {} stated, {} by the host",
        name(folder),
        count("chip"),
        count("moved"),
        count("stated"),
        count("host")
    );
    for record in records {
        if let Carried::Host(why) = &record.carried {
            println!("  {}.{} {}: {why}", record.place.program, record.place.operation, record.place.kind.name());
        }
    }
    let expected = common::arrays(folder, "out");
    let mut wrong = Vec::new();
    for (index, (found, expected)) in result.outputs.iter().zip(&expected).enumerate() {
        let tolerance = Tolerance::of(&model.programs()[0], index);
        let comparison = Comparison::of(found.single().unwrap(), expected, tolerance).unwrap();
        println!("  {index}: {comparison}");
        if !comparison.passes() {
            wrong.push(format!("{} {index}: {comparison}", name(folder)));
        }
    }
    wrong
}

/// All but `unary_chain`, whose three roundings to bfloat16 are up to 2.1 % of its range
/// (`crates/engine/tests/real.rs`).
#[test]
fn programs_give_what_jax_gives() {
    let programs = common::shared::real_programs();
    let programs = programs.iter().filter(|folder| name(folder) != "unary_chain");
    let boards = [Board::P100, Board::P150];
    let runs = programs.flat_map(|folder| boards.map(|board| (folder, board)));
    let wrong: Vec<String> = runs.flat_map(|(folder, board)| wrong(folder, board, Rounding::Operations)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The rounding between the operations of that program is the only difference.
#[test]
fn without_rounding_between_operations_every_program_gives_what_jax_gives() {
    let programs = common::shared::real_programs();
    let wrong: Vec<String> = programs.iter().flat_map(|folder| wrong(folder, Board::P100, Rounding::Ends)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
