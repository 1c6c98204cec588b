//! What is decoded from the configuration and kept until a word changes from which it was decoded.
//!
//! Who decodes gets the configuration only through a [`Reader`], which notes every word that it
//! gives. So there is no list of words to keep by hand, in which one could be missing.

use super::config::{Config, PLACES, Refusal};
use std::cell::Cell;
use tilework_abi::tensix::cfg::{self, Field, Space};

/// A set of words of the configuration ([`Config::changed_since`]), a bit each.
type Words = [u64; PLACES.div_ceil(64)];

/// The configuration as one thread sees it.
pub(super) struct Reader<'a> {
    config: &'a Config,
    thread: usize,
    /// The words that were read.
    words: Cell<Words>,
}

impl<'a> Reader<'a> {
    fn new(config: &'a Config, thread: usize) -> Self {
        Self { config, thread, words: Cell::default() }
    }

    #[inline]
    fn note(&self, place: usize) {
        let word = &self.words.as_array_of_cells()[place / 64];
        word.set(word.get() | 1 << (place % 64));
    }

    /// Notes that a word of the thread's bank is read, and which bank that is.
    #[inline]
    fn note_word(&self, index: u32) {
        self.note(Config::thread_place(self.thread, cfg::CFG_STATE_ID_STATEID.word.into()));
        self.note(Config::place(index));
    }

    /// A field.
    #[inline]
    pub(super) fn get(&self, field: Field) -> u32 {
        self.get_of(self.thread, field)
    }

    /// A field as another thread sees it.
    #[inline]
    pub(super) fn get_of(&self, thread: usize, field: Field) -> u32 {
        match field.space {
            Space::Thread => self.note(Config::thread_place(thread, field.word.into())),
            Space::Bank => self.note_word(field.word.into()),
        }
        self.config.read(thread, field)
    }

    /// A field that is not zero.
    #[inline]
    pub(super) fn has(&self, field: Field) -> bool {
        self.get(field) != 0
    }

    /// A word.
    pub(super) fn word(&self, index: u32) -> Result<u32, Refusal> {
        let word = self.config.get(self.thread, index)?;
        self.note_word(index);
        Ok(word)
    }
}

/// What is kept.
#[derive(Clone, Debug)]
struct Of<T> {
    /// When it was decoded, or last found to be as it would be decoded then.
    generation: u64,
    thread: usize,
    /// From these words.
    words: Words,
    value: T,
}

impl<T> Of<T> {
    fn new<E>(config: &Config, thread: usize, decode: impl FnOnce(&Reader<'_>) -> Result<T, E>) -> Result<Self, E> {
        let reader = Reader::new(config, thread);
        let value = decode(&reader)?;
        Ok(Self { generation: config.generation(), thread, words: reader.words.get(), value })
    }

    #[inline]
    fn is_current(&mut self, config: &Config, thread: usize) -> bool {
        if self.thread != thread {
            return false;
        }
        if self.generation != config.generation() {
            let words = &self.words;
            if config.changed_since(self.generation, |place| words[place / 64] >> (place % 64) & 1 != 0) {
                return false;
            }
            self.generation = config.generation();
        }
        true
    }
}

/// Keeps what one function decodes for the thread that has last asked for it.
#[derive(Clone, Debug)]
pub(super) struct Kept<T>(Option<Of<T>>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Kept<T> {
    /// What `decode` makes of the configuration as `thread` sees it.
    ///
    /// # Errors
    /// As for `decode`.
    #[inline]
    pub(super) fn get<E>(
        &mut self,
        config: &Config,
        thread: usize,
        decode: impl FnOnce(&Reader<'_>) -> Result<T, E>,
    ) -> Result<&T, E> {
        match &mut self.0 {
            Some(kept) => {
                if !kept.is_current(config, thread) {
                    *kept = Of::new(config, thread, decode)?;
                }
                Ok(&kept.value)
            }
            none => Ok(&none.insert(Of::new(config, thread, decode)?).value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIELDS: [Field; 4] = [
        cfg::THCON_SEC_REG1_OUT_DATA_FORMAT,
        cfg::STACC_RELU_APPLYRELU,
        cfg::DEST_TARGET_REG_CFG_PACK_SEC_OFFSET,
        cfg::ENABLE_ACC_STATS_ENABLE,
    ];

    /// Reads fields and a word, which ones depends on what it reads.
    fn decode(r: &Reader<'_>) -> Result<Vec<u32>, Refusal> {
        let first = r.get(FIELDS[0]);
        let more = FIELDS[1..].iter().take(1 + first as usize % 3).map(|&field| r.get(field));
        let mut all: Vec<u32> = std::iter::once(first).chain(more).collect();
        all.extend([r.word(20 + first)?, r.get_of(2, cfg::ENABLE_ACC_STATS_ENABLE)]);
        Ok(all)
    }

    /// Writes in all ways that there are.
    fn change(config: &mut Config, (how, thread, index, value): (u8, usize, u32, u32)) {
        let fields = FIELDS.map(|field| u32::from(field.word));
        let near = if index % 3 == 0 { fields[index as usize / 3 % 4] } else { index };
        // An index that a way of writing refuses changes nothing.
        let _ = match how {
            0 => config.store(near, value),
            1 => config.store(near + super::super::config::DUAL / 2, value),
            2 => config.set_thread(thread, near, value as u16),
            3 => config.set_thread(thread, cfg::CFG_STATE_ID_STATEID.word.into(), value as u16 & 1),
            4 => config.modify_byte(thread, near, value & 3, 0xFF, value as u8),
            5 => config.set_four(thread, near, [value; 4]),
            6 => {
                config.reset_thcon();
                Ok(())
            }
            // The bank's state is reset.
            7 => config.store(4, value),
            _ => config.store(super::super::config::DUAL + near, value),
        };
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_decoded_now(
            writes in prop::collection::vec(
                (prop::collection::vec((0u8..9, 0usize..3, 0u32..224, 0u32..8), 0..40), 0usize..3), 1..20
            ),
        ) {
            let (mut config, mut kept) = (Config::default(), Kept::default());
            for (writes, thread) in writes {
                writes.into_iter().for_each(|write| change(&mut config, write));
                let now = Of::new(&config, thread, decode).expect("the words are there").value;
                prop_assert_eq!(kept.get(&config, thread, decode).expect("the words are there"), &now);
            }
        }
    }

    #[test]
    fn nothing_is_decoded_anew_while_only_other_words_change() {
        let (mut config, mut kept) = (Config::default(), Kept::default());
        let mut decoded = 0;
        let mut get = |config: &Config| {
            let once = |r: &Reader<'_>| -> Result<u32, Refusal> {
                decoded += 1;
                Ok(r.get(FIELDS[0]))
            };
            let value = *kept.get(config, 0, once).expect("a field");
            (value, decoded)
        };
        assert_eq!(get(&config), (0, 1));
        for i in 0..100 {
            config.set_thread(1, 3, i).expect("a word");
            config.store(200, i.into()).expect("a word");
            assert_eq!(get(&config), (0, 1));
        }
        config.store(FIELDS[0].word.into(), u32::MAX).expect("a word");
        assert_eq!(get(&config), (0xF, 2));
    }
}
