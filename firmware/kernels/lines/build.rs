//! Lays out the image.
fn main() {
    tilework_link::kernel("lines", tilework_abi::tensix::Processor::Ncrisc);
}
