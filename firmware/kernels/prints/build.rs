//! Lays out the image.
fn main() {
    tilework_link::kernel("prints", tilework_abi::tensix::Processor::Brisc);
}
