//! How the coprocessor's threads and units are ordered.

use super::*;

fn units() -> Units {
    let (mut units, mut parts) = (Units::default(), vec![PartOf { tile: NocXy::new(0, 0), owner: Owner::Host }]);
    units.prepare(NocXy::new(1, 2), &mut parts);
    assert_eq!(parts.len(), 1 + THREADS + UNITS);
    units.prepare(NocXy::new(1, 2), &mut parts);
    assert_eq!(parts.len(), 1 + THREADS + UNITS, "once");
    units
}

fn stall(block: u32, until: u32) -> WaitOp {
    let word = insn::Stallwait::build().block_mask(block).condition_mask(until).word();
    match Insn::decode(word) {
        Insn::Wait(wait) => wait,
        other => panic!("{other:?}"),
    }
}

/// A moment that knows `stamp`.
fn knowing(stamp: Stamp) -> Moment {
    Moment { own: [stamp; 2], ..Moment::default() }
}

const SCALAR: u32 = insn::Dmanop::build().word();
const POST: u32 = insn::Sempost::build().semaphore_mask(1).word();
const WAIT: u32 = insn::Semwait::build().block_mask(1 << 5).semaphore_mask(1).condition_mask(1).word();

#[test]
fn a_stall_shows_what_came_before_it_to_what_it_holds_back() {
    let mut units = units();
    let packed = units.starts(2, Unit::Packer);
    // Holds back the scalar unit until the packer is done.
    units.wait(2, stall(1 << 5, 1 << 3));
    let later = units.starts(2, Unit::Packer);
    units.behind_wait(2, Insn::decode(POST));
    assert!(!units.threads[2].knows(packed), "an instruction that passes all the same");
    units.behind_wait(2, Insn::decode(SCALAR));
    assert!(units.threads[2].knows(packed) && !units.threads[2].knows(later));
    units.behind_wait(2, Insn::decode(POST));
    assert!(units.threads[2].knows(packed), "and all behind it");
}

#[test]
fn a_wait_for_a_semaphore_learns_of_the_first_post_that_nobody_has_taken() {
    let mut units = units();
    let of = |count| Stamp { part: 90, count };
    let wait = |units: &mut Units| {
        let Insn::Wait(wait) = Insn::decode(WAIT) else { panic!("a wait") };
        units.wait(0, wait);
        units.behind_wait(0, Insn::decode(SCALAR));
    };
    units.semaphore_stored(0, 0, &knowing(of(1)));
    units.semaphore_stored(0, 0, &knowing(of(2)));
    wait(&mut units);
    assert!(units.threads[0].knows(of(1)) && !units.threads[0].knows(of(2)));
    units.semaphore_stored(0, 1, &knowing(of(0)));
    wait(&mut units);
    assert!(units.threads[0].knows(of(2)));
    let mut core = Clock::default();
    units.semaphore_seen(0, 3, &mut core);
    assert!(core.knows(of(2)), "a core that loads the value learns all");
}

#[test]
fn a_thread_knows_what_its_core_knew_at_the_push() {
    let mut units = units();
    let of = |count| Stamp { part: 7, count };
    units.pushed(2, 100, knowing(of(1)));
    units.pushed(2, 110, knowing(of(2)));
    units.learn_push(0, 2, 105);
    assert!(units.threads[0].knows(of(1)) && !units.threads[0].knows(of(2)));
    units.learn_push(0, 2, 110);
    assert!(units.threads[0].knows(of(2)));
}

#[test]
fn an_unpacker_works_with_what_its_thread_knew_and_tells_it_with_the_bank() {
    let mut units = units();
    units.enqueue(0, 1, 50);
    let (early, late) = (units.job(1, 50).map(|job| job.stamp), units.threads[0].release());
    let Some(stamp) = early else { panic!("the job waits") };
    assert!(!units.job(1, 50).is_some_and(|job| job.moment.knows(late.before[0])));
    units.ends(1, 50, true);
    assert!(units.job(1, 50).is_none());
    assert!(!units.threads[1].knows(stamp));
    units.frees(1);
    assert!(units.threads[1].knows(stamp), "the matrix unit has used the bank");
    let mut clock = Clock::default();
    units.drained(0, &mut clock);
    assert!(clock.knows(stamp), "nothing of the thread is left");
}

#[test]
fn queues_bring_what_each_sender_knew() {
    let mut units = units();
    let of = |count| Stamp { part: 7, count };
    let mut clock = Clock::default();
    units.send(2, 3, knowing(of(1)));
    units.send(2, 3, knowing(of(2)));
    units.take(3, 2, &mut clock);
    assert!(!clock.knows(of(1)), "the other direction");
    units.take(2, 3, &mut clock);
    assert!(clock.knows(of(1)) && !clock.knows(of(2)));
}
