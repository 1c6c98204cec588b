//! Accesses of the host: each is resolved when it is made, and becomes packets that leave later.

use super::windows::{NocTarget, READ, Target, Tiles};
use super::{LEFT, Order, Pcie, PendingRead, ReadPiece, ReadTicket};
use crate::noc::{Body, Dest, Packet, Reply};
use crate::probe::RequestId;
use crate::{Cycle, Fault, FaultClass, timing};
use tilework_abi::noc::MAX_PACKET_BYTES;
use tilework_abi::tlb::{Bar, Ordering};

impl Pcie {
    /// The host stores `data` at `offset` of `bar` at cycle `at`. Stores are posted: they take
    /// effect in order, later.
    ///
    /// # Errors
    /// An offset with nothing behind it, a window that is not configured or points at no tile, or
    /// an access that the registers do not accept. It then has no effect.
    pub(crate) fn host_write(&mut self, at: Cycle, bar: Bar, offset: u64, data: &[u8]) -> Result<(), Fault> {
        if let (Ok((target @ (Target::TlbRegister(_) | Target::Iatu(_)), room)), false) =
            (self.windows.locate(bar, offset), data.is_empty())
        {
            return self.write_registers(offset, target, room, data);
        }
        let mut packets = Vec::new();
        self.pieces(bar, offset, data.len(), |this, at, len, target| match target {
            Target::Noc(target) => {
                let (to, acks) = this.resolve(&target)?;
                let acks = if target.ordering == Ordering::Posted { 0 } else { acks };
                let reply = (acks > 0).then_some(Reply { to: this.place, trid: 0, addr: 0 });
                let data = data[at..at + len].into();
                let body = Body::WriteRequest { addr: target.address, data, mask: None, reply };
                let packet = Packet { noc: target.noc, from: this.place, to, id: RequestId::default(), body };
                packets.push((len, packet, acks, target.ordering == Ordering::Strict));
                Ok(())
            }
            Target::TlbRegister(_) | Target::Iatu(_) | Target::Niu { .. } => {
                let what = format!("a host store to {bar} registers that are read only");
                Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ).at_addr(offset + at as u64))
            }
        })?;
        for (len, mut packet, acks, waits) in packets {
            packet.id = self.next_id(packet.noc);
            let ready = self.stores.serve(at, len as u64).saturating_add(timing::PCIE_HOST_ONE_WAY);
            self.orders.push_back(Order { ready, packet, acks, waits });
            self.bytes_to_device += len as u64;
        }
        Ok(())
    }

    /// The cycle from which the host has room for another access: when it learns that all but the
    /// last [`timing::PCIE_POSTED`] have left for the NoC. `None` while they have not.
    pub(crate) fn room(&self) -> Option<Cycle> {
        let accepted = self.left + self.orders.len();
        match accepted.checked_sub(timing::PCIE_POSTED) {
            None | Some(0) => Some(0),
            Some(needed) if needed > self.left => None,
            Some(needed) => Some(self.left_at_last[(needed - 1) % LEFT] + timing::PCIE_HOST_ONE_WAY),
        }
    }

    fn write_registers(&mut self, offset: u64, target: Target, room: u64, data: &[u8]) -> Result<(), Fault> {
        if !offset.is_multiple_of(4) || !data.len().is_multiple_of(4) || data.len() as u64 > room {
            let what = format!("a store of {} bytes to registers, which take whole words", data.len());
            return Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ).at_addr(offset));
        }
        for (word, at) in data.chunks_exact(4).zip((0..).step_by(4)) {
            let value = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            match target {
                Target::TlbRegister(reg) => self.windows.write(reg + at, value)?,
                Target::Iatu(reg) => self.iatu.write(reg + at, value)?,
                Target::Noc(_) | Target::Niu { .. } => {}
            }
        }
        self.bytes_to_device += data.len() as u64;
        Ok(())
    }

    /// The host loads `len` bytes at `offset` of `bar`, starting at cycle `at`. [`Pcie::take_read`]
    /// gives the data once it is there.
    ///
    /// # Errors
    /// As [`Pcie::host_write`]; also a load through a multicast window.
    pub(crate) fn host_read(&mut self, at: Cycle, bar: Bar, offset: u64, len: usize) -> Result<ReadTicket, Fault> {
        let ticket = ReadTicket(self.next_ticket);
        let round_trip = at.saturating_add(2 * timing::PCIE_HOST_ONE_WAY);
        let mut packets = Vec::new();
        let mut values = Vec::new();
        self.pieces(bar, offset, len, |this, at, n, target| {
            match target {
                Target::Noc(target) => {
                    if matches!(target.to, Tiles::Rect(_)) {
                        let what = "a host load through a multicast window";
                        let fault = Fault::new(FaultClass::UnsupportedFunctionality, what, READ);
                        return Err(fault.at_addr(offset + at as u64));
                    }
                    let (to, _) = this.resolve(&target)?;
                    packets.push((at, n, to, target));
                }
                Target::TlbRegister(_) | Target::Iatu(_) | Target::Niu { .. }
                    if !(offset + at as u64).is_multiple_of(4) || n % 4 != 0 =>
                {
                    let what = "a host load of part of a register";
                    let fault = Fault::new(FaultClass::UnsupportedFunctionality, what, READ);
                    return Err(fault.at_addr(offset + at as u64));
                }
                Target::TlbRegister(reg) => {
                    for i in (0..n).step_by(4) {
                        values.push((at + i, this.windows.read(reg + i as u32)));
                    }
                }
                Target::Iatu(reg) => {
                    for i in (0..n).step_by(4) {
                        values.push((at + i, this.iatu.read(reg + i as u32)));
                    }
                }
                Target::Niu { noc, reg } => {
                    for i in (0..n).step_by(4) {
                        values.push((at + i, this.niu(noc, reg + i as u32)?));
                    }
                }
            }
            Ok(())
        })?;
        self.next_ticket += 1;
        let mut read = PendingRead { data: vec![0; len], parts: packets.len(), done: None, fault: None };
        for (at, value) in values {
            read.data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        if read.parts == 0 {
            read.done = Some(round_trip);
        }
        self.reads.insert(ticket, read);
        for (piece, len, to, target) in packets {
            self.order_read(at, ReadPiece { ticket, at: piece, len }, to, &target);
        }
        Ok(ticket)
    }

    fn next_id(&mut self, noc: u8) -> RequestId {
        self.requests += 1;
        RequestId::new(self.place.node, noc, self.requests)
    }

    /// Queues one packet of a read that the host starts at cycle `at`.
    fn order_read(&mut self, at: Cycle, piece: ReadPiece, to: Dest, target: &NocTarget) {
        let part = self.next_part;
        self.next_part += 1;
        let reply = Reply { to: self.place, trid: 1, addr: part };
        let body = Body::ReadRequest { addr: target.address, len: piece.len as u32, reply };
        self.parts.insert(part, piece);
        let packet = Packet { noc: target.noc, from: self.place, to, id: self.next_id(target.noc), body };
        let ready = self.stores.serve(at, 0).saturating_add(timing::PCIE_HOST_ONE_WAY);
        let waits = target.ordering != Ordering::Posted;
        self.orders.push_back(Order { ready, packet, acks: 0, waits });
    }

    /// The data of a finished read, or what was wrong with it, and the cycle at which the host has
    /// it; `None` while it is in flight. A ticket gives its data once.
    pub(crate) fn take_read(&mut self, ticket: ReadTicket) -> Option<(Cycle, Result<Vec<u8>, Fault>)> {
        let done = self.reads.get(&ticket)?.done?;
        self.reads.remove(&ticket).map(|read| (done, read.fault.map_or(Ok(read.data), Err)))
    }

    /// Splits a host access where its target changes and where a packet is full.
    fn pieces(
        &self,
        bar: Bar,
        offset: u64,
        len: usize,
        mut each: impl FnMut(&Self, usize, usize, Target) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let mut at = 0;
        while at < len {
            let (target, room) = self.windows.locate(bar, offset.saturating_add(at as u64))?;
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let n = (len - at).min(room).min(MAX_PACKET_BYTES as usize);
            each(self, at, n, target)?;
            at += n;
        }
        Ok(())
    }

    /// Where a packet to `target` goes, and how many tiles receive it.
    fn resolve(&self, target: &NocTarget) -> Result<(Dest, u64), Fault> {
        match target.to {
            Tiles::One(xy) => match self.grid.resolve(target.noc, xy.encode()) {
                Some(place) => Ok((Dest::Unicast(place), 1)),
                None => Err(Fault::new(
                    FaultClass::UndefinedBehavior,
                    format!("a TLB window points at {xy} of NoC {}, where there is no tile", target.noc),
                    READ,
                )
                .at_addr(target.address)),
            },
            Tiles::Rect(rect) => {
                let places = self.grid.rectangle(target.noc, rect.encode(), None)?;
                let count = places.len() as u64;
                Ok((Dest::Multicast(places), count))
            }
        }
    }
}
