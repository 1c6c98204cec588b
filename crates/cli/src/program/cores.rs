//! Which cores each role takes.

use super::schema::{CoreItem, Cores};
use crate::board_option::BoardLayout;
use tilework_abi::noc::NocXy;

/// One role's choice, with the name that messages use.
pub struct Choice<'a> {
    /// The role's name.
    pub role: &'a str,
    /// What the file says.
    pub cores: &'a Cores,
}

/// A choice that cannot be met: the role's position and the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct CoreError {
    /// Position of the role.
    pub role: usize,
    /// What was found and what was expected.
    pub message: String,
}

/// Gives each role its cores. Lists are served first, then counts in the order of the file from the
/// workers left in board order, then `rest`. No core belongs to two roles that run `together`; a
/// role that runs alone takes its cores as if there were no other.
pub fn assign(
    board: impl Into<BoardLayout>,
    choices: &[Choice<'_>],
    together: impl Fn(usize, usize) -> bool,
) -> Result<Vec<Vec<NocXy>>, CoreError> {
    let board = board.into();
    let workers = board.workers();
    let cores = vec![Vec::new(); choices.len()];
    let mut taken = Taken { board, choices, cores, workers: &workers, together: &together };
    for (role, choice) in choices.iter().enumerate() {
        match choice.cores {
            Cores::All => taken.add(role, &workers)?,
            Cores::List(items) => taken.list(role, items)?,
            Cores::Count(_) | Cores::Rest => {}
        }
    }
    for (role, choice) in choices.iter().enumerate() {
        if let Cores::Count(count) = choice.cores {
            let free = taken.free(role);
            let count =
                usize::try_from(*count).ok().filter(|&n| n >= 1 && n <= free.len()).ok_or_else(|| CoreError {
                    role,
                    message: format!(
                        "role \"{}\" wants {count} cores; a {} has {} workers, of which {} are free",
                        choice.role,
                        board.board.name(),
                        workers.len(),
                        free.len()
                    ),
                })?;
            taken.add(role, &free[..count])?;
        }
    }
    for (role, choice) in choices.iter().enumerate() {
        if *choice.cores == Cores::Rest {
            taken.add(role, &taken.free(role))?;
        }
    }
    match taken.cores.iter().position(Vec::is_empty) {
        Some(role) => Err(CoreError { role, message: format!("role \"{}\" has no cores", choices[role].role) }),
        None => Ok(taken.cores),
    }
}

struct Taken<'a> {
    board: BoardLayout,
    choices: &'a [Choice<'a>],
    cores: Vec<Vec<NocXy>>,
    workers: &'a [NocXy],
    together: &'a dyn Fn(usize, usize) -> bool,
}

