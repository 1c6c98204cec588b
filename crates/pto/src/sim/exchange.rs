//! `TSYNC_CVID`: how the cores of a block get their cluster id from physical ids (seed 002,
//! appendix A).

use super::core::Core;
use crate::arch::{Arch, CV_COMM_CTRL};
use crate::core_id::Pipe;
use crate::fault::Fault;
use crate::ids::{CommBuffer, PhysicalCube, PhysicalVector};

impl Core {
    /// The cluster id of this core. On A5 it is computed. On A2A3 the Cube writes it to the block's
    /// slot of `cv_comm_buf`, flushes the line and sets semaphore 12; a Vector drops its line,
    /// waits for 12 and reads.
    pub async fn sync_cluster_id(&self, buffer: &CommBuffer) -> Result<u32, Fault> {
        let (arch, core_id) = (self.arch(), self.core_id());
        let computed = || match self.subblock_id() {
            None => Ok(PhysicalCube::new(arch, core_id)?.cluster()),
            Some(subblock) => PhysicalVector::new(arch, core_id, subblock)?.cluster(),
        };
        if arch == Arch::A5 {
            return self.keep(computed().map_err(Fault::from));
        }
        let at = self.keep(buffer.slot(self.block_idx()).map_err(Fault::from))?;
        if self.id().is_vector() {
            self.flush(at).await?;
            self.wait_flag_dev(CV_COMM_CTRL).await?;
            return self.load_word(at).await;
        }
        let cluster = self.keep(computed().map_err(Fault::from))?;
        self.store_word(at, cluster).await?;
        self.flush(at).await?;
        self.set_cross_core(Pipe::Mte2, CV_COMM_CTRL).await?;
        Ok(cluster)
    }
}
