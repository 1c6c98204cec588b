//! The general way: an instruction is carried out by the processor itself, within this library.
//!
//! It is copied to a place of its own, and called there with the program's registers. An operand in
//! the program's memory stays where it is, so that what is atomic stays so; of one at a BAR there is
//! a copy beside the instruction, which is encoded anew for it, and what it has written there goes
//! to the card. If it traps, it was not carried out ([`recovery`]).

use super::context::Context;
use super::exec::Cpu;
use super::plan::Plan;
use super::table::{TABLE, table};
use super::{Stop, flags};
use crate::maps::real_mmap;
use crate::{client, combine, tell, trap, watch};
use iced_x86::{
    CpuidFeature, Encoder, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use std::arch::global_asm;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a place: the longest instruction, and the return behind it.
const PLACE: usize = 16;
const CODE: usize = (TABLE + 1) * PLACE;
/// Where operands of the card are copied to.
const DATA: usize = CODE.next_multiple_of(PAGE);
const PAGE: usize = 4096;
/// The operand's place within its page: with room in front for its own misalignment.
const MARGIN: usize = 1024;
/// The most bytes of an operand (`fxsave` has 512).
const WIDEST: usize = 512;
const RET: u8 = 0xC3;
/// Parts of the vector state that are exchanged: all but the tiles of AMX, which are large, and
/// which no instruction here uses.
const PARTS: u64 = !(0b11 << 17);
/// Flags that an instruction may depend on.
const FLAGS: u64 = flags::ALL | flags::DIRECTION;
/// In the saved vector state: the control word of the x87 unit, and that of the vector units.
const CONTROL: usize = 0;
const MXCSR: usize = 24;
/// Their exceptions, all masked.
const MASKED: u16 = 0x3F;
const MXCSR_MASKED: u32 = 0x3F << 7;

/// General registers.
const GENERAL: usize = 16;

static START: AtomicUsize = AtomicUsize::new(0);

/// What decodes and encodes: made before the first trap, whose handler is not to allocate.
struct Tools {
    factory: InstructionInfoFactory,
    encoder: Encoder,
    /// The encoder's buffer, when it does not have it.
    buffer: Vec<u8>,
}

static TOOLS: Mutex<Option<Tools>> = Mutex::new(None);

/// Makes what traps need.
pub(crate) fn prepare() {
    drop(table());
    let tools = Tools {
        factory: InstructionInfoFactory::new(),
        encoder: Encoder::new(64),
        buffer: Vec::with_capacity(2 * PLACE),
    };
    *TOOLS.lock().unwrap_or_else(PoisonError::into_inner) = Some(tools);
    let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    let found = real_mmap(0, DATA + PAGE, all, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0);
    let Some(start) = found else {
        tell::say("the system gives no memory that instructions can be run in");
        tell::end()
    };
    START.store(start, Ordering::Relaxed);
}

/// How an instruction uses what it is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    /// Vector, mask or x87 registers, or their state.
    vectors: bool,
    has_memory: bool,
    /// Whether it reads and writes its operand in memory; `None`: not to be known before.
    access: Option<(bool, bool)>,
    /// Its operand in memory cannot stay where it is: its address is relative to the instruction or
    /// to the stack.
    copied: bool,
    /// No other thread sees its operand half done.
    atomic: bool,
}

