//! Random instructions from the rows of the instruction table.

use tilework_abi::tensix::insn::{Kind, Row};

use super::super::super::rng::Rng;
use super::step::Step;

/// An instruction that a generator makes.
pub(super) struct Pick {
    /// Its row.
    pub(super) row: Row,
    /// Operands with one of a few values. Others are random.
    pub(super) choices: &'static [(&'static str, &'static [u32])],
    /// How often it is made, compared with others.
    pub(super) weight: u32,
}

/// One of `picks`, by weight, among those that `fits`.
pub(super) fn pick<'a>(rng: &mut Rng, picks: &'a [Pick], fits: impl Fn(&Pick) -> bool) -> Option<&'a Pick> {
    let total: u32 = picks.iter().filter(|pick| fits(pick)).map(|pick| pick.weight).sum();
    if total == 0 {
        return None;
    }
    let mut at = rng.within(0..total);
    picks.iter().filter(|pick| fits(pick)).find(|pick| match at.checked_sub(pick.weight) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    })
}

impl Pick {
    /// A random word. `other` gives operands without a choice; `None`: any bits.
    pub(super) fn word(&self, rng: &mut Rng, other: impl Fn(&mut Rng, &str) -> Option<u32>) -> Step {
        let mut word = u32::from(self.row.opcode) << 24;
        for (name, choices) in self.choices {
            if let Some(field) = self.row.fields.iter().find(|field| field.name == *name) {
                word = field.put(word, rng.pick(choices));
            }
        }
        for field in self.row.fields {
            let chosen = self.choices.iter().any(|(name, _)| *name == field.name);
            if chosen || !field.applies(word) {
                continue;
            }
            let value = match (other(rng, field.name), field.kind) {
                (Some(value), _) => value,
                (None, Kind::Flag) => rng.within(0..2),
                (None, _) => rng.edge(),
            };
            word = field.put(word, value);
        }
        Step::Push(word)
    }

    /// Whether an operand has the name and can have the value.
    pub(super) fn is(&self, row: &Row) -> bool {
        self.row.opcode == row.opcode
    }
}
