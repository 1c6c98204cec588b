//! Lays out the images, each for the core that runs it.
use tilework_abi::tensix::Processor;

fn main() {
    tilework_link::kernel("reader", Processor::Ncrisc);
    tilework_link::kernel("writer", Processor::Brisc);
    tilework_link::compute_kernel("square");
}
