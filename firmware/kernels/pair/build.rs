//! Lays out the images.
fn main() {
    tilework_link::compute_kernel("pair");
}
