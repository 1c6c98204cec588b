//! Splitting projections into attention heads and joining them again (tt-mlir `transformer.fbs`).
//! Values are only moved.

use crate::error::{OpError, Reason};
use crate::movement::{permute, reshape, slice, transpose};
use crate::tensor::Tensor;

/// Query, key and value heads.
#[derive(Debug, Clone)]
pub struct Heads {
    /// Query heads.
    pub query: Tensor,
    /// Key heads.
    pub key: Tensor,
    /// Value heads.
    pub value: Tensor,
}

/// A length in the type of attributes.
fn int(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Columns `from..to` of the last dimension.
fn columns(input: &Tensor, from: usize, to: usize) -> Result<Tensor, OpError> {
    let mut begins = vec![0i64; input.shape().rank()];
    let mut ends: Vec<i64> = input.shape().iter().map(|&d| d as i64).collect();
    if let (Some(b), Some(e)) = (begins.last_mut(), ends.last_mut()) {
        (*b, *e) = (int(from), int(to));
    }
    slice(input, &begins, &ends, &vec![1; begins.len()])
}

/// `[batch, heads, positions, size]` to `[batch, positions, heads * size]`.
pub fn concatenate_heads(input: &Tensor) -> Result<Tensor, OpError> {
    let [batch, heads, positions, size] = *input.shape().dims() else {
        let wanted = "[batch x heads x positions x size]";
        return Err(Reason::shape(input.shape(), wanted).of("concatenate_heads", &[input]));
    };
    reshape(&permute(input, &[0, 2, 1, 3])?, &[int(batch), int(positions), int(heads.saturating_mul(size))])
}

/// `[batch, heads, positions, size]` to `[batch, 1, positions, heads * size]`.
pub fn nlp_concat_heads(input: &Tensor) -> Result<Tensor, OpError> {
    let joined = concatenate_heads(input)?;
    let d = joined.shape().dims();
    reshape(&joined, &[d[0] as i64, 1, d[1] as i64, d[2] as i64])
}

/// `[1, batch, padded heads, size]` to `[1, 1, batch, heads * size]`: heads after the first `heads`
/// are padding.
pub fn nlp_concat_heads_decode(input: &Tensor, heads: usize) -> Result<Tensor, OpError> {
    const OP: &str = "nlp_concat_heads_decode";
    match *input.shape().dims() {
        [1, batch, padded, size] if heads <= padded => {
            let used = slice(input, &[0; 4], &[1, int(batch), int(heads), int(size)], &[1; 4])?;
            reshape(&used, &[1, 1, int(batch), int(heads.saturating_mul(size))])
        }
        _ => Err(Reason::shape(input.shape(), format!("[1 x batch x at least {heads} x size]")).of(OP, &[input])),
    }
}

/// Splits `[1, 1, batch, (heads + 2 * key heads) * size]` into `[1, batch, heads, size]` and twice
/// `[1, batch, key heads, size]`.
pub fn nlp_create_qkv_heads_decode(input: &Tensor, heads: usize, key_heads: usize) -> Result<Heads, OpError> {
    const OP: &str = "nlp_create_qkv_heads_decode";
    let all = heads.saturating_add(key_heads.saturating_mul(2));
    match *input.shape().dims() {
        [1, 1, batch, width] if all > 0 && width % all == 0 => {
            let size = width / all;
            let part = |from: usize, n: usize| {
                reshape(
                    &columns(input, from.saturating_mul(size), from.saturating_add(n).saturating_mul(size))?,
                    &[1, int(batch), int(n), int(size)],
                )
            };
            Ok(Heads {
                query: part(0, heads)?,
                key: part(heads, key_heads)?,
                value: part(heads.saturating_add(key_heads), key_heads)?,
            })
        }
        _ => Err(Reason::shape(input.shape(), format!("[1x1 x batch x {all} heads]")).of(OP, &[input])),
    }
}

/// Splits `[batch, positions, width]` into heads `[batch, heads, positions, size]`. Without `kv`
/// the width holds query, key and value one after another; with it the input is the query and `kv`
/// holds key and value. The key's last two dimensions are exchanged with `transpose_key`.
pub fn split_qkv_heads(
    input: &Tensor,
    kv: Option<&Tensor>,
    heads: usize,
    key_heads: Option<usize>,
    transpose_key: bool,
) -> Result<Heads, OpError> {
    const OP: &str = "split_query_key_value_and_split_heads";
    let operands: Vec<&Tensor> = [input].into_iter().chain(kv).collect();
    let key_heads = key_heads.unwrap_or(heads);
    let width = |t: &Tensor, parts: usize| match *t.shape().dims() {
        [_, _, width] if parts > 0 && width % parts == 0 => Ok(width / parts),
        _ => Err(Reason::shape(t.shape(), format!("[batch x positions x {parts} heads]")).of(OP, &operands)),
    };
    let all = heads.saturating_add(key_heads.saturating_mul(2));
    let (size, key_source, key_from) = match kv {
        None => (width(input, all)?, input, heads),
        Some(kv) => {
            let size = width(input, heads)?;
            if width(kv, key_heads.saturating_mul(2))? != size || kv.shape()[..2] != input.shape()[..2] {
                let wanted = format!("{} of 2 * {key_heads} heads of size {size}", input.shape());
                return Err(Reason::shape(kv.shape(), wanted).of(OP, &operands));
            }
            (size, kv, 0)
        }
    };
    let split = |t: &Tensor, from: usize, n: usize| {
        let part = columns(t, from.saturating_mul(size), from.saturating_add(n).saturating_mul(size))?;
        let d = part.shape().dims();
        permute(&reshape(&part, &[d[0] as i64, d[1] as i64, int(n), int(size)])?, &[0, 2, 1, 3])
    };
    let key = split(key_source, key_from, key_heads)?;
    Ok(Heads {
        query: split(input, 0, heads)?,
        key: if transpose_key { transpose(&key, -2, -1)? } else { key },
        value: split(key_source, key_from.saturating_add(key_heads), key_heads)?,
    })
}
