//! Lays out the image.
fn main() {
    tilework_link::kernel("busy", tilework_abi::tensix::Processor::Brisc);
}
