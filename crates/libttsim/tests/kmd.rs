//! Python programs that open `/dev/tenstorrent`, by `python/kmd.py`: one of ours, and those of the
//! original of the command queue.
//!
//! Python is `python3.11`, or what `TILEWORK_PYTHON` says. `TILEWORK_PY_DRIVERS` names a folder
//! with checkouts of the public repositories `boopdotpng/tenstorrent-python-driver` and
//! `boopdotpng/blackhole-py` under these names, each set up as its README says; they need Python
//! 3.12 with numpy. What is not there is left out, and the test says so.

mod common;

use std::path::Path;
use std::process::{Command, Output};

use common::{library, text};

/// The Python, if it starts.
fn python() -> Result<Command, String> {
    let name = std::env::var_os("TILEWORK_PYTHON").unwrap_or_else(|| "python3.11".into());
    match Command::new(&name).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(Command::new(name)),
        _ => Err(format!("{} does not start (TILEWORK_PYTHON names another)", name.display())),
    }
}

/// Has `python` run `script` with `arguments` by kmd.py on a P100.
fn on_the_card(python: &mut Command, script: &Path, arguments: &[&str]) -> Output {
    python
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("python/kmd.py"))
        .arg(library())
        .arg(script)
        .args(arguments)
        .env_remove("TILEWORK_ON_FAULT")
        .env_remove("TILEWORK_WITHOUT_BUGS")
        .env("TILEWORK_BOARD", "p100")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap()
}

/// Asks for what the kernel driver offers, in the way of its clients.
const CLIENT: &str = r#"
import ctypes, fcntl, mmap, os, struct, sys, time
from pathlib import Path
assert sys.argv[1:] == ["one", "two"] and __name__ == "__main__"
print("type", Path("/sys/class/tenstorrent/tenstorrent!0/tt_card_type").read_text().strip())
fd = os.open("/dev/tenstorrent/0", os.O_RDWR | os.O_CLOEXEC)

def ask(number, format, *values, out=0):
    buffer = bytearray(struct.pack(format, *values)) + bytes(out)
    fcntl.ioctl(fd, 0xFA << 8 | number, buffer, True)
    return bytes(buffer)[len(buffer) - out:]

def window(size):
    number, _, uc, wc, _ = struct.unpack("<IIQQQ", ask(11, "<QQ", size, 0, out=32))
    return number, mmap.mmap(fd, size, flags=mmap.MAP_SHARED, prot=3, offset=uc), mmap.mmap(fd, size, flags=mmap.MAP_SHARED, offset=wc)

def aim(number, address, start, end=None, ordering=1):
    end = end or start
    ask(13, "<IIQ4H5B3xII", number, 0, address, *end, *start, 0, int(end != start), ordering, 0, 0, 0, 0)

print("device", *map(hex, struct.unpack("<I4H", ask(0, "<I", 20, out=20)[:12])))
small, uc, wc = window(2 << 20)
aim(small, 0, (1, 2), (2, 3))
wc[0x1000:0x1008] = b"to all.."
for tile in ((1, 2), (2, 2), (1, 3), (2, 3)):
    aim(small, 0, tile)
    assert uc[0x1000:0x1008] == b"to all..", tile
assert uc[0x1003] == ord("a")
uc[0x1003] = ord("b")
assert wc[0x1000:0x1008] == b"to bll.."

large, far, _ = window(4 << 30)
aim(large, 0, (0, 0))
far[0xFFFF_FFC0:0x1_0000_0000] = bytes(range(64))
assert far[0xFFFF_FFC8] == 8

