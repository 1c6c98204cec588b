//! A program's commands, encoded once, with the places of the words that a launch patches.
//!
//! Two kinds of commands carry data. What is the same for all cores of a role goes out in one
//! `WRITE_PACKED_LARGE`: for every rectangle a chain of the configuration and the launch message
//! ([`Uniform`]). Arguments that differ from core to core are a `WRITE_PACKED` with a packet for
//! each core ([`Packets`]). Kernel text is encoded when it has to be sent, which is rare.

use super::account::Place;
use super::cores::{CoreSet, Rect, multicast};
use super::text::PART;
use crate::lower::{CHUNK, launch_msg};
use crate::program::{ArgSet, CbLayout, Layout, Program, ProgramError, UniqueArgs};
use std::mem::offset_of;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use tilework_abi::L1_ALIGN;
use tilework_abi::addr::L1Addr;
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{
    self as abi, WRITE_PACKED_LARGE_MAX_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS, WritePackedLargeSub, WritePackedLargeType,
    WritePackedType,
};
use tilework_abi::cq::prefetch::DispatcherSelect;
use tilework_abi::l1::MemoryMap;
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg, MODE_DEV};
use tilework_abi::noc::NocXy;
use tilework_cq::dispatch::{LargeSub, PackedLargeWrite, PackedTargets, PackedWrite, Packets as Data};
use tilework_cq::prefetch::Inline;
use tilework_cq::{DispatchCommand, EncodeError, PrefetchCommand};
use zerocopy::IntoBytes;

/// Bytes of packets that one `WRITE_PACKED_LARGE` carries at most, so that it fits a record with
/// others.
const LARGE_BYTES: usize = 96 * 1024;
/// Templates that a program keeps: for each slot those without and with shared bytes and launch
/// message. The oldest makes room for another.
const TEMPLATES: usize = 4 * super::account::SLOTS;

/// One role: its cores and how they are reached.
#[derive(Debug)]
pub(super) struct RolePlan {
    pub set: CoreSet,
    pub rects: Vec<Rect>,
    /// Its launch message for the layout of the plain lowering.
    message: LaunchMsg,
}

/// A program, compiled.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The program that it was made of, with zeros for arguments and semaphores.
    pub(super) program: Arc<Program>,
    /// A number that no other compiled program of the device has.
    pub(super) id: u64,
    /// Where everything lies under the plain lowering.
    pub(super) layout: Arc<Layout>,
    pub(super) set: CoreSet,
    pub(super) workers: u32,
    pub(super) roles: Vec<RolePlan>,
    /// The cores' coordinates, as go signals are sent to them.
    pub(super) targets: Vec<u32>,
    /// Bytes of the configuration: arguments, semaphores, circular buffers.
    pub(super) config_bytes: u32,
    /// Bytes of the longest text of a role.
    pub(super) text_bytes: u32,
    /// Whether its text was sent inline before.
    pub(super) text_sent: AtomicBool,
    /// The per-core arguments' commands with zeros for data.
    packets: Vec<Packets>,
    templates: Mutex<Vec<Arc<Template>>>,
}

/// Which parts a launch sends to all cores of a role alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sends {
    /// Arguments and semaphores.
    private: bool,
    /// Circular-buffer configurations and common arguments.
    shared: bool,
    /// The launch message.
    launch: bool,
}

/// What a launch writes the same to all cores of a role.
#[derive(Debug)]
pub(super) struct Template {
    slot: usize,
    text: u32,
    sends: Sends,
    pub commands: Vec<Uniform>,
    /// Where everything lies after this launch, for reports.
    pub layout: Arc<Layout>,
}

/// An encoded `WRITE_PACKED_LARGE` and the places of what changes.
#[derive(Debug)]
pub(super) struct Uniform {
    pub bytes: Vec<u8>,
    /// Words with the address of a launch message.
    messages: Vec<usize>,
    /// First bytes of copies of the private bytes.
    privates: Vec<usize>,
    /// First bytes of copies of the shared bytes.
    shareds: Vec<usize>,
}

