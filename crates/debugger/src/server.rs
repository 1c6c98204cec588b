//! The connection to gdb: one client, on the loopback address.

use crate::machine::Machine;
use crate::target::tid_of;
use gdbstub::common::Signal;
use gdbstub::conn::Connection;
use gdbstub::stub::state_machine::state::Disconnected;
use gdbstub::stub::state_machine::{GdbStubStateMachine, GdbStubStateMachineInner};
use gdbstub::stub::{DisconnectReason, GdbStub, MultiThreadStopReason};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often somebody who waits for gdb looks for an interrupt.
const PATIENCE: Duration = Duration::from_millis(50);
/// Bytes of the longest packet.
const PACKET_BYTES: usize = 1 << 14;

/// What gdb says of a run.
pub(crate) type Reason = MultiThreadStopReason<u32>;

/// What is called with the port when the debugger listens.
pub(crate) type OnReady = Box<dyn Fn(u16) + Send>;

type Stub = GdbStubStateMachine<'static, Machine, Wire>;

/// What became of the chip's stop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It runs on, to its goal.
    Runs,
    /// gdb is gone: it runs to its end.
    Gone,
    /// gdb ends it.
    Killed,
}

/// The bytes to gdb, packet by packet.
struct Wire {
    stream: TcpStream,
    out: Vec<u8>,
}

impl Connection for Wire {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.out.push(byte);
        Ok(())
    }
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.extend_from_slice(bytes);
        Ok(())
    }
    fn flush(&mut self) -> io::Result<()> {
        let result = Write::write_all(&mut self.stream, &self.out);
        self.out.clear();
        result
    }
}

/// The port, and the client.
pub(crate) struct Server {
    /// 0: any.
    port: u16,
    /// Called with the port when the debugger listens.
    on_ready: OnReady,
    stub: Option<Stub>,
    /// Bytes of the client that are not used yet.
    input: VecDeque<u8>,
    /// Reads for [`Server::input`].
    reader: Option<TcpStream>,
    interrupted: Arc<AtomicBool>,
}

