//! Comparison of a result with what was expected.

use crate::common::build::{add, f32, model, program, tensor, values};
use tilework_engine::compare::Difference;
use tilework_engine::{Comparison, Tolerance};
use tilework_model::common::DataType;
use tilework_ops::{DType, Shape, Tensor};

fn compare(found: &[f32], expected: &[f32], tolerance: Tolerance) -> Comparison {
    let shape = [expected.len()];
    Comparison::of(&values(&shape, found), &values(&shape, expected), tolerance).unwrap()
}

#[test]
fn figures_are_those_of_their_definitions() {
    // Numbers from numpy: corrcoef([1,2,3,5],[1,2,3,4])[0,1].
    let comparison = compare(&[1.0, 2.0, 3.0, 5.0], &[1.0, 2.0, 3.0, 4.0], Tolerance::FLOAT32);
    assert!((comparison.pcc - 0.982_707_629_823_991).abs() < 1e-12, "{}", comparison.pcc);
    assert_eq!((comparison.max_abs, comparison.max_rel, comparison.range), (1.0, 0.25, 3.0));
    assert_eq!((comparison.mismatches, comparison.of_range()), (1, 1.0 / 3.0));
    assert_eq!(comparison.first, Some(Difference { index: vec![3], expected: 4.0, found: 5.0 }));
    assert!(!comparison.passes());
}

#[test]
fn the_first_difference_has_an_index_in_each_dimension() {
    let expected = values(&[2, 2, 3], &[0.0; 12]);
    let mut numbers = [0.0; 12];
    (numbers[10], numbers[11]) = (1.0, 2.0);
    let comparison = Comparison::of(&values(&[2, 2, 3], &numbers), &expected, Tolerance::EXACT).unwrap();
    assert_eq!(comparison.first.map(|first| first.index), Some(vec![1, 1, 1]));
    assert_eq!(comparison.mismatches, 2);
}

#[test]
fn equal_results_pass_whatever_they_are() {
    for same in [vec![0.0; 4], vec![7.5; 3], vec![f32::NAN, f32::INFINITY, -0.0, 1.0], vec![]] {
        for tolerance in [Tolerance::EXACT, Tolerance::FLOAT32, Tolerance::BFLOAT16] {
            let comparison = compare(&same, &same, tolerance);
            assert!(comparison.passes() && comparison.pcc == 1.0 && comparison.max_abs == 0.0, "{comparison}");
        }
    }
    assert!(compare(&[0.0], &[-0.0], Tolerance::EXACT).passes());
}

#[test]
fn what_is_not_a_number_where_one_is_expected_does_not_pass() {
    let many: Vec<f32> = (0..10_000).map(|n| n as f32).collect();
    for wrong in [f32::NAN, f32::INFINITY] {
        let mut found = many.clone();
        found[5000] = wrong;
        assert!(!compare(&found, &many, Tolerance::BFLOAT16).passes());
        assert!(!compare(&many, &found, Tolerance::BFLOAT16).passes());
    }
    assert!(!compare(&[f32::INFINITY, 0.0], &[f32::NEG_INFINITY, 0.0], Tolerance::BFLOAT16).passes());
}

#[test]
fn a_constant_result_does_not_correlate_and_zeros_have_no_range() {
    assert_eq!(compare(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0], Tolerance::BFLOAT16).pcc, 0.0);
    let comparison = compare(&[0.0, 1e-30], &[0.0, 0.0], Tolerance::BFLOAT16);
    assert!(comparison.of_range().is_infinite() && !comparison.passes());
}

#[test]
fn shapes_are_the_same_but_for_one_element() {
    let (row, column) = (values(&[1, 2], &[1.0, 2.0]), values(&[2, 1], &[1.0, 2.0]));
    let error = Comparison::of(&row, &column, Tolerance::EXACT).unwrap_err();
    assert_eq!(error.to_string(), "its shape is [1x2], expected [2x1]");
    assert!(Comparison::of(&values(&[], &[1.0]), &values(&[1, 1], &[1.0]), Tolerance::EXACT).unwrap().passes());
}

