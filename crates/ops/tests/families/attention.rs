//! Attention, rotary embedding, caches, heads.

use proptest::prelude::*;
use tilework_ops::{
    Attention, DType, attention, attention_decode, chunked_attention, concatenate_heads, fill_cache, nlp_concat_heads,
    nlp_concat_heads_decode, nlp_create_qkv_heads_decode, paged_attention_decode, paged_fill_cache, paged_update_cache,
    rotary_embedding, rotary_embedding_llama, split_qkv_heads, update_cache,
};

use crate::common::{Nd, close, floats, indices, ints, same, seeds};

/// Attention by definition: `logit(b, h, i, j, q . k)` gives the logit of a query and a key;
/// `extra` one more per head.
fn reference(
    q: &Nd,
    k: &Nd,
    v: &Nd,
    logit: impl Fn(&[usize; 4], f64) -> f64,
    extra: Option<&dyn Fn(usize) -> f64>,
) -> Nd {
    let (keys, share) = (k.dims[2], q.dims[1] / k.dims[1]);
    Nd::by(&[q.dims[0], q.dims[1], q.dims[2], v.dims[3]], |at| {
        let [b, h, i, c] = *at else { unreachable!() };
        let logits: Vec<f64> = (0..keys)
            .map(|j| {
                let dot = (0..q.dims[3]).map(|d| q.at(&[b, h, i, d]) * k.at(&[b, h / share, j, d])).sum();
                logit(&[b, h, i, j], dot)
            })
            .collect();
        let extra = extra.map(|f| f(h));
        let top = logits.iter().copied().chain(extra).fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().copied().chain(extra).map(|l| (l - top).exp()).sum();
        (0..keys).map(|j| (logits[j] - top).exp() / total * v.at(&[b, h / share, j, c])).sum()
    })
}

