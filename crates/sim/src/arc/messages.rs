//! The message queues, through which a driver sends requests to the ARC's firmware.
//!
//! Four queues of four entries (tt-umd: for the kernel driver, monitoring, tools and applications)
//! lie one after the other in shared memory. Each has a header of eight words, four requests and
//! four answers of eight words. Pointers count modulo twice the size, so that equal means empty. A
//! driver writes a request, advances the write pointer and writes the doorbell; the firmware
//! answers every request of every queue for which there is room. Follows tt-zephyr-platforms
//! `msgqueue.c`, `aiclk_ppm.c`, `bh_power.c` and `asic_state.c`.

use super::Registers;
use tilework_abi::arc::QUEUE_CONTROL;
use tilework_abi::board::AICLK_MHZ;

/// The first queue, after the control block: its address, then entries and (from bit 8)
/// number of queues.
const QUEUES: u64 = QUEUE_CONTROL + 0x10;
const QUEUE_COUNT: u64 = 4;
const ENTRIES: u32 = 4;
/// Words of a request, an answer and a header.
const WORDS: usize = 8;
const ENTRY_BYTES: u64 = 4 * WORDS as u64;
const QUEUE_BYTES: u64 = ENTRY_BYTES * (1 + 2 * ENTRIES as u64);

/// Words of a queue's header: the first two are the driver's, the others the firmware's.
const REQUEST_WRITE: u64 = 0;
const ANSWER_READ: u64 = 1;
const REQUEST_READ: u64 = 4;
const ANSWER_WRITE: u64 = 5;
const LAST_SERIAL: u64 = 6;

/// Codes of messages (tt-zephyr-platforms `smc_msg.h`, tt-umd `blackhole_arc.hpp`).
pub(super) mod code {
    pub(crate) const REPORT_SCRATCH_ONLY: u8 = 0x16;
    pub(crate) const POWER_SETTING: u8 = 0x21;
    pub(crate) const FORCE_AICLK: u8 = 0x33;
    pub(crate) const GET_AICLK: u8 = 0x34;
    pub(crate) const AICLK_GO_BUSY: u8 = 0x52;
    pub(crate) const AICLK_GO_LONG_IDLE: u8 = 0x54;
    pub(crate) const TEST: u8 = 0x90;
    pub(crate) const ASIC_STATE0: u8 = 0xA0;
    pub(crate) const ASIC_STATE3: u8 = 0xA3;
    pub(crate) const SET_LAST_SERIAL: u8 = 0xBE;
    pub(crate) const SET_WDT_TIMEOUT: u8 = 0xC1;
}

/// The first word of the answer to a message that the firmware does not know.
pub(super) const UNKNOWN: u32 = 0xFF;
/// Likewise, to a message that must be sent through the scratch registers.
const SCRATCH_ONLY: u32 = 0xFE;
/// Exit code of a message whose arguments are refused.
const REFUSED: u32 = 1;
/// AI clock of an idle chip, in MHz (tt-umd `AICLK_IDLE_VAL`).
pub(super) const AICLK_IDLE_MHZ: u32 = 800;
/// AI clocks that may be forced, in MHz (`aiclk_ppm.c`).
const AICLK_FORCED: core::ops::RangeInclusive<u32> = 200..=1400;
/// Control mode of a forced AI clock, in the answer to `GET_AICLK` (`aiclk_ppm.c`,
/// `ClockControlMode`).
const CLOCK_FORCED: u32 = 2;
const CLOCK_UNFORCED: u32 = 3;

/// Power state that messages have requested. Only telemetry shows it: simulated time always runs at
/// the busy clock, and nothing is switched off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Power {
    /// The last of the two AI clock messages was the one for a busy chip.
    busy_message: bool,
    /// The last power setting asked for the busy clock.
    busy_setting: bool,
    forced: Option<u32>,
}

