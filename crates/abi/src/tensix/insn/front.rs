//! What the front end executes itself.

use super::*;

instructions! {
    /// Instructions that the front end executes: they never reach the wait gate.
    FrontEndOp of FrontEnd {
        built {
            Mop 0x01 "MOP" W Mop {
                template[23:23] Uint in all, count1[22:16] Uint if [23:23] == 0, mask_lo[15:0] Hex if [23:23] == 0,
                outer_count_hi[19:16] Uint if [23:23] == 1, outer_count_lo[15:10] Uint if [23:23] == 1,
                inner_count[9:0] Uint if [23:23] == 1
            }
            MopCfg 0x03 "MOP_CFG" W Untracked { mask_hi[15:0] Hex }
            Replay 0x04 "REPLAY" B Replay { index[18:14] Uint, count[9:4] Uint, exec[1:1] Flag, load[0:0] Flag }
            Resourcedecl 0x05 "RESOURCEDECL" L Untracked {
                linger_time[16:13] Hex, resources[12:4] Hex, op_class[3:0] Uint in all
            }
        }
        not_built {}
    }
}
