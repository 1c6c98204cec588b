//! Generated inputs for a netlist: by a formula, or as its own test makes them.

use crate::tensor::{Tensor, TensorError, shape_of};
use thiserror::Error;
use tilework_dtype::DType;
use tilework_netlist::types::{Netlist, Producer, QueueId, StimulusKind};
use tilework_rng::SplitMix64;

/// How inputs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StimulusChoice {
    /// ((37 i + 11 e + 7 k) mod 64 + 1) / 64 for element i of entry e of queue k, all queues of
    /// the file counted from 0; in integer formats (37 i + 11 e + 7 k) mod 17 - 8, without a
    /// sign mod 17.
    Index,
    /// As the section `test-config` says.
    TestConfig {
        /// Seed of the random numbers.
        seed: u64,
    },
}

/// Why an input cannot be generated.
#[derive(Debug, Clone, PartialEq, Error)]
#[allow(missing_docs)]
pub enum StimulusError {
    #[error("queue {queue}: {error}")]
    Tensor { queue: String, error: TensorError },
    #[error(
        "queue {queue}: the netlist's test makes its input in the way {kind}, which is not known here; \
         give --input or --stimulus index"
    )]
    Unknown { queue: String, kind: String },
    #[error("queue {queue}: the netlist says nothing of its input; give --input or --stimulus index")]
    None { queue: String },
}

/// Queues that the host fills, in the order of the file.
pub fn host_queues(netlist: &Netlist) -> Vec<QueueId> {
    let host = |(_, queue): &(usize, &tilework_netlist::types::Queue)| queue.producer == Producer::Host;
    netlist.queues.iter().enumerate().filter(host).map(|(i, _)| QueueId(i)).collect()
}

/// Entry `entry` of a queue.
pub fn entry(netlist: &Netlist, queue: QueueId, entry: u32, choice: StimulusChoice) -> Result<Tensor, StimulusError> {
    let is = netlist.queue(queue);
    let fail = |error| StimulusError::Tensor { queue: is.name.clone(), error };
    let shape = shape_of(&is.blocks).map_err(fail)?;
    let elements = shape.t * shape.rows * shape.columns;
    let values: Vec<f32> = match choice {
        StimulusChoice::Index => {
            (0..elements as u64).map(|i| formula(is.format, i, entry.into(), queue.0 as u64)).collect()
        }
        StimulusChoice::TestConfig { seed } => {
            let own = netlist.stimulus.as_ref().and_then(|stimulus| {
                let own = stimulus.overrides.iter().find(|(of, _)| *of == queue).map(|(_, kind)| kind);
                own.or(stimulus.default.as_ref())
            });
            let kind = own.ok_or_else(|| StimulusError::None { queue: is.name.clone() })?;
            let mut random = Random::new(seed, [queue.0 as u64, entry.into()]);
            let tile = (is.blocks.tile.r as usize, is.blocks.tile.c as usize);
            let draw = |i| draw(kind, &mut random, (shape.rows, shape.columns), tile, i);
            let drawn: Option<Vec<f32>> = (0..elements).map(draw).collect();
            drawn.ok_or_else(|| StimulusError::Unknown { queue: is.name.clone(), kind: format!("{kind:?}") })?
        }
    };
    Tensor::new(shape, is.blocks.tile, values).map_err(fail)
}

fn formula(format: DType, i: u64, entry: u64, k: u64) -> f32 {
    use DType::{I8, I32, RawU8, RawU16, RawU32, U8, U16};
    let sum = 37 * i + 11 * entry + 7 * k;
    match format {
        I8 | I32 => (sum % 17) as f32 - 8.0,
        U8 | U16 | RawU8 | RawU16 | RawU32 => (sum % 17) as f32,
        _ => ((sum % 64) as f32 + 1.0) / 64.0,
    }
}

/// Draws element `i` of a tensor with these rows and columns.
fn draw(
    kind: &StimulusKind,
    random: &mut Random,
    (rows, columns): (usize, usize),
    tile: (usize, usize),
    i: usize,
) -> Option<f32> {
    Some(match kind {
        StimulusKind::Uniform(low, high) => low + (high - low) * random.unit() as f32,
        StimulusKind::Normal(mean, deviation) => mean + deviation * random.normal() as f32,
        StimulusKind::Constant(value) => *value,
        StimulusKind::DebugTileId(base, step) => {
            let (row, column, matrix) = (i / columns % rows, i % columns, i / columns / rows);
            let across = columns / tile.1;
            let number = (matrix * (rows / tile.0) + row / tile.0) * across + column / tile.1;
            base + step * number as f32
        }
        StimulusKind::Other(_) => return None,
    })
}

/// The random numbers of one entry of a queue.
struct Random(SplitMix64);

impl Random {
    fn new(seed: u64, of: [u64; 2]) -> Self {
        let mixed = |mut stream: SplitMix64, part| SplitMix64::new(stream.bits() ^ part);
        Self(of.into_iter().fold(SplitMix64::new(seed), mixed))
    }

    /// A number from 0 to below 1.
    fn unit(&mut self) -> f64 {
        (self.0.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A normally distributed number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log(a)) * libm::cos(2.0 * std::f64::consts::PI * b)
    }
}
