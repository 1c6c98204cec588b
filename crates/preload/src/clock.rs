//! The chip's time, and what the program sees of the host's.
//!
//! Accesses take their time on the chip by themselves. Beyond that the chip's time moves when the
//! program sleeps, yields or looks at the clock, and, with the lazy clock, when it polls pinned
//! memory (`polls`, `watch`). With the free clock it always runs.
//!
//! The thread of the lazy clock moves no time. It has the pinned pages watched anew when the
//! program has not touched the card for [`SILENCE`]: it may poll one that it used as data before.
//!
//! One access can take the simulation longer than a program allows for (tt-umd: 2 ms). What is
//! longer than [`NOTICED`] does not count: the clocks that programs measure limits by stand still.

use crate::real::real;
use crate::{ahead, client, state, watch};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

/// Cycles of the AI clock in a microsecond.
const CYCLES_US: u64 = 1350;
/// How long a program is silent before the lazy clock moves.
const SILENCE: Duration = Duration::from_millis(1);
/// The longest time between two looks at a silent program, as a multiple of it.
const SILENCES: u32 = 64;
/// Cycles that one step of a clock takes at most, and between two looks at who waits.
const STEP: u32 = 2_000;
/// Cycles that pass when the program looks at the clock or yields.
const LOOK: u32 = 100;
/// The most cycles that pass for one sleep: 10 ms.
const SLEEP_MOST: u64 = 10_000 * CYCLES_US;
/// Of a sleep so many microseconds pass in full, and of what is beyond one in [`BEYOND`]: a program
/// that sleeps often, as libtt does to compare clocks, wants to give the processor away.
const SLEEP_FULL: u64 = 100;
const BEYOND: u64 = 10;
/// An access that takes longer does not count beyond it, in ns.
const NOTICED: i64 = 300_000;

/// Looks at the clock between two accesses with which the program measures these: they take no time
/// on the chip. Who looks more often waits for something.
pub(crate) const MEASURES: u32 = 2;

thread_local! {
    /// How deep this thread is inside of this library.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Looks of this thread at the clock since its last access to the card.
    static LOOKS: Cell<u32> = const { Cell::new(MEASURES) };
    /// Where this thread went on behind its last look at the clock, until it accesses the card.
    static BEHIND: Cell<u64> = const { Cell::new(0) };
}

/// This thread has looked at the clock so often since its last access.
pub(crate) fn has_looked(looks: u32) {
    LOOKS.set(looks);
}

/// This thread looks at the clock, and goes on at `back`.
pub(crate) fn looked_at(back: u64) {
    BEHIND.set(back);
}

/// Where it went on behind its last look, if that was the last thing that it did to the card.
pub(crate) fn last_look() -> Option<u64> {
    Some(BEHIND.replace(0)).filter(|&back| back != 0)
}

/// Marks this thread as inside of the library.
pub(crate) struct Inside(());

impl Inside {
    pub(crate) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
    /// Instead of dropping one.
    pub(crate) fn leave() {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        Self::leave();
    }
}

/// Whether this thread is inside of the library.
pub(crate) fn is_inside() -> bool {
    DEPTH.get() > 0
}

/// How the chip's time moves besides accesses.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    Lazy,
    Free,
}

fn chosen() -> Clock {
    static CLOCK: OnceLock<Clock> = OnceLock::new();
    *CLOCK.get_or_init(|| {
        if std::env::var_os("TILEWORK_CARD_CLOCK").is_some_and(|word| word == "free") {
            Clock::Free
        } else {
            Clock::Lazy
        }
    })
}

/// Whether polls of memory move the time.
pub(crate) fn is_lazy() -> bool {
    chosen() == Clock::Lazy
}

