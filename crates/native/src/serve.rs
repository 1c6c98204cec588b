//! The side that runs the code: one call, then the process ends.
//!
//! All of the crate's `unsafe` code is here. It cannot be sound: what a foreign library does with
//! this process is its own affair, which is why the process has nothing else to do.

use std::ffi::c_void;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::process::ExitCode;

use crate::wire::{self, Answer, Call, Operand};

/// A tensor as the function gets and returns it (`WrappedTensor` in tt-mlir's
/// `runtime/detail/common/dylib.h`).
#[repr(C)]
struct Descriptor {
    start: *mut c_void,
    aligned: *mut c_void,
    first: i64,
    /// All sizes, then all strides.
    sizes_and_strides: *mut i64,
}

/// A function of a library: takes descriptors of its operands, returns those of its results.
type Function = unsafe extern "C" fn(*mut Descriptor) -> *mut Descriptor;

/// Reads a call from the standard input, executes it, and answers on the standard output.
pub fn serve() -> ExitCode {
    let served = (|| {
        let mut answers = private_output()?;
        let call = Call::read(&mut BufReader::new(io::stdin().lock()))?;
        let mut buffered = BufWriter::new(&mut answers);
        wire::write_answer(&mut buffered, &execute(&call))?;
        buffered.flush()
    })();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Standard error may be closed; the exit code says it all the same.
            let _ = writeln!(io::stderr(), "native code: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The standard output for answers alone: what the library prints goes to the standard error.
#[cfg(unix)]
fn private_output() -> io::Result<File> {
    use std::os::fd::{AsFd, AsRawFd};
    let answers = io::stdout().as_fd().try_clone_to_owned()?;
    // SAFETY: both descriptors are open as long as the process runs.
    let moved = unsafe { libc::dup2(io::stderr().as_raw_fd(), io::stdout().as_raw_fd()) };
    if moved < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from(answers)) }
}

#[cfg(not(unix))]
fn private_output() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Executes a call.
fn execute(call: &Call) -> Answer {
    let file = in_memory(&call.library).map_err(|error| format!("a library in memory: {error}"))?;
    // SAFETY: loading runs the library's own start-up code; see the head of this file.
    let library = unsafe { libloading::Library::new(path_of(&file)) };
    let library = library.map_err(|error| format!("the native library of the file cannot be loaded: {error}"))?;
    // SAFETY: the file says that the function has this type, and nobody can check it.
    let function = unsafe { library.get::<Function>(call.function.as_bytes()) };
    let function = function.map_err(|error| format!("no native function {:?}: {error}", call.function))?;
    let results = run(&function, &call.operands, &call.results);
    // The library stays until the process ends: threads of it may still run.
    std::mem::forget(library);
    results
}

/// Calls the function and copies its results.
fn run(function: &Function, operands: &[Operand], sizes: &[u64]) -> Answer {
    let mut bytes: Vec<Vec<u64>> = operands.iter().map(aligned).collect();
    let mut shapes: Vec<Vec<i64>> = operands.iter().map(sizes_and_strides).collect();
    let each = bytes.iter_mut().zip(&mut shapes);
    let mut descriptors: Vec<Descriptor> = each
        .map(|(bytes, shape)| {
            let start = bytes.as_mut_ptr().cast();
            Descriptor { start, aligned: start, first: 0, sizes_and_strides: shape.as_mut_ptr() }
        })
        .collect();
    // SAFETY: the operands are as the function's caller in the original passes them, and live
    // until it returns; what it does with them is up to it.
    let returned = unsafe { function(descriptors.as_mut_ptr()) };
    if returned.is_null() && !sizes.is_empty() {
        return Err("the native function returned no results".to_owned());
    }
    let result = |(at, &size): (usize, &u64)| {
        let size = usize::try_from(size).map_err(|_| format!("a result of {size} bytes"))?;
        // SAFETY: a function returns an array with a descriptor for each result.
        let start = unsafe { (*returned.add(at)).aligned };
        if start.is_null() && size > 0 {
            return Err(format!("the native function returned no data for result {at}"));
        }
        let mut copy = vec![0; size];
        if size > 0 {
            // SAFETY: a result has as many elements as the program states for it. If it has fewer
            // this may end the process, which the caller reports.
            unsafe { std::ptr::copy_nonoverlapping(start.cast::<u8>(), copy.as_mut_ptr(), size) };
        }
        Ok(copy)
    };
    // The results are not freed: the process ends now.
    sizes.iter().enumerate().map(result).collect()
}

/// An operand's bytes where a function may read any element type.
fn aligned(operand: &Operand) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    // One word at least, so that the pointer is that of an allocation.
    operand.bytes.chunks(8).chain(operand.bytes.is_empty().then_some(&[][..])).map(word).collect()
}

/// Sizes, then strides in elements, of a tensor in row-major order.
fn sizes_and_strides(operand: &Operand) -> Vec<i64> {
    let sizes: Vec<i64> = operand.shape.iter().map(|&size| size.cast_signed()).collect();
    let mut strides = vec![1_i64; sizes.len()];
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at].wrapping_mul(sizes[at]);
    }
    sizes.into_iter().chain(strides).collect()
}

/// A file that exists in memory only, so that nothing is left behind however the process ends.
#[cfg(target_os = "linux")]
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: the name ends with a zero, and the descriptor is checked before it is owned.
    let descriptor = unsafe {
        let descriptor = libc::memfd_create(c"native".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        OwnedFd::from_raw_fd(descriptor)
    };
    let mut file = File::from(descriptor);
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn path_of(file: &File) -> String {
    format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(not(target_os = "linux"))]
fn in_memory(_: &[u8]) -> io::Result<File> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "native code of model files runs on Linux only"))
}

#[cfg(not(target_os = "linux"))]
fn path_of(_: &File) -> String {
    String::new()
}
