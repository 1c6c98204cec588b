//! Element types in program files: the names of [`DTYPES`], read like the variants of an enum, so
//! that the reader's messages list them.

use super::DTYPES;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error, VariantAccess, Visitor};
use std::fmt;
use tilework_dtype::DType;

/// An element type of an array, as a program file names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ElementType(pub DType);

/// The names that a program file can give.
const NAMES: &[&str] = &{
    let mut names = [""; DTYPES.len()];
    let mut i = 0;
    while i < names.len() {
        names[i] = DTYPES[i].name();
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
        let found = DTYPES.into_iter().find(|dtype| dtype.name() == name);
        found.map(ElementType).ok_or_else(|| E::unknown_variant(name, NAMES))
    }
}

impl<'de> DeserializeSeed<'de> for Named {
    type Value = ElementType;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ElementType, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}
