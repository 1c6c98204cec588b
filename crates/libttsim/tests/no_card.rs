//! Calls before the card is powered on: what the interface does with the caller's memory. Miri runs
//! this file, too (`.ci/run`), for which building a chip takes too long.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use tilework::*;

/// What the library answers without a card.
const ONES: u8 = 0xFF;

unsafe extern "C" fn dma_read(_: u64, _: *mut c_void, _: u32) {}
unsafe extern "C" fn dma_write(_: u64, _: *const c_void, _: u32) {}

/// Lets `read` fill the middle of memory that nobody wrote, with `size` bytes; gives all of it.
fn around(size: usize, read: impl FnOnce(*mut c_void, u32)) -> [u8; 96] {
    let mut memory = [MaybeUninit::<u8>::uninit(); 96];
    for i in (0..16).chain(16 + size..96) {
        memory[i].write(0);
    }
    read(memory[16..].as_mut_ptr().cast(), u32::try_from(size).unwrap());
    // SAFETY: this function wrote what is beside the middle, `read` what is in it.
    memory.map(|byte| unsafe { byte.assume_init() })
}

#[test]
fn reads_fill_what_they_are_given_and_nothing_else() {
    for size in [0, 1, 4, 63, 64] {
        let wanted: [u8; 96] = std::array::from_fn(|i| if (16..16 + size).contains(&i) { ONES } else { 0 });
        // SAFETY: there is room for so many bytes.
        assert_eq!(around(size, |to, size| unsafe { libttsim_pci_mem_rd_bytes(0, to, size) }), wanted);
        // SAFETY: there is room for so many bytes.
        assert_eq!(around(size, |to, size| unsafe { libttsim_tile_rd_bytes(1, 2, 0, to, size) }), wanted);
    }
}

#[test]
fn null_is_never_followed() {
    // SAFETY: null has room for no byte; the library promises to look.
    unsafe {
        libttsim_pci_mem_rd_bytes(0, ptr::null_mut(), 64);
        libttsim_tile_rd_bytes(1, 2, 0, ptr::null_mut(), 64);
        libttsim_pci_mem_wr_bytes(0, ptr::null(), 64);
        libttsim_tile_wr_bytes(1, 2, 0, ptr::null(), 64);
    }
}

#[test]
fn calls_of_two_threads_without_a_card_answer_with_ones() {
    let calls = || {
        libttsim_set_pci_dma_mem_callbacks(Some(dma_read), Some(dma_write));
        libttsim_pci_config_wr32(0, 0x10, 0);
        libttsim_clock(1);
        libttsim_exit();
        let bytes = [1u8; 65];
        // SAFETY: these are the bytes of an array.
        unsafe { libttsim_pci_mem_wr_bytes(0, bytes.as_ptr().cast(), 65) };
        libttsim_pci_config_rd32(0, 0)
    };
    let answers = std::thread::scope(|scope| [scope.spawn(calls), scope.spawn(calls)].map(|thread| thread.join()));
    assert!(answers.iter().all(|answer| matches!(answer, Ok(u32::MAX))));
}
