//! Lays out the images.
use tilework_abi::tensix::Processor;

fn main() {
    tilework_link::kernel("wrong", Processor::Ncrisc);
    tilework_link::kernel("wrong-math", Processor::Trisc1);
}