impl Taken<'_> {
    /// The workers that no role has which runs together with this one.
    fn free(&self, role: usize) -> Vec<NocXy> {
        self.workers.iter().copied().filter(|&core| self.owner(role, core).is_none()).collect()
    }

    /// The role that keeps another from a core: itself, or one that runs together with it.
    fn owner(&self, role: usize, core: NocXy) -> Option<usize> {
        let meet = |other: usize| other == role || (self.together)(role, other);
        (0..self.cores.len()).find(|&other| meet(other) && self.cores[other].contains(&core))
    }

    fn add(&mut self, role: usize, cores: &[NocXy]) -> Result<(), CoreError> {
        for &core in cores {
            if let Some(owner) = self.owner(role, core) {
                let message = format!(
                    "core ({}, {}) of role \"{}\" already belongs to role \"{}\"",
                    core.x, core.y, self.choices[role].role, self.choices[owner].role
                );
                return Err(CoreError { role, message });
            }
            self.cores[role].push(core);
        }
        Ok(())
    }

    fn list(&mut self, role: usize, items: &[CoreItem]) -> Result<(), CoreError> {
        for item in items {
            match *item {
                CoreItem::One(xy) => {
                    let core = self.worker(role, xy)?;
                    self.add(role, &[core])?;
                }
                CoreItem::Rectangle(a, b) => {
                    let (a, b) = (self.worker(role, a)?, self.worker(role, b)?);
                    let (xs, ys) = (a.x.min(b.x)..=a.x.max(b.x), a.y.min(b.y)..=a.y.max(b.y));
                    let inside: Vec<_> =
                        self.workers.iter().copied().filter(|c| xs.contains(&c.x) && ys.contains(&c.y)).collect();
                    self.add(role, &inside)?;
                }
            }
        }
        Ok(())
    }

    fn worker(&self, role: usize, [x, y]: [u64; 2]) -> Result<NocXy, CoreError> {
        let found = self.workers.iter().copied().find(|c| (u64::from(c.x), u64::from(c.y)) == (x, y));
        found.ok_or_else(|| {
            let name = self.choices[role].role;
            let BoardLayout { board, chosen, .. } = self.board;
            let dispatch = self.board.dispatch();
            let columns: Vec<_> = board.worker_columns().iter().map(u8::to_string).collect();
            let is = |core: NocXy| (u64::from(core.x), u64::from(core.y)) == (x, y);
            let why = match dispatch.tiles(board).find(|&(_, tile, _)| is(tile)) {
                Some((_, _, parts)) => format!("runs the {}", parts[0].name()),
                None if chosen.is_some() && dispatch.workers(board).any(is) => {
                    let message = format!("core ({x}, {y}) of role \"{name}\" is none of the program's workers");
                    return CoreError { role, message };
                }
                None => "is not on the board".to_owned(),
            };
            let queue: Vec<_> = dispatch.tiles(board).map(|(_, tile, _)| format!("({}, {})", tile.x, tile.y)).collect();
            let (last, others) = queue.split_last().expect("every layout has tiles");
            let message = format!(
                "core ({x}, {y}) of role \"{}\" {why}; the workers of a {} have x in {{{}}} and y from {} to {}, without {} and {last}",
                name,
                board.name(),
                columns.join(", "),
                tilework_abi::board::WORKER_Y_FIRST,
                tilework_abi::board::WORKER_Y_LAST,
                others.join(", ")
            );
            CoreError { role, message }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::board::Board;

    fn assign_all(board: Board, cores: &[Cores]) -> Result<Vec<Vec<NocXy>>, String> {
        let names = ["a", "b", "c", "d"];
        let choices: Vec<_> = cores.iter().zip(names).map(|(cores, role)| Choice { role, cores }).collect();
        assign(board, &choices, |_, _| true).map_err(|e| e.message)
    }

    #[test]
    fn all_is_every_worker_of_the_board() {
        assert_eq!(assign_all(Board::P100, &[Cores::All]).unwrap()[0].len(), 118);
        assert_eq!(assign_all(Board::P150, &[Cores::All]).unwrap()[0].len(), 138);
    }

    #[test]
    fn counts_take_what_lists_leave() {
        let list = Cores::List(vec![CoreItem::One([1, 3])]);
        let cores = assign_all(Board::P100, &[Cores::Count(2), list, Cores::Rest]).unwrap();
        assert_eq!(cores[0], [NocXy::new(1, 2), NocXy::new(1, 4)]);
        assert_eq!(cores[1], [NocXy::new(1, 3)]);
        assert_eq!(cores[2].len(), 115);
    }

    #[test]
    fn roles_that_do_not_run_together_share_cores() {
        let list = Cores::List(vec![CoreItem::Rectangle([1, 2], [1, 5])]);
        let all = [Cores::Count(2), list, Cores::Rest, Cores::Count(3)];
        let choices: Vec<_> = all.iter().map(|cores| Choice { role: "r", cores }).collect();
        // 0 and 2 run together, 1 and 3 each alone.
        let cores = assign(Board::P100, &choices, |a, b| a == b || a + b == 2 && a != 1).unwrap();
        assert_eq!(cores[0], [NocXy::new(1, 2), NocXy::new(1, 3)]);
        assert_eq!((cores[1].len(), cores[2].len()), (4, 116));
        assert_eq!(cores[3], [NocXy::new(1, 2), NocXy::new(1, 3), NocXy::new(1, 4)]);
        assert!(!cores[2].contains(&cores[0][0]) && cores[2].contains(&NocXy::new(1, 4)));
    }

    #[test]
    fn a_rectangle_leaves_out_columns_without_workers() {
        let cores = assign_all(Board::P100, &[Cores::List(vec![CoreItem::Rectangle([10, 3], [7, 2])])]).unwrap();
        assert_eq!(cores[0], [NocXy::new(7, 2), NocXy::new(7, 3), NocXy::new(10, 2), NocXy::new(10, 3)]);
    }

    #[test]
    fn what_cannot_be_met_is_refused() {
        let one = |x, y| Cores::List(vec![CoreItem::One([x, y])]);
        let refused = |cores: &[Cores], reason: &str| {
            let message = assign_all(Board::P100, cores).unwrap_err();
            assert!(message.contains(reason), "{message}\nexpected: {reason}");
        };
        refused(&[one(8, 2)], "core (8, 2) of role \"a\" is not on the board; the workers of a p100 have x in {1, 2,");
        refused(&[one(15, 2)], "is not on the board");
        refused(&[one(1, 99)], "core (1, 99)");
        refused(&[one(14, 2)], "runs the prefetcher");
        refused(&[one(14, 3)], "runs the dispatcher");
        refused(&[one(1, 2), one(1, 2)], "core (1, 2) of role \"b\" already belongs to role \"a\"");
        refused(&[Cores::All, Cores::Count(1)], "wants 1 cores; a p100 has 118 workers, of which 0 are free");
        refused(&[Cores::Count(0)], "wants 0 cores");
        refused(&[Cores::Count(119)], "wants 119 cores");
        refused(&[Cores::All, Cores::Rest], "role \"b\" has no cores");
        refused(&[Cores::List(vec![])], "role \"a\" has no cores");
    }
}
