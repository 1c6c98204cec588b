//! The device file on Linux: `open`, `ioctl`, `mmap`, and accesses to mapped bytes. All unsafe code
//! of the crate is here.

use crate::{Kernel, Mapped, Pages};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use tilework_abi::kmd::Request;

/// An open device file.
#[derive(Debug)]
pub struct System {
    file: File,
}

impl System {
    /// Opens the device, for this process alone (`O_EXCL`, from tt-kmd 2.10 on; earlier versions do
    /// not look at it), at once or not at all (`O_NONBLOCK`), by a client that asks for power
    /// itself (`O_APPEND`).
    ///
    /// # Errors
    /// What the system says; `EAGAIN` if others have it open.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_EXCL | libc::O_NONBLOCK | libc::O_APPEND | libc::O_CLOEXEC;
        OpenOptions::new().read(true).write(true).custom_flags(flags).open(path).map(|file| Self { file })
    }

    /// `mmap` of what `fd` names.
    fn mmap(len: usize, flags: i32, fd: i32, offset: u64) -> io::Result<Bytes> {
        let offset = libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses addresses that nothing has; a failure is looked for.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, rights, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Bytes { start: start.cast(), len })
    }
}

impl Kernel for System {
    type Mapping = Bytes;

    fn request(&mut self, request: Request, argument: &mut [u8]) -> io::Result<()> {
        let (fd, command) = (self.file.as_raw_fd(), request.command());
        // SAFETY: the driver reads and writes the request's structures, which callers lay out in
        // `argument` with their whole sizes (`tilework_abi::kmd`).
        let result = unsafe { libc::ioctl(fd, command.into(), argument.as_mut_ptr()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn map(&mut self, offset: u64, len: usize) -> io::Result<Bytes> {
        Self::mmap(len, libc::MAP_SHARED, self.file.as_raw_fd(), offset)
    }

    fn memory(&mut self, len: usize, pages: Pages) -> io::Result<Bytes> {
        /// `MAP_HUGE_1GB` (Linux `mman.h`): the size as a power of two.
        const HUGE_1G: i32 = 30 << libc::MAP_HUGE_SHIFT;
        let huge = match pages {
            Pages::Usual => 0,
            Pages::Huge => libc::MAP_HUGETLB | HUGE_1G,
        };
        let bytes = Self::mmap(len, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE | huge, -1, 0)?;
        // A child that copies on write would take the pages that the device writes away from this
        // process.
        // SAFETY: the range was just mapped.
        unsafe { libc::madvise(bytes.start.cast(), len, libc::MADV_DONTFORK) };
        Ok(bytes)
    }
}

/// Mapped bytes.
#[derive(Debug)]
pub struct Bytes {
    start: *mut u8,
    len: usize,
}

/// Bytes of an access that is not split, the largest first: an entry of a queue has two, a register
/// four, and more than eight nobody promises to carry in one piece.
const SIZES: [usize; 4] = [8, 4, 2, 1];

impl Bytes {
    /// Where `len` bytes from `at` on begin.
    fn at(&self, at: usize, len: usize) -> *mut u8 {
        let inside = at.checked_add(len).is_some_and(|end| end <= self.len);
        assert!(inside, "{len} bytes at {at:#x} of a mapping of {:#x}", self.len);
        self.start.wrapping_add(at)
    }
}

/// The length of the next access of `left` bytes at `at`: the largest that is aligned.
fn step(at: *mut u8, left: usize) -> usize {
    SIZES.into_iter().find(|&size| at.addr().is_multiple_of(size) && left >= size).unwrap_or(1)
}

impl Mapped for Bytes {
    fn address(&self) -> u64 {
        self.start.expose_provenance() as u64
    }

    fn read(&self, at: usize, out: &mut [u8]) {
        let mut from = self.at(at, out.len());
        let mut rest = out;
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(step(from, rest.len()));
            // SAFETY: `at` has checked that the bytes are this mapping's; `step` that they are
            // aligned. They may change meanwhile, which volatile accesses allow for.
            unsafe {
                match now.len() {
                    8 => now.copy_from_slice(&from.cast::<u64>().read_volatile().to_ne_bytes()),
                    4 => now.copy_from_slice(&from.cast::<u32>().read_volatile().to_ne_bytes()),
                    2 => now.copy_from_slice(&from.cast::<u16>().read_volatile().to_ne_bytes()),
                    _ => now[0] = from.read_volatile(),
                }
            }
            from = from.wrapping_add(now.len());
            rest = later;
        }
        // What is read next was written by the other side later.
        fence(Ordering::Acquire);
    }

    fn write(&self, at: usize, data: &[u8]) {
        // What was written to other memory before is there before this.
        fence(Ordering::Release);
        let mut to = self.at(at, data.len());
        let mut rest = data;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step(to, rest.len()));
            // SAFETY: as in `read`.
            unsafe {
                match *now {
                    [a, b, c, d, e, f, g, h] => {
                        to.cast::<u64>().write_volatile(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
                    }
                    [a, b, c, d] => to.cast::<u32>().write_volatile(u32::from_ne_bytes([a, b, c, d])),
                    [a, b] => to.cast::<u16>().write_volatile(u16::from_ne_bytes([a, b])),
                    _ => to.write_volatile(now[0]),
                }
            }
            to = to.wrapping_add(now.len());
            rest = later;
        }
    }

    fn flush(&self) {
        // On x86-64 this is `mfence` or a locked instruction: both wait for combined writes.
        fence(Ordering::SeqCst);
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: the range is this value's, and nobody has a reference to it.
        unsafe { libc::munmap(self.start.cast(), self.len) };
    }
}
