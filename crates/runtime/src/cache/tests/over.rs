//! Circular buffers over buffers: programs of one shape share their commands, and nothing else.

use super::*;
use crate::memory::{Bank, L1Range};

/// A range of L1 of some cores, or of all.
pub(super) fn range(address: u32, bytes: u32, cores: Option<Vec<NocXy>>) -> L1Range {
    let cores = cores.map(|cores| cores.into_iter().map(Bank::Core).collect());
    L1Range { name: "shards".into(), address: L1Addr::new(address), bytes, cores }
}

/// A program on four cores with circular buffers 0 and 16, of which 16 lies over `over`.
fn program(over: Option<L1Range>) -> Program {
    let cb = |index| CircularBuffer { index, page_size: 64, pages: PageCount::new(2) };
    let program = empty(4, 1).circular_buffer(cb(0)).circular_buffer(cb(24));
    match over {
        Some(over) => program.circular_buffer_over(cb(16), over),
        None => program.circular_buffer(cb(16)),
    }
}

/// The same commands serve buffers at other addresses and programs without one; each launch has the
/// addresses of its own program, whichever of them was compiled.
#[test]
fn programs_that_differ_in_what_their_circular_buffers_lie_over_have_their_own_addresses() {
    let overs = [None, Some(range(0x10_0000, 128, None)), Some(range(0x12_0000, 4096, None))];
    for first in 0..overs.len() {
        let (mut launcher, mut model, l1) = (launcher(&WORKER), Model::new(&WORKER), l1());
        for i in (0..2 * overs.len()).map(|i| (first + i) % overs.len()) {
            let program = program(overs[i].clone());
            let layout = program.layout(&workers(), &WORKER, &l1).unwrap();
            let prepared = launcher.prepare(&program, &l1).unwrap();
            let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
            assert_eq!(launched.layout.cbs, layout.cbs, "reported");
            assert!(model.execute(&launched.records));
            model.check(&program, &layout, &launched.layout);
        }
        assert_eq!((launcher.counts().misses, launcher.counts().hits), (1, 5));
    }
}

/// A program that is found in the cache is refused for what it is refused for when it is not.
#[test]
fn a_program_that_is_found_is_checked_for_its_own_buffers() {
    let cores = workers()[..4].to_vec();
    let good = range(0x10_0000, 128, Some(cores.clone()));
    let bad = [range(0x10_0000, 128, Some(cores[..3].to_vec())), range(0x10_0000, 64, Some(cores))];
    for over in bad {
        let (mut launcher, l1) = (launcher(&WORKER), l1());
        let expected = program(Some(over.clone())).layout(&workers(), &WORKER, &l1).unwrap_err().to_string();
        for known in [None, Some(good.clone())] {
            launcher.prepare(&program(known), &l1).unwrap();
            let error = launcher.prepare(&program(Some(over.clone())), &l1).unwrap_err().to_string();
            assert_eq!(error, expected);
        }
        assert!(expected.contains("over buffer shards") || expected.contains("nothing of buffer shards"), "{expected}");
    }
}
