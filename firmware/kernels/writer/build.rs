//! Lays out the images.
fn main() {
    for name in ["writer", "even-writer"] {
        tilework_link::kernel(name, tilework_abi::tensix::Processor::Brisc);
    }
}
