//! A program that is ready to be launched, with arguments that can be changed.

use super::key;
use super::sequence::{Compiled, Private, skeleton, write_words};
use crate::program::{ArgSet, CbLayout, Layout, Program, ProgramError, ProgramErrorKind, UniqueArgs};
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::L1_ALIGN;
use tilework_abi::cb::CONFIG_BYTES;
use tilework_abi::convert::u32_of;

/// How many unique arguments of each set every core is given: one number for all, or one for each.
type Given = Arc<[Vec<u32>; ArgSet::ALL.len()]>;

/// A compiled program with the values of its arguments. Changing a value patches the words of the
/// encoded commands: nothing is lowered again.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(super) compiled: Arc<Compiled>,
    /// The program with its own names and without values.
    pub(super) program: Arc<Program>,
    pub(super) private: Private,
    /// Circular-buffer configurations and common arguments.
    pub(super) shared: Vec<u8>,
    cbs: Vec<CbLayout>,
    /// Where the lists of unique arguments differ in length.
    given: Option<Given>,
}

impl Prepared {
    /// `program`, whose shape is that of `compiled`, with its own values.
    pub(super) fn new(compiled: Arc<Compiled>, program: &Program) -> Self {
        let private = compiled.private(program);
        let shared = compiled.shared(program, &compiled.layout.cbs);
        let cbs = compiled.layout.cbs.clone();
        let known = &compiled.program;
        let as_known = key::same_names(known, program) && known.cbs_over == program.cbs_over;
        let own = if as_known { Arc::clone(known) } else { Arc::new(skeleton(program)) };
        Self { program: own, private, shared, cbs, compiled, given: given(program) }
    }

    /// The program's name.
    pub fn name(&self) -> &str {
        &self.program.name
    }
    /// Number of its cores.
    pub fn cores(&self) -> usize {
        self.compiled.layout.cores.len()
    }

    /// Sets the unique arguments of `set` on core number `core` of the program.
    ///
    /// # Errors
    /// A core that the program does not have; more arguments than it was prepared with. Fewer leave
    /// the last ones as they were.
    pub fn set_args(&mut self, set: ArgSet, core: usize, args: &[u32]) -> Result<(), ProgramError> {
        let layout = &*self.compiled.layout;
        let span = layout.args[set.index()];
        self.check(set.name(), args.len(), (span.unique_bytes / 4) as usize)?;
        if core >= layout.cores.len() {
            return Err(self.fail(format!("core number {core}"), format!("one of {}", layout.cores.len())));
        }
        gives(&mut self.given, set, args.len(), layout.cores.len(), core..core + 1);
        if let Private::Uniform(bytes) = &mut self.private {
            let at = span.unique as usize..span.unique as usize + 4 * args.len();
            let (old, _) = bytes[at.clone()].as_chunks();
            if old.iter().map(|word| u32::from_le_bytes(*word)).eq(args.iter().copied()) {
                return Ok(());
            }
            if layout.cores.len() == 1 {
                store(&mut bytes[at], args);
                return Ok(());
            }
            self.private = Private::PerCore(self.compiled.spread(bytes));
        }
        if let Private::PerCore(packets) = &mut self.private {
            write_words(packets, layout, core, span.unique, args);
        }
        Ok(())
    }

    /// Sets the unique arguments of `set` to the same on all cores.
    ///
    /// # Errors
    /// More arguments than the program was prepared with.
    pub fn set_args_everywhere(&mut self, set: ArgSet, args: &[u32]) -> Result<(), ProgramError> {
        let layout = &*self.compiled.layout;
        let span = layout.args[set.index()];
        self.check(set.name(), args.len(), (span.unique_bytes / 4) as usize)?;
        gives(&mut self.given, set, args.len(), layout.cores.len(), 0..layout.cores.len());
        match &mut self.private {
            Private::Uniform(bytes) => store(&mut bytes[span.unique as usize..], args),
            Private::PerCore(packets) => {
                for core in 0..layout.cores.len() {
                    write_words(packets, layout, core, span.unique, args);
                }
            }
        }
        Ok(())
    }

    /// Sets the common arguments of `set`.
    ///
    /// # Errors
    /// More arguments than the program was prepared with.
    pub fn set_common_args(&mut self, set: ArgSet, args: &[u32]) -> Result<(), ProgramError> {
        let have = self.compiled.program.common_args[set.index()].len();
        self.check(set.name(), args.len(), have)?;
        let at = self.compiled.layout.args[set.index()].common - self.compiled.layout.cb_offset;
        store(&mut self.shared[at as usize..], args);
        Ok(())
    }

