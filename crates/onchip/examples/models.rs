//! Times compiled programs on the simulated chip: for each folder named on the command line
//! (program.ttnn, in*.npy and out0.npy) a line of JSON with the seconds of this machine and the
//! cycles of the chip of a run that is not the first, and the largest error as a part of the range
//! of out0.npy. `cargo xtask bench models` starts it.

#[path = "../../engine/examples/arrays/mod.rs"]
mod arrays;

use std::path::Path;
use std::time::Instant;

use arrays::{array, largest_error};
use tilework_abi::board::Board;
use tilework_driver::HostLink;
use tilework_engine::{Options, Session, Value};
use tilework_model::Model;
use tilework_onchip::OnChip;
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
