//! Recipes: what the chip does for an operation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_ops::DType;
use tilework_runtime::prebuilt::kernel_elf;
use tilework_runtime::tensor::{Layout, Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{DeviceConfig, KernelImage, Program, Role, RuntimeError};

/// An operation whose tensors are on the device, as far as it is known before it runs.
pub(crate) struct Task<'a> {
    /// What it reads.
    pub(crate) operands: &'a [&'a TensorSpec],
    /// Which of them lie in the host's memory, and would be brought to the device in rows; as many
    /// as there are, or none.
    pub(crate) on_host: &'a [bool],
    /// What it makes.
    pub(crate) results: &'a [TensorSpec],
    /// Where programs can run.
    pub(crate) site: &'a Site,
}

/// Where programs can run.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// The workers in the board's order.
    pub(crate) workers: Vec<NocXy>,
    /// Bytes of a worker's L1 for circular buffers.
    pub(crate) l1: u32,
    /// Which device of the mesh it is.
    pub(crate) device: usize,
}

impl Site {
    /// The site of a device that is opened so.
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let workers = config.workers();
        Self { workers, l1: WORKER.data_end.get() - WORKER.data.get(), device: 0 }
    }

    /// The workers of a program whose kernels do nothing where they have no part of `parts`: as
    /// many as there are parts, or all where that is started sooner.
    pub(crate) fn cores(&self, parts: u32) -> Vec<NocXy> {
        let all = self.workers.len();
        let some = all.min(parts as usize);
        let all_sooner = self.start_cycles(some) > self.arguments_cycles(all - some);
        self.first(if all_sooner { all } else { some })
    }

    /// So many workers, near each other.
    pub(crate) fn first(&self, count: usize) -> Vec<NocXy> {
        if count == self.workers.len() {
            return self.workers.clone();
        }
        near(&self.workers, count).unwrap_or_else(|| self.workers[..count].to_vec())
    }

    /// What the dispatcher needs to start so many workers.
    pub(crate) fn start_cycles(&self, count: usize) -> u64 {
        if count == self.workers.len() { 0 } else { count as u64 * GO_CYCLES }
    }

    /// What it needs for arguments of their own.
    pub(crate) fn arguments_cycles(&self, count: usize) -> u64 {
        count as u64 * ARGUMENTS_CYCLES
    }
}

/// So many workers in rows of the columns before the first gap, which a column of DRAM banks makes.
/// Where answers of both columns of banks meet in a row, and where many cores of a column share its
/// links, reads take two to three times as long (measured on the simulated chip, 10 to 40 cores
/// that read 12 tiles each).
fn near(workers: &[NocXy], count: usize) -> Option<Vec<NocXy>> {
    let first = workers.iter().map(|tile| tile.x).min()?;
    let columns = (first..=u8::MAX).take_while(|x| workers.iter().any(|tile| tile.x == *x)).count();
    let rows = count.div_ceil(columns);
    let across = count.div_ceil(rows.max(1));
    let mut near: Vec<NocXy> = workers.iter().copied().filter(|tile| usize::from(tile.x - first) < across).collect();
    near.sort_by_key(|tile| (tile.y, tile.x));
    near.truncate(count);
    (near.len() == count).then_some(near)
}

/// What the dispatcher needs for a worker: to send it a go signal of its own, unless all get it by
/// one multicast, and to write arguments of its own (measured on the simulated chip).
const GO_CYCLES: u64 = 26;
/// See [`GO_CYCLES`].
const ARGUMENTS_CYCLES: u64 = 33;

/// The tensors of a recipe that runs.
pub(crate) struct At<'a> {
    /// What the operation reads.
    pub(crate) operands: &'a [&'a Tensor],
    /// The scratch tensors.
    pub(crate) scratch: &'a [Tensor],
    /// What it makes.
    pub(crate) results: &'a [Tensor],
    /// The kernels.
    pub(crate) kernels: &'a Kernels,
}

/// Which tensor of a recipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    Operand(usize),
    Scratch(usize),
    Result(usize),
}

impl Which {
    pub(crate) fn of<'a>(self, at: &'a At<'_>) -> &'a Tensor {
        match self {
            Self::Operand(i) => at.operands[i],
            Self::Scratch(i) => &at.scratch[i],
            Self::Result(i) => &at.results[i],
        }
    }
}

/// A tensor that a stage reads or makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of<'s> {
    pub(crate) which: Which,
    pub(crate) spec: &'s TensorSpec,
}