/// An encoded `WRITE_PACKED` with a packet for each of some cores.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    pub bytes: Vec<u8>,
    /// Offset of its first byte within the private bytes.
    start: u32,
    data: usize,
    stride: usize,
}

/// Bytes in front of a dispatch command in its record.
const RELAY: usize = CMD_SIZE;

pub(super) fn relay(command: &DispatchCommand) -> Result<Vec<u8>, EncodeError> {
    relay_to(DispatcherSelect::Master, command)
}

pub(super) fn relay_to(dispatcher: DispatcherSelect, command: &DispatchCommand) -> Result<Vec<u8>, EncodeError> {
    PrefetchCommand::RelayInline(Inline { dispatcher, payload: command.to_bytes()? }).to_bytes()
}

pub(super) fn put_word(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

impl Compiled {
    /// Compiles a checked program for the device's `workers` in `columns`.
    ///
    /// # Errors
    /// A kernel that cannot be moved; a command that cannot be written.
    pub(super) fn new(
        program: &Program,
        id: u64,
        layout: Layout,
        workers: &[NocXy],
        columns: &[u8],
    ) -> Result<Self, EncodeError> {
        let position = |core: &NocXy| workers.iter().position(|worker| worker == core);
        let set = |cores: &[NocXy]| CoreSet::of(cores.iter().filter_map(position));
        let plan = |(number, role): (usize, &crate::program::RoleLayout)| RolePlan {
            set: set(&role.cores),
            rects: multicast(role.cores.iter().copied(), columns),
            message: launch_msg(program, &layout, number, MODE_DEV),
        };
        let roles = layout.roles.iter().enumerate().map(plan).collect();
        let ends = layout.roles.iter().map(|role| role.end);
        let text_bytes = ends.max().unwrap_or(0) - layout.text_offset;
        let packets = packets(&layout)?;
        Ok(Self {
            program: Arc::new(skeleton(program)),
            id,
            set: set(&layout.cores),
            workers: u32_of(layout.cores.len()),
            roles,
            targets: layout.cores.iter().map(|core| core.encode()).collect(),
            config_bytes: layout.text_offset,
            text_bytes,
            text_sent: AtomicBool::new(false),
            packets,
            templates: Mutex::default(),
            layout: Arc::new(layout),
        })
    }

    /// The private bytes of `program`, which has this shape.
    pub(super) fn private(&self, program: &Program) -> Private {
        let layout = &self.layout;
        if layout.private_bytes() == 0 {
            return Private::Uniform(Vec::new());
        }
        if program.args.iter().all(is_uniform) {
            return Private::Uniform(padded(program.private_bytes(layout, 0)));
        }
        let mut packets = self.packets.clone();
        for core in 0..layout.cores.len() {
            program.private_words(layout, core, |at, words| write_words(&mut packets, layout, core, at, words));
        }
        Private::PerCore(packets)
    }

    /// The private bytes of each core from those that all cores share until now.
    pub(super) fn spread(&self, uniform: &[u8]) -> Vec<Packets> {
        let mut packets = self.packets.clone();
        let (words, _) = uniform.as_chunks();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        let words = &words[..(self.layout.private_bytes() / 4) as usize];
        for core in 0..self.layout.cores.len() {
            write_words(&mut packets, &self.layout, core, 0, words);
        }
        packets
    }

    /// What a launch at `place` writes uniformly: what `place` says, and the private bytes if those
    /// are `uniform`.
    pub(super) fn template(
        &self,
        place: &Place,
        base: L1Addr,
        uniform: bool,
        map: &MemoryMap,
    ) -> Result<Arc<Template>, EncodeError> {
        let sends = Sends { private: uniform, shared: place.shared, launch: place.launch };
        // A poisoned lock holds templates all the same: each is put there whole.
        let mut templates = self.templates.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let same = |t: &&Arc<Template>| (t.slot, t.text, t.sends) == (place.slot, place.text, sends);
        if let Some(found) = templates.iter().find(same) {
            return Ok(Arc::clone(found));
        }
        let layout = Arc::new(self.placed(base, place.text));
        let commands = self.encode(sends, &layout, map)?;
        let made = Arc::new(Template { slot: place.slot, text: place.text, sends, commands, layout });
        if templates.len() == TEMPLATES {
            templates.remove(0);
        }
        templates.push(Arc::clone(&made));
        Ok(made)
    }

    /// The layout with its configuration at `base` and its text at `text`.
    pub(super) fn placed(&self, base: L1Addr, text: u32) -> Layout {
        let mut layout = Layout::clone(&self.layout);
        // As the cores add them: modulo 2^32.
        let moved = text.wrapping_sub(base.get()).wrapping_sub(layout.text_offset);
        for role in &mut layout.roles {
            for i in 0..role.text.len() {
                if role.enables >> i & 1 != 0 {
                    role.text[i] = role.text[i].wrapping_add(moved);
                }
            }
            role.returns = role.returns.map(|at| at.wrapping_add(moved));
            role.end = role.end.wrapping_add(moved);
        }
        layout.base = base;
        layout
    }

    fn encode(&self, sends: Sends, layout: &Layout, map: &MemoryMap) -> Result<Vec<Uniform>, EncodeError> {
        let private = if sends.private { align(layout.private_bytes()) } else { 0 };
        let shared = if sends.shared { layout.text_offset - layout.cb_offset } else { 0 };
        // Both in one packet when both are sent: the configuration follows the semaphores.
        let config = match (private, shared) {
            (0, 0) => None,
            (_, 0) => Some((layout.base, private)),
            (0, _) => Some((layout.base.offset(layout.cb_offset), shared)),
            _ => Some((layout.base, layout.cb_offset + shared)),
        };
        let places = Places {
            private: private > 0,
            shared: (shared > 0).then_some(if private > 0 { layout.cb_offset } else { 0 }),
        };
        let mut chains = Vec::new();
        for (number, role) in self.roles.iter().enumerate() {
            let mut message = role.message;
            message.kernel_config_base = [layout.base.get().into(); 3];
            let (_, text) = layout.roles[number].launch();
            message.kernel_text_offset = text.map(Into::into);
            for &rect in &role.rects {
                let config = config.map(|(addr, bytes)| (addr.get(), vec![0; bytes as usize]));
                let message = sends.launch.then(|| (map.launch.get(), message.as_bytes().to_vec()));
                chains.push((rect, config, message));
            }
        }
        if config.is_none() && !sends.launch {
            return Ok(Vec::new());
        }
        let chains = chains.chunks(WRITE_PACKED_LARGE_MAX_SUBS / 2);
        chains.map(|chains| Uniform::new(chains, places)).collect()
    }

    /// The commands that write the text of the roles, at `at`, to the cores that lack it: `missing`
    /// has those of each role.
    ///
    /// # Errors
    /// A kernel that cannot be moved there.
    pub(super) fn text(
        &self,
        at: u32,
        missing: &[CoreSet],
        map: &MemoryMap,
        workers: &[NocXy],
        columns: &[u8],
    ) -> Result<Vec<DispatchCommand>, ProgramError> {
        let mut subs = Vec::new();
        for (number, missing) in missing.iter().enumerate().filter(|(_, missing)| !missing.is_empty()) {
            let text = self.program.text_bytes(&self.layout, number, map, L1Addr::new(at))?;
            let cores = missing.iter().filter_map(|i| workers.get(i).copied());
            for rect in multicast(cores, columns) {
                for (offset, part) in (0..).step_by(PART).zip(text.chunks(PART)) {
                    subs.push(sub(rect, at + offset, part.to_vec(), true));
                }
            }
        }
        Ok(split(subs).into_iter().map(|subs| large(WritePackedLargeType::ProgramBinaries, L1_ALIGN, subs)).collect())
    }

    /// The shared bytes of `program` with its circular buffers at `cbs`.
    pub(super) fn shared(&self, program: &Program, cbs: &[CbLayout]) -> Vec<u8> {
        program.config_bytes(&self.layout, cbs)
    }
}

/// Unique arguments and semaphores of a launch.
#[derive(Clone, Debug)]
pub(super) enum Private {
    /// The same for all cores, in whole units of 16 bytes.
    Uniform(Vec<u8>),
    /// Encoded, with the values in their places.
    PerCore(Vec<Packets>),
}

fn is_uniform(args: &UniqueArgs) -> bool {
    match args {
        UniqueArgs::Uniform(_) => true,
        UniqueArgs::PerCore(lists) => lists.windows(2).all(|pair| pair[0] == pair[1]),
    }
}

const fn align(bytes: u32) -> u32 {
    bytes.next_multiple_of(L1_ALIGN)
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(L1_ALIGN as usize), 0);
    bytes
}

