//! Lays out the image.
fn main() {
    tilework_link::kernel("flash-write", tilework_abi::tensix::Processor::Brisc);
}
