#define _GNU_SOURCE
// A program that knows only silicon: it opens the device, aims windows and uses them as memory.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <setjmp.h>
#include <errno.h>
#include <immintrin.h>

#include <sys/syscall.h>
#include <spawn.h>
#include <dirent.h>

#define CHECK(what) do { if (!(what)) { printf("%d: %s\n", __LINE__, #what); exit(1); } } while (0)

static int fd;

static volatile uint8_t *window_at(uint32_t x, uint32_t y, uint64_t addr, size_t len) {
    struct { uint64_t size, reserved; uint32_t id, r0; uint64_t uc, wc, r1; } take = { 2 << 20 };
    CHECK(ioctl(fd, 0xFA0B, &take) == 0);
    struct {
        uint32_t id, reserved; uint64_t addr; uint16_t xe, ye, xs, ys; uint8_t noc, mcast, ordering, linked, vc, r[3];
        uint32_t r1[2]; uint64_t out;
    } aim = { take.id, 0, addr, x, y, 0, 0, 0, 0, 1 };
    CHECK(ioctl(fd, 0xFA0D, &aim) == 0);
    void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, take.wc);
    CHECK(at != MAP_FAILED);
    return at;
}

static volatile uint8_t *window(uint32_t x, uint32_t y, size_t len) { return window_at(x, y, 0, len); }

// Every form on the card and on memory: bytes, registers and flags are the same.
#define BOTH(code) do { \
    for (int i = 0; i < 256; i++) memory[i] = at[i] = i * 7 + 3; \
    uint64_t a[2], b[2], f[2]; \
    for (int side = 0; side < 2; side++) { \
        volatile uint8_t *p = side ? at + 64 : memory + 64; \
        uint64_t ra = 0x1122334455667788, rb = 0x99AABBCCDDEEFF01, rf; \
        __asm__ volatile("xor %%ecx, %%ecx\n\t" code "\n\tpushfq\n\tpop %[f]" \
            : [a] "+a"(ra), [b] "+b"(rb), [f] "=&D"(rf) : [p] "S"(p) : "memory", "cc", "rcx", "xmm0"); \
        a[side] = ra; b[side] = rb; f[side] = rf & 0x8D5; \
    } \
    for (int i = 0; i < 256; i++) if (memory[i] != at[i]) { printf("%s: byte %d\n", code, i); exit(1); } \
    if (a[0] != a[1] || b[0] != b[1] || f[0] != f[1]) { \
        printf("%s: %lx %lx %lx, %lx %lx %lx\n", code, a[0], b[0], f[0], a[1], b[1], f[1]); exit(1); } \
} while (0)

static void forms(volatile uint8_t *at) {
    static uint8_t memory[256] __attribute__((aligned(64)));
    BOTH("movb %%al, (%[p])"); BOTH("movw %%ax, 1(%[p])"); BOTH("movl %%eax, 3(%[p])"); BOTH("movq %%rax, 5(%[p])");
    BOTH("movb (%[p]), %%al"); BOTH("movw (%[p]), %%ax"); BOTH("movl (%[p]), %%eax"); BOTH("movq 61(%[p]), %%rax");
    BOTH("movb %%ah, (%[p])"); BOTH("movb (%[p]), %%bh"); BOTH("movq $-5, (%[p])"); BOTH("movw $77, (%[p])");
    BOTH("movzbl (%[p]), %%eax"); BOTH("movzwl (%[p]), %%eax"); BOTH("movsbl 9(%[p]), %%eax");
    BOTH("movswq 30(%[p]), %%rax"); BOTH("movslq 33(%[p]), %%rax"); BOTH("movntil %%eax, 4(%[p])");
    BOTH("addl %%eax, (%[p])"); BOTH("addb (%[p]), %%al"); BOTH("subq %%rax, 8(%[p])"); BOTH("subw (%[p]), %%bx");
    BOTH("adcl %%eax, (%[p])"); BOTH("sbbq (%[p]), %%rbx"); BOTH("cmpl %%eax, (%[p])"); BOTH("cmpb $0x40, 9(%[p])");
    BOTH("testl %%eax, (%[p])"); BOTH("andl %%eax, (%[p])"); BOTH("orq (%[p]), %%rax"); BOTH("xorw $255, (%[p])");
    BOTH("incl (%[p])"); BOTH("decq (%[p])"); BOTH("negl (%[p])"); BOTH("notb (%[p])");
    BOTH("xchgl %%eax, (%[p])"); BOTH("lock addl %%eax, (%[p])"); BOTH("lock xaddl %%eax, (%[p])");
    BOTH("lock cmpxchgl %%ebx, (%[p])"); BOTH("movl (%[p]), %%eax\n\tlock cmpxchgl %%ebx, (%[p])");
    BOTH("movdqu (%[p]), %%xmm0\n\tmovdqu %%xmm0, 33(%[p])"); BOTH("movaps 16(%[p]), %%xmm0\n\tmovaps %%xmm0, (%[p])");
    BOTH("movq (%[p]), %%xmm0\n\tmovups %%xmm0, 32(%[p])"); BOTH("movd %%eax, %%xmm0\n\tmovd %%xmm0, 7(%[p])");
    BOTH("movntdq %%xmm0, 16(%[p])");
    // The general way: the processor does them on a copy.
    BOTH("imull 4(%[p]), %%eax"); BOTH("bsrl (%[p]), %%eax"); BOTH("popcntl (%[p]), %%eax");
    BOTH("movq %%rax, %%xmm0\n\tpaddd (%[p]), %%xmm0\n\tmovq %%xmm0, %%rbx"); BOTH("rolb (%[p])");
    BOTH("pushq 8(%[p])\n\tpop %%rax"); BOTH("movbel (%[p]), %%eax"); BOTH("btl $3, (%[p])"); BOTH("shldl $5, %%eax, (%[p])"); 
}

