/* Prints and assertions of kernels in C: TW_PRINT("page {} of {}", i, n) appends a record to the
   core's ring in L1; the host shows its text and values in the order of simulated time. It never
   waits, and its text is not in the chip. A kernel that does not use it has nothing of it.

   Places in a text: {} {:?} {:x} {:X} {:b} {:o} {:e}, each with [#][0][width][.precision], as in
   {:#010x} or {:8.3}; {{ and }} are braces. At most eight values: integers, _Bool, char, float and
   pointers. A double must be a constant (there is no library of software floats). The loader
   refuses a text whose places are not as many as its values. docs/kernels.md of Tilework has more. */
#ifndef TILEWORK_PRINT_H
#define TILEWORK_PRINT_H

#include "tilework.h"

/* Prints a text with values. */
#define TW_PRINT(text, ...)                                                                                  \
    ((void)tw_print_record(TW_PRINT_TEXT("print", TW_PRINT_NUMBER(TW_PRINT_COUNT(__VA_ARGS__)), text, ""),   \
                           TW_PRINT_COUNT(__VA_ARGS__), TW_PRINT_VALUES(__VA_ARGS__)))

/* Ends the run with a report, unless the condition holds. A text and values may follow. */
#define TW_ASSERT(condition, ...) TW_ASSERT_TEXT(condition, #condition, "" __VA_ARGS__)
#define TW_ASSERT_TEXT(condition, shown, text, ...)                                                          \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            tw_print_fail(TW_PRINT_TEXT("assert", TW_PRINT_NUMBER(TW_PRINT_COUNT(__VA_ARGS__)), text, shown), \
                          TW_PRINT_COUNT(__VA_ARGS__), TW_PRINT_VALUES(__VA_ARGS__));                        \
    } while (0)

/* Prints rows and columns of a tile of 32 by 32 at an address of L1, at most 32 elements:
   TW_PRINT_TILE("in", address, TW_BF16, 0, 2, 0, 16) shows two rows of sixteen columns. */
#define TW_PRINT_TILE(text, address, element, row, rows, column, columns) \
    tw_print_tile(TW_PRINT_TEXT("tile", "0", text, ""), address, element, row, rows, column, columns)

/* Prints the first elements at an address of L1, at most 32; not of the types with shared exponents. */
#define TW_PRINT_ARRAY(text, address, element, count) \
    tw_print_array(TW_PRINT_TEXT("array", "0", text, ""), address, element, count)

/* ---- how it works ---- */

/* The loader writes these words into the image (runtime.c defines them). */
struct tw_print_binding {
    uint32_t ring, kernel;
};
extern const volatile struct tw_print_binding __tilework_prints;

struct tw_value {
    uint32_t type, low, high;
};

#define TW_PRINT_NUMBER_OF(x) #x
#define TW_PRINT_NUMBER(x) TW_PRINT_NUMBER_OF(x)

/* The number of a text: its address in a section that is not loaded. */
#define TW_PRINT_TEXT(kind, count, text, condition)                                                          \
    __extension__({                                                                                          \
        static const char tw_print_text[] __attribute__((section(".tw_print"))) = kind                       \
            "\0" count "\0" __FILE__ "\0" TW_PRINT_NUMBER(__LINE__) "\0" text "\0" condition;                \
        (uint32_t)(uintptr_t)tw_print_text;                                                                  \
    })

#define TW_PRINT_COUNT(...) TW_PRINT_COUNTED(0, ##__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TW_PRINT_COUNTED(none, a, b, c, d, e, f, g, h, count, ...) count

