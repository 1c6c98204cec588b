//! Mixtures of experts: the way of tokens to devices and back, against a mixture that is computed
//! without any devices; and sampling against the distribution that it stands for.

use proptest::prelude::*;
use tilework_ops::mesh::{self, Dispatched, Mesh};
use tilework_ops::{DType, Sampling, SparseSide, Tensor, sampling, sparse_matmul};

use crate::common::{Nd, close, floats, ints, same, seeds, shape};

/// Sizes of a mixture on a mesh: tokens `batch` by `sequence` on each device of a group.
#[derive(Debug, Clone, Copy)]
struct Mixture {
    mesh: Mesh,
    axis: usize,
    batch: usize,
    sequence: usize,
    hidden: usize,
    each: usize,
    chosen: usize,
}

impl Mixture {
    fn along(&self) -> usize {
        if self.axis == 0 { self.mesh.rows } else { self.mesh.columns }
    }

    /// Every group has all experts: the device in place `p` has experts `p`, `p + devices`...
    fn experts(&self) -> usize {
        self.each * self.along()
    }

    fn place(&self, device: usize) -> usize {
        if self.axis == 0 { device / self.mesh.columns } else { device % self.mesh.columns }
    }

    fn mapping(&self) -> Tensor {
        let (experts, devices) = (self.experts(), self.mesh.devices());
        let flag = |i: usize| i64::from(i / devices % self.along() == self.place(i % devices));
        let flags: Vec<i64> = (0..experts * devices).map(flag).collect();
        ints(DType::U16, &[1, 1, experts, devices], &flags)
    }

    /// Different experts for each token of a device.
    fn choices(&self, device: usize) -> Tensor {
        let expert = |i: usize| {
            let (token, k) = (i / self.chosen, i % self.chosen);
            ((token * 7 + device * 5 + k * (1 + token % 2)) % self.experts()) as i64
        };
        let count = self.batch * self.sequence * self.chosen;
        let list: Vec<i64> = (0..count).map(expert).collect();
        ints(DType::U16, &[self.batch, self.sequence, 1, self.chosen], &list)
    }
}

fn mixtures() -> impl Strategy<Value = Mixture> {
    ((1usize..4, 1usize..4), 0usize..2, (1usize..3, 1usize..4), 1usize..4, (1usize..3, 1usize..3)).prop_map(
        |((rows, columns), axis, (batch, sequence), hidden, (each, chosen))| Mixture {
            mesh: Mesh { rows, columns },
            axis,
            batch,
            sequence,
            hidden,
            each,
            chosen: chosen.min(each),
        },
    )
}

