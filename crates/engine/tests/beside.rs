//! A machine compared with host arithmetic: one that is wrong in one operation.

use crate::common::build::{add, binary, f32, model, multiply, program, values};
use tilework_engine::{Beside, Feed, Findings, Machine, Native, Options, Reason, Session, Value, Work};
use tilework_model::Model;
use tilework_model::ttnn::TensorRef;
use tilework_model::ttnn::ops::eltwise::EltwiseBinaryOpType;
use tilework_ops::{DType, Tensor};

/// Host arithmetic that adds 1 to the results of the operation at this index.
struct Wrong(usize);

impl Machine for Wrong {
    type Tensor = Tensor;

    fn take(&mut self, array: Tensor, described: &TensorRef) -> Result<Tensor, Reason> {
        Native.take(array, described)
    }
    fn give(&mut self, tensor: &Tensor) -> Result<Tensor, Reason> {
        Native.give(tensor)
    }
    fn cast(&mut self, tensor: &Tensor, dtype: DType, described: &TensorRef) -> Result<Tensor, Reason> {
        Native.cast(tensor, dtype, described)
    }
    fn operate(&mut self, work: &Work<'_, Tensor>) -> Result<Vec<Tensor>, Reason> {
        let made = Native.operate(work)?;
        let spoil = |tensor: Tensor| match work.event.index == self.0 {
            true => Tensor::new(tensor.shape().clone(), tensor.to_f32().iter().map(|x| x + 1.0).collect()).unwrap(),
            false => tensor,
        };
        Ok(made.into_iter().map(spoil).collect())
    }
}

/// `(x + x) * x - x`.
fn three() -> Model {
    let [x, sum, product, out] = [0, 1, 2, 9].map(|id| f32(id, &[4]));
    let operations = vec![
        add(&x, &x, &sum),
        multiply(&sum, &x, &product),
        binary(EltwiseBinaryOpType::Subtract, &product, &x, &out),
    ];
    model(vec![program("main", &[&x], &[&out], operations)])
}

fn run(wrong: usize, feed: Feed) -> (Vec<f32>, Findings) {
    let model = three();
    let machine = Beside::compared(Wrong(wrong), feed, &model);
    let mut session = Session::on(&model, Options::default(), machine).unwrap();
    let input = vec![Value::from(values(&[4], &[1.0, 2.0, 3.0, 5.0]))];
    let result = session.run(0, input, &mut ()).unwrap();
    (result.outputs[0].on(0).to_f32(), session.machine().findings().unwrap().clone())
}

#[test]
fn the_operation_that_departs_is_found_with_what_it_read() {
    let right = [1.0, 6.0, 15.0, 45.0];
    // What it makes of its own results departs, too.
    let (output, findings) = run(1, Feed::Own);
    assert_eq!(output, right.map(|x| x + 1.0));
    assert_eq!((findings.compared, findings.departed), (3, 2));
    let first = &findings.differences[0];
    assert_eq!((first.place.operation, first.output), (1, 0));
    assert_eq!(first.what.as_ref().unwrap().max_abs, 1.0);
    let evidence = findings.evidence.unwrap();
    let inputs: Vec<_> = evidence.inputs.iter().map(Tensor::to_f32).collect();
    assert_eq!(inputs, [[2.0, 4.0, 6.0, 10.0], [1.0, 2.0, 3.0, 5.0]]);
    assert_eq!(evidence.native.to_f32(), [2.0, 8.0, 18.0, 50.0]);
    assert_eq!(evidence.found.to_f32(), [3.0, 9.0, 19.0, 51.0]);
    // With the results of host arithmetic it is the only one, and nothing goes on.
    let (output, findings) = run(1, Feed::Native);
    assert_eq!(output, right);
    assert_eq!((findings.compared, findings.departed), (3, 1));
    let (output, findings) = run(7, Feed::Own);
    assert_eq!((output, findings.departed, findings.evidence.is_none()), (right.to_vec(), 0, true));
}
