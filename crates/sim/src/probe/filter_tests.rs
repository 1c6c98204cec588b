//! What a filter leaves out, and what it makes up for.

use super::*;
use tilework_abi::tensix::LOCAL_BASE;

const TILE: NocXy = NocXy::new(1, 2);
const BRISC: Processor = Processor::Brisc;
const NCRISC: Processor = Processor::Ncrisc;

fn boundaries(ranges: &[Range<u32>]) -> Boundaries {
    ranges.into()
}

fn known(core: Processor, since: Cycle, page: u32, granules: u64) -> Known {
    Known { tile: TILE, core, since, of: KnownOf::L1, page, granules }
}

/// What is told before an access that is recorded.
fn told(filter: &mut Filter, core: Processor, at: Cycle, addr: u32) -> Vec<What> {
    let mut told = Vec::new();
    let access = Access { addr, stores: false, fills: true };
    filter.records(core, at, &access, |what| told.push(what));
    told
}

#[test]
fn what_is_known_is_left_out_until_a_boundary() {
    let mut filter = Filter::new();
    filter.set_boundaries(boundaries(std::slice::from_ref(&(0x100..0x110))), 5);
    assert!(!filter.skips_store(BRISC, 0x2000));
    filter.know(&known(BRISC, 5, 2, 0b11), |_| false);
    assert!(!filter.skips_store(BRISC, 0x2000), "from before the boundary");
    filter.know(&known(BRISC, 6, 2, 0b11), |addr| addr == 0x2040);
    assert!(filter.skips_store(BRISC, 0x203c) && filter.skips_load(BRISC, 0x2000, false));
    assert!(!filter.skips_store(BRISC, 0x2040), "somebody wants to see stores there");
    assert!(!filter.skips_store(BRISC, 0x2080) && !filter.skips_store(NCRISC, 0x2000));
    filter.know(&known(BRISC, 6, 3, 1), |_| false);
    assert!(filter.skips_load(BRISC, 0x3000, false) && !filter.skips_load(NCRISC, 0x3000, false), "another core");
    filter.know(&Known { of: KnownOf::Local, ..known(NCRISC, 6, 16, 1) }, |_| false);
    assert!(filter.local.skips(NCRISC, LOCAL_BASE + 0x1000) && !filter.local.skips(BRISC, LOCAL_BASE + 0x1000));
    assert!(!filter.local.skips(NCRISC, LOCAL_BASE + 0x1004));
    assert!(told(&mut filter, NCRISC, 9, 0x104).is_empty());
    assert!(filter.skips_store(BRISC, 0x2000), "only BRISC begins and ends programs");
    // The line of 0x2000 had its slot before.
    let holds = What::Holds { cores: 1 << BRISC.index(), addr: 0x3000 };
    assert_eq!(told(&mut filter, BRISC, 9, 0x104), [holds]);
    assert!(!filter.skips_store(BRISC, 0x2000) && !filter.local.skips(NCRISC, LOCAL_BASE + 0x1000));
    filter.know(&known(BRISC, 9, 2, 0b11), |_| false);
    assert!(!filter.skips_store(BRISC, 0x2000));
}

#[test]
fn another_core_ends_what_is_known() {
    let mut filter = Filter::new();
    assert!(!filter.skips_load(NCRISC, 0x2080, false));
    filter.know(&known(BRISC, 1, 2, 0b111), |_| false);
    assert!(!filter.skips_store(BRISC, 0x2080), "NCRISC may have a copy");
    assert!(filter.skips_load(BRISC, 0x2004, false) && filter.skips_load(BRISC, 0x2008, true));
    assert!(filter.skips_store(BRISC, 0x2040));
    assert!(!filter.skips_store(NCRISC, 0x2000));
    assert_eq!(told(&mut filter, NCRISC, 7, 0x2000), [What::Holds { cores: 1 << BRISC.index(), addr: 0x2000 }]);
    assert!(!filter.skips_load(BRISC, 0x2008, true), "the copy is stale now");
    filter.know(&known(BRISC, 8, 2, 1), |_| false);
    assert!(!filter.skips_store(BRISC, 0x2000), "not again");
}

