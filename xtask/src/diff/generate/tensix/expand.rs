//! Instructions that come by way of the front end: recorded and replayed, or out of the MOP
//! expander (BlackholeA0/TensixTile/TensixCoprocessor/{REPLAY,MOPExpander}.md).

use tilework_abi::tensix::MOP_CFG_BASE;
use tilework_abi::tensix::insn::{Mop, MopCfg, Nop, Replay};

use super::super::super::rng::Rng;
use super::step::Step;

/// Instructions that can be recorded.
const SLOTS: u32 = 32;
/// Words of the expander's configuration.
const WORDS: u32 = 9;

/// Records `words`, which execute in the course of that or not, and replays all or some of them
/// once or twice. More than [`SLOTS`] are not recorded.
pub(super) fn replayed(rng: &mut Rng, words: &[u32]) -> Vec<Step> {
    let words = &words[..words.len().min(SLOTS as usize)];
    let count = words.len() as u32;
    if count == 0 {
        return Vec::new();
    }
    let index = rng.within(0..SLOTS + 1 - count);
    let record = Replay::build().load(true).exec(rng.one_in(2)).count(count).index(index);
    let mut out = vec![Step::Push(record.word())];
    out.extend(words.iter().map(|word| Step::Push(*word)));
    for _ in 0..rng.within(1..3) {
        let first = rng.within(0..count);
        let some = rng.within(1..count + 1 - first);
        out.push(Step::Push(Replay::build().count(some).index(index + first).word()));
    }
    out
}

/// Two nested loops (template 1): an instruction in the inner one, and one that ends each turn of
/// the outer one. A `pause` follows each instruction.
pub(super) fn loops(rng: &mut Rng, [body, end]: [u32; 2], pause: u32) -> Vec<Step> {
    let (outer, inner) = (rng.within(1..4), rng.within(1..5));
    let words = [outer, inner, Nop::build().word(), end, pause, body, pause, pause, pause];
    configured(words, &[Mop::build().template(1).word()])
}

/// An instruction or another one, as the bits of a mask say (template 0). A `pause` follows each.
pub(super) fn masked(rng: &mut Rng, [clear, set]: [u32; 2], pause: u32) -> Vec<Step> {
    const HAS_SECOND: u32 = 1;
    let nop = Nop::build().word();
    let words = [0, HAS_SECOND, pause, clear, nop, nop, nop, set, pause];
    let (count, mask) = (rng.within(1..24), rng.word());
    let mop = Mop::build().template(0).count1(count - 1).mask_lo(mask & 0xFFFF).word();
    configured(words, &[MopCfg::build().mask_hi(mask >> 16).word(), mop])
}

/// Writes the configuration, which the expander must not use meanwhile, and expands it.
fn configured(words: [u32; WORDS as usize], pushed: &[u32]) -> Vec<Step> {
    let mut out = vec![Step::Sync];
    out.extend((0..WORDS).zip(words).map(|(i, word)| Step::Write(MOP_CFG_BASE + 4 * i, word)));
    out.extend(pushed.iter().map(|word| Step::Push(*word)));
    out
}