/// The program without values, with lists as long as the longest.
pub(super) fn skeleton(program: &Program) -> Program {
    Program {
        args: ArgSet::ALL.map(|set| UniqueArgs::Uniform(vec![0; program.longest(set)])),
        common_args: ArgSet::ALL.map(|set| vec![0; program.common_args[set.index()].len()]),
        semaphores: vec![0; program.semaphores.len()],
        ..program.clone()
    }
}

pub(super) fn sub(rect: Rect, addr: u32, data: Vec<u8>, unlink: bool) -> LargeSub {
    LargeSub { noc_xy: rect.xy, addr, num_mcast_dests: rect.tiles, unlink, data }
}

pub(super) fn large(kind: WritePackedLargeType, alignment: u32, subs: Vec<LargeSub>) -> DispatchCommand {
    let alignment = u16_of(alignment);
    DispatchCommand::WritePackedLarge(PackedLargeWrite { kind, alignment, write_offset_index: 0, subs })
}

/// Packets in groups that a command can hold.
fn split(subs: Vec<LargeSub>) -> Vec<Vec<LargeSub>> {
    let mut out: Vec<Vec<LargeSub>> = Vec::new();
    let mut bytes = 0;
    for sub in subs {
        let full = out.last().is_none_or(|last| last.len() == WRITE_PACKED_LARGE_MAX_SUBS);
        bytes += sub.data.len();
        match out.last_mut() {
            Some(last) if !full && bytes <= LARGE_BYTES => last.push(sub),
            _ => {
                bytes = sub.data.len();
                out.push(vec![sub]);
            }
        }
    }
    out
}

