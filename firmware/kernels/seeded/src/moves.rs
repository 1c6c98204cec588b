//! Programs that move data: pages through a circular buffer, pages changed in place, writes with
//! transaction ids, and an exchange through DRAM.

use crate::{PAGE, Program};
use tilework_rt::NocAddr;
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::niu::{Niu, WRITE_POSTED};
use tilework_rt::reg::{publish, read, write};

/// As `reader` and `writer`: NCRISC fills a circular buffer of two pages, BRISC empties it.
#[inline(never)]
pub fn pipe(p: &mut Program) {
    if p.brisc { empty(p) } else { fill(p) }
}

fn fill(p: &mut Program) {
    let mut cb = Producer::new(p.ctx, 0);
    for page in 0..6 {
        if p.keeps(1) {
            cb.reserve_back(1);
        }
        let at = cb.write_ptr();
        if p.has(3) {
            cb.push_back(1);
        }
        p.noc.read(p.in_page(page), at, PAGE);
        if p.keeps(2) {
            p.noc.read_barrier();
        }
        if p.keeps(3) {
            cb.push_back(1);
        }
    }
    p.noc.read_barrier();
}

fn empty(p: &mut Program) {
    let mut cb = Consumer::new(p.ctx, 0);
    for page in 0..6 {
        if p.keeps(4) {
            cb.wait_front(1);
        }
        let at = cb.read_ptr();
        if p.has(7) {
            cb.pop_front(1);
        }
        p.noc.write(at, p.out_page(page), PAGE);
        if p.has(6) {
            cb.pop_front(1);
        }
        if p.keeps(5) {
            p.noc.writes_flushed();
        }
        if p.keeps(6) && p.keeps(7) {
            cb.pop_front(1);
        }
    }
    if p.keeps(8) {
        p.noc.write_barrier();
    }
}

/// As `increment`: pages are changed in a ring of three slots.
#[inline(never)]
pub fn increment(p: &mut Program) {
    const SLOTS: u32 = 3;
    if !p.brisc {
        return;
    }
    let (count, mut requested) = (7, 0);
    for done in 0..count {
        if p.keeps(11) && p.keeps(16) {
            p.noc.writes_flushed();
        }
        let ahead = if p.has(16) { SLOTS } else { SLOTS - 1 };
        while requested < count && requested < done + ahead {
            let slot = requested % SLOTS;
            p.noc.read_tagged(slot + 1, p.in_page(requested), p.slot + slot * PAGE, PAGE);
            requested += 1;
        }
        if p.has(16) {
            p.noc.writes_flushed();
        }
        let slot = done % SLOTS;
        let at = p.slot + slot * PAGE;
        match p.bug {
            12 => {}
            14 => p.noc.wait_tag((done + SLOTS - 1) % SLOTS + 1),
            17 => p.noc.writes_flushed(),
            _ => p.noc.wait_tag(slot + 1),
        }
        for word in (at..at + PAGE).step_by(4) {
            write(word, read(word) + 1);
        }
        if p.keeps(13) {
            publish(at + PAGE - 4);
        }
        p.noc.write(at, p.out_page(done), PAGE);
    }
    p.noc.read_barrier();
    if p.keeps(15) {
        p.noc.write_barrier();
    }
}

/// Two slots leave by writes that are not acknowledged, each with a transaction id of its own.
#[inline(never)]
pub fn posted(p: &mut Program) {
    const IDS: [u32; 2] = [3, 4];
    if !p.brisc {
        return;
    }
    let niu = Niu::new(p.ctx.noc);
    let (writes, my_xy) = (niu.initiator(0), niu.my_xy());
    for turn in 0..4 {
        let slot = turn % 2;
        let id = match p.bug {
            84 => 3,
            _ => IDS[slot as usize],
        };
        writes.wait_ready();
        match p.bug {
            81 => {}
            82 => niu.wait_left(5),
            83 => niu.wait_answered(id),
            84 => niu.wait_left(4),
            _ => niu.wait_left(id),
        }
        let at = p.slot + slot * 64;
        p.fill_and_publish(at, turn * 100, 85);
        let NocAddr { xy, mid, lo } = p.out_page(0).plus(64 * turn);
        writes.setup_writes(WRITE_POSTED, id, mid);
        writes.write(my_xy, at, xy, lo, 64);
    }
    writes.wait_ready();
    niu.wait_left(3);
    niu.wait_left(4);
    // A read on the same channel comes after the writes, and is answered.
    p.noc.read(p.out_page(0), p.slot + PAGE, PAGE);
    p.noc.read_barrier();
}

/// Each tile writes a page of DRAM, which the next one reads.
#[inline(never)]
pub fn exchange(p: &mut Program) {
    if !p.brisc {
        return;
    }
    let ready = p.semaphore(0);
    let page = if p.has(73) { 0 } else { p.index };
    p.fill_and_publish(p.slot, p.index * 1000, 76);
    p.noc.write(p.slot, p.output.page(page), 64);
    match p.bug {
        71 => {}
        74 => p.noc.writes_flushed(),
        _ => p.noc.write_barrier(),
    }
    p.noc.semaphore_inc(NocAddr::new(p.next, ready.addr()), 1);
    let before = (p.index + p.count - 1) % p.count;
    if p.has(75) {
        p.noc.read(p.output.page(before), p.slot + PAGE, 64);
    }
    if p.keeps(72) {
        ready.wait_min(1);
    }
    if p.keeps(75) {
        p.noc.read(p.output.page(before), p.slot + PAGE, 64);
    }
    if p.keeps(77) {
        p.noc.read_barrier();
    }
    p.noc.write(p.slot + PAGE, p.output.page(8 + p.index), 64);
    p.noc.full_barrier();
}

/// The ends of a compute program: NCRISC fills circular buffer 1, BRISC empties 2. Of a tile only
/// the first bytes are moved.
#[inline(never)]
pub fn tiles(p: &mut Program) {
    const TILES: u32 = 6;
    if p.brisc {
        let mut output = Consumer::new(p.ctx, 2);
        for tile in 0..TILES {
            output.wait_front(1);
            p.noc.write(output.read_ptr(), p.out_page(tile), PAGE);
            p.noc.writes_flushed();
            output.pop_front(1);
        }
        return p.noc.write_barrier();
    }
    let mut input = Producer::new(p.ctx, 1);
    for tile in 0..TILES {
        input.reserve_back(1);
        p.noc.read(p.in_page(tile), input.write_ptr(), PAGE);
        p.noc.read_barrier();
        input.push_back(1);
    }
}

/// Both cores use the same NoC, one after the other: a page of a circular buffer is the turn.
#[inline(never)]
pub fn turns(p: &mut Program) {
    if p.brisc {
        let mut turn = Producer::new(p.ctx, 0);
        p.noc.read(p.in_page(0), p.slot, PAGE);
        p.noc.read_barrier();
        p.noc.write(p.slot, p.out_page(0), PAGE);
        p.noc.write_barrier();
        turn.push_back(1);
        return;
    }
    let turn = Consumer::new(p.ctx, 0);
    if p.keeps(141) {
        turn.wait_front(1);
    }
    let mut noc = p.other_noc();
    noc.read(p.in_page(1), p.slot + PAGE, PAGE);
    noc.read_barrier();
    noc.write(p.slot + PAGE, p.out_page(1), PAGE);
    noc.write_barrier();
    if p.has(141) {
        turn.wait_front(1);
    }
}
