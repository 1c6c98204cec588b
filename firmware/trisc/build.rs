//! Lays out the image.
fn main() {
    use tilework_abi::tensix::Processor;
    tilework_link::firmware("trisc0", Processor::Trisc0);
    tilework_link::firmware("trisc1", Processor::Trisc1);
    tilework_link::firmware("trisc2", Processor::Trisc2);
}
