//! The reader's own rules, on tables declared for the test.

use std::sync::Arc;

use super::builder::{Builder, Field as F, Table as Laid};
use super::declare::{enums, structs, tables, unions};
use super::field::Tabular;
use super::reader::FlatReader;
use crate::bytes::Bytes;
use crate::error::{ReadError, Reason, Result};

enums! {
    /// An enumeration with a hole.
    Colour: u16 { Red, Blue = 2 }
}

structs! {
    /// 1 byte, 3 of padding, 4, and 2 and 6 of padding before 8.
    Mixed { small: u8, middle: i32, colour: Colour, large: u64 }
}

unions! {
    /// Of two tables.
    Either { Leaf(Leaf), Tree(Tree) }
}

tables! {
    /// A number.
    Leaf { value: i16 = -3 }

    /// A table that holds tables of its own type.
    Tree { children: Vec<Tree> }

    /// One of each.
    Everything {
        flag: bool, number: f64, maybe: Option<u8>, colour: Colour = Colour::Blue, mixed: Option<Mixed>, text: String,
        named: Option<String>, bytes: Bytes, numbers: Vec<i64>, flags: Vec<bool>, texts: Vec<String>, all_mixed: Vec<Mixed>,
        leaf: Option<Leaf>, leaves: Vec<Leaf>, either: Option<Either>, eithers: Vec<Either>,
    }
}

fn read<T: Tabular>(builder: Builder, root: &Laid) -> Result<T> {
    read_bytes(builder.finish(root))
}

fn read_bytes<T: Tabular>(bytes: Vec<u8>) -> Result<T> {
    let file = Arc::new(bytes);
    let (mut reader, table, _) = FlatReader::open(&file, &["TEST"])?;
    T::read(&mut reader, &table)
}

/// The error of reading one table of which only this field is present.
fn wrong(slot: usize, field: F, lay: impl FnOnce(&mut Builder, usize)) -> ReadError {
    let mut builder = Builder::new("TEST");
    let mut fields = vec![F::Absent; slot];
    fields.push(field);
    let root = builder.table(&fields);
    lay(&mut builder, root.fields[slot]);
    read::<Everything>(builder, &root).expect_err("this table is wrong")
}

#[test]
fn absent_fields_have_their_defaults() {
    let mut builder = Builder::new("TEST");
    let root = builder.table(&[]);
    let read: Everything = read(builder, &root).unwrap();
    assert_eq!((read.flag, read.number, read.maybe, read.colour), (false, 0.0, None, Colour::Blue));
    assert_eq!((read.mixed, read.text.as_str(), read.named, &read.bytes[..]), (None, "", None, &[][..]));
    assert!(read.numbers.is_empty() && read.leaf.is_none() && read.either.is_none() && read.eithers.is_empty());
}

#[test]
fn every_kind_of_field_is_read() {
    // The struct as the C++ compiler lays it out: alignment 8, size 24.
    let mixed = [&[9][..], &[0; 3], &(-5_i32).to_le_bytes(), &[2, 0], &[0; 6], &(1_u64 << 40).to_le_bytes()].concat();
    let expected = Mixed { small: 9, middle: -5, colour: Colour::Blue, large: 1 << 40 };
    let mut builder = Builder::new("TEST");
    let root = builder.table(&[
        F::Inline(vec![7]),
        F::Inline(2.5_f64.to_le_bytes().to_vec()),
        F::Inline(vec![0]),
        F::Inline(vec![0, 0]),
        F::Inline(mixed.clone()),
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Offset,
        F::Inline(vec![1]),
        F::Offset,
        F::Offset,
        F::Offset,
    ]);
    builder.text(root.fields[5], "text");
    builder.text(root.fields[6], "");
    let bytes = builder.vector(3, &[1, 2, 3]);
    builder.link(root.fields[7], bytes);
    let numbers = builder.vector(2, &[(-1_i64).to_le_bytes(), 5_i64.to_le_bytes()].concat());
    builder.link(root.fields[8], numbers);
    let flags = builder.vector(3, &[0, 1, 255]);
    builder.link(root.fields[9], flags);
    let texts = builder.offsets(2);
    builder.link(root.fields[10], texts);
    builder.text(texts + 4, "a");
    builder.text(texts + 8, "ü");
    let all = builder.vector(2, &[mixed.clone(), mixed].concat());
    builder.link(root.fields[11], all);
    let leaf = builder.table(&[F::Inline(vec![4, 0])]);
    builder.link(root.fields[12], leaf.at);
    let leaves = builder.offsets(2);
    builder.link(root.fields[13], leaves);
    for slot in [4, 8] {
        let leaf = builder.table(&[F::Inline(vec![slot, 0])]);
        builder.link(leaves + usize::from(slot), leaf.at);
    }
    let member = builder.table(&[]);
    builder.link(root.fields[15], member.at);
    let ordinals = builder.vector(2, &[2, 1]);
    builder.link(root.fields[16], ordinals);
    let values = builder.offsets(2);
    builder.link(root.fields[17], values);
    let (tree, leaf) = (builder.table(&[]), builder.table(&[F::Inline(vec![1, 0])]));
    builder.link(values + 4, tree.at);
    builder.link(values + 8, leaf.at);

    let read: Everything = read(builder, &root).unwrap();
    assert_eq!((read.flag, read.number, read.maybe, read.colour), (true, 2.5, Some(0), Colour::Red));
    assert_eq!((read.mixed, read.all_mixed), (Some(expected), vec![expected; 2]));
    assert_eq!((read.text.as_str(), read.named.as_deref(), &read.bytes[..]), ("text", Some(""), &[1, 2, 3][..]));
    assert_eq!(
        (read.numbers, read.flags, read.texts),
        (vec![-1, 5], vec![false, true, true], vec!["a".into(), "ü".into()])
    );
    assert_eq!((read.leaf, read.leaves), (Some(Leaf { value: 4 }), vec![Leaf { value: 4 }, Leaf { value: 8 }]));
    assert_eq!(read.either, Some(Either::Leaf(Leaf { value: -3 })));
    assert_eq!(read.eithers, [Either::Tree(Tree { children: vec![] }), Either::Leaf(Leaf { value: 1 })]);
}