impl Usage {
    /// `None`: an instruction that only the program itself can run.
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        let operands = || 0..instruction.op_count();
        let mut memory = operands().filter(|&op| instruction.op_kind(op) == OpKind::Memory);
        let (operand, other) = (memory.next(), memory.next());
        let registers = || operands().filter(|&op| instruction.op_kind(op) == OpKind::Register);
        let is_stack = |register: Register| register.full_register() == Register::RSP;
        let names_own = registers().any(|op| {
            let register = instruction.op_register(op);
            is_stack(register) || register.is_segment_register() || register.is_tmm()
        });
        let is_own = instruction.flow_control() != FlowControl::Next
            || instruction.is_stack_instruction()
            || instruction.is_privileged()
            || instruction.is_string_instruction()
            || instruction.is_vsib()
            || changes_the_thread(instruction.mnemonic());
        if other.is_some() || names_own || is_own {
            return None;
        }
        let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let info = tools.as_mut()?.factory.info(instruction);
        // Others use memory that no operand names.
        if info.used_memory().len() != usize::from(operand.is_some()) {
            return None;
        }
        let access = operand.and_then(|operand| match info.op_access(operand) {
            _ if instruction.has_op_mask() => None,
            OpAccess::Read => Some((true, false)),
            OpAccess::Write => Some((false, true)),
            // `cmpxchg` writes in any case: what was there, if nothing else.
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Some((true, true)),
            _ => None,
        });
        let general = registers().all(|op| instruction.op_register(op).is_gpr());
        let vectors = !general || !instruction.cpuid_features().iter().all(|&feature| is_of_integers(feature));
        let has_memory = operand.is_some();
        let bases = [instruction.memory_base(), instruction.memory_index()];
        let copied = has_memory && (instruction.is_ip_rel_memory_operand() || bases.into_iter().any(is_stack));
        let atomic = has_memory && (instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg);
        Some(Self { vectors, has_memory, access, copied, atomic })
    }
}

/// Instructions that are more than registers and memory.
fn changes_the_thread(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(mnemonic, M::Wrfsbase | M::Wrgsbase | M::Wrpkru | M::Swapgs | M::Umonitor | M::Umwait | M::Tpause)
}

/// Extensions whose instructions on general registers have no other state.
fn is_of_integers(feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    matches!(
        feature,
        F::INTEL8086
            | F::INTEL186
            | F::INTEL286
            | F::INTEL386
            | F::INTEL486
            | F::X64
            | F::CMOV
            | F::CX8
            | F::CMPXCHG16B
            | F::BMI1
            | F::BMI2
            | F::ADX
            | F::MOVBE
            | F::POPCNT
            | F::LZCNT
            | F::TSC
            | F::RDTSCP
            | F::CPUID
    )
}

/// Carries out the instruction, whose code has place `place`.
pub(super) fn step(
    cpu: &mut Cpu,
    instruction: &Instruction,
    plan: &Plan,
    usage: Usage,
    place: usize,
) -> Result<(), Stop> {
    if !usage.has_memory {
        return in_place(cpu, instruction, usage, place);
    }
    let at = cpu.at(plan)?;
    let len = instruction.memory_size().size();
    if len == 0 || len > WIDEST {
        return Err(Stop::Unknown);
    }
    if usage.atomic {
        combine::flush(cpu.state);
        combine::forget(cpu.state);
    }
    if cpu.is_card(at, len) {
        return on_card(cpu, instruction, usage, (at, len));
    }
    if watch::is_watched(at, len) {
        cpu.use_watched(at, len);
    }
    if usage.access.is_none_or(|(_, writes)| writes) {
        cpu.stored(at, len);
    }
    if !usage.copied {
        return in_place(cpu, instruction, usage, place);
    }
    let (true, false) = (usage.access.is_some(), usage.atomic) else { return Err(Stop::Unknown) };
    let mut operand = [0; WIDEST];
    if !client::load(at, &mut operand[..len]) {
        return Err(Stop::Memory);
    }
    on_copy(cpu, instruction, usage, at, &mut operand[..len])?;
    let writes = usage.access.is_some_and(|(_, writes)| writes);
    if writes && !client::store(at, &operand[..len]) { Err(Stop::Memory) } else { Ok(()) }
}

/// On an operand of the card's.
fn on_card(cpu: &mut Cpu, instruction: &Instruction, usage: Usage, (at, len): (usize, usize)) -> Result<(), Stop> {
    let Some((reads, writes)) = usage.access else { return Err(Stop::Unknown) };
    cpu.touched = true;
    if writes {
        cpu.state.polls.forget();
    }
    combine::flush(cpu.state);
    combine::forget(cpu.state);
    let mut operand = [0; WIDEST];
    let operand = &mut operand[..len];
    if reads && !trap::card_read(cpu.state, at, operand) {
        return Err(Stop::Memory);
    }
    on_copy(cpu, instruction, usage, at, operand)?;
    if writes {
        trap::card_write(cpu.state, at, operand);
    }
    Ok(())
}