// Forms of vectors; those that this processor lacks are left out, which is printed.
static void vectors(volatile uint8_t *at) {
    static uint8_t memory[256] __attribute__((aligned(64)));
    BOTH("movss 3(%[p]), %%xmm0\n\tmovss %%xmm0, 33(%[p])"); BOTH("movsd 3(%[p]), %%xmm0\n\tmovsd %%xmm0, 35(%[p])");
    BOTH("movlps 8(%[p]), %%xmm0\n\tmovhps 5(%[p]), %%xmm0\n\tmovlps %%xmm0, 40(%[p])\n\tmovhps %%xmm0, 57(%[p])");
    BOTH("movapd 16(%[p]), %%xmm0\n\tmovntpd %%xmm0, 32(%[p])"); BOTH("lddqu 7(%[p]), %%xmm0\n\tmovupd %%xmm0, 71(%[p])");
    BOTH("movdqa 16(%[p]), %%xmm0\n\tmovntps %%xmm0, 32(%[p])"); BOTH("cvtsi2sdl (%[p]), %%xmm0\n\tmovq %%xmm0, %%rax");
    BOTH("movdqu (%[p]), %%xmm0\n\tpinsrw $3, 17(%[p]), %%xmm0\n\tmovdqu %%xmm0, 19(%[p])");
    BOTH("cvtps2pd 4(%[p]), %%xmm0\n\tmovdqu %%xmm0, 64(%[p])"); BOTH("movddup 4(%[p]), %%xmm0\n\tmovdqu %%xmm0, 64(%[p])");
    BOTH("fldl 8(%[p])\n\tfstpl 64(%[p])"); BOTH("fildl 8(%[p])\n\tfistpll 65(%[p])");
    BOTH("movq 8(%[p]), %%mm0\n\tmovq %%mm0, 65(%[p])\n\temms");
    if (__builtin_cpu_supports("sse4.1")) {
        BOTH("movntdqa 16(%[p]), %%xmm0\n\tmovdqu %%xmm0, 33(%[p])"); BOTH("pmovzxbw 9(%[p]), %%xmm0\n\tmovdqu %%xmm0, 64(%[p])");
        BOTH("movd %%eax, %%xmm0\n\tpextrb $1, %%xmm0, 9(%[p])\n\tpextrd $0, %%xmm0, 13(%[p])");
    } else printf("without SSE4.1\n");
    if (__builtin_cpu_supports("sse4.2")) BOTH("crc32l 8(%[p]), %%eax"); else printf("without SSE4.2\n");
    if (__builtin_cpu_supports("avx")) {
        BOTH("vmovups 7(%[p]), %%ymm0\n\tvmovups %%ymm0, 77(%[p])"); BOTH("vmovaps 32(%[p]), %%ymm0\n\tvmovaps %%ymm0, 96(%[p])");
        BOTH("vmovdqu 7(%[p]), %%ymm0\n\tvmovdqu %%ymm0, 77(%[p])"); BOTH("vmovdqa 32(%[p]), %%ymm0\n\tvmovntdq %%ymm0, 64(%[p])");
        BOTH("vmovdqu 7(%[p]), %%xmm0\n\tvmovdqu %%ymm0, 77(%[p])"); BOTH("vmovd 7(%[p]), %%xmm0\n\tvmovdqu %%ymm0, 77(%[p])");
        BOTH("vmovq 7(%[p]), %%xmm0\n\tvmovq %%xmm0, 77(%[p])"); BOTH("vmovss 7(%[p]), %%xmm0\n\tvmovss %%xmm0, 77(%[p])");
        BOTH("vmovsd 7(%[p]), %%xmm0\n\tvmovsd %%xmm0, 77(%[p])"); BOTH("vlddqu 7(%[p]), %%ymm0\n\tvmovupd %%ymm0, 77(%[p])");
        BOTH("vbroadcastss 9(%[p]), %%ymm0\n\tvmovups %%ymm0, 64(%[p])"); BOTH("vbroadcastf128 9(%[p]), %%ymm0\n\tvmovups %%ymm0, 64(%[p])");
        BOTH("vmovups (%[p]), %%ymm0\n\tvextractf128 $1, %%ymm0, 67(%[p])\n\tvinsertf128 $0, 5(%[p]), %%ymm0, %%ymm0\n\tvmovups %%ymm0, 88(%[p])");
    } else printf("without AVX\n");
    if (__builtin_cpu_supports("avx2")) {
        BOTH("vmovdqu (%[p]), %%ymm0\n\tvpaddd 5(%[p]), %%ymm0, %%ymm0\n\tvmovdqu %%ymm0, 64(%[p])"); BOTH("vmovntdqa 32(%[p]), %%ymm0\n\tvmovdqu %%ymm0, 65(%[p])");
        BOTH("vpbroadcastd 9(%[p]), %%ymm0\n\tvmovdqu %%ymm0, 64(%[p])"); BOTH("vpmovzxbd 9(%[p]), %%ymm0\n\tvmovdqu %%ymm0, 64(%[p])");
    } else printf("without AVX2\n");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
        BOTH("vmovdqu8 7(%[p]), %%zmm0\n\tvmovdqu8 %%zmm0, 77(%[p])"); BOTH("vmovdqu16 7(%[p]), %%ymm0\n\tvmovdqu16 %%ymm0, 77(%[p])");
        BOTH("vmovdqu32 7(%[p]), %%zmm0\n\tvmovdqu32 %%zmm0, 77(%[p])"); BOTH("vmovdqu64 7(%[p]), %%zmm0\n\tvmovdqu64 %%zmm0, 77(%[p])");
        BOTH("vmovdqa32 64(%[p]), %%zmm0\n\tvmovdqa64 %%zmm0, (%[p])"); BOTH("vmovntdqa 64(%[p]), %%zmm0\n\tvmovntdq %%zmm0, (%[p])");
        BOTH("vmovups 7(%[p]), %%zmm0\n\tvmovntps %%zmm0, 64(%[p])"); BOTH("vmovupd 7(%[p]), %%zmm0\n\tvmovntpd %%zmm0, 64(%[p])");
        BOTH("vmovups 7(%[p]), %%zmm17\n\tvmovaps %%zmm17, 64(%[p])"); BOTH("vmovdqu64 9(%[p]), %%xmm29\n\tvmovdqu64 %%zmm29, 77(%[p])");
        BOTH("vmovdqu32 (%[p]), %%zmm0\n\tvpaddd 5(%[p]), %%zmm0, %%zmm0\n\tvmovdqu32 %%zmm0, 64(%[p])"); BOTH("vpbroadcastd 9(%[p]), %%zmm0\n\tvmovdqu32 %%zmm0, 64(%[p])");
        BOTH("vmovdqu32 (%[p]), %%zmm0\n\tvpaddd 5(%[p])%{1to16%}, %%zmm0, %%zmm0\n\tvmovdqu32 %%zmm0, 64(%[p])");
        BOTH("movl $0x5A3, %%ecx\n\tkmovd %%ecx, %%k1\n\tvmovdqu32 (%[p]), %%zmm0\n\tvmovdqu8 %%zmm0, 64(%[p])%{%%k1%}\n\tvmovdqu32 7(%[p]), %%zmm0%{%%k1%}%{z%}\n\tvmovdqu32 %%zmm0, 100(%[p])");
        BOTH("movl $0x15A3, %%ecx\n\tkmovd %%ecx, %%k2\n\tvmovdqu64 (%[p]), %%zmm0\n\tvmovdqu8 9(%[p]), %%ymm0%{%%k2%}\n\tvmovdqu32 %%zmm0, 64(%[p])\n\tvmovups %%zmm0, 3(%[p])%{%%k2%}");
        CHECK(memcmp((void *)at, (void *)(at + 1), 77) != 0);
    } else printf("without AVX-512\n");
}

