//! Netlists of the tests' own, with tensors that hold one number in each matrix.

#![allow(dead_code, reason = "not every test uses all of it")]

use tilework_buda::Tensor;
use tilework_buda::backend::{Backend, BackendError, BackendOptions, Call, RunRecord};
use tilework_buda::epoch::Golden;
use tilework_netlist::types::{Netlist, Shape, Size};

/// A netlist of tests/data.
pub(crate) fn load(name: &str) -> Netlist {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    parse(name, &std::fs::read_to_string(path).unwrap())
}

/// A netlist in a text.
pub(crate) fn parse(name: &str, text: &str) -> Netlist {
    tilework_netlist::read(name, text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// An initialised backend.
pub(crate) fn ready(netlist: &Netlist, options: BackendOptions) -> Backend {
    let backend = Backend::new(netlist.clone(), Golden::default(), options);
    backend.initialize().unwrap();
    backend
}

/// A tensor of 32 x 32 matrices, one for each number.
pub(crate) fn tensor(numbers: &[f32]) -> Tensor {
    let shape = Shape { t: numbers.len(), rows: 32, columns: 32 };
    Tensor::from_fn(shape, Size { r: 32, c: 32 }, |t, _, _| numbers[t]).unwrap()
}

/// The numbers of such a tensor.
pub(crate) fn numbers(tensor: &Tensor) -> Vec<f32> {
    let matrices = tensor.values().chunks(32 * 32);
    matrices
        .map(|matrix| {
            assert!(matrix.iter().all(|v| *v == matrix[0]), "a matrix of several numbers");
            matrix[0]
        })
        .collect()
}

/// Pushes an entry for each number.
pub(crate) fn push(backend: &Backend, queue: &str, entries: &[f32]) {
    let queue = backend.queue(queue).unwrap();
    for entry in entries {
        backend.push_input(queue, &tensor(&[*entry]), None, None).unwrap();
    }
}

/// Runs a program.
pub(crate) fn run(backend: &Backend, program: &str, parameters: &[(&str, i64)]) -> Result<RunRecord, BackendError> {
    let parameters = parameters.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    backend.run_program(&Call { program: program.into(), parameters })
}

/// Runs a program that fails; what it says.
pub(crate) fn fails(backend: &Backend, program: &str, parameters: &[(&str, i64)]) -> String {
    run(backend, program, parameters).unwrap_err().to_string()
}

/// All numbers in a queue's memory.
pub(crate) fn memory(backend: &Backend, queue: &str) -> Vec<f32> {
    let entries = backend.memory(backend.queue(queue).unwrap()).unwrap();
    entries.iter().flat_map(numbers).collect()
}

/// Read and write pointer of a queue.
pub(crate) fn pointers(backend: &Backend, queue: &str) -> (u32, u32) {
    let pointers = backend.pointers(backend.queue(queue).unwrap());
    (pointers.rd(), pointers.wr())
}
