//! The table of formats: one row states everything about a format but its conversions.
//!
//! Sources: NumPy's array interface (type strings), tt-mlir's `Target/Common/types.fbs` and the
//! text form of its types, the public document `dataformats` of the netlist language (names and
//! codes), the ISA documentation (FloatBitPatterns) and OCP's 8-bit floating point specification.

/// What kind of value a format holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A float that stands alone.
    Float,
    /// A sign and a magnitude; 16 of them share an exponent.
    Block,
    /// A signed integer: two's complement on the host, sign and magnitude in a tile.
    Signed,
    /// An unsigned integer.
    Unsigned,
    /// An unsigned word without a meaning of its own.
    Raw,
    /// A truth value, 0 or 1.
    Truth,
}

/// Everything that the table states about a format.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) bits: u32,
    /// Type string in `.npy` headers, little-endian.
    pub(crate) numpy: Option<&'static str>,
    /// Name in the compiler's text form.
    pub(crate) mlir: Option<&'static str>,
    /// Name in netlists, and code in tile headers and descriptors.
    pub(crate) buda: Option<(&'static str, u8)>,
}

impl Row {
    const fn new(name: &'static str, kind: Kind, bits: u32) -> Self {
        Self { name, kind, bits, numpy: None, mlir: None, buda: None }
    }

    const fn numpy(self, descr: &'static str) -> Self {
        Self { numpy: Some(descr), ..self }
    }

    const fn mlir(self, name: &'static str) -> Self {
        Self { mlir: Some(name), ..self }
    }

    const fn buda(self, name: &'static str, code: u8) -> Self {
        Self { buda: Some((name, code)), ..self }
    }
}

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $name:literal $kind:ident $bits:literal $($column:ident($($fact:literal),+))*;)+) => {
        /// A number format: the type of the elements of a tensor, an array, a buffer or a tile.
        ///
        /// It has no `Display`: every language has names of its own, and the caller says which.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum DType {
            $($(#[$doc])* $format,)+
        }

        impl DType {
            /// All formats, in the order of the table.
            pub const ALL: &[DType] = &[$(DType::$format),+];

            /// The format's row.
            pub(crate) const fn row(self) -> &'static Row {
                match self {
                    $(DType::$format => const { &Row::new($name, Kind::$kind, $bits)$(.$column($($fact),+))* },)+
                }
            }
        }
    };
}

formats! {
    /// IEEE 754 binary64. Hosts have it, the chip does not.
    F64 = "f64" Float 64 numpy("<f8") mlir("f64");
    /// IEEE 754 binary32.
    F32 = "f32" Float 32 numpy("<f4") mlir("f32") buda("Float32", 0);
    /// Binary32 with a mantissa of 10 bits, in the upper 19 bits of a word.
    Tf32 = "tf32" Float 32 buda("Tf32", 4);
    /// IEEE 754 binary16: exponent of 5 bits, mantissa of 10.
    F16 = "f16" Float 16 numpy("<f2") mlir("f16") buda("Float16", 1);
    /// bfloat16, the upper half of a binary32: exponent of 8 bits, mantissa of 7.
    BF16 = "bf16" Float 16 mlir("bf16") buda("Float16_b", 5);
    /// The upper byte of a binary16: exponent of 5 bits, mantissa of 2.
    Lf8 = "lf8" Float 8 buda("Lf8", 10);
    /// OCP's 8-bit float: exponent of 4 bits, mantissa of 3, no infinities.
    Fp8E4m3 = "fp8_e4m3" Float 8 buda("Fp8_e4m3", 0x1a);
    /// Shared exponent of 5 bits, sign and 7 bits each.
    Bfp8 = "bfp8" Block 8 mlir("bfp_f8") buda("Bfp8", 2);
    /// Shared exponent of 5 bits, sign and 3 bits each.
    Bfp4 = "bfp4" Block 4 mlir("bfp_f4") buda("Bfp4", 3);
    /// Shared exponent of 5 bits, sign and 1 bit each.
    Bfp2 = "bfp2" Block 2 mlir("bfp_f2") buda("Bfp2", 11);
    /// Shared exponent of 8 bits, sign and 7 bits each.
    Bfp8B = "bfp8_b" Block 8 mlir("bfp_bf8") buda("Bfp8_b", 6);
    /// Shared exponent of 8 bits, sign and 3 bits each.
    Bfp4B = "bfp4_b" Block 4 mlir("bfp_bf4") buda("Bfp4_b", 7);
    /// Shared exponent of 8 bits, sign and 1 bit each.
    Bfp2B = "bfp2_b" Block 2 mlir("bfp_bf2") buda("Bfp2_b", 15);
    /// Signed, 64 bits.
    I64 = "i64" Signed 64 numpy("<i8") mlir("si64");
    /// Signed, 32 bits.
    I32 = "i32" Signed 32 numpy("<i4") mlir("si32") buda("Int32", 8);
    /// Signed, 16 bits.
    I16 = "i16" Signed 16 numpy("<i2") mlir("si16");
    /// Signed, 8 bits.
    I8 = "i8" Signed 8 numpy("|i1") mlir("si8") buda("Int8", 14);
    /// Unsigned, 64 bits.
    U64 = "u64" Unsigned 64 numpy("<u8") mlir("u64");
    /// Unsigned, 32 bits.
    U32 = "u32" Unsigned 32 numpy("<u4") mlir("u32");
    /// Unsigned, 16 bits.
    U16 = "u16" Unsigned 16 numpy("<u2") mlir("u16") buda("UInt16", 9);
    /// Unsigned, 8 bits.
    U8 = "u8" Unsigned 8 numpy("|u1") mlir("u8") buda("UInt8", 30);
    /// Words of 32 bits.
    RawU32 = "raw_u32" Raw 32 buda("RawUInt32", 0xf2);
    /// Words of 16 bits.
    RawU16 = "raw_u16" Raw 16 buda("RawUInt16", 0xf1);
    /// Bytes.
    RawU8 = "raw_u8" Raw 8 buda("RawUInt8", 0xf0);
    /// A truth value in a byte of 0 or 1. Hosts have it, the chip does not.
    Bool = "bool" Truth 8 numpy("|b1") mlir("bool");
}

/// Elements of a tile of 32 by 32.
const TILE_ELEMENTS: usize = 32 * 32;

impl DType {
    /// What kind of value it holds.
    #[inline]
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// Whether values are floating point, blocks included.
    #[inline]
    pub const fn is_float(self) -> bool {
        matches!(self.kind(), Kind::Float | Kind::Block)
    }

    /// Whether 16 values share an exponent, so that they exist only in tiles.
    #[inline]
    pub const fn is_block(self) -> bool {
        matches!(self.kind(), Kind::Block)
    }

    /// Bits of an element, without a shared exponent.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.row().bits
    }

    /// Bytes of an element; `None` for block formats, whose size is that of a tile.
    #[inline]
    pub const fn bytes(self) -> Option<usize> {
        if self.is_block() { None } else { Some(self.bits() as usize / 8) }
    }

    /// Bytes of a tile of 32 by 32 without a header. A block format has 64 exponents, one for each
    /// [`crate::block::BLOCK`] elements, before the elements.
    pub const fn tile_bytes(self) -> usize {
        let exponents = if self.is_block() { TILE_ELEMENTS / crate::block::BLOCK } else { 0 };
        exponents + TILE_ELEMENTS * self.bits() as usize / 8
    }
}
