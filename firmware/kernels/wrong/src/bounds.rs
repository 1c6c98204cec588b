//! Programs that touch what is not theirs, or what nobody has filled.

use crate::{PAGE, Program, pause};
use tilework_abi::tensix::LOCAL_BASE;
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, write};
use tilework_rt::rta;

/// An argument that the program does not give.
#[inline(never)]
pub fn argument(p: &Program) {
    let more = rta(p.ctx, 9); // wrong: args-past-end
    write(p.slots, more);
}

/// A sum without a first value.
#[inline(never)]
pub fn unwritten_l1(p: &Program) {
    let sum = p.slots;
    for i in 0..4 {
        let before = read(sum); // wrong: l1-unwritten-read
        write(sum, before + i);
    }
}

/// The pages of the output, before there are any.
#[inline(never)]
pub fn unwritten_dram(p: &mut Program) {
    p.noc.read(p.output.page(p.start), p.slots, PAGE); // wrong: dram-unwritten-read
    p.noc.read_barrier();
}

/// Half a page further than the L1 buffer goes.
#[inline(never)]
pub fn past_l1(p: &mut Program) {
    let last = p.slots + (64 << 10) - PAGE / 2;
    p.noc.read(p.input.page(p.start), last, PAGE); // wrong: l1-past-buffer
    p.noc.read_barrier();
}

/// One page too many, on the last tile behind the output's end.
#[inline(never)]
pub fn past_dram(p: &mut Program) {
    for i in 0..=p.pages {
        p.noc.read(p.input.page(p.start), p.slots, PAGE);
        p.noc.read_barrier();
        p.noc.write(p.slots, p.output.page(p.start + i), PAGE); // wrong: dram-past-buffer
        p.noc.write_barrier();
    }
}

/// Every tile writes the output's first page.
#[inline(never)]
pub fn one_page(p: &mut Program) {
    p.fill(p.slots);
    p.noc.write(p.slots, p.output.page(0), PAGE); // wrong: page-written-twice
    p.noc.write_barrier();
}

/// An address that was free once.
#[inline(never)]
pub fn unowned_l1(_: &Program) {
    write(0xA_0000, 1); // wrong: l1-unowned
}

/// An address that belonged to a buffer once.
#[inline(never)]
pub fn unowned_dram(p: &mut Program) {
    let freed = Interleaved::new(p.ctx, 0x1000_0000, PAGE);
    p.noc.read(freed.page(0), p.slots, PAGE); // wrong: dram-unowned
    p.noc.read_barrier();
}

/// Reserves a page once, and fills one after the other.
#[inline(never)]
pub fn overrun(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    cb.reserve_back(1);
    for i in 0..p.pages {
        p.noc.read(p.input.page(p.start + i), cb.write_ptr(), PAGE); // wrong: cb-page-not-reserved
        p.noc.read_barrier();
        cb.push_back(1);
    }
}

/// Takes its time with each page.
#[inline(never)]
pub fn slow_consumer(p: &mut Program) {
    let mut cb = Consumer::new(p.ctx, 0);
    for i in 0..p.pages {
        cb.wait_front(1);
        pause();
        p.noc.write(cb.read_ptr(), p.output.page(p.start + i), PAGE);
        p.noc.write_barrier();
        cb.pop_front(1);
    }
}

/// Pages of the input, as they should be moved.
#[inline(never)]
pub fn producer(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    for i in 0..p.pages {
        cb.reserve_back(1);
        p.noc.read(p.input.page(p.start + i), cb.write_ptr(), PAGE);
        p.noc.read_barrier();
        cb.push_back(1);
    }
}

/// Pages to the output, as they should be moved.
#[inline(never)]
pub fn consumer(p: &mut Program) {
    let mut cb = Consumer::new(p.ctx, 0);
    for i in 0..p.pages {
        cb.wait_front(1);
        p.noc.write(cb.read_ptr(), p.output.page(p.start + i), PAGE);
        p.noc.write_barrier();
        cb.pop_front(1);
    }
}

/// Reserves each page after it was filled.
#[inline(never)]
pub fn first_round(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    for i in 0..p.pages {
        p.noc.read(p.input.page(p.start + i), cb.write_ptr(), PAGE); // wrong: cb-page-not-reserved
        p.noc.read_barrier();
        cb.reserve_back(1);
        cb.push_back(1);
    }
}

/// Takes each page before it waits for it.
#[inline(never)]
pub fn hasty_consumer(p: &mut Program) {
    let mut cb = Consumer::new(p.ctx, 0);
    for i in 0..p.pages {
        p.noc.write(cb.read_ptr(), p.output.page(p.start + i), PAGE); // wrong: cb-page-not-received
        p.noc.write_barrier();
        cb.wait_front(1);
        cb.pop_front(1);
    }
}

/// Words of the table: with it the data of a kernel are about as many as fit.
const WORDS: usize = 900;

/// What the stack grows into.
static mut TABLE: [u32; WORDS] = [0; WORDS];

/// Words of an array on the stack.
const FRAME: usize = 64;

/// Each step has an array of its own on the stack.
#[inline(never)]
pub fn stack(p: &Program) {
    for word in 0..WORDS {
        // SAFETY: a kernel has one thread, and nothing else names the table.
        unsafe { (&raw mut TABLE[word]).write_volatile(1) };
    }
    let mut array = [p.pages; FRAME];
    write(p.slots, descend(&mut array, 9));
    // SAFETY: as above.
    let last = unsafe { (&raw const TABLE[WORDS - 1]).read_volatile() };
    write(p.slots + 4, last);
    publish(p.slots + 4);
}

/// Copies the array, changes the copy and goes on with it.
#[inline(never)]
fn descend(above: &mut [u32; FRAME], left: u32) -> u32 {
    // wrong: stack-overflow
    let mut array = *above;
    array[left as usize] += 1;
    match left {
        0 => core::hint::black_box(&array).iter().sum(),
        _ => descend(core::hint::black_box(&mut array), left - 1) + array[0],
    }
}

/// A pointer that is an argument of zero.
#[inline(never)]
pub fn null(p: &Program) {
    write(p.zero, 1); // wrong: l1-null
}

/// The last go message, which nobody uses here.
#[inline(never)]
pub fn firmware(p: &Program) {
    write(p.ctx.go + 4 * 8, 1); // wrong: l1-firmware
}

/// An instruction of this kernel.
#[inline(never)]
pub fn text(_: &Program) {
    let code = text as *const () as usize as u32;
    let word = read(code);
    write(code, word); // wrong: l1-text
}

/// Local RAM between the data and the stack.
#[inline(never)]
pub fn unwritten_local() {
    write(LOCAL_BASE + 0x1900, read(LOCAL_BASE + 0x1904)); // wrong: local-unwritten-read
}