/// A rectangle, and what goes there: configuration and launch message, each with its address.
type Chain = (Rect, Option<(u32, Vec<u8>)>, Option<(u32, Vec<u8>)>);

/// What a configuration packet holds.
#[derive(Clone, Copy)]
struct Places {
    /// Private bytes at its start.
    private: bool,
    /// Shared bytes, from there on.
    shared: Option<u32>,
}

impl Uniform {
    /// Encodes the chains of a launch.
    fn new(chains: &[Chain], places: Places) -> Result<Self, EncodeError> {
        let count: usize = chains.iter().map(|(_, config, message)| config.iter().len() + message.iter().len()).sum();
        let header = RELAY + CMD_SIZE;
        let mut data = header + (count * size_of::<WritePackedLargeSub>()).next_multiple_of(L1_ALIGN as usize);
        let (mut messages, mut privates, mut shareds) = (Vec::new(), Vec::new(), Vec::new());
        let mut subs = Vec::with_capacity(count);
        for (rect, config, message) in chains {
            if let Some((addr, bytes)) = config {
                privates.extend(places.private.then_some(data));
                shareds.extend(places.shared.map(|offset| data + offset as usize));
                data += bytes.len().next_multiple_of(L1_ALIGN as usize);
                subs.push(sub(*rect, *addr, bytes.clone(), message.is_none()));
            }
            if let Some((addr, bytes)) = message {
                let at = header + subs.len() * size_of::<WritePackedLargeSub>();
                messages.push(at + offset_of!(WritePackedLargeSub, addr));
                data += bytes.len().next_multiple_of(L1_ALIGN as usize);
                subs.push(sub(*rect, *addr, bytes.clone(), true));
            }
        }
        let bytes = relay(&large(WritePackedLargeType::CbsSemsCrtas, L1_ALIGN, subs))?;
        Ok(Self { bytes, messages, privates, shareds })
    }

