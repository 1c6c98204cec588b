//! `.npz` files: zip archives of `.npy` files, stored or deflated (`numpy.savez`,
//! `numpy.savez_compressed`).

use super::{Array, MAX_FILE_BYTES, choose};
use crate::failure::{Failure, Outcome};
use crate::files;
use std::path::Path;
use zip::ZipArchive;

/// The suffix that NumPy appends to each array's name.
const SUFFIX: &str = ".npy";

/// Reads the array named `key`, or the only one.
pub(super) fn read(path: &Path, key: Option<&str>) -> Outcome<Array> {
    let fail = |error: String| Failure::file(path, tilework_text::plain(&error));
    let (file, _) = files::open_within(path, MAX_FILE_BYTES, "an .npz file")?;
    let mut archive =
        ZipArchive::new(std::io::BufReader::new(file)).map_err(|e| fail(format!("not an .npz file: {e}")))?;
    let names: Vec<String> =
        archive.file_names().filter_map(|name| name.ok()?.strip_suffix(SUFFIX).map(str::to_owned)).collect();
    let name = choose(&names, key).map_err(fail)?.to_owned();
    let entry = archive.by_name(&format!("{name}{SUFFIX}")).map_err(|e| fail(format!("array {name}: {e}")))?;
    let length = entry.size();
    if length > MAX_FILE_BYTES {
        return Err(fail(format!("array {name} has {length} bytes; the limit is {MAX_FILE_BYTES}")));
    }
    let mut bytes = Vec::new();
    files::read_exactly(path, entry, length, &mut bytes)?;
    Array::from_npy(bytes).map_err(|error| fail(format!("array {name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn archive(entries: &[(&str, &[u32])], method: zip::CompressionMethod) -> tempfile::TempPath {
        let file = tempfile::Builder::new().suffix(".npz").tempfile().expect("a temporary file");
        let mut zip = zip::ZipWriter::new(file.reopen().expect("the file again"));
        let options = zip::write::SimpleFileOptions::default().compression_method(method);
        for (name, values) in entries {
            zip.start_file(format!("{name}.npy"), options).expect("an entry");
            let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            zip.write_all(&Array::header(tilework_dtype::DType::U32, &[values.len() as u64])).expect("a header");
            zip.write_all(&data).expect("elements");
        }
        zip.finish().expect("a whole archive");
        file.into_temp_path()
    }

    #[test]
    fn arrays_are_found_by_name_or_alone() {
        for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
            let two = archive(&[("a", &[1, 2]), ("b", &[3])], method);
            assert_eq!(read(&two, Some("b")).expect("b").data, 3_u32.to_le_bytes());
            let error = read(&two, None).expect_err("two arrays").to_string();
            assert!(error.contains("2 arrays") && error.contains("a, b"), "{error}");
            assert!(read(&two, Some("c")).expect_err("no c").to_string().contains("\"c\""));
            let one = archive(&[("arr_0", &[7, 8])], method);
            assert_eq!(read(&one, None).expect("the only one").shape, [2]);
        }
    }

    #[test]
    fn what_is_no_archive_is_named() {
        let mut file = tempfile::Builder::new().suffix(".npz").tempfile().expect("a temporary file");
        file.write_all(b"no archive").expect("some bytes");
        assert!(read(file.path(), None).expect_err("no archive").to_string().contains("not an .npz file"));
    }
}