/// Starts the thread of the clock.
pub(crate) fn start() {
    let clock = chosen();
    let run = move || {
        // It never ends: the process does.
        let _inside = Inside::enter();
        match clock {
            Clock::Lazy => lazy(),
            Clock::Free => free(),
        }
    };
    let started = std::thread::Builder::new().name("tilework-clock".into()).spawn(run);
    if let Err(error) = started {
        crate::tell::say(&format!("the card has no clock: {error}"));
    }
}

fn lazy() {
    let mut before = u64::MAX;
    let mut turns = 1;
    while state::exists() {
        std::thread::sleep(SILENCE * turns);
        let Some(mut state) = state::try_lock() else { continue };
        let accesses = state.touched();
        if accesses != before || !state.is_open() || state.is_quiet() {
            (before, turns) = (accesses, 1);
            continue;
        }
        // The program may poll memory that it has also used as data: it traps once more.
        watch::arm();
        turns = (turns * 2).min(SILENCES);
    }
}

fn free() {
    while state::exists() {
        let idle = state::try_lock().is_none_or(|mut state| {
            if !state.is_open() {
                return true;
            }
            state.clock(STEP);
            state.is_quiet()
        });
        if idle {
            std::thread::sleep(Duration::from_micros(50));
        } else {
            std::thread::yield_now();
        }
    }
}

/// Lets cycles pass for a thread of the program, unless another has the card.
fn pass(cycles: u32) {
    if is_inside() || !state::exists() {
        return;
    }
    // Drivers look at the clock more often than they touch the card.
    if state::is_known_quiet() {
        return;
    }
    if let Some(mut state) = state::try_lock() {
        if state.is_open() && !state.is_quiet() {
            state.clock(cycles);
        } else {
            state.stays_quiet();
        }
    }
}

/// The time of a look at the clock passes, unless the program measures an access by it.
fn pass_look() {
    let looks = LOOKS.get().saturating_add(1);
    LOOKS.set(looks);
    if looks > MEASURES {
        pass(LOOK);
    }
}

/// Lets the time of a sleep pass.
fn slept(time: Duration) {
    let asleep = time.as_micros() as u64;
    let counts = asleep.min(SLEEP_FULL) + asleep.saturating_sub(SLEEP_FULL) / BEYOND;
    let mut left = counts.saturating_mul(CYCLES_US).min(SLEEP_MOST);
    while left > 0 && state::exists() && !is_inside() {
        let Some(mut state) = state::try_lock() else { return };
        if !state.is_open() || state.is_quiet() {
            return;
        }
        let step = left.min(u64::from(STEP) * 10);
        state.clock(step as u32);
        left -= step;
    }
}

/// Nanoseconds that accesses took and the program does not see.
static HIDDEN: AtomicI64 = AtomicI64::new(0);
/// The latest time that a thread was told, by clock.
static TOLD: [AtomicI64; 2] = [AtomicI64::new(0), AtomicI64::new(0)];

/// Finds the C library's function, before a handler needs it.
pub(crate) fn prepare() {
    host_time();
}

/// When the access began that a trap carries out now, in ns. Used under the card's lock.
static BEGAN: AtomicI64 = AtomicI64::new(0);

/// A time as nanoseconds.
pub(crate) const fn nanoseconds(time: &libc::timespec) -> i64 {
    time.tv_sec * SECOND + time.tv_nsec
}

/// The host's monotonic time.
fn host_time() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place of this function's; this clock is always there.
    unsafe { real!(clock_gettime as ClockGettime)(libc::CLOCK_MONOTONIC, &raw mut now) };
    nanoseconds(&now)
}

/// Hides what the access took too long; the next one begins.
fn access_ends(now: i64) {
    let took = now - BEGAN.swap(now, Ordering::Relaxed);
    if took > NOTICED {
        HIDDEN.fetch_add(took - NOTICED, Ordering::Relaxed);
    }
}

/// Runs an access, and hides what it takes too long.
pub(crate) fn hide<R>(access: impl FnOnce() -> R) -> R {
    let _inside = Inside::enter();
    BEGAN.store(host_time(), Ordering::Relaxed);
    let result = access();
    access_ends(host_time());
    result
}