#[test]
fn offsets_stay_in_the_file_and_point_forward() {
    for offset in [0, 0x8000_0000, u32::MAX, 0x1000] {
        let error = wrong(5, F::Offset, |builder, field| builder.patch(field, offset));
        assert_eq!(error.path(), "text", "{error}");
        assert!(error.to_string().contains("expected an offset"), "{error}");
    }
}

#[test]
fn scalars_and_offsets_are_aligned() {
    let mut builder = Builder::new("TEST");
    let root = builder.table(&[F::Absent, F::Inline(vec![0; 8])]);
    // One byte further than the field's place.
    builder.bytes[root.vtable + 6] += 1;
    let error = read::<Everything>(builder, &root).unwrap_err();
    assert!(error.to_string().contains("expected f64 at a multiple of 8 bytes"), "{error}");
    let error = wrong(12, F::Offset, |builder, field| {
        builder.bytes.extend([0; 16]);
        builder.link(field, field + 7);
    });
    assert!(error.to_string().contains("expected i32 at a multiple of 4 bytes"), "{error}");
}

#[test]
fn vtables_lie_in_the_file() {
    let lay = |back: i32, size: u16| {
        let mut builder = Builder::new("TEST");
        let root = builder.table(&[F::Inline(vec![1])]);
        if back != 0 {
            builder.bytes[root.at..root.at + 4].copy_from_slice(&back.to_le_bytes());
        }
        builder.bytes[root.vtable..root.vtable + 2].copy_from_slice(&size.to_le_bytes());
        read::<Everything>(builder, &root).map(|_| ()).unwrap_err().to_string()
    };
    assert!(lay(1 << 20, 6).contains("expected a vtable in the file"));
    assert!(lay(-(1 << 20), 6).contains("the file's end"));
    assert!(lay(i32::MIN, 6).contains("the file's end"));
    assert!(lay(3, 6).contains("expected u16 at a multiple of 2 bytes"));
    assert!(lay(0, 5).contains("expected a vtable of an even number of bytes"));
    assert!(lay(0, 2).contains("at least 4"));
    assert!(lay(0, 0xfff0).contains("expected a vtable of 65520 bytes"));
}

#[test]
fn vectors_and_strings_end_in_the_file() {
    let counted = |slot: usize, count: u32| {
        wrong(slot, F::Offset, |builder, field| {
            let at = builder.vector(0, &[0; 8]);
            builder.patch(at, count);
            builder.link(field, at);
        })
    };
    for slot in [5, 7, 8, 10, 11, 13] {
        for count in [1000, u32::MAX] {
            let error = counted(slot, count);
            assert!(error.to_string().contains("the file's end"), "{error}");
        }
    }
    // A string's zero may not be the end of the file either, nor anything else.
    let error = wrong(5, F::Offset, |builder, field| {
        let at = builder.vector(2, b"ab!!");
        builder.link(field, at);
    });
    assert!(error.to_string().ends_with("expected a zero after the string, found 0x21"), "{error}");
    let error = wrong(5, F::Offset, |builder, field| {
        let at = builder.vector(3, b"a\xffb\0");
        builder.link(field, at);
    });
    assert!(error.to_string().ends_with("expected UTF-8, found 0xff"), "{error}");
}

