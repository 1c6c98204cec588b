//! Programs of several versions of the real compiler on the chip against host arithmetic
//! (`crates/model/tests/data`).

use crate::chip;
use std::path::Path;

use tilework_abi::board::Board;
use tilework_engine::{Comparison, Engine, Options, Session, Tolerance, Value};
use tilework_model::Model;
use tilework_onchip::{Carried, OnChip};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

/// Runs a program with random inputs on the chip and in host arithmetic; returns the kinds of
/// operations that the host computed for the chip.
fn by_host(file: &str, board: Board) -> Vec<&'static str> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/data").join(file);
    let model = Model::open(&path).unwrap_or_else(|error| panic!("{error}"));
    let program = &model.programs()[0];
    let inputs = || program.inputs.iter().zip(1..).map(|(of, seed)| Value::from(chip::array(of, seed))).collect();
    let expected = Engine::native(Options::default()).session(&model).unwrap().run(0, inputs(), &mut ()).unwrap();
    let device = Device::open(Chip::new(ChipConfig::new(board)).unwrap(), DeviceConfig::new(board)).unwrap();
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, false)).unwrap();
    let found = session.run(0, inputs(), &mut ()).unwrap_or_else(|error| panic!("{file}: {error}"));
    for (index, (found, expected)) in found.outputs.iter().zip(&expected.outputs).enumerate() {
        let tolerance = Tolerance::of(program, index);
        let (found, expected) = (found.single().unwrap(), expected.single().unwrap());
        let comparison = Comparison::of(found, expected, tolerance).unwrap();
        assert!(comparison.passes(), "{file} {index}: {comparison}");
    }
    let records = session.machine().records().iter();
    records.filter(|record| matches!(record.carried, Carried::Host(_))).map(|record| record.place.kind.name()).collect()
}

#[test]
fn programs_of_several_versions_run_on_the_chip() {
    let files = [
        "0.1.0/atan2.ttnn",
        "0.1.0/swiglu.ttnn",
        "0.1.2/conv3d.ttnn",
        "0.1.2/cummax.ttnn",
        "0.1.2/rows.ttnn",
        "0.1.2/softplus.ttnn",
        "0.1.3/conv3d_narrow.ttnn",
        "0.1.3/conv_groups.ttnn",
        "0.1.3/conv_prepared.ttnn",
        "0.1.3/exact_product.ttnn",
        "0.1.3/window.ttnn",
    ];
    for board in [Board::P100, Board::P150] {
        for file in files {
            let by_host = by_host(file, board);
            assert!(by_host.is_empty(), "{file}: {by_host:?}");
        }
        // Shards whose rows have no multiple of 64 bytes stay with the host.
        by_host("0.1.3/conv_transposed.ttnn", board);
    }
}
