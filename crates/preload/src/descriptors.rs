//! Descriptors of the device, their requests and mappings.

use crate::maps::{self, is_card};
use crate::real::{raw, real, set_errno};
use crate::state::{self, Locked, OpenFile, Seat, State};
use crate::{clock, paths, process, tell, watch};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tilework_kmd::{OpenFlags, Refusal};

/// Descriptors that can be the device's; a process has fewer, unless its limit was raised.
const COUNT: usize = 1 << 16;
/// By descriptor: zero, or one more than what stands for its open file.
static FILES: [AtomicU32; COUNT] = [const { AtomicU32::new(0) }; COUNT];
/// How often somebody looks whether it need not wait any more.
const TURN: Duration = Duration::from_millis(1);

/// The open file of a descriptor.
fn file_of(fd: i32) -> Option<OpenFile> {
    let slot = FILES.get(usize::try_from(fd).ok()?)?;
    slot.load(Ordering::Relaxed).checked_sub(1).map(OpenFile::of)
}

/// Whether a descriptor is the device's.
pub(crate) fn is_card_file(fd: i32) -> bool {
    file_of(fd).is_some()
}

fn set(fd: i32, file: Option<OpenFile>) {
    if let Some(slot) = usize::try_from(fd).ok().and_then(|fd| FILES.get(fd)) {
        slot.store(file.map_or(0, |file| file.number() + 1), Ordering::Relaxed);
    }
}

fn failed(number: i32) -> i32 {
    set_errno(number);
    -1
}

fn real_close(fd: i32) -> i32 {
    // SAFETY: the caller's descriptor.
    unsafe { real!(close as unsafe extern "C" fn(i32) -> i32)(fd) }
}

/// A file was opened as `fd`: if it is the device file, the driver opens the device.
pub(crate) fn opened(fd: i32, flags: i32) -> i32 {
    // SAFETY: a status that is all zero is valid; the descriptor is the caller's.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        if raw(libc::SYS_fstat, [fd as usize, (&raw mut status).expose_provenance(), 0, 0, 0, 0]) != 0 {
            return fd;
        }
        status
    };
    let Some(number) = paths::device(status.st_dev, status.st_ino) else { return fd };
    if flags & libc::O_PATH != 0 {
        return fd;
    }
    if usize::try_from(fd).map_or(true, |fd| fd >= COUNT) {
        tell::say(&format!("descriptor {fd} is too large for the card; {COUNT} was expected to be enough"));
        real_close(fd);
        return failed(libc::EMFILE);
    }
    let wanted = OpenFlags {
        exclusive: flags & libc::O_EXCL != 0,
        nonblocking: flags & libc::O_NONBLOCK != 0,
        knows_power: flags & libc::O_APPEND != 0,
    };
    loop {
        let mut state = state::lock_or_make(number);
        let State { cards, descriptors, .. } = &mut *state;
        let Some(Seat { card, driver }) = cards[number].as_mut() else { return failed(libc::EIO) };
        match driver.open(card, wanted) {
            Ok(file) => {
                let file = OpenFile { card: number, file };
                descriptors.insert(file.number(), 1);
                set(fd, Some(file));
                return fd;
            }
            Err(Refusal::Error(errno)) => {
                drop(state);
                real_close(fd);
                return failed(errno.number());
            }
            Err(Refusal::Wait) => wait(state),
        }
    }
}

/// Waits for another thread.
fn wait(state: Locked) {
    drop(state);
    let _inside = clock::Inside::enter();
    std::thread::sleep(TURN);
}

/// A descriptor of `file` is closed.
fn closed(file: OpenFile) {
    let Some(mut state) = state::lock(true) else { return };
    let State { cards, descriptors, user, .. } = &mut *state;
    let Some(Seat { card, driver }) = cards[file.card].as_mut() else { return };
    let Some(count) = descriptors.get_mut(&file.number()) else { return };
    *count -= 1;
    if *count == 0 {
        descriptors.remove(&file.number());
        driver.close(card, user, file.file);
    }
}

