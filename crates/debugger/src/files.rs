//! The ELF files of all code, as gdb reads them over the connection.

use crate::code::Code;
use std::sync::Arc;

/// The files that gdb has opened.
#[derive(Default)]
pub(crate) struct OpenFiles {
    files: Vec<Option<Arc<[u8]>>>,
}

impl OpenFiles {
    /// Opens the file called `name`; its descriptor.
    pub(crate) fn open(&mut self, code: &Code, name: &[u8]) -> Option<u32> {
        let elf = code.file(name)?;
        let free = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        let descriptor = u32::try_from(free).ok()?;
        if free == self.files.len() {
            self.files.push(None);
        }
        self.files[free] = Some(Arc::clone(elf));
        Some(descriptor)
    }

    /// The bytes of an open file.
    pub(crate) fn get(&self, descriptor: u32) -> Option<&Arc<[u8]>> {
        self.files.get(usize::try_from(descriptor).ok()?)?.as_ref()
    }

    /// Closes a file; false if it is not open.
    pub(crate) fn close(&mut self, descriptor: u32) -> bool {
        let file = usize::try_from(descriptor).ok().and_then(|i| self.files.get_mut(i));
        file.is_some_and(|file| file.take().is_some())
    }
}

/// Copies what of `bytes` starts at `offset` into `buffer`, at most `length` bytes; how many.
pub(crate) fn part(bytes: &[u8], offset: u64, length: usize, buffer: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default();
    let len = rest.len().min(length).min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}
