//! `.ttnn` files: programs of the tensor library's operations.
//!
//! A file holds the description of the machine it was compiled for, the intermediate representation
//! as text, and programs. Those to be called by the user come first; private ones (constants to be
//! evaluated once, bodies of loops, traces) follow and are called by operations of others. A
//! program is a list of operations in the order of execution. Tensors are identified by a global
//! id, which each operation repeats together with the tensor's description.
//!
//! Source: `TTNN/program.fbs` and `TTNN/binary.fbs` of the schema ([`crate::schema`]).

pub mod names;
pub mod ops;
pub mod types;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::common::{Dim2d, DynamicLib, MLIR, Version};
use crate::debug_info::DebugInfo;
use crate::error::{ReadError, Reason, Result};
use crate::flat::declare::{table_element, tables};
use crate::flat::field::{Tabular, read_field};
use crate::flat::{FlatReader, Table};
use crate::operand::{Direction, Operand, Role, Visitor};
use crate::system::SystemDesc;

pub use ops::{Op, OpKind};
pub use types::{GlobalSemaphoreRef, TensorDesc, TensorRef};

tables! {
    /// A program.
    Program {
        name: String, inputs: Vec<TensorRef>, outputs: Vec<TensorRef> as out, operations: Vec<Operation>,
        dylibs: Vec<DynamicLib>, debug_info: Option<DebugInfo>, private: bool, mesh_shape: Option<Dim2d>,
        semaphore_inputs: Vec<GlobalSemaphoreRef>,
    }

    /// The root of a `.ttnn` file.
    TTNNBinary {
        version: Option<Version>, schema_hash: String, ttmlir_git_hash: String, system_desc: Option<SystemDesc>,
        mlir: Option<MLIR>, programs: Vec<Program>,
    }
}

impl Program {
    /// How many operations of each kind and function there are, by kind:
    /// `(EltwiseBinary, Some("Add"), 3)`.
    pub fn counts(&self) -> Vec<(OpKind, Option<&'static str>, usize)> {
        let mut counts = BTreeMap::new();
        for operation in &self.operations {
            *counts.entry((operation.kind(), operation.op.function())).or_insert(0) += 1;
        }
        counts.into_iter().map(|((kind, function), count)| (kind, function, count)).collect()
    }
}

/// One operation of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Operation {
    /// What it does, with its arguments.
    #[serde(rename = "type")]
    pub op: Op,
    /// The operation as text of the compiler's intermediate representation; empty if the compiler
    /// left it out.
    pub debug_info: String,
    /// Where in the user's source it comes from, as text `loc(...)`; empty if the compiler
    /// left it out.
    pub loc_info: String,
}

impl Operation {
    /// Its kind.
    pub fn kind(&self) -> OpKind {
        self.op.kind()
    }

    /// Its name in the compiler's intermediate representation, `ttnn.add`, if the file states it.
    pub fn name(&self) -> Option<&str> {
        names::name_of(&self.debug_info)
    }

    /// The tensors that it reads and writes, in the order of the schema's fields.
    pub fn operands(&self) -> Vec<Operand<'_>> {
        self.op.operands()
    }
}

impl Tabular for Operation {
    fn read(reader: &mut FlatReader, table: &Table) -> Result<Self> {
        // The kind is resolved by the name, so the text is read before the table that it describes.
        let debug_info: String = read_field(reader, table, 2, "debug_info", None)?;
        let op = read_op(reader, table, &debug_info).map_err(|error| error.in_field("type"))?;
        let loc_info = read_field(reader, table, 3, "loc_info", None)?;
        reader.no_more_fields(table, 4)?;
        Ok(Self { op, debug_info, loc_info })
    }

    fn visit_fields<'a>(&'a self, _: Option<&Role<'_>>, _: Direction, visitor: &mut Visitor<'_, 'a>) {
        self.op.visit_tensors(visitor);
    }
}

table_element!(Operation);

fn read_op(reader: &mut FlatReader, table: &Table, debug_info: &str) -> Result<Op> {
    let place = reader.field(table, 0)?;
    let ordinal = place.map_or(Ok(0), |place| reader.inline::<u8>(place))?;
    let (Some(place), 1..) = (place, ordinal) else {
        return Err(ReadError::format(table.position(), "an operation of some kind", "none"));
    };
    let kind = reader.schema.resolve(ordinal, debug_info).map_err(|reason| ReadError::at(place, reason))?;
    let Some(at) = reader.reference(table, 1)? else {
        return Err(ReadError::format(table.position(), format!("the table of a {}", kind.name()), "none"));
    };
    let op = Op::read(reader, kind, at).map_err(|error| error.in_field(kind.name()))?;
    // Ordinals of functions change as those of operations do, so the name must determine the
    // function too.
    let Some(found) = op.function() else { return Ok(op) };
    let name = names::name_of(debug_info);
    match names::meaning_of(debug_info, reader.schema.edition).and_then(|meaning| meaning.function) {
        Some(named) if named != found => {
            let expected = format!("type {named}, as {} says", name.unwrap_or_default());
            Err(ReadError::format(at, expected, found).in_field("type").in_field(kind.name()))
        }
        None if name.is_some() => {
            let (name, hash) = (name.unwrap_or_default().to_owned(), reader.schema.hash.clone());
            Err(ReadError::at(place, Reason::UnknownOperation { name, ordinal, hash }))
        }
        _ => Ok(op),
    }
}
