//! The matrix unit (FPU).

use super::*;

instructions! {
    /// Instructions of the matrix unit.
    MatrixOp of Matrix {
        built {
            Movd2a 0x08 "MOVD2A" W Other {
                use_dst32b_lo[23:23] Flag, src_row[22:17] Uint, addr_mod[16:14] Uint, move_4_rows[13:13] Flag,
                dst_row[9:0] Uint
            }
            Movdbga2d 0x09 "MOVDBGA2D" W Other {
                use_dst32b_lo[23:23] Flag, src_row[22:17] Uint, addr_mod[16:14] Uint, move_8_rows[13:13] Flag,
                dst_row[9:0] Uint
            }
            Movd2b 0x0A "MOVD2B" W Other {
                use_dst32b_lo[23:23] Flag, src_row[22:17] Uint, addr_mod[16:14] Uint, move_4_rows[13:13] Flag,
                dst_row[9:0] Uint
            }
            Movb2a 0x0B "MOVB2A" W Other {
                src_a_row[22:17] Uint, addr_mod[16:14] Uint, move_4_rows[13:13] Flag, src_b_row[5:0] Uint
            }
            Movdbgb2d 0x0C "MOVDBGB2D" L Other {
                dest_32b_lo[23:23] Flag, src[22:17] Uint, addr_mod[16:14] Uint, movb2d_instr_mod[13:11] Uint in all,
                dst[10:0] Uint
            }
            Zeroacc 0x10 "ZEROACC" W Other {
                mode[20:19] Uint in all, use_dst32b[18:18] Flag, revert[17:17] Flag, addr_mod[16:14] Uint,
                imm10[9:0] Uint
            }
            Zerosrc 0x11 "ZEROSRC" W Other {
                negative_inf_src_a[4:4] Flag, single_bank_matrix_unit[3:3] Flag, both_banks[2:2] Flag,
                src_mask[1:0] Hex in all
            }
            Mova2d 0x12 "MOVA2D" W Other {
                use_dst32b_lo[23:23] Flag, src_row[22:17] Uint, addr_mod[16:14] Uint, move_8_rows[13:13] Flag,
                dst_row[9:0] Uint
            }
            Movb2d 0x13 "MOVB2D" W Other {
                use_dst32b_lo[23:23] Flag, src_row[22:17] Uint, addr_mod[16:14] Uint, move_4_rows[13:13] Flag,
                broadcast_1_row_to_8[12:12] Flag, broadcast_col0[11:11] Flag, dst_row[9:0] Uint
            }
            Trnspsrcb 0x16 "TRNSPSRCB" W Other {}
            Shiftxa 0x17 "SHIFTXA" W Other { log2_amount2[23:2] Uint, direction[1:0] Uint in [2, 3] }
            Shiftxb 0x18 "SHIFTXB" W Other {
                addr_mod[16:14] Uint, shift_in_zero[10:10] Flag, src_row[5:0] Uint
            }
            Clrexphist 0x21 "CLREXPHIST" W Other {}
            Mvmul 0x26 "MVMUL" W Other {
                clear_dvalid[23:22] Hex in all, broadcast_src_b_row[19:19] Flag, addr_mod[16:14] Uint,
                dst_row[9:0] Uint
            }
            Elwmul 0x27 "ELWMUL" W Other {
                clear_dvalid[23:22] Hex in all, add_dst[21:21] Flag, broadcast_src_b_row[20:20] Flag,
                broadcast_src_b_col0[19:19] Flag, addr_mod[16:14] Uint, dst_row[9:0] Uint
            }
            Elwadd 0x28 "ELWADD" W Other {
                clear_dvalid[23:22] Hex in all, add_dst[21:21] Flag, broadcast_src_b_row[20:20] Flag,
                broadcast_src_b_col0[19:19] Flag, addr_mod[16:14] Uint, dst_row[9:0] Uint
            }
            Dotpv 0x29 "DOTPV" W Other {
                clear_dvalid[23:22] Hex in all, dest_accum_en[21:21] Flag, instr_mod19[20:19] Uint,
                addr_mod[16:14] Uint, dst_row[9:0] Uint
            }
            Elwsub 0x30 "ELWSUB" W Other {
                clear_dvalid[23:22] Hex in all, add_dst[21:21] Flag, broadcast_src_b_row[20:20] Flag,
                broadcast_src_b_col0[19:19] Flag, addr_mod[16:14] Uint, dst_row[9:0] Uint
            }
            Gmpool 0x33 "GMPOOL" W Other {
                clear_dvalid[23:22] Hex in all, instr_mod19[19:19] Uint in all, addr_mod[17:15] Uint,
                arg_max[14:14] Flag,
                dst_row[9:0] Uint
            }
            Gapool 0x34 "GAPOOL" W Other {
                clear_dvalid[23:22] Hex in all, instr_mod19[19:19] Uint, addr_mod[17:15] Uint, arg_max[14:14] Flag,
                dst_row[9:0] Uint
            }
            Gatesrcrst 0x35 "GATESRCRST" W Other {
                invalidate_src_b_cache[1:1] Flag, reset_src_a_gate_control[0:0] Flag
            }
            Cleardvalid 0x36 "CLEARDVALID" W Other {
                clear_dvalid[23:22] Hex in all, keep_reading_same_src[1:1] Flag, reset[0:0] Flag
            }
            Setrwc 0x37 "SETRWC" W Other {
                clear_dvalid[23:22] Hex in all, dst_c_to_cr[21:21] Flag, dst_cr[20:20] Flag, src_b_cr[19:19] Flag,
                src_a_cr[18:18] Flag, dst_val[17:14] Uint, src_b_val[13:10] Uint, src_a_val[9:6] Uint,
                fidelity[3:3] Flag, dst[2:2] Flag, src_b[1:1] Flag, src_a[0:0] Flag
            }
            Incrwc 0x38 "INCRWC" W Other {
                dst_cr[20:20] Flag, src_b_cr[19:19] Flag, src_a_cr[18:18] Flag, dst_inc[17:14] Uint,
                src_b_inc[13:10] Uint, src_a_inc[9:6] Uint
            }
        }
        not_built {
            Trnspsrca 0x14 "TRNSPSRCA" L Other {}
                "the public list says that it transposes rows of SrcA, and not which ones or how"
            Rareb 0x15 "RAREB" L Other {}
                "the public list says that it rarefies SrcB, and not how"
            Setashrmh0 0x1A "SETASHRMH0" L Other { reg_mask[23:1] Hex, halo_mask[0:0] Uint }
                "a mask of shifts of SrcA, of which no document says what uses it"
            Setashrmh1 0x1B "SETASHRMH1" L Other { reg_mask[23:1] Hex, halo_mask[0:0] Uint }
                "a mask of shifts of SrcA, of which no document says what uses it"
            Setashrmv 0x1C "SETASHRMV" L Other { reg_mask2[23:0] Hex }
                "a mask of shifts of SrcA, of which no document says what uses it"
            Setpkedgof 0x1D "SETPKEDGOF" L Other {
                y_end[23:12] Uint, y_start[11:8] Uint, x_end[7:4] Uint, x_start[3:0] Uint
            }
                "offsets that no document says the packer of Blackhole to use"
            Setashrmh 0x1E "SETASHRMH" L Other { reg_mask[23:1] Hex, halo_mask[0:0] Uint }
                "a mask of shifts of SrcA, of which no document says what uses it"
            Conv3s1 0x22 "CONV3S1" L Other {
                clear_dvalid[23:22] Hex, rotate_weights[21:17] Uint, addr_mod[16:14] Uint, dst[13:0] Uint
            }
                "a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows"
            Conv3s2 0x23 "CONV3S2" L Other {
                clear_dvalid[23:22] Hex, rotate_weights[21:17] Uint, addr_mod[16:14] Uint, dst[13:0] Uint
            }
                "a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows"
            Mpool3s1 0x24 "MPOOL3S1" L Other {
                clear_dvalid[23:22] Hex, pool_addr_mode[17:15] Uint, index_en[14:14] Flag, dst[13:0] Uint
            }
                "a relic that does something similar to GMPOOL of zeros (MatrixUnit.md), which does not say what"
            Apool3s1 0x25 "APOOL3S1" L Other {
                clear_dvalid[23:22] Hex, pool_addr_mode[17:15] Uint, index_en[14:14] Flag, dst[13:0] Uint
            }
                "a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows"
            Mpool3s2 0x31 "MPOOL3S2" L Other {
                clear_dvalid[23:22] Hex, pool_addr_mode[17:15] Uint, index_en[14:14] Flag, dst[13:0] Uint
            }
                "a relic that does something similar to GMPOOL of zeros (MatrixUnit.md), which does not say what"
            Apool3s2 0x32 "APOOL3S2" L Other {
                clear_dvalid[23:22] Hex, pool_addr_mode[17:15] Uint, index_en[14:14] Flag, dst[13:0] Uint
            }
                "a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows"
            Setibrwc 0x39 "SETIBRWC" L Other { rwc_cr[23:18] Hex, rwc_bias[17:6] Uint, set_inc_ctrl[5:0] Hex }
                "it sets a counter of a bias, of which no document says what uses it"
            Mfconv3s1 0x3A "MFCONV3S1" L Other {
                clear_dvalid[23:22] Hex, rotate_weights[21:17] Uint, addr_mod[16:14] Uint, dst[13:0] Uint
            }
                "a relic that computes Dst += 0 (MatrixUnit.md), which does not say for which rows"
        }
    }
}
