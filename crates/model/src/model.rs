//! Opening a file of any of the three kinds.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use crate::common::{DynamicLib, MLIR, Version};
use crate::error::{ReadError, Reason, Result};
use crate::flat::field::{Tabular, read_field};
use crate::flat::reader::MAX_FILE;
use crate::flat::{FlatReader, Table};
use crate::metal::TTMetalBinary;
use crate::schema::{Edition, Schema};
use crate::system::{SystemDesc, SystemDescRoot};
use crate::ttnn::{Program, TTNNBinary};

/// Bytes that a file may have: offsets in it have 31 bits.
pub const MAX_FILE_BYTES: u64 = MAX_FILE as u64;

/// Options of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Read a file of a schema that is not known, its operations by their names and its tables by
    /// the latest layouts. A table that has more fields than these is still refused, but a field of
    /// another meaning is not noticed.
    pub accept_unknown_schema: bool,
}

/// A compiled model, or the description of a machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// Where it was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// Size of the file in bytes.
    pub size: usize,
    /// The compiler whose schema it follows, if that is known.
    pub schema_name: Option<&'static str>,
    /// The layouts by which it was read.
    pub edition: Edition,
    /// The contents.
    pub contents: Contents,
}

/// The contents of a file, by its identifier.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Contents {
    /// `TTNN`, in `.ttnn` files: programs of operations.
    Ttnn(TTNNBinary),
    /// `TTM0`, in `.ttm` files: programs of commands.
    #[serde(rename = "ttmetal")]
    Metal(TTMetalBinary),
    /// `TTSY`, in `.ttsys` files: a machine.
    System(SystemDescRoot),
}

/// Identifiers, in the order of [`Contents`].
const IDENTIFIERS: [&str; 3] = ["TTNN", "TTM0", "TTSY"];

impl Model {
    /// Opens a file of a known schema.
    pub fn open(file: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(file, Options::default())
    }

    /// Opens a file.
    pub fn open_with(file: impl AsRef<Path>, options: Options) -> Result<Self> {
        let file = file.as_ref();
        match read_file(file) {
            Ok(bytes) => Self::of_file(file, bytes, options),
            Err(error) => Err(ReadError::whole(Reason::Io(error.to_string())).of_file(file)),
        }
    }

    /// Reads the bytes of a file that was read already, for messages with its name.
    pub fn of_file(file: &Path, bytes: Vec<u8>, options: Options) -> Result<Self> {
        match Self::from_bytes(bytes, options) {
            Ok(model) => Ok(Self { file: Some(file.to_owned()), ..model }),
            Err(error) => Err(error.of_file(file)),
        }
    }

    /// Reads the bytes of a file, which the model keeps: tensors are used in place.
    pub fn from_bytes(bytes: Vec<u8>, options: Options) -> Result<Self> {
        let file = Arc::new(bytes);
        let [first, others @ ..] = Edition::ALL;
        let mut model = Self::read(&file, first, options);
        if options.accept_unknown_schema && model.is_err() {
            let mut unknown = others.into_iter().map(|edition| Self::read(&file, edition, options));
            // If no edition fits, the error of the first is returned.
            if let Some(read) = unknown.find_map(Result::ok) {
                model = Ok(read);
            }
        }
        model
    }

    fn read(file: &Arc<Vec<u8>>, edition_if_unknown: Edition, options: Options) -> Result<Self> {
        let (mut reader, root, identifier) = FlatReader::open(file, &IDENTIFIERS)?;
        choose_schema(&mut reader, &root, identifier, edition_if_unknown, options)?;
        let contents = match identifier {
            "TTNN" => Contents::Ttnn(TTNNBinary::read(&mut reader, &root)?),
            "TTM0" => Contents::Metal(TTMetalBinary::read(&mut reader, &root)?),
            _ => Contents::System(SystemDescRoot::read(&mut reader, &root)?),
        };
        let schema = &reader.schema;
        let (schema_name, edition) = (schema.known.map(|known| known.name), schema.edition);
        Ok(Self { file: None, size: file.len(), schema_name, edition, contents })
    }

    /// The version that the compiler states; real compilers state 0.0.0.
    pub fn version(&self) -> Option<Version> {
        match &self.contents {
            Contents::Ttnn(root) => root.version,
            Contents::Metal(root) => root.version,
            Contents::System(root) => root.version,
        }
    }

    /// Hash of the schema, 64 hexadecimal digits.
    pub fn schema_hash(&self) -> &str {
        match &self.contents {
            Contents::Ttnn(root) => &root.schema_hash,
            Contents::Metal(root) => &root.schema_hash,
            Contents::System(root) => &root.schema_hash,
        }
    }

