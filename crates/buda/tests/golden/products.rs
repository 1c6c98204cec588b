//! Products against naive loops, sparse ones against dense ones; operands that do not fit.

use proptest::prelude::*;
use tilework_buda::op::{Context, Reason, depthwise, identity, matmul, reduce, splice, unary};
use tilework_buda::{Tensor, tensor};
use tilework_netlist::types::{Blocks, Granularity, Identity, Matmul, Piece, ReduceDim, Size, UnaryKind};

use crate::common::{SMALL, at, blocks, shape, whole};
use crate::integers::product;

/// A dense product of these sizes.
fn dense(m_k: u32, u_kt: u32) -> Matmul {
    Matmul { m_k, u_kt, ..product() }
}

fn multiply(attributes: &Matmul, inputs: &[&Tensor]) -> Result<Tensor, Reason> {
    matmul::matmul(attributes, inputs, &mut Context::default())
}

fn depth(attributes: &Matmul, inputs: &[&Tensor]) -> Result<Tensor, Reason> {
    depthwise::depthwise(attributes, inputs, &mut Context::default())
}

fn sparse(attributes: &Matmul, inputs: &[&Tensor], out: &Blocks, how: &Identity) -> Result<Tensor, Reason> {
    identity::identity(attributes, inputs, out, how, &mut Context::default())
}

/// Sum of products, element by element.
fn naive(a: &Tensor, b: &Tensor) -> Tensor {
    let s = shape(a.shape().t, a.shape().rows, b.shape().columns);
    let sum = |z, r, c| (0..a.shape().columns).map(|k| at(a, z, r, k) * at(b, z, k, c)).sum::<f32>();
    Tensor::from_fn(s, SMALL, sum).unwrap()
}

proptest! {
    #[test]
    fn products_are_sums_of_products(
        t in 1usize..4, m in 1usize..4, n in 1usize..4, m_k in 1u32..4, u_kt in 1u32..3, z in 1usize..4, seed: u32,
    ) {
        let k = (m_k * u_kt) as usize;
        let (a, b) = (whole(shape(t * z, 4 * m, 4 * k), seed), whole(shape(t * z, 4 * k, 4 * n), !seed));
        let plain = multiply(&dense(m_k, u_kt), &[&a, &b]).unwrap();
        let expected = naive(&a, &b);
        prop_assert!(plain == expected);
        // Groups of z, a bias from row 0 of each tile, and scales by element.
        let (bias, scales) = (whole(shape(t, 4 * m, 4 * n), seed ^ 5), whole(shape(t, 4 * m, 4 * n), seed ^ 9));
        for (requant, dequant) in [(false, false), (true, false), (false, true)] {
            let accumulate = Some(z as u32);
            let attributes =
                Matmul { bias: true, accumulate, requant, dequant, zero_point: 2.0, ..dense(m_k, u_kt) };
            let mut inputs = vec![&a, &b, &bias];
            inputs.extend((requant || dequant).then_some(&scales));
            let got = multiply(&attributes, &inputs).unwrap();
            let all = Tensor::from_fn(bias.shape(), SMALL, |i, r, c| {
                let sum = (0..z).map(|j| at(&expected, i * z + j, r, c)).sum::<f32>() + at(&bias, i, r / 4 * 4, c);
                match (requant, dequant) {
                    (true, _) => sum * at(&scales, i, r, c) + 2.0,
                    (_, true) => (sum - 2.0) * at(&scales, i, r, c),
                    _ => sum,
                }
            });
            prop_assert!(got == all.unwrap());
        }
    }

    #[test]
    fn depthwise_products_are_those_of_each_column_of_tiles(
        t in 1usize..3, rows in 1usize..4, n in 1usize..4, m_k in 1usize..4, seed: u32,
    ) {
        let a = whole(shape(t, 4 * rows, 4 * m_k * n), seed);
        let b = whole(shape(t, 4 * m_k, 4 * n), !seed);
        let got = depth(&dense(m_k as u32, 1), &[&a, &b]).unwrap();
        let expected = Tensor::from_fn(shape(t, 4 * rows, 4 * n), SMALL, |z, r, c| {
            let term = |block: usize, k: usize| at(&a, z, r, (block * n + c / 4) * 4 + k) * at(&b, z, block * 4 + k, c);
            (0..m_k).flat_map(|block| (0..4).map(move |k| (block, k))).map(|(block, k)| term(block, k)).sum()
        });
        prop_assert!(got == expected.unwrap());
    }

    #[test]
    fn identity_products_are_dense_products(
        grid in 1u32..3, t in 1u32..4, outer in 1u32..3, inner in 1u32..4, m_k in 1u32..4, u_kt in 1u32..6, seed: u32,
    ) {
        let plan = Sparse::random(grid, t, outer, inner, m_k, u_kt, seed);
        let out = blocks((grid, 1), t, (outer, 2), (inner, 1));
        let right = whole(shape(t as usize, (m_k * u_kt * 4) as usize, 8), seed ^ 77);
        let attributes = dense(m_k, u_kt);
        let how = plan.attributes();
        for index in [plan.index_words(), plan.index_halves()] {
            let got = sparse(&attributes, &[&plan.tiles, &right, &index], &out, &how).unwrap();
            prop_assert!(got == naive(&plan.dense(), &right));
        }
    }
}

