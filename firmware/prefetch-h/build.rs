//! Lays out the image.
fn main() {
    tilework_link::kernel("prefetch-h", tilework_abi::tensix::Processor::Brisc);
}
