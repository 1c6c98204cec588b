//! Options that only kernel programs have.

use super::inspect::{BundleArgs, ChecksArgs};
use super::look::LookArgs;
use crate::args::{Input, parse_input};
use crate::board_option::{BoardLayout, BoardOption, ChipOption, LayoutOption};
use crate::comparison::ToleranceArgs;
use crate::kinds::{INSPECT, Verb};
use clap::ValueEnum;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// How a kernel program is run.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of kernel programs")]
pub struct KernelRunArgs {
    #[command(flatten)]
    pub board: BoardOption,
    #[command(flatten)]
    pub chip: ChipOption,
    /// How programs reach the cores.
    #[arg(long, value_enum, default_value_t = DispatchName::Fast)]
    pub dispatch: DispatchName,
    #[command(flatten)]
    pub layout: LayoutOption,
    /// How arrays reach the device: through the command queue, or by the host's windows; queue
    /// unless given. Needs fast dispatch.
    #[arg(long, value_enum, value_name = "WAY")]
    pub transfers: Option<TransfersName>,
    /// Other firmware for the workers: a folder with its ELF files.
    ///
    /// The folder has brisc.elf, ncrisc.elf, trisc0.elf, trisc1.elf and trisc2.elf, and
    /// memory-map.toml if their memory map is not the usual one. Dispatch firmware and kernels stay
    /// Tilework's own.
    #[arg(long, value_name = "DIR")]
    pub firmware: Option<PathBuf>,
    /// Other kernels of the command queue: a folder with their ELF files. Needs fast dispatch in
    /// the layout dispatcher.
    ///
    /// The folder has prefetch.elf, dispatch.elf and dispatch-s.elf (or cq_prefetch_brisc.elf,
    /// cq_dispatch_brisc.elf and cq_dispatch_subordinate_ncrisc.elf), and queue.toml if they are
    /// compiled for other places than blackhole-py's. Kernels that were linked with worker firmware
    /// need that --firmware.
    #[arg(long, value_name = "DIR")]
    pub cq_firmware: Option<PathBuf>,
    /// Also write every record that went to the command queue, for `tilework cq decode`. Needs fast
    /// dispatch.
    #[arg(long, value_name = "FILE")]
    pub capture: Option<PathBuf>,
    /// Also write which instructions the Tensix coprocessors executed, in which modes and how
    /// often: text, or JSON if FILE ends in .json. Needs the built-in chip.
    #[arg(long, value_name = "FILE")]
    pub coverage: Option<PathBuf>,
    /// Measure each core's kernel from start to end. Needs fast dispatch and the prebuilt worker
    /// firmware.
    #[arg(long)]
    pub core_timing: bool,
    /// Threads that run the tiles when many of them are busy; one for each processor of the machine
    /// unless given. Results and cycles do not depend on it.
    #[arg(long, value_name = "N")]
    pub threads: Option<NonZeroUsize>,
    /// Wait for gdb on this port of this machine, and run the program under it; 0 takes a free
    /// port. Needs the built-in chip. docs/debugger.md has a session.
    #[arg(long, value_name = "PORT", help_heading = INSPECT)]
    pub gdb: Option<u16>,
    /// Give up when the program has run for this many cycles. Unless given 12 billion shared among
    /// the kernels of all cores, at least 100 million: a minute or two. Ctrl-C ends a run, too,
    /// with the same report.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
    /// Run under the schedule of this seed, as `tilework check --explore` names it. Needs the
    /// built-in chip.
    #[arg(long, value_name = "SEED", help_heading = INSPECT)]
    pub schedule: Option<u32>,
    #[command(flatten)]
    pub checks: ChecksArgs,
    #[command(flatten)]
    pub bundle: BundleArgs,
    #[command(flatten)]
    pub look: LookArgs,
}

/// For which board a kernel program is checked, and what its outputs are compared with.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of kernel programs")]
pub struct KernelCheckArgs {
    #[command(flatten)]
    pub plan: KernelPlanArgs,
    /// Also run the program with the arrays of --input, and compare each output with NAME.npy of
    /// this folder.
    #[arg(long, value_name = "DIR")]
    pub expect: Option<PathBuf>,
    #[command(flatten)]
    pub explore: ExploreArgs,
    #[command(flatten)]
    pub tolerance: ToleranceArgs,
    #[command(flatten)]
    pub checks: ChecksArgs,
}

