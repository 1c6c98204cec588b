//! Truncated and corrupted files: no panic, no hang, no more memory than the reader's
//! budget allows.
//!
//! `TILEWORK_FUZZ_CASES` sets how many changed files are read (release builds have more by
//! default). Every case is determined by its number alone, which is printed when it fails.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tilework_model::{Model, Options};

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// The most bytes taken for each 1000 bytes of a file, over files of at least 1000 bytes.
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Counts each thread's bytes.
struct Counting;

fn count(change: isize) {
    // A thread that is ending has no counters any more.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged; counting neither allocates
// nor unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's guarantee is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The reader's stated budget, 32 bytes of decoded values for each of the file and 4 KiB, and a
/// quarter more for the structures that hold them.
fn budget(size: usize) -> isize {
    (40 * size + 16 * 1024) as isize
}

/// Reads a file in both ways and checks the memory that this took besides the file.
fn survive(bytes: &[u8], case: &dyn Fn() -> String) -> bool {
    let mut read = false;
    for accept_unknown_schema in [false, true] {
        let copy = bytes.to_vec();
        let before = NOW.get();
        PEAK.set(before);
        let result = std::panic::catch_unwind(|| Model::from_bytes(copy, Options { accept_unknown_schema }));
        let used = PEAK.get() - before;
        match result {
            Ok(Ok(_)) => read = true,
            // An error can be written, with its path.
            Ok(Err(error)) => assert!(!error.to_string().is_empty()),
            Err(_) => panic!("reading panicked: {}", case()),
        }
        if bytes.len() >= 1000 {
            MOST.set(MOST.get().max(used * 1000 / bytes.len() as isize));
        }
        assert!(used <= budget(bytes.len()), "{used} bytes for a file of {}: {}", bytes.len(), case());
    }
    read
}

/// Xorshift: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// Changes some bytes or words.
fn change(file: &mut [u8], case: u64) {
    let mut random = Random(case.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..8 {
        random.next();
    }
    for _ in 0..=random.below(6) {
        let (at, word) = (random.below(file.len()), random.below(file.len() / 4) * 4);
        match random.below(5) {
            0 => file[at] ^= 1 << random.below(8),
            1 => file[at] = random.next() as u8,
            2 => {
                let interesting = [0, 1, 4, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, u32::MAX, file.len() as u32];
                let value = interesting[random.below(interesting.len())];
                file[word..word + 4].copy_from_slice(&value.to_le_bytes());
            }
            // What is an offset elsewhere.
            3 => {
                let from = random.below(file.len() / 4) * 4;
                file.copy_within(from..from + 4, word);
            }
            // An offset to another place near by.
            _ => {
                let old = u32::from_le_bytes([file[word], file[word + 1], file[word + 2], file[word + 3]]);
                let new = old.wrapping_add(4 * random.below(64) as u32).wrapping_sub(128);
                file[word..word + 4].copy_from_slice(&new.to_le_bytes());
            }
        }
    }
}

fn files() -> Vec<(String, Vec<u8>)> {
    let real = common::shared::real_programs().into_iter().map(|folder| folder.join("program.ttnn"));
    let paths = common::committed_files().into_iter().chain(common::flatc_files()).chain(real);
    paths.map(|path| (path.display().to_string(), std::fs::read(path).unwrap())).collect()
}

fn cases(release: u64) -> u64 {
    let asked = std::env::var("TILEWORK_FUZZ_CASES").ok().map(|cases| cases.parse().unwrap());
    asked.unwrap_or(if cfg!(debug_assertions) { release / 40 } else { release })
}

#[test]
fn changed_files_are_survived() {
    let files = files();
    let (mut still_read, cases) = (0, cases(200_000));
    for case in 0..cases {
        let (name, file) = &files[case as usize % files.len()];
        let mut changed = file.clone();
        change(&mut changed, case);
        still_read += u64::from(survive(&changed, &|| format!("case {case} of {name}")));
    }
    println!("{cases} changed files, {still_read} still readable, at most {} bytes taken for 1000", MOST.get());
    // Most bytes of a file are text; if nothing were readable, the changes would test the
    // first check only.
    assert!(still_read > cases / 20 && still_read < cases, "{still_read}");
}

#[test]
fn files_cut_anywhere_are_refused() {
    let mut cut = 0;
    for (name, file) in files() {
        // Every byte of small files; of others as many, spread, with an odd step so that all
        // remainders occur.
        let most = cases(8192) as usize;
        let step = (file.len() / most + 1) | 1;
        for size in (0..file.len()).step_by(if file.len() <= most { 1 } else { step }) {
            let case = || format!("{name} cut to {size}");
            assert!(!survive(&file[..size], &case), "{}", case());
            if size >= 4 {
                let mut agreeing = file[..size].to_vec();
                agreeing[..4].copy_from_slice(&(size as u32 - 4).to_le_bytes());
                let padding_only = file[size..].iter().all(|byte| *byte == 0);
                assert!(!survive(&agreeing, &case) || padding_only, "{} with a prefix that agrees", case());
            }
            cut += 1;
        }
    }
    println!("{cut} cut files, at most {} bytes taken for 1000", MOST.get());
}