/// A sparse left operand: which tile, if any, stands where, and its encoding.
struct Sparse {
    grid: usize,
    t: usize,
    outer: usize,
    inner: usize,
    m_k: usize,
    u_kt: usize,
    tiles: Tensor,
    /// By matrix, row of tiles and column of tiles.
    places: Vec<Vec<Vec<Option<usize>>>>,
}

/// Tiles that each row of cores has.
const TILES: usize = 3;

impl Sparse {
    fn random(grid: u32, t: u32, outer: u32, inner: u32, m_k: u32, u_kt: u32, seed: u32) -> Sparse {
        let [grid, t, outer, inner, m_k, u_kt] = [grid, t, outer, inner, m_k, u_kt].map(|n| n as usize);
        let mut state = seed | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state as usize
        };
        let mut place = || Some(next() % (2 * TILES)).filter(|&tile| tile < TILES);
        let mut rows = || (0..grid * outer * inner).map(|_| (0..m_k * u_kt).map(|_| place()).collect()).collect();
        let places = (0..t).map(|_| rows()).collect();
        let tiles = whole(shape(1, 4 * grid, 4 * TILES), seed ^ 3);
        Sparse { grid, t, outer, inner, m_k, u_kt, tiles, places }
    }

    fn attributes(&self) -> Identity {
        Identity {
            num_index_tiles: self.t as u32,
            num_sparse_tiles: TILES as u32,
            num_columns: 0,
            sparse_tile_ptr_bits: 5,
            sparse_ublock_idx_bits: 4,
            indices_len: 0,
            fracture_factor: 1,
            starting_row: 0,
            act_t: self.t as u32,
            num_nz_strips: Vec::new(),
        }
    }

    fn dense(&self) -> Tensor {
        let rows = self.outer * self.inner;
        let s = shape(self.t, 4 * self.grid * rows, 4 * self.m_k * self.u_kt);
        Tensor::from_fn(s, SMALL, |z, r, c| match self.places[z][r / 4][c / 4] {
            Some(tile) => at(&self.tiles, 0, r / 4 / rows * 4 + r % 4, tile * 4 + c % 4),
            None => 0.0,
        })
        .unwrap()
    }

    /// One index tile for each matrix: words of 16 bits.
    fn encode(&self, core: usize, z: usize) -> Vec<u16> {
        let column_bits = (0..).find(|&bits| 1 << bits >= self.u_kt).unwrap();
        let mut words = Vec::new();
        for strip in 0..self.m_k {
            let last = strip + 1 == self.m_k;
            let index = z * self.m_k + strip;
            // The last strip ends both the row of strips and the index tile.
            words.extend([index as u16, if last { 0xc000 } else { 0 }]);
            let count_at = words.len();
            words.push(0);
            for ublock in 0..self.outer {
                let mut tiles = Vec::new();
                for r in 0..self.inner {
                    for c in 0..self.u_kt {
                        let row = (core * self.outer + ublock) * self.inner + r;
                        if let Some(tile) = self.places[z][row][strip * self.u_kt + c] {
                            tiles.push((tile << 11 | r << column_bits | c) as u16);
                        }
                    }
                }
                if !tiles.is_empty() {
                    words[count_at] += 1;
                    words.push((tiles.len() << 4 | ublock) as u16);
                    words.extend(tiles);
                }
            }
        }
        words
    }

    /// Words of one value each, in tiles of 32x32 whose memory goes face by face.
    fn tensor(&self, per_element: usize) -> Vec<Vec<u32>> {
        let mut rows = vec![vec![0u32; 32 * self.t]; 32 * self.grid];
        for core in 0..self.grid {
            for z in 0..self.t {
                for (i, words) in self.encode(core, z).chunks(per_element).enumerate() {
                    let (face, within) = (i / 256, i % 256);
                    let (r, c) = (face / 2 * 16 + within / 16, face % 2 * 16 + within % 16);
                    let word = words.iter().rev().fold(0, |word, &w| word << 16 | u32::from(w));
                    rows[core * 32 + r][z * 32 + c] = word;
                }
            }
        }
        rows
    }

    fn index_words(&self) -> Tensor {
        let s = shape(1, 32 * self.grid, 32 * self.t);
        Tensor::from_words(s, Size { r: 32, c: 32 }, self.tensor(2).concat()).unwrap()
    }

    fn index_halves(&self) -> Tensor {
        let s = shape(1, 32 * self.grid, 32 * self.t);
        let values = self.tensor(1).concat().iter().map(|&w| w as f32).collect();
        Tensor::new(s, Size { r: 32, c: 32 }, values).unwrap()
    }
}

