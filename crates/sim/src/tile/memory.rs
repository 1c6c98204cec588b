//! A tile's address space as the NoC sees it.
//!
//! L1 in spans of any length; registers one word at a time (BlackholeA0/NoC/MemoryMap.md, `NOC_AT_LEN_BE`).

use super::shared::Shared;
use crate::noc::{Body, Outbox, Packet, Start};
use crate::{Fault, FaultClass, Memory};
use tilework_abi::noc as noc_regs;
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

fn refused(refuse: Refuse<Fault>, addr: u64) -> Fault {
    match refuse {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => {
            Fault::new(FaultClass::MissingSpecification, "a NoC access to a register that can block", PAGE)
                .at_addr(addr)
        }
    }
}

impl Memory for Shared {
    fn read(&mut self, at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(start) = l1_span(addr, out.len()) {
            out.copy_from_slice(&self.l1[start as usize..start as usize + out.len()]);
            return Ok(());
        }
        let reg = register(addr, out.len())?;
        let load = self.reg_load(None, at, reg, Width::Word).map_err(|r| refused(r, addr))?;
        out.copy_from_slice(&load.value.to_le_bytes());
        Ok(())
    }

    fn write(&mut self, at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if let Some(start) = l1_span(addr, data.len()) {
            self.l1_write(start, data);
            return Ok(());
        }
        let reg = register(addr, data.len())?;
        let mut word = [0; 4];
        word.copy_from_slice(data);
        let value = u32::from_le_bytes(word);
        self.reg_store(None, at, reg, Width::Word, value).map_err(|r| refused(r, addr))
    }

    fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let start = l1_span(addr, len)? as usize;
        self.l1.get(start..start + len)
    }

    fn is_l1(&self, addr: u64) -> bool {
        addr < u64::from(L1_SIZE)
    }
}

/// A request leaves.
pub(super) fn depart(shared: &mut Shared, noc: u8, start: Start, out: &mut Outbox) -> Result<(), Fault> {
    let slot = usize::from(noc);
    let Some(mut niu) = shared.nius[slot].take() else { return Ok(()) };
    let result = niu.depart(start, shared, out);
    shared.nius[slot] = Some(niu);
    // The next piece of a request that hardware splits.
    if let Some(next) = result? {
        shared.started.push((noc, next));
    }
    Ok(())
}

/// A packet arrives.
pub(super) fn receive(shared: &mut Shared, at: Cycle, packet: Packet, out: &mut Outbox) -> Result<(), Fault> {
    let slot = usize::from(packet.noc);
    let Some(mut niu) = shared.nius[slot].take() else { return Ok(()) };
    let base = noc_regs::niu_base(u32::from(packet.noc));
    let own = |addr: u64| u32::try_from(addr).ok().filter(|a| (base..base + noc_regs::NIU_SPAN).contains(a));
    // A word of the NIU's own registers, read or written over the same NIU (drivers read NODE_ID so): the NIU cannot be its own memory,
    // so its answer is looked up first, or its write done last.
    let result = match &packet.body {
        Body::ReadRequest { addr, len: 4, .. } if own(*addr).is_some() => {
            let value = niu.read(*addr as u32 - base, at).map(|(value, _)| value);
            value.and_then(|value| niu.receive(at, packet, &mut OneWord { value }, out))
        }
        Body::WriteRequest { addr, data, .. } if own(*addr).is_some() && data.len() == 4 => {
            let offset = *addr as u32 - base;
            let mut word = OneWord { value: 0 };
            let received = niu.receive(at, packet, &mut word, out);
            received.and_then(|()| niu.write(offset, word.value, at)).map(|start| {
                shared.started.extend(start.map(|start| (slot as u8, start)));
            })
        }
        _ => niu.receive(at, packet, shared, out),
    };
    shared.nius[slot] = Some(niu);
    result
}

/// Stands in for one register.
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
