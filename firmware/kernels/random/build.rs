//! Lays out the image.
fn main() {
    tilework_link::kernel("random", tilework_abi::tensix::Processor::Ncrisc);
}
