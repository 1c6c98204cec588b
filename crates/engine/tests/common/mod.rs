//! Helpers of the tests: the folders of real programs, and arrays from files.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod build;
#[path = "../../../model/tests/common/shared.rs"]
pub(crate) mod shared;

use std::path::Path;

use npyz::{DType, NpyFile};
use tilework_ops::{DType as Type, Shape, Tensor};

/// Fails if a file of a crate's tests is no module of their one binary.
pub(crate) fn assert_all_are_modules(manifest: &str) {
    let folder = Path::new(manifest).join("tests");
    let main = std::fs::read_to_string(folder.join("main.rs")).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|&module| module != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name} is in no test binary");
        }
    }
}

/// The arrays `in0.npy`, `in1.npy`, ... of a folder.
pub(crate) fn arrays(folder: &Path, prefix: &str) -> Vec<Tensor> {
    (0..)
        .map(|index| folder.join(format!("{prefix}{index}.npy")))
        .take_while(|path| path.is_file())
        .map(|path| array(&path))
        .collect()
}

/// An array of floats, integers or truth values.
pub(crate) fn array(path: &Path) -> Tensor {
    let bytes = std::fs::read(path).unwrap();
    let npy = NpyFile::new(&bytes[..]).unwrap();
    let shape = Shape::new(npy.shape().iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    let DType::Plain(dtype) = npy.dtype() else { panic!("{}: not an array of numbers", path.display()) };
    let text = dtype.to_string();
    match &text[1..] {
        "f4" => Tensor::new(shape, npy.into_vec::<f32>().unwrap()).unwrap(),
        "i4" => Tensor::new(shape, npy.into_vec::<i32>().unwrap()).unwrap(),
        "u4" => Tensor::new(shape, npy.into_vec::<u32>().unwrap()).unwrap(),
        "u2" => Tensor::new(shape, npy.into_vec::<u16>().unwrap()).unwrap(),
        "u1" => Tensor::new(shape, npy.into_vec::<u8>().unwrap()).unwrap(),
        "i8" => Tensor::from_i64(Type::I32, shape, &npy.into_vec::<i64>().unwrap()).unwrap(),
        "b1" => {
            let values = npy.into_vec::<bool>().unwrap();
            Tensor::from_i64(Type::Bool, shape, &values.into_iter().map(i64::from).collect::<Vec<_>>()).unwrap()
        }
        other => panic!("{}: elements of type {other}", path.display()),
    }
}
