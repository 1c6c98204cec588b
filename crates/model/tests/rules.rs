//! Each rule of the reader, on a hand-made buffer that keeps or breaks just this one.

mod common;

use common::builder::{Builder, Field, KNOWN_HASH, Operation, program, program_of, tensor};
use tilework_model::ttnn::{Op, OpKind};
use tilework_model::{Model, Options, ReadError, Reason};

fn read(bytes: Vec<u8>) -> Result<Model, ReadError> {
    Model::from_bytes(bytes, Options::default())
}

fn refusal(bytes: Vec<u8>) -> ReadError {
    read(bytes).expect_err("this file is wrong")
}

/// A `deallocate` of one tensor.
fn deallocate(builder: &mut Builder) -> usize {
    let table = builder.table(&[Field::Offset, Field::Inline(vec![1])]);
    let at = tensor(builder, 7, &[2, 3]);
    builder.link(table.fields[0], at);
    table.at
}

const DEALLOCATE: Operation = Operation { ordinal: 31, text: "\"ttnn.deallocate\"(%0)", table: &deallocate };

/// The only operation of the file.
fn only(model: &Model) -> &Op {
    let [program] = model.programs() else { panic!("one program") };
    let [operation] = &program.operations[..] else { panic!("one operation") };
    &operation.op
}

#[test]
fn a_whole_file_is_read() {
    let model = read(program(&[DEALLOCATE])).unwrap();
    assert_eq!(model.schema_hash(), KNOWN_HASH);
    assert_eq!(model.schema_name, Some("jax-tt-plugin 0.1.0"));
    assert_eq!(model.compiler_git_hash(), "unknown");
    let Op::Deallocate(op) = only(&model) else { panic!("{:?}", only(&model)) };
    assert_eq!((op.input.global_id, &op.input.desc.shape[..], op.force), (7, &[2, 3][..], true));
    let roles: Vec<_> = only(&model).operands().iter().map(|operand| operand.role.clone()).collect();
    assert_eq!(roles, ["in"]);
}

