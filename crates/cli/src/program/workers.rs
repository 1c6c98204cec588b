//! The part of a board that a program may use: `workers`.

use super::check::Planner;
use super::schema::{CoreItem, ProgramFile};
use crate::board_option::BoardLayout;
use crate::failure::Outcome;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_runtime::WorkerCores;
use tilework_runtime::memory::CoreGrid;

impl Planner<'_> {
    /// The board with the queues that the steps name and the workers that the file chooses; all of
    /// them if it does not, or if its choice is wrong.
    pub(super) fn workers(&mut self, file: &ProgramFile) -> BoardLayout {
        self.board.queues = file.queues();
        let Some(items) = &file.workers else { return self.board };
        let chosen = self.chosen(items.get_ref(), &items.span());
        BoardLayout { chosen: self.wrong.keep(chosen), ..self.board }
    }

    fn chosen(&self, items: &[CoreItem], span: &Range<usize>) -> Outcome<WorkerCores> {
        let (workers, grid) = (self.board.workers(), CoreGrid::new(self.board.board));
        let mut tiles = Vec::new();
        for &item in items {
            let (a, b) = match item {
                CoreItem::One(core) => (core, core),
                CoreItem::Rectangle(a, b) => (a, b),
            };
            let (a, b) = (self.corner(a, &workers, span)?, self.corner(b, &workers, span)?);
            let (xs, ys) = (a.x.min(b.x)..=a.x.max(b.x), a.y.min(b.y)..=a.y.max(b.y));
            tiles.extend(workers.iter().filter(|tile| xs.contains(&tile.x) && ys.contains(&tile.y)));
        }
        let cores = tiles.into_iter().filter_map(|&tile| grid.core(tile));
        WorkerCores::of(cores).or_else(|error| self.fail(span.clone(), error))
    }

    /// A corner of a rectangle: a worker of the board.
    fn corner(&self, [x, y]: [u64; 2], workers: &[NocXy], span: &Range<usize>) -> Outcome<NocXy> {
        let is = |tile: NocXy| (u64::from(tile.x), u64::from(tile.y)) == (x, y);
        if let Some(tile) = workers.iter().copied().find(|&tile| is(tile)) {
            return Ok(tile);
        }
        let board = self.board.board;
        let why = match self.board.dispatch().tiles(board).find(|&(_, tile, _)| is(tile)) {
            Some((_, _, parts)) => format!("runs the {}", parts[0].name()),
            None => format!("is no Tensix tile of a {0}; \"tilework board {0}\" shows them", board.name()),
        };
        self.fail(span.clone(), format!("workers: ({x}, {y}) {why}"))
    }
}
