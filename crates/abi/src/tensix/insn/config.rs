//! The configuration unit.

use super::*;

instructions! {
    /// Instructions of the configuration unit.
    ConfigOp of Config {
        built {
            Wrcfg 0xB0 "WRCFG" B WriteConfig { input_reg[21:16] Gpr, is_128bit[15:15] Flag, cfg_index[10:0] Uint }
            Rdcfg 0xB1 "RDCFG" B ReadConfig { result_reg[21:16] Gpr, cfg_index[10:0] Uint }
            Setc16 0xB2 "SETC16" B Other { cfg_index[23:16] Uint, new_value[15:0] Hex }
            Rmwcib0 0xB3 "RMWCIB0" B "RMWCIB" Other { mask[23:16] Hex, new_value[15:8] Hex, index4[7:0] Uint }
            Rmwcib1 0xB4 "RMWCIB1" B "RMWCIB" Other { mask[23:16] Hex, new_value[15:8] Hex, index4[7:0] Uint }
            Rmwcib2 0xB5 "RMWCIB2" B "RMWCIB" Other { mask[23:16] Hex, new_value[15:8] Hex, index4[7:0] Uint }
            Rmwcib3 0xB6 "RMWCIB3" B "RMWCIB" Other { mask[23:16] Hex, new_value[15:8] Hex, index4[7:0] Uint }
            Streamwrcfg 0xB7 "STREAMWRCFG" B ModifyConfig {
                stream_select[22:21] Uint, reg_index[20:11] Uint, cfg_index[10:0] Uint
            }
            Cfgshiftmask 0xB8 "CFGSHIFTMASK" B ModifyConfig {
                mask_mode[23:23] Flag, alu_mode[22:20] Uint in all, mask_width[19:15] Uint, rotate_amt[14:10] Uint,
                scratch_index[9:8] Uint, cfg_index[7:0] Uint
            }
        }
        not_built {}
    }
}
