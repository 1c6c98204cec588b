//! Programs whose cores tell each other something: a token, a multicast, a gathering, and data that
//! others fetch.

use crate::{PAGE, Program};
use tilework_abi::l1;
use tilework_rt::NocAddr;
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::reg::{publish, read, write};

/// Rounds of each.
const ROUNDS: u32 = 3;

/// As `ring`, with two words: the token and its double. The semaphore goes by the other NoC.
#[inline(never)]
pub fn token(p: &mut Program) {
    if !p.brisc {
        return;
    }
    let arrived = p.semaphore(0);
    let mut other = p.other_noc();
    let here = p.slot;
    let mut total = 0;
    for lap in 0..ROUNDS {
        let arrivals = if p.index == 0 { lap } else { lap + 1 };
        if arrivals != 0 {
            if p.has(27) {
                total = read(here);
            }
            match p.bug {
                22 => {}
                23 => drop(arrived.wait_min(arrivals - 1)),
                _ => drop(arrived.wait_min(arrivals)),
            }
            if p.keeps(27) {
                total = read(here) + read(here + 16);
            }
        }
        total += p.index + 1;
        if p.has(24) {
            other.semaphore_inc(NocAddr::new(p.next, arrived.addr()), 1);
        }
        // One word after the other goes through the same scratch word.
        let scratch = l1::SCRATCH_WORD + 16 * p.ctx.processor;
        for (to, value) in [(here, total), (here + 16, 2 * total)] {
            write(scratch, value);
            if p.keeps(26) {
                publish(scratch);
            }
            p.noc.write(scratch, NocAddr::new(p.next, to), 4);
            if p.keeps(25) {
                p.noc.writes_flushed();
            }
        }
        match p.bug {
            21 => {}
            28 => p.noc.writes_flushed(),
            _ => p.noc.write_barrier(),
        }
        if p.keeps(24) {
            other.semaphore_inc(NocAddr::new(p.next, arrived.addr()), 1);
        }
    }
    if p.index == 0 {
        arrived.wait_min(ROUNDS);
    }
    p.noc.full_barrier();
    other.full_barrier();
}

/// As `share`: the first tile reads pages and multicasts them, the others write them to DRAM.
#[inline(never)]
pub fn share(p: &mut Program) {
    if p.brisc {
        return;
    }
    let (room, sent) = (p.semaphore(0), p.semaphore(1));
    if p.index != 0 {
        for round in 0..ROUNDS {
            if p.keeps(37) {
                sent.wait_min(round + 1);
            }
            if p.has(39) {
                p.noc.semaphore_inc(NocAddr::new(p.first, room.addr()), 1);
            }
            p.noc.write(p.slot, p.out_page(round), PAGE);
            if p.keeps(38) {
                p.noc.writes_flushed();
            }
            if p.keeps(39) {
                p.noc.semaphore_inc(NocAddr::new(p.first, room.addr()), 1);
            }
        }
        p.noc.full_barrier();
        return;
    }
    let receivers = p.count - 1;
    let rect = p.noc.rectangle(tilework_rt::rta(p.ctx, 10), tilework_rt::rta(p.ctx, 11));
    for round in 0..ROUNDS {
        if p.keeps(36) {
            p.noc.writes_flushed();
        }
        p.noc.read(p.in_page(round), p.slot, PAGE);
        if p.keeps(31) {
            p.noc.read_barrier();
        }
        if p.keeps(32) {
            room.wait_min(receivers * round);
        }
        write(sent.addr(), round + 1);
        if p.keeps(34) {
            publish(sent.addr());
        }
        if p.has(35) {
            p.noc.multicast(sent.addr(), rect, sent.addr(), 4, sent.addr(), receivers);
        }
        p.noc.multicast(p.slot, rect, p.slot, PAGE, sent.addr(), receivers);
        if p.has(33) {
            write(sent.addr(), round + 2);
        }
    }
    p.noc.full_barrier();
}

