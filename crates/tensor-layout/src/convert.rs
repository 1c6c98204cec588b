//! Elements of one type to another, an array of little-endian bytes at a time.
//!
//! Values are converted by the rules of typecasts ([`tilework_dtype::convert::cast`]); elements of
//! the same type are copied bit by bit, whatever they are.

use half::{bf16, f16};
use tilework_dtype::DType;
use tilework_dtype::convert::{Element, cast};

/// Converts elements of one type to another.
#[derive(Debug, Clone, Copy)]
pub struct Converter {
    from: usize,
    to: usize,
    convert: fn(&[u8], &mut [u8]),
}

impl Converter {
    /// The conversion from one type to another, if there is one. Every type that stands alone is
    /// converted to itself; between types, those of 8 to 32 bits that typecasts know.
    pub fn new(from: DType, to: DType) -> Option<Self> {
        let convert = if from == to {
            |source: &[u8], target: &mut [u8]| target.copy_from_slice(source)
        } else {
            between(from, to)?
        };
        Some(Self { from: from.bytes()?, to: to.bytes()?, convert })
    }

    /// Bytes of an element to convert.
    pub fn from_bytes(self) -> usize {
        self.from
    }
    /// Bytes of a converted element.
    pub fn to_bytes(self) -> usize {
        self.to
    }

    /// Converts as many elements as both arrays hold.
    #[inline]
    pub fn convert(self, source: &[u8], target: &mut [u8]) {
        let n = (source.len() / self.from).min(target.len() / self.to);
        (self.convert)(&source[..n * self.from], &mut target[..n * self.to]);
    }
}

/// An element type as `N` little-endian bytes.
trait Stored<const N: usize>: Element {
    fn from_le(bytes: [u8; N]) -> Self;
    fn to_le(self) -> [u8; N];
}

macro_rules! stored {
    ($($type:ty = $bytes:literal $dtype:ident;)+) => {
        $(impl Stored<$bytes> for $type {
            #[inline]
            fn from_le(bytes: [u8; $bytes]) -> Self {
                Self::from_le_bytes(bytes)
            }
            #[inline]
            fn to_le(self) -> [u8; $bytes] {
                self.to_le_bytes()
            }
        })+

        /// The conversion between two different types.
        fn between(from: DType, to: DType) -> Option<fn(&[u8], &mut [u8])> {
            match from {
                $(DType::$dtype => from_type::<$bytes, $type>(to),)+
                _ => None,
            }
        }

        fn from_type<const N: usize, S: Stored<N>>(to: DType) -> Option<fn(&[u8], &mut [u8])> {
            match to {
                $(DType::$dtype => Some(convert::<N, $bytes, S, $type>),)+
                _ => None,
            }
        }
    };
}

stored! {
    f32 = 4 F32;
    f16 = 2 F16;
    bf16 = 2 BF16;
    i32 = 4 I32;
    u32 = 4 U32;
    u16 = 2 U16;
    u8 = 1 U8;
}

fn convert<const N: usize, const M: usize, S: Stored<N>, D: Stored<M>>(source: &[u8], target: &mut [u8]) {
    for (from, to) in source.as_chunks::<N>().0.iter().zip(target.as_chunks_mut::<M>().0) {
        *to = cast::<S, D>(S::from_le(*from)).to_le();
    }
}

/// The bytes of a number as an element of a type of at most 32 bits that stands alone; `None` for
/// other types and for what an integer type cannot hold.
pub(crate) fn number(value: f64, dtype: DType) -> Option<Vec<u8>> {
    // Every type has a zero, and it has no bits.
    if value.to_bits() == 0 {
        return Some(vec![0; dtype.bytes()?]);
    }
    if dtype.is_float() {
        // A padding value is a constant that float32 holds or that the type rounds anyway.
        #[allow(clippy::cast_possible_truncation)]
        let value = value as f32;
        let mut bytes = vec![0; dtype.bytes()?];
        Converter::new(DType::F32, dtype)?.convert(&value.to_le_bytes(), &mut bytes);
        return Some(bytes);
    }
    let (low, high) = match dtype {
        DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
        DType::U32 => (0.0, f64::from(u32::MAX)),
        DType::U16 => (0.0, f64::from(u16::MAX)),
        DType::U8 => (0.0, f64::from(u8::MAX)),
        _ => return None,
    };
    if value.fract() != 0.0 || !(low..=high).contains(&value) {
        return None;
    }
    // In range, so that the low bytes of the 64-bit integer are those of the type.
    #[allow(clippy::cast_possible_truncation)]
    let bytes = (value as i64).to_le_bytes();
    Some(bytes[..dtype.bytes()?].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(from: DType, to: DType, source: &[u8]) -> Vec<u8> {
        let converter = Converter::new(from, to).unwrap();
        let mut target = vec![0; source.len() / converter.from_bytes() * converter.to_bytes()];
        converter.convert(source, &mut target);
        target
    }

    #[test]
    fn the_same_type_keeps_every_bit() {
        // A signalling NaN, which a conversion would make quiet.
        let bytes = 0x7fa0_0001u32.to_le_bytes();
        assert_eq!(converted(DType::F32, DType::F32, &bytes), bytes);
        assert_eq!(converted(DType::F64, DType::F64, &[1, 2, 3, 4, 5, 6, 7, 8]), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn values_are_cast() {
        let floats: Vec<u8> = [1.5f32, -2.75, 70000.0].into_iter().flat_map(f32::to_le_bytes).collect();
        let words = |v: &[i32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(converted(DType::F32, DType::I32, &floats), words(&[1, -2, 70000]));
        let shorts: Vec<u8> = [2u16, 0, 65535].into_iter().flat_map(u16::to_le_bytes).collect();
        assert_eq!(converted(DType::F32, DType::U16, &floats), shorts);
        let integers = words(&[70000, -1, 300]);
        let shorts: Vec<u8> = [65535u16, 0, 300].into_iter().flat_map(u16::to_le_bytes).collect();
        assert_eq!(converted(DType::I32, DType::U16, &integers), shorts, "saturates");
        assert_eq!(converted(DType::I32, DType::U8, &integers), [0x70, 0xff, 44], "keeps the low byte");
    }

    #[test]
    fn types_without_a_conversion_are_known() {
        assert!(Converter::new(DType::F64, DType::F32).is_none());
        assert!(Converter::new(DType::F32, DType::Bfp8B).is_none());
        assert!(Converter::new(DType::Bfp8B, DType::Bfp8B).is_none());
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(number(-1.0, DType::BF16), Some(vec![0x80, 0xbf]));
        assert_eq!(number(f64::NEG_INFINITY, DType::F32), Some(vec![0, 0, 0x80, 0xff]));
        assert_eq!(number(4_294_967_295.0, DType::U32), Some(vec![255; 4]));
        assert_eq!(number(-2.0, DType::I32), Some(vec![254, 255, 255, 255]));
        assert_eq!(number(0.0, DType::I64), Some(vec![0; 8]));
        for (value, dtype) in [(0.5, DType::I32), (-1.0, DType::U8), (256.0, DType::U8), (1.0, DType::I64)] {
            assert_eq!(number(value, dtype), None, "{value} {dtype:?}");
        }
        assert_eq!(number(f64::NAN, DType::U16), None);
    }
}