impl Power {
    pub(super) fn new() -> Self {
        Self { busy_message: false, busy_setting: false, forced: None }
    }
    /// True when the highest AI clock is requested.
    pub(super) fn busy(&self) -> bool {
        self.busy_message || self.busy_setting
    }
    /// The AI clock in MHz.
    pub(super) fn aiclk(&self) -> u32 {
        self.forced.unwrap_or(if self.busy() { AICLK_MHZ } else { AICLK_IDLE_MHZ })
    }

    /// Answers a message that concerns no queue: the exit code is the answer's first word.
    fn answer(&mut self, request: &[u32; WORDS]) -> [u32; WORDS] {
        let mut answer = [0; WORDS];
        match request[0] as u8 {
            code::AICLK_GO_BUSY => self.busy_message = true,
            code::AICLK_GO_LONG_IDLE => self.busy_message = false,
            code::FORCE_AICLK => match request[1] {
                0 => self.forced = None,
                mhz if AICLK_FORCED.contains(&mhz) => self.forced = Some(mhz),
                _ => answer[0] = REFUSED,
            },
            code::GET_AICLK => {
                answer[1] = self.aiclk();
                answer[2] = if self.forced.is_some() { CLOCK_FORCED } else { CLOCK_UNFORCED };
            }
            code::POWER_SETTING => {
                // Bits 8..11: how many of the flags from bit 16 are valid; the first is the AI
                // clock.
                let valid = request[0] >> 8 & 0xF;
                if valid > 0 {
                    self.busy_setting = request[0] >> 16 & 1 != 0;
                }
            }
            // There is no watchdog to set, and both states look the same from outside.
            code::SET_WDT_TIMEOUT | code::ASIC_STATE0 | code::ASIC_STATE3 => {}
            code::REPORT_SCRATCH_ONLY => answer[0] = SCRATCH_ONLY,
            _ => answer[0] = UNKNOWN,
        }
        answer
    }
}

/// The words of the control block.
pub(super) fn control() -> [u32; 4] {
    [QUEUES as u32, ENTRIES | (QUEUE_COUNT as u32) << 8, 0, 0]
}

/// Answers the requests in the queues.
pub(super) fn process(registers: &mut Registers) {
    for queue in (0..QUEUE_COUNT).map(|i| QUEUES + i * QUEUE_BYTES) {
        while answer_next(registers, queue) {}
    }
}

/// Answers the next request of `queue`. False when there is none, no room for an answer, or
/// inconsistent pointers.
fn answer_next(registers: &mut Registers, queue: u64) -> bool {
    const WRAP: u32 = 2 * ENTRIES;
    let header = |registers: &Registers, word: u64| registers.csm(queue + 4 * word);
    let (written, read) = (header(registers, REQUEST_WRITE), header(registers, REQUEST_READ));
    let (answered, taken) = (header(registers, ANSWER_WRITE), header(registers, ANSWER_READ));
    if [written, read, answered, taken].iter().any(|&pointer| pointer >= WRAP)
        || written == read
        || (answered + WRAP - taken) % WRAP == ENTRIES
    {
        return false;
    }
    let entry = |pointer: u32, first: u32| queue + ENTRY_BYTES * u64::from(1 + first + pointer % ENTRIES);
    let from = entry(read, 0);
    let request: [u32; WORDS] = std::array::from_fn(|i| registers.csm(from + 4 * i as u64));
    let serial = header(registers, LAST_SERIAL);
    let (answer, serial) = match request[0] as u8 {
        code::SET_LAST_SERIAL => ([0; WORDS], request[1]),
        code::TEST => {
            let next = serial.wrapping_add(1);
            ([0, request[1].wrapping_add(1), next, 0, 0, 0, 0, 0], next)
        }
        _ => (registers.power.answer(&request), serial.wrapping_add(1)),
    };
    let to = entry(answered, ENTRIES);
    for (i, word) in (0u64..).zip(answer) {
        registers.set_csm(to + 4 * i, word);
    }
    registers.set_csm(queue + 4 * REQUEST_READ, (read + 1) % WRAP);
    registers.set_csm(queue + 4 * ANSWER_WRITE, (answered + 1) % WRAP);
    registers.set_csm(queue + 4 * LAST_SERIAL, serial);
    true
}
