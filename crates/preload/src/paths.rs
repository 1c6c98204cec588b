//! Paths of the card: they lead to the folder that the command has made.

use crate::real::{raw, real};
use crate::{clock, descriptors, process};
use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tilework_kmd::{MAJOR, MOST_CARDS};

/// Places that are the card's, whatever the host has there.
const OWN: [&[u8]; 3] = [b"/dev/tenstorrent", b"/sys/class/tenstorrent", b"/sys/module/tenstorrent"];
/// Places where the card is, and the host's own things for what the card has not.
const SHARED: [&[u8]; 5] =
    [b"/sys/bus/pci/devices", b"/sys/bus/pci/slots", b"/sys/devices/pci0000:00", b"/sys/dev/char", b"/sys/bus/pci"];
/// The longest path.
const LONGEST: usize = 4096;

/// The folder, and what tells its device files, by their number, and their folder from all others.
struct Tree {
    root: PathBuf,
    cards: Vec<(u64, u64)>,
    devices: (u64, u64),
}

static TREE: OnceLock<Option<Tree>> = OnceLock::new();

fn tree() -> Option<&'static Tree> {
    TREE.get().and_then(Option::as_ref)
}

/// The folder.
pub(crate) fn root() -> Option<&'static Path> {
    tree().map(|tree| tree.root.as_path())
}

/// Finds the folder that the command has made. False if there is none.
pub(crate) fn find_tree() -> bool {
    let _inside = clock::Inside::enter();
    TREE.get_or_init(|| {
        let root = PathBuf::from(std::env::var_os("TILEWORK_CARD_ROOT")?);
        let number = |path: &str| {
            let found = std::fs::metadata(root.join(path)).ok()?;
            Some((found.dev(), found.ino()))
        };
        let cards: Vec<_> = (0..MOST_CARDS).map_while(|card| number(&format!("dev/tenstorrent/{card}"))).collect();
        let devices = number("dev/tenstorrent").filter(|_| !cards.is_empty())?;
        Some(Tree { cards, devices, root })
    })
    .is_some()
}

/// A place for a path of the tree.
struct Buffer([u8; LONGEST]);

impl Buffer {
    const fn new() -> Self {
        Self([0; LONGEST])
    }
    fn fill(&mut self, root: &[u8], path: &[u8]) -> Option<*const c_char> {
        let len = root.len() + path.len();
        if len >= LONGEST {
            return None;
        }
        self.0[..root.len()].copy_from_slice(root);
        self.0[root.len()..len].copy_from_slice(path);
        self.0[len] = 0;
        Some(self.0.as_ptr().cast())
    }
}

fn below(path: &[u8], place: &[u8]) -> bool {
    path.starts_with(place) && matches!(path.get(place.len()), None | Some(b'/'))
}

/// Where `path` leads: into the tree, or where it says.
fn lead(path: *const c_char, buffer: &mut Buffer) -> *const c_char {
    let Some(tree) = tree() else { return path };
    if path.is_null() || clock::is_inside() || !process::is_active() {
        return path;
    }
    // SAFETY: the caller's promise: a C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    // Most paths are neither in `/dev` nor in `/sys`.
    if !bytes.starts_with(b"/dev/t") && !bytes.starts_with(b"/sys/") {
        return path;
    }
    let root = tree.root.as_os_str().as_bytes();
    if OWN.iter().any(|place| below(bytes, place)) {
        return buffer.fill(root, bytes).unwrap_or(path);
    }
    if SHARED.iter().any(|place| below(bytes, place))
        && let Some(led) = buffer.fill(root, bytes)
    {
        let arguments = [libc::AT_FDCWD as usize, led.expose_provenance(), libc::F_OK as usize, 0, 0, 0];
        // SAFETY: a C string of this function's.
        let there = unsafe { raw(libc::SYS_faccessat, arguments) } == 0;
        // The folders of all devices and of all numbers have the card only.
        return if there { led } else { path };
    }
    path
}

/// Which card's device file a file is.
pub(crate) fn device(dev: u64, ino: u64) -> Option<usize> {
    tree()?.cards.iter().position(|&card| card == (dev, ino))
}

/// Shows a device file as what it is.
fn patch(status: *mut libc::stat) {
    // SAFETY: the caller's place, which was just written.
    let status = unsafe { &mut *status };
    if let Some(card) = device(status.st_dev, status.st_ino) {
        status.st_mode = libc::S_IFCHR | 0o666;
        status.st_rdev = libc::makedev(MAJOR, card as u32);
        status.st_size = 0;
    }
}

/// A function with a path as its first argument: called with where that leads.
macro_rules! led {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: *const c_char, $($arg: $type),*) -> $out {
            let mut buffer = Buffer::new();
            let path = lead(path, &mut buffer);
            // SAFETY: the caller's promise; the path is a C string.
            unsafe { real!($name as unsafe extern "C" fn(*const c_char, $($type),*) -> $out)(path, $($arg),*) }
        }
    )* };
}
/// A function with a folder's descriptor before the path.
macro_rules! led_at {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: i32, path: *const c_char, $($arg: $type),*) -> $out {
            let mut buffer = Buffer::new();
            let path = lead(path, &mut buffer);
            // SAFETY: the caller's promise; the path is a C string.
            unsafe {
                real!($name as unsafe extern "C" fn(i32, *const c_char, $($type),*) -> $out)
                    (folder, path, $($arg),*)
            }
        }
    )* };
}
type Stat = *mut libc::stat;
type Text = *const c_char;

