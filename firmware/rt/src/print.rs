//! Prints of kernels: text and values that a host shows in the order of simulated time.
//!
//! [`print!`](crate::print!) appends a record to the core's ring in L1 (`tilework_abi::print`): the
//! number of its text, the wall clock and the values. The text itself is not in the chip. A print
//! never waits; when nobody reads, old records are overwritten, and the host tells how many.
//! [`assert!`](crate::assert!) appends such a record and stops the core. A kernel that prints
//! nothing has none of this in its image.

use tilework_abi::L1_ALIGN;
use tilework_abi::l1::WORKER;
use tilework_abi::print::{
    Binding, ELEMENT_FRONT_WORDS, EXPONENTS, HEADER_BYTES, Head, MAX_ELEMENTS, RECORDS, RING_WORDS, Slice, Type,
    WRITTEN, exponent_position, position,
};

pub use tilework_abi::print::Element;

use crate::reg::{fence, publish, read, read8, read16, stop, wall_clock, write};

/// Appends a text and up to eight values to the prints of this core: `print!("tile {}", i)`.
///
/// Values are integers up to 64 bits, `bool`, `char`, `f32`, [`Bf16`](crate::print::Bf16),
/// pointers, and references to these. Places in the text: `{}`, `{:?}`, `{:x}`, `{:X}`, `{:b}`,
/// `{:o}`, `{:e}`, each with `#`, `0`, a width and a precision (`{:#010x}`, `{:8.3}`); `{{` and
/// `}}` are braces. The loader refuses a text whose places are not as many as its values.
#[macro_export]
macro_rules! print {
    ($text:literal $(, $value:expr)* $(,)?) => {
        $crate::print::record(
            $crate::__print_text!("print", $crate::__print_count!($($value),*), $text, ""),
            &[$($crate::print::Argument::of($value)),*],
        )
    };
}

/// Stops the core when the condition does not hold: `assert!(pages <= 8, "{} pages", pages)`.
///
/// The run ends with a report that has the condition, the text with its values, the kernel and the
/// source line. Text and values are as those of [`print!`](crate::print!), and may be left out.
#[macro_export]
macro_rules! assert {
    ($condition:expr $(,)?) => {
        $crate::assert!($condition, "")
    };
    ($condition:expr, $text:literal $(, $value:expr)* $(,)?) => {
        if !$condition {
            $crate::print::fail(
                $crate::__print_text!(
                    "assert",
                    $crate::__print_count!($($value),*),
                    $text,
                    stringify!($condition)
                ),
                &[$($crate::print::Argument::of($value)),*],
            )
        }
    };
}

/// Prints elements of a tile of 32 by 32 in L1: `print_tile!("in0", address, Element::Bf16, 0..2,
/// 0..16)` shows two rows of sixteen columns. A record has 32 elements; what was asked for beyond
/// them is left out, and the host says so.
#[macro_export]
macro_rules! print_tile {
    ($text:literal, $address:expr, $element:expr, $rows:expr, $columns:expr $(,)?) => {
        $crate::print::tile($crate::__print_text!("tile", "0", $text, ""), $address, $element, &$rows, &$columns)
    };
}

/// Prints the first elements of a row-major page or any array in L1: `print_array!("page",
/// address, Element::U32, 8)`. A record has 32 elements; what was asked for beyond them is left
/// out, and the host says so. Types whose elements share an exponent exist in tiles only.
#[macro_export]
macro_rules! print_array {
    ($text:literal, $address:expr, $element:expr, $count:expr $(,)?) => {
        $crate::print::array($crate::__print_text!("array", "0", $text, ""), $address, $element, $count)
    };
}

/// The number of a text: its address in the section that is not loaded.
#[doc(hidden)]
#[macro_export]
macro_rules! __print_text {
    ($kind:literal, $count:expr, $text:expr, $condition:expr) => {{
        const FIELDS: &str =
            concat!($kind, "\0", $count, "\0", file!(), "\0", line!(), "\0", $text, "\0", $condition, "\0");
        #[unsafe(link_section = ".tw_print")]
        static TEXT: [u8; FIELDS.len()] = match FIELDS.as_bytes().first_chunk() {
            Some(bytes) => *bytes,
            None => panic!("a text has its own length"),
        };
        (&raw const TEXT).addr() as u32
    }};
}