#[test]
fn enumerations_name_what_they_do_not_know() {
    let error = wrong(3, F::Inline(vec![1, 0]), |_, _| {});
    assert_eq!(
        (error.path().as_str(), error.to_string().contains("expected a Colour, found ordinal 1")),
        ("colour", true)
    );
    // Inside a struct, inside a vector: with the place of the wrong bytes.
    let mut at = 0;
    let error = wrong(11, F::Offset, |builder, field| {
        let vector = builder.vector(1, &[[0; 8], [0xff; 8], [0; 8]].concat());
        builder.link(field, vector);
        at = vector + 4 + 8;
    });
    assert_eq!((error.path().as_str(), error.offset()), ("all_mixed[0]", Some(at)));
}

#[test]
fn vectors_of_unions_have_two_halves_of_one_length() {
    let halves = |ordinals: Option<usize>, values: Option<usize>| {
        let mut builder = Builder::new("TEST");
        let mut fields = vec![F::Absent; 16];
        fields.extend([ordinals.map_or(F::Absent, |_| F::Offset), values.map_or(F::Absent, |_| F::Offset)]);
        let root = builder.table(&fields);
        if let Some(count) = ordinals {
            let at = builder.vector(count, &vec![1; count]);
            builder.link(root.fields[16], at);
        }
        if let Some(count) = values {
            let at = builder.offsets(count);
            builder.link(root.fields[17], at);
            for index in 0..count {
                let leaf = builder.table(&[]);
                builder.link(at + 4 + 4 * index, leaf.at);
            }
        }
        read::<Everything>(builder, &root).map(|read| read.eithers.len()).map_err(|error| error.to_string())
    };
    assert_eq!(halves(Some(2), Some(2)), Ok(2));
    assert_eq!(halves(None, None), Ok(0));
    assert!(halves(Some(2), Some(3)).unwrap_err().contains("expected 2 values"));
    assert!(halves(Some(0), None).unwrap_err().contains("expected values beside a vector of ordinals"));
    assert!(halves(None, Some(0)).unwrap_err().contains("expected ordinals beside a vector of values"));
}

/// A chain of trees, each with one child, and the vector of the last one's children.
fn chain(builder: &mut Builder, length: usize) -> (Laid, usize) {
    let root = builder.table(&[F::Offset]);
    let mut last = builder.offsets(1);
    builder.link(root.fields[0], last);
    for _ in 1..length {
        let tree = builder.table(&[F::Offset]);
        builder.link(last + 4, tree.at);
        last = builder.offsets(1);
        builder.link(tree.fields[0], last);
    }
    (root, last)
}

#[test]
fn tables_nest_to_the_limit_and_no_deeper() {
    for (length, fits) in [(64, true), (65, false), (5000, false)] {
        let mut builder = Builder::new("TEST");
        let (root, last) = chain(&mut builder, length);
        let leaf = builder.table(&[]);
        builder.link(last + 4, leaf.at);
        let result = read::<Tree>(builder, &root);
        assert_eq!(result.is_ok(), fits, "{length}");
        if let Err(error) = result {
            assert!(matches!(error.reason(), Reason::Budget { what: "nested tables", limit: 64, .. }), "{error}");
            assert!(error.path().starts_with("children[0].children[0]."), "{}", error.path());
        }
    }
}

#[test]
fn a_table_that_holds_itself_is_refused() {
    // Offsets point forward, so only one that wraps around 32 bits could lead back.
    let mut builder = Builder::new("TEST");
    let (root, last) = chain(&mut builder, 3);
    builder.patch(last + 4, (root.at as u32).wrapping_sub(last as u32 + 4));
    let error = read::<Tree>(builder, &root).unwrap_err();
    assert!(error.to_string().contains("expected an offset that points forward"), "{error}");
}

#[test]
fn tables_shared_over_and_over_run_out_of_budget() {
    // Each level's vector refers to the next level 40 times: 40^8 leaves in a few kilobytes.
    let mut builder = Builder::new("TEST");
    let root = builder.table(&[F::Offset]);
    let mut above = vec![root.fields[0]];
    for _ in 0..8 {
        let vector = builder.offsets(40);
        let tree = builder.table(&[F::Offset]);
        above.drain(..).for_each(|field| builder.link(field, vector));
        (0..40).for_each(|index| builder.link(vector + 4 + 4 * index, tree.at));
        above.push(tree.fields[0]);
    }
    let last = builder.offsets(0);
    builder.link(above[0], last);
    let error = read::<Tree>(builder, &root).unwrap_err();
    assert!(matches!(error.reason(), Reason::Budget { .. }), "{error}");
}

#[test]
fn strings_shared_over_and_over_run_out_of_budget() {
    let mut builder = Builder::new("TEST");
    let root = builder.table(&[&[const { F::Absent }; 10][..], &[F::Offset]].concat());
    let texts = builder.offsets(1000);
    builder.link(root.fields[10], texts);
    let text = builder.string(&"x".repeat(100_000));
    (0..1000).for_each(|index| builder.link(texts + 4 + 4 * index, text));
    let error = read::<Everything>(builder, &root).unwrap_err();
    assert!(matches!(error.reason(), Reason::Budget { what: "bytes of decoded values", .. }), "{error}");
}