impl Server {
    /// A server for a port, or for any free one with 0. Nobody is accepted before the chip has come
    /// to the program: gdb tries again when it is refused, but gives up on a server that is silent.
    pub(crate) fn new(port: u16, on_ready: OnReady, interrupted: Arc<AtomicBool>) -> io::Result<Self> {
        // A port that is taken is told before anything runs.
        drop(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?);
        Ok(Self { port, on_ready, stub: None, input: VecDeque::new(), reader: None, interrupted })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Waits for the client and lets it do what it wants before the chip runs on.
    ///
    /// # Errors
    /// The port cannot be had any more.
    pub(crate) fn attach(&mut self, machine: &mut Machine) -> io::Result<Answer> {
        let Some(stream) = self.accept()? else { return Ok(Answer::Gone) };
        Ok(match self.begin(stream, machine) {
            Ok(()) => self.serve(machine),
            Err(_) => Answer::Gone,
        })
    }

    /// The client; `None` when the user does not wait for it any more. The port is closed when it
    /// has come: a second one is refused.
    fn accept(&self) -> io::Result<Option<TcpStream>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        listener.set_nonblocking(true)?;
        (self.on_ready)(listener.local_addr()?.port());
        loop {
            match listener.accept() {
                Ok((stream, _)) => return Ok(Some(stream)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if self.is_interrupted() {
                        return Ok(None);
                    }
                    std::thread::sleep(PATIENCE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn begin(&mut self, stream: TcpStream, machine: &mut Machine) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        self.reader = Some(stream.try_clone()?);
        let wire = Wire { stream, out: Vec::new() };
        let stub = GdbStub::builder(wire).packet_buffer_size(PACKET_BYTES).build();
        let stub = stub.map_err(|error| io::Error::other(error.to_string()))?;
        let stub = stub.run_state_machine(machine).map_err(|error| io::Error::other(error.to_string()))?;
        self.stub = Some(stub);
        Ok(())
    }

    /// Tells gdb why the chip stopped, and lets it do what it wants before the chip runs on.
    pub(crate) fn stopped(&mut self, machine: &mut Machine, reason: Reason) -> Answer {
        match self.stub.take() {
            Some(Stub::Running(stub)) => self.stub = stub.report_stop(machine, reason).ok(),
            other => self.stub = other,
        }
        self.serve(machine)
    }

    /// Prints a line in gdb, which waits for a stop: packet `O` of the protocol.
    pub(crate) fn print(&mut self, text: &str) {
        let Some(Stub::Running(stub)) = &mut self.stub else { return };
        let hex: String = text.bytes().chain([b'\n']).map(|byte| format!("{byte:02x}")).collect();
        let sum = hex.bytes().fold(b'O', u8::wrapping_add);
        let wire = stub.borrow_conn();
        // A connection that is gone is noticed at the next packet.
        let _ = wire.write_all(format!("$O{hex}#{sum:02x}").as_bytes()).and_then(|()| wire.flush());
    }

    /// Works on packets until the chip runs.
    fn serve(&mut self, machine: &mut Machine) -> Answer {
        loop {
            let next = match self.stub.take() {
                Some(Stub::Idle(stub)) => match self.byte(true) {
                    Ok(Some(byte)) => stub.incoming_data(machine, byte).ok(),
                    Ok(None) if self.is_interrupted() => return Answer::Gone,
                    Ok(None) => Some(stub.into()),
                    Err(_) => return Answer::Gone,
                },
                Some(Stub::CtrlCInterrupt(stub)) => stub.interrupt_handled(machine, None::<Reason>).ok(),
                Some(Stub::Disconnected(stub)) => return end(stub),
                Some(stub @ Stub::Running(_)) => {
                    self.stub = Some(stub);
                    return Answer::Runs;
                }
                // What does not speak the protocol is not served.
                None => return Answer::Gone,
            };
            self.stub = next;
        }
    }

    /// Looks, while the chip runs, whether gdb wants something; true when it interrupts.
    pub(crate) fn poll(&mut self, machine: &mut Machine) -> Result<bool, Answer> {
        while let Some(byte) = self.byte(false).map_err(|_| Answer::Gone)? {
            let next = match self.stub.take() {
                Some(Stub::Running(stub)) => stub.incoming_data(machine, byte).ok(),
                other => other,
            };
            match next {
                Some(Stub::CtrlCInterrupt(stub)) => {
                    self.stub = stub.interrupt_handled(machine, None::<Reason>).ok();
                    return Ok(true);
                }
                Some(Stub::Disconnected(stub)) => return Err(end(stub)),
                None => return Err(Answer::Gone),
                stub => self.stub = stub,
            }
        }
        Ok(false)
    }

    /// The run has ended.
    pub(crate) fn end(&mut self, machine: &mut Machine, code: u8) {
        if let Some(Stub::Running(stub)) = self.stub.take() {
            // A client that is gone need not know.
            let _ = stub.report_stop(machine, Reason::Exited(code));
        }
    }

    /// The next byte of the client; `None` when there is none.
    fn byte(&mut self, waits: bool) -> io::Result<Option<u8>> {
        if self.input.is_empty() {
            let Some(reader) = &mut self.reader else { return Err(ErrorKind::NotConnected.into()) };
            reader.set_nonblocking(!waits)?;
            let mut bytes = [0; 4096];
            let read = reader.read(&mut bytes);
            reader.set_nonblocking(false)?;
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => self.input.extend(&bytes[..count]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.input.pop_front())
    }
}

fn end(mut stub: GdbStubStateMachineInner<'static, Disconnected, Machine, Wire>) -> Answer {
    if stub.get_reason() != DisconnectReason::Kill {
        return Answer::Gone;
    }
    // gdb waits for it after `vKill`, and does not mind it after `k`.
    let wire = stub.borrow_conn();
    let _ = wire.write_all(b"$OK#9a").and_then(|()| wire.flush());
    Answer::Killed
}

/// A stop of `thread` with a signal.
pub(crate) fn signal(thread: tilework_sim::Thread, signal: Signal) -> Reason {
    Reason::SignalWithThread { tid: tid_of(thread), signal }
}