led! {
    access(mode: i32) -> i32;
    eaccess(mode: i32) -> i32;
    readlink(out: *mut c_char, len: usize) -> isize;
    fopen(mode: Text) -> *mut c_void;
    fopen64(mode: Text) -> *mut c_void;
    opendir() -> *mut c_void;
    getxattr(name: Text, out: *mut c_void, len: usize) -> isize;
    lgetxattr(name: Text, out: *mut c_void, len: usize) -> isize;
    listxattr(out: *mut c_char, len: usize) -> isize;
    llistxattr(out: *mut c_char, len: usize) -> isize;
    realpath(out: *mut c_char) -> *mut c_char;
    canonicalize_file_name() -> *mut c_char;
    scandir(list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> i32;
    scandir64(list: *mut c_void, filter: *mut c_void, compare: *mut c_void) -> i32;
}
led_at! {
    faccessat(mode: i32, flags: i32) -> i32;
    readlinkat(out: *mut c_char, len: usize) -> isize;
}

macro_rules! path_status {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: Text, out: Stat) -> i32 {
            let mut buffer = Buffer::new();
            let path = lead(path, &mut buffer);
            // SAFETY: the caller's promise; the path is a C string.
            let result = unsafe { real!($name as unsafe extern "C" fn(Text, Stat) -> i32)(path, out) };
            if result == 0 {
                patch(out);
            }
            result
        }
    )* };
}
path_status! { stat; stat64; lstat; lstat64; }

macro_rules! old_path_status {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(version: i32, path: Text, out: Stat) -> i32 {
            let mut buffer = Buffer::new();
            let path = lead(path, &mut buffer);
            // SAFETY: the caller's promise; the path is a C string.
            let result = unsafe {
                real!($name as unsafe extern "C" fn(i32, Text, Stat) -> i32)(version, path, out)
            };
            if result == 0 {
                patch(out);
            }
            result
        }
    )* };
}
old_path_status! { __xstat; __xstat64; __lxstat; __lxstat64; }

macro_rules! folder_status {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: i32, path: Text, out: Stat, flags: i32) -> i32 {
            let mut buffer = Buffer::new();
            let path = lead(path, &mut buffer);
            // SAFETY: the caller's promise; the path is a C string.
            let result = unsafe {
                real!($name as unsafe extern "C" fn(i32, Text, Stat, i32) -> i32)
                    (folder, path, out, flags)
            };
            if result == 0 {
                patch(out);
            }
            result
        }
    )* };
}
folder_status! { fstatat; fstatat64; }

macro_rules! descriptor_status {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(fd: i32, out: Stat) -> i32 {
            // SAFETY: the caller's promise.
            let result = unsafe { real!($name as unsafe extern "C" fn(i32, Stat) -> i32)(fd, out) };
            if result == 0 {
                patch(out);
            }
            result
        }
    )* };
}
descriptor_status! { fstat; fstat64; }

#[unsafe(no_mangle)]
unsafe extern "C" fn statx(folder: i32, path: Text, flags: i32, mask: u32, out: *mut libc::statx) -> i32 {
    type Statx = unsafe extern "C" fn(i32, Text, i32, u32, *mut libc::statx) -> i32;
    let mut buffer = Buffer::new();
    let path = lead(path, &mut buffer);
    // SAFETY: the caller's promise; the path is a C string.
    let result = unsafe { real!(statx as Statx)(folder, path, flags, mask, out) };
    if result == 0 {
        // SAFETY: the caller's place, which was just written.
        let status = unsafe { &mut *out };
        let dev = libc::makedev(status.stx_dev_major, status.stx_dev_minor);
        if let Some(card) = device(dev, status.stx_ino) {
            status.stx_mode = (libc::S_IFCHR | 0o666) as u16;
            (status.stx_rdev_major, status.stx_rdev_minor) = (MAJOR, card as u32);
            status.stx_size = 0;
        }
    }
    result
}

/// Whether a descriptor is that of the folder of device files.
fn is_devices(fd: i32) -> bool {
    let Some(tree) = tree().filter(|_| !clock::is_inside()) else { return false };
    // SAFETY: a status that is all zero is valid; it is a place of this function's.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let arguments = [fd as usize, (&raw mut status).expose_provenance(), 0, 0, 0, 0];
        raw(libc::SYS_fstat, arguments) == 0 && (status.st_dev, status.st_ino) == tree.devices
    }
}

/// Shows entries of the folder of device files as such.
unsafe fn patch_entry(dir: *mut libc::DIR, kind: *mut u8) {
    // SAFETY: the caller's folder and entry.
    unsafe {
        if *kind == libc::DT_REG && is_devices(libc::dirfd(dir)) {
            *kind = libc::DT_CHR;
        }
    }
}