impl<'a> Task<'a> {
    /// An operand.
    ///
    /// # Errors
    /// The operation has fewer.
    pub(crate) fn operand(&self, i: usize) -> Result<Of<'a>, String> {
        let spec = *self.operands.get(i).ok_or_else(|| format!("operand {i} is missing"))?;
        Ok(Of { which: Which::Operand(i), spec })
    }

    /// Whether an operand lies in the host's memory.
    pub(crate) fn is_on_host(&self, i: usize) -> bool {
        self.on_host.get(i).is_some_and(|is| *is)
    }

    /// The only result.
    ///
    /// # Errors
    /// The operation has another number.
    pub(crate) fn result(&self) -> Result<Of<'a>, String> {
        let [spec] = self.results else { return Err("other than one result".into()) };
        Ok(Of { which: Which::Result(0), spec })
    }
}

/// A scratch tensor of a recipe.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    which: Which,
    spec: TensorSpec,
}

impl Made {
    pub(crate) fn of(&self) -> Of<'_> {
        Of { which: self.which, spec: &self.spec }
    }
}

/// An operand that the host brings to the device in another form, instead of a program: element
/// `base + sum of steps[k] * i[k]` of it in row-major order is element `i` of a scratch tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Prepared {
    /// Which operand; it lies in the host's memory, and no program reads it otherwise.
    pub(crate) operand: usize,
    /// Which scratch tensor.
    pub(crate) scratch: usize,
    /// See [`Prepared`].
    pub(crate) base: i64,
    /// See [`Prepared`].
    pub(crate) steps: Vec<i64>,
}

/// Makes a program.
pub(crate) type Build = Box<dyn Fn(&At<'_>) -> Result<Program, RuntimeError>>;

/// What the chip does for an operation: programs one after the other.
#[derive(Default)]
pub(crate) struct Recipe {
    /// Tensors that only its programs use.
    pub(crate) scratch: Vec<TensorDesc>,
    /// Those of them that the host makes of operands.
    pub(crate) prepared: Vec<Prepared>,
    /// The programs.
    pub(crate) stages: Vec<Build>,
}

impl Recipe {
    /// Adds a scratch tensor in DRAM.
    ///
    /// # Errors
    /// The runtime has no such tensor.
    pub(crate) fn add(&mut self, dims: &[usize], dtype: DType, layout: Layout) -> Result<Made, String> {
        let desc = TensorDesc::new(dims.to_vec()).dtype(dtype).layout(layout);
        let spec = TensorSpec::new(&desc).map_err(|e| e.to_string())?;
        self.scratch.push(desc);
        Ok(Made { which: Which::Scratch(self.scratch.len() - 1), spec })
    }

    /// A scratch tensor in tiles that the host makes of an operand in its memory, whose elements
    /// lie so ([`Prepared`]).
    ///
    /// # Errors
    /// The runtime has no such tensor.
    pub(crate) fn prepare(
        &mut self,
        (operand, dtype): (usize, DType),
        dims: &[usize],
        (base, steps): (i64, &[i64]),
    ) -> Result<Made, String> {
        let made = self.tiles(dims, dtype)?;
        let scratch = self.scratch.len() - 1;
        self.prepared.push(Prepared { operand, scratch, base, steps: steps.to_vec() });
        Ok(made)
    }

    /// The same in tiles.
    pub(crate) fn tiles(&mut self, dims: &[usize], dtype: DType) -> Result<Made, String> {
        self.add(dims, dtype, Layout::TILE)
    }

    /// The same in rows.
    pub(crate) fn rows(&mut self, dims: &[usize], dtype: DType) -> Result<Made, String> {
        self.add(dims, dtype, Layout::RowMajor)
    }
}

/// A recipe, or why there is none.
pub(crate) type Planned = Result<Recipe, String>;

/// The kernels that were loaded.
#[derive(Default)]
pub(crate) struct Kernels {
    loaded: RefCell<HashMap<(String, usize), Arc<KernelImage>>>,
}

impl Kernels {
    /// A kernel for a processor.
    pub(crate) fn get(&self, name: &str, processor: Processor) -> Result<Arc<KernelImage>, RuntimeError> {
        let key = (name.to_owned(), processor.index());
        if let Some(image) = self.loaded.borrow().get(&key) {
            return Ok(Arc::clone(image));
        }
        let image = Arc::new(KernelImage::load(name, kernel_elf(name).unwrap_or_default(), processor)?);
        self.loaded.borrow_mut().insert(key, Arc::clone(&image));
        Ok(image)
    }

    /// A role whose TRISCs run the three parts of a compute kernel, NCRISC and BRISC these kernels.
    pub(crate) fn role(&self, compute: &str, ncrisc: &str, brisc: &str) -> Result<Role, RuntimeError> {
        use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
        let part = |part: &str, processor| self.get(&format!("{compute}-{part}"), processor);
        Ok(Role::all()
            .kernel(Ncrisc, self.get(ncrisc, Ncrisc)?)
            .kernel(Trisc0, part("unpack", Trisc0)?)
            .kernel(Trisc1, part("math", Trisc1)?)
            .kernel(Trisc2, part("pack", Trisc2)?)
            .kernel(Brisc, self.get(brisc, Brisc)?))
    }
}
