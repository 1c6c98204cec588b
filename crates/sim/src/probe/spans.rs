//! Spans of memory that are used at once.

/// Spans of L1 of one length and distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spans {
    /// The first byte.
    pub addr: u32,
    /// Bytes of each.
    pub len: u32,
    /// Bytes from the beginning of each to that of the next one.
    pub stride: u32,
    /// How many.
    pub count: u32,
}

impl Spans {
    /// One span.
    pub(crate) const fn one(addr: u32, len: u32) -> Self {
        Self { addr, len, stride: len, count: 1 }
    }

    /// Whether another one continues these, which are then one more.
    pub(crate) fn take(&mut self, addr: u32, len: u32) -> bool {
        let Some(stride) = addr.checked_sub(self.addr + self.stride * (self.count - 1)) else { return false };
        let continues = len == self.len && (self.count == 1 || stride == self.stride);
        if continues {
            (self.stride, self.count) = (stride, self.count + 1);
        }
        continues
    }

    /// Address and bytes of each.
    pub fn iter(self) -> impl Iterator<Item = (u32, u32)> {
        (0..self.count).map(move |i| (self.addr + self.stride * i, self.len))
    }

    /// They lie next to each other: address and bytes of all.
    pub fn whole(self) -> Option<(u32, u32)> {
        (self.stride == self.len).then_some((self.addr, self.len * self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::Spans;

    #[test]
    fn spans_are_those_that_were_taken() {
        let all = [(100, 8), (108, 8), (116, 8), (124, 4), (200, 4), (180, 4), (190, 4), (200, 4), (212, 4)];
        let mut told: Vec<Spans> = Vec::new();
        for (addr, len) in all {
            if !told.last_mut().is_some_and(|spans| spans.take(addr, len)) {
                told.push(Spans::one(addr, len));
            }
        }
        assert!(told.iter().flat_map(|spans| spans.iter()).eq(all));
        let wholes: Vec<_> = told.iter().map(|spans| (spans.count, spans.whole())).collect();
        assert_eq!(wholes, [(3, Some((100, 24))), (2, None), (3, None), (1, Some((212, 4)))]);
    }
}