// Accesses over the edge of a page of the card, of two windows, and at odd places.
static void edges(volatile uint8_t *at) {
    static uint8_t memory[256] __attribute__((aligned(64)));
    at += 4096 - 64 - 5;
    forms(at + 5 - 64);
    BOTH("movq 1(%[p]), %%rax\n\tmovq %%rax, 9(%[p])"); BOTH("movdqu 3(%[p]), %%xmm0\n\tmovdqu %%xmm0, 18(%[p])");
    // Two windows of a DRAM tile, one behind the other: what goes over their border goes to both.
    volatile uint8_t *first = window_at(17, 12, 0, 2 << 20), *second = window_at(17, 12, 2 << 20, 2 << 20);
    CHECK(second == first + (2 << 20));
    at = second - 64;
    BOTH("movl %%eax, 62(%[p])"); // The operand is 64 bytes behind: wholly in the second window.
    at = second - 128;
    BOTH("movq %%rax, 61(%[p])\n\tmovq 59(%[p]), %%rbx"); BOTH("movdqu 57(%[p]), %%xmm0\n\tmovdqu %%xmm0, 49(%[p])");
    BOTH("addq %%rax, 60(%[p])"); BOTH("lock xaddl %%eax, 62(%[p])"); BOTH("imull 62(%[p]), %%eax");
    uint8_t back[300];
    for (int i = 0; i < 300; i++) first[(2 << 20) - 150 + i] = i * 3;
    memcpy(back, (void *)(second - 150), 300);
    for (int i = 0; i < 300; i++) CHECK(back[i] == (uint8_t)(i * 3));
}

static void strings(volatile uint8_t *at) {
    static uint8_t source[5000], back[5000];
    for (int i = 0; i < 5000; i++) source[i] = i * 31 + 7;
    void *to = (void *)at, *from = source;
    size_t count = 5000;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    CHECK(to == (void *)(at + 5000) && from == source + 5000 && count == 0);
    to = back, from = (void *)at, count = 625;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    CHECK(memcmp(source, back, 5000) == 0);
    to = (void *)(at + 96), count = 20;
    __asm__ volatile("std; rep stosl; cld" : "+D"(to), "+c"(count) : "a"(0x01020304) : "memory");
    CHECK(to == (void *)(at + 16) && at[20] == 4 && at[99] == 1 && at[19] == source[19] && at[100] == source[100]);
    memset((void *)at, 0x5A, 4000);
    memcpy(back, (void *)at, 5000);
    CHECK(back[0] == 0x5A && back[3999] == 0x5A && back[4000] == source[4000]);
    memmove((void *)(at + 10), (void *)at, 4500);
    CHECK(at[4009] == 0x5A && at[4010] == source[4000]);
}

// What programs do between their accesses, a few of each kind: as with memory, so with the card.
static __thread uint64_t own;
static uint64_t __attribute__((noinline)) deeper(uint64_t value, int depth) {
    // Far below the access that trapped, where the kernel has put what it has saved.
    volatile uint64_t local[24];
    for (int i = 0; i < 24; i++) local[i] = value * (i + 3) ^ depth;
    if (depth) value += deeper(value ^ local[depth], depth - 1);
    for (int i = 0; i < 24; i++) value = value * 31 + local[i];
    return value;
}
static uint64_t __attribute__((noinline)) twice(uint64_t value) { return 2 * value; }
static uint64_t __attribute__((noinline)) half(uint64_t value) { return value / 2; }
static uint64_t (*const functions[2])(uint64_t) = { twice, half };
typedef uint32_t Four __attribute__((vector_size(16)));
static uint64_t __attribute__((noinline, optimize("O2"))) between(volatile uint32_t *p, uint64_t v, int kinds) {
    static uint64_t words[8];
    double real = 1.25;
    long double wide = 3;
    Four four = { 1, 2, 3, 4 }, kept = { v, v >> 9, v >> 17, v >> 25 };
    memset(words, 0, sizeof words), own = 0;
    for (int i = 0; i < 400; i++) {
        p[i % 64] = v;
        v = v * 6364136223846793005u + p[i * 7 % 64] + 1442695040888963407u;
        uint64_t w = v >> 20 | 1;
        uint32_t n = v >> 40;
        switch (i % kinds) {
        case 0: v ^= deeper(v, 6); break;
        case 1: v += (v >> 3) / w + (v >> 5) % w; break;
        case 2: v += (uint64_t)((int64_t)v / (int64_t)w) + (uint64_t)((int32_t)n / ((int32_t)w | 1)); break;
        case 3: v ^= (unsigned __int128)v * w >> 64; break;
        case 4: v = (v << (n & 63) | v >> (-n & 63)) ^ (uint16_t)v << 3 ^ (int8_t)n >> 2; break;
        case 5: v += __builtin_popcountll(v) + __builtin_ctzll(w) * 3 + __builtin_clzll(w) * 5 + __builtin_bswap32(n); break;
        case 6: real = real * 1.0009765625 + n % 77; v += (uint64_t)real; if (real > 1e6) real = 1; break;
        case 7: wide = wide / 3 + n % 5; v += (uint64_t)wide; break;
        case 8: __atomic_fetch_add(&words[n % 8], v, __ATOMIC_SEQ_CST); v ^= __atomic_exchange_n(&words[i % 8], w, __ATOMIC_SEQ_CST); break;
        case 9: { uint64_t seen = i & 1 ? words[i % 8] : v; v += __atomic_compare_exchange_n(&words[i % 8], &seen, n, 0, 5, 5) + seen; break; }
        case 10: v = functions[n & 1](v); break;
        case 11: four = four * kept + four; kept ^= four >> 7; v += four[i % 4]; break;
        case 12: { unsigned __int128 sum = (unsigned __int128)v << 64 | w; sum += (unsigned __int128)w << 64 | v; v = sum >> 64 ^ (uint64_t)sum; break; }
        case 13: { uint8_t a = v, b = n; v += (a < b) + 2 * ((int8_t)a <= (int8_t)b) + 4 * ((uint8_t)(a + b) < a); if ((int16_t)n > (int16_t)v) v = w; break; }
        case 14: { void *to = words; size_t count = n % 8; __asm__ volatile("rep stosq" : "+D"(to), "+c"(count) : "a"(v) : "memory"); v += words[3] + (uint64_t)to - (uint64_t)words; break; }
        case 15: own += v; v ^= own << 3; break;
        case 16: __asm__ volatile("push %0; push $-77; pop %%rcx; pop %0; add %%rcx, %0; xchg %b0, %h0; bt $9, %0; adc $3, %0; sbb %%rcx, %0" : "+a"(v) : : "rcx", "cc"); break;
        case 17: { char text[40]; memset(text, n, 40); memcpy(text + 5, &v, 8); memmove(text + 1, text, 30); memcpy(&v, text + 7, 8); v += text[39]; break; }
        }
    }
    return v ^ (uint64_t)real ^ (uint64_t)wide ^ kept[0] ^ four[3];
}
// The kernel keeps these registers at the end of what it saves, next to the program's own stack.
static void __attribute__((noinline, target("avx512f"))) kept(volatile uint32_t *p) {
    uint32_t in[16], out[16];
    for (int i = 0; i < 16; i++) in[i] = i * 0x01234567 + 1;
    for (int round = 0; round < 20; round++) {
        __asm__ volatile("vmovdqu32 %0, %%zmm29" : : "m"(in) : "xmm29");
        p[0] = round;
        deeper(round, 6);
        p[1] = round;
        __asm__ volatile("vmovdqu32 %%zmm29, %0" : "=m"(out));
        CHECK(memcmp(in, out, sizeof in) == 0);
    }
}
static void between_accesses(volatile uint8_t *at) {
    static uint32_t memory[64];
    if (__builtin_cpu_supports("avx512f")) kept((volatile uint32_t *)at); else printf("without AVX-512\n");
    for (int kinds = 1; kinds <= 18; kinds++) for (uint64_t seed = 1; seed < 4; seed++) {
        for (int i = 0; i < 64; i++) memory[i] = ((volatile uint32_t *)at)[i] = i * 77;
        uint64_t there = between((volatile uint32_t *)at, seed, kinds), here = between(memory, seed, kinds);
        if (there != here) { printf("%d kinds, seed %lu: %lx, %lx\n", kinds, seed, there, here); exit(1); }
        for (int i = 0; i < 64; i++) CHECK(memory[i] == ((volatile uint32_t *)at)[i]);
    }
}

