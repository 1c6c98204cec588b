//! Lays out the image.
fn main() {
    tilework_link::kernel("feed", tilework_abi::tensix::Processor::Ncrisc);
}
