//! Answers of tiles that have no NIU registers visible to firmware: DRAM, PCIe and ARC.

use super::{Body, Data, Dest, Packet, Place, Reply};
use crate::probe::RequestId;
use crate::{Cycle, Fault, FaultClass, Memory};

const READ: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_CTRL";

/// Serves a read or write request that arrives at `me` at cycle `at`, and returns the
/// answer, if one is wanted. The caller decides when it leaves, as it knows the memory's
/// latency and bandwidth.
///
/// # Errors
/// An atomic (which needs the L1 of a Tensix or Ethernet tile), an answer to a request that was
/// never made here, or a fault of the memory.
pub(crate) fn serve(
    at: Cycle,
    me: Place,
    packet: &Packet,
    mem: &mut (impl Memory + ?Sized),
) -> Result<Option<Packet>, Fault> {
    match &packet.body {
        Body::ReadRequest { addr, len, reply } => {
            let data = read_data(at, *addr, *len, mem)?;
            Ok(Some(read_response(packet.noc, packet.id, me, *reply, data)))
        }
        Body::WriteRequest { addr, data, mask, reply } => {
            write_data(at, *addr, &data.settled(), *mask, mem)?;
            Ok(reply.map(|reply| write_ack(packet.noc, packet.id, me, reply)))
        }
        Body::AtomicRequest { addr, .. } => {
            let what = "an atomic request to a tile without L1";
            Err(Fault::new(FaultClass::UndefinedBehavior, what, READ).at_addr(*addr))
        }
        Body::ReadResponse { .. } | Body::WriteAck { .. } | Body::AtomicResponse { .. } | Body::Refused { .. } => {
            let what = "an answer arrives at a tile that sends no requests";
            Err(Fault::new(FaultClass::UndefinedBehavior, what, READ))
        }
    }
}

/// The answer to a read.
pub(crate) fn read_response(noc: u8, id: RequestId, from: Place, reply: Reply, data: Data) -> Packet {
    Packet { noc, from, to: Dest::Unicast(reply.to), id, body: Body::ReadResponse { reply, data } }
}

/// The answer to a write.
pub(crate) fn write_ack(noc: u8, id: RequestId, from: Place, reply: Reply) -> Packet {
    Packet { noc, from, to: Dest::Unicast(reply.to), id, body: Body::WriteAck { reply } }
}

/// Reads `len` bytes straight into a packet's payload.
#[inline]
pub(crate) fn read_data(at: Cycle, addr: u64, len: u32, mem: &mut (impl Memory + ?Sized)) -> Result<Data, Fault> {
    match mem.share(addr, len as usize) {
        Some(data) => Ok(data),
        None => copied_data(at, addr, len, mem),
    }
}

/// As [`read_data`], of memory that is not shared.
#[inline(never)]
fn copied_data(at: Cycle, addr: u64, len: u32, mem: &mut (impl Memory + ?Sized)) -> Result<Data, Fault> {
    if let Some(bytes) = mem.span(addr, len as usize) {
        return Ok(Data::from(bytes));
    }
    let mut data = vec![0; len as usize];
    mem.read(at, addr, &mut data)?;
    Ok(data.into())
}

/// Writes a payload: all of it, or the runs of bytes that the mask enables.
pub(super) fn write_data(
    at: Cycle,
    addr: u64,
    data: &[u8],
    mask: Option<u64>,
    mem: &mut (impl Memory + ?Sized),
) -> Result<(), Fault> {
    let Some(mut mask) = mask else { return mem.write(at, addr, data) };
    while mask != 0 {
        let first = mask.trailing_zeros() as usize;
        let len = (mask >> first).trailing_ones() as usize;
        let end = (first + len).min(data.len());
        if first < end {
            mem.write(at, addr + first as u64, &data[first..end])?;
        }
        // All ones from bit 0 to the end of the run.
        let done = u64::MAX.checked_shr(64 - (first + len) as u32).unwrap_or(0);
        mask &= !done;
    }
    Ok(())
}
