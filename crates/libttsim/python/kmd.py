"""Runs a Python program that drives a card through /dev/tenstorrent on the simulated card.

    python3 kmd.py [--card TYPE] LIB SCRIPT [ARGUMENT...]

LIB is a shared library with the C interface of libttsim (docs/card.md). The script runs unchanged in this process, as
if started by Python itself. Opening /dev/tenstorrent/0, `fcntl.ioctl` and `mmap.mmap` on it, and reading its
`tt_card_type`, answer as the kernel driver does (tt-kmd, `ioctl.h`); accesses to a mapping go to the library. Programs
in C cannot be served this way, because nobody sees their loads and stores.

Time is the card's. It passes while the script sleeps (`time.sleep`) and, a microsecond each, at its accesses; the
clocks that limits are measured by (`time.perf_counter`, `time.monotonic`) show it. So a script runs the same every
time, and no limit expires only because the simulation is slow.
"""

import argparse
import ctypes
import errno
import fcntl
import mmap
import os
import pathlib
import runpy
import struct
import sys
import threading  # noqa: F401  (binds the host's clock for its own waits before the script sees the card's)
import time

DEVICE = "/dev/tenstorrent/0"
CARD_TYPE = "/sys/class/tenstorrent/tenstorrent!0/tt_card_type"
# tt-umd `board_upi_map`, by the subsystem number of the configuration space; names as tt-kmd's sysfs has them.
CARD_TYPES = {0x36: "p100", 0x43: "p100a", 0x40: "p150a", 0x41: "p150b", 0x42: "p150c", 0x44: "p300b", 0x45: "p300a",
              0x46: "p300c"}

HERTZ = 1_350_000_000  # the AI clock, in which libttsim_clock counts
ACCESS = HERTZ // 1_000_000  # clocks of an access by the host, about a read's round trip over PCIe
MOST_CLOCKS = 0xFFFF_FFFF  # of one call

# tt-kmd `blackhole.c`: windows, their registers, and which BAR they lie in.
SIZE_2M, SIZE_4G = 1 << 21, 1 << 32
SMALL, LARGE = range(201), range(202, 210)  # 201 is the kernel driver's own
WINDOW_REGISTERS, WINDOW_BYTES = 0x1FC0_0000, 12
BAR_SIZES = {0: 512 << 20, 2: 1 << 20, 4: 32 << 30}
# tt-umd `blackhole_implementation.hpp` and Linux `pcie-designware.h`: the outbound address translation in BAR2.
REGION_BASE, REGION_BYTES, REGIONS = 0x1000, 0x200, 16
PCIE_SPACE = 1 << 60  # addresses of the PCIe tile that lead to the host

# tt-kmd `ioctl.h`.
MAGIC = 0xFA
WINDOW_CONFIG = struct.Struct("<Q4H5B")  # the address, then the fields of WINDOW_FIELDS
WINDOW_FIELDS = {"x_end": 6, "y_end": 6, "x_start": 6, "y_start": 6, "noc": 2, "mcast": 1, "ordering": 2, "linked": 1,
                 "static_vc": 1}  # bits in the window's registers


