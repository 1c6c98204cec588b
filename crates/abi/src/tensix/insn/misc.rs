//! The miscellaneous unit: address counters of packers and unpackers, and `NOP`.

use super::*;

instructions! {
    /// Instructions of the miscellaneous unit.
    MiscOp of Misc {
        built {
            Nop 0x02 "NOP" W Untracked {}
            Setadc 0x50 "SETADC" W Other {
                cnt_set_mask[23:21] Hex, channel[20:20] Uint in all, xyzw[19:18] Uint in all,
                thread_override[17:16] Uint in all,
                new_value[15:0] Hex
            }
            Setadcxy 0x51 "SETADCXY" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_y[17:15] Uint, ch1_x[14:12] Uint,
                ch0_y[11:9] Uint, ch0_x[8:6] Uint, bit_mask[3:0] Hex
            }
            Incadcxy 0x52 "INCADCXY" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_y[17:15] Uint, ch1_x[14:12] Uint,
                ch0_y[11:9] Uint, ch0_x[8:6] Uint
            }
            Addrcrxy 0x53 "ADDRCRXY" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_y[17:15] Uint, ch1_x[14:12] Uint,
                ch0_y[11:9] Uint, ch0_x[8:6] Uint, bit_mask[3:0] Hex
            }
            Setadczw 0x54 "SETADCZW" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_w[17:15] Uint, ch1_z[14:12] Uint,
                ch0_w[11:9] Uint, ch0_z[8:6] Uint, bit_mask[3:0] Hex
            }
            Incadczw 0x55 "INCADCZW" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_w[17:15] Uint, ch1_z[14:12] Uint,
                ch0_w[11:9] Uint, ch0_z[8:6] Uint
            }
            Addrcrzw 0x56 "ADDRCRZW" W Other {
                cnt_set_mask[23:21] Hex, thread_override[19:18] Uint in all, ch1_w[17:15] Uint, ch1_z[14:12] Uint,
                ch0_w[11:9] Uint, ch0_z[8:6] Uint, bit_mask[3:0] Hex
            }
            Setdvalid 0x57 "SETDVALID" W Other { set_valid[1:0] Hex in all }
            Setadcxx 0x5E "SETADCXX" W Other {
                cnt_set_mask[23:21] Hex, x1_val[19:10] Uint, x0_val[9:0] Uint
            }
        }
        not_built {
            Rstdma 0x44 "RSTDMA" L Other {} "the public list has its name, and no document says what it resets"
        }
    }
}