proptest! {
    /// Tokens go to their experts, each expert multiplies them by its number and adds 1, and they
    /// come back: each choice of each token is what its expert makes of the token.
    #[test]
    fn tokens_go_to_their_experts_and_come_back(m in mixtures(), along_sequence in any::<bool>(), seed in seeds()) {
        let (devices, n) = (m.mesh.devices(), m.along());
        let tokens: Vec<Nd> = (0..devices).map(|d| Nd::random(&[m.batch, m.sequence, 1, m.hidden], seed + d as u64)).collect();
        let given: Vec<Tensor> = tokens.iter().map(|t| t.tensor(DType::BF16)).collect();
        let choices: Vec<Tensor> = (0..devices).map(|d| m.choices(d)).collect();
        let (x, y) = if along_sequence { (m.batch, m.sequence * n) } else { (m.batch * n, m.sequence) };
        let shapes = Dispatched { tokens: shape(&[1, x, y, m.hidden]), metadata: shape(&[1, x, y, m.chosen]) };
        let mapping = m.mapping();
        let on = (m.mesh, m.axis);
        let (sent, metadata) = mesh::all_to_all_dispatch(&given, &choices, &mapping, on, &shapes).unwrap();
        let mut made = Vec::new();
        for d in 0..devices {
            let (rows, k) = (sent[d].to_f32(), metadata[d].to_i64());
            let own = |e: usize| e * n + m.place(d);
            // A token that chose none of the device's experts did not come.
            for (token, row) in rows.chunks(m.hidden).enumerate() {
                let chose = k[token * m.chosen..(token + 1) * m.chosen].iter().any(|&e| e as usize % n == m.place(d));
                prop_assert!(chose || row.iter().all(|&v| v == 0.0));
            }
            let values: Vec<f32> = (0..m.each).flat_map(|e| rows.iter().map(move |v| v * own(e) as f32 + 1.0)).collect();
            made.push(floats(&[m.each, x, y, m.hidden], &values));
        }
        let shard = if along_sequence && m.batch > 1 { 2 } else { 1 };
        if !along_sequence || m.batch > 1 {
            let back = mesh::all_to_all_combine(&made, &metadata, &mapping, on, shard).unwrap();
            for d in 0..devices {
                let chosen = choices[d].to_i64();
                let wanted = Nd::by(&[m.chosen, m.batch, m.sequence, m.hidden], |i| {
                    let expert = chosen[(i[1] * m.sequence + i[2]) * m.chosen + i[0]];
                    tokens[d].at(&[i[1], i[2], 0, i[3]]) * expert as f64 + 1.0
                });
                close(&back[d], &wanted, 1e-6);
            }
        }
    }

    #[test]
    fn a_device_keeps_the_scores_of_its_own_experts(m in mixtures(), chunk in 1usize..5, seed in seeds()) {
        let (devices, experts, tokens) = (m.mesh.devices(), m.experts(), m.batch * m.sequence);
        let m = Mixture { axis: 1, ..m };
        let experts = if experts == m.experts() { experts } else { m.experts() };
        let scores: Vec<Nd> = (0..devices).map(|d| Nd::random(&[1, m.batch, m.sequence, experts], seed + d as u64)).collect();
        let given: Vec<Tensor> = scores.iter().map(Nd::f32).collect();
        let choices: Vec<Tensor> = (0..devices)
            .map(|d| ints(DType::U16, &[1, m.batch, m.sequence, m.chosen], &m.choices(d).to_i64()))
            .collect();
        for d in 0..devices {
            let on = (m.mesh, d);
            let found = mesh::expert_token_remap(&given[d], &m.mapping(), &choices[d], on, chunk, DType::U16).unwrap();
            let chosen = choices[d].to_i64();
            let expert = |e: usize| e * m.along() + m.place(d);
            let chose = |token: usize, e: usize| chosen[token * m.chosen..(token + 1) * m.chosen].contains(&(expert(e) as i64));
            same(&found.0, &Nd::by(&[1, m.batch, m.sequence, m.each], |i| {
                if chose(i[1] * m.sequence + i[2], i[3]) { scores[d].at(&[0, i[1], i[2], expert(i[3])]) } else { 0.0 }
            }));
            same(&found.1, &Nd::by(&[1, 1, tokens.div_ceil(chunk), m.each], |i| {
                let run = i[2] * chunk..((i[2] + 1) * chunk).min(tokens);
                f64::from(run.into_iter().any(|token| chose(token, i[3])))
            }));
        }
    }

    #[test]
    fn scores_travel_with_the_tokens(m in mixtures(), seed in seeds()) {
        let (devices, tokens) = (m.mesh.devices(), m.batch * m.sequence);
        let x: Vec<Nd> = (0..devices).map(|d| Nd::random(&[1, 1, tokens, m.hidden], seed + d as u64)).collect();
        let s: Vec<Nd> = (0..devices).map(|d| Nd::random(&[1, 1, tokens, m.chosen], seed + 99 + d as u64)).collect();
        let choices: Vec<Tensor> =
            (0..devices).map(|d| ints(DType::U16, &[1, 1, tokens, m.chosen], &m.choices(d).to_i64())).collect();
        // Expert e is on the device in place e % devices of each group.
        let owner = |device: usize, e: usize| {
            let place = e % m.along();
            if m.axis == 0 { place * m.mesh.columns + device % m.mesh.columns } else { device / m.mesh.columns * m.mesh.columns + place }
        };
        let experts = m.experts();
        let owners: Vec<i64> = (0..devices * experts).map(|i| owner(i / experts, i % experts) as i64).collect();
        let mapping = ints(DType::U16, &[devices, experts], &owners);
        let lists = [&x, &s].map(|list| list.iter().map(Nd::f32).collect::<Vec<_>>());
        let [sent, all, scores] =
            mesh::all_to_all_dispatch_metadata(&lists[0], &choices, &lists[1], &mapping, (m.mesh, m.axis)).unwrap();
        for d in 0..devices {
            let from = |place: usize| owner(d, place);
            let row = |i: usize| (from(i / tokens), i % tokens);
            let chosen = |i: usize, k: usize| choices[row(i).0].to_i64()[row(i).1 * m.chosen + k];
            let n = m.along() * tokens;
            same(&all[d], &Nd::by(&[1, n, m.chosen], |i| chosen(i[1], i[2]) as f64));
            same(&scores[d], &Nd::by(&[1, n, m.chosen], |i| s[row(i[1]).0].at(&[0, 0, row(i[1]).1, i[2]])));
            same(&sent[d], &Nd::by(&[1, n, m.hidden], |i| {
                let mine = (0..m.chosen).any(|k| owner(d, chosen(i[1], k) as usize) == d);
                if mine { x[row(i[1]).0].at(&[0, 0, row(i[1]).1, i[2]]) } else { 0.0 }
            }));
        }
    }
}

