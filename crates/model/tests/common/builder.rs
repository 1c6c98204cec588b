//! Hand-made flatbuffers, including malformed ones.
//!
//! Written forwards: each table is appended after its vtable, and offsets are patched once their
//! targets are known.

/// The hash of a schema that the reader knows (`jax-tt-plugin` 0.1.0).
pub(crate) const KNOWN_HASH: &str = "4044bd09e5ea5fdb7c8ed4b4177dc4fac7bb90827063da7288effd3ec7c7ac9d";

/// A buffer that grows.
pub(crate) struct Builder {
    pub(crate) bytes: Vec<u8>,
}

/// A field of a table.
#[derive(Clone)]
pub(crate) enum Field {
    /// Nothing.
    Absent,
    /// Bytes in the table, aligned to their number.
    Inline(Vec<u8>),
    /// Bytes of a struct, aligned to 4.
    Struct(Vec<u8>),
    /// An offset, to be patched.
    Offset,
}

/// A table that was written.
pub(crate) struct Table {
    /// Offset of the table.
    pub(crate) at: usize,
    /// Offset of its vtable.
    pub(crate) vtable: usize,
    /// Offsets of its fields, 0 for absent ones.
    pub(crate) fields: Vec<usize>,
}

impl Builder {
    /// The prefix, the root's offset and the identifier.
    pub(crate) fn new(identifier: &str) -> Self {
        let mut bytes = vec![0; 8];
        bytes.extend(identifier.bytes());
        Self { bytes }
    }

    pub(crate) fn align(&mut self, to: usize) {
        while !self.bytes.len().is_multiple_of(to) {
            self.bytes.push(0);
        }
    }

    pub(crate) fn patch(&mut self, at: usize, value: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// Lets the offset at `at` point to `target`.
    pub(crate) fn link(&mut self, at: usize, target: usize) {
        self.patch(at, (target - at) as u32);
    }

    pub(crate) fn table(&mut self, fields: &[Field]) -> Table {
        self.align(8);
        let vtable = self.bytes.len();
        self.bytes.resize(vtable + 4 + 2 * fields.len(), 0);
        self.align(8);
        let at = self.bytes.len();
        self.bytes.extend(((at - vtable) as i32).to_le_bytes());
        let mut places = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let (content, align) = match field {
                Field::Absent => {
                    places.push(0);
                    continue;
                }
                Field::Inline(bytes) => (bytes.clone(), bytes.len().min(8)),
                Field::Struct(bytes) => (bytes.clone(), 4),
                Field::Offset => (vec![0; 4], 4),
            };
            self.align(align);
            let place = self.bytes.len();
            self.bytes.extend(content);
            let entry = vtable + 4 + 2 * index;
            self.bytes[entry..entry + 2].copy_from_slice(&((place - at) as u16).to_le_bytes());
            places.push(place);
        }
        let (vtable_size, table_size) = ((4 + 2 * fields.len()) as u16, (self.bytes.len() - at) as u16);
        self.bytes[vtable..vtable + 2].copy_from_slice(&vtable_size.to_le_bytes());
        self.bytes[vtable + 2..vtable + 4].copy_from_slice(&table_size.to_le_bytes());
        self.align(4);
        Table { at, vtable, fields: places }
    }

    /// A vector of `count` elements with these bytes.
    pub(crate) fn vector(&mut self, count: usize, elements: &[u8]) -> usize {
        self.align(4);
        let at = self.bytes.len();
        self.bytes.extend((count as u32).to_le_bytes());
        self.bytes.extend(elements);
        at
    }

    /// A vector of offsets, to be patched from `at + 4` on.
    pub(crate) fn offsets(&mut self, count: usize) -> usize {
        self.vector(count, &vec![0; 4 * count])
    }

    pub(crate) fn string(&mut self, text: &str) -> usize {
        let at = self.vector(text.len(), text.as_bytes());
        self.bytes.push(0);
        self.align(4);
        at
    }

    /// Writes a string and links a field to it.
    pub(crate) fn text(&mut self, field: usize, text: &str) {
        let at = self.string(text);
        self.link(field, at);
    }

    /// Sets the prefix and the root, and returns the file.
    pub(crate) fn finish(mut self, root: &Table) -> Vec<u8> {
        self.align(4);
        self.link(4, root.at);
        let size = self.bytes.len() as u32 - 4;
        self.patch(0, size);
        self.bytes
    }
}

/// An operation to put into a file: ordinal, text, and a function that writes its table and returns
/// its position.
#[derive(Clone, Copy)]
pub(crate) struct Operation<'a> {
    pub(crate) ordinal: u8,
    pub(crate) text: &'a str,
    pub(crate) table: &'a dyn Fn(&mut Builder) -> usize,
}

/// A `.ttnn` file of the known schema with one program of these operations.
pub(crate) fn program(operations: &[Operation]) -> Vec<u8> {
    program_of(KNOWN_HASH, operations)
}

/// The same, of any schema.
pub(crate) fn program_of(hash: &str, operations: &[Operation]) -> Vec<u8> {
    use Field::{Absent, Inline, Offset};
    let mut builder = Builder::new("TTNN");
    let root = builder.table(&[Inline(vec![0; 8]), Offset, Offset, Absent, Absent, Offset]);
    builder.text(root.fields[1], hash);
    builder.text(root.fields[2], "unknown");
    let programs = builder.offsets(1);
    builder.link(root.fields[5], programs);
    let program = builder.table(&[Offset, Absent, Absent, Offset]);
    builder.link(programs + 4, program.at);
    builder.text(program.fields[0], "main");
    let list = builder.offsets(operations.len());
    builder.link(program.fields[3], list);
    for (index, operation) in operations.iter().enumerate() {
        let table = builder.table(&[Inline(vec![operation.ordinal]), Offset, Offset, Absent]);
        builder.link(list + 4 + 4 * index, table.at);
        builder.text(table.fields[2], operation.text);
        let at = (operation.table)(&mut builder);
        builder.link(table.fields[1], at);
    }
    builder.finish(&root)
}

/// Writes a tensor reference and returns its position.
pub(crate) fn tensor(builder: &mut Builder, global_id: u32, shape: &[i32]) -> usize {
    use Field::{Absent, Inline, Offset, Struct};
    let reference = builder.table(&[Inline(global_id.to_le_bytes().to_vec()), Offset]);
    let desc = builder.table(&[Offset, Absent, Offset, Absent, Absent]);
    builder.link(reference.fields[1], desc.at);
    let elements: Vec<u8> = shape.iter().flat_map(|size| size.to_le_bytes()).collect();
    let shape = builder.vector(shape.len(), &elements);
    builder.link(desc.fields[0], shape);
    let layout = builder.table(&[Absent, Offset]);
    builder.link(desc.fields[2], layout.at);
    // A tile of 1 by 1: row-major; all else by default: on the host, float32.
    let memory = builder.table(&[Absent, Struct(vec![1, 0, 0, 0, 1, 0, 0, 0]), Absent, Absent]);
    builder.link(layout.fields[1], memory.at);
    reference.at
}
