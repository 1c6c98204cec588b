//! Lays out the image.
fn main() {
    tilework_link::kernel("drain", tilework_abi::tensix::Processor::Brisc);
}
