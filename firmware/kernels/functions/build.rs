//! Lays out the images.
use tilework_abi::tensix::Processor;

fn main() {
    tilework_link::compute_kernel("functions");
    for more in ["special-math", "integers-math"] {
        tilework_link::kernel(more, Processor::Trisc1);
    }
}
