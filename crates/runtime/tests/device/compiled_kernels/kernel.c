/* A kernel that uses everything that depends on where it is put: constants in L1, tables of pointers to code and to data, jumps through a
   table, initialised and cleared data in local RAM. tests/compiled_kernels.rs works the results out for itself.

   Arguments: 0: a number; 1: L1 address for RESULTS words. */

typedef unsigned int u32;

/* tilework_abi::kernel::Binding: the loader stores the firmware's addresses and the core here. */
const volatile struct {
    u32 launch_rd_ptr, launch, go, bank_table, cb_stream, processor;
} __tilework_binding = {0x6C, 0x70, 0x370, 0x112B0, 8, 0};

/* The run-time arguments of this core, by the launch message in use (tilework_abi::msg::LaunchMsg): the first word is the base, the offsets
   begin at byte 22. */
static const volatile u32 *arguments(void) {
    u32 index = *(const volatile u32 *)__tilework_binding.launch_rd_ptr;
    u32 launch = __tilework_binding.launch + 96 * index;
    u32 base = *(const volatile u32 *)launch;
    u32 offset = *(const volatile unsigned short *)(launch + 22 + 4 * __tilework_binding.processor);
    return (const volatile u32 *)(base + offset);
}

/* Entered by the firmware at the first byte, on the firmware's stack. */
__asm__(".section .text.start, \"ax\", @progbits\n"
        ".globl _start\n"
        "_start:\n"
        "    lla  t0, __data_load\n"
        "    la   t1, __data_start\n"
        "    la   t2, __data_end\n"
        "    beq  t1, t2, 2f\n"
        "1:  lw   t3, 0(t0)\n"
        "    addi t0, t0, 4\n"
        "    sw   t3, 0(t1)\n"
        "    addi t1, t1, 4\n"
        "    bne  t1, t2, 1b\n"
        "2:  la   t1, __bss_start\n"
        "    la   t2, __bss_end\n"
        "    beq  t1, t2, 4f\n"
        "3:  sw   zero, 0(t1)\n"
        "    addi t1, t1, 4\n"
        "    bne  t1, t2, 3b\n"
        "4:  j    kernel_main\n"
        ".text\n");

/* Constants behind the text. */
static const u32 digits[8] = {3, 1, 4, 1, 5, 9, 2, 6};

static __attribute__((noinline)) u32 twice(u32 x) { return 2 * x; }
static __attribute__((noinline)) u32 next(u32 x) { return x + 1; }
static __attribute__((noinline)) u32 flip(u32 x) { return ~x; }

/* Pointers to code: among the constants, and in local RAM. */
static u32 (*const volatile fixed[3])(u32) = {twice, next, flip};
static u32 (*volatile current)(u32) = next;

/* Initialised and cleared data in local RAM, and a pointer from there to a constant and to other data. */
static volatile u32 count = 40;
static volatile u32 history[5];
static const volatile u32 *volatile digit = &digits[5];
static volatile u32 *volatile counter = &count;

/* Jumps through a table. */
static __attribute__((noinline)) u32 choose(u32 which, u32 x) {
    switch (which) {
    case 0: return twice(x) + 5;
    case 1: return x * x;
    case 2: return flip(x) >> 3;
    case 3: return x - count;
    case 4: return next(x) * 7;
    case 5: return x ^ history[0];
    case 6: return digits[x & 7];
    default: return 99;
    }
}

void kernel_main(void) {
    const volatile u32 *rta = arguments();
    u32 n = rta[0];
    volatile u32 *out = (volatile u32 *)rta[1];
    u32 i, sum = 0;
    /* 0 to 2: what local RAM holds at the start. */
    out[0] = count;
    for (i = 0; i < 5; i++) sum |= history[i];
    out[1] = sum;
    out[2] = current(n) + *digit;
    /* 3: constants, by an index that the compiler does not know. */
    out[3] = digits[n & 7];
    /* 4 to 6: code by pointer. */
    for (i = 0; i < 3; i++) out[4 + i] = fixed[i](n);
    /* Changes that the next run must not see. */
    *counter += n;
    history[0] = n * 3;
    current = flip;
    out[7] = count;
    out[8] = current(n);
    /* 9 to 16: each way through the table, and past its end. */
    for (i = 0; i < 8; i++) out[9 + i] = choose(i, n);
    /* 17: where it is. */
    out[17] = (u32)kernel_main;
}
