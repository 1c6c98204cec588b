//! Help of `run`, `check` and `show`, one kind at a time.
//!
//! `tilework run --help` shows the options of all kinds and those of kernel programs. The options
//! of another kind are shown when a file of that kind is named, `tilework run model.ttnn --help`,
//! or the kind itself, `tilework run --help model` and `tilework help run model`.

use super::{KINDS, KindRow, Verb};
use std::ffi::OsString;
use std::path::Path;

/// A command line, and the kind whose options its help shows.
pub struct Focus {
    /// The words, without that which only names the kind.
    pub words: Vec<OsString>,
    /// The kind.
    pub kind: &'static KindRow,
}

/// Where the command stands in a command line: behind the options that every command has, which
/// take no values.
pub fn command_at(words: &[OsString]) -> usize {
    let option = |word: &OsString| word.to_str().is_some_and(|word| word.starts_with('-'));
    1 + words.iter().skip(1).take_while(|word| option(word)).count()
}

/// Finds the kind whose options help is to show. `words` begins with the name of the program.
pub fn focus(words: Vec<OsString>) -> Focus {
    let usual = &KINDS[0];
    let asks = |word: &OsString| word == "-h" || word == "--help";
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    let first = command_at(&words);
    let (verb, help) = match (text(first).and_then(Verb::named), text(first)) {
        (Some(_), _) => (first, words.iter().any(asks)),
        (None, Some("help")) if text(first + 1).and_then(Verb::named).is_some() => (first + 1, true),
        _ => return Focus { words, kind: usual },
    };
    let rest = || words.iter().enumerate().skip(verb + 1);
    let named = rest().find_map(|(at, word)| Some((at, KindRow::named(word.to_str()?)?)));
    let file = rest().find_map(|(_, word)| KindRow::with_ending(Path::new(word)));
    match (help, named, file) {
        (true, Some((at, kind)), _) => {
            let words = words.into_iter().enumerate().filter(|(i, _)| *i != at).map(|(_, word)| word).collect();
            Focus { words, kind }
        }
        (_, _, Some(kind)) => Focus { words, kind },
        _ => Focus { words, kind: usual },
    }
}

/// The end of a help text: how to see the options of other kinds, and examples of the shown kind.
pub fn after(verb: Verb, shown: &KindRow) -> String {
    let command = verb.name();
    let others: Vec<String> = KINDS
        .iter()
        .filter(|row| row.about.name != shown.about.name)
        .map(|row| format!("  tilework help {command} {:<9} {}\n", row.about.word, row.about.many_with_endings()))
        .collect();
    let examples = (shown.about.examples)(verb);
    format!(
        "Options of other kinds of files:\n{}  tilework {command} FILE --help    the options of FILE's kind\n\n{examples}",
        others.concat(),
    )
}