/// How many values, as text.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! __print_count {
    () => { "0" };
    ($a:expr) => { "1" };
    ($a:expr, $b:expr) => { "2" };
    ($a:expr, $b:expr, $c:expr) => { "3" };
    ($a:expr, $b:expr, $c:expr, $d:expr) => { "4" };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => { "5" };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => { "6" };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr, $g:expr) => { "7" };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr, $g:expr, $h:expr) => { "8" };
    ($($more:expr),*) => { compile_error!("a print has at most 8 values") };
}

/// A value that can be printed.
pub trait Value {
    /// Its type in a record.
    const TYPE: Type;
    /// Its words; the second is for types of 64 bits.
    fn words(&self) -> [u32; 2];
}

macro_rules! values {
    ($($ty:ty, $name:ident, |$value:ident| $words:expr;)*) => {$(
        impl Value for $ty {
            const TYPE: Type = Type::$name;
            #[inline(always)]
            fn words(&self) -> [u32; 2] {
                let $value = *self;
                $words
            }
        }
    )*};
}

values! {
    u8, U8, |v| [v.into(), 0];
    u16, U16, |v| [v.into(), 0];
    u32, U32, |v| [v, 0];
    usize, U32, |v| [v as u32, 0];
    u64, U64, |v| [v as u32, (v >> 32) as u32];
    i8, I8, |v| [v as u32, 0];
    i16, I16, |v| [v as u32, 0];
    i32, I32, |v| [v as u32, 0];
    isize, I32, |v| [v as u32, 0];
    i64, I64, |v| [v as u32, (v >> 32) as u32];
    bool, Bool, |v| [v.into(), 0];
    char, Char, |v| [v.into(), 0];
    f32, F32, |v| [v.to_bits(), 0];
    Bf16, Bf16, |v| [v.0.into(), 0];
}

/// The bits of a bfloat16, to be printed as its value.
#[derive(Clone, Copy, Debug)]
pub struct Bf16(pub u16);

impl<T: Value + ?Sized> Value for &T {
    const TYPE: Type = T::TYPE;
    #[inline(always)]
    fn words(&self) -> [u32; 2] {
        (**self).words()
    }
}

impl<T> Value for *const T {
    const TYPE: Type = Type::U32;
    #[inline(always)]
    fn words(&self) -> [u32; 2] {
        [self.addr() as u32, 0]
    }
}

impl<T> Value for *mut T {
    const TYPE: Type = Type::U32;
    #[inline(always)]
    fn words(&self) -> [u32; 2] {
        [self.addr() as u32, 0]
    }
}

/// A value with its type.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    kind: Type,
    words: [u32; 2],
}

impl Argument {
    /// That of a value.
    #[inline(always)]
    pub fn of<V: Value>(value: V) -> Self {
        Self { kind: V::TYPE, words: value.words() }
    }
}

/// What the loader stores: the core's ring, and the kernel's number. As linked, the ring of BRISC
/// under our own firmware.
// The name is the loader's.
#[allow(non_upper_case_globals)]
#[unsafe(no_mangle)]
#[unsafe(link_section = ".rodata.tilework_prints")]
static __tilework_prints: Binding = Binding { ring: WORKER.prints.get(), kernel: 0 };

/// A record that is being written.
struct Record {
    /// The ring.
    ring: u32,
    /// The count of words as it was, and of those that this record has so far.
    start: u32,
    words: u32,
}

impl Record {
    /// Begins a record: kernel and time.
    #[inline(always)]
    fn begin() -> Self {
        // SAFETY: a plain static of words. Volatile, because the loader overwrites what is linked.
        let binding = unsafe { (&raw const __tilework_prints).read_volatile() };
        // The host clears the counts before the first kernel that prints.
        fence();
        let now = wall_clock();
        let mut record = Self { ring: binding.ring, start: read(binding.ring + WRITTEN), words: 0 };
        record.put(binding.kernel);
        record.put(now as u32);
        record.put((now >> 32) as u32);
        record
    }

