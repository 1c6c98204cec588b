//! The sync unit: semaphores, mutexes and the wait instructions.

use super::*;

instructions! {
    /// Instructions of the sync unit that change semaphores and mutexes.
    SyncOp of Sync {
        built {
            Atgetm 0xA0 "ATGETM" B Other { index[15:0] Uint }
            Atrelm 0xA1 "ATRELM" W Other { index[15:0] Uint }
            Seminit 0xA3 "SEMINIT" B Other { new_max[23:20] Uint, new_value[19:16] Uint, semaphore_mask[9:2] Hex }
            Sempost 0xA4 "SEMPOST" B Other { semaphore_mask[9:2] Hex }
            Semget 0xA5 "SEMGET" B Other { semaphore_mask[9:2] Hex }
        }
        not_built {}
    }
}

instructions! {
    /// Instructions of the sync unit that are latched at the wait gate.
    WaitOp of Wait {
        built {
            Stallwait 0xA2 "STALLWAIT" B Other { block_mask[23:15] Hex, condition_mask[12:0] Hex }
            Semwait 0xA6 "SEMWAIT" B Other {
                block_mask[23:15] Hex, semaphore_mask[9:2] Hex, condition_mask[1:0] Hex in [1, 2, 3]
            }
            Streamwait 0xA7 "STREAMWAIT" B Other {
                block_mask[23:15] Hex, target_value_lo[13:4] Uint, condition_index[3:3] Uint in all,
                stream_select[1:0] Uint
            }
        }
        not_built {}
    }
}
