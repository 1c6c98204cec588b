//! A tile's address space as the NoC sees it.
//!
//! L1 in spans of any length; registers one word at a time (BlackholeA0/NoC/MemoryMap.md,
//! `NOC_AT_LEN_BE`).

use super::access::{Reach, Shared, Unit};
use super::port::Ports;
use crate::noc::{Body, Outbox, Outgoing, Packet, Start, wrapped};
use crate::{Fault, FaultClass, Memory};
use tilework_abi::address_map::niu_register;
use tilework_abi::tensix::L1_SIZE;
use tilework_riscv::{Cycle, Refuse, Width};

const PAGE: &str = "BlackholeA0/NoC/MemoryMap.md, NOC_AT_LEN_BE";

fn l1_span(addr: u64, len: usize) -> Option<u32> {
    let addr = u32::try_from(addr).ok()?;
    (u64::from(addr) + len as u64 <= u64::from(L1_SIZE)).then_some(addr)
}

fn register(addr: u64, len: usize) -> Result<u32, Fault> {
    let fault = |what: String| Fault::new(FaultClass::UndefinedBehavior, what, PAGE).at_addr(addr);
    match u32::try_from(addr) {
        Ok(reg) if reg >= L1_SIZE => {
            if len == 4 && reg % 4 == 0 {
                Ok(reg)
            } else {
                Err(fault(format!("a NoC access of {len} bytes to a register, which takes 4")))
            }
        }
        Ok(_) => Err(fault(format!("a NoC access of {len} bytes runs past the end of L1"))),
        Err(_) => Err(fault("a NoC access past a Tensix tile's 32-bit address space".into())),
    }
}

#[cold]
fn refused(refuse: Refuse<Fault>, addr: u64) -> Fault {
    match refuse {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => {
            Fault::new(FaultClass::MissingSpecification, "a NoC access to a register that can block", PAGE)
                .at_addr(addr)
        }
    }
}

impl Memory for Reach<'_> {
    fn read(&mut self, at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(start) = l1_span(addr, out.len()) {
            out.copy_from_slice(&self.fabric.l1[start as usize..start as usize + out.len()]);
            return Ok(());
        }
        let reg = register(addr, out.len())?;
        let load = self.load(None, at, reg, Width::Word).map_err(|r| refused(r, addr))?;
        out.copy_from_slice(&load.value.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if let Some(start) = l1_span(addr, data.len()) {
            let noc = u8::from(matches!(self.nius[1], Unit::Own));
            self.fabric.l1_write_by_niu(at, noc, start, data);
            return Ok(());
        }
        let reg = register(addr, data.len())?;
        let mut word = [0; 4];
        word.copy_from_slice(data);
        let value = u32::from_le_bytes(word);
        self.store(None, at, reg, Width::Word, value).map_err(|r| refused(r, addr))
    }

    fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let start = l1_span(addr, len)? as usize;
        self.fabric.l1.get(start..start + len)
    }

    fn leaves(&mut self, noc: u8, outgoing: Outgoing) {
        self.fabric.leaves(usize::from(noc), outgoing);
    }

    fn is_l1(&self, addr: u64) -> bool {
        addr < u64::from(L1_SIZE)
    }
}

impl Shared {
    /// Sends a request of NIU `noc`.
    pub(super) fn depart(&mut self, ports: &mut Ports, noc: u8, start: Start, out: &mut Outbox) -> Result<(), Fault> {
        let (niu, mut memory) = self.niu(usize::from(noc), ports);
        let next = niu.depart(start, &mut memory, out)?;
        // The next piece of a request that hardware splits.
        if let Some(next) = next {
            self.fabric.started.push((noc, next));
        }
        Ok(())
    }

    /// Takes the answer to a read whose data go to L1 at `addr`, to lines without marks.
    pub(super) fn take_data(&mut self, addr: u32, packet: Box<Packet>) {
        if let Body::ReadResponse { data, .. } = &packet.body {
            self.fabric.l1[addr as usize..addr as usize + data.len()].copy_from_slice(data);
        }
        self.nius[usize::from(packet.noc)].has_received_data(packet);
    }

    /// Receives the answer to a read of NIU `noc`.
    pub(super) fn receive_data(
        &mut self,
        ports: &mut Ports,
        at: Cycle,
        packet: Box<Packet>,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        let noc = packet.noc;
        if let Body::ReadResponse { reply, data } = &packet.body
            && let Some(start) = l1_span(reply.addr, data.len())
        {
            self.fabric.l1_write_by_niu(at, noc, start, data);
            self.nius[usize::from(noc)].has_received_data(packet);
            return Ok(());
        }
        let (niu, mut memory) = self.niu(usize::from(noc), ports);
        niu.receive(at, packet, &mut memory, out)
    }

    /// Receives a packet.
    ///
    /// A word of an NIU's own registers can be read and written over the same NIU: drivers read
    /// `NODE_ID` in this way. The NIU is not its own memory, so the value is looked up before the
    /// read is served, and a write is carried out after it was received. Any other access of an NIU
    /// to itself is a fault.
    pub(super) fn receive(
        &mut self,
        ports: &mut Ports,
        at: Cycle,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        let noc = usize::from(packet.noc);
        if let Body::AtomicRequest { addr, len_be, data, .. } = packet.body {
            self.fabric.observe_atomic(at, packet.noc, wrapped(addr, len_be, data, &self.fabric.l1[..]));
        }
        let (niu, mut memory) = self.niu(noc, ports);
        let own = |addr: u64| niu_register(u32::try_from(addr).ok()?).filter(|&(niu, _)| niu == noc);
        match packet.body {
            Body::ReadRequest { addr, len: 4, .. } if let Some((_, offset)) = own(addr) => {
                let (value, _) = niu.read(offset, at)?;
                niu.receive(at, packet, &mut OneWord { value }, out)
            }
            Body::WriteRequest { addr, ref data, .. }
                if data.len() == 4
                    && let Some((_, offset)) = own(addr) =>
            {
                let mut word = OneWord { value: 0 };
                niu.receive(at, packet, &mut word, out)?;
                let start = niu.write(offset, word.value, at)?;
                self.fabric.started.extend(start.map(|start| (noc as u8, start)));
                Ok(())
            }
            _ => niu.receive(at, packet, &mut memory, out),
        }
    }
}

/// A memory of one word that stands in for an NIU's own register.
struct OneWord {
    value: u32,
}

impl Memory for OneWord {
    fn read(&mut self, _at: Cycle, _addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        let bytes = self.value.to_le_bytes();
        let len = out.len().min(4);
        out[..len].copy_from_slice(&bytes[..len]);
        Ok(())
    }
    fn write(&mut self, _at: Cycle, _addr: u64, data: &[u8]) -> Result<(), Fault> {
        let mut word = [0; 4];
        let len = data.len().min(4);
        word[..len].copy_from_slice(&data[..len]);
        self.value = u32::from_le_bytes(word);
        Ok(())
    }
    fn is_l1(&self, _addr: u64) -> bool {
        false
    }
}
