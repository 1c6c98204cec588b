//! Sub-devices: sets of workers with counters of their own, as tt-metal has them.
//!
//! A program runs on the sub-device that holds all its cores. Programs of one sub-device and one
//! queue run one after the other; those of two sub-devices at the same time, on one queue or on
//! two. Workers report to stream `DONE_STREAM + i` of the queue that started them, where `i` is the
//! number of their sub-device. Until a set of sub-devices is loaded, all workers are sub-device 0.
//!
//! L1 stays one allocator for all sub-devices: a buffer has the same address on each of them.

use super::Device;
use crate::RuntimeError;
use std::collections::HashMap;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::WORKER_SEMS;
use tilework_abi::noc::NocXy;
use tilework_cq::DispatchCommand;
use tilework_cq::dispatch::NumWorkerSems;
use tilework_driver::HostLink;

/// Number of a sub-device among those that are loaded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct SubDeviceId(u8);

impl SubDeviceId {
    /// The only one of a device without sub-devices.
    pub const WHOLE: Self = Self(0);

    /// The sub-device with that number; none beyond the dispatcher's counters.
    pub const fn new(number: u8) -> Option<Self> {
        if (number as u32) < WORKER_SEMS { Some(Self(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its number as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// All that there can be.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).map_while(Self::new)
    }
}

impl std::fmt::Display for SubDeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A set of workers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubDevice {
    /// Its cores.
    pub cores: Vec<NocXy>,
}

/// Why sub-devices cannot be used so.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SubDeviceError {
    /// More than there are counters.
    #[error("{asked} sub-devices were asked for; a dispatcher counts for {WORKER_SEMS}")]
    TooMany {
        /// How many were asked for.
        asked: usize,
    },
    /// A sub-device without cores.
    #[error("sub-device {sub} has no cores")]
    Empty {
        /// The sub-device.
        sub: SubDeviceId,
    },
    /// A core that runs no programs.
    #[error("core {core} of sub-device {sub} is not a worker of this device")]
    NoWorker {
        /// The core.
        core: NocXy,
        /// The sub-device.
        sub: SubDeviceId,
    },
    /// A core that is in two of them.
    #[error("core {core} is in sub-device {first} and in sub-device {second}")]
    Shared {
        /// The core.
        core: NocXy,
        /// One of them.
        first: SubDeviceId,
        /// The other.
        second: SubDeviceId,
    },
    /// A program whose cores are not all in one of them.
    #[error("program {program:?} has {} and {}", place(.first), place(.second))]
    Across {
        /// The program.
        program: String,
        /// A core, and its sub-device if it is in one.
        first: (NocXy, Option<SubDeviceId>),
        /// A core elsewhere.
        second: (NocXy, Option<SubDeviceId>),
    },
    /// A program on cores that no sub-device has.
    #[error("program {program:?}: core {core} is in no sub-device")]
    Outside {
        /// The program.
        program: String,
        /// The core.
        core: NocXy,
    },
    /// A number that no loaded sub-device has.
    #[error("there is no sub-device {asked}; {loaded} are loaded")]
    Unknown {
        /// The number.
        asked: SubDeviceId,
        /// How many are loaded.
        loaded: usize,
    },
}

fn place((core, sub): &(NocXy, Option<SubDeviceId>)) -> String {
    match sub {
        Some(sub) => format!("core {core} of sub-device {sub}"),
        None => format!("core {core} of no sub-device"),
    }
}

/// The sub-devices of a device.
#[derive(Debug)]
pub(super) struct SubDevices {
    /// The sub-device of each core; empty while all workers are one.
    of: HashMap<NocXy, SubDeviceId>,
    count: usize,
    /// Those that events, transfers and finishing wait for.
    stall: Vec<SubDeviceId>,
    /// How often they were changed.
    division: u64,
}

impl Default for SubDevices {
    fn default() -> Self {
        Self { of: HashMap::new(), count: 1, stall: vec![SubDeviceId::WHOLE], division: 0 }
    }
}

impl SubDevices {
    /// These sets, if they are such.
    fn new(list: &[SubDevice], workers: &[NocXy]) -> Result<Self, SubDeviceError> {
        if list.len() > WORKER_SEMS as usize {
            return Err(SubDeviceError::TooMany { asked: list.len() });
        }
        let mut of = HashMap::new();
        for (sub, device) in SubDeviceId::all().zip(list) {
            if device.cores.is_empty() {
                return Err(SubDeviceError::Empty { sub });
            }
            for &core in &device.cores {
                if !workers.contains(&core) {
                    return Err(SubDeviceError::NoWorker { core, sub });
                }
                if let Some(first) = of.insert(core, sub) {
                    return Err(SubDeviceError::Shared { core, first, second: sub });
                }
            }
        }
        Ok(Self { of, count: list.len(), stall: SubDeviceId::all().take(list.len()).collect(), division: 0 })
    }

    /// The sub-device of a program on `cores`.
    pub(super) fn holding(&self, program: &str, cores: &[NocXy]) -> Result<SubDeviceId, SubDeviceError> {
        if self.of.is_empty() {
            return Ok(SubDeviceId::WHOLE);
        }
        let of = |core: &NocXy| (*core, self.of.get(core).copied());
        let Some(first) = cores.first().map(of) else { return Ok(SubDeviceId::WHOLE) };
        if let Some(second) = cores.iter().map(of).find(|other| other.1 != first.1) {
            return Err(SubDeviceError::Across { program: program.to_owned(), first, second });
        }
        first.1.ok_or_else(|| SubDeviceError::Outside { program: program.to_owned(), core: first.0 })
    }

    /// How often they were changed: what was made for others is not for these.
    pub(super) fn division(&self) -> u64 {
        self.division
    }

    /// Those that events, transfers and finishing wait for.
    pub(super) fn stall(&self) -> &[SubDeviceId] {
        &self.stall
    }
}

impl<C: HostLink> Device<C> {
    /// Divides the workers into sub-devices, from now on: waits until nothing is under way, and
    /// tells every dispatcher how many there are. Cores in none of them run no programs meanwhile.
    /// The stall group is all of them (tt-metal's `load_sub_device_manager`).
    ///
    /// # Errors
    /// Sets that cannot be; a device that stopped.
    pub fn load_sub_devices(&mut self, list: &[SubDevice]) -> Result<(), RuntimeError> {
        let sub_devices = SubDevices::new(list, &self.workers)?;
        self.change_sub_devices(sub_devices)
    }

    /// Makes all workers one again, when nothing is under way (tt-metal's
    /// `clear_loaded_sub_device_manager`).
    ///
    /// # Errors
    /// A device that stopped.
    pub fn clear_sub_devices(&mut self) -> Result<(), RuntimeError> {
        self.change_sub_devices(SubDevices::default())
    }

    /// How many sub-devices there are; one until they are loaded.
    pub fn sub_devices(&self) -> usize {
        self.sub_devices.count
    }

    /// Chooses the sub-devices that events, transfers and finishing wait for: programs of the
    /// others may still run when an event is reached, and what is read may not be theirs yet
    /// (tt-metal's `set_sub_device_stall_group`).
    ///
    /// # Errors
    /// A number that is not loaded; a device that stopped.
    pub fn set_sub_device_stall_group(&mut self, group: &[SubDeviceId]) -> Result<(), RuntimeError> {
        self.alive()?;
        let loaded = self.sub_devices.count;
        if let Some(&asked) = group.iter().find(|sub| sub.index() >= loaded) {
            return Err(SubDeviceError::Unknown { asked, loaded }.into());
        }
        self.sub_devices.stall = group.to_vec();
        Ok(())
    }

    /// Makes the stall group all sub-devices again.
    pub fn reset_sub_device_stall_group(&mut self) {
        self.sub_devices.stall = SubDeviceId::all().take(self.sub_devices.count).collect();
    }

    fn change_sub_devices(&mut self, sub_devices: SubDevices) -> Result<(), RuntimeError> {
        self.alive()?;
        self.finish_everything()?;
        let division = self.sub_devices.division + 1;
        self.sub_devices = SubDevices { division, ..sub_devices };
        let number = DispatchCommand::SetNumWorkerSems(NumWorkerSems { count: u32_of(self.sub_devices.count) });
        let queues: Vec<_> = self.queues().map(|queue| queue.id()).collect();
        for id in queues {
            let number = number.clone();
            self.on(id, |device| {
                device.with_queue(|queue, card, patience| queue.push(card, None, number, patience))?;
                device.finish_queue()
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sub(cores: &[(u8, u8)]) -> SubDevice {
        SubDevice { cores: cores.iter().map(|&(x, y)| NocXy::new(x, y)).collect() }
    }

    #[test]
    fn a_program_belongs_to_the_set_that_holds_its_cores() {
        let workers = sub(&[(1, 2), (2, 2), (3, 2), (4, 2)]).cores;
        let sets = SubDevices::new(&[sub(&[(1, 2), (3, 2)]), sub(&[(2, 2)])], &workers).unwrap();
        let holding = |cores: &[(u8, u8)]| sets.holding("p", &sub(cores).cores);
        assert_eq!(holding(&[(3, 2), (1, 2)]).map(SubDeviceId::number), Ok(0));
        assert_eq!(holding(&[(2, 2)]).map(SubDeviceId::number), Ok(1));
        let text = |cores: &[(u8, u8)]| holding(cores).unwrap_err().to_string();
        assert_eq!(
            text(&[(1, 2), (2, 2)]),
            "program \"p\" has core (1,2) of sub-device 0 and core (2,2) of sub-device 1"
        );
        assert_eq!(text(&[(4, 2)]), "program \"p\": core (4,2) is in no sub-device");
        assert!(SubDevices::default().holding("p", &workers).is_ok());
    }

    #[test]
    fn sets_that_cannot_be_are_named() {
        let workers = sub(&[(1, 2), (2, 2)]).cores;
        let refused = |list: &[SubDevice]| SubDevices::new(list, &workers).unwrap_err().to_string();
        assert_eq!(refused(&[sub(&[(1, 2)]), sub(&[])]), "sub-device 1 has no cores");
        assert_eq!(refused(&[sub(&[(9, 9)])]), "core (9,9) of sub-device 0 is not a worker of this device");
        assert_eq!(
            refused(&[sub(&[(1, 2)]), sub(&[(2, 2), (1, 2)])]),
            "core (1,2) is in sub-device 0 and in sub-device 1"
        );
        assert_eq!(refused(&vec![sub(&[(1, 2)]); 9]), "9 sub-devices were asked for; a dispatcher counts for 8");
    }
}
