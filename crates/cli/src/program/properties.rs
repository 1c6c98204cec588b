//! Whatever bytes a program file or an expression holds, reading it ends with a value or an error
//! that points into it.

use super::expr::{Expr, Scope};
use super::plan::Plan;
use super::schema::ProgramFile;
use super::source::Source;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tilework_abi::board::Board;

const RING: &str = include_str!("../../../../examples/ring/program.toml");

/// Every name has a value.
struct Anything;

impl Scope for Anything {
    fn name(&self, name: &str) -> Result<i64, String> {
        Ok(name.len() as i64 - 3)
    }
}

fn read(text: &str) -> Result<Plan, String> {
    let source = Source::of(text);
    let file = ProgramFile::parse(&source).map_err(|e| e.to_string())?;
    let plan = Plan::new(source, file, Board::P100, &BTreeMap::new()).map_err(|e| e.to_string())?;
    let addresses = vec![0x4000; plan.buffers.len()];
    plan.arguments(&addresses).map_err(|e| e.to_string())?;
    Ok(plan)
}

#[test]
fn the_program_that_the_mutations_start_from_is_right() {
    let plan = read(RING).unwrap();
    assert_eq!(plan.roles[0].cores.len(), 118);
}

proptest! {
    #[test]
    fn any_expression_ends(text in "[ -~]{0,80}") {
        if let Ok(expr) = Expr::parse(&text) {
            let _ = expr.value(&Anything);
        }
    }

    #[test]
    fn any_expression_of_its_own_characters_ends(text in "[-+*/%(),.0-9a-c_x ]{0,200}") {
        match Expr::parse(&text) {
            Ok(expr) => drop(expr.value(&Anything)),
            Err(e) => prop_assert!(e.at.end <= text.len() && e.at.start <= e.at.end, "{e:?}"),
        }
    }

    #[test]
    fn a_program_with_some_bytes_replaced_is_read_or_refused(
        edits in prop::collection::vec((0..RING.len(), "[ -~\n]{0,4}"), 1..4),
    ) {
        let mut text = RING.to_owned();
        for (at, new) in edits {
            let at = at.min(text.len());
            let end = (at + new.len()).min(text.len());
            text.replace_range(at..end, &new);
        }
        if let Err(message) = read(&text) {
            prop_assert!(message.starts_with("program.toml:"), "{message}");
        }
    }

    #[test]
    fn any_text_is_refused_with_a_place(text in "\\PC{0,200}") {
        let message = read(&text).map(|_| ()).unwrap_err();
        prop_assert!(message.starts_with("program.toml:"), "{message}");
    }
}
