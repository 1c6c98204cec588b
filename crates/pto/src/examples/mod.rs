//! Example kernels, each with a plain reference.
//!
//! | example | rings | computes |
//! |---|---|---|
//! | [`MatmulBias`] | C2V | Cube: `A B`; Vectors: `+ bias` |
//! | [`DequantMatmul`] | V2C | Vectors: whole numbers times scales; Cube: `A W` |
//! | [`RoundTrip`] | one, bidirectional | Vectors: `C = A + B`, `G = E - F`; Cube: `E = C D` |
//! | [`Attention`] | QK, P, PV | flash attention: products on the Cube, softmax on the Vectors |
//!
//! They are the kernels of `pto-isa`'s tests (`tests/npu`) and of its flash attention. All compute
//! on real tiles: the results went through the slots.

mod bias;
mod dequant;
mod flash;
mod plain;
mod round_trip;

pub use bias::{Form, MatmulBias};
pub use dequant::DequantMatmul;
pub use flash::{Attention, Head, attention, attention_by_blocks};
pub use plain::Matrix;
pub use round_trip::RoundTrip;

use crate::protocol::Profile;
use crate::random::Random;
use crate::schedule::corner;
use crate::{Cluster, ClusterReport, Config, Core, CoreId, Event, Fault, Lane, Output, Pipe, RingSpec, Split};

/// The examples.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Example {
    /// [`MatmulBias`].
    Bias,
    /// [`DequantMatmul`].
    Dequant,
    /// [`RoundTrip`].
    RoundTrip,
    /// [`Attention`] with P in F16, as in `pto-isa`.
    Flash,
    /// [`Attention`] with P in single precision.
    FlashF32,
}

impl Example {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Bias, Self::Dequant, Self::RoundTrip, Self::Flash, Self::FlashF32];

    /// Runs it with inputs from the seed, and compares.
    pub fn run(self, setting: &Setting) -> Comparison {
        let seed = setting.config.seed;
        let (ran, expected, tolerance) = match self {
            Self::Bias => {
                let example = MatmulBias::of_seed(seed);
                (example.run(setting), example.expected(), 0.0)
            }
            Self::Dequant => {
                let example = DequantMatmul::of_seed(seed);
                (example.run(setting), example.expected(), 0.0)
            }
            Self::RoundTrip => {
                let example = RoundTrip::of_seed(seed);
                (example.run(setting), example.expected(), 0.0)
            }
            Self::Flash | Self::FlashF32 => {
                let p = if self == Self::Flash { crate::DType::F16 } else { crate::DType::F32 };
                let example = Attention::of_seed(seed, p);
                (example.run(setting), example.expected(), Attention::TOLERANCE)
            }
        };
        let Ran { events, outcome } = ran;
        let outcome = outcome.map(|done| {
            let error = done.result.largest_error(&expected);
            Compared { report: done.report, result: done.result, error, tolerance }
        });
        Comparison { events, outcome }
    }
}

/// Parameters of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The cluster; its seed also determines the inputs.
    pub config: Config,
    /// Slots of each ring and direction.
    pub slots: u32,
    /// The protocol of all rings.
    pub profile: Profile,
    /// Extra cycles for every popped tile: a consumer slower than its producer shows the
    /// back-pressure of a protocol.
    pub consumer_cycles: u64,
}

impl Setting {
    /// The seed's protocol, 8 slots, consumers at their own pace.
    pub fn new(config: Config) -> Self {
        Self { config, slots: 8, profile: Profile::default(), consumer_cycles: 0 }
    }

    /// Works on a popped tile.
    async fn consume(&self, core: &Core, pipe: Pipe, cycles: u64, name: &str) {
        core.work(pipe, cycles.saturating_add(self.consumer_cycles), name).await;
    }