// Copies as tt-umd makes them: the time of each access is measured.
static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}
static int64_t longest;
static void __attribute__((noinline, target("avx2"))) copy_timed(volatile uint8_t *to, const volatile uint8_t *from, size_t len) {
    for (; len >= 128; len -= 128, to += 128, from += 128) {
        int64_t began = now();
        __m256i *out = (__m256i *)to;
        const __m256i *in = (const __m256i *)from;
        __m256i a = _mm256_loadu_si256(in), b = _mm256_loadu_si256(in + 1);
        __m256i c = _mm256_loadu_si256(in + 2), d = _mm256_loadu_si256(in + 3);
        _mm256_storeu_si256(out, a), _mm256_storeu_si256(out + 1, b);
        _mm256_storeu_si256(out + 2, c), _mm256_storeu_si256(out + 3, d);
        int64_t took = now() - began;
        CHECK(took >= 0);
        if (took > longest) longest = took;
    }
    for (; len >= 4; len -= 4, to += 4, from += 4) *(volatile uint32_t *)to = *(const volatile uint32_t *)from;
}
static void driver(volatile uint8_t *at) {
    enum { SIZE = 1 << 20 };
    static uint8_t source[SIZE + 4], back[SIZE + 4];
    if (!__builtin_cpu_supports("avx2")) return;
    for (size_t i = 0; i < sizeof source; i++) source[i] = i * 11 + (i >> 8);
    double s[2] = { 1e9, 1e9 };
    for (int round = 0; round < 3; round++) {
        for (int side = 0; side < 2; side++) {
            int64_t began = now();
            if (side) copy_timed(back, at, sizeof back); else copy_timed(at, source, sizeof source);
            double took = (now() - began) / 1e9;
            if (took < s[side]) s[side] = took;
        }
        CHECK(memcmp(source, back, sizeof back) == 0);
        memset(back, 0, sizeof back);
        source[round]++;
    }
    // A part that was read before is read anew.
    at[64] = 7, at[65] = 8;
    copy_timed(back, at, 256);
    CHECK(back[64] == 7 && back[65] == 8 && back[66] == source[66]);
    printf("timed copies: to the card %.0f MB/s, from the card %.0f MB/s, an access %ld us at most\n",
        1.048 / s[0], 1.048 / s[1], (long)(longest / 1000));
}

static volatile uint8_t *tiles[2];
static void *hammer(void *which) {
    volatile uint32_t *word = (volatile uint32_t *)tiles[(intptr_t)which];
    for (uint32_t i = 1; i <= 2000; i++) {
        *word = i << 8 | (uint32_t)(intptr_t)which;
        if (*word != (i << 8 | (uint32_t)(intptr_t)which)) return "lost";
    }
    return NULL;
}

static sigjmp_buf jump;
static void on_segv(int signal) { (void)signal; siglongjmp(jump, 1); }

static void pins(void) {
    void *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct { uint32_t size, flags; uint64_t va, bytes, bus, noc; } pin = { 16, 2, (uint64_t)page, 8192, 0, 0 };
    CHECK(ioctl(fd, 0xFA07, &pin) == 0 && pin.noc >> 60 == 1 && pin.bus != 0);
    pin.va = 4096;
    CHECK(ioctl(fd, 0xFA07, &pin) == -1 && errno == EFAULT);
    struct { uint32_t size; uint8_t index, flags, r[2]; uint64_t r1[2], bus, offset; uint32_t out, r2; uint64_t noc, r3; } buffer = { 8192, 1, 2 };
    CHECK(ioctl(fd, 0xFA03, &buffer) == 0);
    char *memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, buffer.offset);
    CHECK(memory != MAP_FAILED);
    strcpy(memory + 4090, "shared");
    CHECK(strcmp(memory + 4090, "shared") == 0 && munmap(memory, 8192) == 0);
}

