//! `.safetensors` files: a header in JSON and the elements behind it.

use super::{Array, MAX_FILE_BYTES, choose};
use crate::failure::{Failure, Outcome};
use crate::files;
use safetensors::{Dtype as Stored, SafeTensors};
use std::path::Path;
use tilework_dtype::DType;

/// Reads the array named `key`, or the only one.
pub(super) fn read(path: &Path, key: Option<&str>) -> Outcome<Array> {
    let fail = |error: String| Failure::file(path, tilework_text::plain(&error));
    let bytes = files::read_within(path, MAX_FILE_BYTES, "a .safetensors file")?;
    let file = SafeTensors::deserialize(&bytes).map_err(|e| fail(format!("not a .safetensors file: {e}")))?;
    let names: Vec<String> = file.names().into_iter().map(|name| (*name).to_owned()).collect();
    let name = choose(&names, key).map_err(fail)?;
    let tensor = file.tensor(name).map_err(|e| fail(format!("array {name}: {e}")))?;
    let shape = tensor.shape().iter().map(|&n| n as u64).collect();
    let (dtype, data) = match tensor.dtype() {
        Stored::BF16 => (DType::F32, widened(tensor.data())),
        other => match numpy(other) {
            Some(dtype) => (dtype, tensor.data().to_vec()),
            None => return Err(fail(format!("array {name} has elements of type {other:?}, which are not supported"))),
        },
    };
    Ok(Array { dtype, shape, data })
}

fn numpy(stored: Stored) -> Option<DType> {
    Some(match stored {
        Stored::BOOL => DType::Bool,
        Stored::U8 => DType::U8,
        Stored::I8 => DType::I8,
        Stored::U16 => DType::U16,
        Stored::I16 => DType::I16,
        Stored::U32 => DType::U32,
        Stored::I32 => DType::I32,
        Stored::U64 => DType::U64,
        Stored::I64 => DType::I64,
        Stored::F16 => DType::F16,
        Stored::F32 => DType::F32,
        Stored::F64 => DType::F64,
        _ => return None,
    })
}

/// bfloat16 is the upper half of float32.
fn widened(bfloat16: &[u8]) -> Vec<u8> {
    bfloat16.as_chunks::<2>().0.iter().flat_map(|&[low, high]| [0, 0, low, high]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;
    use std::io::Write;

    #[test]
    fn arrays_are_found_by_name_and_bfloat16_is_widened() {
        let one: &[u8] = &[0x80, 0x3F]; // 1.0
        let ints: Vec<u8> = [5_i32, -6].iter().flat_map(|v| v.to_le_bytes()).collect();
        let views = [
            ("b", TensorView::new(Stored::BF16, vec![1], one).expect("a view")),
            ("i", TensorView::new(Stored::I32, vec![2, 1], &ints).expect("a view")),
        ];
        let bytes = safetensors::serialize(views, None).expect("a file");
        let mut file = tempfile::Builder::new().suffix(".safetensors").tempfile().expect("a temporary file");
        file.write_all(&bytes).expect("the file's bytes");
        let b = Array::open(file.path(), Some("b")).expect("b");
        assert_eq!((b.dtype, b.shape, b.data), (DType::F32, vec![1], 1_f32.to_le_bytes().to_vec()));
        let i = Array::open(file.path(), Some("i")).expect("i");
        assert_eq!((i.dtype, i.shape, i.data), (DType::I32, vec![2, 1], ints));
        assert!(Array::open(file.path(), None).is_err());
    }
}
