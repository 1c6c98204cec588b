//! Interned names, numbered in the order of first use, so that numbers do not depend on hashes.

use std::collections::HashMap;

/// A name's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) u32);

/// Names that are found by where their text is, without a hash: mostly they are constants.
const RECENT: usize = 64;

#[derive(Clone, Debug)]
pub(crate) struct Names {
    texts: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u32>,
    /// The numbers of names whose text was last there; another text may be there by now.
    recent: [u32; RECENT],
}

impl Default for Names {
    fn default() -> Self {
        Self { texts: Vec::new(), numbers: HashMap::new(), recent: [u32::MAX; RECENT] }
    }
}

impl Names {
    pub(crate) fn add(&mut self, text: &str) -> Name {
        let place = (text.as_ptr() as usize / 4 + text.len()) % RECENT;
        let recent = self.recent[place];
        if self.texts.get(recent as usize).is_some_and(|known| **known == *text) {
            return Name(recent);
        }
        let number = self.find(text);
        self.recent[place] = number;
        Name(number)
    }

    fn find(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = u32::try_from(self.texts.len()).expect("memory ends before names do");
        self.texts.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    pub(crate) fn get(&self, name: Name) -> &str {
        &self.texts[name.0 as usize]
    }
}
