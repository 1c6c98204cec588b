//! Lays out the image.
fn main() {
    tilework_link::kernel("row-reader", tilework_abi::tensix::Processor::Ncrisc);
}
