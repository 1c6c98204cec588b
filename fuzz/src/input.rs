//! A fuzzer's bytes as a stream of choices. After its end every choice is the first, so that short
//! inputs mean short runs.

/// The remaining bytes.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// The stream of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether no bytes are left.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Two bytes.
    pub fn half(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Four bytes.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Eight bytes.
    pub fn double(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// One of `choices`, which are not empty.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.half()) % choices.len()]
    }

    /// Up to `n` bytes as they are.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (now, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        now
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let got = self.bytes(N);
        out[..got.len()].copy_from_slice(got);
        out
    }
}
