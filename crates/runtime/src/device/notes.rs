//! What the device tells those who observe its chip ([`Note`]): firmware, memory, launches.

use super::{Device, Running};
use crate::cache::Prepared;
use crate::program::{ArgSet, Layout, Program};
use std::sync::Arc;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::QueueId;
use tilework_driver::{ArgumentsNote, CbNote, FirmwareNote, HostLink, LaunchNote, Note, QueueNote, RoleNote};

impl<C: HostLink> Device<C> {
    /// Tells of the firmware and the command queues that are about to be started, and keeps notes
    /// of memory from now on, if anybody listens.
    pub(super) fn tell_firmware(&mut self) {
        if !self.card.link().listens() {
            return;
        }
        self.memory.keep_notes();
        let note = FirmwareNote {
            tiles: self.config.board.tensix_tiles().collect(),
            map: self.map,
            images: self.firmware.iter().map(crate::elf::FirmwareImage::note).collect(),
            // Only our firmware does.
            own: self.map.keeps_launch,
        };
        self.card.link_mut().note(&Note::Firmware(Arc::new(note)));
    }

    /// Tells of the tiles of a command queue that is about to be started.
    pub(super) fn tell_queue(&mut self, id: QueueId) {
        if !self.card.link().listens() {
            return;
        }
        let base = self.map.kernel_config.get();
        for (tile, parts) in self.config.queue_tiles().layout().queue(id).tiles(self.config.board) {
            let kernels = super::queue_kernels_at(parts, &self.cq_kernels).into_iter();
            let kernels = kernels.map(|(offset, _, kernel)| kernel.note(base + offset, &self.map)).collect();
            let (queue, parts) = (id.number(), parts.to_vec());
            let note = QueueNote { queue, tile, parts, kernels, own: self.own_kernels };
            self.card.link_mut().note(&Note::Queue(Arc::new(note)));
        }
    }

    /// Tells of what was allocated and freed since the last call.
    pub(super) fn tell_memory(&mut self) {
        if self.card.link().listens() {
            for note in self.memory.take_notes() {
                self.card.link_mut().note(&note);
            }
        }
    }

    /// Shows those who observe the chip all that has happened so far.
    pub fn settle_observers(&mut self) {
        self.tell_memory();
        self.card.link_mut().settle_observers();
    }

    /// Tells of a launch that is about to be put into a queue, whose commands name it by a tag.
    pub(super) fn tell_launch(&mut self, queue: Option<(QueueId, u64)>, running: &Running) {
        let program = &running.program;
        let given = |set: ArgSet| program.args[set.index()].words();
        self.tell_launch_with(queue, program, &running.layout, given, || program.argument_words());
    }

    /// The same for a prepared program, whose arguments are its own.
    pub(super) fn tell_prepared(&mut self, queue: (QueueId, u64), prepared: &Prepared, layout: &Layout) {
        let given = |set| prepared.unique_words(set);
        self.tell_launch_with(Some(queue), &prepared.program(), layout, given, || prepared.argument_words());
    }

    fn tell_launch_with(
        &mut self,
        queue: Option<(QueueId, u64)>,
        program: &Program,
        layout: &Layout,
        given: impl Fn(ArgSet) -> Vec<u32>,
        words: impl FnOnce() -> Vec<u32>,
    ) {
        self.tell_memory();
        if !self.card.link().listens() {
            return;
        }
        let base = layout.base.get();
        let arguments = ArgSet::ALL.map(|set| {
            let span = layout.args[set.index()];
            let unique_words = given(set);
            let common_words = u32_of(program.common_args[set.index()].len());
            ArgumentsNote { unique: base + span.unique, unique_words, common: base + span.common, common_words }
        });
        let cb = |cb: &crate::program::CbLayout| CbNote {
            index: cb.index,
            name: program.names.circular_buffer(cb.index),
            address: cb.address.get(),
            page_size: cb.page_size,
            pages: cb.pages.get(),
            over: program.cbs_over.contains_key(&cb.index),
        };
        let note = LaunchNote {
            number: self.launches,
            queue: queue.map(|(queue, _)| queue.number()),
            tag: queue.map(|(_, tag)| tag),
            program: program.name.clone(),
            host_assigned_id: program.host_assigned_id,
            cores: layout.cores.clone(),
            argument_words: words(),
            base,
            config: base..base + layout.text_offset,
            arguments,
            semaphores: base + layout.sem_offset,
            semaphore_count: layout.semaphores,
            cb_config: base + layout.cb_offset,
            cbs: layout.cbs.iter().map(cb).collect(),
            roles: (0..layout.roles.len()).map(|role| self.role_note(program, layout, role)).collect(),
        };
        self.launches += 1;
        self.card.link_mut().note(&Note::Launch(Arc::new(note)));
    }

    fn role_note(&self, program: &Program, layout: &Layout, number: usize) -> RoleNote {
        let placed = &layout.roles[number];
        let kernels = program.roles[number].kernels.iter().zip(placed.text);
        // As the cores add them: modulo 2^32.
        let note = |(kernel, at): (&Option<Arc<crate::elf::KernelImage>>, u32)| {
            Some(kernel.as_ref()?.note(layout.base.get().wrapping_add(at), &self.map))
        };
        RoleNote {
            name: program.role_name(number),
            cores: placed.cores.clone(),
            kernels: kernels.filter_map(note).collect(),
        }
    }
}
