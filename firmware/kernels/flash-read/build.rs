//! Lays out the image.
fn main() {
    tilework_link::kernel("flash-read", tilework_abi::tensix::Processor::Ncrisc);
}