proptest! {
    #[test]
    fn prefill(
        (b, kv, share) in (1usize..3, 1usize..3, 1usize..3),
        (n, keys, d, dv) in (1usize..7, 1usize..7, 1usize..6, 1usize..5),
        kind in 0usize..6,
        seed in seeds(),
    ) {
        let h = kv * share;
        let q = Nd::random(&[b, h, n, d], seed);
        let (k, v) = (Nd::random(&[b, kv, keys, d], seed + 1), Nd::random(&[b, kv, keys, dv], seed + 2));
        let mask = Nd::random(&[b, 1, n, keys], seed + 3);
        let sink = Nd::random(&[1, h, 1, 1], seed + 4);
        let (mt, st) = (mask.f32(), sink.f32());
        let scale = 1.0 / (d as f64).sqrt();
        let inf = f64::NEG_INFINITY;
        let (by, wanted) = match kind {
            0 => (Attention::default(), reference(&q, &k, &v, |_, s| s * scale, None)),
            1 => (
                Attention { mask: Some(&mt), scale: Some(0.5), ..Attention::default() },
                reference(&q, &k, &v, |at, s| s * 0.5 + mask.at(&[at[0], 0, at[2], at[3]]), None),
            ),
            2 => (
                Attention { causal: true, ..Attention::default() },
                reference(&q, &k, &v, |at, s| if at[3] <= at[2] { s * scale } else { inf }, None),
            ),
            3 => (
                Attention { causal: true, window: Some(2), scale: Some(1.0), ..Attention::default() },
                reference(&q, &k, &v, |at, s| if at[3] <= at[2] && at[3] + 2 > at[2] { s } else { inf }, None),
            ),
            4 => (
                Attention { window: Some(3), scale: Some(1.0), ..Attention::default() },
                reference(&q, &k, &v, |at, s| if at[3] <= at[2] + 1 && at[2] <= at[3] + 1 { s } else { inf }, None),
            ),
            _ => (
                Attention { sink: Some(&st), scale: Some(0.5), ..Attention::default() },
                reference(&q, &k, &v, |_, s| s * 0.5, Some(&|h| sink.values[h] * 0.5)),
            ),
        };
        // With a window and fewer keys than queries some queries see nothing: those are NaN
        // on both sides.
        let found = attention(&q.f32(), &k.f32(), &v.f32(), by, DType::F32).unwrap();
        close(&found, &wanted, 1e-5);
    }

    #[test]
    fn decode((b, kv, share, keys, d) in (1usize..4, 1usize..3, 1usize..3, 1usize..9, 1usize..6), last in prop::collection::vec(0usize..100, 4), seed in seeds()) {
        let h = kv * share;
        let q = Nd::random(&[b, h, 1, d], seed);
        let (k, v) = (Nd::random(&[b, kv, keys, d], seed + 1), Nd::random(&[b, kv, keys, d], seed + 2));
        let positions: Vec<i64> = (0..b).map(|i| (last[i] % keys) as i64).collect();
        let at = ints(DType::I32, &[b], &positions);
        let query = Nd::new(&[1, b, h, d], q.values.clone()).f32();
        let wanted = reference(&q, &k, &v, |i, s| if i[3] as i64 <= positions[i[0]] { s * 0.5 } else { f64::NEG_INFINITY }, None);
        let wanted = Nd::new(&[1, b, h, d], wanted.values);
        let by = Attention { causal: true, scale: Some(0.5), ..Attention::default() };
        close(&attention_decode(&query, &k.f32(), &v.f32(), Some(&at), by, DType::F32).unwrap(), &wanted, 1e-5);

        // The same from pages of two positions, handed out from the back.
        let (each, length) = (keys.div_ceil(2), 2);
        let pages = b * each;
        let page = |s: usize, p: usize| pages - 1 - (s * each + p);
        let paged = |x: &Nd| {
            let mut all = Nd::by(&[pages, kv, length, d], |_| 77.0);
            for i in indices(&x.dims) {
                let at = ((page(i[0], i[2] / 2) * kv + i[1]) * length + i[2] % 2) * d + i[3];
                all.values[at] = x.at(&i);
            }
            all.f32()
        };
        let table = Nd::by(&[b, each], |i| page(i[0], i[1]) as f64).tensor(DType::I32);
        let found = paged_attention_decode(&query, &paged(&k), &paged(&v), &table, Some(&at), by, DType::F32).unwrap();
        close(&found, &wanted, 1e-5);
        // And the mask, which decode scales.
        let mask = Nd::random(&[b, 1, h, keys], seed + 5);
        let wanted = reference(&q, &k, &v, |i, s| (s + mask.at(&[i[0], 0, i[1], i[3]])) * 0.5, None);
        let mt = mask.f32();
        let by = Attention { mask: Some(&mt), scale: Some(0.5), ..Attention::default() };
        let found = attention_decode(&query, &k.f32(), &v.f32(), None, by, DType::F32).unwrap();
        close(&found, &Nd::new(&[1, b, h, d], wanted.values), 1e-5);
    }

    #[test]
    fn halves_turn((b, h, n, half) in (1usize..3, 1usize..4, 1usize..5, 1usize..5), token in any::<bool>(), seed in seeds()) {
        let d = 2 * half;
        let x = Nd::random(&[b, h, n, d], seed);
        let (cos, sin) = (Nd::random(&[1, 1, n + 2, d], seed + 1), Nd::random(&[1, 1, n + 2, d], seed + 2));
        let row = |i: usize| if token { n + 1 } else { i };
        let wanted = Nd::by(&x.dims, |i| {
            let other = if i[3] < half { -x.at(&[i[0], i[1], i[2], i[3] + half]) } else { x.at(&[i[0], i[1], i[2], i[3] - half]) };
            x.at(i) * cos.at(&[0, 0, row(i[2]), i[3]]) + other * sin.at(&[0, 0, row(i[2]), i[3]])
        });
        let found = rotary_embedding(&x.f32(), &cos.f32(), &sin.f32(), token.then_some(n + 1), DType::F32).unwrap();
        close(&found, &wanted, 1e-6);
    }

    #[test]
    fn caches_take_their_lines((b, h, n, d) in (1usize..4, 1usize..3, 2usize..6, 1usize..4), choice in prop::collection::vec(0usize..100, 8), seed in seeds()) {
        let cache = Nd::random(&[b, h, n, d], seed);
        let (offset, count) = (choice[0] % b, n - choice[1] % 2);
        let entries = b - offset;
        let input = Nd::random(&[entries, h, count, d], seed + 1);
        let wanted = Nd::by(&cache.dims, |i| match i[0].checked_sub(offset) {
            Some(e) if i[2] < count => input.at(&[e, i[1], i[2], i[3]]),
            _ => cache.at(i),
        });
        same(&fill_cache(&cache.tensor(DType::BF16), &input.f32(), offset).unwrap(), &wanted);

        let position = choice[2] % n;
        let input = Nd::random(&[1, h, entries, d], seed + 2);
        let wanted = Nd::by(&cache.dims, |i| match i[0].checked_sub(offset) {
            Some(e) if i[2] == position => input.at(&[0, i[1], e, i[3]]),
            _ => cache.at(i),
        });
        let index = ints(DType::U32, &[1], &[position as i64]);
        same(&update_cache(&cache.f32(), &input.f32(), &index, offset).unwrap(), &wanted);

        // One user each, padded heads; the last user is skipped when there are several.
        let users: Vec<i64> = (0..b).map(|u| if u > 0 && u == b - 1 { -1 } else { (choice[3 + u] % n) as i64 }).collect();
        let input = Nd::random(&[1, b, h + 1, d], seed + 3);
        let wanted = Nd::by(&cache.dims, |i| {
            if i[2] as i64 == users[i[0]] { input.at(&[0, i[0], i[1], i[3]]) } else { cache.at(i) }
        });
        let index = ints(DType::I32, &[b], &users);
        same(&paged_update_cache(&cache.f32(), &input.f32(), &index, None).unwrap(), &wanted);
        // The same with one page per sequence, in reverse.
        let table = Nd::by(&[b, 1], |i| (b - 1 - i[0]) as f64).tensor(DType::I32);
        let turned = Nd::by(&cache.dims, |i| cache.at(&[b - 1 - i[0], i[1], i[2], i[3]]));
        let wanted = Nd::by(&cache.dims, |i| wanted.at(&[b - 1 - i[0], i[1], i[2], i[3]]));
        same(&paged_update_cache(&turned.f32(), &input.f32(), &index, Some(&table)).unwrap(), &wanted);
    }

    #[test]
    fn heads_split_and_join((b, n, heads, kv, d) in (1usize..3, 1usize..5, 1usize..4, 1usize..4, 1usize..4), turn in any::<bool>(), seed in seeds()) {
        let all = heads + 2 * kv;
        let x = Nd::random(&[b, n, all * d], seed);
        let part = |first: usize, count: usize| Nd::by(&[b, count, n, d], |i| x.at(&[i[0], i[2], (first + i[1]) * d + i[3]]));
        let split = split_qkv_heads(&x.f32(), None, heads, Some(kv), turn).unwrap();
        let key = part(heads, kv);
        let key = if turn { Nd::by(&[b, kv, d, n], |i| key.at(&[i[0], i[1], i[3], i[2]])) } else { key };
        same(&split.query, &part(0, heads));
        same(&split.key, &key);
        same(&split.value, &part(heads + kv, kv));
        let columns = |from: usize, to: usize| Nd::by(&[b, n, (to - from) * d], |i| x.at(&[i[0], i[1], from * d + i[2]])).f32();
        let again = split_qkv_heads(&columns(0, heads), Some(&columns(heads, all)), heads, Some(kv), turn).unwrap();
        prop_assert_eq!((again.query.to_f32(), again.key.to_f32()), (split.query.to_f32(), split.key.to_f32()));
        prop_assert_eq!(again.value.to_f32(), split.value.to_f32());
        let joined = Nd::by(&[b, n, heads * d], |i| x.at(&[i[0], i[1], i[2]]));
        same(&concatenate_heads(&split.query).unwrap(), &joined);
        same(&nlp_concat_heads(&split.query).unwrap(), &Nd::new(&[b, 1, n, heads * d], joined.values));

        // Decode: one position, batch third.
        let x = Nd::random(&[1, 1, b, all * d], seed + 1);
        let part = |first: usize, count: usize| Nd::by(&[1, b, count, d], |i| x.at(&[0, 0, i[1], (first + i[2]) * d + i[3]]));
        let split = nlp_create_qkv_heads_decode(&x.f32(), heads, kv).unwrap();
        same(&split.query, &part(0, heads));
        same(&split.key, &part(heads, kv));
        same(&split.value, &part(heads + kv, kv));
        let padded = part(0, all).f32();
        let wanted = Nd::by(&[1, 1, b, heads * d], |i| x.at(i));
        same(&nlp_concat_heads_decode(&padded, heads).unwrap(), &wanted);
    }
}

