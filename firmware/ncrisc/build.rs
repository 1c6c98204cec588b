//! Lays out the image.
fn main() {
    tilework_link::firmware("ncrisc", tilework_abi::tensix::Processor::Ncrisc);
}
