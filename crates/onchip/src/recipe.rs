//! Recipes: what the chip does for an operation.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::prebuilt::kernel_elf;
use tilework_runtime::tensor::{Tensor, TensorDesc, TensorSpec};
use tilework_runtime::{DeviceConfig, KernelImage, Program, Role, RuntimeError};

/// An operation whose tensors are on the device, as far as it is known before it runs.
pub(crate) struct Task<'a> {
    /// What it reads.
    pub(crate) operands: &'a [&'a TensorSpec],
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
}

impl Site {
    /// The site of a device that is opened so.
    pub(crate) fn of(config: &DeviceConfig) -> Self {
        let workers = config.workers();
        Self { workers, l1: WORKER.data_end.get() - WORKER.data.get() }
    }
}

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

/// Makes a program.
pub(crate) type Build = Box<dyn Fn(&At<'_>) -> Result<Program, RuntimeError>>;

/// What the chip does for an operation: programs one after the other.
#[derive(Default)]
pub(crate) struct Recipe {
    /// Tensors that only its programs use.
    pub(crate) scratch: Vec<TensorDesc>,
    /// The programs.
    pub(crate) stages: Vec<Build>,
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
