//! Lays out the image.
fn main() {
    tilework_link::kernel("prefetch-d", tilework_abi::tensix::Processor::Brisc);
}
