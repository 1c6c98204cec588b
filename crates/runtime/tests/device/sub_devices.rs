//! Sub-devices: sets of workers with counters of their own, on one queue and on two.

use crate::common::{Device, empty, kernel};
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::Lowering;
use tilework_runtime::{
    ArgSet, Blocking, Cores, DType, DeviceConfig, Dispatch, Program, QueueId, Role, RuntimeError, SubDevice,
    SubDeviceId, UniqueArgs,
};

fn config(queues: u8) -> DeviceConfig {
    DeviceConfig { queues, ..DeviceConfig::new(Board::P100) }
}

/// The kernel `busy` for `steps` steps, whose result goes to `address`.
fn busy(name: &str, cores: &[NocXy], steps: u32, address: u32) -> Program {
    Program::new(name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, address]))
}

/// What `busy` writes.
fn result(steps: u32) -> u32 {
    (0..steps).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}

/// Three sets of ten workers.
fn sets(device: &Device) -> Vec<SubDevice> {
    device.workers()[..30].chunks(10).map(|cores| SubDevice { cores: cores.to_vec() }).collect()
}

fn word(device: &mut Device, tile: NocXy, address: u32) -> u32 {
    let mut bytes = [0; 4];
    device.read_l1(tile, tilework_abi::addr::L1Addr::new(address), &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

fn sub(number: u8) -> SubDeviceId {
    SubDeviceId::new(number).unwrap()
}

/// Programs of three sub-devices of one queue run at the same time; those of one after the other.
#[test]
fn programs_on_different_sub_devices_of_one_queue_run_at_the_same_time() {
    DispatchLayout::ALL.into_iter().for_each(at_the_same_time);
}

fn at_the_same_time(layout: DispatchLayout) {
    let mut cycles = Vec::new();
    for apart in [false, true] {
        let mut device = crate::common::open(DeviceConfig { layout, ..config(1) });
        let sets = sets(&device);
        if apart {
            device.load_sub_devices(&sets).unwrap();
            assert_eq!(device.sub_devices(), 3);
        }
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let start = device.chip().now();
        for round in 0..3 {
            for (i, set) in (0..).zip(&sets) {
                let program = busy(&format!("busy{i}"), &set.cores, 5_000 + 100 * round + i, out);
                device.enqueue_program(&program, Blocking::No).unwrap();
            }
        }
        device.finish().unwrap();
        cycles.push(device.chip().now() - start);
        for (i, set) in (0..).zip(&sets) {
            for &core in &set.cores {
                assert_eq!(word(&mut device, core, out), result(5_200 + i), "{core} of {i}");
            }
        }
        assert_eq!(device.statistics().programs, 9);
        // The workers are one again.
        device.clear_sub_devices().unwrap();
        device.run(&[empty(Cores::All)]).unwrap();
        device.close().unwrap();
    }
    println!("{layout}: one after the other {} cycles, at the same time {}", cycles[0], cycles[1]);
    assert!(10 * cycles[1] < 5 * cycles[0], "{layout}: {cycles:?}");
}

/// Each queue on a sub-device of its own needs no events; on the other's it does. All ways give the
/// same words.
#[test]
fn two_queues_use_sub_devices_side_by_side() {
    let plain = DeviceConfig { lowering: Lowering::Plain, ..config(2) };
    let slow = DeviceConfig { dispatch: Dispatch::Slow, ..config(2) };
    let layouts = DispatchLayout::ALL.map(|layout| DeviceConfig { layout, ..config(2) });
    for config in layouts.into_iter().chain([plain, slow]) {
        let mut device = crate::common::open(config);
        let sets = sets(&device);
        device.load_sub_devices(&sets).unwrap();
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        for steps in [900, 300, 600] {
            for id in QueueId::ALL {
                let program = busy("side", &sets[id.index()].cores, steps + u32::from(id.number()), out);
                device.on_queue(id).unwrap().enqueue_program(&program, Blocking::No).unwrap();
            }
        }
        let over = busy("over", &sets[0].cores[..4], 77, out);
        let mut second = device.on_queue(QueueId::SECOND).unwrap();
        if config.dispatch == Dispatch::Fast {
            let refused = second.enqueue_program(&over, Blocking::No).unwrap_err();
            assert!(matches!(refused, RuntimeError::Unordered { .. }), "{refused}");
        }
        let event = device.record_event().unwrap();
        let mut second = device.on_queue(QueueId::SECOND).unwrap();
        second.wait_for_event(&event).unwrap();
        second.enqueue_program(&over, Blocking::No).unwrap();
        device.finish().unwrap();
        let expected = [(sets[0].cores[3], 77), (sets[0].cores[4], 600), (sets[1].cores[0], 601)];
        for (core, steps) in expected {
            assert_eq!(word(&mut device, core, out), result(steps), "{core}");
        }
        device.close().unwrap();
    }
}

/// What the stall group leaves out, events and reads do not wait for.
#[test]
fn events_wait_for_the_stall_group_alone() {
    let mut device = crate::common::open(config(1));
    let sets = sets(&device);
    device.load_sub_devices(&sets).unwrap();
    let out = device.alloc_l1("out", 64).unwrap().address.get();
    let buffer = device.alloc_dram("x", &[4096], DType::U8, 1024).unwrap();
    device.set_sub_device_stall_group(&[sub(0), sub(2)]).unwrap();
    let long = busy("long", &sets[1].cores, 60_000, out);
    device.enqueue_program(&long, Blocking::No).unwrap();
    device.enqueue_program(&busy("short", &sets[0].cores, 100, out), Blocking::No).unwrap();
    let start = device.chip().now();
    device.upload(&buffer, &[6; 4096]).unwrap();
    let event = device.record_event().unwrap();
    assert!(device.event_synchronize(&event).unwrap() < start + 60_000);
    assert_eq!(word(&mut device, sets[0].cores[9], out), result(100));
    device.finish().unwrap();
    assert_ne!(word(&mut device, sets[1].cores[9], out), result(60_000), "it still runs");
    device.reset_sub_device_stall_group();
    device.finish().unwrap();
    assert_eq!(word(&mut device, sets[1].cores[9], out), result(60_000));
    let unknown = device.set_sub_device_stall_group(&[sub(3)]).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no sub-device 3; 3 are loaded");
}

/// A program across two sub-devices, or on none, is refused; a run too; the device works on.
#[test]
fn programs_that_no_sub_device_holds_are_refused() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = crate::common::open(DeviceConfig { dispatch, ..config(1) });
        let sets = sets(&device);
        device.load_sub_devices(&sets).unwrap();
        let outside = device.workers()[40];
        let (a, b) = (sets[0].cores[0], sets[1].cores[0]);
        let across = empty(Cores::List(vec![a, b]));
        let expected = format!("program \"empty\" has core {a} of sub-device 0 and core {b} of sub-device 1");
        assert_eq!(device.enqueue_program(&across, Blocking::No).unwrap_err().to_string(), expected);
        assert_eq!(device.run(&[across]).unwrap_err().to_string(), expected);
        let nowhere = device.run(&[empty(Cores::List(vec![outside]))]).unwrap_err();
        assert_eq!(nowhere.to_string(), format!("program \"empty\": core {outside} is in no sub-device"));
        let report = device.run(&[empty(Cores::List(vec![a])), empty(Cores::List(vec![b]))]).unwrap();
        assert_eq!(report.programs.len(), 2);
        let twice = device.load_sub_devices(&[sets[0].clone(), sets[0].clone()]).unwrap_err();
        assert!(twice.to_string().contains("is in sub-device 0 and in sub-device 1"), "{twice}");
    }
}

/// Sets that change while programs are under way change behind them; the counters of each start at
/// nothing, and many rounds leave the account of L1 right.
#[test]
fn sub_devices_change_between_programs() {
    let mut device = crate::common::open(config(2));
    let out = device.alloc_l1("out", 64).unwrap().address.get();
    for round in 1..=6u32 {
        let size = 3 * round as usize;
        let sets: Vec<SubDevice> =
            device.workers()[..4 * size].chunks(size).map(|cores| SubDevice { cores: cores.to_vec() }).collect();
        device.load_sub_devices(&sets).unwrap();
        for again in 0..3 {
            for (i, set) in (0u32..).zip(&sets) {
                let id = QueueId::ALL[i as usize % 2];
                let program = busy(&format!("p{}", i % 3), &set.cores, 50 * round + 7 * again + i, out);
                device.on_queue(id).unwrap().enqueue_program(&program, Blocking::No).unwrap();
            }
        }
        device.clear_sub_devices().unwrap();
        for (i, set) in (0u32..).zip(&sets) {
            for &core in &set.cores {
                assert_eq!(word(&mut device, core, out), result(50 * round + 14 + i), "round {round}, {core}");
            }
        }
    }
    device.finish().unwrap();
}