// The first core of tile (1, 2) writes a count to the host's memory every so many turns of a loop.
// Assembled from:
//   lui t0, 0xFFB20; lui t1, 0x10; lui a0, 0x11         the NIU, the count, the table below
//   lw s1, 4*i(a0); sw s1, 4*i(t0)                      nine registers of the request
//   lw a1, 36(a0); lw a2, 40(a0); li a3, 1; li t2, 0    turns, counts
//   1: mv s0, a1; 2: addi s0, s0, -1; bnez s0, 2b
//   addi t2, t2, 1; sw t2, 0(t1); lw s1, 0(t1)
//   3: lw s1, 0x40(t0); bnez s1, 3b; sw a3, 0x40(t0)    the request
//   bne t2, a2, 1b; 4: j 4b
static const uint32_t teller[] = {
    0xFFB202B7, 0x00010337, 0x00011537, 0x00052483, 0x0092A023, 0x00452483, 0x0092A223, 0x00852483, 0x0092A423,
    0x00C52483, 0x0092A623, 0x01052483, 0x0092A823, 0x01452483, 0x0092AA23, 0x01852483, 0x0092AC23, 0x01C52483,
    0x0092AE23, 0x02052483, 0x0292A023, 0x02452583, 0x02852603, 0x00100693, 0x00000393, 0x00058413, 0xFFF40413,
    0xFE041EE3, 0x00138393, 0x00732023, 0x00032483, 0x0402A483, 0xFE049EE3, 0x04D2A023, 0xFCC39EE3, 0x0000006F };

// Polls what the device tells: in a bare loop, in one with calls between, and by vectors.
static uint32_t __attribute__((noinline)) spend(uint32_t value) {
    for (volatile int i = 0; i < 200; i++) value = value * 5 + i;
    return value;
}
static void mailbox(volatile uint8_t *l1, const char *how) {
    enum { COUNTS = 20, TURNS = 3000 };
    volatile uint32_t *told = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    told[0] = 77;
    struct { uint32_t size, flags; uint64_t va, bytes, bus, noc; } pin = { 16, 2, (uint64_t)told, 8192, 0, 0 };
    CHECK(ioctl(fd, 0xFA07, &pin) == 0);
    CHECK(told[0] == 77);
    told[1024] = 5;
    told[0] = 0;
    volatile uint8_t *registers = window_at(1, 2, 0xFFA00000, 2 << 20);
    for (size_t i = 0; i < sizeof teller / 4; i++) ((volatile uint32_t *)l1)[i] = teller[i];
    const uint32_t table[] = { 0x10000, 0, 2 << 6 | 1, (uint32_t)pin.noc, pin.noc >> 32, 24 << 6 | 19, 0, 2 | 1 << 4, 4, TURNS, COUNTS };
    for (size_t i = 0; i < sizeof table / 4; i++) ((volatile uint32_t *)(l1 + 0x11000))[i] = table[i];
    *(volatile uint32_t *)(registers + 0x1121B0) = 0x47000;
    uint32_t seen = 0, other = 0, looks = 0;
    while (seen < COUNTS) {
        uint32_t now;
        if (!strcmp(how, "vectors")) now = _mm_cvtsi128_si32(_mm_loadu_si128((void *)told));
        else now = told[0];
        if (!strcmp(how, "calls")) other = spend(other);
        CHECK(now == seen || now == seen + 1);
        looks++;
        seen = now;
    }
    CHECK(told[1024] == 5);
    printf("%u looks\n", looks);
}

// The first core of tile (1, 2) gives the coprocessor an instruction that waits for a semaphore that
// nobody raises, and waits for the coprocessor. Assembled from:
//   lui t0, 0xFFE40; lui a0, 0x11                       the instruction buffer, the table below
//   lw a1, 0(a0); lw a2, 4(a0); sw a1, 0(t0); sw a2, 0(t0)
//   lui t1, 0xFFE80; lw a3, 4(t1); 1: j 1b
static const uint32_t stuck[] = {
    0xFFE402B7, 0x00011537, 0x00052583, 0x00452603, 0x00B2A023, 0x00C2A023, 0xFFE80337, 0x00432683, 0x0000006F };
// j 1b
static const uint32_t done[] = { 0x0000006F };
// lui t0, 0xFFB48; 1: lw a0, 0x28(t0); beqz a0, 1b: the count of pages of a circular buffer
static const uint32_t pages[] = { 0xFFB482B7, 0x0282A503, 0xFE050EE3 };
// lui t0, 0xFFB20; 1: lw a0, 0x208(t0); beqz a0, 1b: read responses, of which none was asked for
static const uint32_t answers[] = { 0xFFB202B7, 0x2082A503, 0xFE050EE3 };

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

// A chip in which nothing happens any more: the program polls L1 or pinned memory, or looks now and
// then.
static void standstill(volatile uint8_t *l1, const char *program, const char *how) {
    volatile uint8_t *registers = window_at(1, 2, 0xFFA00000, 2 << 20);
    const uint32_t *code = done;
    size_t words = 1;
    if (!strcmp(program, "stuck")) code = stuck, words = sizeof stuck / 4;
    if (!strcmp(program, "pages")) code = pages, words = sizeof pages / 4;
    if (!strcmp(program, "answers")) code = answers, words = sizeof answers / 4;
    for (size_t i = 0; i < words; i++) ((volatile uint32_t *)l1)[i] = code[i];
    // SEMWAIT for semaphore 3 in front of everything, NOP.
    ((volatile uint32_t *)(l1 + 0x11000))[0] = 0xA6FF8021;
    ((volatile uint32_t *)(l1 + 0x11000))[1] = 0x02000000;
    volatile uint32_t *told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct { uint32_t size, flags; uint64_t va, bytes, bus, noc; } pin = { 16, 2, (uint64_t)told, 4096, 0, 0 };
    CHECK(ioctl(fd, 0xFA07, &pin) == 0);
    *(volatile uint32_t *)(registers + 0x1121B0) = 0x47000;
    volatile uint32_t *word = !strcmp(how, "memory") ? told : (volatile uint32_t *)(l1 + 0x12000);
    int sleeps = !strcmp(how, "sleeps");
    for (double until = seconds() + atoi(getenv("POLL_SECONDS")); seconds() < until;) {
        CHECK(*word == 0);
        if (sleeps) usleep(400000);
    }
}

