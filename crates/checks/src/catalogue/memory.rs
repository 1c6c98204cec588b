//! Findings about memory: who owns a byte, and whether anybody has written it.
//!
//! Sources: the memory map of the worker firmware (`tilework_abi::l1`), the interface of circular
//! buffers (`firmware/rt/src/cb.rs`).

use super::rows;

rows! { Memory;
    L1_UNWRITTEN_READ "l1-unwritten-read" Certain "Reads L1 that nobody has written"
        about "On the chip these bytes are what some earlier program left there. The result differs from run to run \
            and from chip to chip; the simulator starts with zeros, so that a test may pass by luck."
        wrong "let sum = read(scratch) + x;          // nobody has set scratch"
        right "write(scratch, 0);\nlet sum = read(scratch) + x;"
        repair "Write the bytes before they are read, or read the buffer that was meant.";
    LOCAL_UNWRITTEN_READ "local-unwritten-read" Suspicious "Reads local RAM that nobody has written"
        about "Local RAM keeps what the kernel before left there. Mostly an array without first values. What a kernel \
            loads by the stack pointer is left out: compilers also copy values there that are never used."
        wrong "int sums[8];\nfor (int i = 0; i < n; i++) sums[i % 8] += x[i];"
        right "int sums[8] = {0};\nfor (int i = 0; i < n; i++) sums[i % 8] += x[i];"
        repair "Give the variable first values.";
    DRAM_UNWRITTEN_READ "dram-unwritten-read" Certain "Reads DRAM that nobody has written"
        about "No host, no kernel and no command has written these bytes of the buffer since it was allocated. On the \
            chip they have the value of an earlier program."
        wrong "noc.read(x.page(i + 1), cb.write_ptr(), size);   // i + 1 was never filled"
        right "noc.read(x.page(i), cb.write_ptr(), size);"
        repair "Fill the buffer before the program that reads it, or correct the number of the page.";
    L1_PAST_BUFFER "l1-past-buffer" Certain "Goes past the last page of a buffer in L1"
        about "The access begins in a buffer and ends behind it. What lies behind belongs to another buffer, or to \
            nobody today and to somebody after the next change."
        wrong "for i in 0..=pages { write(buffer + i * 4, i); }"
        right "for i in 0..pages { write(buffer + i * 4, i); }"
        repair "Check the number of pages, the page size and the length of the request against the buffer's.";
    DRAM_PAST_BUFFER "dram-past-buffer" Certain "Goes past the last page of a buffer in DRAM"
        about "Pages of an interleaved buffer go round the banks: a page number that is one too large is not behind \
            the buffer, but in the next bank, among pages of another buffer."
        wrong "let pages = rta(ctx, 0) + 1;\nfor i in 0..pages { noc.read(x.page(i), to, size); }"
        right "let pages = rta(ctx, 0);\nfor i in 0..pages { noc.read(x.page(i), to, size); }"
        repair "Check the kernel's arguments (base, page size, number of pages) against the buffer's.";
    PAGE_WRITTEN_TWICE "page-written-twice" Certain "Two tiles write the same bytes of DRAM in one program"
        about "Neither has been told anything by another tile, so that nothing orders the two writes. One result is \
            lost, and which one depends on the traffic of the moment."
        wrong "noc.write(from, y.page(0), size);         // the same page on every core"
        right "noc.write(from, y.page(my_number), size);"
        repair "Give each tile pages of its own: mostly the first page is an argument that is the same everywhere.";
    L1_UNOWNED "l1-unowned" Certain "Uses L1 that belongs to nobody"
        about "The address is in no buffer, no circular buffer, no arguments and no firmware of this program. The \
            allocator may give these bytes to another program at any time."
        wrong "write(0x10_0000, result);             // an address that was free once"
        right "write(rta(ctx, 2), result);           // the address of a buffer, as an argument"
        repair "Allocate a buffer and pass its address as an argument.";
    DRAM_UNOWNED "dram-unowned" Certain "Uses DRAM that belongs to nobody"
        about "The address is in no buffer of this device. Mostly an argument that is missing or in another place, a \
            buffer that was freed too early, or the wrong bank."
        wrong "let x = Interleaved::new(ctx, rta(ctx, 1), size);   // argument 1 is a count"
        right "let x = Interleaved::new(ctx, rta(ctx, 0), size);"
        repair "Check which argument is the address, and that the buffer lives as long as the program.";
    CB_PAGE_NOT_RESERVED "cb-page-not-reserved" Certain "Writes a page of a circular buffer that is not reserved"
        about "Until reserve_back has returned, the page may hold what the consumer still reads. The write is lost, or \
            the consumer reads half of the old and half of the new page."
        wrong "noc.read(x.page(i), cb.write_ptr(), size);\ncb.reserve_back(1);"
        right "cb.reserve_back(1);\nnoc.read(x.page(i), cb.write_ptr(), size);"
        repair "Reserve as many pages as will be written, before the first of them is written.";
    CB_PAGE_NOT_RECEIVED "cb-page-not-received" Certain "Reads a page of a circular buffer that has not arrived"
        about "Until wait_front has returned, the producer may not have written the page, or it was handed back by \
            pop_front and belongs to the producer again."
        wrong "noc.write(cb.read_ptr(), y.page(i), size);\ncb.wait_front(1);"
        right "cb.wait_front(1);\nnoc.write(cb.read_ptr(), y.page(i), size);"
        repair "Wait for as many pages as will be read, and pop them when they have been read.";
    L1_NULL "l1-null" Certain "Uses the first bytes of L1 as if they were data"
        about "Address 0 and what follows hold the first instruction of BRISC. A pointer that is zero, mostly an \
            argument that was not given, leads here."
        wrong "let flag = rta(ctx, 3);               // the program gives three arguments\nwrite(flag, 1);"
        right "let flag = rta(ctx, 2);\nwrite(flag, 1);"
        repair "Find the pointer that is zero; compare the arguments of the program with those that the kernel reads.";
    L1_FIRMWARE "l1-firmware" Certain "Changes memory of the firmware or of the command queue"
        about "Firmware, its mailboxes and the queues of prefetcher and dispatcher are below the memory for programs. \
            Whoever writes there may stop the tile or the whole command queue much later."
        wrong "noc.write(from, NocAddr { xy, lo: offset }, size);          // offset, not address"
        right "noc.write(from, NocAddr { xy, lo: buffer + offset }, size);"
        repair "Check the base of the address: buffers lie at or above the data base (tilework board).";
    L1_TEXT "l1-text" Certain "Writes into the code of a kernel"
        about "The bytes are instructions of a kernel of this program. What the core executes then depends on what \
            its instruction cache still holds."
        wrong "noc.read(x.page(i), base, size);      // base is that of the kernel's configuration"
        right "noc.read(x.page(i), cb.write_ptr(), size);"
        repair "Check the destination and the length of the access; whoever loads code on purpose needs fence.i.";
    ARGS_PAST_END "args-past-end" Certain "Reads an argument that was not given"
        about "The program gives this core fewer arguments than the kernel reads. What follows them in L1 is other \
            configuration of the launch, or what an earlier launch left."
        wrong "args = [\"x.addr\", 4]              # program.toml; the kernel reads rta(ctx, 2)"
        right "args = [\"x.addr\", 4, \"x.pages\"]"
        repair "Give the argument in the program, or do not read it.";
    STACK_OVERFLOW "stack-overflow" Certain "The stack grows into data"
        about "The stack of a core grows down in its local RAM towards its variables. Below their end both are the \
            same bytes, and either may change the other."
        wrong "let mut table = [0u32; 1024];         // 4 KiB, as much as a TRISC has"
        right "static TABLE: [u32; 1024] = build();  // constants stay in L1"
        repair "Make arrays on the stack smaller, or keep them in L1 by an address that the program gives.";
}
