//! Lays out the images.
fn main() {
    for name in ["walk", "even-walk"] {
        tilework_link::kernel(name, tilework_abi::tensix::Processor::Ncrisc);
    }
}
