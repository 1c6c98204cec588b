//! What an operation needs at least: of the arithmetic, of DRAM and of the NoC.
//!
//! The bounds are of the whole board, however many of its workers the operation's programs use, so
//! that a small grid shows as little use.

use tilework_abi::addr::Cycle;
use tilework_abi::board::Board;
use tilework_model::common::MathFidelity;
use tilework_model::ttnn::Op;
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_runtime::memory::BufferType;
use tilework_runtime::tensor::TensorSpec;

/// Bytes that a DRAM bank moves in so many cycles (docs/timing.md, `DRAM_BANK`).
const DRAM_BANK: (u64, u64) = (1280, 27);
/// Bytes that a tile takes from the NoC, or gives to it, in a cycle: a flit (docs/timing.md,
/// `FLIT`).
const NOC: u64 = 64;
/// Products of an `MVMUL`, one a cycle in each fidelity phase: 8 x 16 by 16 x 16 (docs/timing.md,
/// "16 `MVMUL` in 16" of a tile).
const PRODUCTS: u64 = 8 * 16 * 16;
/// Elements that the vector unit works on in a cycle.
const LANES: u64 = 32;
/// Elements that the matrix unit reduces or adds in a cycle: 16 x 16.
const REDUCED: u64 = 16 * 16;

/// The fewest cycles that an operation can take by one of its needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Bounds {
    /// The arithmetic on all workers.
    pub math: Cycle,
    /// Operands from and results to all DRAM banks.
    pub dram: Cycle,
    /// The same into and out of all workers.
    pub noc: Cycle,
    /// Bytes of operands and results.
    pub bytes: u64,
}

impl Bounds {
    /// What an operation needs on a board with so many workers.
    pub(crate) fn of(op: &Op, board: Board, workers: usize, reads: &[&TensorSpec], writes: &[TensorSpec]) -> Self {
        let workers = workers.max(1) as u64;
        let bytes = |specs: &mut dyn Iterator<Item = &TensorSpec>| specs.map(|spec| spec.bytes() as u64).sum::<u64>();
        let in_dram = |spec: &&TensorSpec| spec.memory().buffer_type == BufferType::Dram;
        let (read, written) = (bytes(&mut reads.iter().copied()), bytes(&mut writes.iter()));
        let dram = bytes(&mut reads.iter().copied().filter(in_dram)) + bytes(&mut writes.iter().filter(in_dram));
        let (bank_bytes, bank_cycles) = DRAM_BANK;
        let banks = board.dram().banks().len().max(1) as u64;
        Self {
            math: arithmetic(op, reads, writes).div_ceil(workers),
            dram: (dram * bank_cycles).div_ceil(banks * bank_bytes),
            noc: read.max(written).div_ceil(workers * NOC),
            bytes: read + written,
        }
    }

    /// The need that takes longest, and its cycles.
    pub fn greatest(&self) -> (&'static str, Cycle) {
        let all = [("math", self.math), ("dram", self.dram), ("noc", self.noc)];
        all.into_iter().fold(("math", 0), |most, next| if next.1 > most.1 { next } else { most })
    }

    /// The part of the cycles that it took which the greatest need takes at least.
    pub fn utilisation(&self, cycles: Cycle) -> Option<f64> {
        (cycles > 0).then(|| self.greatest().1 as f64 / cycles as f64)
    }
}

/// Cycles of arithmetic, if one worker did all of it.
fn arithmetic(op: &Op, reads: &[&TensorSpec], writes: &[TensorSpec]) -> Cycle {
    let elements = |spec: &TensorSpec| spec.logical_shape().iter().map(|&n| n as u64).product::<u64>();
    let read = || reads.iter().map(|spec| elements(spec)).max().unwrap_or(0);
    let written = || writes.iter().map(elements).sum::<u64>();
    // The length of a dimension of the first operand, counted from the end.
    let side = |from_end: usize| {
        let shape = reads.first().map(|spec| spec.logical_shape()).unwrap_or_default();
        shape.len().checked_sub(from_end).and_then(|at| shape.get(at)).map_or(1, |&n| n as u64)
    };
    let products = |inner: u64, config: &Option<DeviceComputeKernelConfig>| {
        (written() * inner).div_ceil(PRODUCTS) * phases(config.as_ref())
    };
    match op {
        Op::Matmul(op) => products(side(1 + usize::from(op.transpose_a)), &op.compute_config),
        Op::Linear(op) => products(side(1 + usize::from(op.transpose_a)), &op.compute_config),
        Op::Conv2d(op) => {
            let taps: u64 = op.kernel_size.iter().map(|&n| u64::from(n.unsigned_abs())).product();
            products(taps * u64::from(op.in_channels) / u64::from(op.groups.max(1)), &op.compute_config)
        }
        Op::Reduction(_) | Op::ReductionProd(_) => read().div_ceil(REDUCED),
        Op::EltwiseBinary(_)
        | Op::EltwiseBinaryComposite(_)
        | Op::EltwiseBinaryCompositeScalar(_)
        | Op::EltwiseTernaryWhere(_)
        | Op::EltwiseUnary(_)
        | Op::EltwiseUnaryComposite(_) => written().div_ceil(REDUCED),
        // At least one function of each element.
        Op::LayerNorm(_) | Op::RMSNorm(_) | Op::Softmax(_) => written().div_ceil(LANES),
        _ => 0,
    }
}

/// Passes of the matrix unit over a product: as the operation says, else as for `HiFi4`.
fn phases(config: Option<&DeviceComputeKernelConfig>) -> u64 {
    match config.and_then(|config| config.math_fidelity) {
        Some(MathFidelity::LoFi) => 1,
        Some(MathFidelity::HiFi2) => 2,
        Some(MathFidelity::HiFi3) => 3,
        Some(MathFidelity::HiFi4) | None => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_model::Model;
    use tilework_model::ttnn::OpKind;
    use tilework_runtime::tensor::TensorDesc;

    /// The operation of that kind in the example's model.
    fn op(kind: OpKind) -> Op {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/mlp/mlp.ttnn");
        let model = Model::open(file).unwrap();
        let mut operations = model.programs()[0].operations.iter();
        operations.find(|operation| operation.kind() == kind).unwrap().op.clone()
    }

    fn spec(shape: [usize; 2]) -> TensorSpec {
        TensorSpec::new(&TensorDesc::new(shape)).unwrap()
    }

    /// By hand: 7 banks give 331.9 bytes a cycle, 118 workers take 7552.
    #[test]
    fn transfers_are_bounded_by_banks_and_links() {
        let (x, bytes) = (spec([32 * 118, 32]), 118 * 2048);
        let bounds = Bounds::of(&op(OpKind::ToLayout), Board::P100, 118, &[&x], std::slice::from_ref(&x));
        assert_eq!(bounds, Bounds { math: 0, dram: 1457, noc: 32, bytes: 2 * bytes });
        assert_eq!((bounds.greatest(), bounds.utilisation(2914)), (("dram", 1457), Some(0.5)));
        assert_eq!(bounds.utilisation(0), None);
    }

    /// 512 cubed on 118 workers: 65536 `MVMUL` in each of four phases, as the operation says
    /// nothing of its fidelity.
    #[test]
    fn a_product_is_bounded_by_its_arithmetic() {
        let x = spec([512, 512]);
        let bounds = Bounds::of(&op(OpKind::Linear), Board::P100, 118, &[&x, &x], std::slice::from_ref(&x));
        assert_eq!((bounds.math, bounds.noc), (2222, 139));
        assert_eq!(bounds.dram, 4740);
    }
}
