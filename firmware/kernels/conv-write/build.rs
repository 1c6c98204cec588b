//! Lays out the image.
fn main() {
    tilework_link::kernel("conv-write", tilework_abi::tensix::Processor::Brisc);
}
