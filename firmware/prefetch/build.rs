//! Lays out the image.
fn main() {
    tilework_link::kernel("prefetch", tilework_abi::tensix::Processor::Brisc);
}
