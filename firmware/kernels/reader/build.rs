//! Lays out the image.
fn main() {
    tilework_link::kernel("reader", tilework_abi::tensix::Processor::Ncrisc);
}