#[test]
fn truth_values_are_expected_of_any_number() {
    let expected = Tensor::from_i64(DType::Bool, Shape::new([3]).unwrap(), &[1, 0, 1]).unwrap();
    let compare = |found: [f32; 3]| Comparison::of(&values(&[3], &found), &expected, Tolerance::EXACT).unwrap();
    assert!(compare([19.0, 0.0, 0.5]).passes());
    assert_eq!(compare([1.0, 2.0, 1.0]).first.map(|first| first.index), Some(vec![1]));
}

#[test]
fn a_program_is_as_precise_as_its_narrowest_float() {
    let [x, y] = [0, 9].map(|id| f32(id, &[1]));
    let narrow = tensor(1, DataType::BFloat16, &[1]);
    let index = tensor(2, DataType::UInt32, &[1]);
    let wide = program("main", &[&x], &[&y], vec![add(&x, &x, &y)]);
    assert_eq!(Tolerance::of(&wide, 0), Tolerance::FLOAT32);
    let mixed = program("main", &[&x, &narrow], &[&y, &index], vec![add(&x, &narrow, &y)]);
    assert_eq!(Tolerance::of(&mixed, 0), Tolerance::BFLOAT16);
    assert_eq!(Tolerance::of(&mixed, 1), Tolerance::EXACT);
    assert_eq!(model(vec![mixed]).programs().len(), 1);
}

#[test]
fn results_close_together_may_differ_by_what_their_numbers_hold() {
    // Neighbours in bfloat16 between 4 and 8 are 1/32 apart: 2.01 % of this range.
    let expected: Vec<f32> = (0..16).map(|n| 5.0 + n as f32 * 0.1035).collect();
    let allowed = Tolerance::BFLOAT16.for_result(&values(&[16], &expected), false);
    let moved =
        |by: f32| expected.iter().enumerate().map(|(i, x)| if i == 5 { x + by } else { *x }).collect::<Vec<_>>();
    assert!(!compare(&moved(1.0 / 32.0), &expected, Tolerance::BFLOAT16).passes());
    assert!(compare(&moved(1.0 / 32.0), &expected, allowed).passes());
    assert!(!compare(&moved(1.0 / 16.0), &expected, allowed).passes());
    assert!(allowed.pcc.is_some());
    // The operands may differ by a unit as well.
    let chained = Tolerance::BFLOAT16.for_result(&values(&[16], &expected), true);
    assert!(compare(&moved(1.0 / 16.0), &expected, chained).passes());
    assert!(!compare(&moved(3.0 / 32.0), &expected, chained).passes());
    // Of what is spread wide nothing changes.
    let wide = values(&[3], &[-1.0, 0.0, 1.0]);
    assert_eq!(Tolerance::BFLOAT16.for_result(&wide, true), Tolerance::BFLOAT16);
    assert_eq!(Tolerance::FLOAT32.for_result(&wide, true), Tolerance::FLOAT32);
    // Three sums of a softmax: their correlation says nothing, a hundredth of their size is too
    // much.
    let sums = [3540.0, 3541.0, 3540.5];
    let allowed = Tolerance::BFLOAT16.for_result(&values(&[3], &sums), false);
    assert_eq!(allowed.pcc, None);
    assert!(compare(&[3542.0, 3539.0, 3541.0], &sums, allowed).passes());
    assert!(!compare(&[3580.0, 3541.0, 3540.5], &sums, allowed).passes());
}

#[test]
fn one_element_has_no_correlation() {
    assert!(compare(&[17.800_001], &[17.8], Tolerance::FLOAT32).passes());
    assert!(!compare(&[17.9], &[17.8], Tolerance::FLOAT32).passes());
    assert!(!compare(&[1.0, 1.0], &[1.0, 2.0], Tolerance::FLOAT32).passes());
}
