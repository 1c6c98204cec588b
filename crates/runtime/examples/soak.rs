//! A long run over two hardware queues: random programs, traces, transfers, events and pauses,
//! every read compared with an array of the host: `cargo xtask soak --seed N --minutes M`.
//!
//! The work follows from the seed alone, so that a failure comes again at the same round.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tilework_abi::board::Board;
use tilework_abi::convert::{low32, usize_of};
use tilework_abi::cq::layout::{QueueId, host};
use tilework_abi::tensix::Processor;
use tilework_driver::HostLink;
use tilework_rng::SplitMix64;
use tilework_runtime::{
    ArgSet, Blocking, Buffer, BufferRead, Cores, DType, Device, DeviceConfig, Event, KernelImage, Program, Role,
    RuntimeError, Trace, UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

type Outcome<T> = Result<T, Box<dyn Error>>;

const USAGE: &str = "usage: soak --seed N (--minutes M | --rounds R)";
/// Pairs of arrays, each with programs and a trace of its own; the first half of them is queue 0's.
const PAIRS: usize = 4;
/// Elements of an array, and bytes of its pages.
const ELEMENTS: u32 = 8 * 64;
const PAGE: u32 = 256;
/// Cores of a program: a page for each.
const CORES: usize = 8;
/// Programs of a trace: so many times the pair of them.
const TIMES: u32 = 10;
/// Simulated cycles of the longest pause: a minute of the chip.
const PAUSE: u64 = 81_000_000_000;
/// How much memory may vary once each queue has been through all of its issue region, whose pages
/// the host gets one by one until then.
const GROWTH: u64 = 16 << 20;
/// Between two lines of progress.
const LINE: Duration = Duration::from_secs(10);

fn main() -> Outcome<()> {
    let (seed, end) = arguments()?;
    let mut soak = Soak::new(seed)?;
    let start = Instant::now();
    let (mut line, mut warm) = (start, None);
    while !end.is_reached(soak.rounds, start) {
        let round = soak.rounds;
        soak.round().map_err(|error| {
            format!("round {round}: {error}\nagain: cargo xtask soak --seed {seed} --rounds {}", round + 1)
        })?;
        if warm.is_none() && soak.wraps().all(|wraps| wraps > 0) {
            warm = Some((soak.rounds, memory()));
        }
        if line.elapsed() >= LINE {
            line = Instant::now();
            soak.say(start);
        }
    }
    soak.device.finish()?;
    soak.collect()?;
    soak.say(start);
    match (warm, memory()) {
        (Some((rounds, Some(warm))), Some(now)) => {
            println!("memory: {} MiB after {rounds} rounds, {} MiB at the end", warm >> 20, now >> 20);
            if now > warm + GROWTH { Err("memory has grown".into()) } else { Ok(()) }
        }
        (None, Some(_)) => {
            println!("memory was not compared: the issue regions have not been filled yet");
            Ok(())
        }
        _ => {
            println!("memory was not compared: this system does not tell it");
            Ok(())
        }
    }
}

/// When a run ends.
enum End {
    Minutes(f64),
    Rounds(u64),
}

impl End {
    fn is_reached(&self, rounds: u64, start: Instant) -> bool {
        match *self {
            Self::Minutes(minutes) => start.elapsed().as_secs_f64() >= 60.0 * minutes,
            Self::Rounds(end) => rounds >= end,
        }
    }
}

fn arguments() -> Outcome<(u64, End)> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (mut seed, mut end) = (None, None);
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(USAGE.into()) };
        match name.as_str() {
            "--seed" => seed = Some(value.parse()?),
            "--minutes" => end = Some(End::Minutes(value.parse()?)),
            "--rounds" => end = Some(End::Rounds(value.parse()?)),
            _ => return Err(USAGE.into()),
        }
    }
    seed.zip(end).ok_or_else(|| USAGE.into())
}

/// Bytes of memory that the process has, where the system tells it.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib << 10)
}

/// Two arrays: one program adds a value on the way to the second, another on the way back.
struct Pair {
    queue: QueueId,
    arrays: [Buffer; 2],
    shadow: [Vec<u32>; 2],
    values: [u32; 2],
    programs: [Program; 2],
    trace: Option<Trace>,
}

/// A read that is on its way.
struct Reading {
    name: String,
    round: u64,
    read: BufferRead,
    expected: Vec<u32>,
}

struct Soak {
    random: SplitMix64,
    device: Device<Chip>,
    pairs: Vec<Pair>,
    reads: Vec<Reading>,
    events: [Option<Event>; 2],
    rounds: u64,
    programs: u64,
    replayed: u64,
    bytes: u64,
    recorded: u64,
    refused: u64,
    captures: u64,
}

