//! Lays out the image.
fn main() {
    tilework_link::kernel("empty", tilework_abi::tensix::Processor::Brisc);
}
