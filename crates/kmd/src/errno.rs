//! Why a request is refused.

/// An error number that a request ends with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Errno {
    /// `EPERM`: not the caller's.
    NotOwned,
    /// `ENXIO`: nothing there.
    NoDevice,
    /// `EBADF`: no such file.
    BadFile,
    /// `EAGAIN`: it would have to wait, and is not to.
    Again,
    /// `ENOMEM`: none is left.
    NoMemory,
    /// `EFAULT`: the caller's memory cannot be read or written.
    Fault,
    /// `EBUSY`: in use.
    Busy,
    /// `EEXIST`: it is there already.
    Exists,
    /// `ENODEV`: the device was reset since the file was opened.
    Gone,
    /// `EINVAL`: wrong arguments.
    Invalid,
    /// `ENOSPC`: no place is left in the card.
    NoSpace,
    /// `EOPNOTSUPP`: not offered.
    Unsupported,
}

impl Errno {
    /// The number on Linux (`asm-generic/errno-base.h`, `errno.h`).
    pub const fn number(self) -> i32 {
        match self {
            Self::NotOwned => 1,
            Self::NoDevice => 6,
            Self::BadFile => 9,
            Self::Again => 11,
            Self::NoMemory => 12,
            Self::Fault => 14,
            Self::Busy => 16,
            Self::Exists => 17,
            Self::Gone => 19,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::Unsupported => 95,
        }
    }
}

/// Why a request has no result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// It ends with an error.
    Error(Errno),
    /// The caller waits, and asks again when another has closed a file or released a lock.
    Wait,
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Error(errno)
    }
}
