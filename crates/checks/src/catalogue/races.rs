//! Findings about order: two accesses to the same bytes, at least one of them a write, and nothing
//! that makes one come before the other. Found by what orders them, not by when they happened.
//!
//! Rows differ by the edge that is missing, because the repair does. Sources:
//! WormholeB0/NoC/Ordering.md, NoC/Counters.md, BabyRISCV/MemoryOrdering.md and WormholeB0's
//! SyncUnit.md of the ISA documentation.

use super::rows;

rows! { Race;
    RACE_NOC_READ "race-noc-read" Certain "Uses the destination of a NoC read before the read has arrived"
        about "A read returns at once; its bytes arrive later. Until a barrier has seen them they may be old, new or \
            both."
        wrong "noc.read(src, to, 64);\nlet x = read(to);"
        right "noc.read(src, to, 64);\nnoc.read_barrier();\nlet x = read(to);"
        repair "Wait for the read (read_barrier, or wait_tag of its id) before its bytes are used or handed on.";
    RACE_NOC_SOURCE "race-noc-source" Certain "Changes the source of a NoC write that may still be read"
        about "The NIU reads the source while flits leave, not when the request is made. What is written into it \
            meanwhile may be sent instead."
        wrong "noc.write(cb.read_ptr(), dst, size);\ncb.pop_front(1);"
        right "noc.write(cb.read_ptr(), dst, size);\nnoc.writes_flushed();\ncb.pop_front(1);"
        repair "Wait until the data has left (writes_flushed) before the source is changed or given back.";
    RACE_NOC_WRITE "race-noc-write" Certain "Tells of a NoC write that may not have arrived"
        about "A counter or flag that is sent after the data can overtake it on another virtual channel, another NoC or \
            by another agent. Who sees the flag may read old bytes."
        wrong "noc0.write(from, dst, size);\nnoc1.semaphore_inc(flag, 1);"
        right "noc0.write(from, dst, size);\nnoc0.write_barrier();\nnoc1.semaphore_inc(flag, 1);"
        repair "Wait for the acknowledgement (write_barrier), or send both on the same ordered channel.";
    RACE_STORE "race-store" Certain "Hands on bytes by NoC that a store may not have reached"
        about "A store to L1 and a store to a register go to different memories. A request that is started by the \
            second may read L1 before the first has arrived."
        wrong "write(buffer, x);\nnoc.write(buffer, dst, 16);"
        right "write(buffer, x);\npublish(buffer);\nnoc.write(buffer, dst, 16);"
        repair "Read the last word back and wait for it (reg::publish) before the request is started.";
    RACE_CORES "race-cores" Certain "Two cores of a tile use the same bytes without order"
        about "Nothing orders the two: no page of a circular buffer, no semaphore, no mailbox, no go or done message."
        wrong "// BRISC\nwrite(result, x);\n// NCRISC\nlet x = read(result);"
        right "// BRISC\nwrite(result, x);\ncb.push_back(1);\n// NCRISC\ncb.wait_front(1);\nlet x = read(result);"
        repair "Hand the bytes over by a circular buffer or a semaphore.";
    RACE_TILES "race-tiles" Certain "Two tiles use the same bytes without order"
        about "Two tiles write the same page, or one reads what another writes, and no semaphore or counter orders \
            them. Which one is last depends on the traffic of the moment."
        wrong "noc.write(from, y.page(0), size);         // the same page on every core"
        right "noc.write(from, y.page(my_number), size);"
        repair "Give each tile pages of its own, or order them by a semaphore.";
    RACE_COPROCESSOR "race-coprocessor" Certain "A unit of the coprocessor and another agent use the same bytes without order"
        about "A core pushes instructions and runs ahead of the units. Until it has waited for a unit, the unit may \
            still read or write."
        wrong "k.pack_tile(0, &y, 0);\nstore_pages_pushed(y);                // by the core itself"
        right "k.pack_tile(0, &y, 0);\ny.push_back(1);                       // the store waits for the packer"
        repair "Let a stall or a semaphore of the coprocessor, or a read that waits for it, come between the two.";
    RACE_REGISTERS "race-registers" Certain "Two agents change or use a register without order"
        about "Registers of coprocessor, NIU and streams are shared by the cores of a tile. Two that set the same one \
            without order leave either value, and a unit that works meanwhile may take both."
        wrong "// unpack and pack\nset_config(FORMAT, Bf16);"
        right "// unpack\nset_config(FORMAT, Bf16);\nsemaphore_post(S);\n// pack\nsemaphore_wait(S);"
        repair "Let one core own the register, or order the two.";
    RACE_HOST "race-host" Certain "The host and a kernel use the same bytes without order"
        about "The host reads or writes memory of a program that may still run. Only a completion event, or a command \
            of the same queue, comes after the program."
        wrong "enqueue(program);\nwrite_by_window(buffer);"
        right "enqueue(program);\nfinish();\nwrite_by_window(buffer);"
        repair "Wait for the program's end, or send the transfer through the same queue.";
}
