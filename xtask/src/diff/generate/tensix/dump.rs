//! Steps at the end of a case that put registers into L1, where the host can read them.
//!
//! Dst is packed as 16-bit integers, which no stage of the packer converts; registers of the vector
//! unit are stored to Dst first. So this needs the packer and `SFPSTORE`, but not the window of the
//! TRISCs onto Dst, which the other library does not have.

use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Setrwc, Sfpencc, Sfpnop, Sfpstore};
use tilework_abi::tensix::{CFG_BASE, GPR_BASE};

use super::setup::{INT16, Pack, Settings};
use super::step::Step;

/// Where they go.
const DST: u32 = 0x16_0000;
const DST_BYTES: u32 = 0x8000;
const LREGS: u32 = DST + DST_BYTES;
const GPRS: u32 = LREGS + 0x1000;
const CONFIG: u32 = GPRS + 0x400;

/// Faces of Dst: 1024 rows of 16 bits.
const FACES: u32 = 64;
/// Registers of the vector unit that can be written, and faces of Dst that they fill.
const LREG_COUNT: u32 = 8;
const LREG_FACES: u32 = 4;

/// What is compared at the end.
#[derive(Clone, Default, Debug)]
pub(super) struct Dumps {
    /// All of Dst.
    pub(super) dst: bool,
    /// The registers of the vector unit.
    pub(super) lregs: bool,
    /// The general-purpose registers of the thread.
    pub(super) gprs: bool,
    /// Words of the configuration.
    pub(super) config: Vec<u16>,
}

impl Dumps {
    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut out = vec![Step::Sync];
        if self.dst {
            out.extend(pack_dst(DST, FACES));
        }
        if self.lregs {
            out.extend(store_lregs());
            out.extend(pack_dst(LREGS, LREG_FACES));
        }
        if self.gprs {
            out.extend((0..64).map(|i| Step::Copy(GPR_BASE + 4 * i, GPRS + 4 * i)));
        }
        out.extend(
            (0..).zip(&self.config).map(|(i, &word)| Step::Copy(CFG_BASE + 4 * u32::from(word), CONFIG + 4 * i)),
        );
        out
    }

    /// What the host reads.
    pub(super) fn looks(&self) -> impl Iterator<Item = (u32, u32)> {
        let faces = |n: u32| n * DST_BYTES / FACES;
        [
            (self.dst, DST, DST_BYTES),
            (self.lregs, LREGS, faces(LREG_FACES)),
            (self.gprs, GPRS, 256),
            (!self.config.is_empty(), CONFIG, 4 * self.config.len() as u32),
        ]
        .into_iter()
        .filter_map(|(on, at, len)| on.then_some((at, len)))
    }
}

/// Packs the first `faces` faces of Dst, as they are, to `at`.
fn pack_dst(at: u32, faces: u32) -> Vec<Step> {
    let pack = Pack { from: INT16, to: INT16, ..Pack::new(at) };
    let mut out = pack.steps();
    out.extend(pack.faces(faces));
    out.push(Step::Sync);
    out
}

/// Stores the registers of the vector unit to the first rows of Dst, with all lanes enabled.
fn store_lregs() -> Vec<Step> {
    const PLAIN: u32 = 7;
    let mut settings = Settings::default();
    for field in [cfg::ADDR_MOD_AB_SEC_SRCAINCR, cfg::ADDR_MOD_DST_SEC_DESTINCR, cfg::ADDR_MOD_BIAS_SEC_BIASINCR] {
        settings.set(field.copy(PLAIN as usize), 0);
    }
    settings.set(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET, 0);
    let mut out = settings.steps();
    out.push(Step::Push(Setrwc::build().src_a(true).src_b(true).dst(true).fidelity(true).word()));
    out.push(Step::Push(Sfpencc::build().imm2(3).mod1(10).word()));
    out.push(Step::Push(Sfpnop::build().word()));
    for reg in 0..LREG_COUNT {
        out.push(Step::Push(Sfpstore::build().vd(reg).mod0(4).addr_mod(PLAIN).imm10(4 * reg).word()));
        out.push(Step::Push(Sfpnop::build().word()));
    }
    out.push(Step::Sync);
    out
}
