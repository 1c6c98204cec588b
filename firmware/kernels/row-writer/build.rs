//! Lays out the image.
fn main() {
    tilework_link::kernel("row-writer", tilework_abi::tensix::Processor::Brisc);
}
