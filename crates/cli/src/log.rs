//! `TILEWORK_LOG`: what the runtime does, as lines on standard error.

use crate::failure::{Failure, Outcome};
use tilework_runtime::log::TARGETS;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// The variable, as messages name it.
const VARIABLE: &str = "TILEWORK_LOG";

/// Starts to log what the environment asks for; without the variable, nothing.
///
/// # Errors
/// A value that cannot be read.
pub fn start() -> Outcome<()> {
    let Some(value) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let value = value.to_str().ok_or_else(|| refused("is not UTF-8"))?;
    let lines = tracing_subscriber::fmt::layer().without_time().with_ansi(false).with_writer(std::io::stderr);
    let subscriber = tracing_subscriber::registry().with(lines.with_filter(targets(value)?));
    // It is called once; a second subscriber would have nothing to add.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// The filter of `debug`, `queue=trace` or `info,memory=debug`.
fn targets(value: &str) -> Outcome<Targets> {
    let mut filter = Targets::new();
    for part in value.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (target, level) = part.split_once('=').map_or((None, part), |(target, level)| (Some(target), level));
        let level: LevelFilter =
            level.parse().map_err(|_| refused(&format!("has the level {level:?}; levels are {LEVELS}")))?;
        filter = match target {
            None => filter.with_default(level),
            Some(target) if TARGETS.contains(&target) => filter.with_target(target, level),
            Some(target) => {
                return Err(refused(&format!("has the target {target:?}; targets are {}", TARGETS.join(", "))));
            }
        };
    }
    Ok(filter)
}

const LEVELS: &str = "off, error, warn, info, debug, trace";

fn refused(message: &str) -> Failure {
    Failure::usage(format!("{VARIABLE} {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn a_target_has_its_own_level() {
        let filter = targets("info, queue=trace").unwrap();
        assert!(filter.would_enable("queue", &Level::TRACE));
        assert!(filter.would_enable("memory", &Level::INFO) && !filter.would_enable("memory", &Level::DEBUG));
    }

    #[test]
    fn nothing_is_logged_by_default() {
        assert!(!targets("memory=debug").unwrap().would_enable("queue", &Level::ERROR));
        assert!(!targets("").unwrap().would_enable("queue", &Level::ERROR));
    }

    #[test]
    fn mistakes_are_named() {
        let message = |value| targets(value).unwrap_err().to_string();
        assert_eq!(
            message("loud"),
            "TILEWORK_LOG has the level \"loud\"; levels are off, error, warn, info, debug, trace"
        );
        assert_eq!(
            message("noc=debug"),
            "TILEWORK_LOG has the target \"noc\"; targets are device, memory, program, queue"
        );
    }
}
