//! Topics: groups of options that help lists by themselves. `run` of a kernel program has more
//! options than anybody reads through; those that look into a run are shown by
//! `tilework help run inspect` and left out of `tilework run --help`, which says so at its end.
//!
//! An option belongs to a topic by its heading (`next_help_heading`).

use super::Verb;
use clap::{Arg, Command};

/// The heading of the options that look into a run.
pub const INSPECT: &str = "Options to look into a run";

/// A group of options of kernel programs.
pub struct Topic {
    /// The word that asks for its help.
    pub word: &'static str,
    /// The heading of its options.
    heading: &'static str,
    /// What they are about.
    about: &'static str,
}

/// All topics.
pub static TOPICS: [Topic; 1] =
    [Topic { word: "inspect", heading: INSPECT, about: "checks, what is allowed, timeline, page, crash bundles" }];

impl Topic {
    /// The topic that a word names.
    pub(super) fn named(word: &str) -> Option<&'static Self> {
        TOPICS.iter().find(|topic| topic.word == word)
    }

    /// Whether an option belongs to it.
    fn has(&self, arg: &Arg) -> bool {
        arg.get_help_heading() == Some(self.heading)
    }
}

/// Whether help leaves an option of the shown kind out: it belongs to a topic that was not asked
/// for, or to none while one was.
pub(super) fn hides(asked: Option<&Topic>, arg: &Arg) -> bool {
    match asked {
        Some(topic) => !topic.has(arg),
        None => TOPICS.iter().any(|topic| topic.has(arg)),
    }
}

/// The lines of a help text about the topics whose options a command has.
pub(super) fn lines(verb: Verb, options: &Command) -> String {
    let has = |topic: &&Topic| options.get_arguments().any(|arg| topic.has(arg));
    let line = |topic: &Topic| format!("  tilework help {} {:<9} {}\n", verb.name(), topic.word, topic.about);
    let lines: String = TOPICS.iter().filter(has).map(line).collect();
    if lines.is_empty() { lines } else { format!("More options:\n{lines}") }
}
