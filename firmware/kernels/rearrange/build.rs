//! Lays out the image.
fn main() {
    tilework_link::kernel("rearrange", tilework_abi::tensix::Processor::Ncrisc);
}
