//! Randomly corrupted files: those that can be read are run within limits, and end in a result
//! or an error.

use std::path::{Path, PathBuf};

use tilework_engine::{Engine, Options, Value};
use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_ops::{DType, Shape, Tensor};

/// The files of real compilers that the reader is tested with.
fn files() -> Vec<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/data");
    let folders = ["0.1.0", "0.1.1", "0.1.2", "0.1.3"].map(|version| std::fs::read_dir(data.join(version)).unwrap());
    let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "ttnn")).collect();
    files.sort();
    assert!(files.len() >= 12);
    files
}

/// Marsaglia's xorshift.
struct Dice(u64);

impl Dice {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Whether the first program ran to its end, with integers from 1 to 3 for inputs, on each device
/// the same: these are experts and numbers of candidates, too.
fn run(model: &Model) -> Option<bool> {
    let options = Options { max_bytes: 16 << 20, max_operations: 2000, ..Options::default() };
    let mut session = Engine::native(options).session(model).ok()?;
    let mut inputs = Vec::new();
    for info in session.inputs(0).ok()? {
        let dims: Option<Vec<usize>> = info.shape.iter().map(|&n| usize::try_from(n).ok()).collect();
        let shape = Shape::new(dims?).ok().filter(|shape| shape.elements() <= 1 << 18)?;
        let most = if info.dtype == DataType::Bool { 1 } else { 3 };
        let numbers: Vec<i64> = (0..shape.elements() as i64).map(|n| 1 + n % most).collect();
        let tensor = Tensor::from_i64(DType::I32, shape, &numbers).unwrap();
        let devices = session.mesh(0).ok()?.devices().min(256);
        inputs.push(Value::shards(vec![tensor; devices])?);
    }
    Some(session.run(0, inputs, &mut ()).is_ok())
}

#[test]
fn changed_files_end_in_results_or_errors() {
    let (mut ran, mut failed) = (0, 0);
    let mut dice = Dice(2026);
    for file in files() {
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(run(&Model::open(&file).unwrap()), Some(true), "{}", file.display());
        // Numbers and offsets, not text.
        let places: Vec<usize> = (0..bytes.len()).filter(|&at| !(32..127).contains(&bytes[at])).collect();
        for _ in 0..200 {
            let mut bytes = bytes.clone();
            let at = places[dice.next(places.len())];
            bytes[at] = match dice.next(3) {
                0 => dice.next(256) as u8,
                1 => dice.next(5) as u8,
                _ => bytes[at].wrapping_add(1),
            };
            let Ok(model) = Model::from_bytes(bytes, Default::default()) else { continue };
            match run(&model) {
                Some(true) => ran += 1,
                Some(false) => failed += 1,
                None => {}
            }
        }
    }
    println!("{ran} ran, {failed} were refused");
    assert!(ran > 50 && failed > 50, "{ran} ran, {failed} were refused: the changes do not reach the programs");
}