#[test]
fn a_count_of_blocks_that_is_wrong_is_refused_and_none_means_all() {
    let (a, b) = (Nd::random(&[1, 2, 2, 3], 1).f32(), Nd::random(&[1, 2, 3, 2], 2).f32());
    let flags = floats(&[1, 1, 1, 2], &[1.0, 0.0]);
    let run = |nonzero| sparse_matmul(&a, &b, &flags, SparseSide::Activations, nonzero, DType::F32);
    let error = run(Some(2)).unwrap_err().to_string();
    assert!(error.contains("attribute nnz: 2 blocks, but 1 flags"), "{error}");
    let (one, all) = (run(Some(1)).unwrap().to_f32(), run(Some(0)).unwrap().to_f32());
    assert_eq!(one[..4], all[..4]);
    assert!(one[4..].iter().all(|&v| v == 0.0) && all[4..].iter().all(|&v| v != 0.0), "{one:?} {all:?}");
}

/// `rows` draws from the same candidates.
fn drawn(values: &[f32], rows: usize, k: i64, p: f32, temperature: f32, seed: u32) -> Vec<i64> {
    let n = values.len();
    let values = floats(&[1, 1, rows, n], &values.repeat(rows));
    let indices: Vec<i64> = (0..n as i64).map(|i| 100 + i).collect();
    let indices = ints(DType::I32, &[1, 1, rows, n], &indices.repeat(rows));
    let (k, p) = (ints(DType::U32, &[rows], &vec![k; rows]), floats(&[rows], &vec![p; rows]));
    let temperature = floats(&[rows], &vec![temperature; rows]);
    let by = Sampling { k: &k, p: &p, temperature: &temperature, seed };
    let found = sampling(&values, &indices, by, shape(&[1, 1, 1, rows]), DType::I32).unwrap();
    assert_eq!(found.shape().dims(), [1, 1, 1, rows]);
    found.to_i64().into_iter().map(|index| index - 100).collect()
}

#[test]
fn sampling_draws_in_proportion_to_the_softmax_of_what_is_kept() {
    let values = [0.5_f32, 2.0, -1.0, 1.5, 0.0, 1.0];
    let rows = 20_000;
    // Candidates that are kept, by k, p and the factor that the temperature is.
    for (k, p, factor, kept) in [
        (6, 1.0, 1.0, &[0, 1, 2, 3, 4, 5][..]),
        (3, 1.0, 1.0, &[1, 3, 5]),
        (3, 1.0, 0.5, &[1, 3, 5]),
        // The two largest of all have 0.42 and 0.25 of the sum: the second goes beyond 0.5.
        (6, 0.5, 1.0, &[1, 3]),
    ] {
        let found = drawn(&values, rows, k, p, factor, 7);
        let weight = |i: usize| (f64::from(values[i]) * f64::from(factor)).exp();
        let sum: f64 = kept.iter().map(|&i| weight(i)).sum();
        for i in 0..values.len() {
            let share = found.iter().filter(|&&index| index == i as i64).count() as f64 / rows as f64;
            let wanted = if kept.contains(&i) { weight(i) / sum } else { 0.0 };
            // Six standard deviations of so many draws.
            let bound = 6.0 * (wanted * (1.0 - wanted) / rows as f64).sqrt();
            assert!((share - wanted).abs() <= bound, "k {k}, p {p}, {i}: {share} instead of {wanted}");
        }
    }
}

#[test]
fn sampling_of_one_candidate_is_the_largest_and_the_seed_decides_the_rest() {
    let values = [0.5_f32, 2.0, -1.0, 1.5];
    assert_eq!(drawn(&values, 50, 1, 1.0, 1.0, 3), vec![1; 50]);
    assert_eq!(drawn(&values, 50, 4, 0.0, 1.0, 3), vec![1; 50]);
    assert_eq!(drawn(&values, 50, 4, 1.0, 1.0, 3), drawn(&values, 50, 4, 1.0, 1.0, 3));
    assert_ne!(drawn(&values, 50, 4, 1.0, 1.0, 3), drawn(&values, 50, 4, 1.0, 1.0, 4));
}
