//! The machine as gdb's target: registers, memory, threads, and how it goes on.

use crate::arch::{PC, Rv32, Rv32Register, Rv32Registers};
use crate::files::part;
use crate::goal::{Back, Goal};
use crate::machine::Machine;
use crate::monitor;
use crate::watch::Watch;
use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume, MultiThreadResumeOps,
    MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps};
use gdbstub::target::ext::base::single_register_access::{SingleRegisterAccess, SingleRegisterAccessOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::host_io::{
    HostIo, HostIoClose, HostIoCloseOps, HostIoErrno, HostIoError, HostIoFstat, HostIoFstatOps, HostIoOpen,
    HostIoOpenFlags, HostIoOpenMode, HostIoOpenOps, HostIoOps, HostIoPread, HostIoPreadOps, HostIoResult, HostIoStat,
};
use gdbstub::target::ext::libraries::{Libraries, LibrariesOps};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use tilework_sim::Thread;

/// gdb's number of a thread: they count from one.
pub(crate) fn tid_of(thread: Thread) -> Tid {
    NonZeroUsize::MIN.saturating_add(thread.number())
}

fn thread_of(tid: Tid) -> Thread {
    Thread::new(tid.get() - 1)
}

impl Target for Machine {
    type Arch = Rv32;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Rv32, Infallible> {
        BaseOps::MultiThread(self)
    }
    /// Breakpoints are compared with program counters, not written into memory.
    fn guard_rail_implicit_sw_breakpoints(&self) -> bool {
        true
    }
    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }
    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
    fn support_libraries(&mut self) -> Option<LibrariesOps<'_, Self>> {
        Some(self)
    }
    fn support_host_io(&mut self) -> Option<HostIoOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Machine {
    fn read_registers(&mut self, registers: &mut Rv32Registers, tid: Tid) -> TargetResult<(), Self> {
        let core = self.chip.core(thread_of(tid)).ok_or(TargetError::NonFatal)?;
        self.note_shown(thread_of(tid));
        *registers = Rv32Registers { x: core.registers, pc: core.pc };
        Ok(())
    }

    fn write_registers(&mut self, registers: &Rv32Registers, tid: Tid) -> TargetResult<(), Self> {
        let thread = thread_of(tid);
        let core = self.chip.core(thread).ok_or(TargetError::NonFatal)?;
        let (old, new) = (core.registers.into_iter().chain([core.pc]), registers.x.into_iter().chain([registers.pc]));
        for (index, (old, new)) in old.zip(new).enumerate() {
            if old != new {
                self.set_register(thread, index, new);
            }
        }
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, start: u32, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        self.state.reader = thread_of(tid);
        match self.chip.peek(thread_of(tid), start, data) {
            0 => Err(TargetError::NonFatal),
            read => Ok(read),
        }
    }

    fn write_addrs(&mut self, start: u32, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        if self.set_memory(thread_of(tid), start, data) { Ok(()) } else { Err(TargetError::NonFatal) }
    }

    fn list_active_threads(&mut self, thread_is_active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        // The first one is taken where gdb names none: when it connects, and when it goes back.
        let first = self.selected();
        thread_is_active(tid_of(first));
        let others = self.chip.threads().filter(|&thread| thread != first);
        others.for_each(|thread| thread_is_active(tid_of(thread)));
        Ok(())
    }

    fn is_thread_alive(&mut self, tid: Tid) -> Result<bool, Infallible> {
        Ok(self.chip.core(thread_of(tid)).is_some())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Machine {
    fn read_register(&mut self, tid: Tid, register: Rv32Register, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        let core = self.chip.core(thread_of(tid)).ok_or(TargetError::NonFatal)?;
        self.note_shown(thread_of(tid));
        let value = if register.0 == PC { core.pc } else { core.registers[register.0] };
        Ok(part(&value.to_le_bytes(), 0, 4, buffer))
    }

    fn write_register(&mut self, tid: Tid, register: Rv32Register, value: &[u8]) -> TargetResult<(), Self> {
        let word = value.first_chunk().ok_or(TargetError::NonFatal)?;
        self.set_register(thread_of(tid), register.0, u32::from_le_bytes(*word));
        Ok(())
    }
}

impl ThreadExtraInfo for Machine {
    fn thread_extra_info(&self, tid: Tid, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let text = self.chip.core(thread_of(tid)).map_or_else(String::new, |core| monitor::name(&core));
        Ok(part(text.as_bytes(), 0, text.len(), buffer))
    }
}

impl MultiThreadResume for Machine {
    fn resume(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.state.goal = self.state.until.take().map_or(Goal::Free, Goal::Until);
        Ok(())
    }

    fn set_resume_action_continue(&mut self, _tid: Tid, _signal: Option<Signal>) -> Result<(), Infallible> {
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }
    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }
    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        if self.state.history.goes_back() { Some(self) } else { None }
    }
    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        if self.state.history.goes_back() { Some(self) } else { None }
    }
    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Machine {
    fn set_resume_action_step(&mut self, tid: Tid, _signal: Option<Signal>) -> Result<(), Infallible> {
        self.set_resume_action_range_step(tid, 0, 0)
    }
}

