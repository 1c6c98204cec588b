//! Elsewhere than on Linux there is no kernel driver, and nothing of this type.

use crate::{Kernel, Mapped, Pages};
use std::io;
use std::path::Path;
use tilework_abi::kmd::Request;

/// An open device file: there is none here.
#[derive(Debug)]
pub enum System {}

/// Mapped bytes: there are none here.
#[derive(Debug)]
pub enum Bytes {}

impl System {
    /// Opens the device.
    ///
    /// # Errors
    /// Always: the driver is for Linux.
    pub fn open(_path: &Path) -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel driver of the cards is for Linux"))
    }
}

impl Kernel for System {
    type Mapping = Bytes;
    fn request(&mut self, _request: Request, _argument: &mut [u8]) -> io::Result<()> {
        match *self {}
    }
    fn map(&mut self, _offset: u64, _len: usize) -> io::Result<Bytes> {
        match *self {}
    }
    fn memory(&mut self, _len: usize, _pages: Pages) -> io::Result<Bytes> {
        match *self {}
    }
}

impl Mapped for Bytes {
    fn address(&self) -> u64 {
        match *self {}
    }
    fn read(&self, _at: usize, _out: &mut [u8]) {
        match *self {}
    }
    fn write(&self, _at: usize, _data: &[u8]) {
        match *self {}
    }
    fn flush(&self) {
        match *self {}
    }
}
