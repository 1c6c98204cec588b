/* What a kernel of a Tensix tile's cores needs, in C: arguments, NoC, circular buffers, semaphores.

   Include it in each kernel, define `void kernel_main(void)`, and link runtime.c and the script of
   the core (link/). docs/program.md of Tilework explains what is behind each call. Addresses of L1
   and of registers are numbers; `xy` is a tile's coordinates as the NoC takes them, y << 6 | x. */
#ifndef TILEWORK_H
#define TILEWORK_H

#include <stdint.h>
#include "tilework_registers.h"

#define TW_INLINE static inline __attribute__((always_inline, unused))

/* ---- memory ---- */

TW_INLINE uint32_t tw_load(uint32_t address) { return *(const volatile uint32_t *)address; }
TW_INLINE uint32_t tw_load16(uint32_t address) { return *(const volatile uint16_t *)address; }
TW_INLINE uint32_t tw_load8(uint32_t address) { return *(const volatile uint8_t *)address; }
TW_INLINE void tw_store(uint32_t address, uint32_t value) { *(volatile uint32_t *)address = value; }

/* Waits for earlier stores to leave the core, and drops the core's L0 data cache: later loads of L1
   see what the NoC and other cores have written. */
TW_INLINE void tw_fence(void) { __asm__ volatile("fence" ::: "memory"); }

/* Waits until the core's last store to L1, at `address`, and all before it have arrived there: what
   a core stored must be published before the NoC or another core is told to read it. */
TW_INLINE void tw_publish(uint32_t address)
{
    __asm__ volatile("" ::: "memory");
    uint32_t seen = tw_load(address);
    __asm__ volatile("mv zero, %0" : : "r"(seen) : "memory");
}

/* ---- what the kernel finds when it starts ---- */

/* The loader writes these words into the image (runtime.c defines them). */
struct tw_binding {
    uint32_t launch_rd_ptr, launch, go, bank_table, cb_stream, processor;
};
extern const struct tw_binding __tilework_binding;

typedef struct {
    uint32_t args;        /* address of the kernel's own arguments */
    uint32_t common_args; /* address of the arguments that all cores share */
    uint32_t semaphores;  /* address of semaphore 0 */
    uint32_t cb_config;   /* address of the configuration of circular buffer 0 */
    uint32_t cb_stream;   /* overlay stream of circular buffer 0 */
    uint32_t noc;         /* the NoC of this core, 0 or 1 */
    uint32_t my_xy;       /* this tile */
    uint32_t banks;       /* number of DRAM banks */
    uint32_t bank_xy;     /* address of the banks' coordinates, u16 each */
    uint32_t processor;   /* TW_BRISC, TW_NCRISC, TW_TRISC0, TW_TRISC1, TW_TRISC2 */
} tw_context;

TW_INLINE tw_context tw_begin(void)
{
    tw_fence();
    const struct tw_binding b = __tilework_binding;
    uint32_t launch = b.launch + TW_LAUNCH_BYTES * tw_load(b.launch_rd_ptr);
    uint32_t base = tw_load(launch + TW_LAUNCH_KERNEL_CONFIG_BASE);
    uint32_t args = launch + TW_LAUNCH_RTA_OFFSET + TW_RTA_OFFSET_BYTES * b.processor;
    uint32_t banks = tw_load(b.bank_table + TW_BANK_TABLE_DRAM_BANKS);
    tw_context c;
    c.args = base + tw_load16(args + TW_RTA_OFFSET_UNIQUE);
    c.common_args = base + tw_load16(args + TW_RTA_OFFSET_COMMON);
    c.semaphores = base + tw_load16(launch + TW_LAUNCH_SEM_OFFSET);
    c.cb_config = base + tw_load16(launch + TW_LAUNCH_LOCAL_CB_OFFSET);
    c.cb_stream = b.cb_stream;
    c.noc = (tw_load8(launch + TW_LAUNCH_BRISC_NOC_ID) & 1) ^ (b.processor == TW_NCRISC);
    c.my_xy = tw_load(NOC_ID_LOGICAL) & TW_XY_MASK;
    c.banks = banks ? banks : TW_BANK_TABLE_USUAL_BANKS;
    c.bank_xy = b.bank_table + 2 * c.noc * c.banks;
    c.processor = b.processor;
    return c;
}