#[test]
fn broken_index_tiles_are_answers() {
    let out = blocks((1, 1), 1, (1, 1), (1, 1));
    let (tiles, right) = (whole(shape(1, 4, 12), 1), whole(shape(1, 4, 4), 2));
    let how = Sparse::random(1, 1, 1, 1, 1, 1, 1).attributes();
    let run = |words: &[u16]| {
        let mut values: Vec<f32> = words.iter().map(|&w| f32::from(w)).collect();
        values.resize(16, 0.0);
        let index = Tensor::new(shape(1, 1, 16), Size { r: 1, c: 16 }, values).unwrap();
        sparse(&dense(1, 1), &[&tiles, &right, &index], &out, &how)
    };
    assert!(run(&[0, 0xc000, 1, 1 << 4, 2 << 11]).is_ok());
    for words in [
        // A strip that goes on beyond the tile, a strip and a tile that are not there, and rows
        // that are not.
        &[0, 0xc000, 3, 20 << 4][..],
        &[1, 0xc000, 0],
        &[0, 0xc000, 1, 1 << 4, 3 << 11],
        &[0, 0xc000, 1, 1 << 4 | 1, 0],
        &[0, 0xc000, 1, 1 << 4, 1],
        &[0, 0x8000, 0],
    ] {
        let refused = run(words);
        assert!(matches!(refused, Err(Reason::Index { .. } | Reason::Attribute { .. })), "{words:?}: {refused:?}");
    }
}

/// As in netlists from before index tiles held strips: m_k counts instructions there, and shapes
/// say nothing.
#[test]
fn index_tiles_of_an_older_form_are_refused_whatever_the_shapes() {
    let out = blocks((1, 1), 1, (1, 1), (1, 1));
    let (tiles, right, index) = (whole(shape(1, 4, 12), 1), whole(shape(1, 4, 4), 2), whole(shape(1, 4, 4), 3));
    let run = |bits: u32, m_k: u32| {
        let how = Identity { sparse_tile_ptr_bits: bits, ..Sparse::random(1, 1, 1, 1, 1, 1, 1).attributes() };
        sparse(&dense(m_k, 1), &[&tiles, &right, &index], &out, &how).unwrap_err()
    };
    let refused = run(0, 115);
    assert!(matches!(refused, Reason::Attribute { name: "sparse_tile_ptr_bits", .. }), "{refused}");
    assert!(refused.to_string().contains("older form"), "{refused}");
    for bits in [16, u32::MAX] {
        assert!(matches!(run(bits, 1), Reason::Attribute { name: "sparse_tile_ptr_bits", .. }));
    }
    let how = Sparse::random(1, 1, 1, 1, 1, 1, 1).attributes();
    let refused = sparse(&dense(1, u32::MAX), &[&tiles, &right, &index], &out, &how).unwrap_err();
    assert!(matches!(refused, Reason::Attribute { name: "sparse_tile_ptr_bits", .. }), "{refused}");
    // With them, m_k counts strips of the right operand.
    let refused = run(5, 115);
    assert!(matches!(refused, Reason::Shape { operand: 1, wanted, .. } if wanted == shape(1, 460, 4)), "{refused}");
}

#[test]
fn operands_in_small_tiles_are_filled_up() {
    let (a, b) = (whole(shape(2, 8, 8), 1), whole(shape(2, 8, 4), 2));
    let product = naive(&a, &b);
    // A bias in tiles of one row: each counts for a tile of the product.
    let flat = Size { r: 1, c: 4 };
    let bias = Tensor::from_fn(shape(2, 2, 4), flat, |z, r, c| (100 * z + 10 * r + c) as f32).unwrap();
    let got = multiply(&Matmul { bias: true, ..dense(1, 2) }, &[&a, &b, &bias]).unwrap();
    let expected = Tensor::from_fn(product.shape(), SMALL, |z, r, c| at(&product, z, r, c) + at(&bias, z, r / 4, c));
    assert_eq!(got, expected.unwrap());
    // A right operand in tiles of two rows meets the first two columns of each tile on the left.
    let low = Tensor::from_fn(shape(2, 4, 4), Size { r: 2, c: 4 }, |z, r, c| (7 * z + 3 * r + c) as f32).unwrap();
    let got = multiply(&dense(1, 2), &[&a, &low]).unwrap();
    let expected = Tensor::from_fn(product.shape(), SMALL, |z, r, c| {
        (0..4).map(|k| at(&a, z, r, k / 2 * 4 + k % 2) * at(&low, z, k, c)).sum()
    });
    assert_eq!(got, expected.unwrap());
}

