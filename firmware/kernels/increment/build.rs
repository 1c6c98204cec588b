//! Lays out the image.
fn main() {
    tilework_link::kernel("increment", tilework_abi::tensix::Processor::Brisc);
}
