//! The scalar unit (ThCon).

use super::*;

instructions! {
    /// Instructions of the scalar unit.
    ScalarOp of Scalar {
        built {
            Setdmareg 0x45 "SETDMAREG" W Gpr {
                new_value[23:8] Hex if [7:7] == 0, result_size[23:22] Uint in all if [7:7] == 1,
                which_packers[18:15] Hex if [7:7] == 1, input_source[14:11] Uint in all if [7:7] == 1,
                input_half_reg[10:8] Uint if [7:7] == 1, set_signals_mode[7:7] Flag, result_half_reg[6:0] GprHalf
            }
            Flushdma 0x46 "FLUSHDMA" W Flush { condition_mask[3:0] Hex }
            Reg2flop 0x48 "REG2FLOP" W Reg2Flop {
                size_sel[23:22] Uint in all, to_adc[21:21] Flag, override_thread[20:20] Flag,
                shift8[19:18] Uint in all if [21:21] == 1, thread_sel[17:16] Uint if [21:21] == 1,
                channel[11:11] Uint in all if [21:21] == 1, adc_sel[10:9] Uint in all if [21:21] == 1,
                cr[8:8] Flag if [21:21] == 1,
                xyzw[7:6] Uint in all if [21:21] == 1, thcon_cfg_index[12:6] Uint if [21:21] == 0, input_reg[5:0] Gpr
            }
            Loadind 0x49 "LOADIND" W Indirect {
                size[23:22] Uint in all, offset_half_reg[20:14] GprHalf, offset_increment[13:12] Uint in all,
                result_reg[11:6] Gpr,
                addr_reg[5:0] Gpr
            }
            Adddmareg 0x58 "ADDDMAREG" W Gpr {
                right_is_imm[23:23] Flag, result_reg[17:12] Gpr, right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Subdmareg 0x59 "SUBDMAREG" W Gpr {
                right_is_imm[23:23] Flag, result_reg[17:12] Gpr, right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Muldmareg 0x5A "MULDMAREG" W Gpr {
                right_is_imm[23:23] Flag, result_reg[17:12] Gpr, right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Bitwopdmareg 0x5B "BITWOPDMAREG" W Gpr {
                right_is_imm[23:23] Flag, mode[20:18] Uint in [0, 1, 2], result_reg[17:12] Gpr,
                right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Shiftdmareg 0x5C "SHIFTDMAREG" W Gpr {
                right_is_imm[23:23] Flag, mode[20:18] Uint in [0, 1], result_reg[17:12] Gpr,
                right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Cmpdmareg 0x5D "CMPDMAREG" W Gpr {
                right_is_imm[23:23] Flag, mode[20:18] Uint in [0, 1, 2], result_reg[17:12] Gpr,
                right_reg[11:6] Gpr if [23:23] == 0,
                right_imm6[11:6] Uint if [23:23] == 1, left_reg[5:0] Gpr
            }
            Dmanop 0x60 "DMANOP" W Other {}
            Atincget 0x61 "ATINCGET" W Atomic {
                int_width[18:14] Uint, ofs[13:12] Uint in all, in_out_reg[11:6] Gpr, addr_reg[5:0] Gpr
            }
            Atincgetptr 0x62 "ATINCGETPTR" W Atomic {
                no_incr[22:22] Flag, incr_log2[21:18] Uint, int_width[17:14] Uint, ofs[13:12] Uint in all,
                result_reg[11:6] Gpr, addr_reg[5:0] Gpr
            }
            Atswap 0x63 "ATSWAP" W Atomic {
                single_data_reg[22:22] Flag, mask[21:14] Hex, data_reg[11:6] Gpr, addr_reg[5:0] Gpr
            }
            Atcas 0x64 "ATCAS" W Atomic {
                set_val[21:18] Uint, cmp_val[17:14] Uint, ofs[13:12] Uint in all, addr_reg[5:0] Gpr
            }
            Storeind 0x66 "STOREIND" W Indirect {
                to_l1[23:23] Flag, size[22:21] Uint in all if [23:23] == 1, to_mmio[22:22] Flag if [23:23] == 0,
                to_src_b[21:21] Flag if [23:22] == 0, offset_half_reg[20:14] GprHalf,
                offset_increment[13:12] Uint in all,
                data_reg[11:6] Gpr, addr_reg[5:0] Gpr
            }
            Storereg 0x67 "STOREREG" W StoreReg { data_reg[23:18] Gpr, addr_lo[17:0] Hex }
            Loadreg 0x68 "LOADREG" W LoadReg { result_reg[23:18] Gpr, addr_lo[17:0] Hex }
        }
        not_built {}
    }
}