fn pointer(at: usize) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(at)
}

/// Puts code to its place, if it is not there: processors begin anew after a store to code.
fn write_code(at: usize, bytes: &[u8; PLACE]) {
    let place = pointer(at).cast::<[u8; PLACE]>();
    // SAFETY: the place is this library's, which is used under the card's lock.
    unsafe {
        if *place != *bytes {
            *place = *bytes;
        }
    }
}

/// As it stands, its operand in memory where it is.
fn in_place(cpu: &mut Cpu, instruction: &Instruction, usage: Usage, place: usize) -> Result<(), Stop> {
    let code = START.load(Ordering::Relaxed) + place * PLACE;
    let mut bytes = [RET; PLACE];
    let len = instruction.len();
    // The place may have had another instruction, or none.
    if len >= PLACE || !client::load(instruction.ip() as usize, &mut bytes[..len]) {
        return Err(Stop::Memory);
    }
    write_code(code, &bytes);
    run(cpu.context, code, usage.vectors)
}

/// On a copy of its operand at `at`.
fn on_copy(cpu: &mut Cpu, instruction: &Instruction, usage: Usage, at: usize, operand: &mut [u8]) -> Result<(), Stop> {
    let mut tools = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Tools { encoder, buffer, .. }) = tools.as_mut() else { return Err(Stop::Unknown) };
    let start = START.load(Ordering::Relaxed);
    let (code, data) = (start + TABLE * PLACE, start + DATA + MARGIN + at % MARGIN);
    let mut copy = *instruction;
    copy.set_memory_base(Register::RIP);
    copy.set_memory_index(Register::None);
    copy.set_memory_index_scale(1);
    copy.set_segment_prefix(Register::None);
    copy.set_memory_displacement64(data as u64);
    copy.set_memory_displ_size(8);
    buffer.clear();
    encoder.set_buffer(std::mem::take(buffer));
    let encoded = encoder.encode(&copy, code as u64);
    *buffer = encoder.take_buffer();
    let mut bytes = [RET; PLACE];
    match bytes.get_mut(..buffer.len()) {
        Some(place) if encoded.is_ok() && buffer.len() < PLACE => place.copy_from_slice(buffer),
        _ => return Err(Stop::Unknown),
    }
    write_code(code, &bytes);
    // SAFETY: the place is this library's, which is used under the card's lock.
    unsafe { pointer(data).copy_from_nonoverlapping(operand.as_ptr(), operand.len()) };
    run(cpu.context, code, usage.vectors)?;
    // SAFETY: as above.
    unsafe { operand.as_mut_ptr().copy_from_nonoverlapping(pointer(data), operand.len()) };
    Ok(())
}

/// Calls the instruction at `code` with the program's registers.
fn run(context: &mut Context, code: usize, vectors: bool) -> Result<(), Stop> {
    let (area, parts) = match vectors.then(|| context.vector_area()) {
        None => (std::ptr::null_mut(), 0),
        Some(None) => return Err(Stop::Unknown),
        Some(Some((area, parts))) => {
            // SAFETY: both words are in the area's first bytes.
            let (control, mxcsr) =
                unsafe { (area.add(CONTROL).cast::<u16>().read(), area.add(MXCSR).cast::<u32>().read()) };
            // An exception would be this library's.
            if control & MASKED != MASKED || mxcsr & MXCSR_MASKED != MXCSR_MASKED {
                return Err(Stop::Unknown);
            }
            (area, parts & PARTS)
        }
    };
    let general = std::array::from_fn(|number| context.general[number]);
    let mut registers = Registers { general, flags: context.flags.word() & FLAGS };
    // SAFETY: the code is one instruction and a return; what it does to memory the program's own
    // instruction would do, and what traps is left in `recovery`.
    if unsafe { tilework_native_run(&mut registers, code, area, parts) } != 0 {
        return Err(Stop::Memory);
    }
    context.general[..GENERAL].copy_from_slice(&registers.general);
    context.flags.set_masked(FLAGS, registers.flags);
    Ok(())
}