/// BRISC stores pages of a circular buffer, NCRISC loads them.
#[inline(never)]
pub fn local(p: &mut Program) {
    if p.brisc {
        let mut cb = Producer::new(p.ctx, 0);
        for turn in 0..5 {
            if p.keeps(43) {
                cb.reserve_back(1);
            }
            let at = cb.write_ptr();
            if p.has(44) {
                cb.push_back(1);
            }
            p.fill_and_publish(at, turn, 41);
            if p.keeps(44) {
                cb.push_back(1);
            }
        }
        return;
    }
    let mut cb = Consumer::new(p.ctx, 0);
    let mut sum = 0;
    for _ in 0..5 {
        if p.keeps(42) {
            cb.wait_front(1);
        }
        let at = cb.read_ptr();
        if p.has(45) {
            cb.pop_front(1);
        }
        for word in 0..16 {
            sum += read(at + 4 * word);
        }
        if p.keeps(45) {
            cb.pop_front(1);
        }
    }
    p.noc.write_word(p.out_page(0), sum);
    p.noc.full_barrier();
}

/// Each tile writes a part into the first one's L1, which adds them up.
#[inline(never)]
pub fn gather(p: &mut Program) {
    if !p.brisc {
        return;
    }
    let arrived = p.semaphore(0);
    let mut other = p.other_noc();
    let (part, place) = (p.slot, if p.has(54) { 0 } else { p.index });
    let all = p.slot + PAGE;
    p.fill_and_publish(part, p.index * 100, 56);
    if p.has(55) {
        other.semaphore_inc(NocAddr::new(p.first, arrived.addr()), 1);
    }
    p.noc.write(part, NocAddr::new(p.first, all + 64 * place), 64);
    match p.bug {
        53 => {}
        57 => p.noc.writes_flushed(),
        _ => p.noc.write_barrier(),
    }
    if p.keeps(55) {
        other.semaphore_inc(NocAddr::new(p.first, arrived.addr()), 1);
    }
    if p.index == 0 {
        match p.bug {
            51 => {}
            52 => drop(arrived.wait_min(p.count - 1)),
            _ => drop(arrived.wait_min(p.count)),
        }
        let mut sum = 0;
        for word in 0..16 * p.count {
            sum += read(all + 4 * word);
        }
        p.noc.write_word(p.out_page(0), sum);
    }
    p.noc.full_barrier();
    other.full_barrier();
}

/// The first tile stores something that the others fetch, again and again.
#[inline(never)]
pub fn pull(p: &mut Program) {
    if !p.brisc {
        return;
    }
    let (ready, fetched) = (p.semaphore(0), p.semaphore(1));
    if p.index == 0 {
        for round in 0..ROUNDS {
            if p.keeps(64) {
                fetched.wait_min(round);
            }
            if p.has(66) {
                p.noc.semaphore_inc(NocAddr::new(p.next, ready.addr()), 1);
            }
            p.fill_and_publish(p.slot, round * 10, 65);
            if p.keeps(66) {
                p.noc.semaphore_inc(NocAddr::new(p.next, ready.addr()), 1);
            }
        }
        p.noc.full_barrier();
        return;
    }
    if p.index != 1 {
        return;
    }
    let mut sum = 0;
    for round in 0..ROUNDS {
        if p.keeps(61) {
            ready.wait_min(round + 1);
        }
        p.noc.read(NocAddr::new(p.first, p.slot), p.slot, 64);
        if p.has(63) {
            p.noc.semaphore_inc(NocAddr::new(p.first, fetched.addr()), 1);
        }
        if p.keeps(62) {
            p.noc.read_barrier();
        }
        for word in 0..16 {
            sum += read(p.slot + 4 * word);
        }
        if p.keeps(63) {
            p.noc.semaphore_inc(NocAddr::new(p.first, fetched.addr()), 1);
        }
    }
    p.noc.write_word(p.out_page(0), sum);
    p.noc.full_barrier();
}
