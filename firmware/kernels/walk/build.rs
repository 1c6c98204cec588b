//! Lays out the image.
fn main() {
    tilework_link::kernel("walk", tilework_abi::tensix::Processor::Ncrisc);
}
