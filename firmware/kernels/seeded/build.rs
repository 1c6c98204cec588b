//! Lays out the image.
fn main() {
    tilework_link::kernel("seeded", tilework_abi::tensix::Processor::Ncrisc);
}
