//! Lays out the image.
fn main() {
    tilework_link::kernel("ring", tilework_abi::tensix::Processor::Brisc);
}