    /// The first semaphore id of the ring of this number: two ids for each (`pto-isa`'s flash
    /// attention: flags 0, 2, 4), or as many as slots with per-tag flags.
    fn flag(&self, ring: u32) -> u8 {
        let ids = if self.profile == Profile::PerTagFlags { self.slots } else { 2 };
        u8::try_from(ring.saturating_mul(ids)).unwrap_or(u8::MAX)
    }

    /// A ring with the setting's slots and protocol.
    fn ring(&self, spec: RingSpec) -> RingSpec {
        spec.slots(self.slots).profile(self.profile)
    }
}

/// A run: its events, and the result or the fault that ended it.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The events up to the end.
    pub events: Vec<Event>,
    /// The result, or the fault.
    pub outcome: Result<Done, Fault>,
}

/// A completed run.
#[derive(Clone, PartialEq, Debug)]
pub struct Done {
    /// What the kernels computed.
    pub result: Matrix,
    /// The cluster's report.
    pub report: ClusterReport,
}

/// A run, compared with plain arithmetic.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The events up to the end.
    pub events: Vec<Event>,
    /// The result, or the fault.
    pub outcome: Result<Compared, Fault>,
}

/// A result, compared with plain arithmetic.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// The cluster's report.
    pub report: ClusterReport,
    /// What the kernels computed.
    pub result: Matrix,
    /// The largest absolute difference from the expected result.
    pub error: f32,
    /// The largest allowed difference.
    pub tolerance: f32,
}

impl Compared {
    /// Whether the result is within the tolerance.
    pub fn is_right(&self) -> bool {
        self.error <= self.tolerance
    }
}

/// Runs a cluster with its kernels and assembles their results.
fn finish(mut cluster: Cluster, result: impl FnOnce() -> Option<Matrix>) -> Ran {
    let missing = || Fault::Usage("a kernel of the example ended without its result".to_owned());
    let outcome = cluster.run().and_then(|report| {
        let result = result().ok_or_else(missing)?;
        Ok(Done { result, report })
    });
    Ran { events: cluster.take_events(), outcome }
}

/// Returns an error about an example's inputs unless `fits`.
fn require(fits: bool, what: &str) -> Result<(), Fault> {
    if fits { Ok(()) } else { Err(Fault::Usage(what.to_owned())) }
}

/// A run that could not start.
fn refused(fault: impl Into<Fault>) -> Ran {
    Ran { events: Vec::new(), outcome: Err(fault.into()) }
}

/// Results of a Vector, with their positions.
type Parts = Vec<((usize, usize), Matrix)>;

/// Puts the Vectors' parts into one matrix.
fn assemble(rows: usize, cols: usize, outputs: &[Output<Parts>]) -> Option<Matrix> {
    let mut whole = Matrix::from_fn(rows, cols, |_, _| 0.0);
    for output in outputs {
        for (at, part) in output.take()? {
            whole.put(at, &part);
        }
    }
    Some(whole)
}

/// The Vectors that take part in rings of this split: on A5 a ring without split has no Vector 1.
fn vectors(setting: &Setting, split: Split) -> impl Iterator<Item = (CoreId, Lane)> {
    split
        .signal_lanes(setting.config.arch)
        .iter()
        .map(|lane| (CoreId::vector(lane), lane))
        .collect::<Vec<_>>()
        .into_iter()
}

/// Draws the examples' inputs.
struct Draw(Random);

impl Draw {
    /// The random stream of an example's inputs; other streams of the same seed are for its timing.
    const STREAM: u64 = 100;

    fn new(seed: u64) -> Self {
        Self(Random::new(seed, Self::STREAM))
    }

    /// Whole numbers from `-most` to `most`.
    fn whole(&mut self, rows: usize, cols: usize, most: u16) -> Matrix {
        Matrix::from_fn(rows, cols, |_, _| self.0.up_to(2 * u64::from(most)) as f32 - f32::from(most))
    }

    /// Numbers from -1 to 1, in steps of 2^-15.
    fn unit(&mut self, rows: usize, cols: usize) -> Matrix {
        self.whole(rows, cols, 1 << 15).map(|v| v / 32768.0)
    }
}