/* The values as an array; an empty one follows, since arrays of none are not C. */
#define TW_PRINT_VALUES(...) ((const struct tw_value[]){TW_PRINT_EACH(TW_PRINT_COUNT(__VA_ARGS__), ##__VA_ARGS__){0, 0, 0}})
#define TW_PRINT_EACH(count, ...) TW_PRINT_EACH_OF(count, ##__VA_ARGS__)
#define TW_PRINT_EACH_OF(count, ...) TW_PRINT_EACH_##count(__VA_ARGS__)
#define TW_PRINT_EACH_0()
#define TW_PRINT_EACH_1(v) TW_PRINT_VALUE(v),
#define TW_PRINT_EACH_2(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_1(__VA_ARGS__)
#define TW_PRINT_EACH_3(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_2(__VA_ARGS__)
#define TW_PRINT_EACH_4(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_3(__VA_ARGS__)
#define TW_PRINT_EACH_5(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_4(__VA_ARGS__)
#define TW_PRINT_EACH_6(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_5(__VA_ARGS__)
#define TW_PRINT_EACH_7(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_6(__VA_ARGS__)
#define TW_PRINT_EACH_8(v, ...) TW_PRINT_VALUE(v), TW_PRINT_EACH_7(__VA_ARGS__)

#define TW_PRINT_VALUE(v)                   \
    _Generic((v),                           \
        _Bool: tw_value_bool,               \
        char: tw_value_char,                \
        unsigned char: tw_value_u8,         \
        unsigned short: tw_value_u16,       \
        unsigned: tw_value_u32,             \
        unsigned long: tw_value_u32,        \
        unsigned long long: tw_value_u64,   \
        signed char: tw_value_i8,           \
        short: tw_value_i16,                \
        int: tw_value_i32,                  \
        long: tw_value_i32,                 \
        long long: tw_value_i64,            \
        float: tw_value_f32,                \
        double: tw_value_f32,               \
        default: tw_value_pointer)(v)

#define TW_VALUE_OF(name, c_type, code)                            \
    TW_INLINE struct tw_value tw_value_##name(c_type v)            \
    {                                                              \
        struct tw_value value = {code, (uint32_t)v, 0};            \
        return value;                                              \
    }
TW_VALUE_OF(bool, _Bool, TW_TYPE_BOOL)
TW_VALUE_OF(char, char, TW_TYPE_CHAR)
TW_VALUE_OF(u8, unsigned char, TW_TYPE_U8)
TW_VALUE_OF(u16, unsigned short, TW_TYPE_U16)
TW_VALUE_OF(u32, uint32_t, TW_TYPE_U32)
TW_VALUE_OF(i8, signed char, TW_TYPE_I8)
TW_VALUE_OF(i16, short, TW_TYPE_I16)
TW_VALUE_OF(i32, int32_t, TW_TYPE_I32)
TW_VALUE_OF(pointer, const volatile void *, TW_TYPE_U32)
#undef TW_VALUE_OF

TW_INLINE struct tw_value tw_value_u64(uint64_t v)
{
    struct tw_value value = {TW_TYPE_U64, (uint32_t)v, (uint32_t)(v >> 32)};
    return value;
}
TW_INLINE struct tw_value tw_value_i64(int64_t v)
{
    struct tw_value value = {TW_TYPE_I64, (uint32_t)v, (uint32_t)((uint64_t)v >> 32)};
    return value;
}
TW_INLINE struct tw_value tw_value_f32(float v)
{
    union {
        float value;
        uint32_t bits;
    } both = {v};
    struct tw_value value = {TW_TYPE_F32, both.bits, 0};
    return value;
}

/* A record that is being written. */
typedef struct {
    uint32_t ring, start, words;
} tw_print;

TW_INLINE void tw_print_put(tw_print *p, uint32_t word)
{
    uint32_t at = (p->start + p->words++) % TW_PRINT_RING_WORDS;
    tw_store(p->ring + TW_PRINT_HEADER_BYTES + 4 * at, word);
}

/* Begins a record: kernel and time. The low half of the clock comes first; it latches the high one. */
TW_INLINE tw_print tw_print_begin(void)
{
    tw_fence(); /* the host clears the counts before the first kernel that prints */
    uint32_t low = tw_load(RISCV_DEBUG_REG_WALL_CLOCK_0), high = tw_load(RISCV_DEBUG_REG_WALL_CLOCK_1_AT);
    uint32_t ring = __tilework_prints.ring;
    tw_print p = {ring, tw_load(ring + TW_PRINT_WRITTEN), 0};
    tw_print_put(&p, __tilework_prints.kernel);
    tw_print_put(&p, low);
    tw_print_put(&p, high);
    return p;
}