/// Under which schedules a kernel program is run.
#[derive(clap::Args, Clone, Debug)]
pub struct ExploreArgs {
    /// Also run the program under N other schedules, and compare their outputs with those of the
    /// usual one: packets and cores are late, as the chip allows it.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub explore: Option<u32>,
    /// The seed of the first schedule; the next has the next number.
    #[arg(long, value_name = "SEED", requires = "explore", default_value_t = 1)]
    pub explore_from: u32,
    /// Keep the first schedule that comes to another end in FILE (a zip archive): `tilework replay
    /// FILE` repeats it, under the debugger if wanted.
    #[arg(long, value_name = "FILE", requires = "explore", help_heading = INSPECT)]
    pub bundle: Option<PathBuf>,
}

/// For which board and arrays a kernel program is checked or shown.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of kernel programs")]
pub struct KernelPlanArgs {
    #[command(flatten)]
    pub board: BoardOption,
    #[command(flatten)]
    pub layout: LayoutOption,
    /// The array for an input; needed for inputs whose shape the file does not state.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_input)]
    pub input: Vec<Input>,
}

impl KernelPlanArgs {
    /// The board and the dispatch layout.
    pub fn board_layout(&self) -> BoardLayout {
        BoardLayout::new(self.board.board(), self.layout.layout())
    }
}

/// What of a kernel program is shown.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of kernel programs")]
pub struct KernelShowArgs {
    #[command(flatten)]
    pub plan: KernelPlanArgs,
    /// The map of L1 and of DRAM from their first byte to their last: who has what, and what is
    /// free.
    #[arg(long)]
    pub memory: bool,
}

/// How programs reach the cores.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum DispatchName {
    /// Command queue, prefetcher and dispatcher firmware
    Fast,
    /// The host writes launch messages and polls go messages
    Slow,
}

/// How arrays reach a device.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransfersName {
    /// In order with programs, by the prefetcher and the dispatcher
    Queue,
    /// The host writes and reads memory itself
    Windows,
}

impl TransfersName {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Windows => "windows",
        }
    }
}

impl DispatchName {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Slow => "slow",
        }
    }
}

/// What help says behind the options.
pub fn examples(verb: Verb) -> &'static str {
    match verb {
        Verb::Run => {
            "\
Examples:
  tilework run examples/increment/program.toml --input x=examples/increment/x.npy --out out
  tilework run examples/ring/program.toml --out out --board p150 --report json
  tilework run program.toml --input a=a.npy --input b=b.npy --out out --dispatch slow
  tilework run examples/ring/program.toml --out out --dispatch-layout split
  tilework run examples/ring/program.toml --out out --firmware riscv-firmware/p100a
  tilework run examples/ring/program.toml --out out --firmware riscv-firmware/p100a --cq-firmware cq

docs/program.md describes program files and firmware folders, docs/swap.md what goes with what, docs/report.md the
report."
        }
        Verb::Check => {
            "\
A kernel program is checked against a board, without running it: form, buffers, cores, kernels, arguments, and whether
all of it fits L1 and DRAM. Everything that is wrong is told at once. With --expect it also runs, and its outputs are
compared with arrays. With --explore it runs under schedules that the chip allows and that the modelled times do not
show; each has a seed, with which it can be repeated.

Examples:
  tilework check examples/ring/program.toml --board p150
  tilework check examples/increment/program.toml --input x=examples/increment/x.npy
  tilework check program.toml --input a=a.npy --expect expected --atol 0.01 --rtol 0.01
  tilework check examples/increment/program.toml --input x=examples/increment/x.npy --explore 20"
        }
        Verb::Show => {
            "\
Examples:
  tilework show examples/ring/program.toml
  tilework show examples/ring/program.toml --memory
  tilework show examples/increment/program.toml --input x=examples/increment/x.npy --report json"
        }
    }
}
