//! Interned names, numbered in the order of first use, so that numbers do not depend on hashes.

use std::collections::HashMap;

/// A name's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) u32);

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
}

impl Names {
    pub(crate) fn add(&mut self, text: &str) -> Name {
        if let Some(number) = self.numbers.get(text) {
            return Name(*number);
        }
        let number = u32::try_from(self.texts.len()).expect("memory ends before names do");
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        Name(number)
    }

    pub(crate) fn get(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}