/// The lines of all cores' caches with the bytes that others have written since: as they are,
/// or as an observer concludes from what is recorded.
#[derive(Clone, PartialEq, Debug)]
struct Caches([[Option<(u32, u16)>; LINES]; 5]);

impl Caches {
    fn new() -> Self {
        Self([[None; LINES]; 5])
    }
    fn fill(&mut self, core: usize, addr: u32) {
        self.0[core][slot(addr)] = Some((addr / LINE, 0));
    }
    fn drop_line(&mut self, core: usize, addr: u32) {
        let line = &mut self.0[core][slot(addr)];
        *line = line.filter(|(number, _)| *number != addr / LINE);
    }
    fn flush(&mut self, core: usize) {
        self.0[core] = [None; LINES];
    }
    fn holds(&self, core: usize, addr: u32) -> bool {
        self.0[core][slot(addr)].is_some_and(|(number, _)| number == addr / LINE)
    }
    fn is_stale(&self, core: usize, addr: u32) -> bool {
        let line = self.0[core][slot(addr)].filter(|(number, _)| *number == addr / LINE);
        line.is_some_and(|(_, stale)| stale >> (addr % LINE) & 0xF != 0)
    }
    fn written(&mut self, by: Option<usize>, addr: u32) {
        for (_, lines) in self.0.iter_mut().enumerate().filter(|(core, _)| Some(*core) != by) {
            if let Some((number, stale)) = &mut lines[slot(addr)]
                && *number == addr / LINE
            {
                *stale |= 0xF << (addr % LINE);
            }
        }
    }
}

#[test]
fn copies_are_found_stale_whatever_is_left_out() {
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut next = |below: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as u32 % below
    };
    let (mut left_out, mut polled, mut stale) = (0, 0, 0);
    // The granules of the cores are behind the words that firmware polls.
    const FROM: u32 = 0x2000;
    for _ in 0..40 {
        let (mut filter, mut real, mut seen) = (Filter::new(), Caches::new(), Caches::new());
        filter.set_boundaries(boundaries(std::slice::from_ref(&(0..16))), 0);
        for at in 1..4000u64 {
            let core = Processor::ALL[next(8).min(4) as usize % 3];
            let c = core.index();
            // The granule of the boundary, and one for each core, which others seldom access.
            let granule = if next(100) == 0 { next(3) } else { c as u32 };
            let addr = if next(200) == 0 { 0 } else { FROM + 64 * granule + 4 * next(16) };
            let pc = 4 * next(2);
            let access = |stores, fills| Access { addr, stores, fills };
            let mut holds = Vec::new();
            match next(10) {
                0 => {
                    let span = if next(2) == 0 { addr..addr + 4 } else { addr / 64 * 64..addr / 64 * 64 + 64 };
                    filter.written(span.clone(), |what| holds.push(what));
                    conclude(&mut seen, &holds);
                    for word in span.step_by(4) {
                        real.written(None, word);
                        seen.written(None, word);
                    }
                }
                1 if next(3) == 0 => {
                    // No fence is told.
                    filter.fence(core);
                    real.flush(c);
                }
                1 => {
                    let since = at.saturating_sub(next(100).into());
                    let of = match next(6) {
                        0 => Known { granules: 1 << next(3), of: KnownOf::Loads, ..known(core, since, FROM / 4096, 0) },
                        1 | 2 => Known { of: KnownOf::By(pc), ..known(core, since, addr / 256, 1 << (addr / 4 % 64)) },
                        3 => Known { of: KnownOf::Arriving, ..known(core, since, FROM / 4096, 0b111) },
                        _ => known(core, since, FROM / 4096, 0b111),
                    };
                    filter.know(&of, |_| false);
                }
                2..5 => {
                    if filter.skips_store(core, addr) {
                        left_out += 1;
                    } else {
                        filter.records(core, at, &access(true, false), |what| holds.push(what));
                        conclude(&mut seen, &holds);
                        seen.drop_line(c, addr);
                        seen.written(Some(c), addr);
                    }
                    real.drop_line(c, addr);
                    real.written(Some(c), addr);
                }
                _ => {
                    let cached = real.holds(c, addr);
                    let is_stale = cached && real.is_stale(c, addr);
                    stale += u32::from(is_stale);
                    let loaded = Loaded { addr, bytes: 4, value: 0, cached };
                    let is_left_out = filter.skips_load(core, addr, cached);
                    if is_left_out || filter.polls(core, pc, &loaded) {
                        (left_out, polled) = (left_out + 1, polled + u32::from(!is_left_out));
                        assert!(!is_stale, "{at}: a stale copy is left out");
                    } else {
                        filter.records(core, at, &access(false, !cached), |what| holds.push(what));
                        conclude(&mut seen, &holds);
                        assert_eq!(cached && seen.is_stale(c, addr), is_stale, "{at}");
                        if !cached {
                            seen.fill(c, addr);
                        }
                    }
                    if !cached {
                        real.fill(c, addr);
                    }
                }
            }
        }
    }
    assert!(left_out > 1000 && polled > 1000 && stale > 300, "{left_out} left out, {polled} of words, {stale} stale");
}

