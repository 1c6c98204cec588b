//! Steps that capture launches in a trace, replay it and release it.

use super::check::Planner;
use super::steps::{Named, PlannedStep, Step, StepDecl};
use super::wrong::consequence;
use crate::failure::Outcome;
use toml::Spanned;

/// Replays that one step may ask for.
const MAX_REPLAYS: u32 = 1_000_000;

impl Planner<'_> {
    /// A step that captures launches, each of which has run before it: a capture runs nothing, and
    /// a replay sends no kernel text.
    pub(super) fn trace(
        &self,
        name: &Spanned<String>,
        decl: &StepDecl,
        named: &Named<'_>,
        before: &[PlannedStep],
        whole: bool,
    ) -> Outcome<Step> {
        self.check_word("trace", name)?;
        if before.iter().any(|other| other.step.trace() == Some(name.get_ref())) {
            return self.fail(name.span(), format!("two traces are named \"{}\"", name.get_ref()));
        }
        let Some(given) = decl.launches.as_ref().filter(|given| !given.get_ref().is_empty()) else {
            let span = decl.launches.as_ref().map_or_else(|| name.span(), Spanned::span);
            return self.fail(span, "a trace without launches; give launches = [\"NAME\"]");
        };
        let mut launches = Vec::new();
        for launch in given.get_ref() {
            let range = self.launches_of(launch, named)?;
            let ran = |other: &PlannedStep| matches!(&other.step, Step::Launch { launches, .. } if *launches == range);
            if !before.iter().any(ran) {
                if !whole {
                    return Err(consequence());
                }
                let name = launch.get_ref();
                let message =
                    format!("launch \"{name}\" has not run before its capture; add {{ launch = \"{name}\" }}");
                return self.fail(launch.span(), message);
            }
            launches.push((launch.get_ref().clone(), range));
        }
        Ok(Step::Trace { name: name.get_ref().clone(), launches })
    }

    /// The step that captures the trace of this name, which no step before this one releases.
    pub(super) fn captured<'s>(
        &self,
        name: &Spanned<String>,
        before: &'s [PlannedStep],
        whole: bool,
    ) -> Outcome<&'s PlannedStep> {
        let text = name.get_ref().as_str();
        if before.iter().any(|other| other.step.released() == Some(text)) {
            return self.fail(name.span(), format!("trace \"{text}\" is released before this step"));
        }
        match before.iter().find(|other| other.step.trace() == Some(text)) {
            Some(trace) => Ok(trace),
            None if !whole => Err(consequence()),
            None => {
                let names: Vec<&str> = before.iter().filter_map(|other| other.step.trace()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                self.fail(name.span(), format!("no trace \"{text}\" before this step; there are: {names}"))
            }
        }
    }

    /// A step that replays a trace.
    pub(super) fn replay(&self, name: &Spanned<String>, decl: &StepDecl) -> Outcome<Step> {
        let times = match &decl.times {
            None => 1,
            Some(times) => match u32::try_from(*times.get_ref()).ok().filter(|times| (1..=MAX_REPLAYS).contains(times))
            {
                Some(times) => times,
                None => {
                    return self
                        .fail(times.span(), format!("times = {}; expected 1 to {MAX_REPLAYS}", times.get_ref()));
                }
            },
        };
        Ok(Step::Replay { trace: name.get_ref().clone(), times, blocking: decl.blocking() })
    }
}
