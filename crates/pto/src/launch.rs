//! Launch: how blocks are bound to clusters (seed 002, "Cluster Binding Flow").
//!
//! The scheduler gives blocks to clusters: one Cube and two Vectors get the same `block_idx`, the
//! Vectors a subblock each. When FFTS launches a mixed kernel, it does that itself
//! ([`Scheduler::start_block`]). An AICPU needs a handshake: request, mapping, `ffts_addr`, launch,
//! in this order ([`Handshake`]).

use crate::arch::Arch;
use crate::core_id::CoreId;
use crate::ids::CoreKind;

/// The binding of a block to a cluster.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    block_idx: u32,
    cluster: u32,
    cores: [u32; 3],
    ffts_ready: bool,
}

impl Binding {
    /// Block 0 on the first cluster, launched by FFTS itself.
    pub fn direct(arch: Arch) -> Self {
        Self::to(arch, 0, 0, true)
    }

    fn to(arch: Arch, block_idx: u32, cluster: u32, ffts_ready: bool) -> Self {
        let (per_die, cores) = (arch.clusters_per_die(), arch.cores_per_die());
        let (die, in_die) = (cluster / per_die, cluster % per_die);
        let cube = die * cores + in_die;
        let vector = die * cores + per_die + in_die * arch.vectors_per_cube();
        Self { block_idx, cluster, cores: [cube, vector, vector + 1], ffts_ready }
    }

    /// The block.
    pub fn block_idx(&self) -> u32 {
        self.block_idx
    }

    /// The physical cluster.
    pub fn cluster(&self) -> u32 {
        self.cluster
    }

    /// The physical core.
    pub fn core_id(&self, core: CoreId) -> u32 {
        self.cores[core.index()]
    }

    /// Whether the semaphores are reachable. A5 needs no `ffts_addr` for that.
    pub fn ffts_ready(&self) -> bool {
        self.ffts_ready
    }
}

/// The scheduler of blocks on clusters.
#[derive(Clone, Debug)]
pub struct Scheduler {
    arch: Arch,
    block_dim: u32,
    next: u32,
    running: Vec<Option<u32>>,
}

impl Scheduler {
    /// A launch of `block_dim` blocks. There may be more blocks than clusters: then they follow one
    /// another on a cluster.
    pub fn new(arch: Arch, block_dim: u32) -> Self {
        let clusters = usize::try_from(arch.clusters()).unwrap_or(0);
        Self { arch, block_dim, next: 0, running: vec![None; clusters] }
    }

    /// FFTS: binds the next block to the first free cluster, semaphores ready. `None` if no block
    /// is left or no cluster is free.
    pub fn start_block(&mut self) -> Option<Binding> {
        let cluster = self.running.iter().position(Option::is_none).and_then(|cluster| u32::try_from(cluster).ok())?;
        self.start_block_on(cluster).ok()
    }

    /// FFTS: binds the next block to this cluster. Two blocks on one cluster have the same cluster
    /// id, slots and semaphores: the second must wait until the first has ended.
    pub fn start_block_on(&mut self, cluster: u32) -> Result<Binding, LaunchError> {
        let (arch, block) = (self.arch, self.next);
        if block >= self.block_dim {
            return Err(LaunchError::NoBlockLeft { block_dim: self.block_dim });
        }
        let place = self.running.get_mut(usize::try_from(cluster).unwrap_or(usize::MAX));
        match place {
            None => Err(LaunchError::NoCluster { arch, cluster, clusters: arch.clusters() }),
            Some(Some(running)) => Err(LaunchError::Busy { cluster, running: *running, block }),
            Some(free) => {
                *free = Some(block);
                self.next += 1;
                Ok(Binding::to(arch, block, cluster, true))
            }
        }
    }

    /// Ends a block; its cluster becomes free.
    pub fn end_block(&mut self, binding: &Binding) {
        for running in &mut self.running {
            if *running == Some(binding.block_idx) {
                *running = None;
            }
        }
    }
}

