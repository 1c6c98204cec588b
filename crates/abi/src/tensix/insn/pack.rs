//! The mover, the packers and the unpackers.

use super::*;

instructions! {
    /// Instructions of the mover.
    MoverOp of Mover {
        built {
            Xmov 0x40 "XMOV" W Move { mov_block_selection[23:23] Flag, last[0:0] Flag }
        }
        not_built {}
    }
}

instructions! {
    /// Instructions of the packers.
    PackerOp of Packer {
        built {
            Pacr 0x41 "PACR" B Pack {
                cfg_context[22:21] Uint in [0], row_pad_zero[20:18] Uint in [0, 1, 2, 3, 5, 6, 7],
                dst_access_mode[17:17] Flag, addr_mod[16:15] Uint, addr_cnt_context[14:13] Uint,
                zero_write[12:12] Flag, read_intf_sel[11:8] Hex in all, ovrd_thread_id[7:7] Flag, concat[4:4] Flag,
                ctxt_ctrl[3:2] Uint in [0, 2], flush[1:1] Flag, last[0:0] Flag
            }
            PacrSetreg 0x4A "PACR_SETREG" W Other {
                push[23:23] Flag, mode_sel[22:22] Flag, unused[21:12] Hex if [22:22] == 0,
                wrdata[18:3] Hex if [22:22] == 1, wrdata_half[2:2] Uint in all if [22:22] == 1,
                disable_stall[11:10] Uint if [22:22] == 0, addr_sel[9:8] Uint in [0, 1] if [22:22] == 0,
                stream_id[7:2] Uint if [22:22] == 0, flush[1:1] Flag, last[0:0] Flag
            }
        }
        not_built {
            Tbufcmd 0x4B "TBUFCMD" L Other {} "the public list reserves it for later"
        }
    }
}

instructions! {
    /// Instructions of the unpackers.
    UnpackerOp of Unpacker {
        built {
            Unpacr 0x42 "UNPACR" W "UNPACR_Regular" Unpack {
                which_unpacker[23:23] Uint in all, ch1_y_inc[22:21] Uint, ch1_z_inc[20:19] Uint, ch0_y_inc[18:17] Uint,
                ch0_z_inc[16:15] Uint, cfg_context_cnt_inc[14:13] Uint in [0, 1], context_number[12:10] Uint,
                context_adc[9:8] Uint, multi_context_mode[7:7] Flag, flip_src[6:6] Flag, srcb_bcast[5:5] Flag,
                all_datums_are_zero[4:4] Flag, use_context_counter[3:3] Flag, row_search[2:2] Flag,
                search_cache_flush[1:1] Flag, last[0:0] Flag
            }
            UnpacrNop 0x43 "UNPACR_NOP" W "UNPACR_NOP_ZEROSRC" Unpack {
                which_unpacker[23:23] Uint in all, reg_addr_sel_hi[22:22] Uint if [2:0] == 7,
                stream_id[21:16] Uint if [1:0] == 3, reg_addr_sel_lo[15:15] Uint if [2:0] == 7,
                msg_clr_cnt[14:12] Uint if [2:0] == 3, msg_clr_cnt11[14:4] Uint if [2:0] == 7,
                accumulate[3:3] Flag if [2:0] == 7, set_dvalid[8:8] Flag if [1:0] == 1,
                clr_to1_fmt_ctrl[7:6] Uint in all if [1:0] == 1, stall_clr_cntrl[5:5] Flag if [1:0] == 1,
                bank_clr_ctrl[4:4] Flag if [1:0] == 1, src_clr_val_ctrl[3:2] Uint in [0, 1, 2] if [1:0] == 1,
                enhanced[2:2] Flag if [1:0] == 3, unpack_pop[1:0] Uint in all
            }
        }
        not_built {}
    }
}