memory = [mmap.mmap(-1, 8192) for _ in range(2)]
places = [ctypes.addressof(ctypes.c_char.from_buffer(m)) for m in memory]
noc = [struct.unpack("<QQ", ask(7, "<IIQQ", 16, 2, place, 8192, out=16))[1] for place in places]
assert noc == [1 << 60, 1 << 60 | 8192], noc
memory[1][100:105] = b"hello"
aim(small, 1 << 60, (19, 24))
assert uc[8192 + 100:8192 + 105] == b"hello"
uc[4096:4102] = b"answer"
time.sleep(1e-5)  # the write is posted
assert memory[0][4096:4102] == b"answer"
ask(10, "<QQQ", places[0], 8192, 0)
again = mmap.mmap(-1, 4096)
assert struct.unpack("<QQ", ask(7, "<IIQQ", 16, 2, ctypes.addressof(ctypes.c_char.from_buffer(again)), 4096, out=16))[0] == 0

for wrong in (lambda: ask(99, "<I", 0), lambda: ask(11, "<QQ", 4096, 0, out=32), lambda: ask(13, "<IIQ4H5B3xII", 200, *[0] * 13),
              lambda: aim(small, 4096, (1, 2)), lambda: ask(7, "<IIQQ", 16, 2, 1, 4096, out=16), lambda: ask(10, "<QQQ", 1, 1, 0)):
    try:
        wrong()
        print("taken")
    except OSError as error:
        print("refused", error.errno)
ask(12, "<I", small)

before = time.perf_counter()
time.sleep(0.25)
print("slept", round(time.perf_counter() - before, 6))
os.close(fd)
with open(__file__) as file:
    assert mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[:1] == b"\n"
"#;

#[test]
fn a_client_of_the_kernel_driver_finds_what_it_offers() {
    let mut python = match python() {
        Ok(python) => python,
        Err(why) => return println!("a client of the kernel driver is left out: {why}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("client.py");
    std::fs::write(&script, CLIENT).unwrap();
    let output = on_the_card(&mut python, &script, &["one", "two"]);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(!errors.contains("tilework:"), "the library complained:\n{errors}");
    // ENOTTY, then EINVAL each.
    let expected = "type p100a\ndevice 0x14 0x1e52 0xb140 0x1e52 0x43\nrefused 25\nrefused 22\nrefused 22\n\
                    refused 22\nrefused 22\nrefused 22\nslept 0.25\n";
    assert_eq!(said, expected);
}

/// What the library says when blackhole-py reads through a window onto many tiles, to wait for its
/// writes; the value does not matter to it.
const MULTICAST_READ: &str = "a host load through a multicast window";

/// Runs a program of the repository `name` and checks that it found its own results right.
fn original(name: &str, program: &str, arguments: &[&str], slow: bool, verdict: &str) {
    let folder = std::env::var_os("TILEWORK_PY_DRIVERS").ok_or("TILEWORK_PY_DRIVERS names no folder".to_owned());
    let (folder, mut python) = match folder.and_then(|folder| Ok((Path::new(&folder).join(name), python()?))) {
        Ok(parts) => parts,
        Err(why) => return println!("{name}/{program} is left out: {why}"),
    };
    python.current_dir(&folder).env("PYTHONPATH", &folder).env_remove("PROFILE").env_remove("TT_USB");
    if slow {
        python.env("TT_USB", "1");
    }
    let output = on_the_card(&mut python, &folder.join(program), arguments);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{name}/{program}: {}\n{said}\n{errors}", output.status);
    assert!(said.contains(verdict), "{said}");
    let complaint = errors.lines().find(|line| line.starts_with("tilework:") && !line.contains(MULTICAST_READ));
    assert_eq!(complaint, None, "the library complained:\n{errors}");
}

#[test]
fn the_original_multiplies_matrices_by_its_command_queue() {
    let sizes = ["256", "256", "256"];
    original("tenstorrent-python-driver", "examples/matmul_peak.py", &sizes, false, "Validation: PCC=0.99");
}

#[test]
fn the_original_multiplies_matrices_by_slow_dispatch() {
    let sizes = ["256", "256", "256"];
    original("tenstorrent-python-driver", "examples/matmul_peak.py", &sizes, true, "Validation: PCC=0.99");
}

#[test]
fn blackhole_py_adds_one() {
    original("blackhole-py", "main.py", &[], true, "Test Passed");
}