/// A row of the mapping that the scheduler gives to the AICPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// The physical core.
    pub core_id: u32,
    /// Cube, or Vector with its subblock.
    pub kind: CoreKind,
    /// The block.
    pub block_idx: u32,
}

/// Stages of a handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Nothing was requested.
    Idle,
    /// Clusters were requested (step 1).
    Requested,
    /// The mapping has come (step 2).
    Mapped,
    /// All clusters were launched (step 4).
    Launched,
}

/// The AICPU's handshake with the scheduler.
#[derive(Clone, Debug)]
pub struct Handshake {
    scheduler: Scheduler,
    stage: Stage,
    clusters: u32,
    bindings: Vec<Binding>,
    launched: Vec<bool>,
}

impl Handshake {
    /// A handshake with a scheduler.
    pub fn new(scheduler: Scheduler) -> Self {
        Self { scheduler, stage: Stage::Idle, clusters: 0, bindings: Vec::new(), launched: Vec::new() }
    }

    /// Its stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Step 1: asks for clusters.
    pub fn request(&mut self, clusters: u32) -> Result<(), LaunchError> {
        self.expect("request", Stage::Idle)?;
        let arch = self.scheduler.arch;
        if clusters == 0 || clusters > arch.clusters() {
            return Err(LaunchError::NoCluster { arch, cluster: clusters, clusters: arch.clusters() });
        }
        (self.stage, self.clusters) = (Stage::Requested, clusters);
        Ok(())
    }

    /// Step 2: returns the block and subblock of each physical core. On A2A3 their semaphores are
    /// not yet reachable.
    pub fn mapping(&mut self) -> Result<Vec<Mapping>, LaunchError> {
        self.expect("mapping", Stage::Requested)?;
        let arch = self.scheduler.arch;
        for _ in 0..self.clusters {
            let binding = self.scheduler.start_block();
            let binding = binding.ok_or(LaunchError::NoBlockLeft { block_dim: self.scheduler.block_dim })?;
            self.bindings.push(Binding { ffts_ready: arch == Arch::A5, ..binding });
        }
        self.launched = vec![false; self.bindings.len()];
        self.stage = Stage::Mapped;
        let rows = |binding: &Binding| {
            let kinds = [CoreKind::Cube, CoreKind::Vector { subblock: 0 }, CoreKind::Vector { subblock: 1 }];
            let block_idx = binding.block_idx;
            binding.cores.into_iter().zip(kinds).map(move |(core_id, kind)| Mapping { core_id, kind, block_idx })
        };
        Ok(self.bindings.iter().flat_map(rows).collect())
    }

    /// Step 3: initialises `ffts_addr` of a block's cluster, for all its cores. On A5 there is
    /// nothing to do.
    pub fn init_ffts_addr(&mut self, block_idx: u32) -> Result<(), LaunchError> {
        self.expect("init_ffts_addr", Stage::Mapped)?;
        let index = self.find(block_idx)?;
        if self.launched[index] {
            return Err(LaunchError::AlreadyRunning { block_idx });
        }
        self.bindings[index].ffts_ready = true;
        Ok(())
    }

    /// Step 4: starts a block's cores with the ids that the mapping gave them.
    pub fn launch(&mut self, block_idx: u32) -> Result<Binding, LaunchError> {
        self.expect("launch", Stage::Mapped)?;
        let index = self.find(block_idx)?;
        if !self.bindings[index].ffts_ready {
            return Err(LaunchError::NotInitialised { block_idx });
        }
        self.launch_as_is(block_idx)
    }