    #[inline(always)]
    fn put(&mut self, word: u32) {
        let at = self.start.wrapping_add(self.words) % RING_WORDS;
        write(self.ring + HEADER_BYTES + 4 * at, word);
        self.words += 1;
    }

    /// Ends the record: the counts make it visible.
    #[inline(always)]
    fn end(mut self, text: u32, types: u32) -> u32 {
        let values = self.words - tilework_abi::print::FRONT_WORDS;
        self.put(types);
        self.put(Head { text: text as u16, values: values as u8 }.word());
        write(self.ring + RECORDS, read(self.ring + RECORDS).wrapping_add(1));
        write(self.ring + WRITTEN, self.start.wrapping_add(self.words));
        self.ring
    }
}

/// Appends a record of text number `text`; returns the address of the ring.
#[inline(never)]
pub fn record(text: u32, values: &[Argument]) {
    append(text, values);
}

#[inline(always)]
fn append(text: u32, values: &[Argument]) -> u32 {
    let mut record = Record::begin();
    let mut types = 0;
    for (i, value) in values.iter().enumerate() {
        record.put(value.words[0]);
        if value.kind.words() == 2 {
            record.put(value.words[1]);
        }
        types |= value.kind.code() << (4 * i);
    }
    record.end(text, types)
}

/// Appends a record and stops the core.
#[cold]
#[inline(never)]
pub fn fail(text: u32, values: &[Argument]) -> ! {
    publish(append(text, values) + WRITTEN);
    stop()
}

/// Appends elements of the tile at `address`; for [`print_tile!`](crate::print_tile!).
#[inline(never)]
pub fn tile(text: u32, address: u32, element: Element, rows: &core::ops::Range<u32>, columns: &core::ops::Range<u32>) {
    let count = |range: &core::ops::Range<u32>| range.end.saturating_sub(range.start) as u8;
    let slice =
        Slice { row: rows.start as u8, rows: count(rows), column: columns.start as u8, columns: count(columns) };
    let mut record = Record::begin();
    record.put(address);
    record.put(element.code());
    record.put(slice.word());
    if slice.is_in_a_tile() {
        let (mut row, mut column) = (rows.start, columns.start);
        for _ in 0..slice.elements().min(MAX_ELEMENTS) {
            record.put(of_tile(address, element, row, column));
            column += 1;
            if column == columns.end {
                (row, column) = (row + 1, columns.start);
            }
        }
    }
    record.end(text, 0);
}

/// Appends elements from `address` on; for [`print_array!`](crate::print_array!).
#[inline(never)]
pub fn array(text: u32, address: u32, element: Element, count: u32) {
    let mut record = Record::begin();
    record.put(address);
    record.put(element.code());
    record.put(count);
    if !element.is_block() {
        for i in 0..count.min(MAX_ELEMENTS) {
            record.put(bits(address, element, i));
        }
    }
    record.end(text, 0);
}

/// An element of a tile as a record has it.
fn of_tile(address: u32, element: Element, row: u32, column: u32) -> u32 {
    let at = position(row, column);
    if element.is_block() {
        let exponent = read8(address + exponent_position(row, column));
        u32::from(exponent) << 8 | bits(address + EXPONENTS, element, at)
    } else {
        bits(address, element, at)
    }
}

/// Element `i` of those at `address`, without its exponent.
fn bits(address: u32, element: Element, i: u32) -> u32 {
    match element.bits() {
        32 => read(address + 4 * i),
        16 => u32::from(read16(address + 2 * i)),
        bits => {
            let bit = i * bits;
            u32::from(read8(address + bit / 8)) >> (bit % 8) & ((1 << bits) - 1)
        }
    }
}

const _: () = {
    core::assert!(L1_ALIGN as usize >= size_of::<Binding>());
    core::assert!(ELEMENT_FRONT_WORDS == 3);
};