class Library:
    """The C interface, with the card's time."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        u32, u64, pointer = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
        transfer = ctypes.CFUNCTYPE(None, u64, pointer, u32)
        self.pinned = {}  # region of the address translation: (bus address, bytes, address in this process)
        self.call_backs = (transfer(self._dma_read), transfer(self._dma_write))
        for name, result, arguments in (
            ("init", None, []), ("exit", None, []), ("clock", None, [u32]),
            ("set_pci_dma_mem_callbacks", None, [transfer, transfer]), ("pci_config_rd32", u32, [u32, u32]),
            ("pci_mem_rd_bytes", None, [u64, pointer, u32]), ("pci_mem_wr_bytes", None, [u64, pointer, u32]),
        ):
            function = getattr(self.library, "libttsim_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.set_pci_dma_mem_callbacks(*self.call_backs)
        self.init()
        self.clocks = 0

    def bar(self, number):
        """Where BAR `number` lies."""
        low, high = (self.pci_config_rd32(0, 0x10 + 4 * number + at) for at in (0, 4))
        return (high << 32 | low) & ~0xF

    def pass_clocks(self, clocks):
        self.clocks += clocks
        while clocks > 0:
            self.clock(min(clocks, MOST_CLOCKS))
            clocks -= MOST_CLOCKS

    def seconds(self):
        return self.clocks / HERTZ

    def read(self, address, size):
        self.pass_clocks(ACCESS)
        data = ctypes.create_string_buffer(size)
        self.pci_mem_rd_bytes(address, data, size)
        return data.raw

    def write(self, address, data):
        self.pass_clocks(ACCESS)
        self.pci_mem_wr_bytes(address, bytes(data), len(data))

    def write_words(self, address, words):
        for at, word in words:
            self.write(address + at, struct.pack("<I", word & 0xFFFF_FFFF))

    def _host(self, bus, size):
        for base, length, address in self.pinned.values():
            if base <= bus and bus + size <= base + length:
                return address + bus - base
        print(f"kmd: the card accesses {size} bytes at bus address {bus:#x}, where nothing is pinned", file=sys.stderr)
        return None

    def _dma_read(self, bus, into, size):
        source = self._host(bus, size)
        if source is None:
            ctypes.memset(into, 0xFF, size)
        else:
            ctypes.memmove(into, source, size)

    def _dma_write(self, bus, source, size):
        into = self._host(bus, size)
        if into is not None:
            ctypes.memmove(into, source, size)


class Mapping:
    """What `mmap.mmap` of the card gives: bytes of a BAR."""

    def __init__(self, library, base, size):
        self.library, self.base, self.size = library, base, size

    def __len__(self):
        return self.size

    def _range(self, key):
        if isinstance(key, slice):
            start, stop, step = key.indices(self.size)
            if step != 1:
                raise ValueError("a mapping of the card has no slices with steps")
            return self.base + start, max(stop - start, 0)
        if not -self.size <= key < self.size:
            raise IndexError("mmap index out of range")
        return self.base + key % self.size, 1

    def __getitem__(self, key):
        address, size = self._range(key)
        data = self.library.read(address, size) if size else b""
        return data if isinstance(key, slice) else data[0]

    def __setitem__(self, key, value):
        address, size = self._range(key)
        data = bytes(value) if isinstance(key, slice) else bytes([value])
        if len(data) != size:
            raise IndexError("mmap slice assignment is wrong size")
        if data:
            self.library.write(address, data)

    def flush(self, *_):
        pass

    def close(self):
        self.library = None


def refuse(number, why):
    raise OSError(number, f"{os.strerror(number)}: {why}")


class Driver:
    """The kernel driver's side of one open card."""

    def __init__(self, library, card):
        self.library, self.card = library, card
        self.bars = {number: library.bar(number) for number in BAR_SIZES}
        self.windows = set()
        # Offsets for mmap: each mapping of a BAR has 64 GiB of its own, each window has two such.
        self.mappings = {}
        for at, number in enumerate(BAR_SIZES):
            for kind in (0, 1):  # uncached, write-combined: the same here
                self.mappings[2 * at + kind << 36] = (self.bars[number], BAR_SIZES[number])

    def ioctl(self, request, argument):
        calls = {0: self.device_info, 2: self.query_mappings, 7: self.pin, 10: self.unpin, 11: self.allocate_window,
                 12: self.free_window, 13: self.configure_window, 15: self.power}
        call = calls.get(request & 0xFF) if request >> 8 == MAGIC else None
        if call is None:
            refuse(errno.ENOTTY, f"request {request:#x} is not served")
        call(argument)
        return 0

    def device_info(self, argument):
        vendor, subsystem = (self.library.pci_config_rd32(0, at) for at in (0, 0x2C))
        struct.pack_into("<I8H", argument, 4, 20, vendor & 0xFFFF, vendor >> 16, subsystem & 0xFFFF, subsystem >> 16,
                         0x0100, 28, 0, 0)

    def query_mappings(self, argument):
        (wanted,) = struct.unpack_from("<I", argument)
        for at in range(wanted):
            kind, offset = (at + 1, at << 36) if at << 36 in self.mappings else (0, 0)
            size = self.mappings[offset][1] if kind else 0
            struct.pack_into("<IIQQ", argument, 8 + 24 * at, kind, 0, offset, size)

    def allocate_window(self, argument):
        size, _ = struct.unpack_from("<QQ", argument)
        numbers = {SIZE_2M: SMALL, SIZE_4G: LARGE}.get(size) or refuse(errno.EINVAL, f"windows of {size} bytes")
        free = [number for number in numbers if number not in self.windows]
        number = free[0] if free else refuse(errno.ENOMEM, "all windows are in use")
        self.windows.add(number)
        base = self.bars[0] + number * size if number in SMALL else self.bars[4] + (number - LARGE.start) * size
        offsets = [16 + 2 * number + kind << 36 for kind in (0, 1)]
        self.mappings.update((offset, (base, size)) for offset in offsets)
        struct.pack_into("<IIQQQ", argument, 16, number, 0, *offsets, 0)

    def free_window(self, argument):
        (number,) = struct.unpack_from("<I", argument)
        if number not in self.windows:
            refuse(errno.EINVAL, f"window {number} is not in use")
        self.windows.remove(number)
        for kind in (0, 1):
            del self.mappings[16 + 2 * number + kind << 36]

    def configure_window(self, argument):
        (number,) = struct.unpack_from("<I", argument)
        if number not in self.windows:
            refuse(errno.EINVAL, f"window {number} is not in use")
        address, *fields = WINDOW_CONFIG.unpack_from(argument, 8)
        shift, bits = (21, 43) if number in SMALL else (32, 32)
        if address & (1 << shift) - 1:
            refuse(errno.EINVAL, f"address {address:#x} is no multiple of the window's size")
        value = address >> shift
        multicast = fields[list(WINDOW_FIELDS).index("mcast")]
        for (name, width), field in zip(WINDOW_FIELDS.items(), fields):
            if multicast or not name.endswith("_start"):  # ignored otherwise; ttsim refuses other values than zero
                value |= (field & (1 << width) - 1) << bits
            bits += width
        registers = self.bars[0] + WINDOW_REGISTERS + WINDOW_BYTES * number
        self.library.write_words(registers, ((4 * at, value >> 32 * at) for at in range(3)))

    def pin(self, argument):
        _, _, address, size = struct.unpack_from("<IIQQ", argument)
        if not size or (address | size) % mmap.PAGESIZE:
            refuse(errno.EINVAL, "pinned memory is whole pages")
        pinned = self.library.pinned
        region = next((number for number in range(REGIONS) if number not in pinned), None)
        if region is None:
            refuse(errno.ENOSPC, "all regions of the address translation are in use")
        bus = 0
        for base, length, _ in sorted(pinned.values()):  # the lowest gap
            if bus + size <= base:
                break
            bus = base + length
        pinned[region] = (bus, size, address)
        self.set_region(region, bus, size, True)
        struct.pack_into("<QQ", argument, 24, bus, PCIE_SPACE | bus)

    def unpin(self, argument):
        address, _ = struct.unpack_from("<QQ", argument)
        regions = [number for number, (_, _, start) in self.library.pinned.items() if start == address]
        if not regions:
            refuse(errno.EINVAL, f"nothing is pinned at {address:#x}")
        bus, size, _ = self.library.pinned.pop(regions[0])
        self.set_region(regions[0], bus, size, False)

    def set_region(self, number, bus, size, on):
        last = bus + size - 1
        increase = 1 << 13 if bus >> 32 != last >> 32 else 0
        self.library.write_words(self.bars[2] + REGION_BASE + REGION_BYTES * number, (
            (0x08, bus), (0x0C, bus >> 32), (0x10, last), (0x20, last >> 32), (0x14, bus), (0x18, bus >> 32),
            (0x00, increase), (0x04, int(on) << 31)))

    def power(self, _argument):
        """The simulated card always has power."""


