//! Steps that capture launches in a trace and replay it.

use super::check::Planner;
use super::steps::{Named, PlannedStep, Step, StepDecl};
use super::wrong::consequence;
use crate::failure::Outcome;
use tilework_runtime::QueueId;
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

    /// A step that replays a trace, and the trace's queue.
    pub(super) fn replay(
        &self,
        name: &Spanned<String>,
        decl: &StepDecl,
        before: &[PlannedStep],
        whole: bool,
    ) -> Outcome<(Step, Option<QueueId>)> {
        let Some(trace) = before.iter().find(|other| other.step.trace() == Some(name.get_ref())) else {
            if !whole {
                return Err(consequence());
            }
            let names: Vec<&str> = before.iter().filter_map(|other| other.step.trace()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return self
                .fail(name.span(), format!("no trace \"{}\" before this step; there are: {names}", name.get_ref()));
        };
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
        let step = Step::Replay { trace: name.get_ref().clone(), times, blocking: decl.blocking() };
        Ok((step, trace.queue))
    }
}