// Two cards, at the same addresses: each has its own memory, windows and place on the bus.
static void two_cards(volatile uint8_t *first) {
    int one = fd;
    struct stat status;
    fd = open("/dev/tenstorrent/1", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && minor(status.st_rdev) == 1);
    CHECK(fstat(one, &status) == 0 && minor(status.st_rdev) == 0);
    struct { uint32_t size; uint32_t bytes; uint16_t vendor, device, subvendor, subsystem, place, log2; } info[2];
    for (int card = 0; card < 2; card++) {
        info[card].size = sizeof info[0] - 4;
        CHECK(ioctl(card ? fd : one, 0xFA00, &info[card]) == 0);
    }
    CHECK(info[0].place == 0x100 && info[1].place == 0x200);
    volatile uint8_t *second = window(1, 2, 2 << 20) + 0x10000;
    static uint8_t block[2][8192], back[8192];
    for (int i = 0; i < 8192; i++) block[0][i] = i * 3, block[1][i] = i * 5 + 1;
    memcpy((void *)first, block[0], 8192);
    memcpy((void *)second, block[1], 8192);
    memcpy(back, (void *)first, 8192);
    CHECK(memcmp(back, block[0], 8192) == 0);
    for (int i = 0; i < 2000; i++) CHECK(first[i] == block[0][i] && second[i] == block[1][i]);
    // From card to card.
    memcpy((void *)(first + 16), (void *)second, 4096);
    CHECK(first[16] == block[1][0] && first[15] == block[0][15] && first[4111] == block[1][4095]);
    // The first goes; the second stays.
    close(one);
    CHECK(munmap((void *)(first - 0x10000), 2 << 20) == 0);
    CHECK(second[7] == block[1][7]);
    fd = open("/dev/tenstorrent/0", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && open("/dev/tenstorrent/2", O_RDWR) == -1 && errno == ENOENT);
}

// An instruction `syscall` of the program's own. All other registers are to stay.
static long instruction(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
    long result = number, rbx = 0x1234567, rflags, before;
    __m256i vector = _mm256_set1_epi32(number);
    __asm__ volatile("mov %[before], -8(%%rsp)\n\tcmp %[before], %[before]\n\tstc\n\tsyscall\n\t"
        "setc %%cl\n\tsetz %%ch\n\tmovzx %%cx, %%ecx\n\tmov -8(%%rsp), %%r11"
        : "+a"(result), "+b"(rbx), "=&c"(rflags), "+x"(vector), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9)
        : [before] "r"(result * 3) : "r11", "memory", "cc");
    __asm__ volatile("mov %%r11, %0" : "=r"(before));
    CHECK(rbx == 0x1234567 && (rflags & 0xFFFF) == 0x0101);
    CHECK(_mm256_testc_si256(_mm256_cmpeq_epi32(vector, _mm256_set1_epi32(number)), _mm256_set1_epi32(-1)));
    return result;
}

static int is_raw;