/* Ends the record: the counts make it visible. Returns the address of the one stored last. */
TW_INLINE uint32_t tw_print_end(tw_print *p, uint32_t text, uint32_t types)
{
    uint32_t values = p->words - TW_PRINT_FRONT_WORDS;
    tw_print_put(p, types);
    tw_print_put(p, TW_PRINT_MARK << 24 | values << 16 | (text & 0xFFFF));
    tw_store(p->ring + TW_PRINT_RECORDS, tw_load(p->ring + TW_PRINT_RECORDS) + 1);
    tw_store(p->ring + TW_PRINT_WRITTEN, p->start + p->words);
    return p->ring + TW_PRINT_WRITTEN;
}

static __attribute__((noinline, unused)) uint32_t tw_print_record(uint32_t text, uint32_t count,
                                                                  const struct tw_value *values)
{
    tw_print p = tw_print_begin();
    uint32_t types = 0;
    for (uint32_t i = 0; i < count; i++) {
        tw_print_put(&p, values[i].low);
        if (values[i].type == TW_TYPE_U64 || values[i].type == TW_TYPE_I64) tw_print_put(&p, values[i].high);
        types |= values[i].type << 4 * i;
    }
    return tw_print_end(&p, text, types);
}

static __attribute__((noinline, noreturn, cold, unused)) void tw_print_fail(uint32_t text, uint32_t count,
                                                                            const struct tw_value *values)
{
    tw_publish(tw_print_record(text, count, values));
    for (;;) __asm__ volatile("ebreak");
}

/* Element `i` of those at `address`, without its exponent. TW_BF16 and the like have the code in the
   lowest byte, bits in the next, and 1 above when elements share exponents. */
TW_INLINE uint32_t tw_print_bits(uint32_t address, uint32_t element, uint32_t i)
{
    uint32_t bits = element >> 8 & 0xFF;
    if (bits == 32) return tw_load(address + 4 * i);
    if (bits == 16) return tw_load16(address + 2 * i);
    return tw_load8(address + i * bits / 8) >> i * bits % 8 & ((1u << bits) - 1);
}

static __attribute__((noinline, unused)) void tw_print_tile(uint32_t text, uint32_t address, uint32_t element,
                                                            uint32_t row, uint32_t rows, uint32_t column,
                                                            uint32_t columns)
{
    tw_print p = tw_print_begin();
    tw_print_put(&p, address);
    tw_print_put(&p, element & 0xFF);
    tw_print_put(&p, (row & 0xFF) | (rows & 0xFF) << 8 | (column & 0xFF) << 16 | (columns & 0xFF) << 24);
    uint32_t left = row + rows <= 32 && column + columns <= 32 ? rows * columns : 0;
    if (left > TW_PRINT_MAX_ELEMENTS) left = TW_PRINT_MAX_ELEMENTS;
    for (uint32_t r = row, c = column; left; left--) {
        /* Four faces of 16 by 16; a row of a face shares an exponent. */
        uint32_t line = (r / 16 * 2 + c / 16) * 16 + r % 16, at = line * 16 + c % 16;
        tw_print_put(&p, element >> 16 ? tw_load8(address + line) << 8 | tw_print_bits(address + 64, element, at)
                                       : tw_print_bits(address, element, at));
        if (++c == column + columns) c = column, r++;
    }
    tw_print_end(&p, text, 0);
}

static __attribute__((noinline, unused)) void tw_print_array(uint32_t text, uint32_t address, uint32_t element,
                                                             uint32_t count)
{
    tw_print p = tw_print_begin();
    tw_print_put(&p, address);
    tw_print_put(&p, element & 0xFF);
    tw_print_put(&p, count);
    for (uint32_t i = 0; i < count && i < TW_PRINT_MAX_ELEMENTS && !(element >> 16); i++)
        tw_print_put(&p, tw_print_bits(address, element, i));
    tw_print_end(&p, text, 0);
}

#endif