/// Runs what a look at the clock leads to, which has found the time that the access gets, as a
/// program sees it.
pub(crate) fn hide_from<R>(access: impl FnOnce(i64) -> R) -> R {
    let now = host_time();
    BEGAN.store(now, Ordering::Relaxed);
    let result = access(shown(0, now));
    access_ends(host_time());
    result
}

type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> i32;
type ClockNanosleep = unsafe extern "C" fn(libc::clockid_t, i32, *const libc::timespec, *mut libc::timespec) -> i32;
type Nanosleep = unsafe extern "C" fn(*const libc::timespec, *mut libc::timespec) -> i32;
type Yield = unsafe extern "C" fn() -> i32;

const SECOND: i64 = 1_000_000_000;

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, out: *mut libc::timespec) -> i32 {
    let real = real!(clock_gettime as ClockGettime);
    if is_inside() || !state::exists() || out.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { real(clock, out) };
    }
    pass_look();
    // SAFETY: the caller's promise.
    let result = unsafe { real(clock, out) };
    if result == 0 {
        // SAFETY: the caller's place, which was just written.
        show(clock, unsafe { &mut *out });
    }
    result
}

/// Takes what is hidden off a time that the program asked for.
fn show(clock: libc::clockid_t, out: &mut libc::timespec) {
    let index = match clock {
        libc::CLOCK_MONOTONIC => 0,
        libc::CLOCK_MONOTONIC_RAW => 1,
        _ => return,
    };
    let told = shown(index, nanoseconds(out));
    (out.tv_sec, out.tv_nsec) = (told / SECOND, told % SECOND);
}

/// What the program sees at the time `now` of the clock with that index.
fn shown(index: usize, now: i64) -> i64 {
    let hidden = HIDDEN.load(Ordering::Relaxed);
    if hidden == 0 {
        return now;
    }
    // It never goes back, whichever thread looks.
    TOLD[index].fetch_max(now - hidden, Ordering::Relaxed).max(now - hidden)
}

/// Nanoseconds of the monotonic clock, as the program sees it.
pub(crate) fn steady() -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place of this function's.
    unsafe { clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    nanoseconds(&now)
}

/// A function of this library's that tells the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// `clock_gettime`.
    Gettime,
    /// [`ahead::steady_now`].
    Steady,
}

/// Which of them begins at `rip`.
#[inline]
pub(crate) fn look_at(rip: usize) -> Option<Look> {
    if rip == ahead::steady_now as *const () as usize {
        Some(Look::Steady)
    } else if rip == clock_gettime as *const () as usize {
        Some(Look::Gettime)
    } else {
        None
    }
}

/// What a program that is being interpreted sees when it looks at `clock`: drivers measure each of
/// their accesses, between which the interpretation is not to end. `passes`: the chip's time moves.
/// `None`: the call is for the processor.
pub(crate) fn look(state: &mut state::State, clock: u64, passes: bool) -> Option<libc::timespec> {
    let clock = libc::clockid_t::try_from(clock).ok().filter(|&clock| clock >= 0)?;
    let real = real!(clock_gettime as ClockGettime);
    let mut out = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // One look at the host's clock is enough where the program looks at the same. It does so before
    // and after each access.
    let same = clock == libc::CLOCK_MONOTONIC && !passes;
    if !same {
        access_ends(host_time());
        if passes && !state.is_quiet() {
            state.clock(LOOK);
        }
    }
    // SAFETY: a place of this function's.
    if unsafe { real(clock, &raw mut out) } != 0 {
        return None;
    }
    if same {
        access_ends(nanoseconds(&out));
    }
    show(clock, &mut out);
    Some(out)
}

