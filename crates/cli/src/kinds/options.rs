//! Whose an option is. The definitions that clap has are the only list: an option belongs to each
//! kind whose arguments have it, and to all kinds when no kind's arguments have it.

use super::topic::{self, Topic};
use super::{KINDS, KindRow, Verb};
use crate::failure::{Failure, Outcome};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command};
use std::path::Path;

impl KindRow {
    /// The options that a command has for files of this kind.
    pub(super) fn args(&self, verb: Verb) -> Vec<Arg> {
        (self.options)(verb, Command::new("options")).get_arguments().cloned().collect()
    }

    fn has(&self, verb: Verb, id: &str) -> bool {
        self.args(verb).iter().any(|arg| arg.get_id() == id)
    }
}

/// A command with the options of all kinds, of which help shows those of one. Where two kinds have
/// an option of the same name, it is read alike, and the shown kind's text explains it. Of the
/// shown kind those of the topic that was asked for are shown, or all that belong to none.
pub fn add_options(command: Command, verb: Verb, shown: &KindRow, asked: Option<&Topic>) -> Command {
    let others = KINDS.iter().filter(|row| row.about.name != shown.about.name);
    let of_shown = shown.args(verb).into_iter().map(|arg| {
        let hidden = topic::hides(asked, &arg);
        (arg, hidden)
    });
    let of_others = others.flat_map(|row| row.args(verb)).map(|arg| (arg, true));
    of_shown.chain(of_others).fold(command, |command, (arg, hidden)| {
        let known = command.get_arguments().any(|known| known.get_id() == arg.get_id());
        if known { command } else { command.arg(arg.hide(hidden)) }
    })
}

/// Refuses an option that the file's kind does not have, and says which kinds have it.
pub(super) fn refuse_others(verb: Verb, row: &KindRow, file: &Path, given: &ArgMatches) -> Outcome<()> {
    for id in given.ids().filter(|id| is_given(given, id.as_str())) {
        let owners: Vec<&KindRow> = KINDS.iter().filter(|kind| kind.has(verb, id.as_str())).collect();
        if owners.is_empty() || row.has(verb, id.as_str()) {
            continue;
        }
        let option = owners[0].args(verb).iter().find(|arg| arg.get_id() == id).map(option_name).unwrap_or_default();
        let many: Vec<String> = owners.iter().map(|kind| kind.about.many_with_endings()).collect();
        let is = format!("{} is {}", file.display(), row.about.one);
        return Err(Failure::option(&option, format!(" is for {}; {is}", many.join(" and "))));
    }
    Ok(())
}

/// The first option of a group of arguments that was given on the command line.
pub fn first_given<Group: Args>(given: &ArgMatches) -> Option<String> {
    let group = Group::augment_args(Command::new("options"));
    group.get_arguments().find(|arg| is_given(given, arg.get_id().as_str())).map(option_name)
}

fn is_given(given: &ArgMatches, id: &str) -> bool {
    given.try_contains_id(id).is_ok() && given.value_source(id) == Some(ValueSource::CommandLine)
}

/// The option as it is written on the command line.
fn option_name(arg: &Arg) -> String {
    format!("--{}", arg.get_long().unwrap_or(arg.get_id().as_str()))
}
