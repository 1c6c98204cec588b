//! The receiving end of an NIU: it serves the requests of others and takes the answers to its own.
//!
//! Each counter moves as BlackholeA0/NoC/Counters.md says, all at the cycle at which the packet's
//! last flit arrives; memory changes at that cycle too. Only the answer takes time: see
//! `timing::SERVE_READ` and its neighbours.

use super::Niu;
use crate::noc::responder::{read_data, read_response, write_ack, write_data};
use crate::noc::{Body, Data, Dest, Outbox, Packet, Reply, atomics};
use crate::probe::RequestId;
use crate::{Cycle, Fault, Memory, timing};
use std::borrow::Borrow;
use tilework_abi::noc::{FLIT_BYTES, counter as c};

impl Niu {
    /// Receives a packet whose last flit arrives at cycle `at`.
    ///
    /// # Errors
    /// An access that the memory refuses, an atomic outside L1.
    pub(crate) fn receive(
        &mut self,
        at: Cycle,
        packet: impl Borrow<Packet>,
        mem: &mut (impl Memory + ?Sized),
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        self.receive_at(at, packet.borrow(), mem, out).map_err(|fault| self.named(fault, at))
    }

    fn receive_at(
        &mut self,
        at: Cycle,
        packet: &Packet,
        mem: &mut (impl Memory + ?Sized),
        out: &mut Outbox,
    ) -> Result<(), Fault> {
        if self.opts_out(&packet.to) {
            return Ok(());
        }
        let (flits, id) = (packet.body.data_flits() as u32, packet.id);
        match &packet.body {
            &Body::ReadRequest { addr, len, reply } => {
                self.count_read();
                let data = read_data(at, addr, len, mem)?;
                let answer = read_response(self.noc, id, self.place, reply, data);
                self.count_read_answer(answer.body.data_flits() as u32);
                self.send(at + timing::SERVE_READ, answer, out);
            }
            Body::WriteRequest { addr, data, mask, reply } => {
                self.count_write(reply.is_some(), flits);
                write_data(at, *addr, &data.settled(), *mask, mem)?;
                if let Some(reply) = reply {
                    self.count(c::SLV_WR_ACK_SENT, 1);
                    let answer = write_ack(self.noc, id, self.place, *reply);
                    self.send(at + timing::SERVE_WRITE, answer, out);
                }
            }
            &Body::AtomicRequest { addr, len_be, data, reply } => {
                self.count_atomic(reply.is_some());
                let value = atomics::perform(at, addr, len_be, data, mem)?;
                if let Some(reply) = reply {
                    self.count(c::SLV_ATOMIC_RESP_SENT, 1);
                    self.send_atomic_response(at, id, reply, value, out);
                }
            }
            Body::ReadResponse { reply, data } => {
                mem.write(at, reply.addr, data)?;
                self.count_data(*reply, data);
            }
            Body::WriteAck { reply } => {
                self.count(c::MST_WR_ACK_RECEIVED, 1);
                self.answered(reply.trid);
            }
            Body::AtomicResponse { reply, value } => {
                mem.write(at, reply.addr, &value.to_le_bytes())?;
                self.count(c::MST_ATOMIC_RESP_RECEIVED, 1);
                self.answered(reply.trid);
            }
            // Only the PCIe tile gets these.
            Body::Refused { fault, .. } => return Err(fault.clone()),
        }
        Ok(())
    }

    /// Counts the answer to a read.
    #[inline]
    fn count_data(&mut self, reply: Reply, data: &Data) {
        self.count(c::MST_RD_RESP_RECEIVED, 1);
        self.count(c::MST_RD_DATA_WORD_RECEIVED, (data.len() as u32).div_ceil(FLIT_BYTES));
        self.answered(reply.trid);
    }

    /// The data of an answer to a read has been written. The next request gets the packet's memory.
    pub(crate) fn has_received_data(&mut self, mut packet: Box<Packet>) {
        let Body::ReadResponse { reply, data } = &packet.body else { return };
        let reply = *reply;
        self.count_data(reply, data);
        packet.body = Body::WriteAck { reply };
        self.spare = Some(packet);
    }

    /// Counts a request that the tile serves by itself, with its answer.
    pub(crate) fn count_served(&mut self, body: &Body) {
        match body {
            Body::ReadRequest { len, .. } => {
                self.count_read();
                self.count_read_answer(len.div_ceil(FLIT_BYTES));
            }
            Body::WriteRequest { reply, .. } => {
                self.count_write(reply.is_some(), body.data_flits() as u32);
                self.count(c::SLV_WR_ACK_SENT, u32::from(reply.is_some()));
            }
            _ => {}
        }
    }

    fn count_read(&mut self) {
        self.count(c::SLV_REQ_ACCEPTED, 1);
        self.count(c::SLV_RD_REQ_RECEIVED, 1);
    }

    /// Counts the answer to a read, which has `flits` flits of data.
    fn count_read_answer(&mut self, flits: u32) {
        self.count(c::SLV_RD_RESP_SENT, 1);
        self.count(c::SLV_RD_DATA_WORD_SENT, flits);
    }

    fn count_write(&mut self, answered: bool, flits: u32) {
        let (started, received, words) = if answered {
            (c::SLV_NONPOSTED_WR_REQ_STARTED, c::SLV_NONPOSTED_WR_REQ_RECEIVED, c::SLV_NONPOSTED_WR_DATA_WORD_RECEIVED)
        } else {
            (c::SLV_POSTED_WR_REQ_STARTED, c::SLV_POSTED_WR_REQ_RECEIVED, c::SLV_POSTED_WR_DATA_WORD_RECEIVED)
        };
        self.count(started, 1);
        self.count(received, 1);
        self.count(words, flits);
    }

    fn count_atomic(&mut self, answered: bool) {
        let received = if answered { c::SLV_NONPOSTED_ATOMIC_RECEIVED } else { c::SLV_POSTED_ATOMIC_RECEIVED };
        self.count(c::SLV_REQ_ACCEPTED, 1);
        self.count(received, 1);
    }

    fn send_atomic_response(&mut self, at: Cycle, id: RequestId, reply: Reply, value: u32, out: &mut Outbox) {
        let answer = Packet {
            noc: self.noc,
            from: self.place,
            to: Dest::Unicast(reply.to),
            id,
            body: Body::AtomicResponse { reply, value },
        };
        self.send(at + timing::SERVE_ATOMIC, answer, out);
    }
}
