//! Several devices: a chip for each device of a mesh, in one process. What devices exchange goes
//! through the host's memory: read from each, written to each, and counted as such. Their clocks
//! are their own.

use tilework_driver::HostLink;
use tilework_engine::{Event, Held, Machine, OperationPlace, Reason, Together, Value, Work};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{DType, Tensor as Array};

use crate::machine::OnChip;
use crate::placed::{Placed, PlacedMark};
use crate::record::{Carried, Record};
use crate::together;

/// A chip for each device of a mesh; at least one.
pub struct Chips<C> {
    first: OnChip<C>,
    others: Vec<OnChip<C>>,
}

/// A tensor of one of several devices.
#[derive(Clone, Debug)]
pub struct PlacedOn {
    device: usize,
    placed: Placed,
}

impl PlacedOn {
    /// A tensor of a device.
    pub(crate) fn new(device: usize, placed: Placed) -> Self {
        Self { device, placed }
    }

    /// The tensor, if it is that device's, or in the host's memory: what is there is the same for
    /// all.
    pub(crate) fn own(&self, device: usize) -> Option<&Placed> {
        (self.device == device || self.placed.on_device().is_none()).then_some(&self.placed)
    }
}

impl Held for PlacedOn {
    type Mark = PlacedMark;

    fn address(&self) -> usize {
        self.placed.address()
    }
    fn bytes(&self) -> usize {
        self.placed.bytes()
    }
    fn mark(&self) -> PlacedMark {
        self.placed.mark()
    }
    fn is(&self, mark: &PlacedMark) -> bool {
        self.placed.is(mark)
    }
    fn gone(mark: &PlacedMark) -> bool {
        Placed::gone(mark)
    }
}

impl<C: HostLink> Chips<C> {
    /// The devices of a mesh, row by row.
    pub fn new(first: OnChip<C>, others: Vec<OnChip<C>>) -> Self {
        Self { first, others }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &OnChip<C>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The first.
    pub fn first(&self) -> &OnChip<C> {
        &self.first
    }

    /// Forgets what became of the operations before a run begins.
    pub fn forget_records(&mut self) {
        self.each().for_each(OnChip::forget_records);
    }

    /// All of them, to be asked or told something.
    pub fn each(&mut self) -> impl Iterator<Item = &mut OnChip<C>> {
        std::iter::once(&mut self.first).chain(&mut self.others)
    }

    /// The chip of a device.
    pub(crate) fn on(&mut self, device: usize) -> Result<&mut OnChip<C>, Reason> {
        let chip = match device.checked_sub(1) {
            None => Some(&mut self.first),
            Some(index) => self.others.get_mut(index),
        };
        chip.ok_or_else(|| Reason::Value(format!("device {device} of a smaller mesh")))
    }
}

impl<C: HostLink> Machine for Chips<C> {
    type Tensor = PlacedOn;

    fn take(&mut self, array: Array, described: &TensorRef) -> Result<PlacedOn, Reason> {
        self.take_on(0, array, described)
    }

    fn take_on(&mut self, device: usize, array: Array, described: &TensorRef) -> Result<PlacedOn, Reason> {
        Ok(PlacedOn { device, placed: self.on(device)?.take(array, described)? })
    }

    fn has_devices(&self) -> bool {
        !self.others.is_empty()
    }

    fn begin_exchange(&mut self, event: &Event<'_>) {
        for chip in self.each() {
            chip.under_way = Some(Record { carried: Carried::Exchanged, ..Record::at(event.place()) });
        }
    }

    fn end_exchange(&mut self) {
        for chip in self.each() {
            let record = chip.under_way.take();
            chip.records.extend(record);
        }
    }

    fn give(&mut self, tensor: &PlacedOn) -> Result<Array, Reason> {
        self.on(tensor.device)?.give(&tensor.placed)
    }

    fn cast(&mut self, tensor: &PlacedOn, dtype: DType, described: &TensorRef) -> Result<PlacedOn, Reason> {
        let device = tensor.device;
        Ok(PlacedOn { device, placed: self.on(device)?.cast(&tensor.placed, dtype, described)? })
    }

    fn together(&mut self, work: &Together<'_, PlacedOn>) -> Result<Option<Vec<Value<PlacedOn>>>, Reason> {
        match &work.event.operation.op {
            Op::DistributedRMSNorm(op) => together::rms_norm(self, op, work),
            _ => Ok(None),
        }
    }

    fn operate(&mut self, work: &Work<'_, PlacedOn>) -> Result<Vec<PlacedOn>, Reason> {
        let device = work.device;
        let work = work
            .with_operands(|tensor: &PlacedOn| tensor.own(device))
            .ok_or_else(|| Reason::Value("a tensor of another device".into()))?;
        let made = self.on(device)?.operate(&work)?;
        Ok(made.into_iter().map(|placed| PlacedOn { device, placed }).collect())
    }

    fn begin_trace(&mut self) -> Result<(), Reason> {
        if self.has_devices() { Ok(()) } else { self.first.begin_trace() }
    }

    fn end_trace(&mut self) -> Result<Option<u64>, Reason> {
        if self.has_devices() { Ok(None) } else { self.first.end_trace() }
    }

    fn replay(
        &mut self,
        trace: u64,
        place: OperationPlace,
        inputs: &[(&PlacedOn, &PlacedOn)],
        results: &[&PlacedOn],
    ) -> Result<bool, Reason> {
        let inputs: Vec<_> = inputs.iter().map(|(from, to)| (&from.placed, &to.placed)).collect();
        let results: Vec<_> = results.iter().map(|tensor| &tensor.placed).collect();
        self.first.replay(trace, place, &inputs, &results)
    }

    fn release(&mut self, trace: u64) -> Result<(), Reason> {
        self.first.release(trace)
    }

    fn finish(&mut self) -> Result<(), Reason> {
        self.each().try_for_each(Machine::finish)
    }
}
