//! Go messages and launch messages: what starts a kernel on a worker.
//!
//! Follows the original's `dispatch.py` (tt-metal has the same structures in `dev_msgs.h`); packed
//! little-endian, read in place by firmware and written by the host.

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// `RUN_MSG_INIT`: the firmware has not started yet.
pub const RUN_INIT: u8 = 0x40;
/// `RUN_MSG_GO`: run the kernel that the launch message describes.
pub const RUN_GO: u8 = 0x80;
/// `RUN_MSG_RESET_READ_PTR_FROM_HOST`: set the launch read pointer to zero and say nothing.
pub const RUN_RESET_READ_PTR_FROM_HOST: u8 = 0xE0;
/// `RUN_MSG_DONE`: idle.
pub const RUN_DONE: u8 = 0x00;

/// A go message: u32 = offset | master_x << 8 | master_y << 16 | signal << 24.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GoMsg {
    /// Which of the dispatcher's completion streams to add to, counted from the first.
    pub dispatch_message_offset: u8,
    /// Column of the dispatch core.
    pub master_x: u8,
    /// Row of the dispatch core.
    pub master_y: u8,
    /// One of the `RUN_` values.
    pub signal: u8,
}

impl GoMsg {
    /// The message as the word that is written.
    pub const fn word(self) -> u32 {
        u32::from_le_bytes([self.dispatch_message_offset, self.master_x, self.master_y, self.signal])
    }
    /// The message that such a word is.
    pub const fn from_word(word: u32) -> Self {
        let [dispatch_message_offset, master_x, master_y, signal] = word.to_le_bytes();
        Self { dispatch_message_offset, master_x, master_y, signal }
    }
    /// A message without a dispatch core.
    pub const fn signal(signal: u8) -> Self {
        Self { dispatch_message_offset: 0, master_x: 0, master_y: 0, signal }
    }
}

/// `DISPATCH_MODE_DEV`: completion is reported to the dispatch core.
pub const MODE_DEV: u8 = 0;
/// `DISPATCH_MODE_HOST`: the host polls the go message.
pub const MODE_HOST: u8 = 1;

/// Offsets of one processor's unique and common run-time arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct RtaOffset {
    /// Unique arguments, from the kernel configuration base.
    pub rta: U16,
    /// Common arguments, from the kernel configuration base.
    pub crta: U16,
}

/// A launch message (96 bytes). All offsets are from `kernel_config_base`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LaunchMsg {
    /// Base of the kernel configuration, per kind of programmable core; Tensix is the first.
    pub kernel_config_base: [U32; 3],
    /// Semaphores, per kind of programmable core.
    pub sem_offset: [U16; 3],
    /// Local circular-buffer configuration.
    pub local_cb_offset: U16,
    /// Remote circular-buffer configuration.
    pub remote_cb_offset: U16,
    /// Run-time arguments per processor.
    pub rta_offset: [RtaOffset; 5],
    /// `MODE_DEV` or `MODE_HOST`.
    pub mode: u8,
    /// Bit i: the kernel of processor i reads no global of the firmware ([`crate::globals`]), which
    /// our firmware then does not fill in. Padding in the public sources, and zero from other
    /// hosts.
    pub self_contained: u8,
    /// Kernel text per processor.
    pub kernel_text_offset: [U32; 5],
    /// Bit i: circular buffer i is configured.
    pub local_cb_mask: U32,
    /// The NoC that BRISC uses; NCRISC uses the other.
    pub brisc_noc_id: u8,
    /// 0: each core owns its NoC; 1: dynamic.
    pub brisc_noc_mode: u8,
    /// First index of remote circular buffers (32: none).
    pub min_remote_cb_start_index: u8,
    /// Ethernet cores only.
    pub exit_erisc_kernel: u8,
    /// The host's number of the program.
    pub host_assigned_id: U32,
    /// Bit i: processor i runs a kernel.
    pub enables: U32,
    /// Ids for a watcher.
    pub watcher_kernel_ids: [U16; 5],
    /// Size of the NCRISC kernel in 16-byte units.
    pub ncrisc_kernel_size16: U16,
    /// Origin of the sub-device.
    pub sub_device_origin_x: u8,
    /// Origin of the sub-device.
    pub sub_device_origin_y: u8,
    /// Padding.
    pub pad3: u8,
    /// Pre-load flags.
    pub preload: u8,
}

/// Bytes of a launch message.
pub const LAUNCH_MSG_BYTES: usize = 96;

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<GoMsg>() == 4);
    assert!(size_of::<LaunchMsg>() == LAUNCH_MSG_BYTES);
    assert!(offset_of!(LaunchMsg, sem_offset) == 12);
    assert!(offset_of!(LaunchMsg, local_cb_offset) == 18);
    assert!(offset_of!(LaunchMsg, rta_offset) == 22);
    assert!(offset_of!(LaunchMsg, mode) == 42);
    assert!(offset_of!(LaunchMsg, kernel_text_offset) == 44);
    assert!(offset_of!(LaunchMsg, local_cb_mask) == 64);
    assert!(offset_of!(LaunchMsg, brisc_noc_id) == 68);
    assert!(offset_of!(LaunchMsg, host_assigned_id) == 72);
    assert!(offset_of!(LaunchMsg, enables) == 76);
    assert!(offset_of!(LaunchMsg, ncrisc_kernel_size16) == 90);
    assert!(offset_of!(LaunchMsg, preload) == 95);
};
