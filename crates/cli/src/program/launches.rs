//! How often a program runs, and what differs from one time to the next: `[[launch]]`.

use super::check::Planner;
use super::plan::Arg;
use super::schema::{ProgramFile, Tables, Value};
use super::wrong::consequence;
use crate::failure::Outcome;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

/// Launches that one program may have.
pub const MAX_LAUNCHES: usize = 1024;
/// Names that a program has for each launch anyway.
const OWN: [&str; 2] = ["index", "count"];

/// A run of the program, or several in turn, as the file has it.
#[derive(serde::Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub struct LaunchDecl {
    /// The name that steps use.
    pub name: Option<Spanned<String>>,
    /// The roles that run; all unless given.
    pub roles: Option<Spanned<Vec<Spanned<String>>>>,
    /// How often; once unless given.
    pub repeat: Option<Spanned<Value>>,
    /// What `launch.NAME` means in arguments.
    #[serde(default)]
    pub values: Tables<Value>,
}

/// One launch of a program.
#[derive(Clone, Debug, Default)]
pub struct PlannedLaunch {
    /// The name of its table.
    pub name: Arc<str>,
    /// The roles that run, by position, in the order of the file.
    pub(super) roles: Arc<Vec<usize>>,
    /// Whether the file names the roles.
    pub(super) chosen: bool,
    /// The names that the file gives values, without `launch.`.
    pub(super) values: Arc<Vec<(String, Arg)>>,
}

impl ProgramFile {
    /// The name of a role: its position has one, too.
    pub(super) fn role_name(&self, position: usize) -> String {
        let name = self.roles.get(position).and_then(|role| role.get_ref().name.as_ref());
        name.map_or_else(|| format!("role{position}"), |name| name.get_ref().clone())
    }
    /// The name of a `[[launch]]`.
    pub(super) fn launch_name(&self, position: usize) -> String {
        let name = self.launch.get(position).and_then(|launch| launch.get_ref().name.as_ref());
        name.map_or_else(|| format!("launch{position}"), |name| name.get_ref().clone())
    }
    /// Whether a launch runs a role, by the role's position.
    fn runs(&self, launch: &LaunchDecl, role: usize) -> bool {
        let name = self.role_name(role);
        launch.roles.as_ref().is_none_or(|roles| roles.get_ref().iter().any(|one| *one.get_ref() == name))
    }
    /// Whether some launch runs both of these roles, so that they cannot share a core.
    pub(super) fn run_together(&self, a: usize, b: usize) -> bool {
        let both = |launch: &Spanned<LaunchDecl>| self.runs(launch.get_ref(), a) && self.runs(launch.get_ref(), b);
        self.launch.is_empty() || self.broken.launches || self.launch.iter().any(both)
    }
}

/// The launches of one `[[launch]]`: its name and which they are of all.
pub type LaunchTable = (String, Range<usize>);

impl Planner<'_> {
    /// All launches in their order, and the tables that they come from; one launch if the file says
    /// nothing.
    pub(super) fn launches(&mut self, file: &ProgramFile) -> (Vec<PlannedLaunch>, Vec<LaunchTable>) {
        let (mut launches, mut tables): (Vec<PlannedLaunch>, Vec<LaunchTable>) = (Vec::new(), Vec::new());
        if file.broken.launches {
            self.globals.set_broken("launch");
        }
        for (position, decl) in file.launch.iter().enumerate() {
            let name = file.launch_name(position);
            if tables.iter().any(|(other, _)| *other == name) {
                let span = decl.get_ref().name.as_ref().map_or_else(|| decl.span(), Spanned::span);
                self.wrong.add(self.source.error(span, format!("two launches are named \"{name}\"")));
            }
            let planned = self.launch(decl, file, &name, launches.len());
            let Some((repeat, launch)) = self.wrong.keep(planned) else {
                self.globals.set_broken("launch");
                tables.push((name, 0..0));
                continue;
            };
            tables.push((name, launches.len()..launches.len() + repeat));
            launches.extend(std::iter::repeat_n(launch, repeat));
        }
        self.idle_roles(file);
        if launches.is_empty() {
            let (name, roles) = (file.launch_name(0), Arc::new((0..file.roles.len()).collect()));
            if file.launch.is_empty() {
                tables.push((name.clone(), 0..1));
            }
            launches.push(PlannedLaunch { name: name.into(), roles, ..PlannedLaunch::default() });
        }
        (launches, tables)
    }

    /// Refuses roles that no launch runs.
    fn idle_roles(&mut self, file: &ProgramFile) {
        for (position, role) in file.roles.iter().enumerate() {
            if !file.run_together(position, position) {
                let message = format!("role \"{}\" runs in no launch", file.role_name(position));
                self.wrong.add(self.source.error(role.span(), message));
            }
        }
    }

    /// A `[[launch]]` behind `before` others: how often, and with what.
    fn launch(
        &self,
        decl: &Spanned<LaunchDecl>,
        file: &ProgramFile,
        name: &str,
        before: usize,
    ) -> Outcome<(usize, PlannedLaunch)> {
        let LaunchDecl { name: given, repeat, values, roles: chosen } = decl.get_ref();
        if let Some(given) = given {
            self.check_word("launch", given)?;
        }
        let roles = self.launched_roles(decl.get_ref(), file)?;
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
        let (roles, values) = (Arc::new(roles), Arc::new(parsed));
        Ok((count, PlannedLaunch { name: name.into(), roles, chosen: chosen.is_some(), values }))
    }

    /// The positions of the roles that a launch runs.
    fn launched_roles(&self, decl: &LaunchDecl, file: &ProgramFile) -> Outcome<Vec<usize>> {
        let names: Vec<String> = (0..file.roles.len()).map(|role| file.role_name(role)).collect();
        if let Some(roles) = &decl.roles {
            if roles.get_ref().is_empty() {
                return self.fail(roles.span(), "a launch without roles; leave \"roles\" out for all");
            }
            for (i, role) in roles.get_ref().iter().enumerate() {
                let name = role.get_ref();
                if !names.contains(name) {
                    if file.broken.roles {
                        return Err(consequence());
                    }
                    let known = names.join(", ");
                    return self.fail(role.span(), format!("no role \"{name}\"; the program has {known}"));
                }
                if roles.get_ref()[..i].iter().any(|before| before.get_ref() == name) {
                    return self.fail(role.span(), format!("role \"{name}\" is given twice"));
                }
            }
        }
        Ok((0..names.len()).filter(|&role| file.runs(decl, role)).collect())
    }
}