/// A time span of the program's.
fn span(time: *const libc::timespec) -> Duration {
    // SAFETY: null, or the caller's promise.
    match unsafe { time.as_ref() } {
        Some(time) => Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, SECOND - 1) as u32),
        None => Duration::ZERO,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn clock_nanosleep(
    clock: libc::clockid_t,
    flags: i32,
    time: *const libc::timespec,
    left: *mut libc::timespec,
) -> i32 {
    let real = real!(clock_nanosleep as ClockNanosleep);
    if is_inside() || !state::exists() || time.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { real(clock, flags, time, left) };
    }
    let absolute = flags & libc::TIMER_ABSTIME != 0;
    if !absolute {
        let rest = rest_of(span(time));
        // SAFETY: a time of this function's, and the caller's promise.
        return unsafe { real(clock, flags, &raw const rest, left) };
    }
    // SAFETY: the caller's promise: not null.
    let mut until = unsafe { *time };
    if clock == libc::CLOCK_MONOTONIC {
        let at = nanoseconds(&until) + HIDDEN.load(Ordering::Relaxed);
        (until.tv_sec, until.tv_nsec) = (at / SECOND, at % SECOND);
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place of this function's.
    if unsafe { real!(clock_gettime as ClockGettime)(clock, &raw mut now) } == 0 {
        let ahead = nanoseconds(&until) - nanoseconds(&now);
        slept(Duration::from_nanos(ahead.max(0) as u64));
    }
    // SAFETY: a time of this function's, and the caller's promise.
    unsafe { real(clock, flags, &raw const until, left) }
}

/// Lets the time of a sleep pass on the chip, and gives what is left of it on the host.
fn rest_of(sleep: Duration) -> libc::timespec {
    let start = Instant::now();
    slept(sleep);
    let rest = sleep.saturating_sub(start.elapsed());
    libc::timespec { tv_sec: rest.as_secs() as i64, tv_nsec: rest.subsec_nanos().into() }
}

/// The program sleeps by a system call that the kernel carries out: the time passes on the chip.
pub(crate) fn sleeps(time: usize) {
    if let Some(time) = load_time(time) {
        slept(span(&raw const time));
    }
}

/// The same for a sleep by `clock`, until a time if the flags say so.
pub(crate) fn sleeps_until(clock: usize, flags: usize, time: usize) {
    let Some(time) = load_time(time) else { return };
    if flags & libc::TIMER_ABSTIME as usize == 0 {
        return slept(span(&raw const time));
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place of this function's.
    if unsafe { real!(clock_gettime as ClockGettime)(clock as i32, &raw mut now) } == 0 {
        let ahead = nanoseconds(&time).saturating_sub(nanoseconds(&now));
        slept(Duration::from_nanos(ahead.max(0) as u64));
    }
}

/// A time in the program's memory.
fn load_time(at: usize) -> Option<libc::timespec> {
    let (seconds, part) = (client::load_word(at, 8)?, client::load_word(at.wrapping_add(8), 8)?);
    let (tv_sec, tv_nsec) = (seconds as i64, part as i64);
    // What the kernel will refuse does not sleep.
    ((0..=i64::MAX / SECOND - 1).contains(&tv_sec) && (0..SECOND).contains(&tv_nsec))
        .then_some(libc::timespec { tv_sec, tv_nsec })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn nanosleep(time: *const libc::timespec, left: *mut libc::timespec) -> i32 {
    let real = real!(nanosleep as Nanosleep);
    if is_inside() || !state::exists() || time.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { real(time, left) };
    }
    let rest = rest_of(span(time));
    // SAFETY: a time of this function's, and the caller's promise.
    unsafe { real(&raw const rest, left) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn usleep(time: u32) -> i32 {
    let rest = rest_of(Duration::from_micros(time.into()));
    // SAFETY: a time of this function's.
    unsafe { real!(nanosleep as Nanosleep)(&raw const rest, std::ptr::null_mut()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sched_yield() -> i32 {
    pass(LOOK);
    // SAFETY: no preconditions.
    unsafe { real!(sched_yield as Yield)() }
}