#[test]
fn neighbours_turn_by_matrix() {
    // The usual matrix: (x0, x1) becomes (-x1, x0).
    let turn = Nd::by(&[1, 1, 32, 32], |i| match (i[2], i[3]) {
        (r, c) if r == c + 1 && c % 2 == 0 => -1.0,
        (r, c) if c == r + 1 && r % 2 == 0 => 1.0,
        _ => 0.0,
    });
    let rotated = |x: &Nd, i: &[usize], cos: f64, sin: f64| {
        let at = |c: usize| x.at(&[&i[..3], &[c]].concat());
        let other = if i[3].is_multiple_of(2) { -at(i[3] + 1) } else { at(i[3] - 1) };
        x.at(i) * cos + other * sin
    };
    let x = Nd::random(&[2, 3, 4, 64], 1);
    let (cos, sin) = (Nd::random(&[1, 1, 4, 64], 2), Nd::random(&[1, 1, 4, 64], 3));
    let wanted = Nd::by(&x.dims, |i| rotated(&x, i, cos.at(i), sin.at(i)));
    let found = rotary_embedding_llama(&x.f32(), &cos.f32(), &sin.f32(), &turn.f32(), false, DType::F32).unwrap();
    close(&found, &wanted, 1e-6);
    // Decode: [1, batch, heads, size], one angle per batch entry, the caches padded to 32 rows.
    let x = Nd::random(&[1, 3, 2, 64], 4);
    let (cos, sin) = (Nd::random(&[1, 3, 32, 64], 5), Nd::random(&[1, 3, 32, 64], 6));
    let wanted = Nd::by(&x.dims, |i| rotated(&x, i, cos.at(&[0, i[1], 0, i[3]]), sin.at(&[0, i[1], 0, i[3]])));
    let found = rotary_embedding_llama(&x.f32(), &cos.f32(), &sin.f32(), &turn.f32(), true, DType::F32).unwrap();
    close(&found, &wanted, 1e-6);
}

