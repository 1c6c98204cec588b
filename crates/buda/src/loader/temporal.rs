//! Which graphs share a temporal epoch.
//!
//! Linked graphs always do. Except on Grayskull, a graph also joins the epoch executed before it if
//! the two have no device in common (tt-budabackend, `netlist/netlist_workload_data.cpp`): the
//! programs are traversed once in the order of the file, ignoring other instructions, and an epoch
//! grows while the next graph fits. So the numbering depends on the netlist only; whether the
//! commands of such graphs are also written together is decided when they are executed.

use crate::epoch::plan::Plan;
use std::collections::{BTreeMap, BTreeSet};
use tilework_netlist::types::{Arch, GraphId, InstructionKind, Netlist};

/// The temporal epoch of each graph, numbered in the order of the netlist.
pub fn epochs(netlist: &Netlist, plan: &Plan, arch: Arch) -> Vec<usize> {
    let linked = |graph| plan.group_of(GraphId(graph));
    let mut into: Vec<usize> = (0..plan.groups()).collect();
    if arch != Arch::Grayskull {
        let device = |graph: &GraphId| netlist.graph(*graph).target_device;
        let mut devices: Vec<BTreeSet<u32>> =
            into.iter().map(|group| plan.group(*group).iter().map(device).collect()).collect();
        let mut members: Vec<Vec<usize>> = into.iter().map(|group| vec![*group]).collect();
        let instructions = netlist.programs.iter().flat_map(|program| &program.instructions);
        let executed = instructions.filter_map(|instruction| match &instruction.kind {
            InstructionKind::Execute { graph, .. } => Some(graph.0),
            _ => None,
        });
        let mut last: Option<usize> = None;
        for group in executed.map(linked) {
            let this = into[group];
            last = Some(match last {
                Some(last) if last != this && devices[last].is_disjoint(&devices[this]) => {
                    let (on, more) = (std::mem::take(&mut devices[this]), std::mem::take(&mut members[this]));
                    more.iter().for_each(|group| into[*group] = last);
                    devices[last].extend(on);
                    members[last].extend(more);
                    last
                }
                _ => this,
            });
        }
    }
    let numbers: BTreeSet<usize> = into.iter().copied().collect();
    let numbers: BTreeMap<usize, usize> =
        numbers.into_iter().enumerate().map(|(number, epoch)| (epoch, number)).collect();
    (0..netlist.graphs.len()).map(|graph| numbers[&into[linked(graph)]]).collect()
}
