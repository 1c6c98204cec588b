// Pages from DRAM into a circular buffer, with tt-metal's calls: what the kernel `reader` of this repository does.
// Run-time arguments: address, first page, pages, bytes of a page, circular buffer.
#include "api/dataflow/dataflow_api.h"

void kernel_main() {
    const uint32_t first = get_arg_val<uint32_t>(1), count = get_arg_val<uint32_t>(2);
    const uint32_t bytes = get_arg_val<uint32_t>(3), buffer = get_arg_val<uint32_t>(4);
    const InterleavedAddrGen<true> from = {.bank_base_address = get_arg_val<uint32_t>(0), .page_size = bytes};
    for (uint32_t page = first; page != first + count; ++page) {
        cb_reserve_back(buffer, 1);
        noc_async_read(get_noc_addr(page, from), get_write_ptr(buffer), bytes);
        noc_async_read_barrier();
        cb_push_back(buffer, 1);
    }
}