    /// Sets the initial value of semaphore `id`.
    ///
    /// # Errors
    /// A semaphore that the program does not have.
    pub fn set_semaphore(&mut self, id: u32, value: u32) -> Result<(), ProgramError> {
        let layout = &*self.compiled.layout;
        if id >= layout.semaphores {
            return Err(self.fail(format!("semaphore {id}"), format!("one of {}", layout.semaphores)));
        }
        let at = layout.sem_offset + id * L1_ALIGN;
        match &mut self.private {
            Private::Uniform(bytes) => store(&mut bytes[at as usize..], &[value]),
            Private::PerCore(packets) => {
                for core in 0..layout.cores.len() {
                    write_words(packets, layout, core, at, &[value]);
                }
            }
        }
        Ok(())
    }

    /// The program as reports see it: with its names, and without values.
    pub(crate) fn program(&self) -> Arc<Program> {
        Arc::clone(&self.program)
    }

    /// The words of its arguments, for what they may point to.
    pub(crate) fn argument_words(&self) -> Vec<u32> {
        let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>();
        let mut out = words(self.shared.get(self.compiled.layout.cb_bytes as usize..).unwrap_or_default());
        match &self.private {
            Private::Uniform(bytes) => out.extend(words(bytes)),
            Private::PerCore(packets) => packets.iter().for_each(|packets| out.extend(words(packets.data()))),
        }
        out
    }

    /// How many unique arguments of `set` the cores are given: one number for all, or one for each.
    pub(crate) fn unique_words(&self, set: ArgSet) -> Vec<u32> {
        match &self.given {
            Some(given) => given[set.index()].clone(),
            None => self.program.args[set.index()].words(),
        }
    }

    /// Where everything lies under the plain lowering.
    pub(crate) fn plain_layout(&self) -> Arc<Layout> {
        Arc::clone(&self.compiled.layout)
    }

    /// Stores the addresses of the circular buffers.
    pub(super) fn set_cbs(&mut self, cbs: &[CbLayout]) {
        for b in cbs {
            store(&mut self.shared[b.index as usize * CONFIG_BYTES..], &[b.address.get()]);
        }
        if self.cbs != cbs {
            self.cbs = cbs.to_vec();
        }
    }

    /// `layout` with the circular buffers where this program has them.
    pub(super) fn layout(&self, layout: &Arc<Layout>) -> Arc<Layout> {
        if self.cbs == layout.cbs {
            return Arc::clone(layout);
        }
        Arc::new(Layout { cbs: self.cbs.clone(), ..Layout::clone(layout) })
    }

    fn check(&self, set: &'static str, found: usize, expected: usize) -> Result<(), ProgramError> {
        if found <= expected {
            return Ok(());
        }
        Err(self.fail(format!("{found} {set} arguments"), format!("at most {expected}, as it was prepared")))
    }

    fn fail(&self, found: String, expected: String) -> ProgramError {
        ProgramErrorKind::Prepared { found, expected }.of(&self.program.name)
    }

    /// Bytes of the private part when all cores share them, for the account.
    pub(super) fn private_bytes(&self) -> u32 {
        match &self.private {
            Private::Uniform(bytes) => u32_of(bytes.len()),
            Private::PerCore(_) => self.compiled.layout.private_bytes(),
        }
    }
}

/// Notes that some of `all` cores are given so many arguments, or as many as they were before.
fn gives(given: &mut Option<Given>, set: ArgSet, words: usize, all: usize, cores: Range<usize>) {
    let Some(given) = given else { return };
    let given = &mut Arc::make_mut(given)[set.index()];
    if let [uniform] = given[..] {
        given.resize(all, uniform);
    }
    for given in given.iter_mut().take(cores.end).skip(cores.start) {
        *given = (*given).max(u32_of(words));
    }
}

/// The number of arguments of each set and core of a program whose lists differ in length.
fn given(program: &Program) -> Option<Given> {
    let differs = |args: &UniqueArgs| match args {
        UniqueArgs::Uniform(_) => false,
        UniqueArgs::PerCore(lists) => lists.windows(2).any(|pair| pair[0].len() != pair[1].len()),
    };
    program.args.iter().any(differs).then(|| Arc::new(ArgSet::ALL.map(|set| program.args[set.index()].words())))
}

fn store(out: &mut [u8], words: &[u32]) {
    let (places, _) = out.as_chunks_mut();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}
