//! Times compiled programs on the simulated chip: for each folder named on the command line
//! (program.ttnn, in*.npy and out0.npy) a line of JSON with the seconds of this machine and the
//! cycles of the chip of a run that is not the first, and the largest error as a part of the range
//! of out0.npy. `cargo xtask bench models` starts it.

use std::path::Path;
use std::time::Instant;

use npyz::NpyFile;
use tilework_abi::board::Board;
use tilework_driver::HostLink;
use tilework_engine::{Options, Session, Value};
use tilework_model::Model;
use tilework_onchip::OnChip;
use tilework_ops::{Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

/// Runs after the first; the median of their seconds is reported.
const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let board = Board::P100;
    for folder in std::env::args().skip(1) {
        let folder = Path::new(&folder);
        let model = Model::open(folder.join("program.ttnn"))?;
        let device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
        let mut session = Session::on(&model, Options::default(), OnChip::new(device, false))?;
        let inputs: Vec<Value> = (0..session.inputs(0)?.len())
            .map(|i| array(&folder.join(format!("in{i}.npy"))).map(Value::from))
            .collect::<Result<_, _>>()?;
        let placed = session.place(0, inputs)?;
        let outputs = session.run_placed(&placed, &mut ())?.outputs;
        let found = outputs.first().ok_or("the program has no output")?.on(0).to_f32();
        let error = largest_error(&found, &array(&folder.join("out0.npy"))?.to_f32());
        let (mut seconds, mut cycles) = (Vec::new(), 0);
        for _ in 0..RUNS {
            let before = session.machine().device().chip().cycles();
            let started = Instant::now();
            session.run_placed(&placed, &mut ())?;
            seconds.push(started.elapsed().as_secs_f64());
            cycles = session.machine().device().chip().cycles() - before;
        }
        seconds.sort_by(f64::total_cmp);
        let (name, run) = (folder.file_name().unwrap_or_default().to_string_lossy(), seconds[RUNS / 2]);
        println!("{{\"name\": \"{name}\", \"seconds\": {run:e}, \"cycles\": {cycles}, \"error\": {error:e}}}");
    }
    Ok(())
}

/// The largest difference as a part of the range of what is expected.
fn largest_error(found: &[f32], expected: &[f32]) -> f32 {
    let of = |start: f32, choose: fn(f32, f32) -> f32| expected.iter().copied().fold(start, choose);
    let range = of(f32::NEG_INFINITY, f32::max) - of(f32::INFINITY, f32::min);
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // A missing or extra element is as wrong as can be.
    if found.len() == expected.len() { differences.fold(0.0, f32::max) / range } else { f32::INFINITY }
}

fn array(path: &Path) -> Result<Tensor, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let npy = NpyFile::new(&bytes[..])?;
    let shape = Shape::new(npy.shape().iter().map(|&n| n as usize).collect::<Vec<_>>()).map_err(|e| e.to_string())?;
    Ok(Tensor::new(shape, npy.into_vec::<f32>()?)?)
}
