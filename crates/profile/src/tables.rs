//! Tables that are asked for every event: by tile, and by request.

use tilework_abi::noc::NocXy;
use tilework_sim::{RequestId, Spot};

/// A value for each tile, by its place in the order of tiles.
#[derive(Clone, Debug)]
pub(crate) struct ByTile<T>(Vec<Option<Box<T>>>);

impl<T> Default for ByTile<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByTile<T> {
    #[inline]
    fn place(tile: NocXy) -> usize {
        Spot::Tensix(tile).rank() as usize
    }

    #[inline]
    pub(crate) fn get(&self, tile: NocXy) -> Option<&T> {
        self.0.get(Self::place(tile))?.as_deref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, tile: NocXy) -> Option<&mut T> {
        self.0.get_mut(Self::place(tile))?.as_deref_mut()
    }

    /// The value of a tile, made by `new` if it has none.
    #[inline]
    pub(crate) fn get_or_insert_with(&mut self, tile: NocXy, new: impl FnOnce() -> T) -> &mut T {
        let place = Self::place(tile);
        if place >= self.0.len() {
            self.0.resize_with(place + 1, || None);
        }
        self.0[place].get_or_insert_with(|| Box::new(new()))
    }

    /// All values, in the order of columns, then of rows.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().filter_map(Option::as_deref)
    }

    /// As [`ByTile::values`].
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().filter_map(Option::as_deref_mut)
    }
}

/// A value for each request that is under way: by NIU in the order of their numbers, few for each.
#[derive(Clone, Debug)]
pub(crate) struct ByRequest<T>(Vec<Vec<(RequestId, T)>>);

impl<T> Default for ByRequest<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByRequest<T> {
    #[inline]
    fn find(&self, id: RequestId) -> Option<usize> {
        self.0.get(id.niu())?.binary_search_by_key(&id, |(id, _)| *id).ok()
    }

    pub(crate) fn insert(&mut self, id: RequestId, value: T) {
        if self.0.len() <= id.niu() {
            self.0.resize_with(id.niu() + 1, Vec::new);
        }
        let of_niu = &mut self.0[id.niu()];
        match of_niu.binary_search_by_key(&id, |(id, _)| *id) {
            Ok(at) => of_niu[at].1 = value,
            Err(at) => of_niu.insert(at, (id, value)),
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: RequestId) -> Option<&T> {
        self.find(id).map(|at| &self.0[id.niu()][at].1)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut T> {
        self.find(id).map(|at| &mut self.0[id.niu()][at].1)
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<T> {
        self.find(id).map(|at| self.0[id.niu()].remove(at).1)
    }
}
