/* The environment that the public riscv-tests sources expect, for a bare core: start at the first byte, report in the
 * word `tohost` (1 = passed, 2 * number + 1 = that test failed), stop with ebreak. Traps do not exist. */
#ifndef TILEWORK_RISCV_TEST_H
#define TILEWORK_RISCV_TEST_H

#define TESTNUM gp

#define RVTEST_RV32U
#define RVTEST_RV64U

#define RVTEST_CODE_BEGIN                                                      \
    .section .text.init, "ax";                                                 \
    .globl _start;                                                             \
_start:                                                                        \
    li TESTNUM, 0;

#define RVTEST_CODE_END ebreak

#define TILEWORK_REPORT                                                        \
    la t5, tohost;                                                             \
    sw t6, 0(t5);                                                              \
    ebreak;

#define RVTEST_PASS                                                            \
    li t6, 1;                                                                  \
    TILEWORK_REPORT

#define RVTEST_FAIL                                                            \
    slli t6, TESTNUM, 1;                                                       \
    ori t6, t6, 1;                                                             \
    TILEWORK_REPORT

#define RVTEST_DATA_BEGIN                                                      \
    .pushsection .tohost, "aw";                                                \
    .balign 16;                                                                \
    .globl tohost;                                                             \
tohost:                                                                        \
    .word 0;                                                                   \
    .popsection;

#define RVTEST_DATA_END

#endif
