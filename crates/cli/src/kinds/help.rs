//! Help of `run`, `check` and `show`, one kind at a time.
//!
//! `tilework run --help` shows the options of all kinds and those of kernel programs. The options
//! of another kind are shown when a file of that kind is named, `tilework run model.ttnn --help`,
//! or the kind itself, `tilework run --help model` and `tilework help run model`; those of a topic
//! when the topic is named, `tilework help run inspect`.

use super::topic::{self, Topic};
use super::{KINDS, KindRow, Verb};
use clap::Command;
use std::ffi::OsString;
use std::path::Path;

/// A command line, and the kind whose options its help shows.
pub struct Focus {
    /// The words, without that which only names the kind or the topic.
    pub words: Vec<OsString>,
    /// The kind.
    pub kind: &'static KindRow,
    /// The group of options that is asked for.
    pub topic: Option<&'static Topic>,
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
        _ => return Focus { words, kind: usual, topic: None },
    };
    let rest = || words.iter().enumerate().skip(verb + 1);
    let named = |at: usize, word: &OsString| {
        let (kind, topic) = (KindRow::named(word.to_str()?), Topic::named(word.to_str()?));
        (kind.is_some() || topic.is_some()).then_some((at, kind, topic))
    };
    let named = rest().find_map(|(at, word)| named(at, word)).filter(|_| help);
    let file = rest().find_map(|(_, word)| KindRow::with_ending(Path::new(word)));
    let Some((at, kind, topic)) = named else { return Focus { words, kind: file.unwrap_or(usual), topic: None } };
    let words = words.into_iter().enumerate().filter(|(i, _)| *i != at).map(|(_, word)| word).collect();
    Focus { words, kind: kind.unwrap_or(usual), topic }
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
    let topics = topic::lines(verb, &(shown.options)(verb, Command::new("options")));
    format!(
        "{topics}Options of other kinds of files:\n{}  tilework {command} FILE --help    the options of FILE's kind\n\n{examples}",
        others.concat(),
    )
}
