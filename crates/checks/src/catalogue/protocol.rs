//! Findings about rules between cores, NoC, circular buffers and coprocessor.
//!
//! Sources: NoC/README.md, NoC/MemoryMap.md, NoC/Counters.md, BabyRISCV/MemoryOrdering.md and
//! WormholeB0's SyncUnit.md of the ISA documentation; circular buffers as in
//! `firmware/rt/src/cb.rs`.

use super::rows;

rows! { Protocol;
    NOC_NOT_WAITED "noc-not-waited" Certain "A kernel ends with NoC transactions that it never waited for"
        about "Done says that the kernel's results are there. A write that is still under way arrives after the next \
            program has begun to read; a read that is still under way overwrites what the next program has put there."
        wrong "noc_async_write(cb, dst, size);\n}                                     // the kernel ends here"
        right "noc_async_write(cb, dst, size);\nnoc_async_write_barrier();\n}"
        repair "End the kernel with the barrier of each kind of transaction that it has started.";
    NOC_TRID_REUSED "noc-trid-reused" Suspicious "A transaction id is used again while it is in flight"
        about "The NIU counts requests by id. When a second group takes the id before the first has been answered, a \
            wait for the first one waits for both, and one for at most n left may end too early. It is told when \
            somebody waits for the id."
        wrong "noc.read_tagged(1, a, to, size);\nnoc.read_tagged(2, b, other, size);\n\
            noc.read_tagged(1, c, third, size);\nnoc.wait_tag(1);"
        right "noc.read_tagged(1, a, to, size);\nnoc.read_tagged(2, b, other, size);\n\
            noc.read_tagged(3, c, third, size);\nnoc.wait_tag(1);"
        repair "Take another id, or wait for the first group before the id is used again.";
    NOC_LINK_OPEN "noc-link-open" Certain "Linked NoC packets were never ended"
        about "A linked request keeps its path through the network until a request without the mark ends it. Others \
            that need the path wait for ever, and so does the next kernel on this NIU."
        wrong "for i in 0..n { multicast(page(i), LINKED); }"
        right "for i in 0..n { multicast(page(i), if i + 1 < n { LINKED } else { 0 }); }"
        repair "Send the last request of the sequence without the mark.";
    NOC_MISALIGNED "noc-misaligned" Certain "A NoC request has addresses that are not aligned alike"
        about "Source and destination must have the same offset within 16 bytes in L1, within 64 bytes when DRAM or \
            host memory is read. Otherwise no document says which bytes arrive: the run ends there with a fault."
        wrong "noc.read(NocAddr { xy, lo: dram + 32 }, cb.write_ptr(), 32);"
        right "noc.read(NocAddr { xy, lo: dram }, cb.write_ptr(), 64);\n// and use the second half"
        repair "Read from the aligned address and leave out what comes before, or lay out pages in whole 64 bytes.";
    NOC_TOO_LONG "noc-too-long" Suspicious "A NoC request is longer than a packet"
        about "One packet has at most 16,384 bytes (256 flits). The NIU makes several of what is longer and counts each \
            of them, so that a kernel that counts one waits for too few answers or for ever; and no other request may \
            be started before the last of them has left."
        wrong "noc.write(from, to, 32_768);"
        right "noc.write(from, to, 16_384);\nnoc.write(from + 16_384, to_second_half, 16_384);"
        repair "Split the transfer into requests of at most 16,384 bytes, or count the packets as the NIU does.";
    CB_POPPED_TOO_MANY "cb-popped-too-many" Certain "More pages are popped from a circular buffer than it holds"
        about "The count of pages that were taken passes that of pages that were pushed. From then on the producer \
            sees room that is not there, or waits for ever once the counts have wrapped."
        wrong "cb.wait_front(1);\ncb.pop_front(2);"
        right "cb.wait_front(2);\ncb.pop_front(2);"
        repair "Pop as many pages as were waited for.";
    CB_POPPED_IN_FLIGHT "cb-popped-in-flight" Suspicious "A page is popped from a circular buffer while it may still be sent"
        about "A NoC write reads its source until it has left. The core gives the page back and has looked at no \
            counter of the NIU since it started the write: the producer may fill the page meanwhile. Told wherever the \
            page is popped, also in runs in which nobody fills it so soon."
        wrong "noc.write(cb.read_ptr(), y.page(i), size);\ncb.pop_front(1);"
        right "noc.write(cb.read_ptr(), y.page(i), size);\nnoc.writes_flushed();\ncb.pop_front(1);"
        repair "Wait until the writes have left L1 before the page is popped.";
    CB_PUSHED_TOO_MANY "cb-pushed-too-many" Certain "More pages are pushed into a circular buffer than it has room for"
        about "The pages behind the reserved ones are still the consumer's, which sees them as new ones."
        wrong "cb.reserve_back(1);\ncb.push_back(2);"
        right "cb.reserve_back(2);\ncb.push_back(2);"
        repair "Push as many pages as were reserved.";
    SEM_OVERFLOW "sem-overflow" Certain "A semaphore is counted past its width"
        about "A semaphore of the coprocessor has four bits and stays at 15: a post beyond is lost, and who waits \
            for it waits for ever. One in L1 is a number without a sign: below zero it is a very large one, and \
            beyond the width of the atomic it begins at zero, so that who waits for credits finds them or loses them."
        wrong "for _ in 0..16 { semaphore_post(S); }  // nobody takes one meanwhile"
        right "for _ in 0..16 { semaphore_wait_below(S, 15); semaphore_post(S); }"
        repair "Wait for room before the post, or let the other side take more often.";
    MISSING_FENCE "missing-fence" Certain "Loads a stale copy of what the NoC has written"
        about "The data cache of a core is not told of writes by NoC, other cores or coprocessor. A load may give the \
            value that the core has seen before, for as long as the line stays in the cache."
        wrong "while read(flag) == 0 {}"
        right "while read(flag) == 0 { fence(); }    // or reg::wait(flag, |v| v != 0)"
        repair "Put a fence between the wait for the data and the loads of it.";
    MISSING_FENCE_I "missing-fence-i" Certain "Executes code that was changed without fence.i"
        about "The instruction cache is not told of writes. The core may execute what was there before. It is told \
            when a core comes from elsewhere to an instruction that was written since it emptied its cache."
        wrong "write(code, word);\njump(code);"
        right "write(code, word);\nfence_i();\njump(code);"
        repair "Execute fence.i on the core that will run the code, after the code has arrived.";
    TENSIX_STATE_LEFT "tensix-state-left" Suspicious "A kernel uses coprocessor state that an earlier kernel left"
        about "Registers, formats, address modifiers and counters, templates, semaphores and Dst of the coprocessor \
            keep their values between kernels. The kernel is right only after the kernel that happened to run before it."
        wrong "k.binary_tiles(&a, &b, 0, 0, 0);      // without binary_init"
        right "k.binary_init(Binary::Add, Broadcast::None, Fidelity::HiFi4);\nk.binary_tiles(&a, &b, 0, 0, 0);"
        repair "Set all state that the kernel uses: hw_configure, and the init call of each operation.";
}