#[test]
fn shapes_that_do_not_fit_are_named() {
    let (a, b) = (whole(shape(2, 4, 8), 1), whole(shape(2, 4, 8), 2));
    let error = multiply(&dense(1, 2), &[&a, &b]).unwrap_err();
    assert!(matches!(error, Reason::Shape { operand: 1, wanted, .. } if wanted == shape(2, 8, 8)), "{error}");
    let error = multiply(&dense(3, 1), &[&a, &b]).unwrap_err();
    assert!(matches!(error, Reason::Attribute { name: "m_k", .. }));
    assert!(matches!(multiply(&dense(u32::MAX, u32::MAX), &[&a, &b]), Err(Reason::Attribute { .. })));
    assert!(matches!(multiply(&dense(1, 2), &[&a]), Err(Reason::Operands { found: 1, .. })));
    let right = whole(shape(2, 8, 4), 2);
    let biased = Matmul { bias: true, ..dense(1, 2) };
    let error = multiply(&biased, &[&a, &right, &b]).unwrap_err();
    assert!(matches!(error, Reason::Shape { operand: 2, found, .. } if found == b.shape()));
    let three = Matmul { accumulate: Some(3), ..dense(1, 2) };
    assert!(matches!(multiply(&three, &[&a, &right]), Err(Reason::Attribute { name: "z", .. })));
    let none = Matmul { accumulate: Some(0), ..dense(1, 2) };
    assert!(matches!(multiply(&none, &[&a, &right]), Err(Reason::Attribute { name: "z", .. })));
    assert!(matches!(reduce::reduce(ReduceDim::C, Some((3, 1)), 1, &a), Err(Reason::Attribute { name: "m_k", .. })));
    assert!(matches!(reduce::reduce(ReduceDim::Z, None, 0, &a), Err(Reason::Attribute { name: "z", .. })));
    let pieces = [Piece { index: u32::MAX, length: u32::MAX, stride: u32::MAX }];
    let out = blocks((1, 1), 2, (1, 2), (1, 1));
    assert!(splice::splice(Granularity::Ublock, &pieces, &[&a], &out).is_err());
    let nothing = [Piece { index: 0, length: 0, stride: 0 }];
    let refused = splice::splice(Granularity::Ublock, &nothing, &[&a], &out);
    assert!(matches!(refused, Err(Reason::Attribute { name: "length", .. })));
    let huge = blocks((u32::MAX, u32::MAX), u32::MAX, (u32::MAX, u32::MAX), (u32::MAX, u32::MAX));
    let refused = splice::splice(Granularity::T, &pieces, &[&a], &huge);
    assert!(matches!(refused, Err(Reason::Tensor(tensor::TensorError::TooLarge(_)))));
    // Two operands that are small, a product that is not.
    let (tall, wide) = (
        Tensor::full(shape(1, 1 << 16, 4), SMALL, 1.0).unwrap(),
        Tensor::full(shape(1, 4, 1 << 16), SMALL, 1.0).unwrap(),
    );
    let refused = multiply(&dense(1, 1), &[&tall, &wide]);
    assert!(matches!(refused, Err(Reason::Tensor(tensor::TensorError::TooLarge(_)))));
}

#[test]
fn results_do_not_depend_on_threads() {
    let tile = Size { r: 32, c: 32 };
    let fill = |s, seed: usize| {
        Tensor::from_fn(s, tile, |z, r, c| ((z * 31 + r * 17 + c * 7 + seed) % 101) as f32 / 37.0 - 1.3).unwrap()
    };
    let (a, b) = (fill(shape(2, 256, 512), 1), fill(shape(2, 512, 320), 2));
    let work = || {
        let product = multiply(&Matmul { gelu: true, ..dense(4, 4) }, &[&a, &b]).unwrap();
        let sum = multiply(&Matmul { accumulate: Some(2), ..dense(4, 4) }, &[&a, &b]).unwrap();
        let bits = |x: &Tensor| x.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>();
        (bits(&product), bits(&sum), bits(&unary::unary(UnaryKind::Exp, &product).unwrap()))
    };
    let on = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work);
    let one = on(1);
    assert!(one == on(2) && one == on(5));
}
