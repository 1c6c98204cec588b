//! Lays out the image.
fn main() {
    tilework_link::kernel("dispatch-s", tilework_abi::tensix::Processor::Ncrisc);
}
