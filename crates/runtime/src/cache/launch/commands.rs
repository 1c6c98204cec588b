//! The commands of a launch that are not in its program's template.

use super::Launcher;
use crate::RuntimeError;
use crate::cache::account::{Place, slot_bytes};
use crate::cache::records::Builder;
use crate::cache::sequence::{Compiled, large, put_word, relay_to, sub};
use crate::lower;
use crate::program::Program;
use crate::queue::What;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::convert::{u8_of, u32_of};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{
    self as abi, GO_SIGNAL_NOC_DATA_MAX_WORDS, WRITE_PACKED_LARGE_MAX_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS,
    WritePackedLargeType, WritePackedType,
};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::l1::MemoryMap;
use tilework_cq::dispatch::{GoSignal, PackedTargets, PackedWrite, Packets};
use tilework_cq::{DispatchCommand, EncodeError};

/// A program that is being launched.
#[derive(Clone, Copy)]
pub(super) struct Launching<'a> {
    pub(super) program: &'a Arc<Program>,
    pub(super) compiled: &'a Compiled,
    /// Where it goes, and what is missing there.
    pub(super) place: &'a Place,
    /// Position in the run, for reports.
    pub(super) tag: Option<usize>,
}

impl Launcher {
    /// Waits until so many workers are done, and clears their stream.
    pub(in crate::cache) fn wait_stream(
        &self,
        out: &mut Builder,
        count: u32,
        tag: Option<usize>,
    ) -> Result<(), EncodeError> {
        let command = DispatchCommand::wait_stream_and_clear(self.stream, count);
        let bytes = out.add(&self.wait, tag, What::Command(command.into()))?;
        put_word(bytes, CMD_SIZE + offset_of!(abi::Wait, count), count);
        if let Some(wait) = &self.wait_apart {
            put_word(out.add_subordinate(wait)?, CMD_SIZE + offset_of!(abi::Wait, count), count);
        }
        Ok(())
    }

    pub(super) fn time(&self, out: &mut Builder, slot: Option<u32>, tag: Option<usize>) -> Result<(), EncodeError> {
        let Some(slot) = slot else { return Ok(()) };
        let base = self.bases[self.at.0.index()];
        let bytes = out.add(&self.stamp, tag, What::Command(lower::timestamp(base, slot).into()))?;
        let addr = lower::timestamp_address(base, slot);
        put_word(bytes, CMD_SIZE + offset_of!(abi::Timestamp, addr), addr);
        Ok(())
    }

    /// The kernel text that cores lack.
    pub(super) fn text(&mut self, out: &mut Builder, launching: Launching<'_>) -> Result<(), RuntimeError> {
        let Launching { compiled, place, tag, .. } = launching;
        if place.missing.iter().all(|missing| missing.is_empty()) {
            self.text_resident += 1;
            return Ok(());
        }
        self.text_sent += 1;
        let before = compiled.text_sent.swap(true, Ordering::Relaxed);
        if before && self.text_from_store(out, launching)? {
            self.text_from_dram += 1;
            return Ok(());
        }
        for command in compiled.text(place.text, &place.missing, &self.map, &self.workers, self.columns)? {
            out.command(command, tag)?;
        }
        Ok(())
    }

    /// Relays the text from DRAM, where it is stored first if it is not there; false
    /// without a store.
    fn text_from_store(&mut self, out: &mut Builder, launching: Launching<'_>) -> Result<bool, RuntimeError> {
        let Launching { program, compiled, place, tag } = launching;
        let Some(store) = &mut self.stores[self.at.0.index()] else { return Ok(false) };
        if store.home(compiled.id) != Some(place.text) {
            let Some(kept) = store.keep(compiled, place, &self.map)? else { return Ok(false) };
            out.relayed(kept, program, "kernel text to DRAM", tag)?;
        }
        let Some(relays) = store.relay(compiled, place, &self.workers, self.columns)? else { return Ok(false) };
        out.relayed(relays, program, "kernel text from DRAM", tag)?;
        Ok(true)
    }

    /// The words of the mailbox that are not as the launch needs them.
    pub(super) fn mailbox(&self, out: &mut Builder, launching: Launching<'_>) -> Result<(), EncodeError> {
        let Launching { compiled, place, tag, .. } = launching;
        let rects = || compiled.roles.iter().flat_map(|role| role.rects.iter().copied());
        let mut whole = Vec::new();
        for (wanted, addr) in [(place.go_index, self.map.go_index), (place.disarm, self.map.profiler_control)] {
            if wanted {
                whole.extend(rects().map(|rect| sub(rect, addr.get(), vec![0; 4], true)));
            }
        }
        let mut index = Vec::new();
        if place.index {
            let (before, within) = filler(&self.map);
            for rect in rects() {
                index.push(sub(rect, before.get(), vec![0; within as usize], false));
                index.push(sub(rect, self.map.launch_rd_ptr().get(), place.message.to_le_bytes().to_vec(), true));
            }
        }
        for (subs, alignment) in [(whole, L1_ALIGN), (index, 4)] {
            // An even number, so that no chain is cut.
            for subs in subs.chunks(WRITE_PACKED_LARGE_MAX_SUBS & !1) {
                out.command(large(WritePackedLargeType::Unknown, alignment, subs.to_vec()), tag)?;
            }
        }
        Ok(())
    }