    /// Patches `out`, a copy of the command, for the launch message at `message`.
    pub(super) fn patch(&self, out: &mut [u8], message: L1Addr, private: &[u8], shared: &[u8]) {
        for &at in &self.messages {
            put_word(out, at, message.get());
        }
        for &at in &self.privates {
            out[at..at + private.len()].copy_from_slice(private);
        }
        for &at in &self.shareds {
            out[at..at + shared.len()].copy_from_slice(shared);
        }
    }
}

/// The commands of per-core private bytes: cores in groups that a command can name, and for each
/// group the bytes in pieces, so that a record of them stays short.
fn packets(layout: &Layout) -> Result<Vec<Packets>, EncodeError> {
    let bytes = layout.private_bytes();
    let mut out = Vec::new();
    for cores in layout.cores.chunks(WRITE_PACKED_MAX_UNICAST_SUBS) {
        for start in (0..bytes).step_by(CHUNK) {
            let size = (bytes - start).min(u32_of(CHUNK)) as usize;
            let command = DispatchCommand::WritePacked(PackedWrite {
                kind: WritePackedType::RuntimeArgs,
                write_offset_index: 0,
                addr: layout.base.offset(start).get(),
                targets: PackedTargets::Unicast(cores.iter().map(|c| c.encode()).collect()),
                packets: Data::PerTarget(vec![vec![0; size]; cores.len()]),
            });
            let data = RELAY + (CMD_SIZE + 4 * cores.len()).next_multiple_of(L1_ALIGN as usize);
            out.push(Packets {
                bytes: relay(&command)?,
                start,
                data,
                stride: size.next_multiple_of(L1_ALIGN as usize),
            });
        }
    }
    Ok(out)
}

/// Stores `words` at offset `at` of the private bytes of core number `core`.
pub(super) fn write_words(packets: &mut [Packets], layout: &Layout, core: usize, at: u32, words: &[u32]) {
    let pieces = (layout.private_bytes() as usize).div_ceil(CHUNK);
    let (group, packet) = (core / WRITE_PACKED_MAX_UNICAST_SUBS, core % WRITE_PACKED_MAX_UNICAST_SUBS);
    let (mut at, mut left) = (at as usize, words);
    while !left.is_empty() {
        let piece = &mut packets[group * pieces + at / CHUNK];
        let (now, later) = left.split_at(left.len().min((CHUNK - at % CHUNK) / 4));
        let first = piece.data + packet * piece.stride + at % CHUNK;
        let (places, _) = piece.bytes[first..first + 4 * now.len()].as_chunks_mut();
        for (place, word) in places.iter_mut().zip(now) {
            *place = word.to_le_bytes();
        }
        at += 4 * now.len();
        left = later;
    }
}

impl Packets {
    /// The packets, with the bytes between them.
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[self.data..]
    }

    /// Patches `out`, a copy of the command, for a slot at `base`.
    pub(super) fn patch(&self, out: &mut [u8], base: L1Addr) {
        put_word(out, RELAY + offset_of!(abi::WritePacked, addr), base.offset(self.start).get());
    }
}

const _: () = assert!(CHUNK.is_multiple_of(4) && LAUNCH_MSG_BYTES.is_multiple_of(L1_ALIGN as usize));
