/* The start of a kernel: its first byte, the words that the loader writes, and the two functions
   that compilers call by themselves. */
#include <stddef.h>
#include <stdint.h>
#include "tilework_registers.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

/* The firmware calls the first byte on its own stack and wants its registers back, so this leaves
   for kernel_main by a jump. Initialisers lie behind the text, wherever that was loaded; data and
   bss are in the core's local RAM. */
__asm__(".section .text.start, \"ax\", @progbits\n"
        ".globl _start\n"
        ".type _start, @function\n"
        "_start:\n"
        "    lla  t0, __data_load\n"
        "    lui  t1, %hi(__data_start)\n"
        "    addi t1, t1, %lo(__data_start)\n"
        "    lui  t2, %hi(__data_end)\n"
        "    addi t2, t2, %lo(__data_end)\n"
        "    beq  t1, t2, 2f\n"
        "1:  lw   t3, 0(t0)\n"
        "    addi t0, t0, 4\n"
        "    sw   t3, 0(t1)\n"
        "    addi t1, t1, 4\n"
        "    bne  t1, t2, 1b\n"
        "2:  lui  t1, %hi(__bss_start)\n"
        "    addi t1, t1, %lo(__bss_start)\n"
        "    lui  t2, %hi(__bss_end)\n"
        "    addi t2, t2, %lo(__bss_end)\n"
        "    beq  t1, t2, 4f\n"
        "3:  sw   zero, 0(t1)\n"
        "    addi t1, t1, 4\n"
        "    bne  t1, t2, 3b\n"
        "4:  j    kernel_main\n"
        ".size _start, . - _start\n"
        /* Here and not in C, so that no compiler uses the values as linked. */
        ".section .rodata.tilework_binding, \"a\", @progbits\n"
        ".balign 4\n"
        ".globl __tilework_binding\n"
        ".type __tilework_binding, @object\n"
        "__tilework_binding:\n"
        "    .word " TEXT(TW_LINKED_BINDING_0) ", " TEXT(TW_LINKED_BINDING_1) ", " TEXT(TW_LINKED_BINDING_2) "\n"
        "    .word " TEXT(TW_LINKED_BINDING_3) ", " TEXT(TW_LINKED_BINDING_4) ", " TEXT(TW_LINKED_BINDING_5) "\n"
        ".size __tilework_binding, . - __tilework_binding\n"
        /* A section of its own: a kernel that does not print goes without it. */
        ".section .rodata.tilework_prints, \"a\", @progbits\n"
        ".balign 4\n"
        ".globl __tilework_prints\n"
        ".type __tilework_prints, @object\n"
        "__tilework_prints:\n"
        "    .word " TEXT(TW_LINKED_PRINT_RING) ", 0\n"
        ".size __tilework_prints, . - __tilework_prints\n"
        ".text\n");

void *memcpy(void *to, const void *from, size_t bytes)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    while (bytes--) *t++ = *f++;
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    unsigned char *t = to;
    while (bytes--) *t++ = (unsigned char)value;
    return to;
}
