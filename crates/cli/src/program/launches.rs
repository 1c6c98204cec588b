//! How often a program runs, and what differs from one time to the next: `[[launch]]`.

use super::check::Planner;
use super::plan::Arg;
use super::schema::{LaunchDecl, ProgramFile};
use crate::failure::Outcome;
use std::sync::Arc;
use toml::Spanned;

/// Launches that one program may have.
pub const MAX_LAUNCHES: usize = 1024;
/// Names that a program has for each launch anyway.
const OWN: [&str; 2] = ["index", "count"];

/// One launch of a program.
#[derive(Clone, Debug, Default)]
pub struct PlannedLaunch {
    /// The names that the file gives values, without `launch.`.
    pub(super) values: Arc<Vec<(String, Arg)>>,
}

impl Planner<'_> {
    /// All launches in their order; one if the file says nothing.
    pub(super) fn launches(&mut self, file: &ProgramFile) -> Vec<PlannedLaunch> {
        let mut launches = Vec::new();
        if file.broken.launches {
            self.globals.set_broken("launch");
        }
        for decl in &file.launch {
            let planned = self.launch(decl, file, launches.len());
            let Some((repeat, launch)) = self.wrong.keep(planned) else {
                self.globals.set_broken("launch");
                continue;
            };
            launches.extend(std::iter::repeat_n(launch, repeat));
        }
        if launches.is_empty() {
            launches.push(PlannedLaunch::default());
        }
        launches
    }

    /// A `[[launch]]` behind `before` others: how often, and with what.
    fn launch(&self, decl: &Spanned<LaunchDecl>, file: &ProgramFile, before: usize) -> Outcome<(usize, PlannedLaunch)> {
        let LaunchDecl { repeat, values } = decl.get_ref();
        let most = i64::try_from(MAX_LAUNCHES).unwrap_or(i64::MAX);
        let count = repeat.as_ref().map_or(Ok(1), |repeat| self.number("repeat of a launch", repeat, 1..=most))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        if count > MAX_LAUNCHES - before {
            return self.fail(decl.span(), format!("more than {MAX_LAUNCHES} launches"));
        }
        // Every launch has the same names.
        let first = file.launch.first().map(|launch| &launch.get_ref().values.0);
        for (name, _) in first.into_iter().flatten() {
            if !values.0.iter().any(|(own, _)| own.get_ref() == name.get_ref()) {
                return self
                    .fail(decl.span(), format!("this launch has no value \"{}\"; the first has", name.get_ref()));
            }
        }
        let mut parsed = Vec::new();
        for (name, value) in &values.0 {
            self.check_name("launch value", name)?;
            let text = name.get_ref();
            if OWN.contains(&text.as_str()) {
                return self
                    .fail(name.span(), format!("\"launch.{text}\" has a meaning of its own; choose another name"));
            }
            if !first.is_some_and(|first| first.iter().any(|(known, _)| known.get_ref() == text)) {
                return self.fail(name.span(), format!("the first launch has no value \"{text}\""));
            }
            parsed.push((text.clone(), self.parse(value)?));
        }
        Ok((count, PlannedLaunch { values: Arc::new(parsed) }))
    }
}
