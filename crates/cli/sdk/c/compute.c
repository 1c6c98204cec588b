/* y = factor * x + offset for every 32-bit element, page by page. Runs on TRISC1.

   Arguments: number of pages, circular buffers of x and y. Common arguments: factor, offset. */
#include "tilework.h"

static uint32_t pages_done; /* in bss: cleared before kernel_main */

void kernel_main(void)
{
    tw_context c = tw_begin();
    uint32_t pages = tw_arg(&c, 0);
    tw_cb in = tw_cb_consumer(&c, tw_arg(&c, 1)), out = tw_cb_producer(&c, tw_arg(&c, 2));
    uint32_t factor = tw_common_arg(&c, 0), offset = tw_common_arg(&c, 1);

    while (pages_done != pages) {
        tw_cb_wait_front(&in, 1);
        tw_cb_reserve_back(&out, 1);
        for (uint32_t at = 0; at != in.page_size; at += 4)
            tw_store(out.at + at, factor * tw_load(in.at + at) + offset);
        tw_cb_pop_front(&in, 1);
        /* The stores have arrived before the writer hears of them. */
        tw_publish(out.at + in.page_size - 4);
        tw_cb_push_back(&out, 1);
        pages_done++;
    }
}