// A system call by its number: by the C library's function, or by an instruction.
static long by_number_of(long number, long a, long b, long c, long d, long e, long f) {
    if (!is_raw) return syscall(number, a, b, c, d, e, f);
    long result = instruction(number, a, b, c, d, e, f);
    if (result >= 0 || result < -4095) return result;
    errno = -result;
    return -1;
}
#define FILLED(number, a, b, c, d, e, f, ...) \
    by_number_of(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
#define by_number(...) FILLED(__VA_ARGS__, 0, 0, 0, 0, 0, 0)

// The device by numbers of system calls.
static void numbers(void) {
    struct stat status;
    const char *path = "/dev/tenstorrent/0";
    CHECK(by_number(SYS_stat, path, &status) == 0 && S_ISCHR(status.st_mode));
    CHECK(by_number(SYS_newfstatat, AT_FDCWD, path, &status, 0) == 0 && S_ISCHR(status.st_mode));
    CHECK(by_number(SYS_access, path, F_OK) == 0 && by_number(SYS_faccessat, AT_FDCWD, path, F_OK) == 0);
    CHECK(by_number(SYS_open, "/dev/tenstorrent/7", O_RDWR) == -1 && errno == ENOENT);
    long other = by_number(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
    long third = by_number(SYS_open, path, O_RDWR);
    struct { uint64_t flags, mode, resolve; } how = { O_RDWR, 0, 0 };
    long fourth = by_number(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    CHECK(other >= 0 && third >= 0 && fourth >= 0);
    CHECK(by_number(SYS_fstat, other, &status) == 0 && S_ISCHR(status.st_mode));
    uint32_t info[6] = { 20 };
    CHECK(by_number(SYS_ioctl, other, 0xFA00, info) == 0 && info[2] == 0xB1401E52);
    CHECK(by_number(SYS_ioctl, fourth, 0xFA00, info) == 0);
    CHECK(by_number(SYS_ioctl, other, 0xFAFF, info) == -1 && errno == EINVAL);
    // A window, through its own descriptor and calls.
    int before = fd;
    fd = other;
    struct { uint64_t size, reserved; uint32_t id, r0; uint64_t uc, wc, r1; } take = { 2 << 20 };
    CHECK(by_number(SYS_ioctl, other, 0xFA0B, &take) == 0);
    struct {
        uint32_t id, reserved; uint64_t addr; uint16_t xe, ye, xs, ys; uint8_t noc, mcast, ordering, linked, vc, r[3];
        uint32_t r1[2]; uint64_t out;
    } aim = { take.id, 0, 0, 1, 2, 0, 0, 0, 0, 1 };
    CHECK(by_number(SYS_ioctl, other, 0xFA0D, &aim) == 0);
    long at = by_number(SYS_mmap, NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, other, take.wc);
    CHECK(at != -1);
    ((volatile uint32_t *)at)[0x4000] = 0x12345678;
    CHECK(*(window(1, 2, 2 << 20) + 0x10000) == 0x78);
    fd = before;
    CHECK(by_number(SYS_munmap, at, 4096) == -1 && errno == EINVAL);
    CHECK(by_number(SYS_munmap, at, 2 << 20) == 0);
    long copy = by_number(SYS_dup, other);
    CHECK(by_number(SYS_close, other) == 0 && by_number(SYS_ioctl, copy, 0xFA00, info) == 0);
    CHECK(by_number(SYS_fcntl, copy, F_DUPFD_CLOEXEC, 100) == 100 && by_number(SYS_ioctl, 100, 0xFA00, info) == 0);
    CHECK(by_number(SYS_close, copy) == 0 && by_number(SYS_ioctl, copy, 0xFA00, info) == -1 && errno == EBADF);
    CHECK(by_number(SYS_close, 100) == 0);
    // The folder of devices, and what is not the card's.
    long folder = by_number(SYS_open, "/dev/tenstorrent", O_RDONLY | O_DIRECTORY);
    char entries[1024];
    long len = by_number(SYS_getdents64, folder, entries, sizeof entries);
    int devices = 0;
    for (long i = 0; i < len; i += ((struct dirent64 *)(entries + i))->d_reclen)
        devices += ((struct dirent64 *)(entries + i))->d_type == DT_CHR;
    CHECK(len > 0 && devices == 2);
    CHECK(by_number(SYS_getpid) == getpid() && by_number(SYS_close, 4242) == -1 && errno == EBADF);
    // A handler of its own, and a mask that would block the library's.
    struct { void (*handler)(int); unsigned long flags; void *restorer; uint64_t mask; } old, new = { on_segv };
    CHECK(by_number(SYS_rt_sigaction, SIGSEGV, &new, NULL, 8) == 0);
    CHECK(by_number(SYS_rt_sigaction, SIGSEGV, NULL, &old, 8) == 0 && old.handler == on_segv);
    uint64_t all = ~0ull, was;
    CHECK(by_number(SYS_rt_sigprocmask, SIG_SETMASK, &all, &was, 8) == 0);
    CHECK(*(window(1, 2, 2 << 20) + 0x10000) == 0x78);
    CHECK(by_number(SYS_rt_sigprocmask, SIG_SETMASK, &was, &all, 8) == 0 && !(all & 1ull << (SIGSEGV - 1)));
}

static void *opens(void *place) {
    *(long *)place = instruction(SYS_open, (long)"/dev/tenstorrent/0", O_RDWR, 0, 0, 0, 0);
    pthread_exit(place);
}

static volatile sig_atomic_t seen;
static void on_signal(int signal) {
    // All signals are blocked here, as the program wants.
    seen = instruction(SYS_getppid, 0, 0, 0, 0, 0, 0) == getppid() ? signal : -1;
}

// System calls by instructions: in all threads and processes that the program makes.
static void raw(void) {
    is_raw = 1;
    numbers();
    // What the kernel refuses.
    CHECK(by_number(SYS_open, 8, O_RDWR) == -1 && errno == EFAULT);
    CHECK(by_number(SYS_openat, AT_FDCWD, "/dev/tenstorrent/7", O_RDWR) == -1 && errno == ENOENT);
    // Another thread.
    pthread_t thread;
    long other = -1;
    void *end;
    CHECK(!pthread_create(&thread, NULL, opens, &other) && !pthread_join(thread, &end) && end == &other);
    uint32_t info[6] = { 20 };
    CHECK(other > 0 && by_number(SYS_ioctl, other, 0xFA00, info) == 0 && info[2] == 0xB1401E52);
    // A child by the C library, and by a call of the program's: neither has its parent's card.
    for (int how = 0; how < 3; how++) {
        long id = how == 0 ? fork() : how == 1 ? by_number(SYS_fork) : by_number(SYS_clone, SIGCHLD);
        if (id == 0) {
            int is_right = by_number(SYS_ioctl, other, 0xFA00, info) == -1 && errno == EIO;
            long own = by_number(SYS_open, "/dev/tenstorrent/0", O_RDWR);
            info[0] = 20;
            is_right &= own > 0 && by_number(SYS_ioctl, own, 0xFA00, info) == 0;
            by_number(SYS_exit_group, is_right ? 7 : 8);
        }
        int status;
        CHECK(id > 0 && by_number(SYS_wait4, id, &status, 0, NULL) == id);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    CHECK(by_number(SYS_ioctl, other, 0xFA00, info) == 0);
    // A handler that blocks everything, installed by either way, and a sleep that it ends.
    for (int how = 0; how < 2; how++) {
        struct { void (*handler)(int); unsigned long flags; void *restorer; uint64_t mask; } now;
        struct sigaction action = { .sa_handler = on_signal };
        sigfillset(&action.sa_mask);
        CHECK(sigaction(SIGALRM, &action, NULL) == 0);
        if (how == 1) {
            CHECK(by_number(SYS_rt_sigaction, SIGALRM, NULL, &now, 8) == 0);
            now.mask = ~0ull;
            CHECK(by_number(SYS_rt_sigaction, SIGALRM, &now, NULL, 8) == 0);
        }
        seen = 0;
        struct timespec time = { 10, 0 };
        alarm(1);
        CHECK(by_number(SYS_nanosleep, &time, &time) == -1 && errno == EINTR && seen == SIGALRM && time.tv_sec >= 8);
    }
    // A handler of SIGSYS of its own.
    struct sigaction action = { .sa_handler = on_signal }, was;
    CHECK(sigaction(SIGSYS, &action, NULL) == 0 && sigaction(SIGSYS, NULL, &was) == 0 && was.sa_handler == on_signal);
    CHECK(kill(getpid(), SIGSYS) == 0 && seen == SIGSYS);
    CHECK(by_number(SYS_getppid) == getppid());
    // A stack for signals.
    static char place[64 << 10];
    stack_t stack = { .ss_sp = place, .ss_size = sizeof place };
    CHECK(by_number(SYS_sigaltstack, &stack, NULL) == 0);
    numbers();
    // The files at the end are written by a call of the program's, too.
    printf("well\n");
    fflush(stdout);
    by_number(SYS_exit_group, 0);
}

// Ends well from a stack of its own.
static void on_overflow(int signal) {
    printf(signal == SIGSEGV ? "well\n" : "%d\n", signal);
    fflush(stdout);
    exit(0);
}

static int overflows(volatile int *above) {
    volatile int here[1024];
    here[0] = *above + 1;
    return overflows(here) + here[0];
}

static int in_thread(void *place) {
    *(volatile long *)place = 1;
    return 0;
}

// What this library cannot serve: it is told, and goes on.
static void alone(const char *how) {
    is_raw = 1;
    if (!strcmp(how, "thread")) {
        static char stack[1 << 16] __attribute__((aligned(64)));
        static volatile long done;
        long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
        for (int i = 0; i < 2; i++) {
            // Its function and argument lie on its stack.
            void **top = (void **)(stack + sizeof stack - 64);
            top[0] = in_thread;
            top[1] = (void *)&done;
            long id;
            done = 0;
            __asm__ volatile("syscall\n\ttest %%eax, %%eax\n\tjnz 1f\n\tmov 8(%%rsp), %%rdi\n\tcall *(%%rsp)\n\t"
                "xor %%edi, %%edi\n\tmov $60, %%eax\n\tsyscall\n\t1:"
                : "=a"(id) : "a"(SYS_clone), "D"(flags), "S"(top), "d"(0) : "rcx", "r11", "r8", "r9", "r10", "memory");
            CHECK(id > 0);
            while (!done) usleep(1000);
            usleep(10000);
        }
        numbers();
    } else {
        unsigned long pointer;
        CHECK(by_number(SYS_arch_prctl, 0x1003, &pointer) == 0 && by_number(SYS_arch_prctl, 0x1002, pointer) == 0);
        CHECK(open("/dev/tenstorrent/0", O_RDWR) == -1 && errno == ENOENT);
        CHECK(by_number(SYS_open, "/dev/tenstorrent/0", O_RDWR) == -1 && errno == ENOENT);
        printf("well\n");
        exit(0);
    }
}

// Starts a program by every function of the C library; each time it prints its last argument.
static void starts(char *program, char *const environment[]) {
    char *name = strrchr(program, '/') + 1;
    CHECK(name - 1 > program);
    char folder[4096];
    snprintf(folder, sizeof folder, "PATH=/nowhere:%.*s", (int)(name - 1 - program), program);
    putenv(folder);
    for (int way = 0; way < 13; way++) {
        char number[8];
        snprintf(number, sizeof number, "%d", way);
        char *list[] = { name, "a", "b", "c", "d", "e", "f", number, NULL };
        pid_t child = 0;
        if (way == 0) CHECK(posix_spawn(&child, program, NULL, NULL, list, environment) == 0);
        if (way == 1) CHECK(posix_spawnp(&child, name, NULL, NULL, list, environment) == 0);
        if (way > 1 && (child = fork()) == 0) {
            if (way == 2) execve(program, list, environment);
            if (way == 3) execv(program, list);
            if (way == 4) execvp(name, list);
            if (way == 5) execvpe(name, list, environment);
            if (way == 6) execl(program, name, "a", "b", "c", "d", "e", "f", number, NULL);
            if (way == 7) execlp(name, name, "a", "b", "c", "d", "e", "f", number, NULL);
            if (way == 8) execle(program, name, number, NULL, environment);
            if (way == 9) fexecve(open(program, O_RDONLY), list, environment);
            if (way == 10) execveat(AT_FDCWD, program, list, environment, 0);
            if (way == 11) syscall(SYS_execve, program, list, environment);
            if (way == 12) {
                // What cannot be started comes back.
                CHECK(execl("/nowhere/a", "a", "b", "c", "d", "e", "f", "g", NULL) == -1 && errno == ENOENT);
                CHECK(execle("/nowhere/a", "a", NULL, environment) == -1 && execlp("nowhere", "a", NULL) == -1);
                _exit(12);
            }
            _exit(99);
        }
        int ended;
        CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == way);
    }
}

void borrows(volatile uint8_t *at, char *program, char **environment); // borrows.c
void looks(volatile uint8_t *at, int only_values); // looks.c

int main(int count, char **words, char **environment) {
    if (count == 3 && !strcmp(words[1], "starts")) {
        starts(words[2], environment);
        printf("well\n");
        return 0;
    }
    struct stat status;
    CHECK(stat("/dev/tenstorrent/0", &status) == 0 && S_ISCHR(status.st_mode));
    fd = open("/dev/tenstorrent/0", O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && S_ISCHR(status.st_mode));
    const char *what = count > 1 ? words[1] : "";
    volatile uint8_t *at = window(1, 2, 2 << 20);
    at += 0x10000;
    if (!strcmp(what, "numbers")) numbers();
    if (!strcmp(what, "raw")) raw();
    if (!strcmp(what, "alone")) alone(words[2]);
    if (!strcmp(what, "forms")) forms(at);
    if (!strcmp(what, "vectors")) vectors(at);
    if (!strcmp(what, "edges")) edges(at);
    if (!strcmp(what, "strings")) strings(at);
    if (!strcmp(what, "between")) between_accesses(at);
    if (!strcmp(what, "driver")) driver(at);
    if (!strcmp(what, "borrows")) borrows(at, words[2], environment);
    if (!strcmp(what, "looks")) looks(at, count > 2);
    if (!strcmp(what, "two")) two_cards(at);
    if (!strcmp(what, "pins")) pins();
    if (!strcmp(what, "mailbox")) mailbox(at - 0x10000, count > 2 ? words[2] : "");
    if (!strcmp(what, "standstill")) standstill(at - 0x10000, words[2], words[3]);
    if (!strcmp(what, "threads")) {
        pthread_t threads[2];
        tiles[0] = at, tiles[1] = window(2, 3, 2 << 20) + 0x10000;
        for (intptr_t i = 0; i < 2; i++) pthread_create(&threads[i], NULL, hammer, (void *)i);
        for (int i = 0; i < 2; i++) { void *lost; pthread_join(threads[i], &lost); CHECK(!lost); }
    }
    if (!strcmp(what, "handler")) {
        signal(SIGSEGV, on_segv);
        if (sigsetjmp(jump, 1) == 0) { *(volatile int *)8 = 1; CHECK(!"no trap"); }
        *at = 9;
        CHECK(*at == 9);
    }
    if (!strcmp(what, "overflow")) {
        static char place[64 << 10];
        stack_t stack = { .ss_sp = place, .ss_size = sizeof place };
        struct sigaction action = { .sa_handler = on_overflow, .sa_flags = SA_ONSTACK };
        CHECK(sigaltstack(&stack, NULL) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
        volatile int one = 1;
        return overflows(&one);
    }
    if (!strcmp(what, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            uint32_t info[6] = { 20 };
            _exit(ioctl(fd, 0xFA00, info) == -1 && errno == EIO ? 7 : 8);
        }
        int ended;
        CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == 7);
        *at = 3;
        CHECK(*at == 3);
    }
    if (!strcmp(what, "descriptors")) {
        int second = dup(fd);
        close(fd);
        *at = 4;
        CHECK(*at == 4);
        uint32_t info[6] = { 20 };
        CHECK(ioctl(second, 0xFA00, info) == 0 && info[2] == 0xB1401E52);
        CHECK(munmap((void *)(at - 0x10000), 4096) == -1 && errno == EINVAL);
        CHECK(munmap((void *)(at - 0x10000), 2 << 20) == 0);
        close(second);
        CHECK(ioctl(second, 0xFA00, info) == -1);
    }
    if (!strcmp(what, "speed")) {
        char *block = malloc(1 << 20);
        memset(block, 1, 1 << 20);
        struct timespec a, b;
        clock_gettime(CLOCK_REALTIME, &a);
        for (int i = 0; i < 16; i++) memcpy((void *)at, block, 1 << 20);
        clock_gettime(CLOCK_REALTIME, &b);
        double s = b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9;
        printf("to the card %.0f MB/s\n", 16.8 / s);
        CHECK(16.8 / s > 50); // trapped, it would be some 20, and more slowly in this profile
        clock_gettime(CLOCK_REALTIME, &a);
        for (int i = 0; i < 4; i++) memcpy(block, (void *)at, 1 << 20);
        clock_gettime(CLOCK_REALTIME, &b);
        s = b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9;
        printf("from the card %.0f MB/s\n", 4.2 / s);
        CHECK(4.2 / s > 50);
        clock_gettime(CLOCK_REALTIME, &a);
        for (int i = 0; i < 100000; i++) if (*(volatile uint32_t *)at == 5) break;
        clock_gettime(CLOCK_REALTIME, &b);
        s = b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9;
        printf("a poll %.2f us\n", s * 10);
    }
    printf("well\n");
    return 0;
}
