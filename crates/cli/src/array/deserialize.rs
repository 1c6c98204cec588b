//! Element types in program files: the names of [`DTYPES`] and of what only the chip has, read like
//! the variants of an enum, so that the reader's messages list them.

use super::DTYPES;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use std::fmt;
use tilework_dtype::DType;

/// Types that a buffer can have and an array cannot: their arrays are float32.
pub const CHIP_DTYPES: [DType; 3] = [DType::BF16, DType::Bfp8B, DType::Bfp4B];

/// An element type of a buffer, as a program file names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType(pub DType);

/// The names that a program file can give.
const NAMES: &[&str] = &{
    let mut names = [""; DTYPES.len() + CHIP_DTYPES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = if i < DTYPES.len() { DTYPES[i].name() } else { CHIP_DTYPES[i - DTYPES.len()].name() };
        i += 1;
    }
    names
};

struct Named;

impl<'de> Deserialize<'de> for ElementType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("ElementType", NAMES, Named)
    }
}

impl<'de> Visitor<'de> for Named {
    type Value = ElementType;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an element type")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<ElementType, A::Error> {
        let (found, rest) = data.variant_seed(self)?;
        rest.unit_variant().map(|()| found)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<ElementType, E> {
        let found = DTYPES.into_iter().chain(CHIP_DTYPES).find(|dtype| dtype.name() == name);
        found.map(ElementType).ok_or_else(|| E::unknown_variant(name, NAMES))
    }
}

impl<'de> DeserializeSeed<'de> for Named {
    type Value = ElementType;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ElementType, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}