#[test]
fn every_truncation_is_refused() {
    let whole = program(&[DEALLOCATE]);
    for size in 0..whole.len() {
        // As it is, and with a prefix that matches the remaining size.
        assert!(read(whole[..size].to_vec()).is_err(), "{size}");
        let mut shorter = whole[..size].to_vec();
        if size >= 4 {
            shorter[..4].copy_from_slice(&(size as u32 - 4).to_le_bytes());
        }
        // The last bytes are padding: the file is complete without them.
        if whole[size..].iter().any(|byte| *byte != 0) {
            assert!(read(shorter).is_err(), "{size} with its prefix");
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut file = program(&[DEALLOCATE]);
    file.extend([0; 4]);
    assert!(refusal(file).to_string().contains("size prefix"));
}

#[test]
fn a_wrong_identifier_is_refused_with_what_was_found() {
    let mut file = program(&[DEALLOCATE]);
    file[8..12].copy_from_slice(b"TTML");
    let error = refusal(file);
    assert_eq!(error.to_string(), "byte 0x8: expected one of the identifiers TTNN, TTM0, TTSY, found \"TTML\"");
    assert_eq!(error.offset(), Some(8));
}

#[test]
fn an_unknown_schema_is_refused_unless_asked_for() {
    let hash = "00".repeat(32);
    let file = program_of(&hash, &[Operation { ordinal: 99, ..DEALLOCATE }]);
    let error = refusal(file.clone());
    assert!(matches!(error.reason(), Reason::UnknownSchema { .. }), "{error}");
    assert!(error.to_string().contains(&hash) && error.to_string().contains("jax-tt-plugin 0.1.0"), "{error}");
    assert_eq!(error.path(), "schema_hash");
    let model = Model::from_bytes(file, Options { accept_unknown_schema: true }).unwrap();
    assert_eq!((only(&model).kind(), model.schema_name), (OpKind::Deallocate, None));
}

#[test]
fn an_operation_of_unknown_name_is_refused_with_hash_and_name() {
    let error = refusal(program(&[Operation { ordinal: 250, text: "%1 = \"ttnn.unheard_of\"(%0)", ..DEALLOCATE }]));
    let Reason::UnknownOperation { name, ordinal, hash } = error.reason() else { panic!("{error}") };
    assert_eq!((name.as_str(), *ordinal, hash.as_str()), ("ttnn.unheard_of", 250, KNOWN_HASH));
    assert_eq!(error.path(), "programs[0].operations[0].type");
}

#[test]
fn a_name_that_the_ordinal_contradicts_is_refused() {
    // 112 is to_layout in this schema.
    let error = refusal(program(&[Operation { ordinal: 112, ..DEALLOCATE }]));
    let Reason::AmbiguousOrdinal { ordinal: 112, first: "ToLayoutOp", second: "DeallocateOp", .. } = error.reason()
    else {
        panic!("{error}")
    };
}

#[test]
fn one_ordinal_is_one_kind_within_a_file() {
    let hash = "11".repeat(32);
    let by_name = Options { accept_unknown_schema: true };
    let first = Operation { ordinal: 5, ..DEALLOCATE };
    let other = Operation { ordinal: 5, text: "%0 = \"ttnn.from_device\"(%0)", ..DEALLOCATE };
    let error = Model::from_bytes(program_of(&hash, &[first, other]), by_name).unwrap_err();
    assert!(matches!(error.reason(), Reason::AmbiguousOrdinal { ordinal: 5, .. }), "{error}");
    assert_eq!(error.path(), "programs[0].operations[1].type");
    // And one kind has one ordinal.
    let (first, other) = (Operation { ordinal: 5, ..DEALLOCATE }, Operation { ordinal: 6, ..DEALLOCATE });
    let error = Model::from_bytes(program_of(&hash, &[first, other]), by_name).unwrap_err();
    assert!(matches!(error.reason(), Reason::AmbiguousKind { first: 5, second: 6, .. }), "{error}");
    assert!(error.to_string().ends_with("operations named DeallocateOp have ordinal 5, but this one has 6"), "{error}");
}

#[test]
fn an_unknown_name_is_nothing_that_was_met_before() {
    let by_name = Options { accept_unknown_schema: true };
    let first = Operation { ordinal: 5, ..DEALLOCATE };
    for (text, fits) in [("", true), ("\"ttnn.unheard_of\"(%0)", false)] {
        let file = program_of(&"11".repeat(32), &[first, Operation { text, ..first }]);
        assert_eq!(Model::from_bytes(file, by_name).is_ok(), fits, "{text}");
    }
}

#[test]
fn an_unnamed_operation_of_a_known_ordinal_is_read() {
    let model = read(program(&[Operation { text: "", ..DEALLOCATE }])).unwrap();
    assert_eq!(only(&model).kind(), OpKind::Deallocate);
}

/// A table that has a tensor where `out` stands and otherwise these fields.
fn with_tensors(builder: &mut Builder, fields: &[Field], tensors: &[usize]) -> usize {
    let table = builder.table(fields);
    for slot in tensors {
        let at = tensor(builder, *slot as u32, &[1]);
        builder.link(table.fields[*slot], at);
    }
    table.at
}

#[test]
fn an_optional_number_is_told_from_its_zero() {
    // prod: in, out, dim_arg (optional), keep_dim, memcfg.
    for (dim, expected) in [(Field::Absent, None), (Field::Inline(vec![0; 8]), Some(0))] {
        let fields = [Field::Offset, Field::Offset, dim, Field::Absent];
        let table = |builder: &mut Builder| with_tensors(builder, &fields, &[0, 1]);
        let model = read(program(&[Operation { ordinal: 92, text: "%1 = \"ttnn.prod\"(%0)", table: &table }])).unwrap();
        let Op::ReductionProd(op) = only(&model) else { panic!("{:?}", only(&model)) };
        assert_eq!((op.dim_arg, op.keep_dim), (expected, false));
    }
}

#[test]
fn defaults_that_are_not_zero_are_the_schemas() {
    // topk: input_tensor, k, dim = -1, largest = true, sorted = true, memcfg, outputs.
    let fields = [Field::Offset, Field::Inline(vec![5, 0, 0, 0]), Field::Absent, Field::Inline(vec![0]), Field::Absent];
    let table = |builder: &mut Builder| with_tensors(builder, &fields, &[0]);
    let model = read(program(&[Operation { ordinal: 127, text: "%1 = \"ttnn.topk\"(%0)", table: &table }])).unwrap();
    let Op::TopK(op) = only(&model) else { panic!("{:?}", only(&model)) };
    assert_eq!((op.k, op.dim, op.largest, op.sorted), (5, -1, false, true));
}

#[test]
fn an_absent_tensor_is_named_with_its_path() {
    let table = |builder: &mut Builder| builder.table(&[Field::Absent, Field::Absent]).at;
    let error = refusal(program(&[Operation { table: &table, ..DEALLOCATE }]));
    assert_eq!(error.path(), "programs[0].operations[0].type.DeallocateOp.in");
    assert!(error.to_string().contains("the field is absent"), "{error}");
}

#[test]
fn an_unknown_ordinal_of_an_enumeration_is_named() {
    // typecast: in, dtype, memcfg, out.
    let fields = [Field::Offset, Field::Inline(vec![77, 0]), Field::Absent, Field::Offset];
    let table = |builder: &mut Builder| with_tensors(builder, &fields, &[0, 3]);
    let error = refusal(program(&[Operation { ordinal: 115, text: "%1 = \"ttnn.typecast\"(%0)", table: &table }]));
    assert_eq!(error.path(), "programs[0].operations[0].type.TypecastOp.dtype");
    assert!(error.to_string().ends_with("expected a DataType, found ordinal 77"), "{error}");
}

#[test]
fn a_function_that_the_name_contradicts_is_refused() {
    // An EltwiseBinaryOp of type 1, which is Multiply, under the name of an addition.
    let fields =
        [Field::Inline(vec![1, 0, 0, 0]), Field::Offset, Field::Offset, Field::Absent, Field::Absent, Field::Offset];
    let table = |builder: &mut Builder| with_tensors(builder, &fields, &[1, 2, 5]);
    let named = |text| program(&[Operation { ordinal: 37, text, table: &table }]);
    assert!(read(named("%2 = \"ttnn.multiply\"(%0, %1)")).is_ok());
    let error = refusal(named("%2 = \"ttnn.add\"(%0, %1)"));
    assert_eq!(error.path(), "programs[0].operations[0].type.EltwiseBinaryOp.type");
    assert!(error.to_string().ends_with("expected type Add, as ttnn.add says, found Multiply"), "{error}");
    // An unknown name may be an unknown function, whose ordinal belongs to another function here.
    let error = refusal(named("%2 = \"ttnn.unheard_of\"(%0, %1)"));
    assert!(matches!(error.reason(), Reason::UnknownOperation { ordinal: 37, .. }), "{error}");
    assert!(read(named("")).is_ok());
}

#[test]
fn a_field_beyond_the_schema_is_refused() {
    let fields = [Field::Offset, Field::Absent, Field::Inline(vec![1])];
    let table = |builder: &mut Builder| with_tensors(builder, &fields, &[0]);
    let error = refusal(program(&[Operation { table: &table, ..DEALLOCATE }]));
    assert!(
        error.to_string().ends_with("expected a table with the 2 fields of the schema, found a value for field 2"),
        "{error}"
    );
    // Later builders of the same schema may write a vtable that is merely longer.
    let fields = [Field::Offset, Field::Absent, Field::Absent];
    let table = |builder: &mut Builder| with_tensors(builder, &fields, &[0]);
    assert!(read(program(&[Operation { table: &table, ..DEALLOCATE }])).is_ok());
}

/// The file of one `full` with a union in field 2.
fn full(union: Field, value: Option<fn(&mut Builder) -> usize>) -> Vec<u8> {
    // full: device, shape, fill_value (two fields), dtype, layout, memcfg, out.
    let value_field = if value.is_some() { Field::Offset } else { Field::Absent };
    let fields =
        [Field::Absent, Field::Absent, union, value_field, Field::Absent, Field::Absent, Field::Absent, Field::Offset];
    let table = |builder: &mut Builder| {
        let table = builder.table(&fields);
        let out = tensor(builder, 1, &[1]);
        builder.link(table.fields[7], out);
        if let Some(value) = value {
            let at = value(builder);
            builder.link(table.fields[3], at);
        }
        table.at
    };
    program(&[Operation { ordinal: 50, text: "%1 = \"ttnn.full\"(%0)", table: &table }])
}

#[test]
fn unions_have_a_known_member_and_its_value() {
    fn number(builder: &mut Builder) -> usize {
        builder.table(&[Field::Inline(1.5_f32.to_le_bytes().to_vec())]).at
    }
    let model = read(full(Field::Inline(vec![1]), Some(number))).unwrap();
    let Op::Full(op) = only(&model) else { panic!("{:?}", only(&model)) };
    assert_eq!(format!("{:?}", op.fill_value), "FP(FloatingPointType { value: 1.5 })");

    let error = refusal(full(Field::Inline(vec![3]), Some(number)));
    assert!(error.to_string().ends_with("expected a member of NumberType, found ordinal 3"), "{error}");
    assert_eq!(error.path(), "programs[0].operations[0].type.FullOp.fill_value");
    let error = refusal(full(Field::Inline(vec![1]), None));
    assert!(error.to_string().ends_with("expected the value of the union, found none, but the ordinal 1"), "{error}");
    for none in [Field::Absent, Field::Inline(vec![0])] {
        let error = refusal(full(none.clone(), Some(number)));
        assert!(error.to_string().ends_with("expected no value, as the union has no member, found one"), "{error}");
        let error = refusal(full(none, None));
        assert!(error.to_string().contains("the field is absent"), "{error}");
    }
}

#[test]
fn empty_vectors_may_lie_on_odd_words() {
    // full has shape: [int64]; the C++ builder does not align it when it is empty.
    for padding in [0, 4] {
        let table = |builder: &mut Builder| {
            let fields = [Field::Absent, Field::Offset, Field::Inline(vec![2]), Field::Offset];
            let table =
                builder.table(&[&fields[..], &[Field::Absent, Field::Absent, Field::Absent, Field::Offset]].concat());
            let out = tensor(builder, 1, &[]);
            builder.link(table.fields[7], out);
            builder.align(8);
            builder.bytes.extend(vec![0; padding]);
            let shape = builder.vector(0, &[]);
            builder.link(table.fields[1], shape);
            let number = builder.table(&[Field::Inline(vec![9, 0, 0, 0])]).at;
            builder.link(table.fields[3], number);
            table.at
        };
        let model = read(program(&[Operation { ordinal: 50, text: "%1 = \"ttnn.full\"(%0)", table: &table }])).unwrap();
        let Op::Full(op) = only(&model) else { panic!("{:?}", only(&model)) };
        assert!(op.shape.is_empty());
    }
}