impl Soak {
    fn new(seed: u64) -> Outcome<Self> {
        let config = DeviceConfig { queues: 2, timestamps: false, ..DeviceConfig::new(Board::P100) };
        let mut device = Device::open(Chip::new(ChipConfig::new(Board::P100))?, config)?;
        let mut random = SplitMix64::new(seed);
        let elf = prebuilt::kernel_elf("increment").ok_or("no such kernel")?;
        let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc)?);
        let slots = device.alloc_l1("slots", 3 * PAGE)?.address.get();
        let pairs = (0..PAIRS).map(|number| pair(&mut device, &mut random, &kernel, slots, number));
        let pairs = pairs.collect::<Outcome<Vec<_>>>()?;
        Ok(Self {
            random,
            device,
            pairs,
            reads: Vec::new(),
            events: [None, None],
            rounds: 0,
            programs: 0,
            replayed: 0,
            bytes: 0,
            recorded: 0,
            refused: 0,
            captures: 0,
        })
    }

    /// How often each queue has been through its issue region.
    fn wraps(&self) -> impl Iterator<Item = u64> {
        self.device.queues().map(|queue| queue.record_bytes() / u64::from(host::ISSUE.size()))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.random.bits() % n
    }

    fn say(&self, start: Instant) {
        let seconds = self.device.chip().cycles() as f64 / 1.35e9;
        println!(
            "{:6.0} s: {} rounds, {} programs and {} in traces, {} captures, {} events, {:.1} MB, {} launches ordered; \
             issue regions filled {:?} times; {:.2} simulated hours, {} MiB",
            start.elapsed().as_secs_f64(),
            self.rounds,
            self.programs,
            self.replayed,
            self.captures,
            self.recorded,
            self.bytes as f64 / 1e6,
            self.refused,
            self.wraps().collect::<Vec<_>>(),
            seconds / 3600.0,
            memory().unwrap_or_default() >> 20,
        );
    }

    /// One call on a queue of choice.
    fn round(&mut self) -> Outcome<()> {
        self.rounds += 1;
        let which = usize_of(self.below(PAIRS as u64));
        match self.below(64) {
            0..=5 => self.write(which)?,
            6..=13 => self.read(which)?,
            14..=29 => self.run(which)?,
            30..=53 => self.replay(which)?,
            54..=57 => self.record(which)?,
            58..=59 => self.wait(which)?,
            60 => self.recapture(which)?,
            61 => self.hand_over(which)?,
            _ => {
                let pause = self.below(PAUSE);
                self.device.idle(pause)?;
            }
        }
        if self.reads.len() >= 64 { self.collect() } else { Ok(()) }
    }

    fn write(&mut self, which: usize) -> Outcome<()> {
        let side = usize_of(self.below(2));
        let start = low32(self.random.bits());
        let step = low32(self.random.bits());
        let pair = &mut self.pairs[which];
        pair.shadow[side] = (0..ELEMENTS).map(|i| start.wrapping_add(step.wrapping_mul(i))).collect();
        let data: Vec<u8> = pair.shadow[side].iter().flat_map(|word| word.to_le_bytes()).collect();
        self.bytes += data.len() as u64;
        let mut queue = self.device.on_queue(pair.queue)?;
        Ok(queue.enqueue_write_buffer(&pair.arrays[side], &data, Blocking::No)?)
    }

    fn read(&mut self, which: usize) -> Outcome<()> {
        let side = usize_of(self.below(2));
        let blocking = if self.below(4) == 0 { Blocking::Yes } else { Blocking::No };
        let pair = &self.pairs[which];
        let read = self.device.on_queue(pair.queue)?.enqueue_read_buffer(&pair.arrays[side], blocking)?;
        self.bytes += pair.arrays[side].bytes() as u64;
        let (name, expected) = (pair.arrays[side].name.clone(), pair.shadow[side].clone());
        self.reads.push(Reading { name, round: self.rounds - 1, read, expected });
        Ok(())
    }

    /// Compares the reads that are under way.
    fn collect(&mut self) -> Outcome<()> {
        for Reading { name, round, read, expected } in std::mem::take(&mut self.reads) {
            let data = self.device.wait_for_read(read)?;
            let found = data.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
            if let Some((at, (found, expected))) = found.zip(expected).enumerate().find(|(_, (a, b))| a != b) {
                return Err(format!("{name}, read in round {round}: element {at} is {found}, not {expected}").into());
            }
        }
        Ok(())
    }

    /// Does `f`, behind the other queue if it is refused for the want of order.
    fn ordered(
        &mut self,
        queue: QueueId,
        f: impl Fn(&mut Device<Chip>, usize, &[Pair]) -> Result<(), RuntimeError>,
        which: usize,
    ) -> Outcome<()> {
        match f(&mut self.device, which, &self.pairs) {
            Err(RuntimeError::Unordered { .. }) => {
                self.refused += 1;
                self.behind(queue)?;
                Ok(f(&mut self.device, which, &self.pairs)?)
            }
            result => Ok(result?),
        }
    }

    /// Puts what comes next on `queue` behind all of the other.
    fn behind(&mut self, queue: QueueId) -> Outcome<()> {
        let way = self.below(8);
        let mut other = self.device.on_queue(QueueId::ALL[1 - queue.index()])?;
        if way == 0 {
            return Ok(other.finish()?);
        }
        let event = other.record_event()?;
        self.recorded += 1;
        Ok(self.device.on_queue(queue)?.wait_for_event(&event)?)
    }

    fn run(&mut self, which: usize) -> Outcome<()> {
        let side = usize_of(self.below(2));
        let queue = self.pairs[which].queue;
        let launch = |device: &mut Device<Chip>, which: usize, pairs: &[Pair]| {
            device.on_queue(queue)?.enqueue_program(&pairs[which].programs[side], Blocking::No)
        };
        self.ordered(queue, launch, which)?;
        self.programs += 1;
        self.pairs[which].went(side);
        Ok(())
    }

    fn replay(&mut self, which: usize) -> Outcome<()> {
        if self.pairs[which].trace.is_none() {
            return self.recapture(which);
        }
        let queue = self.pairs[which].queue;
        let replay = |device: &mut Device<Chip>, which: usize, pairs: &[Pair]| match &pairs[which].trace {
            Some(trace) => device.on_queue(queue)?.replay_trace(trace, Blocking::No),
            None => Ok(()),
        };
        self.ordered(queue, replay, which)?;
        for _ in 0..TIMES {
            self.pairs[which].went(0);
            self.pairs[which].went(1);
        }
        self.replayed += u64::from(2 * TIMES);
        Ok(())
    }

    /// Releases the trace of a pair, if it has one, and captures it again.
    fn recapture(&mut self, which: usize) -> Outcome<()> {
        if let Some(trace) = self.pairs[which].trace.take() {
            self.device.release_trace(trace)?;
        }
        // Both run before, so that they are compiled and on the workers.
        let queue = self.pairs[which].queue;
        for side in [0, 1] {
            let launch = |device: &mut Device<Chip>, which: usize, pairs: &[Pair]| {
                device.on_queue(queue)?.enqueue_program(&pairs[which].programs[side], Blocking::No)
            };
            self.ordered(queue, launch, which)?;
            self.programs += 1;
            self.pairs[which].went(side);
        }
        let pair = &mut self.pairs[which];
        let mut on = self.device.on_queue(queue)?;
        let capture = on.begin_trace_capture()?;
        for _ in 0..TIMES {
            on.enqueue_program(&pair.programs[0], Blocking::No)?;
            on.enqueue_program(&pair.programs[1], Blocking::No)?;
        }
        pair.trace = Some(self.device.end_trace_capture(capture)?);
        self.captures += 1;
        Ok(())
    }

    fn record(&mut self, which: usize) -> Outcome<()> {
        let queue = self.pairs[which].queue;
        self.events[queue.index()] = Some(self.device.on_queue(queue)?.record_event()?);
        self.recorded += 1;
        Ok(())
    }

    fn wait(&mut self, which: usize) -> Outcome<()> {
        let queue = self.pairs[which].queue;
        match (self.below(4), self.events[queue.index()].take()) {
            (0, _) => self.device.finish()?,
            (1, _) => self.device.on_queue(queue)?.finish()?,
            (_, Some(event)) => {
                self.device.event_synchronize(&event)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Gives a pair to the other queue, behind everything on its own.
    fn hand_over(&mut self, which: usize) -> Outcome<()> {
        if let Some(trace) = self.pairs[which].trace.take() {
            self.device.release_trace(trace)?;
        }
        let queue = QueueId::ALL[1 - self.pairs[which].queue.index()];
        self.behind(queue)?;
        self.pairs[which].queue = queue;
        Ok(())
    }
}

impl Pair {
    /// The program that reads array `side` has run.
    fn went(&mut self, side: usize) {
        let value = self.values[side];
        self.shadow[1 - side] = self.shadow[side].iter().map(|x| x.wrapping_add(value)).collect();
    }
}

/// Pair `number`, its arrays written.
fn pair(
    device: &mut Device<Chip>,
    random: &mut SplitMix64,
    kernel: &Arc<KernelImage>,
    slots: u32,
    number: usize,
) -> Outcome<Pair> {
    let queue = QueueId::ALL[number * QueueId::ALL.len() / PAIRS];
    let mut array = |side| device.alloc_dram(&format!("{side}{number}"), &[ELEMENTS as usize], DType::U32, PAGE);
    let arrays = [array("x")?, array("y")?];
    let values = [low32(random.bits()), low32(random.bits())];
    // Two pairs have cores of their own; those of the others are the same.
    let first = if number.is_multiple_of(2) { 0 } else { number * CORES };
    let cores = device.workers()[first..first + CORES].to_vec();
    let program = |side: usize| {
        let [from, to] = [&arrays[side], &arrays[1 - side]].map(|array| array.address.word());
        let page = |core: usize| vec![from, to, low32(core as u64), 1, PAGE, values[side], slots, 3];
        let role = Role::all().kernel(Processor::Brisc, Arc::clone(kernel));
        Program::new(format!("pair {number}, side {side}"), Cores::List(cores.clone()))
            .role(role)
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore((0..CORES).map(page).collect()))
    };
    let programs = [program(0), program(1)];
    let shadow = [vec![0; ELEMENTS as usize], vec![0; ELEMENTS as usize]];
    for array in &arrays {
        let zeros = vec![0; array.bytes()];
        device.on_queue(queue)?.enqueue_write_buffer(array, &zeros, Blocking::Yes)?;
    }
    Ok(Pair { queue, arrays, shadow, values, programs, trace: None })
}
