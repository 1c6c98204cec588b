//! The record of what the program does to a card, for `--bundle`: `tilework_kmd::record` in a file
//! that the command has asked for. It grows as it is written, through a window of memory that is
//! mapped to it, so that it is whole however the process ends.

use crate::maps::{real_mmap, real_munmap};
use crate::real::raw;
use crate::tell;
use std::ffi::CString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Mutex, PoisonError};
use tilework_kmd::record::{Entry, MAGIC};

/// Bytes of the file that are mapped at a time.
const WINDOW: usize = 4 << 20;

/// A record that is being written.
pub(crate) struct Record(Mutex<File>);

/// The file, and where its next byte goes.
struct File {
    fd: usize,
    /// The mapped window, zero before the first and after a failure; where it is in the file.
    window: usize,
    start: usize,
    /// In the window.
    at: usize,
    failed: bool,
}

impl Record {
    /// The record of card `number`, if the command wants one.
    pub(crate) fn wanted(number: usize) -> Option<Self> {
        let folder = std::env::var_os("TILEWORK_CARD_RECORD")?;
        let mut path = folder.into_vec();
        path.extend(format!("/{}-{number}", std::process::id()).bytes());
        let path = CString::new(path).ok()?;
        let flags = (libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC) as usize;
        let arguments = [libc::AT_FDCWD as usize, path.as_ptr().expose_provenance(), flags, 0o600, 0, 0];
        // SAFETY: the path is a C string of this function's.
        let fd = unsafe { raw(libc::SYS_openat, arguments) };
        let Ok(fd) = usize::try_from(fd) else {
            tell::say(&format!("--bundle: cannot write {}: error {}", path.to_string_lossy(), -fd));
            return None;
        };
        // Programs close the low descriptors by number.
        // SAFETY: the descriptor is this function's.
        let fd = unsafe {
            let high = raw(libc::SYS_fcntl, [fd, libc::F_DUPFD_CLOEXEC as usize, 900, 0, 0, 0]);
            match usize::try_from(high) {
                Ok(high) => {
                    raw(libc::SYS_close, [fd, 0, 0, 0, 0, 0]);
                    high
                }
                Err(_) => fd,
            }
        };
        let record = Self(Mutex::new(File { fd, window: 0, start: 0, at: WINDOW, failed: false }));
        record.put(|file| file.write_all(MAGIC));
        Some(record)
    }

    fn put(&self, write: impl FnOnce(&mut File) -> io::Result<()>) {
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !file.failed
            && let Err(error) = write(&mut file)
        {
            file.failed = true;
            tell::say(&format!("--bundle: the record ends here: {error}"));
        }
    }

    /// Adds an entry.
    #[inline]
    pub(crate) fn add(&self, entry: &Entry<&[u8]>) {
        self.put(|file| entry.write(file));
    }
}

impl File {
    /// Maps the next window.
    fn advance(&mut self) -> io::Result<()> {
        if self.window != 0 {
            real_munmap(std::mem::take(&mut self.window), WINDOW);
            self.start += WINDOW;
        }
        // Room on the disk now, because a page without it would end the process when it is written.
        // SAFETY: the descriptor is this record's.
        let room = unsafe { raw(libc::SYS_fallocate, [self.fd, 0, self.start, WINDOW, 0, 0]) };
        if room == -(libc::EOPNOTSUPP as isize) {
            // SAFETY: as above.
            unsafe { raw(libc::SYS_ftruncate, [self.fd, self.start + WINDOW, 0, 0, 0, 0]) };
        } else if room != 0 {
            return Err(io::Error::from_raw_os_error(-room as i32));
        }
        let (protection, start) = (libc::PROT_READ | libc::PROT_WRITE, self.start as i64);
        let window = real_mmap(0, WINDOW, protection, libc::MAP_SHARED, self.fd as i32, start);
        self.window = window.ok_or_else(io::Error::last_os_error)?;
        self.at = 0;
        Ok(())
    }
}

impl Write for File {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.at == WINDOW {
            self.advance()?;
        }
        let len = data.len().min(WINDOW - self.at);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(self.window + self.at);
        // SAFETY: the window is this record's memory, and has so much room.
        unsafe { to.copy_from_nonoverlapping(data.as_ptr(), len) };
        self.at += len;
        Ok(len)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