#[test]
fn pages_fill() {
    // Pages of two positions: sequence 1 owns pages 3 and 0, and the input's only entry goes to it.
    let cache = Nd::random(&[4, 2, 2, 3], 1);
    let input = Nd::random(&[1, 2, 3, 3], 2);
    let table = ints(DType::I32, &[2, 2], &[1, 2, 3, 0]);
    let wanted = Nd::by(&cache.dims, |i| match (i[0], i[2]) {
        (3, p) => input.at(&[0, i[1], p, i[3]]),
        (0, 0) => input.at(&[0, i[1], 2, i[3]]),
        _ => cache.at(i),
    });
    let entry = ints(DType::I32, &[1], &[1]);
    same(&paged_fill_cache(&cache.f32(), &input.f32(), &table, Some(&entry)).unwrap(), &wanted);
    assert!(paged_fill_cache(&cache.f32(), &input.f32(), &ints(DType::I32, &[1, 1], &[0]), None).is_err());
    assert!(paged_fill_cache(&cache.f32(), &input.f32(), &ints(DType::I32, &[1, 2], &[0, 4]), None).is_err());
}

#[test]
fn chunks_continue_a_prompt() {
    let (q, k, v) = (Nd::random(&[1, 2, 3, 4], 1), Nd::random(&[1, 1, 8, 4], 2), Nd::random(&[1, 1, 8, 4], 3));
    // Pages of four positions in order.
    let pages = |x: &Nd| Nd::new(&[2, 1, 4, 4], x.values.clone()).f32();
    let table = ints(DType::I32, &[1, 2], &[0, 1]);
    let wanted = reference(&q, &k, &v, |i, s| if i[3] <= i[2] + 4 { s * 0.5 } else { f64::NEG_INFINITY }, None);
    let found = chunked_attention(&q.f32(), &pages(&k), &pages(&v), &table, 4, None, DType::F32).unwrap();
    close(&found, &wanted, 1e-5);
}