/// The same for entries as the kernel gives them (getdents64(2)).
pub(crate) fn patch_entries(fd: i32, entries: &mut [u8]) {
    if !is_devices(fd) {
        return;
    }
    let mut at = 0;
    // The length of an entry and its kind, behind two numbers of eight bytes.
    while let Some(&[low, high, kind]) = entries.get(at + 16..at + 19) {
        if kind == libc::DT_REG {
            entries[at + 18] = libc::DT_CHR;
        }
        at += usize::from(u16::from_le_bytes([low, high])).max(1);
    }
}

/// Whether a path is one of the card's.
pub(crate) fn is_led(path: Text) -> bool {
    lead(path, &mut Buffer::new()) != path
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readdir(dir: *mut libc::DIR) -> *mut libc::dirent {
    // SAFETY: the caller's promise; an entry that the C library gives is valid.
    unsafe {
        let entry = real!(readdir as unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent)(dir);
        if let Some(entry) = entry.as_mut() {
            patch_entry(dir, &mut entry.d_type);
        }
        entry
    }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn readdir64(dir: *mut libc::DIR) -> *mut libc::dirent64 {
    // SAFETY: the caller's promise; an entry that the C library gives is valid.
    unsafe {
        let entry = real!(readdir64 as unsafe extern "C" fn(*mut libc::DIR) -> *mut libc::dirent64)(dir);
        if let Some(entry) = entry.as_mut() {
            patch_entry(dir, &mut entry.d_type);
        }
        entry
    }
}

/// Opens what `path` leads to; the device file becomes an open file of the driver.
fn opened(folder: i32, path: Text, flags: i32, open: impl FnOnce(Text) -> i32) -> i32 {
    let mut buffer = Buffer::new();
    let led = lead(path, &mut buffer);
    let fd = open(led);
    if fd < 0 || tree().is_none() || clock::is_inside() {
        return fd;
    }
    if led == path && folder == libc::AT_FDCWD {
        // Not in the tree, unless the program knows where that is.
        let root = root().and_then(|root| CString::new(root.as_os_str().as_bytes()).ok());
        // SAFETY: the caller's promise: it was opened.
        let known = root.is_some_and(|root| unsafe { CStr::from_ptr(path) }.to_bytes().starts_with(root.to_bytes()));
        if !known {
            return fd;
        }
    }
    descriptors::opened(fd, flags)
}

macro_rules! opens {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(path: Text, flags: i32, mode: u32) -> i32 {
            opened(libc::AT_FDCWD, path, flags, |path| {
                // SAFETY: the caller's promise; the mode counts if the flags say so.
                unsafe {
                    real!($name as unsafe extern "C" fn(Text, i32, u32) -> i32)(path, flags, mode)
                }
            })
        }
    )* };
}
opens! { open; open64; __open; __open64; __open_2; __open64_2; }

macro_rules! opens_at {
    ($($name:ident;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(folder: i32, path: Text, flags: i32, mode: u32) -> i32 {
            opened(folder, path, flags, |path| {
                // SAFETY: the caller's promise; the mode counts if the flags say so.
                unsafe {
                    real!($name as unsafe extern "C" fn(i32, Text, i32, u32) -> i32)
                        (folder, path, flags, mode)
                }
            })
        }
    )* };
}
opens_at! { openat; openat64; __openat_2; __openat64_2; }

/// Locks that drivers' libraries share among processes, by the first letters of their names
/// (tt-umd `robust_mutex.cpp`). Each process has a card of its own, and so its own locks: otherwise
/// two programs would wait for each other.
const LOCKS: &[u8] = b"/TT_UMD_LOCK";

fn own_lock(name: Text, buffer: &mut Buffer) -> Text {
    let Some(tree) = tree() else { return name };
    if name.is_null() {
        return name;
    }
    // SAFETY: the caller's promise: a C string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let (true, Some(folder)) = (bytes.starts_with(LOCKS), tree.root.file_name()) else { return name };
    let prefix = format!("/{}.{}.", folder.to_string_lossy(), std::process::id());
    buffer.fill(prefix.as_bytes(), &bytes[1..]).unwrap_or(name)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shm_open(name: Text, flags: i32, mode: libc::mode_t) -> i32 {
    let mut buffer = Buffer::new();
    let name = own_lock(name, &mut buffer);
    // SAFETY: the caller's promise; the name is a C string.
    unsafe { real!(shm_open as unsafe extern "C" fn(Text, i32, libc::mode_t) -> i32)(name, flags, mode) }
}
#[unsafe(no_mangle)]
unsafe extern "C" fn shm_unlink(name: Text) -> i32 {
    let mut buffer = Buffer::new();
    let name = own_lock(name, &mut buffer);
    // SAFETY: the caller's promise; the name is a C string.
    unsafe { real!(shm_unlink as unsafe extern "C" fn(Text) -> i32)(name) }
}