impl MultiThreadRangeStepping for Machine {
    fn set_resume_action_range_step(&mut self, tid: Tid, start: u32, end: u32) -> Result<(), Infallible> {
        let thread = thread_of(tid);
        self.settle(thread);
        let count = self.progress(thread).1 + 1;
        self.state.goal = Goal::Step { thread, count, range: start..end, alone: false };
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Machine {
    /// Time passes for all cores or for none. gdb asks for this when it steps over a breakpoint,
    /// which it has taken away; the others still arrive at it.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        if let Goal::Step { alone, .. } = &mut self.state.goal {
            *alone = true;
        }
        Ok(())
    }
}

impl ReverseStep<Tid> for Machine {
    fn reverse_step(&mut self, tid: Tid) -> Result<(), Infallible> {
        let thread = thread_of(tid);
        let count = self.progress(thread).1;
        self.state.focus = thread;
        let back = count.checked_sub(1).map_or(Back::Begin, |count| Back::Count { thread, count });
        self.state.goal = Goal::Back(back);
        self.resume()
    }
}

impl ReverseCont<Tid> for Machine {
    fn reverse_cont(&mut self) -> Result<(), Infallible> {
        let back = match self.state.until.take() {
            Some(cycle) => Back::Cycle(cycle),
            None => Back::LastBefore { before: self.moment(), last: None },
        };
        self.state.goal = Goal::Back(back);
        self.resume()
    }
}

impl Breakpoints for Machine {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }
    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Machine {
    fn add_sw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        self.add_breakpoint(address);
        Ok(true)
    }
    fn remove_sw_breakpoint(&mut self, address: u32, _kind: usize) -> TargetResult<bool, Self> {
        Ok(self.remove_breakpoint(address))
    }
}

impl HwWatchpoint for Machine {
    /// Watches the memory of the thread that gdb has last read memory of: it reads what it is to
    /// watch, in the selected thread, just before.
    fn add_hw_watchpoint(&mut self, address: u32, len: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        let known = self.state.owners.get(&(address, len)).copied();
        let thread = known.unwrap_or(self.state.reader);
        self.state.owners.insert((address, len), thread);
        let watch = Watch::of_gdb(&self.chip, thread, address, len, kind);
        Ok(watch.map(|watch| self.add_watch(watch)).is_some())
    }

    fn remove_hw_watchpoint(&mut self, address: u32, len: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        Ok(self.remove_watch(|watch| watch.gdb == Some((kind, address)) && watch.len == u64::from(len)))
    }
}

impl MonitorCmd for Machine {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Infallible> {
        let answer = monitor::execute(self, &String::from_utf8_lossy(command));
        answer.lines().for_each(|line| outputln!(out, "{line}"));
        Ok(())
    }
}

impl Libraries for Machine {
    fn get_libraries(&self, offset: u64, length: usize, buffer: &mut [u8]) -> TargetResult<usize, Self> {
        let xml = self.state.code.xml(self.state.focus.tile());
        Ok(part(xml.as_bytes(), offset, length, buffer))
    }
}

impl HostIo for Machine {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }
    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }
    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }
    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }
}

impl HostIoOpen for Machine {
    /// Only the ELF files of code that the chip runs, and only for reading.
    fn open(&mut self, name: &[u8], flags: HostIoOpenFlags, _mode: HostIoOpenMode) -> HostIoResult<u32, Self> {
        if flags.intersects(HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR) {
            return Err(HostIoError::Errno(HostIoErrno::EROFS));
        }
        let state = &mut self.state;
        state.files.open(&state.code, name).ok_or(HostIoError::Errno(HostIoErrno::ENOENT))
    }
}

impl HostIoClose for Machine {
    fn close(&mut self, descriptor: u32) -> HostIoResult<(), Self> {
        if self.state.files.close(descriptor) { Ok(()) } else { Err(HostIoError::Errno(HostIoErrno::EBADF)) }
    }
}

impl HostIoPread for Machine {
    fn pread(&mut self, descriptor: u32, count: usize, offset: u64, buffer: &mut [u8]) -> HostIoResult<usize, Self> {
        let file = self.state.files.get(descriptor).ok_or(HostIoError::Errno(HostIoErrno::EBADF))?;
        Ok(part(file, offset, count, buffer))
    }
}

impl HostIoFstat for Machine {
    fn fstat(&mut self, descriptor: u32) -> HostIoResult<HostIoStat, Self> {
        let file = self.state.files.get(descriptor).ok_or(HostIoError::Errno(HostIoErrno::EBADF))?;
        Ok(HostIoStat {
            st_dev: 0,
            st_ino: 0,
            st_mode: HostIoOpenMode::S_IFREG | HostIoOpenMode::S_IRUSR,
            st_nlink: 1,
            st_uid: 0,
            st_gid: 0,
            st_rdev: 0,
            st_size: file.len() as u64,
            st_blksize: 0,
            st_blocks: 0,
            st_atime: 0,
            st_mtime: 0,
            st_ctime: 0,
        })
    }
}
