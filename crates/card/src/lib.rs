//! The simulated card's shared libraries as bytes, so that an installed command is whole.
//!
//! The assembler includes the file. `include_bytes!` would read it when the source is parsed, also
//! for `cargo check`, which builds no library.

// Cargo builds the library because of this dependency.
use tilework as _;

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
