//! Known differences, with the reason why ours stays. Each run counts and prints them;
//! `docs/diff.md` explains them.

use tilework_abi::noc;

use super::generate::POSTED_RETURNS;
use super::script::{Op, Reply};

/// A known difference.
pub(crate) struct Known {
    /// What differs and why ours is right.
    pub reason: &'static str,
    is: fn(addr: u64, ours: &[u8], theirs: &[u8]) -> bool,
}

/// All known differences of reads of a tile.
const KNOWN: [Known; 2] = [
    Known {
        reason: "NIU_CFG_0 says that coordinate translation is on (NoC/MemoryMap.md, bit 14); ttsim translates too, but reads 0",
        is: |addr, ours, theirs| {
            [0, 1].iter().any(|&noc| addr == u64::from(noc::niu_base(noc) + noc::NIU_CFG_0))
                && ours == noc::NIU_CFG_0_TRANSLATE.to_le_bytes()
                && theirs == [0; 4]
        },
    },
    Known {
        reason: "a posted atomic has no response, so its return address stays as it was (NoC/MemoryMap.md, NOC_CMD_RESP_MARKED); ttsim writes the old value there",
        is: |addr, ours, _| addr == u64::from(POSTED_RETURNS) && ours.iter().all(|&byte| byte == 0),
    },
];

/// Finds the known difference between two replies.
pub(crate) fn find(op: &Op, ours: &Reply, theirs: &Reply) -> Option<&'static Known> {
    let (Op::Read(at, _), Reply::Bytes(ours), Reply::Bytes(theirs)) = (op, ours, theirs) else { return None };
    KNOWN.iter().find(|known| (known.is)(at.addr, ours, theirs))
}
