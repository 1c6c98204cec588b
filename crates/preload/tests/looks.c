#define _GNU_SOURCE
// Accesses right behind a look at the clock, by the function of the GNU C++ library.
#include <dlfcn.h>
#include <immintrin.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)

typedef int64_t Now(void);
static Now *now;

// Looks, accesses, and goes on with all that a program may have: the registers that the function
// has kept, the 128 bytes below the stack, and flags between two instructions, for `turns` turns.
uint64_t behind(volatile uint32_t *at, uint64_t seed, uint64_t turns, Now *now);
__asm__(
    ".text\n"
    "behind:\n"
    "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n sub $8, %rsp\n"
    "mov %rdi, %rbx\n mov %rsi, %r12\n mov %rdx, %r13\n lea 9(%rsi,%rsi,4), %r14\n"
    "movabs $0x123456789ABCDEF0, %r15\n lea 3(%rsi,%rsi,2), %rbp\n"
    "call *%rcx\n"
    "mov %r12d, (%rbx)\n"
    "mov %r14, -8(%rsp)\n mov %r15, -64(%rsp)\n mov %rbp, -128(%rsp)\n"
    "mov %r13, %rdx\n mov %r12, %rsi\n lea 1(%r13), %rdi\n mov $5, %r8d\n mov $6, %r9d\n mov $7, %r10d\n mov $8, %r11d\n"
    "add (%rbx), %r12d\n"
    "mov 4(%rbx), %ecx\n"
    "adc %rcx, %r14\n"
    "1: lea 7(%r14,%r14,2), %r14\n xor %rdx, %r14\n inc %r8\n adc %r9, %r8\n dec %rdx\n jne 1b\n"
    "mov -8(%rsp), %rax\n add -64(%rsp), %rax\n xor -128(%rsp), %rax\n"
    "add %r14, %rax\n add %r12, %rax\n add %r15, %rax\n add %rbp, %rax\n add %rcx, %rax\n add %rdx, %rax\n"
    "add %rsi, %rax\n add %rdi, %rax\n add %r8, %rax\n add %r9, %rax\n add %r10, %rax\n add %r11, %rax\n"
    "mov %eax, 8(%rbx)\n"
    "add $8, %rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n");

// To another stack and back behind the look, with an access on each.
uint64_t elsewhere(volatile uint32_t *at, uint64_t seed, void *stack, Now *now);
__asm__(
    "elsewhere:\n"
    "push %rbx\n push %rbp\n push %r12\n mov %rdi, %rbx\n mov %rdx, %rbp\n mov %rsi, %r12\n"
    "call *%rcx\n"
    "mov %r12d, (%rbx)\n"
    "mov %rsp, %rax\n mov %rbp, %rsp\n push %rax\n"
    "mov (%rbx), %ecx\n add %rcx, %r12\n mov %r12d, 4(%rbx)\n"
    "pop %rsp\n"
    "mov 4(%rbx), %eax\n add %r12, %rax\n"
    "pop %r12\n pop %rbp\n pop %rbx\n ret\n");

static uint32_t __attribute__((noinline, target("avx2"))) vectors(volatile uint8_t *at, uint32_t seed) {
    __m256i value = _mm256_set1_epi32(seed);
    CHECK(now() > 0);
    _mm256_storeu_si256((__m256i *)at, _mm256_add_epi32(value, value));
    value = _mm256_add_epi32(_mm256_loadu_si256((const __m256i *)at), value);
    CHECK(now() > 0);
    return *(volatile uint32_t *)(at + 4) + _mm256_extract_epi32(value, 7);
}

static volatile uint32_t *word;
static volatile int signals;
static void on_alarm(int signal) {
    (void)signal;
    CHECK(now() > 0);
    word[100] = ++signals;
    CHECK(now() > 0);
    CHECK((int)word[100] == signals);
}

// Accesses so far from each other that each begins with a trap, or with the look before it.
static void __attribute__((noinline)) far(volatile uint32_t *at, Now *look) {
    CHECK(look() >= 0);
    *at = 1;
    for (volatile int i = 0; i < 2000; i++) {}
}
static double timed(volatile uint32_t *at, Now *look) {
    int64_t began = now();
    for (int i = 0; i < 500; i++) far(at, look);
    return (now() - began) / 500.0;
}
static int64_t none(void) { return 0; }

void looks(volatile uint8_t *bytes, int only_values) {
    static uint32_t memory[128];
    static uint64_t stack[64];
    volatile uint32_t *at = word = (volatile uint32_t *)bytes;
    CHECK((now = (Now *)dlsym(RTLD_DEFAULT, "_ZNSt6chrono3_V212steady_clock3nowEv")));
    for (uint64_t turns = 1; turns < 700; turns++) {
        uint64_t there = behind(at, turns * 0x9E3779B97F4A7C15, turns, now);
        uint64_t here = behind(memory, turns * 0x9E3779B97F4A7C15, turns, now);
        if (there != here) { printf("%lu turns: %lx, %lx\n", turns, there, here); exit(1); }
        CHECK(at[0] == memory[0] && at[2] == memory[2]);
        CHECK(elsewhere(at, turns, stack + 60, now) == elsewhere(memory, turns, stack + 60, now));
        if (__builtin_cpu_supports("avx2")) CHECK(vectors(bytes, turns) == vectors((uint8_t *)memory, turns));
    }
    if (only_values) return;
    // What a handler does meanwhile.
    struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
    struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { { 0, 0 }, { 0, 0 } };
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (int i = 0; i < 1000000 && signals < 300; i++)
        CHECK(behind(at, i, 1 + i % 90, now) == behind(memory, i, 1 + i % 90, now));
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0 && signals > 0);
    double trapped = 1e9, looked = 1e9, nothing = 1e9;
    for (int round = 0; round < 20; round++) {
        double took = timed(at, none);
        if (took < trapped) trapped = took;
        if ((took = timed(at, now)) < looked) looked = took;
        if ((took = timed(memory, none)) < nothing) nothing = took;
    }
    printf("a store and %.0f ns of other work: %.0f ns, and %.0f ns behind a look\n", nothing, trapped, looked);
    CHECK(3 * (looked - nothing) < 2 * (trapped - nothing));
}
