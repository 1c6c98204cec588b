//! `tilework link-kernel`: a kernel's bytes for a place in L1, as hosts store them that load flat
//! images.

use crate::answer::{Answer, ReportArgs};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::program::{firmware, kernels};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_runtime::{FirmwareSet, KernelImage};

/// Arguments of `tilework link-kernel`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The file gets text, constants and the initial values of local data, moved to ADDR, with what the loader stores for the \
firmware. A kernel is entered at its first byte. A kernel that was linked with other firmware is refused.

Example:
  tilework link-kernel prebuilt:writer --core brisc --at 0x82f0 --firmware riscv-firmware/p100a -o writer.bin
  tilework link-kernel kernel.elf --at 0x9000 -o kernel.bin")]
pub struct LinkKernelArgs {
    /// The ELF file of the kernel, or prebuilt:NAME for one of Tilework's own.
    pub kernel: String,
    /// The core that runs it: brisc, ncrisc, trisc0, trisc1 or trisc2.
    #[arg(long, default_value = "brisc", value_parser = parse_core)]
    pub core: Processor,
    /// Where the host stores it: an address in L1, a multiple of 16.
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    pub at: L1Addr,
    /// The worker firmware that it will meet: a folder as for `tilework run`; Tilework's own unless
    /// given.
    #[arg(long, value_name = "DIR")]
    pub firmware: Option<PathBuf>,
    /// The file for the bytes.
    #[arg(short, long, value_name = "FLAT")]
    pub output: PathBuf,
    #[command(flatten)]
    pub report: ReportArgs,
}

fn parse_core(text: &str) -> Result<Processor, String> {
    let known = Processor::ALL.into_iter().find(|core| core.name().eq_ignore_ascii_case(text));
    known.ok_or_else(|| "expected brisc, ncrisc, trisc0, trisc1 or trisc2".to_owned())
}

fn parse_address(text: &str) -> Result<L1Addr, String> {
    let value = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match value {
        Ok(value) if value < L1_SIZE && value.is_multiple_of(L1_ALIGN) => Ok(L1Addr::new(value)),
        _ => Err(format!("expected a multiple of {L1_ALIGN} below {L1_SIZE:#x}")),
    }
}

/// What was written. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct Linked {
    kernel: String,
    core: &'static str,
    at: u32,
    bytes: usize,
    firmware: String,
    file: String,
}

/// Writes the flat image.
pub fn link(args: &LinkKernelArgs) -> Outcome<Answer> {
    let elf = kernels::load(Path::new(""), &args.kernel)?;
    let failed = |error: &dyn std::fmt::Display| Failure::usage(error.to_string());
    let kernel = KernelImage::load(&args.kernel, elf, args.core).map_err(|e| failed(&e))?;
    let set = match &args.firmware {
        Some(folder) => firmware::load(folder)?,
        None => FirmwareSet::prebuilt().map_err(|e| failed(&e))?,
    };
    let bytes = set.place(&kernel, args.at).map_err(|e| failed(&e))?;
    let room = L1_SIZE - args.at.get();
    if kernel.size() > room {
        let message =
            format!("{}: found {} bytes, expected at most {room}, to the end of L1", args.kernel, bytes.len());
        return Err(Failure::usage(message).with("option", "--at"));
    }
    if !args.kernel.starts_with("prebuilt:") && files::same_place(Path::new(&args.kernel), &args.output) {
        return Err(Failure::option("--output", " names the kernel itself; choose another file"));
    }
    files::check_replaceable(&args.output)?;
    files::write_whole(&args.output, &[&bytes])?;
    let linked = Linked {
        kernel: args.kernel.clone(),
        core: args.core.name(),
        at: args.at.get(),
        bytes: bytes.len(),
        firmware: args.firmware.as_ref().map_or_else(|| "prebuilt".to_owned(), |folder| folder.display().to_string()),
        file: args.output.display().to_string(),
    };
    Ok(Answer::new(linked, |l, out| {
        let Linked { kernel, core, at, bytes, firmware, file } = l;
        writeln!(out, "{file}: {bytes} bytes of {kernel} for {core} at {at:#x}, firmware {firmware}")
    }))
}
