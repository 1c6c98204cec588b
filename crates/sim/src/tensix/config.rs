//! Backend configuration, as the cores see it.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/BackendConfiguration.md: two banks of `Config`, a write-only view of both, and
//! one bank of `ThreadConfig` per thread, which cores can only read. Sizes and indices are those of the public `cfg_defines.h` for
//! Blackhole. Fields whose effect belongs to the coprocessor are storage until it is built; invalidating the instruction caches
//! has no effect, because the simulated cores never execute stale code.

use crate::FaultClass;

/// Words of one `Config` bank (`CFG_STATE_SIZE` is 56).
const BANK: u32 = 56 * 4;
/// From here on a register exists once (`GLOBAL_CFGREG_BASE_ADDR32`).
const GLOBAL: u32 = 180;
/// Words of one thread's configuration (`THD_STATE_SIZE`).
const THREAD: u32 = 68;
/// First word of the write-only view.
const DUAL: u32 = 2 * BANK;
/// First word of the threads' configuration.
const THREADS: u32 = 3 * BANK;
/// End.
const END: u32 = THREADS + 3 * THREAD;

/// Why an access is refused.
pub(super) type Refusal = (FaultClass, &'static str);

/// The configuration of a tile.
#[derive(Debug)]
pub(super) struct Config {
    banks: [[u32; BANK as usize]; 2],
}

impl Default for Config {
    fn default() -> Self {
        Self { banks: [[0; BANK as usize]; 2] }
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
            // Only SETC16 writes these, and no coprocessor instruction is built.
            THREADS..END => Ok(0),
            _ => Err((FaultClass::MissingSpecification, "a load behind the backend configuration")),
        }
    }

    /// Stores a word.
    pub(super) fn store(&mut self, index: u32, value: u32) -> Result<(), Refusal> {
        let (both, bank, word) = match index {
            0..DUAL => (index % BANK >= GLOBAL, index / BANK, index % BANK),
            DUAL..THREADS => (true, 0, index - DUAL),
            THREADS..END => {
                let what = "a store to ThreadConfig, which only SETC16 can write";
                return Err((FaultClass::UnsupportedFunctionality, what));
            }
            _ => return Err((FaultClass::MissingSpecification, "a store behind the backend configuration")),
        };
        if both {
            self.banks[0][word as usize] = value;
            self.banks[1][word as usize] = value;
        } else {
            self.banks[bank as usize][word as usize] = value;
        }
        Ok(())
    }
}

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
}
