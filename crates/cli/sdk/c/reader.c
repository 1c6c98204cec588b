/* Reads this core's pages of a buffer in DRAM into a circular buffer. Runs on NCRISC.

   Arguments: address of the buffer, its first page for this core, number of pages, bytes of a page,
   circular buffer. */
#include "tilework.h"

void kernel_main(void)
{
    tw_context c = tw_begin();
    tw_noc noc = tw_noc_of(&c);
    uint32_t buffer = tw_arg(&c, 0), first = tw_arg(&c, 1), pages = tw_arg(&c, 2), page_size = tw_arg(&c, 3);
    tw_cb out = tw_cb_producer(&c, tw_arg(&c, 4));

    for (uint32_t page = first; page != first + pages; page++) {
        tw_cb_reserve_back(&out, 1);
        tw_noc_read(&noc, tw_page_xy(&c, page), tw_page_address(&c, buffer, page_size, page), out.at, page_size);
        tw_noc_read_barrier(&noc);
        tw_cb_push_back(&out, 1);
    }
}
