//! Lays out the image.
fn main() {
    tilework_link::kernel("conv-read", tilework_abi::tensix::Processor::Ncrisc);
}
