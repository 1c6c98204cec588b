//! One corrupted byte in a record, at every position of its headers: the right result, or an error
//! with a name. What no one on the chip can know to be wrong is listed field by field.

use crate::rig::Rig;
use std::fmt::Write as _;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{PAGE_SIZE, QueueId, host};
use tilework_abi::cq::status::{Fault, Kernel, decode_error, word};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_cq::completion::{CompletionHeader, read_event};
use tilework_cq::dispatch::{LinearWrite, PackedTargets, PackedWrite, Packets};
use tilework_cq::{DispatchCommand, Record};
use tilework_driver::{DriverError, LinkError};

/// Cycles in which an undisturbed command is done many times over.
const PATIENCE: u64 = 2_000_000;
/// Where the data goes.
const ADDR: u32 = 0x40_000;
/// The event behind the command.
const EVENT: u32 = 0x7777;

/// What came of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// What the command says.
    Right,
    /// Something else, and nobody says so.
    Silent,
    /// A kernel stopped with its error word.
    Stopped(Kernel, Fault),
    /// Everything waits: reported at once, with who waits for what.
    Deadlock,
    /// The chip found an access that cannot be.
    Fault,
    /// The host read a completion page that is none.
    Completion,
    /// The dispatcher is still at work when the budget is used up.
    Budget,
}

/// Sends a record and an event to a queue, and waits.
fn outcome(queue: QueueId, record: &[u8], expected: &dyn Fn(&Rig) -> bool) -> Outcome {
    let mut rig = Rig::boot_on(Board::P100, DispatchLayout::Dispatcher, queue);
    let at = u64::from(host::CQ_WR.offset());
    let mut seen = rig.region.read32(rig.card.link_mut(), at).unwrap();
    rig.record(record, None);
    rig.record(Record::dispatch(&DispatchCommand::host_event(EVENT)).unwrap().bytes(), None);
    let mut page = 0;
    let budget = rig.card.link().now() + PATIENCE;
    loop {
        let left = budget.saturating_sub(rig.card.link().now());
        match rig.region.wait_change(rig.card.link_mut(), at, seen, left) {
            Ok(word) => seen = word,
            Err(DriverError::Link(LinkError::Deadlock { .. })) => return stopped(&rig).unwrap_or(Outcome::Deadlock),
            Err(DriverError::Link(LinkError::Fault(_))) => return Outcome::Fault,
            Err(DriverError::Link(LinkError::Budget { .. })) => return Outcome::Budget,
            Err(error) => panic!("{error}"),
        }
        let ready = rig.ready_pages();
        while page < ready {
            let mut bytes = [0; PAGE_SIZE as usize];
            let offset = host::COMPLETION.offset() + page * PAGE_SIZE;
            rig.region.read(rig.card.link_mut(), offset.into(), &mut bytes).unwrap();
            if CompletionHeader::parse(&bytes).is_err() {
                return Outcome::Completion;
            }
            if read_event(&bytes) == Ok(EVENT) {
                // The subordinate may have been sent something.
                rig.card.link_mut().run(20_000).unwrap();
                let right = page == 0 && expected(&rig);
                return stopped(&rig).unwrap_or(if right { Outcome::Right } else { Outcome::Silent });
            }
            page += 1;
        }
    }
}

/// The first kernel that has stopped.
fn stopped(rig: &Rig) -> Option<Outcome> {
    let errors = Kernel::ALL.map(|kernel| decode_error(rig.status(kernel, word::ERROR)));
    errors.into_iter().flatten().next().map(|(kernel, fault)| Outcome::Stopped(kernel, fault))
}

/// Checks every byte of the first `headers` of a command's record on a queue, two corruptions each.
/// `silent` names the bytes that may lead to a wrong result without an error, and why.
fn check(
    queue: QueueId,
    command: &DispatchCommand,
    headers: usize,
    silent: &[(std::ops::Range<usize>, &str)],
    worker: NocXy,
    data: &[u8],
) {
    let expected = |rig: &Rig| rig.card.link().l1(worker).unwrap()[ADDR as usize..][..data.len()] == *data;
    let record = Record::dispatch(command).unwrap().bytes().to_vec();
    assert_eq!(outcome(queue, &record, &expected), Outcome::Right);
    let (mut text, mut told, mut wrong) = (String::new(), 0, Vec::new());
    for at in 0..headers {
        for mask in [0x01, 0x90] {
            let mut record = record.clone();
            record[at] ^= mask;
            let found = outcome(queue, &record, &expected);
            writeln!(text, "byte {at:2} ^ {mask:#04x}: {found:?}").unwrap();
            told += u32::from(!matches!(found, Outcome::Right | Outcome::Silent));
            if found == Outcome::Silent && !silent.iter().any(|(bytes, _)| bytes.contains(&at)) {
                wrong.push(at);
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "queue {queue}: a wrong result without an error for a corrupted byte at {wrong:?}:\n{text}"
    );
    assert!(told >= 8, "only {told} corruptions were told:\n{text}");
}

/// `RELAY_INLINE`, in front of every command.
const RELAY: usize = 16;

#[test]
fn a_corrupted_byte_in_a_linear_write_is_told() {
    let worker = Board::P100.workers().nth(17).unwrap();
    let data: Vec<u8> = (1..=64).collect();
    let command = DispatchCommand::WriteLinear(LinearWrite {
        num_mcast_dests: 0,
        write_offset_index: 0,
        noc_xy: worker.encode(),
        addr: ADDR.into(),
        data: data.clone(),
    });
    let silent = [
        (RELAY + 4..RELAY + 8, "the tile"),
        (RELAY + 8..RELAY + 16, "the address"),
        (RELAY + 16..RELAY + 18, "the length, while the page holds so much"),
    ];
    QueueId::ALL.into_iter().for_each(|queue| check(queue, &command, RELAY + 32, &silent, worker, &data));
}

#[test]
fn a_corrupted_byte_in_a_packed_write_is_told() {
    let worker = Board::P100.workers().nth(17).unwrap();
    let data: Vec<u8> = (1..=64).collect();
    let command = DispatchCommand::WritePacked(PackedWrite {
        kind: Default::default(),
        write_offset_index: 0,
        addr: ADDR,
        targets: PackedTargets::Unicast(vec![worker.encode()]),
        packets: Packets::Shared(data.clone()),
    });
    let silent = [
        (RELAY..RELAY + 1, "the command, when another takes the same fields"),
        (RELAY + 6..RELAY + 8, "the size, while the page holds so much"),
        (RELAY + 8..RELAY + 12, "the address"),
        (RELAY + 16..RELAY + 20, "the tile"),
    ];
    QueueId::ALL.into_iter().for_each(|queue| check(queue, &command, RELAY + 20, &silent, worker, &data));
}
