//! Backend configuration.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{BackendConfiguration,ConfigurationUnit}.md and
//! the pages of the configuration unit's instructions: two banks of `Config`, a write-only view of
//! both, and one bank of `ThreadConfig` for each thread, which cores can only read. Sizes and
//! indices are those of the public `cfg_defines.h` for Blackhole. Fields of units that are not
//! built are storage; invalidating the instruction caches has no effect, because the simulated
//! cores never execute stale code.

use super::random::{OWNERS, Owner};
use crate::FaultClass;
use tilework_abi::tensix::cfg::{self, Field, Space};
use tilework_abi::tensix::insn::Cfgshiftmask;

/// Words of one `Config` bank (`CFG_STATE_SIZE` is 56).
const BANK: u32 = 56 * 4;
/// From here on a register exists once (`GLOBAL_CFGREG_BASE_ADDR32`).
const GLOBAL: u32 = 180;
/// First of the registers whose names start with `THCON_` (`THCON_CFGREG_BASE_ADDR32`).
const THCON: u32 = 64;
/// Words of one thread's configuration (`THD_STATE_SIZE`).
const THREAD: u32 = 68;
/// First word of the write-only view.
pub(super) const DUAL: u32 = 2 * BANK;
/// First word of the threads' configuration.
const THREADS: u32 = 3 * BANK;
/// End.
const END: u32 = THREADS + 3 * THREAD;
/// Writing anything here clears the bank's other registers below [`GLOBAL`]
/// (`STATE_RESET_EN_ADDR32`).
const STATE_RESET_EN: u32 = 4;
/// First of the four scratch registers of `CFGSHIFTMASK` (`SCRATCH_SEC0_val_ADDR32`).
const SCRATCH: u32 = 209;

/// First word of `THCON_SEC0_REG6`: source, destination, size and direction of `XMOV`.
pub(super) const XMOV: u32 = cfg::THCON_SEC_REG6_SOURCE_ADDRESS.word as u32;

/// Words that decoded configuration can depend on: those of a bank, whichever, and all threads'.
pub(super) const PLACES: usize = (BANK + 3 * THREAD) as usize;
/// Writes that are told apart ([`Config::changed_since`]).
const RECENT: usize = 32;

