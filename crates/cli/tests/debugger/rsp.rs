//! A small client of the GDB remote protocol, and the command that it debugs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

/// The command under the debugger.
pub(crate) struct Debugged {
    child: Child,
    stderr: BufReader<ChildStderr>,
    pub(crate) port: u16,
}

impl Debugged {
    /// Runs an example on any free port.
    pub(crate) fn start(name: &str, out: &Path, more: &[&str]) -> Self {
        let input = super::example_input(name);
        let input = if name == "ring" { vec![] } else { vec!["--input", &input] };
        Self::of(&super::example(name), out, &[&input[..], more].concat())
    }

    /// Repeats the run of a bundle on any free port.
    pub(crate) fn replay(bundle: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilework"));
        command.arg("replay").arg(bundle).args(["--report", "json", "--gdb", "0"]);
        Self::start_command(command)
    }

    /// Runs a program on any free port.
    pub(crate) fn of(program: &Path, out: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilework"));
        command.arg("run").arg(program).arg("--out").arg(out).args(["--report", "json", "--gdb", "0"]).args(more);
        Self::start_command(command)
    }

    /// Runs a shell on the card, on any free port.
    pub(crate) fn card(script: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilework"));
        command.args(["card", "--board", "p100", "--gdb", "0", "--", "bash", "-c", script]);
        Self::start_command(command)
    }

    fn start_command(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let port = line.trim_end().rsplit(':').next().and_then(|port| port.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no port in: {line}"));
        Self { child, stderr, port }
    }

    /// Waits for its end: exit code, standard output, standard error.
    pub(crate) fn end(mut self) -> super::Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut stderr).unwrap();
        let code = self.child.wait().unwrap().code().expect("the command ends by itself");
        super::Ended { code, stdout, stderr }
    }
}

/// A client.
pub(crate) struct Client {
    stream: TcpStream,
    /// What the debugger has printed.
    pub(crate) printed: String,
}

impl Client {
    pub(crate) fn connect(port: u16) -> Self {
        let (client, offered) = Self::connect_to(port);
        for feature in ["ReverseStep+", "ReverseContinue+", "qXfer:libraries:read+", "vContSupported+"] {
            assert!(offered.contains(feature), "{feature}: {offered}");
        }
        client
    }

    /// A client, and what the debugger offers.
    pub(crate) fn connect_to(port: u16) -> (Self, String) {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        let mut client = Self { stream, printed: String::new() };
        let offered = client.ask("qSupported:multiprocess-;swbreak+;hwbreak+;vContSupported+");
        (client, offered)
    }

    pub(crate) fn send(&mut self, packet: &str) {
        let sum = packet.bytes().fold(0_u8, u8::wrapping_add);
        self.stream.write_all(format!("${packet}#{sum:02x}").as_bytes()).unwrap();
    }

    fn byte(&mut self) -> u8 {
        let mut byte = [0];
        self.stream.read_exact(&mut byte).unwrap();
        byte[0]
    }

    /// The next packet, with run lengths written out; `None` for one that is printed.
    pub(crate) fn receive(&mut self) -> String {
        loop {
            while self.byte() != b'$' {}
            let mut packet = Vec::new();
            loop {
                match self.byte() {
                    b'#' => break,
                    b'*' => {
                        let count = self.byte() - 29;
                        let last = *packet.last().unwrap();
                        packet.extend(std::iter::repeat_n(last, count.into()));
                    }
                    b'}' => packet.push(self.byte() ^ 0x20),
                    byte => packet.push(byte),
                }
            }
            let (_, _) = (self.byte(), self.byte());
            self.stream.write_all(b"+").unwrap();
            let packet = String::from_utf8_lossy(&packet).into_owned();
            match packet.strip_prefix('O') {
                Some(hex) if packet != "OK" => self.printed += &text_of(hex),
                _ => return packet,
            }
        }
    }

    pub(crate) fn ask(&mut self, packet: &str) -> String {
        self.send(packet);
        self.receive()
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, packet: &str, answer: &str) {
        assert_eq!(self.ask(packet), answer, "{packet}");
    }

    /// A monitor command; what it prints.
    pub(crate) fn monitor(&mut self, command: &str) -> String {
        self.printed.clear();
        let hex: String = command.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.expect(&format!("qRcmd,{hex}"), "OK");
        std::mem::take(&mut self.printed)
    }

    /// Selects a thread for registers, memory and going back.
    pub(crate) fn select(&mut self, thread: &str) {
        self.expect(&format!("Hg{thread}"), "OK");
        self.expect(&format!("Hc{thread}"), "OK");
    }

    /// The 32 registers and the program counter of the selected thread.
    pub(crate) fn registers(&mut self) -> Vec<u32> {
        words(&self.ask("g"))
    }

    pub(crate) fn pc(&mut self) -> u32 {
        self.registers()[32]
    }

    /// The list of libraries.
    pub(crate) fn libraries(&mut self) -> String {
        let mut xml = String::new();
        loop {
            let part = self.ask(&format!("qXfer:libraries:read::{:x},800", xml.len()));
            xml += &part[1..];
            if part.starts_with('l') {
                return xml;
            }
        }
    }
}

/// The words of bytes in hexadecimal.
pub(crate) fn words(hex: &str) -> Vec<u32> {
    let word = |digits: &[u8]| u32::from_str_radix(std::str::from_utf8(digits).unwrap(), 16).unwrap().swap_bytes();
    hex.as_bytes().chunks_exact(8).map(word).collect()
}

fn text_of(hex: &str) -> String {
    let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    String::from_utf8(hex.as_bytes().chunks_exact(2).map(digits).collect()).unwrap()
}

/// The thread of a stop reply.
#[track_caller]
pub(crate) fn thread_of(stop: &str) -> String {
    let thread = stop.split_once("thread:").unwrap_or_else(|| panic!("no thread in {stop}")).1;
    thread.split(';').next().unwrap().to_owned()
}