    /// Commit of the compiler, or `unknown`.
    pub fn compiler_git_hash(&self) -> &str {
        match &self.contents {
            Contents::Ttnn(root) => &root.ttmlir_git_hash,
            Contents::Metal(root) => &root.ttmlir_git_hash,
            Contents::System(root) => &root.ttmlir_git_hash,
        }
    }

    /// The machine it was compiled for, or that it describes.
    pub fn system(&self) -> Option<&SystemDesc> {
        match &self.contents {
            Contents::Ttnn(root) => root.system_desc.as_ref(),
            Contents::Metal(root) => root.system_desc.as_ref(),
            Contents::System(root) => Some(&root.system_desc),
        }
    }

    /// The compiler's intermediate representation of the whole file.
    pub fn mlir(&self) -> Option<&MLIR> {
        match &self.contents {
            Contents::Ttnn(root) => root.mlir.as_ref(),
            Contents::Metal(root) => root.mlir.as_ref(),
            Contents::System(_) => None,
        }
    }

    /// The root of a `.ttnn` file.
    pub fn ttnn(&self) -> Option<&TTNNBinary> {
        match &self.contents {
            Contents::Ttnn(root) => Some(root),
            _ => None,
        }
    }

    /// The programs of a `.ttnn` file; none of other files.
    pub fn programs(&self) -> &[Program] {
        self.ttnn().map_or(&[], |root| &root.programs)
    }

    /// The root of a `.ttm` file.
    pub fn metal(&self) -> Option<&TTMetalBinary> {
        match &self.contents {
            Contents::Metal(root) => Some(root),
            _ => None,
        }
    }

    /// The native libraries in it, each with the name of its program, or of none if it belongs to
    /// the whole file.
    pub fn dylibs(&self) -> Vec<(Option<&str>, &DynamicLib)> {
        let of_programs = self
            .programs()
            .iter()
            .flat_map(|program| program.dylibs.iter().map(|library| (Some(program.name.as_str()), library)));
        let of_file = self.metal().into_iter().flat_map(|root| root.dylibs.iter().map(|library| (None, library)));
        of_programs.chain(of_file).collect()
    }
}

/// The bytes of a file; of a file that is too large, one more than are allowed. Only of a regular
/// file: to open a pipe may take for ever.
fn read_file(file: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let file = File::open(file)?;
    let size = file.metadata()?.len().min(MAX_FILE_BYTES + 1);
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the hash, which is at the same place in all three kinds of files, before anything that
/// depends on it.
fn choose_schema(
    reader: &mut FlatReader,
    root: &Table,
    identifier: &'static str,
    edition_if_unknown: Edition,
    options: Options,
) -> Result<()> {
    let hash: String = read_field(reader, root, 1, "schema_hash", None)?;
    reader.schema = Schema::of(identifier, &hash, edition_if_unknown);
    if reader.schema.known.is_none() && !options.accept_unknown_schema {
        let known = Schema::names_of_known(identifier);
        let error = ReadError::at(root.position(), Reason::UnknownSchema { hash, identifier, known });
        return Err(error.in_field("schema_hash"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables read and decoded bytes, per byte of the file.
    fn spent(path: &Path) -> (f64, f64) {
        let file = Arc::new(std::fs::read(path).unwrap());
        let (mut reader, root, identifier) = FlatReader::open(&file, &IDENTIFIERS).unwrap();
        choose_schema(&mut reader, &root, identifier, Edition::default(), Options::default()).unwrap();
        TTNNBinary::read(&mut reader, &root).unwrap();
        let (tables, decoded) = reader.spent();
        (tables as f64 / file.len() as f64, decoded as f64 / file.len() as f64)
    }

    #[test]
    fn genuine_files_take_a_small_part_of_their_budgets() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let folders =
            ["0.1.0", "0.1.1", "0.1.2", "0.1.3"].map(|version| std::fs::read_dir(data.join(version)).unwrap());
        let paths = folders.into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut most = (0.0_f64, 0.0_f64);
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "ttnn")) {
            let (tables, decoded) = spent(&path);
            most = (most.0.max(tables), most.1.max(decoded));
        }
        // As the constants of the reader say.
        assert!(most.0 > 0.0 && most.0 < 1.0 / 100.0, "a table for each {} bytes", 1.0 / most.0);
        assert!(most.1 > 0.0 && most.1 < 3.0, "{} decoded bytes for each", most.1);
    }
}
