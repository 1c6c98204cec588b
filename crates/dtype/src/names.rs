//! Names of the formats: here, in NumPy, in the compiler and in netlists.

use crate::DType;

impl DType {
    /// The name in program files and reports: `f32`, `bf16`, `bfp8_b`.
    #[inline]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The format of a [`DType::name`].
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| format.name() == name)
    }

    /// The name in the compiler's text form (`f32`, `si32`, `bfp_bf8`). A format that the compiler
    /// does not have goes by its own name.
    #[inline]
    pub const fn mlir_name(self) -> &'static str {
        match self.row().mlir {
            Some(name) => name,
            None => self.name(),
        }
    }

    /// The name in netlists (`Float32`, `Float16_b`, `Bfp8_b`). A format that the language does not
    /// have goes by its own name.
    #[inline]
    pub const fn buda_name(self) -> &'static str {
        match self.row().buda {
            Some((name, _)) => name,
            None => self.name(),
        }
    }

    /// The code in tile headers and descriptors, if the netlist language has the format.
    #[inline]
    pub const fn buda_code(self) -> Option<u8> {
        match self.row().buda {
            Some((_, code)) => Some(code),
            None => None,
        }
    }

    /// The type string in `.npy` headers, little-endian (`<f4`), if NumPy has the format.
    #[inline]
    pub const fn npy_descr(self) -> Option<&'static str> {
        self.row().numpy
    }

    /// The format of a type string. Byte order has no meaning for elements of one byte, so any is
    /// taken there.
    pub fn of_npy_descr(descr: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|format| {
            format.npy_descr().is_some_and(|own| {
                let any_order = own.starts_with('|') && descr.starts_with(['<', '>', '=']);
                own == descr || any_order && own.get(1..) == descr.get(1..)
            })
        })
    }
}
