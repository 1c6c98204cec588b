// Pages from a circular buffer into DRAM, with tt-metal's calls: what the kernel `writer` of this repository does.
// Run-time arguments: address, first page, pages, bytes of a page, circular buffer.
#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    const uint32_t first = get_arg_val<uint32_t>(1), count = get_arg_val<uint32_t>(2);
    const uint32_t bytes = get_arg_val<uint32_t>(3), buffer = get_arg_val<uint32_t>(4);
    const InterleavedAddrGen<true> to = {.bank_base_address = get_arg_val<uint32_t>(0), .page_size = bytes};
    for (uint32_t page = first; page != first + count; ++page) {
        cb_wait_front(buffer, 1);
        noc_async_write(get_read_ptr(buffer), get_noc_addr(page, to), bytes);
        noc_async_write_barrier();
        cb_pop_front(buffer, 1);
    }
}
