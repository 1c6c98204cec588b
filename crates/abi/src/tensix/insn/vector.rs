//! The vector unit (SFPU).

use super::*;

instructions! {
    /// Instructions of the vector unit.
    VectorOp of Vector {
        built {
            Sfploadi 0x71 "SFPLOADI" B Other { vd[23:20] LReg, mod0[19:16] Hex in [0, 1, 2, 4, 8, 10], imm16[15:0] Hex }
            Sfpencc 0x8A "SFPENCC" B Other {
                imm2[13:12] Hex in all, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 8, 9, 10]
            }
            Sfpnop 0x8F "SFPNOP" B Other {}
            Sfpconfig 0x91 "SFPCONFIG" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex in all }
            Sfpload 0x70 "SFPLOAD" B Other {
                vd[23:20] LReg, mod0[19:16] Hex in all, addr_mod[15:13] Uint, imm10[9:0] Uint
            }
            Sfpstore 0x72 "SFPSTORE" B Other {
                vd[23:20] LReg, mod0[19:16] Hex in all, addr_mod[15:13] Uint, imm10[9:0] Uint
            }
            Sfplut 0x73 "SFPLUT" B Other { vd[23:20] LReg, mod0[19:16] Hex in [0, 4, 8, 12] }
            Sfpmuli 0x74 "SFPMULI" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex in [0, 8] }
            Sfpaddi 0x75 "SFPADDI" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex in [0, 8] }
            Sfpdivp2 0x76 "SFPDIVP2" B Other { imm8[19:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1] }
            Sfpexexp 0x77 "SFPEXEXP" B Other {
                vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 3, 8, 9, 10, 11]
            }
            Sfpexman 0x78 "SFPEXMAN" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1] }
            Sfpiadd 0x79 "SFPIADD" B Other {
                imm12[23:12] Signed, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 4, 5, 6, 8, 9, 10, 12,
                13, 14]
            }
            Sfpshft 0x7A "SFPSHFT" B Other {
                imm12[23:12] Signed, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 3, 5, 7]
            }
            Sfpsetcc 0x7B "SFPSETCC" B Other {
                imm1[12:12] Uint, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 4, 6, 8]
            }
            Sfpmov 0x7C "SFPMOV" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 8] }
            Sfpabs 0x7D "SFPABS" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1] }
            Sfpand 0x7E "SFPAND" B Other { vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpor 0x7F "SFPOR" B Other { vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpnot 0x80 "SFPNOT" B Other { vc[11:8] LReg, vd[7:4] LReg }
            Sfplz 0x81 "SFPLZ" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 2, 4, 6, 8, 10, 12, 14] }
            Sfpsetexp 0x82 "SFPSETEXP" B Other {
                imm8[19:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2]
            }
            Sfpsetman 0x83 "SFPSETMAN" B Other {
                imm12[23:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1]
            }
            Sfpmad 0x84 "SFPMAD" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in all
            }
            Sfpadd 0x85 "SFPADD" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in all
            }
            Sfpmul 0x86 "SFPMUL" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in all
            }
            Sfppushc 0x87 "SFPPUSHC" B Other { vd[7:4] LReg, mod1[3:0] Hex in all }
            Sfppopc 0x88 "SFPPOPC" B Other { vd[7:4] LReg, mod1[3:0] Hex in all }
            Sfpsetsgn 0x89 "SFPSETSGN" B Other {
                imm1[12:12] Uint, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1]
            }
            Sfpcompc 0x8B "SFPCOMPC" B Other { vd[7:4] LReg }
            Sfptransp 0x8C "SFPTRANSP" B Other { vd[7:4] LReg }
            Sfpxor 0x8D "SFPXOR" B Other { vc[11:8] LReg, vd[7:4] LReg }
            SfpStochRnd 0x8E "SFP_STOCH_RND" B "SFPSTOCHRND" Other {
                rounding_mode[22:21] Uint in [0, 1, 2], imm5[20:16] Uint if [3:3] == 1, vb[15:12] LReg, vc[11:8] LReg,
                vd[7:4] LReg, use_imm5[3:3] Flag, mod1[2:0] Hex in all
            }
            Sfpcast 0x90 "SFPCAST" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 3] }
            Sfpswap 0x92 "SFPSWAP" B Other {
                vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
            }
            Sfploadmacro 0x93 "SFPLOADMACRO" B Other {
                macro_index[23:22] Uint, vd_lo[21:20] Uint, mod0[19:16] Hex in all, addr_mod[15:13] Uint,
                imm9[9:1] Uint, vd_hi[0:0] Uint
            }
            Sfpshft2 0x94 "SFPSHFT2" B Other {
                imm12[23:12] Signed if [3:0] == 6, vb[15:12] LReg if [3:0] == 5, vc[11:8] LReg, vd[7:4] LReg,
                mod1[3:0] Hex in [0, 1, 2, 3, 4, 5, 6]
            }
            Sfplutfp32 0x95 "SFPLUTFP32" B Other {
                mod1_mirror[19:16] Hex, vd[7:4] LReg, mod1[3:0] Hex in [0, 2, 3, 4, 6, 7, 8, 10, 12, 14]
            }
            Sfple 0x96 "SFPLE" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in all }
            Sfpgt 0x97 "SFPGT" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in all }
            Sfpmul24 0x98 "SFPMUL24" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 4, 5, 8, 9, 12, 13]
            }
            Sfparecip 0x99 "SFPARECIP" B Other {
                vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex in [0, 1, 2]
            }
        }
        not_built {}
    }
}