#[test]
fn unused_slots_give_zeros() {
    let x = floats(&[1, 2, 1, 2], &[1.0; 4]);
    let k = floats(&[2, 1, 3, 2], &[1.0; 12]);
    let by = Attention { causal: true, ..Attention::default() };
    let found = attention_decode(&x, &k, &k, Some(&ints(DType::I32, &[2], &[0, -1])), by, DType::F32).unwrap();
    assert_eq!(found.to_f32(), [1.0, 1.0, 0.0, 0.0]);
}

#[test]
fn impossible_attention_is_refused() {
    let t = |d: &[usize]| floats(d, &vec![0.0; d.iter().product()]);
    let by = Attention::default();
    let run = |q: &[usize], k: &[usize], v: &[usize]| attention(&t(q), &t(k), &t(v), by, DType::F32).is_err();
    assert!(!run(&[1, 4, 2, 3], &[1, 2, 5, 3], &[1, 2, 5, 6]));
    assert!(run(&[1, 4, 2, 3], &[1, 3, 5, 3], &[1, 3, 5, 3]));
    assert!(run(&[1, 4, 2, 3], &[1, 2, 5, 4], &[1, 2, 5, 4]));
    assert!(run(&[1, 4, 2, 3], &[1, 2, 5, 3], &[1, 2, 4, 3]));
    assert!(run(&[4, 2, 3], &[1, 2, 5, 3], &[1, 2, 5, 3]));
    assert!(run(&[1, 4, 2, 3], &[1, 0, 5, 3], &[1, 0, 5, 3]));
    let mask = t(&[1, 1, 2, 4]);
    let masked = Attention { mask: Some(&mask), ..by };
    assert!(attention(&t(&[1, 1, 2, 3]), &t(&[1, 1, 5, 3]), &t(&[1, 1, 5, 3]), masked, DType::F32).is_err());
    assert!(attention_decode(&t(&[2, 1, 1, 3]), &t(&[1, 1, 5, 3]), &t(&[1, 1, 5, 3]), None, by, DType::F32).is_err());
    assert!(rotary_embedding(&t(&[1, 1, 2, 3]), &t(&[1, 1, 2, 3]), &t(&[1, 1, 2, 3]), None, DType::F32).is_err());
    assert!(rotary_embedding(&t(&[1, 1, 2, 4]), &t(&[1, 1, 2, 4]), &t(&[1, 1, 2, 4]), Some(2), DType::F32).is_err());
    assert!(split_qkv_heads(&t(&[1, 2, 7]), None, 2, None, false).is_err());
    assert!(concatenate_heads(&t(&[2, 3])).is_err());
    assert!(fill_cache(&t(&[1, 1, 2, 3]), &t(&[1, 1, 3, 3]), 0).is_err());
    assert!(fill_cache(&t(&[1, 1, 2, 3]), &t(&[1, 1, 2, 3]), usize::MAX).is_err());
    assert!(update_cache(&t(&[1, 1, 2, 3]), &t(&[1, 1, 1, 3]), &ints(DType::I32, &[1], &[2]), 0).is_err());
}
