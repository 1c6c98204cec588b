//! The invariants of the command queue that debug builds check: each defect put in is told as what
//! it breaks, by the next call that uses the queue; what is right passes everywhere else.

#![cfg(debug_assertions)]

use crate::common::{Device, empty, open};
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::prefetch_core::{
    PREFETCH_Q, PREFETCH_Q_PCIE_RD_PTR, PREFETCH_Q_RD_PTR, SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES,
};
use tilework_abi::cq::layout::{SEMAPHORE_OFFSET, dispatch_core};
use tilework_abi::cq::status::{Kernel, word};
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_runtime::{Cores, DeviceConfig, RuntimeError};

fn word_of(device: &Device, tile: NocXy, address: L1Addr) -> u32 {
    let at = address.get() as usize;
    u32::from_le_bytes(device.chip().l1(tile).unwrap()[at..at + 4].try_into().unwrap())
}

/// A device that has run a program, with a word of a tile changed; what the next run says, which
/// has no program: the firmware would store some of the words anew.
#[track_caller]
fn told(tile: NocXy, address: L1Addr, change: impl Fn(u32) -> u32) -> String {
    let mut device = open(DeviceConfig::new(Board::P100));
    device.run(&[empty(Cores::All)]).unwrap();
    let value = change(word_of(&device, tile, address));
    device.write_l1(tile, address, &value.to_le_bytes()).unwrap();
    // A read waits for the writes before it.
    device.read_l1(tile, address, &mut [0; 4]).unwrap();
    let error = device.run(&[]).unwrap_err();
    assert!(matches!(error, RuntimeError::Protocol(_)), "{error}");
    let late = device.run(&[empty(Cores::All)]).unwrap_err().to_string();
    assert!(
        late.starts_with("the device stopped earlier (command queue: an invariant of queue 0 is broken: "),
        "{late}"
    );
    error.to_string()
}

#[test]
fn a_broken_invariant_is_named() {
    let (prefetch, dispatch) = (Board::P100.prefetch_core(), Board::P100.dispatch_core());
    let semaphores = WORKER.kernel_config.get() + SEMAPHORE_OFFSET;
    let at = |id: tilework_abi::cq::layout::SemaphoreId| L1Addr::new(id.addr(semaphores));
    let ring = dispatch_core::DISPATCH_CB.pages().get();
    for (tile, address, change, message) in [
        // A credit that nobody gave: the ring could be overrun.
        (prefetch, at(SEM_DISPATCH_PAGES), ring + 1, "credits: "),
        (prefetch, at(SEM_DISPATCH_S_PAGES), 1, "credits: 0 pages came to the subordinate and 1 were given back"),
        // Pages that the prefetcher never released.
        (
            dispatch,
            at(dispatch_core::SEM_S_CB_PAGES),
            129,
            "credits: 129 pages came to the subordinate and 0 were given",
        ),
        (prefetch, L1Addr::new(PREFETCH_Q_RD_PTR), 1, "ring pointers: the prefetcher reads entry 0x"),
        (prefetch, L1Addr::new(PREFETCH_Q_PCIE_RD_PTR), 1 << 28, "ring pointers: the prefetcher reads records at 0x5"),
        (dispatch, Kernel::Dispatch.status().offset(word::COMMANDS), 1, "nothing lost: the dispatcher has executed "),
    ] {
        let found = told(tile, address, |value| value.wrapping_add(change));
        let expected = format!("command queue: an invariant of queue 0 is broken: {message}");
        assert!(found.starts_with(&expected), "{found}\nexpected {expected}");
    }
    // The last entry of the queue, where nothing is written.
    let last = PREFETCH_Q.end().get() - 4;
    let found = told(prefetch, L1Addr::new(last), |_| 0x10 << 16);
    assert!(found.contains("nothing lost: entry 1533 of the prefetch queue is 0x10 though all is done"), "{found}");
}
