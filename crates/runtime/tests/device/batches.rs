//! One call of `Device::run` with more programs than there are slots in the host region for their
//! times.

use crate::common::{empty, open};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::host;
use tilework_runtime::{BATCH_PROGRAMS, Cores, DeviceConfig, ProgramReport};

/// Core timing slots.
const SLOTS: usize = host::SLOTS as usize;

#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation; run with --release")]
fn a_run_of_more_programs_than_timestamp_slots_times_every_program() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let programs = vec![empty(Cores::Count(1)); 2050];
    assert_eq!((BATCH_PROGRAMS, programs.len() - BATCH_PROGRAMS), (2048, 2));
    let report = device.run(&programs).unwrap();
    assert_eq!((report.programs.len(), report.statistics.programs), (2050, 2050));
    let mut clock = 0;
    for (i, program) in report.programs.iter().enumerate() {
        let (Some(start), Some(end)) = (program.start, program.end) else { panic!("program {i}: {program:?}") };
        assert!(clock < start && start < end, "program {i} starts at {start} and ends at {end}, after {clock}");
        clock = end;
    }
    assert!(report.programs[0].start.is_some_and(|first| clock - first <= report.cycles.unwrap()));
}

/// Checks that all `cores` of a program have times, and that they lie between its timestamps.
fn assert_timed(program: &ProgramReport, cores: usize) {
    let (start, end) = (program.start.unwrap(), program.end.unwrap());
    assert_eq!(program.core_times.len(), cores, "{program:?}");
    for core in &program.core_times {
        assert!(start < core.start && core.start < core.end && core.end < end, "{program:?}");
    }
}

#[test]
fn without_slots_a_program_has_no_core_times_and_a_smaller_one_behind_it_has() {
    let mut device = open(DeviceConfig { core_timing: true, ..DeviceConfig::new(Board::P100) });
    let workers = device.workers().len();
    let (whole, rest) = (SLOTS / workers, SLOTS % workers);
    assert_eq!((whole, rest), (34, 84));
    // All workers until the slots are used up, then the rest to the last slot, then one core too
    // many.
    let mut programs = vec![empty(Cores::All); whole + 2];
    programs.extend([empty(Cores::Count(rest)), empty(Cores::Count(1)), empty(Cores::All)]);
    // The slots are dealt out anew for each run: nothing of the first is seen in the second.
    for _ in 0..2 {
        let report = device.run(&programs).unwrap();
        let (timed, untimed) = report.programs.split_at(whole);
        timed.iter().for_each(|program| assert_timed(program, workers));
        assert_timed(&untimed[2], rest);
        for i in [0, 1, 3, 4] {
            assert_eq!(untimed[i].core_times, [], "program {}", whole + i);
            assert!(untimed[i].cycles().is_some_and(|cycles| cycles > 0));
        }
    }
}