/// Why an access is refused.
pub(super) type Refusal = (FaultClass, &'static str);

/// The configuration of a tile.
#[derive(Clone, Debug)]
pub(super) struct Config {
    banks: [[u32; BANK as usize]; 2],
    threads: [[u16; THREAD as usize]; 3],
    /// Counts writes, so that units can keep what they have decoded.
    generation: u64,
    /// The words of the last writes, by the generation that the write ended, modulo [`RECENT`].
    recent: [u16; RECENT],
    /// By owner of generators: what was written to the seed of random numbers and not
    /// yet taken over.
    seeds: [Option<u32>; OWNERS],
}

impl Default for Config {
    fn default() -> Self {
        let (banks, threads) = ([[0; BANK as usize]; 2], [[0; THREAD as usize]; 3]);
        Self { banks, threads, generation: 0, recent: [0; RECENT], seeds: [None; OWNERS] }
    }
}

impl Config {
    /// The word at word index `index` from `TENSIX_CFG_BASE`.
    pub(super) fn load(&self, index: u32) -> Result<u32, Refusal> {
        match index {
            0..DUAL => Ok(self.banks[(index / BANK) as usize][(index % BANK) as usize]),
            DUAL..THREADS => {
                Err((FaultClass::UnsupportedFunctionality, "a load from ConfigDualWrite, which is write-only"))
            }
            THREADS..END => {
                let at = index - THREADS;
                Ok(self.threads[(at / THREAD) as usize][(at % THREAD) as usize].into())
            }
            _ => Err((FaultClass::MissingSpecification, "a load behind the backend configuration")),
        }
    }

    /// Stores a word.
    pub(super) fn store(&mut self, index: u32, value: u32) -> Result<(), Refusal> {
        match index {
            0..DUAL => self.write((index / BANK) as usize, index % BANK, value),
            DUAL..THREADS => {
                self.write(0, index - DUAL, value);
                self.write(1, index - DUAL, value);
            }
            THREADS..END => {
                let what = "a store to ThreadConfig, which only SETC16 can write";
                return Err((FaultClass::UnsupportedFunctionality, what));
            }
            _ => return Err((FaultClass::MissingSpecification, "a store behind the backend configuration")),
        }
        Ok(())
    }

    /// Another number after every write.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// The place of a word of the banks among [`PLACES`].
    #[inline]
    pub(super) const fn place(index: u32) -> usize {
        index as usize
    }

    /// The place of a word of a thread's own configuration.
    #[inline]
    pub(super) const fn thread_place(thread: usize, index: u32) -> usize {
        BANK as usize + thread * THREAD as usize + index as usize
    }

    /// Whether one of certain words, in either bank, may have been written since `generation`.
    pub(super) fn changed_since(&self, generation: u64, is_one: impl Fn(usize) -> bool) -> bool {
        self.generation - generation > RECENT as u64
            || (generation..self.generation).any(|i| is_one(self.recent[i as usize % RECENT].into()))
    }

    /// A word is written.
    #[inline]
    fn written(&mut self, place: usize) {
        self.recent[self.generation as usize % RECENT] = place as u16;
        self.generation += 1;
    }

    /// Many words are written.
    fn all_written(&mut self) {
        self.generation += 1 + RECENT as u64;
    }

    /// The bank that `thread` uses.
    #[inline]
    pub(super) fn bank_of(&self, thread: usize) -> usize {
        self.read(thread, cfg::CFG_STATE_ID_STATEID) as usize
    }

    /// A field, as instructions of `thread` see it. Inlined, because nearly always the compiler
    /// knows the field.
    #[inline(always)]
    pub(super) fn read(&self, thread: usize, field: Field) -> u32 {
        field.of(match field.space {
            Space::Thread => self.thread_word(thread, field.word.into()),
            Space::Bank => self.banks[self.bank_of(thread)][usize::from(field.word)],
        })
    }

    /// A field of one bit, as instructions of `thread` see it.
    #[inline(always)]
    pub(super) fn is_set(&self, thread: usize, field: Field) -> bool {
        self.read(thread, field) != 0
    }

    /// A field that exists once, whatever bank a thread uses.
    #[inline(always)]
    pub(super) fn global(&self, field: Field) -> u32 {
        debug_assert!(u32::from(field.word) >= GLOBAL);
        field.of(self.banks[0][usize::from(field.word)])
    }

    /// A word of `thread`'s own configuration.
    #[inline]
    pub(super) fn thread_word(&self, thread: usize, index: u32) -> u32 {
        self.threads[thread][index as usize].into()
    }

    /// `Config[bank][index]` of the bank that `thread` uses.
    pub(super) fn get(&self, thread: usize, index: u32) -> Result<u32, Refusal> {
        self.banks[self.bank_of(thread)].get(index as usize).copied().ok_or(OUTSIDE)
    }

    /// The word of `Config[bank][index]` of the bank that `thread` uses, from `TENSIX_CFG_BASE` on.
    pub(super) fn place_of(&self, thread: usize, index: u32) -> u16 {
        (self.bank_of(thread) as u32 * BANK + index) as u16
    }

    /// Writes `Config[bank][index]` of the bank that `thread` uses.
    pub(super) fn set(&mut self, thread: usize, index: u32, value: u32) -> Result<(), Refusal> {
        if index >= BANK {
            return Err(OUTSIDE);
        }
        self.write(self.bank_of(thread), index, value);
        Ok(())
    }

    /// `WRCFG` of 128 bits (or `REG2FLOP`, whose index counts from [`THCON`]).
    pub(super) fn set_four(&mut self, thread: usize, index: u32, values: [u32; 4]) -> Result<(), Refusal> {
        (index & !3..).zip(values).try_for_each(|(i, value)| self.set(thread, i, value))
    }

    /// The index behind a `REG2FLOP` index.
    pub(super) fn thcon_index(index: u32) -> Result<u32, Refusal> {
        if index < GLOBAL - THCON { Ok(THCON + index) } else { Err(OUTSIDE) }
    }

    /// `SETC16`.
    pub(super) fn set_thread(&mut self, thread: usize, index: u32, value: u16) -> Result<(), Refusal> {
        let slot = self.threads[thread].get_mut(index as usize).ok_or(OUTSIDE)?;
        *slot = value;
        self.written(Self::thread_place(thread, index));
        Ok(())
    }

    /// `RMWCIB`: the byte `byte` of a register; this way of writing never resets a bank.
    pub(super) fn modify_byte(
        &mut self,
        thread: usize,
        index: u32,
        byte: u32,
        mask: u8,
        new: u8,
    ) -> Result<(), Refusal> {
        let old = self.get(thread, index)?;
        let mask = u32::from(mask) << (8 * byte);
        let value = old & !mask | u32::from(new) << (8 * byte) & mask;
        self.put(self.bank_of(thread), index, value);
        Ok(())
    }

    /// `CFGSHIFTMASK`.
    pub(super) fn shift_mask(&mut self, thread: usize, insn: Cfgshiftmask) -> Result<(), Refusal> {
        let index = insn.cfg_index();
        let old = self.get(thread, index)?;
        let (scratch, rotate) = (insn.scratch_index(), insn.rotate_amt());
        let mask = u32::MAX >> (31 - insn.mask_width());
        let scratch = if scratch < 3 { scratch } else { thread as u32 };
        let operand = (self.banks[0][(SCRATCH + scratch) as usize] & mask).rotate_right(rotate);
        let old = if insn.mask_mode() { old } else { old & !mask.rotate_right(rotate) };
        let value = match insn.alu_mode() {
            0 => old | operand,
            1 => old & operand,
            2 => old ^ operand,
            3 => old.wrapping_add(operand),
            4 => old | !operand,
            5 => old & !operand,
            6 => old ^ !operand,
            _ => old.wrapping_sub(operand),
        };
        self.set(thread, index, value)
    }

    /// THCON configuration is reset.
    pub(super) fn reset_thcon(&mut self) {
        self.all_written();
        for bank in &mut self.banks {
            bank[THCON as usize..GLOBAL as usize].fill(0);
        }
    }

    fn write(&mut self, bank: usize, index: u32, value: u32) {
        self.put(bank, index, value);
        if index == STATE_RESET_EN {
            self.all_written();
            self.banks[bank][..GLOBAL as usize].fill(0);
        }
    }

    /// A seed that was written since the last call for `owner`. It acts at once, but only those
    /// that draw numbers see that.
    #[inline]
    pub(super) fn take_seed(&mut self, owner: Owner) -> Option<u32> {
        // Most instructions find none: nothing is stored for them.
        let seed = &mut self.seeds[owner as usize];
        if seed.is_some() { seed.take() } else { None }
    }

    fn put(&mut self, bank: usize, index: u32, value: u32) {
        self.written(Self::place(index));
        self.banks[bank][index as usize] = value;
        if index == u32::from(cfg::PRNG_SEED_SEED_VAL.word) {
            self.seeds = [Some(value); OWNERS];
        }
        if index >= GLOBAL {
            self.banks[1 - bank][index as usize] = value;
        }
    }
}

const OUTSIDE: Refusal = (FaultClass::UndefinedBehavior, "an index outside the configuration");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banks_are_apart_below_the_global_registers() {
        let mut c = Config::default();
        c.store(179, 1).unwrap();
        c.store(BANK + 179, 2).unwrap();
        assert_eq!((c.load(179), c.load(BANK + 179)), (Ok(1), Ok(2)));
        c.store(BANK + 180, 3).unwrap();
        assert_eq!((c.load(180), c.load(BANK + 180)), (Ok(3), Ok(3)));
        c.store(DUAL + 5, 4).unwrap();
        assert_eq!((c.load(5), c.load(BANK + 5)), (Ok(4), Ok(4)));
    }

    #[test]
    fn what_cores_cannot_do_is_refused() {
        let mut c = Config::default();
        assert_eq!(c.load(DUAL).unwrap_err().0, FaultClass::UnsupportedFunctionality);
        assert_eq!(c.store(THREADS, 0).unwrap_err().0, FaultClass::UnsupportedFunctionality);
        assert_eq!(c.load(END - 1), Ok(0));
        assert_eq!(c.load(END).unwrap_err().0, FaultClass::MissingSpecification);
        assert_eq!(c.store(u32::MAX, 0).unwrap_err().0, FaultClass::MissingSpecification);
        // 0xDB0 bytes in all: 2 * 896 + 896 + 3 * 272.
        assert_eq!(END * 4, 0xDB0);
    }

    #[test]
    fn a_thread_writes_the_bank_that_its_state_id_names() {
        let mut c = Config::default();
        c.set_thread(1, 0, 0xFFFF).unwrap();
        c.set(1, 90, 7).unwrap();
        c.set(0, 90, 8).unwrap();
        assert_eq!((c.load(90), c.load(BANK + 90)), (Ok(8), Ok(7)));
        assert_eq!(c.load(THREADS + THREAD), Ok(0xFFFF), "cores see a thread's words");
        assert_eq!(c.set_thread(0, THREAD, 0), Err(OUTSIDE));
        assert_eq!((c.get(0, BANK), c.set(0, BANK, 0)), (Err(OUTSIDE), Err(OUTSIDE)));
        c.set_four(0, 91, [1, 2, 3, 4]).unwrap();
        assert_eq!([88, 89, 90, 91].map(|i| c.load(i)), [1, 2, 3, 4].map(Ok));
        assert_eq!((Config::thcon_index(115), Config::thcon_index(116)), (Ok(179), Err(OUTSIDE)));
    }

    #[test]
    fn writing_state_reset_clears_a_bank_but_a_byte_write_does_not() {
        let mut c = Config::default();
        for i in [3, 4, 179, 180] {
            c.modify_byte(0, i, 1, 0x0F, 0xFF).unwrap();
            assert_eq!(c.load(i), Ok(0x0F00));
        }
        c.store(4, 0).unwrap();
        assert_eq!([3, 4, 179, 180].map(|i| c.load(i)), [0, 0, 0, 0x0F00].map(Ok));
    }

    #[test]
    fn shift_mask_computes_what_the_page_says() {
        // Masked-in field: eight bits of scratch 1 go to bits 15..8 (rotation right by 24).
        let run = |keep: u32, op| {
            let insn = Cfgshiftmask::build().mask_mode(keep != 0).alu_mode(op).mask_width(7).rotate_amt(24);
            let insn = Cfgshiftmask::decode(insn.scratch_index(1).cfg_index(50).word()).unwrap();
            let mut c = Config::default();
            c.store(210, 0x1234_56A5).unwrap();
            c.store(50, 0xFFFF_33FF).unwrap();
            c.shift_mask(0, insn).unwrap();
            c.load(50).unwrap()
        };
        assert_eq!(run(0, 0), 0xFFFF_A5FF);
        assert_eq!(run(1, 0), 0xFFFF_B7FF);
        assert_eq!(run(1, 1), 0x0000_2100);
        assert_eq!(run(1, 2), 0xFFFF_96FF);
        assert_eq!(run(1, 3), 0xFFFF_D8FF);
        assert_eq!(run(1, 4), 0xFFFF_7BFF);
        assert_eq!(run(1, 5), 0xFFFF_12FF);
        assert_eq!(run(1, 6), !0xFFFF_96FF);
        assert_eq!(run(1, 7), 0xFFFE_8EFF);
    }
}