    /// Step 4 without checking that step 3 was done: as on the machine, the cores start and fault
    /// at their first set or wait if it was not.
    pub fn launch_as_is(&mut self, block_idx: u32) -> Result<Binding, LaunchError> {
        self.expect("launch", Stage::Mapped)?;
        let index = self.find(block_idx)?;
        if std::mem::replace(&mut self.launched[index], true) {
            return Err(LaunchError::AlreadyRunning { block_idx });
        }
        if self.launched.iter().all(|&launched| launched) {
            self.stage = Stage::Launched;
        }
        Ok(self.bindings[index].clone())
    }

    /// Step 4 with ids from the AICPU: refused unless they are those of the mapping.
    pub fn launch_with(&mut self, cores: &[Mapping; 3]) -> Result<Binding, LaunchError> {
        self.expect("launch", Stage::Mapped)?;
        let index = self.find(cores[0].block_idx)?;
        for stated in cores {
            let place = self.bindings.iter().find(|binding| binding.cores.contains(&stated.core_id));
            let mapped = place.map(|binding| binding.block_idx);
            let kind = CoreKind::of(self.scheduler.arch, stated.core_id).ok();
            let same_cluster = self.bindings[index].cores.contains(&stated.core_id);
            if !same_cluster || mapped != Some(stated.block_idx) || kind != Some(stated.kind) {
                return Err(LaunchError::NotAsMapped { stated: *stated, mapped, kind });
            }
        }
        self.launch(cores[0].block_idx)
    }

    fn find(&self, block_idx: u32) -> Result<usize, LaunchError> {
        let found = self.bindings.iter().position(|binding| binding.block_idx == block_idx);
        found.ok_or(LaunchError::NotMapped { block_idx })
    }

    fn expect(&self, what: &'static str, stage: Stage) -> Result<(), LaunchError> {
        if self.stage == stage { Ok(()) } else { Err(LaunchError::Order { what, needs: stage, is: self.stage }) }
    }
}

/// Why a launch fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step at the wrong time.
    #[error(
        "`{what}` belongs to a handshake that is {needs:?}, this one is {is:?}; the order is request, mapping, \
         init_ffts_addr, launch"
    )]
    Order {
        /// The step.
        what: &'static str,
        /// The stage that it needs.
        needs: Stage,
        /// The handshake's stage.
        is: Stage,
    },
    /// Launch before `ffts_addr`.
    #[error("block {block_idx} has no ffts_addr: init_ffts_addr comes before launch on a2a3")]
    NotInitialised {
        /// The block.
        block_idx: u32,
    },
    /// A block that runs already.
    #[error("block {block_idx} is running already")]
    AlreadyRunning {
        /// The block.
        block_idx: u32,
    },
    /// A block that the mapping does not have.
    #[error("block {block_idx} is not in the mapping that the scheduler gave")]
    NotMapped {
        /// The block.
        block_idx: u32,
    },
    /// Ids that differ from the mapping.
    #[error(
        "core {} was stated as {:?} of block {}, but the mapping has it as {kind:?} of block {mapped:?} (None: none)",
        stated.core_id, stated.kind, stated.block_idx
    )]
    NotAsMapped {
        /// What was stated.
        stated: Mapping,
        /// The block in the mapping.
        mapped: Option<u32>,
        /// The core's kind.
        kind: Option<CoreKind>,
    },
    /// No such cluster, or not so many.
    #[error("cluster {cluster} (or so many clusters): {arch} has {clusters}, ids from 0")]
    NoCluster {
        /// The architecture.
        arch: Arch,
        /// The id, or number.
        cluster: u32,
        /// How many there are.
        clusters: u32,
    },
    /// No block is left.
    #[error("all {block_dim} blocks were given out")]
    NoBlockLeft {
        /// Blocks of the launch.
        block_dim: u32,
    },
    /// Two blocks on one cluster at a time.
    #[error("cluster {cluster} runs block {running}; block {block} has the same cluster id and must wait for its end")]
    Busy {
        /// The cluster.
        cluster: u32,
        /// The block that runs.
        running: u32,
        /// The block that would start.
        block: u32,
    },
}