fn conclude(seen: &mut Caches, holds: &[What]) {
    for what in holds {
        if let What::Holds { cores, addr } = what {
            members(*cores).for_each(|core| seen.fill(core, *addr));
        }
    }
}

#[test]
fn where_stores_are_to_be_seen_nothing_is_left_out_any_more() {
    let mut filter = Filter::new();
    filter.know(&known(BRISC, 1, 2, 0b11), |_| false);
    filter.know(&Known { of: KnownOf::Arriving, ..known(NCRISC, 1, 2, 0b100) }, |_| false);
    filter.know(&Known { of: KnownOf::Loads, ..known(BRISC, 1, 2, 0b1000) }, |_| false);
    assert!(filter.skips_load(BRISC, 0x2004, false) && filter.skips_load(BRISC, 0x2058, false));
    let mut told = Vec::new();
    filter.watch(0x2000..0x2010, |what| told.push(what));
    filter.watch(0x2080..0x2100, |what| told.push(what));
    assert_eq!(told, [What::Holds { cores: 1 << BRISC.index(), addr: 0x2000 }]);
    assert!(!filter.skips_store(BRISC, 0x203c) && !filter.skips_load(BRISC, 0x2008, true));
    assert!(filter.skips_store(BRISC, 0x2040) && filter.skips_load(BRISC, 0x2054, true), "beside it");
    filter.written(0x2080..0x20c0, |what| panic!("{what:?}"));
    assert!(!filter.skips_store(NCRISC, 0x2080), "what arrives there");
    assert!(filter.skips_load(NCRISC, 0x20c4, false), "loads");
}

#[test]
fn loads_that_are_right_for_good_stay_so_behind_a_boundary() {
    let mut filter = Filter::new();
    filter.set_boundaries(boundaries(std::slice::from_ref(&(0x100..0x110))), 1);
    filter.know(&Known { of: KnownOf::Loads, ..known(BRISC, 1, 2, 0b11) }, |_| false);
    filter.know(&known(BRISC, 2, 2, 0b1), |_| false);
    assert!(filter.skips_store(BRISC, 0x2000) && !filter.skips_store(BRISC, 0x2040), "stores of one only");
    assert!(!filter.skips_load(NCRISC, 0x2000, false) && filter.skips_load(NCRISC, 0x2040, false));
    assert!(filter.skips_load(NCRISC, 0x204c, true), "from the copy");
    assert_eq!(told(&mut filter, BRISC, 3, 0x104), []);
    assert!(!filter.skips_store(BRISC, 0x2000) && filter.skips_load(NCRISC, 0x2000, false));
    // A copy that somebody has written to is not.
    filter.written(0x2000..0x2004, |what| assert_eq!(what, What::Holds { cores: 1 << NCRISC.index(), addr: 0x2000 }));
    assert!(!filter.skips_load(NCRISC, 0x2008, true));
    assert!(filter.skips_load(NCRISC, 0x2048, false));
    filter.set_boundaries(boundaries(&[]), 4);
    assert!(!filter.skips_load(NCRISC, 0x2048, true) && !filter.skips_load(NCRISC, 0x2040, false));
}