/* Argument `i` of the kernel; of the arguments that all cores share. */
TW_INLINE uint32_t tw_arg(const tw_context *c, uint32_t i) { return tw_load(c->args + 4 * i); }
TW_INLINE uint32_t tw_common_arg(const tw_context *c, uint32_t i) { return tw_load(c->common_args + 4 * i); }

/* ---- DRAM: page p of a buffer is in bank p % banks, p / banks pages behind its address there ---- */

TW_INLINE uint32_t tw_page_xy(const tw_context *c, uint32_t page)
{
    return tw_load16(c->bank_xy + 2 * (page % c->banks));
}
TW_INLINE uint32_t tw_page_address(const tw_context *c, uint32_t buffer, uint32_t page_size, uint32_t page)
{
    return buffer + page / c->banks * page_size;
}

/* ---- NoC ----

   A request is a set of registers of one of the NIU's four request initiators; storing 1 in
   NOC_CMD_CTRL starts it, and the registers may be stored again when it reads 0. The NIU counts
   what it has done; a barrier waits until a counter has reached what this core has asked for. The
   counters wrap, so they are compared by the sign of the difference. They count for the whole tile:
   only one core may use a NIU at a time (BRISC and NCRISC have one each). */

enum { TW_INITIATOR_WRITE, TW_INITIATOR_READ, TW_INITIATOR_REGISTER, TW_INITIATOR_ATOMIC };

#define TW_NOC_UNICAST (NOC_CTRL_VC_STATIC | NOC_VC_UNICAST << NOC_CTRL_STATIC_VC_SHIFT)

typedef struct {
    uint32_t niu;     /* distance of this NIU's registers from NIU 0's */
    uint32_t my_xy;   /* where answers go */
    uint32_t scratch; /* a word of L1 for small writes, of this core alone */
    uint32_t reads, sent, acks, atomics;
} tw_noc;

TW_INLINE uint32_t tw_noc_count(const tw_noc *n, uint32_t counter) { return tw_load(counter + n->niu); }

/* The NoC of this core; none of its requests may be under way. */
TW_INLINE tw_noc tw_noc_of(const tw_context *c)
{
    tw_noc n;
    n.niu = c->noc * NIU_STRIDE;
    n.my_xy = c->my_xy;
    n.scratch = TW_SCRATCH_WORD + TW_SCRATCH_STRIDE * c->processor;
    n.reads = tw_noc_count(&n, NIU_MST_RD_RESP_RECEIVED);
    n.sent = tw_noc_count(&n, NIU_MST_NONPOSTED_WR_REQ_SENT);
    n.acks = tw_noc_count(&n, NIU_MST_WR_ACK_RECEIVED);
    n.atomics = tw_noc_count(&n, NIU_MST_ATOMIC_RESP_RECEIVED);
    return n;
}

/* Waits until `counter` has reached `count`. */
TW_INLINE void tw_noc_wait(const tw_noc *n, uint32_t counter, uint32_t count)
{
    while ((int32_t)(tw_noc_count(n, counter) - count) < 0) {
    }
}

TW_INLINE void tw_noc_request(const tw_noc *n, uint32_t initiator, uint32_t control, uint32_t target_xy,
                              uint32_t target, uint32_t return_xy, uint32_t back, uint32_t length)
{
    uint32_t r = n->niu + initiator * NIU_REQUEST_INITIATOR_STRIDE;
    while (tw_load(r + NOC_CMD_CTRL) & 1) {
    }
    tw_store(r + NOC_CTRL, control);
    tw_store(r + NOC_TARG_ADDR_LO, target);
    tw_store(r + NOC_TARG_ADDR_MID, 0);
    tw_store(r + NOC_TARG_ADDR_HI, target_xy); /* starting a request changes both coordinates */
    tw_store(r + NOC_RET_ADDR_LO, back);
    tw_store(r + NOC_RET_ADDR_MID, 0);
    tw_store(r + NOC_RET_ADDR_HI, return_xy);
    tw_store(r + NOC_PACKET_TAG, 0);
    tw_store(r + NOC_BRCST_EXCLUDE, 0);
    tw_store(r + NOC_AT_LEN_BE, length);
    tw_store(r + NOC_CMD_CTRL, 1);
}