/// The general registers by their numbers, and the flags.
#[repr(C)]
struct Registers {
    general: [u64; GENERAL],
    flags: u64,
}

unsafe extern "C" {
    static tilework_native_failed: u8;
    fn tilework_native_run(registers: *mut Registers, code: usize, area: *mut u8, parts: u64) -> u32;
}

/// Where to go on when the instruction at `rip` trapped, if it is one of the copies.
pub(crate) fn recovery(rip: usize) -> Option<usize> {
    let start = START.load(Ordering::Relaxed);
    (start != 0 && (start..start + CODE).contains(&rip)).then(|| (&raw const tilework_native_failed).addr())
}

// rdi: `Registers`, rsi: the code, rdx: the area of the vector registers or null, rcx: its parts.
global_asm!(
    ".pushsection .text.tilework_native,\"ax\",@progbits",
    ".p2align 4",
    ".globl tilework_native_run",
    ".hidden tilework_native_run",
    ".globl tilework_native_failed",
    ".hidden tilework_native_failed",
    "tilework_native_run:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 40",
    "mov [rsp], rdi",
    "mov [rsp + 8], rsi",
    "mov [rsp + 16], rdx",
    "mov [rsp + 24], rcx",
    "stmxcsr [rsp + 32]",
    "fnstcw [rsp + 36]",
    "test rdx, rdx",
    "jz 2f",
    "mov r8, rdx",
    "mov eax, [rsp + 24]",
    "mov edx, [rsp + 28]",
    "xrstor64 [r8]",
    "2:",
    "push qword ptr [rdi + 128]",
    "popfq",
    "mov rax, [rdi]",
    "mov rcx, [rdi + 8]",
    "mov rdx, [rdi + 16]",
    "mov rbx, [rdi + 24]",
    "mov rbp, [rdi + 40]",
    "mov rsi, [rdi + 48]",
    "mov r8, [rdi + 64]",
    "mov r9, [rdi + 72]",
    "mov r10, [rdi + 80]",
    "mov r11, [rdi + 88]",
    "mov r12, [rdi + 96]",
    "mov r13, [rdi + 104]",
    "mov r14, [rdi + 112]",
    "mov r15, [rdi + 120]",
    "mov rdi, [rdi + 56]",
    "call qword ptr [rsp + 8]",
    // `mov`, `push` and `pop` leave the flags.
    "push rax",
    "mov rax, [rsp + 8]",
    "mov [rax + 8], rcx",
    "mov [rax + 16], rdx",
    "mov [rax + 24], rbx",
    "mov [rax + 40], rbp",
    "mov [rax + 48], rsi",
    "mov [rax + 56], rdi",
    "mov [rax + 64], r8",
    "mov [rax + 72], r9",
    "mov [rax + 80], r10",
    "mov [rax + 88], r11",
    "mov [rax + 96], r12",
    "mov [rax + 104], r13",
    "mov [rax + 112], r14",
    "mov [rax + 120], r15",
    "pop rcx",
    "mov [rax], rcx",
    "pushfq",
    "pop qword ptr [rax + 128]",
    "cld",
    "mov r8, [rsp + 16]",
    "test r8, r8",
    "jz 3f",
    "mov eax, [rsp + 24]",
    "mov edx, [rsp + 28]",
    "xsave64 [r8]",
    "3:",
    "xor eax, eax",
    "4:",
    "fldcw [rsp + 36]",
    "ldmxcsr [rsp + 32]",
    "add rsp, 40",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    // The return address of the call is still there.
    "tilework_native_failed:",
    "cld",
    "add rsp, 8",
    "mov eax, 1",
    "jmp 4b",
    ".popsection",
);
