//! The simulated card's shared libraries as bytes, so that an installed command is whole; and what
//! the command asks of the system for its chip.
//!
//! The assembler includes the file. `include_bytes!` would read it when the source is parsed, also
//! for `cargo check`, which builds no library.

#[cfg(card)]
core::arch::global_asm!(
    ".pushsection .rodata.tilework_card, \"a\", @progbits",
    ".globl tilework_card_start",
    ".globl tilework_card_end",
    "tilework_card_start:",
    concat!(".incbin \"", env!("TILEWORK_CARD"), "\""),
    "tilework_card_end:",
    ".popsection",
    options(raw)
);

/// The library's bytes; `None` where this crate was built without them.
#[cfg(card)]
pub fn library() -> Option<&'static [u8]> {
    unsafe extern "C" {
        static tilework_card_start: u8;
        static tilework_card_end: u8;
    }
    let (start, end) = (&raw const tilework_card_start, &raw const tilework_card_end);
    // SAFETY: the two symbols above are the ends of one read-only range of bytes of this program,
    // which nothing writes, the end behind the start.
    Some(unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) })
}

/// The library's bytes; `None` where this crate was built without them.
#[cfg(not(card))]
pub fn library() -> Option<&'static [u8]> {
    None
}

#[cfg(preload)]
core::arch::global_asm!(
    ".pushsection .rodata.tilework_preload, \"a\", @progbits",
    ".globl tilework_preload_start",
    ".globl tilework_preload_end",
    "tilework_preload_start:",
    concat!(".incbin \"", env!("TILEWORK_PRELOAD"), "\""),
    "tilework_preload_end:",
    ".popsection",
    options(raw)
);

/// The bytes of the library that is loaded before a program for silicon; `None` where this crate
/// was built without them, or for a system on which there is none.
#[cfg(preload)]
pub fn preload() -> Option<&'static [u8]> {
    unsafe extern "C" {
        static tilework_preload_start: u8;
        static tilework_preload_end: u8;
    }
    let (start, end) = (&raw const tilework_preload_start, &raw const tilework_preload_end);
    // SAFETY: the two symbols above are the ends of one read-only range of bytes of this program,
    // which nothing writes, the end behind the start.
    Some(unsafe { core::slice::from_raw_parts(start, end.addr() - start.addr()) })
}

/// The bytes of the library that is loaded before a program for silicon; `None` where this crate
/// was built without them, or for a system on which there is none.
#[cfg(not(preload))]
pub fn preload() -> Option<&'static [u8]> {
    None
}

/// Has the memory that the allocator has in store in pages of 4 KiB from now on. It asks for pages
/// of 2 MiB, of which a chip with its many memories that stay empty would fill a hundred with
/// zeros: for a look at its telemetry, most of the time and of the memory that this takes.
#[cfg(target_os = "linux")]
pub fn without_large_pages() {
    let probe = vec![0u8; 1 << 20];
    let at = probe.as_ptr().addr();
    let Ok(table) = std::fs::read_to_string("/proc/self/maps") else { return };
    let ranges = table.lines().filter_map(|line| {
        let (from, to) = line.split_once(' ')?.0.split_once('-')?;
        Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
    });
    for (from, to) in ranges.filter(|&(from, to)| from <= at && at < to) {
        // SAFETY: advice for memory that the allocator has mapped: what is in it stays. A kernel
        // that has no such pages refuses it, which changes nothing.
        unsafe { libc::madvise(std::ptr::with_exposed_provenance_mut(from), to - from, libc::MADV_NOHUGEPAGE) };
    }
}

/// Does nothing: other systems have no such pages.
#[cfg(not(target_os = "linux"))]
pub fn without_large_pages() {}

#[cfg(all(test, card))]
mod tests {
    #[test]
    fn the_library_is_an_elf_file_with_the_mark_of_its_board() {
        let library = super::library().unwrap();
        assert!(library.starts_with(b"\x7fELF"));
        let mark = b"libttsim_init";
        assert!(library.windows(mark.len()).any(|bytes| bytes == mark));
    }
}
