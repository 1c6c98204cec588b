//! Semaphores between the threads.
//!
//! The sync unit has eight (BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md). Which is used
//! for what follows the field's kernels.

use tilework_abi::tensix::PC_BUF_BASE;
use tilework_abi::tensix::insn::{Semget, Seminit, Sempost, Semwait};
use tilework_abi::tensix::pc_buf::SEMAPHORE;
use tilework_rt::reg::{wait_reg, write};

/// A semaphore of the tile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Semaphore(u32);

/// Tiles of Dst that math has set free for the unpacker, and that the unpacker has written:
/// one at a time.
pub const DST_FREE: Semaphore = Semaphore(7);
/// See [`DST_FREE`].
pub const DST_TAKEN: Semaphore = Semaphore(2);
/// Halves of Dst that math has filled and pack has not emptied.
pub const MATH_PACK: Semaphore = Semaphore(1);
/// Contexts of the unpackers in use.
pub const UNPACK_SYNC: Semaphore = Semaphore(5);

/// When `SEMWAIT` waits.
#[derive(Clone, Copy)]
pub enum While {
    /// While the value is 0.
    Zero,
    /// While the value has reached its maximum.
    Full,
}

impl Semaphore {
    /// The word that sets value and maximum.
    pub const fn init(self, value: u32, max: u32) -> u32 {
        Seminit::build().new_value(value).new_max(max).semaphore_mask(1 << self.0).word()
    }
    /// The word that adds one.
    pub const fn post(self) -> u32 {
        Sempost::build().semaphore_mask(1 << self.0).word()
    }
    /// The word that takes one away.
    pub const fn get(self) -> u32 {
        Semget::build().semaphore_mask(1 << self.0).word()
    }
    /// The word that keeps `block` from starting.
    pub const fn wait(self, block: u32, condition: While) -> u32 {
        let condition = match condition {
            While::Zero => 1,
            While::Full => 2,
        };
        Semwait::build().block_mask(block).semaphore_mask(1 << self.0).condition_mask(condition).word()
    }
    fn addr(self) -> u32 {
        PC_BUF_BASE + SEMAPHORE + 4 * self.0
    }
    /// The core waits until the value is below `value`.
    #[inline(always)]
    pub fn wait_below(self, value: u32) {
        wait_reg(self.addr(), |v| v < value);
    }
    /// The core adds one: a store of an even value (SyncUnit.md).
    #[inline(always)]
    pub fn post_now(self) {
        write(self.addr(), 0);
    }
}
