/* A kernel that reads the globals of the firmware it is linked with and stores what it finds at the address in its
   first run-time argument. */
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

struct interface {
    u32 size, limit, page_size, pages, read, write;
    u16 acked, received;
    u32 tile;
};

extern u32 *rta_l1_base, *crta_l1_base;
extern u8 my_logical_x_, my_logical_y_, my_relative_x_, my_relative_y_;
extern struct interface cb_interface[32];
#ifdef DATA_MOVEMENT
extern u32 *sem_l1_base[3];
extern u8 my_x[2], my_y[2];
extern u32 noc_reads_num_issued[2], noc_nonposted_writes_num_issued[2];
extern u16 dram_bank_to_noc_xy[2][DRAM_BANKS], l1_bank_to_noc_xy[2][L1_BANKS];
extern int bank_to_dram_offset[DRAM_BANKS], bank_to_l1_offset[L1_BANKS];
extern u8 worker_logical_col_to_virtual_col[20], worker_logical_row_to_virtual_row[12];
#endif

extern u32 __ldm_data_start[], __ldm_data_end[], __kernel_data_lma[], __ldm_bss_start[], __ldm_bss_end[];

/* Near the global pointer or not: the linker decides how it is referred to. */
volatile u32 counter = 1000;
volatile u32 cleared;

__attribute__((section(".start"))) u32 _start(void) {
    /* As the kernels of tt-metal have it: only then does the linker refer to data by the global pointer. */
    __asm__("0: .reloc 0b, R_RISCV_NONE, __global_pointer$");
    for (volatile u32 *to = __ldm_bss_start; to < __ldm_bss_end; to++) *to = 0;
    for (u32 i = 0; i < (u32)(__ldm_data_end - __ldm_data_start); i++)
        ((volatile u32 *)__ldm_data_start)[i] = __kernel_data_lma[i];
    volatile u32 *out = (u32 *)rta_l1_base[0];
    counter += rta_l1_base[1];
    cleared += 1;
    *out++ = counter;
    *out++ = cleared;
    *out++ = crta_l1_base[0];
    *out++ = my_logical_x_ << 24 | my_logical_y_ << 16 | my_relative_x_ << 8 | my_relative_y_;
    const struct interface *cb = &cb_interface[3];
    *out++ = cb->size;
    *out++ = cb->limit;
    *out++ = cb->page_size;
    *out++ = cb->pages;
    *out++ = cb->read;
    *out++ = cb->write;
    *out++ = cb->acked << 16 | cb->received;
#ifdef DATA_MOVEMENT
    *out++ = sem_l1_base[0][4];
    *out++ = my_x[0] << 24 | my_y[0] << 16 | my_x[1] << 8 | my_y[1];
    *out++ = dram_bank_to_noc_xy[0][1] << 16 | dram_bank_to_noc_xy[1][DRAM_BANKS - 1];
    *out++ = l1_bank_to_noc_xy[0][1] << 16 | l1_bank_to_noc_xy[1][L1_BANKS - 1];
    *out++ = bank_to_dram_offset[DRAM_BANKS - 1] | bank_to_l1_offset[L1_BANKS - 1];
    *out++ = worker_logical_col_to_virtual_col[8] << 16 | worker_logical_row_to_virtual_row[9];
    const u32 niu = 0xFFB20200;
    *out++ = noc_reads_num_issued[0] - *(volatile u32 *)(niu + 4 * 2);
#endif
    return 0;
}
