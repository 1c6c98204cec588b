//! Programs that break a rule between cores, NoC and circular buffers.

use crate::{PAGE, Program, pause};
use tilework_abi::cb::{COUNTER_MASK, received_addr};
use tilework_rt::NocAddr;
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::niu::{MULTICAST_LINKED, Niu};
use tilework_rt::reg::{fence, publish, read, wait_reg, write};
use tilework_rt::sem::Semaphore;

/// Ends while a write is on its way.
#[inline(never)]
pub fn not_waited(p: &mut Program) {
    p.fill(p.slots);
    p.noc.write(p.slots, p.output.page(p.start), PAGE); // wrong: noc-not-waited
}

/// Leaves a multicast linked to one that never comes.
#[inline(never)]
pub fn link_open(p: &mut Program) {
    if p.ctx.my_xy != p.first {
        return;
    }
    p.fill(p.slots);
    let niu = Niu::new(p.ctx.noc);
    let through = niu.initiator(0);
    let before = niu.acks();
    through.setup_writes(MULTICAST_LINKED, 0, 0);
    let all = p.noc.rectangle(p.first, p.last);
    through.write(p.ctx.my_xy, p.slots, all, p.slots, PAGE); // wrong: noc-link-open
    while niu.acks() == before {}
}

/// Waits for one page and takes two.
#[inline(never)]
pub fn pops_too_many(p: &mut Program) {
    let mut cb = Consumer::new(p.ctx, 0);
    for _ in 0..p.pages - 1 {
        cb.wait_front(1);
        cb.pop_front(1);
    }
    cb.wait_front(1);
    cb.pop_front(2); // wrong: cb-popped-too-many
}

/// Pushes one page more than there is room for.
#[inline(never)]
pub fn pushes_too_many(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    cb.reserve_back(2);
    cb.push_back(3); // wrong: cb-pushed-too-many
}

/// Takes a credit that is not there.
#[inline(never)]
pub fn below_zero(p: &mut Program) {
    let credits = Semaphore::of(p.ctx, 0);
    let here = NocAddr::new(p.ctx.my_xy, credits.addr());
    p.noc.semaphore_inc(here, 1u32.wrapping_neg()); // wrong: sem-overflow
    p.noc.atomic_barrier();
}

/// Looks at a word, waits for the other core, and looks again.
#[inline(never)]
pub fn stale_copy(p: &mut Program) {
    let flag = p.slots;
    write(flag, 1);
    publish(flag);
    fence();
    let before = read(flag);
    wait_reg(received_addr(p.ctx.cb_stream, 0), |pages| pages & COUNTER_MASK != 0);
    let after = read(flag); // wrong: missing-fence
    write(p.slots + 64, before + after);
}

/// Changes the word later.
#[inline(never)]
pub fn tells_late(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    cb.reserve_back(1);
    pause();
    write(p.slots, 2);
    publish(p.slots);
    cb.push_back(1);
}

/// Reads from the middle of what DRAM gives at once.
#[inline(never)]
pub fn misaligned(p: &mut Program) {
    p.noc.read(p.input.page(p.start).plus(32), p.slots, 64); // wrong: noc-misaligned
    p.noc.read_barrier();
}

/// Uses an id again that a read in flight has.
#[inline(never)]
pub fn id_again(p: &mut Program) {
    let page = |i| p.input.page(p.start + i % p.pages);
    let (one, other, third) = (page(0), page(1), page(2));
    p.noc.read_tagged(1, one, p.slots, PAGE);
    p.noc.read_tagged(2, other, p.slots + PAGE, PAGE);
    p.noc.read_tagged(1, third, p.slots + 2 * PAGE, PAGE); // wrong: noc-trid-reused
    p.noc.wait_tag(1);
    p.noc.wait_tag(2);
}

/// Two packets in one request.
#[inline(never)]
pub fn too_long(p: &mut Program) {
    for page in 0..128 {
        p.fill(p.slots + page * PAGE);
    }
    let niu = Niu::new(p.ctx.noc);
    let through = niu.initiator(0);
    let before = niu.acks();
    through.setup_writes(tilework_rt::niu::WRITE, 0, 0);
    through.write(p.ctx.my_xy, p.slots, p.ctx.my_xy, p.slots + 0x8000, 0x8000); // wrong: noc-too-long
    while niu.acks().wrapping_sub(before) < 2 {}
}

/// A function of which an instruction is changed for a while.
#[inline(never)]
fn patched(at: u32) {
    // wrong: missing-fence-i
    write(at, 1); // wrong: missing-fence-i
}

/// `addi x0, x0, 0` (RISC-V unprivileged specification).
const NOP: u32 = 0x13;

/// Changes an instruction and calls it.
#[inline(never)]
pub fn new_code(p: &mut Program) {
    patched(p.slots);
    let code = patched as *const () as usize as u32;
    let word = read(code);
    for word in [NOP, word] {
        write(code, word);
        publish(code);
    }
    patched(p.slots + 4);
}