def install(driver):
    """Puts `driver` behind the functions that a script reaches the card by."""
    library, cards = driver.library, set()
    os_open, ioctl, make_mapping, read_text = os.open, fcntl.ioctl, mmap.mmap, pathlib.Path.read_text

    def identity(fd):
        status = os.fstat(fd)
        return status.st_dev, status.st_ino

    def is_card(fd):
        return isinstance(fd, int) and fd >= 0 and bool(cards) and identity(fd) in cards

    def card_open(path, flags, *rest, **named):
        if path != DEVICE:
            return os_open(path, flags, *rest, **named)
        fd = os.memfd_create("tenstorrent-0")
        cards.add(identity(fd))
        return fd

    def card_ioctl(fd, request, argument=0, mutate=True):
        return driver.ioctl(request, argument) if is_card(fd) else ioctl(fd, request, argument, mutate)

    def card_mmap(fd, length, *rest, offset=0, **named):
        if not is_card(fd):
            return make_mapping(fd, length, *rest, offset=offset, **named)
        base, size = driver.mappings.get(offset) or refuse(errno.EINVAL, f"nothing is mapped at {offset:#x}")
        return Mapping(library, base, min(length or size, size))

    def card_text(path, *rest, **named):
        return driver.card + "\n" if str(path) == CARD_TYPE else read_text(path, *rest, **named)

    os.open, fcntl.ioctl, mmap.mmap, pathlib.Path.read_text = card_open, card_ioctl, card_mmap, card_text
    time.sleep = lambda seconds: library.pass_clocks(int(seconds * HERTZ))
    time.perf_counter = time.monotonic = library.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--card", help="what tt_card_type says, where the library's subsystem number does not")
    parser.add_argument("library")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    now, start = time.perf_counter, time.perf_counter()
    library = Library(os.path.abspath(args.library))
    subsystem = library.pci_config_rd32(0, 0x2C) >> 16
    install(Driver(library, args.card or CARD_TYPES.get(subsystem, "unknown")))
    sys.argv = [args.script, *args.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(args.script))
    try:
        runpy.run_path(args.script, run_name="__main__")
    finally:
        sys.stdout.flush()
        print(f"kmd: {library.clocks} clocks passed in {now() - start:.2f} s", file=sys.stderr)
        library.exit()


if __name__ == "__main__":
    main()
