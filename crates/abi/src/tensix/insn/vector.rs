//! The vector unit (SFPU).

use super::*;

instructions! {
    /// Instructions of the vector unit.
    VectorOp of Vector {
        built {
            Sfploadi 0x71 "SFPLOADI" B Other { vd[23:20] LReg, mod0[19:16] Hex, imm16[15:0] Hex }
            Sfpencc 0x8A "SFPENCC" B Other { imm2[13:12] Hex, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpnop 0x8F "SFPNOP" B Other {}
            Sfpconfig 0x91 "SFPCONFIG" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpload 0x70 "SFPLOAD" B Other {
                vd[23:20] LReg, mod0[19:16] Hex, addr_mod[15:13] Uint, imm10[9:0] Uint
            }
            Sfpstore 0x72 "SFPSTORE" B Other {
                vd[23:20] LReg, mod0[19:16] Hex, addr_mod[15:13] Uint, imm10[9:0] Uint
            }
            Sfplut 0x73 "SFPLUT" B Other { vd[23:20] LReg, mod0[19:16] Hex }
            Sfpmuli 0x74 "SFPMULI" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpaddi 0x75 "SFPADDI" B Other { imm16[23:8] Hex, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpdivp2 0x76 "SFPDIVP2" B Other { imm8[19:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpexexp 0x77 "SFPEXEXP" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpexman 0x78 "SFPEXMAN" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpiadd 0x79 "SFPIADD" B Other { imm12[23:12] Signed, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpshft 0x7A "SFPSHFT" B Other { imm12[23:12] Signed, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpsetcc 0x7B "SFPSETCC" B Other { imm1[12:12] Uint, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpmov 0x7C "SFPMOV" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpabs 0x7D "SFPABS" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpand 0x7E "SFPAND" B Other { vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpor 0x7F "SFPOR" B Other { vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpnot 0x80 "SFPNOT" B Other { vc[11:8] LReg, vd[7:4] LReg }
            Sfplz 0x81 "SFPLZ" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpsetexp 0x82 "SFPSETEXP" B Other { imm8[19:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpsetman 0x83 "SFPSETMAN" B Other { imm12[23:12] Hex, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpmad 0x84 "SFPMAD" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex
            }
            Sfpadd 0x85 "SFPADD" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex
            }
            Sfpmul 0x86 "SFPMUL" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex
            }
            Sfppushc 0x87 "SFPPUSHC" B Other { vd[7:4] LReg, mod1[3:0] Hex }
            Sfppopc 0x88 "SFPPOPC" B Other { vd[7:4] LReg, mod1[3:0] Hex }
            Sfpsetsgn 0x89 "SFPSETSGN" B Other { imm1[12:12] Uint, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpcompc 0x8B "SFPCOMPC" B Other { vd[7:4] LReg }
            Sfptransp 0x8C "SFPTRANSP" B Other { vd[7:4] LReg }
            Sfpxor 0x8D "SFPXOR" B Other { vc[11:8] LReg, vd[7:4] LReg }
            SfpStochRnd 0x8E "SFP_STOCH_RND" B "SFPSTOCHRND" Other {
                rounding_mode[22:21] Uint, imm5[20:16] Uint if [3:3] == 1, vb[15:12] LReg, vc[11:8] LReg,
                vd[7:4] LReg, use_imm5[3:3] Flag, mod1[2:0] Hex
            }
            Sfpcast 0x90 "SFPCAST" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpswap 0x92 "SFPSWAP" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfploadmacro 0x93 "SFPLOADMACRO" B Other {
                macro_index[23:22] Uint, vd_lo[21:20] Uint, mod0[19:16] Hex, addr_mod[15:13] Uint,
                imm9[9:1] Uint, vd_hi[0:0] Uint
            }
            Sfpshft2 0x94 "SFPSHFT2" B Other {
                imm12[23:12] Signed if [3:0] == 6, vb[15:12] LReg if [3:0] == 5, vc[11:8] LReg, vd[7:4] LReg,
                mod1[3:0] Hex
            }
            Sfplutfp32 0x95 "SFPLUTFP32" B Other { mod1_mirror[19:16] Hex, vd[7:4] LReg, mod1[3:0] Hex }
            Sfple 0x96 "SFPLE" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpgt 0x97 "SFPGT" B Other { vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
            Sfpmul24 0x98 "SFPMUL24" B Other {
                va[19:16] LReg, vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex
            }
            Sfparecip 0x99 "SFPARECIP" B Other { vb[15:12] LReg, vc[11:8] LReg, vd[7:4] LReg, mod1[3:0] Hex }
        }
        not_built {}
    }
}
