//! Meshes of devices.

use proptest::prelude::*;
use tilework_ops::mesh::{Mesh, aggregate, all_gather, all_reduce, distribute, mesh_partition, reduce_scatter};
use tilework_ops::{DType, Reduction, Tensor};

use crate::common::{Nd, close, floats, same, seeds};

proptest! {
    #[test]
    fn split_and_join((rows, columns) in (1usize..4, 1usize..4), (a, b) in (1usize..4, 1usize..4), seed in seeds()) {
        let mesh = Mesh { rows, columns };
        let x = Nd::random(&[a * rows, 2, b * columns], seed);
        let shards = distribute(&x.f32(), mesh, [Some(0), Some(-1)]).unwrap();
        prop_assert_eq!(shards.len(), rows * columns);
        for r in 0..rows {
            for c in 0..columns {
                let wanted = Nd::by(&[a, 2, b], |i| x.at(&[r * a + i[0], i[1], c * b + i[2]]));
                same(&shards[r * columns + c], &wanted);
            }
        }
        same(&aggregate(&shards, mesh, [Some(0), Some(-1)]).unwrap(), &x);
        let copies = distribute(&x.f32(), mesh, [None, Some(2)]).unwrap();
        same(&aggregate(&copies, mesh, [None, Some(2)]).unwrap(), &x);
        // Gathering along the columns gives every device its whole rows.
        for (d, whole) in all_gather(&shards, mesh, 1, 2).unwrap().iter().enumerate() {
            let r = d / columns;
            same(whole, &Nd::by(&[a, 2, b * columns], |i| x.at(&[r * a + i[0], i[1], i[2]])));
        }
        let own = mesh_partition(&copies, mesh, 0, 0).unwrap();
        prop_assert_eq!(own.iter().map(Tensor::to_f32).collect::<Vec<_>>(), shards.iter().map(Tensor::to_f32).collect::<Vec<_>>());
    }

    #[test]
    fn reductions((rows, columns) in (1usize..4, 1usize..4), axis in 0usize..2, seed in seeds()) {
        let mesh = Mesh { rows, columns };
        let group = if axis == 0 { rows } else { columns };
        let x: Vec<Nd> = (0..rows * columns).map(|d| Nd::random(&[2, group * 3], seed + d as u64)).collect();
        let shards: Vec<Tensor> = x.iter().map(|x| x.tensor(DType::BF16)).collect();
        let members = |d: usize| (0..rows * columns).filter(move |&e| if axis == 0 { e % columns == d % columns } else { e / columns == d / columns });
        let sum = |d: usize| Nd::by(&[2, group * 3], |i| members(d).map(|e| x[e].at(i)).sum());
        let largest = |d: usize| Nd::by(&[2, group * 3], |i| members(d).map(|e| x[e].at(i)).fold(f64::NEG_INFINITY, f64::max));
        let sums = all_reduce(&shards, mesh, axis, Reduction::Sum, DType::F32).unwrap();
        let means = all_reduce(&shards, mesh, axis, Reduction::Mean, DType::F32).unwrap();
        let tops = all_reduce(&shards, mesh, axis, Reduction::Max, DType::BF16).unwrap();
        let parts = reduce_scatter(&shards, mesh, axis, 1, Reduction::Sum, DType::F32).unwrap();
        for d in 0..rows * columns {
            same(&sums[d], &sum(d));
            let mut mean = sum(d);
            mean.values.iter_mut().for_each(|v| *v /= group as f64);
            close(&means[d], &mean, 1e-6);
            same(&tops[d], &largest(d));
            let place = if axis == 0 { d / columns } else { d % columns };
            same(&parts[d], &Nd::by(&[2, 3], |i| sum(d).at(&[i[0], place * 3 + i[1]])));
        }
    }
}

#[test]
fn impossible_meshes_are_refused() {
    let x = floats(&[3, 2], &[0.0; 6]);
    let mesh = Mesh { rows: 1, columns: 2 };
    assert!(distribute(&x, mesh, [None, Some(0)]).is_err());
    assert!(all_gather(std::slice::from_ref(&x), mesh, 1, 0).is_err());
    assert!(all_gather(&[x.clone(), x.clone()], mesh, 2, 0).is_err());
    assert!(all_gather(&[x.clone(), floats(&[2], &[0.0; 2])], mesh, 1, 0).is_err());
    assert!(reduce_scatter(&[x.clone(), x.clone()], mesh, 1, 0, Reduction::Sum, DType::F32).is_err());
    assert!(aggregate(&[], Mesh { rows: 0, columns: 0 }, [None, None]).is_err());
}
