//! Our own firmware, built in: an installed binary needs no other file.
//!
//! The images are `firmware/prebuilt/*.elf` (`cargo xtask firmware` makes them; a test of the
//! repository fails when they are stale).

use crate::elf::{ElfError, FirmwareImage, KernelImage};
use std::sync::Arc;
use tilework_abi::cq::tiles::Part;
use tilework_abi::l1::MemoryMap;
use tilework_abi::tensix::Processor;

macro_rules! prebuilt {
    ($name:literal) => {
        ($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../firmware/prebuilt/", $name)).as_slice())
    };
}

const WORKER: [(&str, &[u8]); 5] = [
    prebuilt!("brisc.elf"),
    prebuilt!("ncrisc.elf"),
    prebuilt!("trisc0.elf"),
    prebuilt!("trisc1.elf"),
    prebuilt!("trisc2.elf"),
];
const PREFETCH: (&str, &[u8]) = prebuilt!("prefetch.elf");
const PREFETCH_H: (&str, &[u8]) = prebuilt!("prefetch-h.elf");
const PREFETCH_D: (&str, &[u8]) = prebuilt!("prefetch-d.elf");
const DISPATCH: (&str, &[u8]) = prebuilt!("dispatch.elf");
const DISPATCH_S: (&str, &[u8]) = prebuilt!("dispatch-s.elf");

/// The worker firmware, in the order of [`Processor::ALL`].
///
/// # Errors
/// A map that these images were not linked for.
pub fn worker_firmware(map: &MemoryMap) -> Result<[FirmwareImage; 5], ElfError> {
    let load = |p: Processor| {
        let (name, data) = WORKER[p.index()];
        FirmwareImage::load(name, data, p, map)
    };
    use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
    Ok([load(Brisc)?, load(Ncrisc)?, load(Trisc0)?, load(Trisc1)?, load(Trisc2)?])
}

/// The kernels of the command queue.
#[derive(Clone, Debug)]
pub struct CqKernels {
    /// `cq_prefetch`, BRISC of the prefetch core.
    pub prefetch: Arc<KernelImage>,
    /// `cq_prefetch_h`, the host side of a split prefetcher.
    pub prefetch_h: Arc<KernelImage>,
    /// `cq_prefetch`, the device side of a split prefetcher.
    pub prefetch_d: Arc<KernelImage>,
    /// `cq_dispatch`, BRISC of the dispatch core, or of both of a split dispatcher.
    pub dispatch: Arc<KernelImage>,
    /// `cq_dispatch_subordinate`, NCRISC of the dispatch core or of a tile of its own.
    pub dispatch_s: Arc<KernelImage>,
}

impl CqKernels {
    /// The kernel of a part.
    pub fn of(&self, part: Part) -> &KernelImage {
        match part {
            Part::Prefetch => &self.prefetch,
            Part::PrefetchH => &self.prefetch_h,
            Part::PrefetchD => &self.prefetch_d,
            Part::Dispatch | Part::DispatchH | Part::DispatchD => &self.dispatch,
            Part::Subordinate => &self.dispatch_s,
        }
    }
}

impl CqKernels {
    /// Whether these are our kernels of this version, of which more is known than the
    /// protocol says.
    pub(crate) fn are_ours(&self) -> bool {
        const PARTS: [Part; 5] = [Part::Prefetch, Part::PrefetchH, Part::PrefetchD, Part::Dispatch, Part::Subordinate];
        cq_kernels().is_ok_and(|ours| PARTS.into_iter().all(|part| self.of(part).same(ours.of(part))))
    }
}

/// Our kernels of the command queue.
///
/// # Errors
/// None with images that pass the tests.
pub fn cq_kernels() -> Result<CqKernels, ElfError> {
    let load = |(name, data): (&str, &[u8]), p| KernelImage::load(name, data, p).map(Arc::new);
    Ok(CqKernels {
        prefetch: load(PREFETCH, Processor::Brisc)?,
        prefetch_h: load(PREFETCH_H, Processor::Brisc)?,
        prefetch_d: load(PREFETCH_D, Processor::Brisc)?,
        dispatch: load(DISPATCH, Processor::Brisc)?,
        dispatch_s: load(DISPATCH_S, Processor::Ncrisc)?,
    })
}

/// The kernels of the examples and tests, by name. Their sources and arguments are in
/// `firmware/kernels`.
pub const KERNELS: &[(&str, &[u8])] = &[
    ("accumulate-math", prebuilt!("accumulate-math.elf").1),
    ("accumulate-pack", prebuilt!("accumulate-pack.elf").1),
    ("accumulate-unpack", prebuilt!("accumulate-unpack.elf").1),
    ("attention-math", prebuilt!("attention-math.elf").1),
    ("attention-pack", prebuilt!("attention-pack.elf").1),
    ("attention-unpack", prebuilt!("attention-unpack.elf").1),
    ("busy", prebuilt!("busy.elf").1),
    ("columns-math", prebuilt!("columns-math.elf").1),
    ("columns-pack", prebuilt!("columns-pack.elf").1),
    ("columns-unpack", prebuilt!("columns-unpack.elf").1),
    ("conv-math", prebuilt!("conv-math.elf").1),
    ("conv-pack", prebuilt!("conv-pack.elf").1),
    ("conv-read", prebuilt!("conv-read.elf").1),
    ("conv-unpack", prebuilt!("conv-unpack.elf").1),
    ("conv-write", prebuilt!("conv-write.elf").1),
    ("drain", prebuilt!("drain.elf").1),
    ("edges", prebuilt!("edges.elf").1),
    ("eltwise-math", prebuilt!("eltwise-math.elf").1),
    ("eltwise-pack", prebuilt!("eltwise-pack.elf").1),
    ("eltwise-unpack", prebuilt!("eltwise-unpack.elf").1),
    ("empty", prebuilt!("empty.elf").1),
    ("even-walk", prebuilt!("even-walk.elf").1),
    ("even-writer", prebuilt!("even-writer.elf").1),
    ("feed", prebuilt!("feed.elf").1),
    ("flash-math", prebuilt!("flash-math.elf").1),
    ("flash-pack", prebuilt!("flash-pack.elf").1),
    ("flash-read", prebuilt!("flash-read.elf").1),
    ("flash-unpack", prebuilt!("flash-unpack.elf").1),
    ("flash-write", prebuilt!("flash-write.elf").1),
    ("functions-math", prebuilt!("functions-math.elf").1),
    ("functions-pack", prebuilt!("functions-pack.elf").1),
    ("functions-unpack", prebuilt!("functions-unpack.elf").1),
    ("increment", prebuilt!("increment.elf").1),
    ("integers-math", prebuilt!("integers-math.elf").1),
    ("layernorm-math", prebuilt!("layernorm-math.elf").1),
    ("layernorm-pack", prebuilt!("layernorm-pack.elf").1),
    ("layernorm-unpack", prebuilt!("layernorm-unpack.elf").1),
    ("lines", prebuilt!("lines.elf").1),
    ("matmul-math", prebuilt!("matmul-math.elf").1),
    ("matmul-pack", prebuilt!("matmul-pack.elf").1),
    ("matmul-unpack", prebuilt!("matmul-unpack.elf").1),
    ("pair-math", prebuilt!("pair-math.elf").1),
    ("pair-pack", prebuilt!("pair-pack.elf").1),
    ("pair-unpack", prebuilt!("pair-unpack.elf").1),
    ("prints", prebuilt!("prints.elf").1),
    ("random", prebuilt!("random.elf").1),
    ("reader", prebuilt!("reader.elf").1),
    ("rearrange", prebuilt!("rearrange.elf").1),
    ("reduce-math", prebuilt!("reduce-math.elf").1),
    ("reduce-pack", prebuilt!("reduce-pack.elf").1),
    ("reduce-unpack", prebuilt!("reduce-unpack.elf").1),
    ("ring", prebuilt!("ring.elf").1),
    ("rotary-math", prebuilt!("rotary-math.elf").1),
    ("rotary-pack", prebuilt!("rotary-pack.elf").1),
    ("rotary-unpack", prebuilt!("rotary-unpack.elf").1),
    ("row-norm-math", prebuilt!("row-norm-math.elf").1),
    ("row-norm-pack", prebuilt!("row-norm-pack.elf").1),
    ("row-norm-unpack", prebuilt!("row-norm-unpack.elf").1),
    ("row-reader", prebuilt!("row-reader.elf").1),
    ("row-softmax-math", prebuilt!("row-softmax-math.elf").1),
    ("row-softmax-pack", prebuilt!("row-softmax-pack.elf").1),
    ("row-softmax-unpack", prebuilt!("row-softmax-unpack.elf").1),
    ("row-writer", prebuilt!("row-writer.elf").1),
    ("share", prebuilt!("share.elf").1),
    ("shards", prebuilt!("shards.elf").1),
    ("softmax-math", prebuilt!("softmax-math.elf").1),
    ("softmax-pack", prebuilt!("softmax-pack.elf").1),
    ("softmax-unpack", prebuilt!("softmax-unpack.elf").1),
    ("special-math", prebuilt!("special-math.elf").1),
    ("spin", prebuilt!("spin.elf").1),
    ("tilize-math", prebuilt!("tilize-math.elf").1),
    ("tilize-pack", prebuilt!("tilize-pack.elf").1),
    ("tilize-unpack", prebuilt!("tilize-unpack.elf").1),
    ("topk-math", prebuilt!("topk-math.elf").1),
    ("topk-pack", prebuilt!("topk-pack.elf").1),
    ("topk-unpack", prebuilt!("topk-unpack.elf").1),
    ("walk", prebuilt!("walk.elf").1),
    ("writer", prebuilt!("writer.elf").1),
    ("wrong", prebuilt!("wrong.elf").1),
    ("wrong-math", prebuilt!("wrong-math.elf").1),
];

/// The ELF file of a kernel in [`KERNELS`].
pub fn kernel_elf(name: &str) -> Option<&'static [u8]> {
    KERNELS.iter().find(|(known, _)| *known == name).map(|&(_, elf)| elf)
}
