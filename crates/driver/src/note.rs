//! Notes: what a host knows about its own doings and a chip cannot see.
//!
//! A simulated chip hands them to those who observe it, who tell with them whose bytes an access
//! touches, and which kernel a core runs. Addresses and names only: a note has no effect on the
//! chip, and nobody builds one unless somebody listens
//! ([`HostLink::listens`](crate::HostLink::listens)). Notes come in the order of the host's calls.
//! What a launch describes happens later, when the command queue has come to it.

use std::ops::Range;
use std::sync::Arc;
use tilework_abi::cq::status::Kernel;
use tilework_abi::cq::tiles::Part;
use tilework_abi::l1::MemoryMap;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Something that a host did or is about to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// Worker firmware is about to be written to tiles and started.
    Firmware(Arc<FirmwareNote>),
    /// A tile is about to run a part of a command queue, from now on until the end.
    Queue(Arc<QueueNote>),
    /// A buffer has been allocated. What its bytes hold is not the buffer's until somebody writes.
    Allocated(Arc<BufferNote>),
    /// A region inside a buffer is used as a buffer of another layout; it lives as long
    /// as that one.
    Within(Arc<BufferNote>),
    /// The buffer with this number has been freed. Launches before this note may still use it.
    Freed(u64),
    /// A program is about to be put into a queue or, without one, started.
    Launch(Arc<LaunchNote>),
    /// Commands are about to be put into a queue.
    Commands(Arc<CommandsNote>),
}

/// Worker firmware.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirmwareNote {
    /// The tiles.
    pub tiles: Vec<NocXy>,
    /// Where it keeps its things in L1.
    pub map: MemoryMap,
    /// The image of each core, in the order of [`Processor::ALL`].
    pub images: Vec<CodeNote>,
    /// Whether it is the firmware of this project, of which everything is known.
    pub own: bool,
}

/// Code of one core of a tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeNote {
    /// Its name: of an ELF file, without its path.
    pub name: String,
    /// The core.
    pub processor: Processor,
    /// Its bytes in L1, with its constants.
    pub text: Range<u32>,
    /// Its data and zeros in local RAM, by the core's addresses; empty for none.
    pub local: Range<u32>,
    /// The bytes as linked, from the first of `text` on. Where the loader has moved the code, only
    /// immediate operands differ. Empty where nobody needs them.
    pub code: Arc<[u8]>,
}

/// A part of a command queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueNote {
    /// The number of the queue.
    pub queue: u8,
    /// The tile.
    pub tile: NocXy,
    /// The parts of the queue that run there.
    pub parts: Vec<Part>,
    /// Their kernels.
    pub kernels: Vec<CodeNote>,
    /// Whether the kernels are those of this project.
    pub own: bool,
}

/// A kind of memory that buffers are in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MemoryKind {
    /// DRAM.
    Dram,
    /// L1 of the workers.
    L1,
    /// Host memory that the chip reaches.
    Host,
}

/// One memory of several.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BankNote {
    /// A physical DRAM bank.
    Dram(u8),
    /// L1 of the tile at these coordinates.
    Core(NocXy),
    /// Host memory, by its NoC address at the PCIe tile.
    Host,
}

/// A buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferNote {
    /// A number that no other buffer of the device gets; a region within a buffer has that one's.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The kind of memory.
    pub kind: MemoryKind,
    /// Bytes of a page.
    pub page_size: u32,
    /// Bytes from one page to the next in a bank.
    pub distance: u32,
    /// Number of pages.
    pub pages: u32,
    /// What is taken in each of `banks`; the last rows of some banks may hold no page.
    pub taken: Range<u64>,
    /// The banks that this range is taken in.
    pub banks: Vec<BankNote>,
    /// Where its pages lie.
    pub runs: Vec<RunNote>,
}

/// Pages of a buffer that follow one another in a bank.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunNote {
    /// The bank.
    pub bank: BankNote,
    /// The bytes.
    pub range: Range<u64>,
    /// The first page.
    pub first_page: u32,
    /// From one page to the next in the numbers of the buffer.
    pub stride: u32,
}

/// A program that will run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LaunchNote {
    /// The number of the launch on its device, from 0.
    pub number: u64,
    /// The queue; none when the host starts the program itself.
    pub queue: Option<u8>,
    /// The number by which commands of that queue name it from now on ([`CommandNote::program`]).
    pub tag: Option<u64>,
    /// Its name.
    pub program: String,
    /// The host's number of the program, as the launch message has it.
    pub host_assigned_id: u32,
    /// Its cores, in the program's order.
    pub cores: Vec<NocXy>,
    /// The words of all arguments that the host knows, in no order: what of them lies in a buffer
    /// may be its address.
    pub argument_words: Vec<u32>,
    /// The kernel configuration base.
    pub base: u32,
    /// The bytes of the configuration: arguments, semaphores, circular buffers' configurations.
    pub config: Range<u32>,
    /// Arguments of BRISC, of NCRISC and of the three TRISCs together.
    pub arguments: [ArgumentsNote; 3],
    /// Address of semaphore 0; the others are 16 bytes apart.
    pub semaphores: u32,
    /// How many there are.
    pub semaphore_count: u32,
    /// Address of the configuration of circular buffer 0.
    pub cb_config: u32,
    /// Circular buffers.
    pub cbs: Vec<CbNote>,
    /// Roles: each of the cores has exactly one.
    pub roles: Vec<RoleNote>,
}

/// Commands of a queue. Each of its kernels executes those that are for it in this order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandsNote {
    /// The number of the queue.
    pub queue: u8,
    /// The commands: a prefetch command is followed by the dispatch commands that it relays.
    pub commands: Vec<CommandNote>,
}

/// A command of a queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandNote {
    /// Who executes it.
    pub kernel: Kernel,
    /// Its first byte: which command it is.
    pub id: u8,
    /// Its bytes, with its data wherever that comes from; of a prefetch command its stride.
    pub bytes: u64,
    /// The program that it belongs to, by [`LaunchNote::tag`]; none for transfers, events and the
    /// queue's own commands.
    pub program: Option<u64>,
}

/// Where a set of processors has its arguments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ArgumentsNote {
    /// Address of those that may differ from core to core.
    pub unique: u32,
    /// How many words each core of the program is given: one number for all, or one for each.
    pub unique_words: Vec<u32>,
    /// Address of those that are the same on all cores.
    pub common: u32,
    /// How many words.
    pub common_words: u32,
}

impl ArgumentsNote {
    /// The words that core number `core` of the program is given.
    pub fn words(&self, core: usize) -> u32 {
        self.unique_words.get(core).or(self.unique_words.last()).copied().unwrap_or(0)
    }
}

/// A circular buffer of each core of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CbNote {
    /// Its index.
    pub index: u32,
    /// Its name in reports, with its number.
    pub name: String,
    /// First byte in L1.
    pub address: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages.
    pub pages: u32,
    /// Whether it lies over a buffer, whose bytes are there before the program runs.
    pub over: bool,
}

/// Cores with the kernels that they run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RoleNote {
    /// Its name in reports.
    pub name: String,
    /// The cores.
    pub cores: Vec<NocXy>,
    /// The kernels.
    pub kernels: Vec<CodeNote>,
}