/* Starts reading `bytes` bytes at address `from` of tile `xy` to L1 address `to`. The addresses must
   agree in their low bits: the lowest six when DRAM is read, the lowest four otherwise. */
TW_INLINE void tw_noc_read(tw_noc *n, uint32_t xy, uint32_t from, uint32_t to, uint32_t bytes)
{
    while (bytes) {
        uint32_t part = bytes < NOC_MAX_PACKET_BYTES ? bytes : NOC_MAX_PACKET_BYTES;
        tw_noc_request(n, TW_INITIATOR_READ, NOC_CTRL_CMD_RD | NOC_CTRL_RESP_MARKED | TW_NOC_UNICAST, xy, from,
                       n->my_xy, to, part);
        n->reads++;
        from += part, to += part, bytes -= part;
    }
}

/* Waits until all reads have arrived in L1, and lets loads see them. */
TW_INLINE void tw_noc_read_barrier(const tw_noc *n)
{
    tw_noc_wait(n, NIU_MST_RD_RESP_RECEIVED, n->reads);
    tw_fence();
}

/* Starts writing `bytes` bytes at L1 address `from` to address `to` of tile `xy`. What this core
   stored there itself must be published first. The addresses must agree in their lowest four bits. */
TW_INLINE void tw_noc_write(tw_noc *n, uint32_t from, uint32_t xy, uint32_t to, uint32_t bytes)
{
    while (bytes) {
        uint32_t part = bytes < NOC_MAX_PACKET_BYTES ? bytes : NOC_MAX_PACKET_BYTES;
        tw_noc_request(n, TW_INITIATOR_WRITE, NOC_CTRL_CMD_WR | NOC_CTRL_RESP_MARKED | TW_NOC_UNICAST, n->my_xy,
                       from, xy, to, part);
        n->sent++, n->acks++;
        from += part, to += part, bytes -= part;
    }
}

/* Waits until the data of all writes has left L1: their sources may be stored to again. */
TW_INLINE void tw_noc_writes_flushed(const tw_noc *n) { tw_noc_wait(n, NIU_MST_NONPOSTED_WR_REQ_SENT, n->sent); }

/* Waits until all writes have arrived. Each kernel ends with it. */
TW_INLINE void tw_noc_write_barrier(const tw_noc *n) { tw_noc_wait(n, NIU_MST_WR_ACK_RECEIVED, n->acks); }

/* Writes one word to address `to` of tile `xy`, a multiple of 4. */
TW_INLINE void tw_noc_write_word(tw_noc *n, uint32_t xy, uint32_t to, uint32_t value)
{
    uint32_t from = n->scratch + (to & (TW_SCRATCH_STRIDE - 1));
    tw_store(from, value);
    tw_publish(from);
    tw_noc_write(n, from, xy, to, 4);
    tw_noc_writes_flushed(n);
}

/* ---- semaphores: words of L1, at the same address on every core of the program ---- */

TW_INLINE uint32_t tw_semaphore(const tw_context *c, uint32_t id) { return c->semaphores + TW_SEMAPHORE_STRIDE * id; }

