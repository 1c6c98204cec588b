//! Lays out the image.
fn main() {
    tilework_link::kernel("share", tilework_abi::tensix::Processor::Ncrisc);
}
