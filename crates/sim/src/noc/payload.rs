//! The bytes that a packet carries.
//!
//! A read of DRAM would copy its data twice, from the bank to the packet and from the packet to L1.
//! Instead its answer holds on to the page of the bank as it was when the bank served the read; the
//! bank copies a page before it changes one that a packet still holds (the `store` module of the
//! bank). So the bytes are those of the cycle at which they were read, whenever the packet arrives.

use super::outgoing::Unsettled;
use std::ops::Deref;
use std::sync::Arc;

/// Bytes of a shared page.
pub(crate) const PAGE: usize = 64 << 10;
/// A page of memory that packets can hold on to. Boxed, so that a new page of zeros need not be
/// written.
pub(crate) type Page = Arc<Box<[u8; PAGE]>>;
/// Payloads of at most so many bytes need no memory of their own: inline writes, atomics, words of
/// registers.
const SMALL: usize = 8;

/// Payload bytes, shared by the copies of a multicast.
#[derive(Clone)]
pub(crate) struct Data(Bytes);

#[derive(Clone)]
enum Bytes {
    Small {
        len: u8,
        bytes: [u8; SMALL],
    },
    Own(Arc<[u8]>),
    Page {
        at: u16,
        len: u16,
        page: Page,
    },
    /// The source may still change.
    Unsettled(Arc<Unsettled>),
}

impl Data {
    /// `len` bytes of a page from offset `at`, without a copy; `None` when they do not fit.
    #[inline]
    pub(crate) fn of_page(page: &Page, at: usize, len: usize) -> Option<Self> {
        let fits = at.checked_add(len).is_some_and(|end| end <= PAGE);
        let (Ok(at), Ok(len), true) = (u16::try_from(at), u16::try_from(len), fits) else { return None };
        Some(Self(Bytes::Page { at, len, page: page.clone() }))
    }

    /// Bytes of a source that may still change.
    pub(super) fn unsettled(data: Arc<Unsettled>) -> Self {
        Self(Bytes::Unsettled(data))
    }

    /// The bytes as they arrive. Others are as when the packet left.
    #[inline]
    pub(crate) fn settled(&self) -> Self {
        match &self.0 {
            Bytes::Unsettled(data) => {
                data.settled().map_or_else(|| self.clone(), |bytes| Self(Bytes::Own(bytes.into())))
            }
            _ => self.clone(),
        }
    }

    /// How many bytes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Bytes::Small { len, .. } => usize::from(*len),
            Bytes::Own(bytes) => bytes.len(),
            Bytes::Page { len, .. } => usize::from(*len),
            Bytes::Unsettled(data) => data.bytes().len(),
        }
    }
}

impl Deref for Data {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Small { len, bytes } => &bytes[..usize::from(*len)],
            Bytes::Own(bytes) => bytes,
            Bytes::Page { at, len, page } => &page[usize::from(*at)..][..usize::from(*len)],
            Bytes::Unsettled(data) => data.bytes(),
        }
    }
}

impl From<&[u8]> for Data {
    #[inline]
    fn from(bytes: &[u8]) -> Self {
        if bytes.len() > SMALL {
            return Self(Bytes::Own(bytes.into()));
        }
        let mut small = [0; SMALL];
        small[..bytes.len()].copy_from_slice(bytes);
        Self(Bytes::Small { len: bytes.len() as u8, bytes: small })
    }
}

impl<const N: usize> From<[u8; N]> for Data {
    #[inline]
    fn from(bytes: [u8; N]) -> Self {
        bytes.as_slice().into()
    }
}

impl From<Vec<u8>> for Data {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Bytes::Own(bytes.into()))
    }
}

impl FromIterator<u8> for Data {
    fn from_iter<T: IntoIterator<Item = u8>>(bytes: T) -> Self {
        Self(Bytes::Own(bytes.into_iter().collect()))
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Data {}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}