/* Adds `by` to the semaphore at address `semaphore` of tile `xy`, this one or another. */
TW_INLINE void tw_semaphore_inc(tw_noc *n, uint32_t xy, uint32_t semaphore, uint32_t by)
{
    uint32_t r = n->niu + TW_INITIATOR_ATOMIC * NIU_REQUEST_INITIATOR_STRIDE;
    while (tw_load(r + NOC_CMD_CTRL) & 1) {
    }
    tw_store(r + NOC_AT_DATA, by);
    tw_noc_request(n, TW_INITIATOR_ATOMIC, NOC_CTRL_CMD_AT | NOC_CTRL_RESP_MARKED | TW_NOC_UNICAST, xy, semaphore,
                   n->my_xy, TW_ATOMIC_RETURN, NOC_ATOMIC_INCR32 | (semaphore >> 2 & 3));
    n->atomics++;
}

/* Waits until all additions are made. */
TW_INLINE void tw_semaphore_barrier(const tw_noc *n) { tw_noc_wait(n, NIU_MST_ATOMIC_RESP_RECEIVED, n->atomics); }

/* Waits until the semaphore at `semaphore` of this tile is at least `value`. The NoC changes it
   behind the L0 data cache, hence the fence. */
TW_INLINE void tw_semaphore_wait(uint32_t semaphore, uint32_t value)
{
    do tw_fence();
    while (tw_load(semaphore) < value);
}

/* ---- circular buffers: pages in L1 that one core fills and another empties ---- */

typedef struct {
    uint32_t mine, theirs; /* addresses of this side's counter and of the other side's */
    uint32_t count;        /* pages that this side has pushed or popped, modulo 2^16 */
    uint32_t at;           /* address of the next page */
    uint32_t start, end, page_size, pages;
} tw_cb;

TW_INLINE tw_cb tw_cb_side(const tw_context *c, uint32_t id, uint32_t mine, uint32_t theirs)
{
    uint32_t config = c->cb_config + TW_CB_CONFIG_BYTES * id;
    uint32_t stream = (c->cb_stream + id) * OVERLAY_STREAM_STRIDE;
    tw_cb b;
    b.mine = mine + stream;
    b.theirs = theirs + stream;
    b.count = tw_load(b.mine) & TW_CB_COUNTER_MASK;
    b.start = b.at = tw_load(config);
    b.end = b.start + tw_load(config + 4);
    b.pages = tw_load(config + 8);
    b.page_size = tw_load(config + 12);
    return b;
}
/* The side that fills circular buffer `id`, and the side that empties it. */
TW_INLINE tw_cb tw_cb_producer(const tw_context *c, uint32_t id)
{
    return tw_cb_side(c, id, STREAM_REMOTE_DEST_BUF_SIZE, STREAM_REMOTE_DEST_BUF_START);
}
TW_INLINE tw_cb tw_cb_consumer(const tw_context *c, uint32_t id)
{
    return tw_cb_side(c, id, STREAM_REMOTE_DEST_BUF_START, STREAM_REMOTE_DEST_BUF_SIZE);
}

TW_INLINE void tw_cb_advance(tw_cb *b, uint32_t pages)
{
    b->count = (b->count + pages) & TW_CB_COUNTER_MASK;
    tw_store(b->mine, b->count);
    b->at += pages * b->page_size;
    if (b->at >= b->end) b->at -= b->end - b->start;
}

/* Producer: waits until `pages` pages are free, from `b->at` on. */
TW_INLINE void tw_cb_reserve_back(const tw_cb *b, uint32_t pages)
{
    while (b->pages - ((b->count - tw_load(b->theirs)) & TW_CB_COUNTER_MASK) < pages) {
    }
}
/* Producer: hands `pages` pages over. What this core stored there must be published. */
TW_INLINE void tw_cb_push_back(tw_cb *b, uint32_t pages) { tw_cb_advance(b, pages); }

/* Consumer: waits until `pages` pages are filled, from `b->at` on. */
TW_INLINE void tw_cb_wait_front(const tw_cb *b, uint32_t pages)
{
    while (((tw_load(b->theirs) - b->count) & TW_CB_COUNTER_MASK) < pages) {
    }
    tw_fence();
}
/* Consumer: gives `pages` pages back. NoC writes from them must have left L1. */
TW_INLINE void tw_cb_pop_front(tw_cb *b, uint32_t pages) { tw_cb_advance(b, pages); }

#endif
