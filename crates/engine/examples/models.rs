//! Times compiled programs on the native engine: for each folder named on the command line
//! (program.ttnn, in*.npy and out0.npy) a line of JSON with the median seconds of opening the file
//! and of a run, and the largest error as a part of the range of out0.npy. `cargo xtask bench
//! models` starts it.

mod arrays;

use std::path::Path;
use std::time::Instant;

use arrays::{array, largest_error};
use tilework_engine::{Engine, Options, Value};
use tilework_model::Model;

/// What the `tilework` command has.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of measurements; the median is reported.
const RUNS: usize = 51;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for folder in std::env::args().skip(1) {
        let folder = Path::new(&folder);
        let file = folder.join("program.ttnn");
        let open = median(|| Model::open(&file).map(drop).map_err(Into::into))?;
        let model = Model::open(&file)?;
        let mut session = Engine::native(Options::default()).session(&model)?;
        let inputs: Vec<Value> = (0..session.inputs(0)?.len())
            .map(|i| array(&folder.join(format!("in{i}.npy"))).map(Value::from))
            .collect::<Result<_, _>>()?;
        // The caller's arrays are in the program's types, as for the implementation that it is
        // compared with.
        let inputs = converted(&mut session, inputs)?;
        let outputs = session.run(0, inputs.clone(), &mut ())?.outputs;
        let found = outputs.first().ok_or("the program has no output")?.on(0).to_f32();
        let error = largest_error(&found, &array(&folder.join("out0.npy"))?.to_f32());
        let run = median(|| session.run(0, inputs.clone(), &mut ()).map(drop).map_err(Into::into))?;
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        println!("{{\"name\": \"{name}\", \"open_seconds\": {open:e}, \"seconds\": {run:e}, \"error\": {error:e}}}");
    }
    Ok(())
}

/// bfloat16 inputs as bfloat16.
fn converted(
    session: &mut tilework_engine::Session<'_>,
    inputs: Vec<Value>,
) -> Result<Vec<Value>, Box<dyn std::error::Error>> {
    let infos = session.inputs(0)?;
    let one = |(value, info): (Value, &tilework_engine::InputInfo)| match info.dtype {
        tilework_model::common::DataType::BFloat16 => {
            Value::from(tilework_ops::typecast(value.on(0), tilework_ops::DType::BF16))
        }
        _ => value,
    };
    Ok(inputs.into_iter().zip(&infos).map(one).collect())
}

fn median(mut work: impl FnMut() -> Result<(), Box<dyn std::error::Error>>) -> Result<f64, Box<dyn std::error::Error>> {
    work()?;
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        work()?;
        seconds.push(started.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}