/// A second descriptor stands for what `fd` does.
fn duplicated(fd: i32, new: i32) {
    if new < 0 || fd == new {
        return;
    }
    let replaced = file_of(new);
    let file = file_of(fd);
    if let Some(file) = file
        && let Some(mut state) = state::lock(true)
    {
        *state.descriptors.entry(file.number()).or_insert(0) += 1;
    }
    set(new, file);
    if let Some(replaced) = replaced {
        closed(replaced);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(fd: i32) -> i32 {
    if let Some(file) = file_of(fd) {
        set(fd, None);
        closed(file);
    }
    real_close(fd)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close_range(first: u32, last: u32, flags: i32) -> i32 {
    const CLOEXEC: i32 = 4;
    if flags & CLOEXEC == 0 {
        for fd in first..=last.min(COUNT as u32 - 1) {
            if let Some(file) = file_of(fd as i32) {
                set(fd as i32, None);
                closed(file);
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { real!(close_range as unsafe extern "C" fn(u32, u32, i32) -> i32)(first, last, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn dup(fd: i32) -> i32 {
    // SAFETY: the caller's promise.
    let new = unsafe { real!(dup as unsafe extern "C" fn(i32) -> i32)(fd) };
    duplicated(fd, new);
    new
}
#[unsafe(no_mangle)]
unsafe extern "C" fn dup2(fd: i32, to: i32) -> i32 {
    // SAFETY: the caller's promise.
    let new = unsafe { real!(dup2 as unsafe extern "C" fn(i32, i32) -> i32)(fd, to) };
    duplicated(fd, new);
    new
}
#[unsafe(no_mangle)]
unsafe extern "C" fn dup3(fd: i32, to: i32, flags: i32) -> i32 {
    // SAFETY: the caller's promise.
    let new = unsafe { real!(dup3 as unsafe extern "C" fn(i32, i32, i32) -> i32)(fd, to, flags) };
    duplicated(fd, new);
    new
}

macro_rules! fcntls {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: i32, command: i32, argument: usize) -> i32 {
            // SAFETY: the caller's promise; the argument counts if the command has one.
            let result = unsafe { real!($name as unsafe extern "C" fn(i32, i32, usize) -> i32)(fd, command, argument) };
            if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                duplicated(fd, result);
            }
            result
        }
    )* };
}
fcntls! { fcntl; fcntl64; }

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(fd: i32, request: usize, argument: usize) -> i32 {
    type Ioctl = unsafe extern "C" fn(i32, usize, usize) -> i32;
    let Some(file) = file_of(fd) else {
        // SAFETY: the caller's promise.
        return unsafe { real!(ioctl as Ioctl)(fd, request, argument) };
    };
    loop {
        let Some(mut state) = state::lock(true) else { return orphan() };
        let State { cards, user, .. } = &mut *state;
        let Some(Seat { card, driver }) = cards[file.card].as_mut() else { return orphan() };
        // The kernel takes the lower half of the number, too.
        let result = clock::hide(|| driver.request(card, user, file.file, request as u32, argument as u64));
        match result {
            Ok(()) => return 0,
            Err(Refusal::Error(errno)) => {
                drop(state);
                return failed(errno.number());
            }
            Err(Refusal::Wait) => wait(state),
        }
    }
}

/// What a descriptor of the parent's is worth.
fn orphan() -> i32 {
    if state::is_orphan() {
        tell::say("a forked process has used its parent's descriptor of the card: it gets EIO; it may open the device");
    }
    failed(libc::EIO)
}

unsafe fn map(at: *mut c_void, len: usize, protection: i32, flags: i32, fd: i32, offset: i64) -> *mut c_void {
    let fixed = flags & (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) != 0;
    let file = if flags & libc::MAP_ANONYMOUS == 0 { file_of(fd) } else { None };
    let Some(file) = file else {
        if fixed && is_card(at.addr(), len) && process::is_active() {
            unmap_card(at.expose_provenance(), len);
        }
        if fixed {
            give_up(at.addr(), len);
        }
        // Memory for a card to reach, which a driver wants to have at once. This card needs only
        // what it uses, and that is there when it does.
        let fills = flags & libc::MAP_ANONYMOUS != 0 && flags & libc::MAP_LOCKED == 0 && state::exists();
        let flags = if fills { flags & !libc::MAP_POPULATE } else { flags };
        let found = maps::real_mmap(at.expose_provenance(), len, protection, flags, fd, offset);
        return found.map_or(libc::MAP_FAILED, std::ptr::with_exposed_provenance_mut);
    };
    let refuse = |number| {
        set_errno(number);
        libc::MAP_FAILED
    };
    let Some(mut state) = state::lock(true) else { return refuse(libc::EIO) };
    let len = len.next_multiple_of(4096);
    if len == 0 || offset < 0 || offset % 4096 != 0 {
        return refuse(libc::EINVAL);
    }
    let State { cards, maps, .. } = &mut *state;
    let Some(Seat { driver, .. }) = cards[file.card].as_mut() else { return refuse(libc::EIO) };
    let mapping = match driver.mapping(file.file, offset as u64, len as u64) {
        Ok(mapping) => mapping,
        Err(errno) => {
            drop(state);
            return refuse(errno.number());
        }
    };
    match maps.make((at.expose_provenance(), fixed), len, file, mapping, protection) {
        Some(start) => {
            driver.mapped(file.file, mapping.target);
            std::ptr::with_exposed_provenance_mut(start)
        }
        None => refuse(libc::ENOMEM),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    at: *mut c_void,
    len: usize,
    protection: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { map(at, len, protection, flags, fd, offset) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap64(
    at: *mut c_void,
    len: usize,
    protection: i32,
    flags: i32,
    fd: i32,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { map(at, len, protection, flags, fd, offset) }
}

/// Takes the card's mappings out of a range. `None` if there are none; whether that was possible.
fn unmap_card(at: usize, len: usize) -> Option<bool> {
    let mut state = state::lock(true)?;
    let State { cards, maps, user, .. } = &mut *state;
    if !maps.touches(at, len) {
        return None;
    }
    let Ok(gone) = maps.remove(at, len) else { return Some(false) };
    for map in gone {
        if let Some(Seat { card, driver }) = cards[map.file.card].as_mut() {
            driver.unmapped(card, user, map.file.file, map.mapping.target);
        }
    }
    Some(true)
}

/// Pinned pages that the program changes by itself are not watched any more.
fn give_up(at: usize, len: usize) {
    if watch::is_watched(at, len)
        && !clock::is_inside()
        && let Some(_state) = state::lock(true)
    {
        watch::give_up(at, len);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(at: *mut c_void, len: usize) -> i32 {
    let start = at.expose_provenance();
    if process::is_active() && !clock::is_inside() && maps::may_be_mapped(start, len) {
        match unmap_card(start, len.next_multiple_of(4096)) {
            Some(true) => return 0,
            Some(false) => return failed(libc::EINVAL),
            None => {}
        }
    }
    give_up(start, len);
    maps::real_munmap(start, len)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(at: *mut c_void, len: usize, protection: i32) -> i32 {
    if is_card(at.addr(), len) && state::lock(true).is_some_and(|state| state.maps.overlaps(at.addr(), len)) {
        // The pages of a BAR stay without rights here: each access is to trap.
        return 0;
    }
    give_up(at.addr(), len);
    // SAFETY: the caller's promise.
    unsafe { real!(mprotect as unsafe extern "C" fn(*mut c_void, usize, i32) -> i32)(at, len, protection) }
}
