//! The programs in a queue that are not known to have ended.

use super::Running;
use std::collections::VecDeque;
use std::rc::Rc;
use tilework_abi::addr::Cycle;
use tilework_abi::convert::usize_of;

/// What one call puts into a queue: a program, or those of a trace, whose ends the host is told
/// together. Replays of a trace share its programs.
#[derive(Clone, Debug)]
pub(super) struct Flight {
    programs: Rc<[Running]>,
    /// How often they are launched, all of them together.
    launches: u64,
    /// Cycles that the usual budget has for all launches.
    cycles: Cycle,
}

impl Flight {
    pub(super) fn new(programs: Rc<[Running]>) -> Self {
        let launches = programs.iter().map(|running| running.launches).sum();
        let cycles = programs.iter().map(Running::usual_cycles).sum();
        Self { programs, launches, cycles }
    }

    pub(super) fn programs(&self) -> &[Running] {
        &self.programs
    }
}

impl From<Running> for Flight {
    fn from(running: Running) -> Self {
        Self::new(Rc::new([running]))
    }
}

/// The account of a queue.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Oldest first.
    flights: VecDeque<Flight>,
    /// The number in the queue of the oldest program, and how many there are.
    first: u64,
    count: usize,
    /// Cycles that the usual budget has for all of them.
    cycles: Cycle,
}

impl InFlight {
    /// Something is put into the queue.
    pub(super) fn push(&mut self, flight: Flight) {
        if flight.programs.is_empty() {
            return;
        }
        self.count += flight.programs.len();
        // More programs than memory holds would be needed to pass the end of the count.
        self.cycles += flight.cycles;
        self.flights.push_back(flight);
    }

    /// Forgets what has ended when the first `completed` programs of the queue have; returns how
    /// many launches those were.
    pub(super) fn end(&mut self, completed: u64) -> u64 {
        let mut launches = 0;
        while self.first < completed
            && let Some(flight) = self.flights.pop_front()
        {
            self.first += flight.programs.len() as u64;
            self.count -= flight.programs.len();
            self.cycles -= flight.cycles;
            launches += flight.launches;
        }
        launches
    }

    /// The number of the oldest program.
    pub(super) fn first(&self) -> usize {
        usize_of(self.first)
    }

    /// Number of programs.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Cycles that the usual budget has for all of them.
    pub(super) fn cycles(&self) -> Cycle {
        self.cycles
    }

    /// The programs, oldest first, for a report.
    pub(super) fn programs(&self) -> Vec<Running> {
        self.flights.iter().flat_map(|flight| flight.programs.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::kernel_of;
    use crate::memory::Allocator;
    use crate::program::{Cores, Program, Role};
    use std::sync::Arc;
    use tilework_abi::addr::L1Addr;
    use tilework_abi::l1::WORKER;
    use tilework_abi::noc::NocXy;
    use tilework_abi::tensix::Processor;

    fn running(name: &str, launches: u64) -> Running {
        let program = Program::new(name, Cores::All)
            .role(Role::all().kernel(Processor::Brisc, kernel_of(&[0x13], Processor::Brisc)));
        let l1 = Allocator::new("L1", L1Addr::new(0x37000)..L1Addr::new(0x18_0000), 64);
        let layout = program.layout(&[NocXy::new(1, 2)], &WORKER, &l1).unwrap();
        Running::new(Arc::new(program), Arc::new(layout)).launched(launches)
    }

    #[test]
    fn a_trace_ends_whole_and_is_counted_by_its_launches() {
        let mut in_flight = InFlight::default();
        let trace = Flight::new(Rc::new([running("a", 3), running("b", 2)]));
        in_flight.push(running("first", 1).into());
        in_flight.push(trace.clone());
        in_flight.push(Flight::new(Rc::new([])));
        in_flight.push(trace);
        in_flight.push(running("last", 1).into());
        let names = |in_flight: &InFlight| {
            in_flight.programs().iter().map(|running| running.program.name.clone()).collect::<Vec<_>>().join(" ")
        };
        let all = in_flight.cycles();
        assert_eq!((names(&in_flight).as_str(), in_flight.first(), in_flight.count()), ("first a b a b last", 0, 6));
        assert_eq!(in_flight.end(0), 0);
        assert_eq!(in_flight.end(3), 6);
        assert_eq!((names(&in_flight).as_str(), in_flight.first(), in_flight.count()), ("a b last", 3, 3));
        assert_eq!(in_flight.end(6), 6);
        assert_eq!((in_flight.first(), in_flight.count(), in_flight.cycles()), (6, 0, 0));
        assert_eq!(in_flight.end(7), 0);
        assert!(all > 0);
    }
}
