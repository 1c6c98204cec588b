/* Writes the pages of a circular buffer to this core's pages of a buffer in DRAM. When all cores
   have done so, the first one writes their number to another buffer. Runs on BRISC.

   Arguments: address of the buffer, its first page for this core, number of pages, bytes of a page,
   circular buffer; semaphore, first core, this core's position, number of cores, address of the
   buffer for the number. */
#include "tilework.h"

void kernel_main(void)
{
    tw_context c = tw_begin();
    tw_noc noc = tw_noc_of(&c);
    uint32_t buffer = tw_arg(&c, 0), first = tw_arg(&c, 1), pages = tw_arg(&c, 2), page_size = tw_arg(&c, 3);
    tw_cb in = tw_cb_consumer(&c, tw_arg(&c, 4));

    for (uint32_t page = first; page != first + pages; page++) {
        tw_cb_wait_front(&in, 1);
        tw_noc_write(&noc, in.at, tw_page_xy(&c, page), tw_page_address(&c, buffer, page_size, page), page_size);
        tw_noc_writes_flushed(&noc); /* the page may be filled again once it has left L1 */
        tw_cb_pop_front(&in, 1);
    }
    tw_noc_write_barrier(&noc);

    uint32_t semaphore = tw_semaphore(&c, tw_arg(&c, 5)), cores = tw_arg(&c, 8);
    tw_semaphore_inc(&noc, tw_arg(&c, 6), semaphore, 1);
    tw_semaphore_barrier(&noc);
    if (tw_arg(&c, 7) == 0) {
        tw_semaphore_wait(semaphore, cores);
        tw_noc_write_word(&noc, tw_page_xy(&c, 0), tw_arg(&c, 9), cores);
        tw_noc_write_barrier(&noc);
    }
}
