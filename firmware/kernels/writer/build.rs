//! Lays out the image.
fn main() {
    tilework_link::kernel("writer", tilework_abi::tensix::Processor::Brisc);
}
