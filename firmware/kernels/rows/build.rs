//! Lays out the images.
fn main() {
    tilework_link::compute_kernel("row-softmax");
    tilework_link::compute_kernel("row-norm");
}
