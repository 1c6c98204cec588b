//! What users write to choose a part of a timeline.

use std::ops::Range;
use tilework_abi::addr::Cycle;
use tilework_abi::noc::NocXy;

/// Reads `A..B`, cycles from one to another.
///
/// # Errors
/// What was expected, in words.
pub fn cycles(text: &str) -> Result<Range<Cycle>, String> {
    let number = |text: &str, usual| if text.is_empty() { Some(usual) } else { text.parse().ok() };
    let ends = text.split_once("..").and_then(|(from, to)| Some((number(from, 0)?, number(to, Cycle::MAX)?)));
    match ends {
        Some((from, to)) if from < to => Ok(from..to),
        _ => Err("expected A..B with A before B; either may be left out".to_owned()),
    }
}

/// Reads a tile, `x-y`.
///
/// # Errors
/// What was expected, in words.
pub fn tile(text: &str) -> Result<NocXy, String> {
    let xy = text.split_once('-').and_then(|(x, y)| Some(NocXy::new(x.parse().ok()?, y.parse().ok()?)));
    xy.ok_or_else(|| "expected the tile's column and row as x-y".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_timeline_is_cycles_and_tiles() {
        assert_eq!(cycles("100..200"), Ok(100..200));
        assert_eq!((cycles("..7"), cycles("7..")), (Ok(0..7), Ok(7..Cycle::MAX)));
        assert_eq!(tile("12-3"), Ok(NocXy::new(12, 3)));
        for wrong in ["", "7", "9..9", "a..b"] {
            assert!(cycles(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "1", "1-", "300-1", "1,2"] {
            assert!(tile(wrong).is_err(), "{wrong}");
        }
    }
}
