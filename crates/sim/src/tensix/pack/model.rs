//! The packer's conversions once more, a datum at a time and with exact numbers, for tests.
