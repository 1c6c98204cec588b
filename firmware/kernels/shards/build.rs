//! Lays out the image.
fn main() {
    tilework_link::kernel("shards", tilework_abi::tensix::Processor::Brisc);
}
