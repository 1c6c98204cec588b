//! Lays out the image.
fn main() {
    tilework_link::firmware("brisc", tilework_abi::tensix::Processor::Brisc);
}