    /// Makes the cores take their times.
    pub(super) fn arm(
        &self,
        out: &mut Builder,
        compiled: &Compiled,
        blocks: &[Vec<u8>],
        tag: Option<usize>,
    ) -> Result<(), EncodeError> {
        let groups = compiled.targets.chunks(WRITE_PACKED_MAX_UNICAST_SUBS);
        for (targets, blocks) in groups.zip(blocks.chunks(WRITE_PACKED_MAX_UNICAST_SUBS)) {
            let write = PackedWrite {
                kind: WritePackedType::None,
                write_offset_index: 0,
                addr: self.map.profiler_control.get(),
                targets: PackedTargets::Unicast(targets.to_vec()),
                packets: Packets::PerTarget(blocks.to_vec()),
            };
            out.command(DispatchCommand::WritePacked(write), tag)?;
        }
        Ok(())
    }

    /// How the go signal reaches the cores: a multicast to all workers, or a part of the
    /// dispatcher's table of targets, which is written when it lacks them.
    pub(super) fn targets(
        &mut self,
        out: &mut Builder,
        compiled: &Compiled,
        tag: Option<usize>,
    ) -> Result<GoSignal, EncodeError> {
        let targets = &compiled.targets;
        if self.all_by_multicast && targets.len() == self.workers.len() {
            return Ok(signal(self.go.word, self.stream.into(), Some(0), 0, 0));
        }
        let find = |table: &[u32]| table.windows(targets.len()).position(|part| part == targets);
        let start = match find(&self.account.targets) {
            Some(start) => start,
            None => {
                // All workers, so that most programs find theirs; others behind them.
                let mut table: Vec<u32> = self.workers.iter().map(|worker| worker.encode()).collect();
                if find(&table).is_none() {
                    table.extend(targets);
                }
                if table.len() > GO_SIGNAL_NOC_DATA_MAX_WORDS {
                    table.clone_from(targets);
                }
                let start = find(&table).unwrap_or(0);
                self.account.targets.clone_from(&table);
                let command = DispatchCommand::SetGoSignalNocData(table);
                match self.go.sender() {
                    DispatcherSelect::Master => out.command(command, tag)?,
                    to => out.add_subordinate(&relay_to(to, &command)?).map(|_| ())?,
                }
                start
            }
        };
        Ok(signal(self.go.word, self.stream.into(), None, u8_of(u32_of(start)), u8_of(u32_of(targets.len()))))
    }

    pub(super) fn signal(&self, out: &mut Builder, go: GoSignal, tag: Option<usize>) -> Result<(), EncodeError> {
        let bytes = match &self.notify {
            Some(notify) => {
                out.add(notify, tag, What::Command(lower::notify(self.at.1.number()).into()))?;
                out.add_subordinate(&self.signal)?
            }
            None => out.add(&self.signal, tag, What::Command(DispatchCommand::SendGoSignal(go).into()))?,
        };
        let offset = go.multicast_go_offset.unwrap_or(abi::GO_NO_MULTICAST);
        bytes[CMD_SIZE + offset_of!(abi::SendGoSignal, multicast_go_offset)] = offset;
        put_word(bytes, CMD_SIZE + offset_of!(abi::SendGoSignal, wait_count), go.wait_count);
        bytes[CMD_SIZE + offset_of!(abi::SendGoSignal, num_unicast_txns)] = go.num_unicast_txns;
        bytes[CMD_SIZE + offset_of!(abi::SendGoSignal, noc_data_start_index)] = go.noc_data_start_index;
        Ok(())
    }
}

/// A go signal that waits for nothing: a wait stands in front of it.
pub(super) fn signal(
    go_signal: u32,
    wait_stream: u32,
    multicast_go_offset: Option<u8>,
    start: u8,
    number: u8,
) -> GoSignal {
    GoSignal {
        go_signal,
        multicast_go_offset,
        num_unicast_txns: number,
        noc_data_start_index: start,
        wait_count: 0,
        wait_stream,
    }
}

/// A NoC write keeps the offset of its source within 16 bytes, and packets of a command begin at a
/// multiple of 16: in front of the launch messages' index goes a packet of so many bytes, to the
/// end of the configuration space's first slot, which no program uses.
fn filler(map: &MemoryMap) -> (L1Addr, u32) {
    (map.kernel_config.offset(slot_bytes(map) - L1_ALIGN), map.launch_rd_ptr().get() % L1_ALIGN)
}