#[test]
fn what_arrives_is_known_from_then_on() {
    let mut filter = Filter::new();
    let written = |filter: &mut Filter, span| filter.written(span, |what| panic!("{what:?}"));
    filter.know(&Known { of: KnownOf::Arriving, ..known(BRISC, 1, 2, 0b1111) }, |_| false);
    assert!(!filter.skips_store(BRISC, 0x2000) && !filter.skips_load(BRISC, 0x2000, false));
    written(&mut filter, 0x2001..0x20bf);
    assert!(!filter.skips_store(BRISC, 0x2000) && filter.skips_store(BRISC, 0x2040), "all of one of them");
    assert!(!filter.skips_store(BRISC, 0x2080), "not all of the last one");
    assert!(!filter.skips_store(NCRISC, 0x2040), "of another core");
    filter.know(&known(BRISC, 2, 2, 0b1), |_| false);
    assert!(filter.skips_store(BRISC, 0x2000), "the observer has seen it written");
    assert!(told(&mut filter, NCRISC, 3, 0x20c0).is_empty());
    written(&mut filter, 0x20c0..0x2100);
    assert!(!filter.skips_store(BRISC, 0x20c0), "another core uses it");
    assert!(told(&mut filter, BRISC, 4, 0x104).is_empty());
    filter.set_boundaries(boundaries(std::slice::from_ref(&(0x100..0x110))), 4);
    filter.know(&Known { of: KnownOf::Arriving, ..known(BRISC, 5, 3, 1) }, |_| false);
    assert!(told(&mut filter, BRISC, 6, 0x104).is_empty());
    written(&mut filter, 0x3000..0x3040);
    assert!(!filter.skips_store(BRISC, 0x3000), "the program has ended");
    written(&mut filter, L1_SIZE - 64..L1_SIZE);
}

#[test]
fn words_are_known_for_good_or_for_an_instruction() {
    let mut filter = Filter::new();
    filter.set_boundaries(boundaries(std::slice::from_ref(&(0x100..0x110))), 1);
    let polls = |filter: &mut Filter, core, pc, addr| {
        filter.polls(core, pc, &Loaded { addr, bytes: 4, value: 7, cached: false })
    };
    let page = 0x8200 / 256;
    filter.know(&Known { of: KnownOf::Loads, ..known(BRISC, 0, 0x9000 / 4096, 0b10) }, |_| false);
    filter.know(&Known { of: KnownOf::By(0x400), ..known(BRISC, 2, page, 0b1000) }, |_| false);
    filter.know(&Known { of: KnownOf::By(0x404), ..known(NCRISC, 1, page, 0b10) }, |_| false);
    let all = |filter: &mut Filter| {
        [
            polls(filter, NCRISC, 0, 0x907c),
            polls(filter, NCRISC, 0, 0x903c),
            polls(filter, NCRISC, 0x404, 0x8204),
            polls(filter, BRISC, 0x400, 0x820c),
            polls(filter, BRISC, 0x400, 0x8210),
            polls(filter, BRISC, 0x420, 0x820c),
            polls(filter, NCRISC, 0x400, 0x820c),
        ]
    };
    assert_eq!(all(&mut filter), [true, false, false, true, false, false, false]);
    assert!(!filter.skips_store(BRISC, 0x9040) && filter.skips_load(BRISC, 0x9044, false), "stores are seen");
    told(&mut filter, BRISC, 3, 0x104);
    assert_eq!(all(&mut filter), [true, false, false, false, false, false, false], "another program");
    filter.know(&Known { of: KnownOf::By(0x400), ..known(BRISC, 3, page, 0b1000) }, |_| false);
    assert!(!polls(&mut filter, BRISC, 0x400, 0x820c), "from before");
    filter.set_boundaries(boundaries(&[]), 4);
    assert!(!polls(&mut filter, BRISC, 0, 0x9040), "where programs begin and end has changed");
}
