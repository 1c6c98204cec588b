//! Lays out the image.
fn main() {
    tilework_link::kernel("spin", tilework_abi::tensix::Processor::Brisc);
}
