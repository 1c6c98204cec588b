//! Lays out the image.
fn main() {
    tilework_link::kernel("dispatch", tilework_abi::tensix::Processor::Brisc);
}
