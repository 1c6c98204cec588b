//! Lays out the image.
fn main() {
    tilework_link::kernel("edges", tilework_abi::tensix::Processor::Ncrisc);
}
