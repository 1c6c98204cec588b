//! The checks that make a [`Plan`] out of a program file: every buffer gets its shape, every role
//! its cores, every kernel its ELF file, and every refusal its place in the file.

use super::cores::{self, Choice};
use super::expr::{Expr, ExprError};
use super::plan::{Arg, Plan, PlannedCb, PlannedKernel, PlannedRole, PlannedSemaphore};
use super::schema::{BufferDecl, CbDecl, KernelDecl, ProgramFile, RoleDecl, SemaphoreDecl, Use, Value};
use super::scope::Globals;
use super::source::Source;
use super::steps::Named;
use super::wrong::{Wrong, consequence};
use crate::array::Array;
use crate::board_option::BoardLayout;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::L1_ALIGN;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_checks::Allow;
use tilework_runtime::KernelImage;
use toml::Spanned;

/// Roles that one program may have.
pub const MAX_ROLES: usize = 4;
/// Semaphores that one program may have.
pub const MAX_SEMAPHORES: usize = 16;
/// Budget of buffers.
pub const MAX_BUFFERS: usize = 64;
/// Budget of argument words in one list; what fits a core is less and depends on the program.
pub const MAX_ARGS: usize = 16_384;
/// Largest page of a buffer in bytes.
pub const MAX_PAGE_SIZE: i64 = 1 << 20;

impl Plan {
    /// Checks a program against a board and the arrays given for its inputs, all of them.
    pub fn new(
        source: Source,
        file: ProgramFile,
        board: impl Into<BoardLayout>,
        inputs: &BTreeMap<String, Array>,
    ) -> Outcome<Self> {
        let (plan, wrong) = Self::examine(source, &file, board.into(), inputs, |_| true);
        wrong.outcome().map(|()| plan)
    }

    /// Checks a program and says everything that is wrong with it. What is wrong is missing in the
    /// plan, or has a stand-in. `needs_array` tells which inputs need an array: a program that is
    /// not to be run may do without those whose shape the file states.
    pub fn examine(
        source: Source,
        file: &ProgramFile,
        board: BoardLayout,
        inputs: &BTreeMap<String, Array>,
        needs_array: impl Fn(&BufferDecl) -> bool,
    ) -> (Self, Wrong) {
        let mut planner = Planner { source: &source, board, globals: Globals::new(board), wrong: Wrong::default() };
        let board = planner.workers(file);
        (planner.board, planner.globals) = (board, Globals::new(board));
        planner.input_names(file, inputs, needs_array);
        let buffers = planner.buffers(file, inputs);
        let cbs = planner.cbs(file);
        let semaphores = planner.semaphores(file);
        let roles = planner.roles(file, board);
        let common = &file.common_args;
        let common_args = [
            planner.args("common_args.brisc", &common.brisc),
            planner.args("common_args.ncrisc", &common.ncrisc),
            planner.args("common_args.trisc", &common.trisc),
        ];
        let (launches, tables) = planner.launches(file);
        let allow = planner.allow(file);
        let steps = planner.steps(&Named { file, buffers: &buffers, launches: &tables });
        let Planner { globals, wrong, .. } = planner;
        let (name, name_span) = (file.name.get_ref().clone(), file.name.span());
        let BoardLayout { board, layout: dispatch_layout, queues, chosen: worker_cores } = board;
        let plan = Self {
            name,
            board,
            dispatch_layout,
            queues,
            worker_cores,
            buffers,
            cbs,
            semaphores,
            roles,
            launches,
            steps,
            allow,
            name_span,
            common_args,
            source,
            globals,
        };
        (plan, wrong)
    }
}

/// What the checks know so far.
pub(super) struct Planner<'a> {
    pub(super) source: &'a Source,
    pub(super) board: BoardLayout,
    pub(super) globals: Globals,
    pub(super) wrong: Wrong,
}

/// A dot would make two names look like one, and names starting like these belong to the
/// expressions themselves.
const RESERVED: [&str; 11] = ["core", "next", "prev", "first", "last", "split", "board", "dram", "cb", "sem", "launch"];

impl Planner<'_> {
    pub(super) fn fail<T>(&self, span: Range<usize>, message: impl std::fmt::Display) -> Outcome<T> {
        Err(self.source.error(span, message))
    }

    /// Whether a name is one that expressions can use.
    pub(super) fn check_name(&self, what: &str, name: &Spanned<String>) -> Outcome<()> {
        self.check_word(what, name)?;
        let text = name.get_ref();
        if RESERVED.contains(&text.as_str()) {
            return self.fail(name.span(), format!("{what} name {text:?} is taken by expressions; choose another"));
        }
        Ok(())
    }

    /// Whether a name is a word.
    pub(super) fn check_word(&self, what: &str, name: &Spanned<String>) -> Outcome<()> {
        let text = name.get_ref();
        let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && text.len() <= 64;
        if !word {
            let expected = "a word of at most 64 letters, digits and \"_\" that starts with a letter";
            return self.fail(name.span(), format!("{what} name {text:?}: expected {expected}"));
        }
        Ok(())
    }

    pub(super) fn parse(&self, value: &Spanned<Value>) -> Outcome<Arg> {
        let span = value.span();
        match value.get_ref() {
            Value::Integer(n) => Ok(Arg { expr: Expr::integer(*n), text: String::new(), span }),
            Value::Expression(text) => {
                let expr = Expr::parse(text).map_err(|e| self.expr_error(&span, text, &e))?;
                Ok(Arg { expr, text: text.clone(), span })
            }
        }
    }

    fn expr_error(&self, span: &Range<usize>, text: &str, error: &ExprError) -> Failure {
        if error.message.is_empty() {
            return consequence();
        }
        self.source.error(self.source.inside(span, text, error.at.clone()), error)
    }

    /// A number that is the same for the whole program, within limits.
    pub(super) fn number(
        &self,
        what: &str,
        value: &Spanned<Value>,
        limits: std::ops::RangeInclusive<i64>,
    ) -> Outcome<u64> {
        let arg = self.parse(value)?;
        let number = arg.expr.value(&self.globals).map_err(|e| self.expr_error(&arg.span, &arg.text, &e))?;
        match u64::try_from(number) {
            Ok(n) if limits.contains(&number) => Ok(n),
            _ => {
                let (low, high) = limits.into_inner();
                self.fail(arg.span, format!("{what} is {number}; expected {low} to {high}"))
            }
        }
    }

    /// The arrays of the command line against the inputs of the program.
    fn input_names(
        &mut self,
        file: &ProgramFile,
        inputs: &BTreeMap<String, Array>,
        needs_array: impl Fn(&BufferDecl) -> bool,
    ) {
        let declared: Vec<_> =
            file.buffers.0.iter().filter(|(_, decl)| *decl.get_ref().usage.get_ref() == Use::Input).collect();
        let is = |given: &str| declared.iter().any(|(name, _)| name.get_ref() == given);
        let broken = |given: &&String| file.broken.buffers.contains(given);
        for unknown in inputs.keys().filter(|given| !is(given) && !broken(given)) {
            let names: Vec<&str> = declared.iter().map(|(name, _)| name.get_ref().as_str()).collect();
            let known =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            let message = format_args!(": the program has no input of that name; {known}");
            self.wrong.add(crate::inputs::wrong(unknown, message));
        }
        for (input, decl) in declared {
            let name = input.get_ref();
            if needs_array(decl.get_ref()) && !inputs.contains_key(name) {
                let message = format!("no array for input \"{name}\"; give one with --input {name}=FILE.npy");
                self.wrong.add(self.source.error(input.span(), message));
                if decl.get_ref().shape.is_none() && decl.get_ref().like.is_none() {
                    self.globals.set_broken(name);
                }
            }
        }
    }

    /// The findings that the file allows.
    fn allow(&mut self, file: &ProgramFile) -> Vec<Allow> {
        let read = |text: &Spanned<String>| {
            Allow::parse(text.get_ref()).map_err(|error| self.source.error(text.span(), format!("allow: {error}")))
        };
        let read: Vec<_> = file.allow.iter().map(read).collect();
        read.into_iter().filter_map(|allow| self.wrong.keep(allow)).collect()
    }

    fn cbs(&mut self, file: &ProgramFile) -> Vec<PlannedCb> {
        let most = tilework_abi::cb::COUNT;
        if file.broken.cb {
            self.globals.set_broken("cb");
        }
        if let Some(extra) = file.cb.get(most as usize) {
            let message = format!("{} circular buffers; a core has {most}", file.cb.len());
            self.wrong.add(self.source.error(extra.span(), message));
        }
        let mut planned: Vec<PlannedCb> = Vec::new();
        let mut names = Vec::new();
        for decl in file.cb.iter().take(most as usize) {
            let (cb, span) = (decl.get_ref(), decl.span());
            let index = self.number("the index of a circular buffer", &cb.index, 0..=i64::from(most) - 1);
            let index = index.map(|index| u8::try_from(index).unwrap_or(u8::MAX));
            let pages = self.number("pages of a circular buffer", &cb.pages, 1..=0xFFFF);
            let page_size = self.cb_page_size(cb, index.as_ref().ok().copied());
            let index = self.wrong.keep(index);
            let named = self.name_index("cb", cb.name.as_ref(), &mut names, index.map(usize::from));
            self.wrong.keep(named);
            if let Some(index) = index.filter(|index| planned.iter().any(|p| p.index == *index)) {
                self.wrong
                    .add(self.source.error(cb.index.span(), format!("circular buffer {index} is declared twice")));
                continue;
            }
            let sizes = (self.wrong.keep(pages), self.wrong.keep(page_size));
            let (Some(index), (Some(pages), Some(page_size))) = (index, sizes) else { continue };
            let name = cb.name.as_ref().map(|name| name.get_ref().clone());
            // The limits of both are below 2^32.
            let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            planned.push(PlannedCb { name, index, pages: small(pages), page_size: small(page_size), span });
        }
        planned
    }

    fn cb_page_size(&self, cb: &CbDecl, index: Option<u8>) -> Outcome<u64> {
        let page_size = self.number("page_size of a circular buffer", &cb.page_size, 1..=MAX_PAGE_SIZE)?;
        if !page_size.is_multiple_of(L1_ALIGN.into()) {
            let which = index.map_or_else(|| "a circular buffer".to_owned(), |i| format!("circular buffer {i}"));
            let message = format!("page_size of {which} is {page_size}; expected a multiple of {L1_ALIGN}");
            return self.fail(cb.page_size.span(), message);
        }
        Ok(page_size)
    }

    fn semaphores(&mut self, file: &ProgramFile) -> Vec<PlannedSemaphore> {
        const MOST: usize = MAX_SEMAPHORES;
        if file.broken.semaphores {
            self.globals.set_broken("sem");
        }
        if let Some(extra) = file.semaphores.get(MOST) {
            let message = format!("{} semaphores; a program has at most {MOST}", file.semaphores.len());
            self.wrong.add(self.source.error(extra.span(), message));
        }
        let mut names = Vec::new();
        let mut planned = Vec::new();
        for (id, decl) in file.semaphores.iter().enumerate() {
            let SemaphoreDecl { name, initial } = decl.get_ref();
            let named = self.name_index("sem", name.as_ref(), &mut names, Some(id));
            self.wrong.keep(named);
            let name = name.as_ref().map(|name| name.get_ref().clone());
            planned.push(PlannedSemaphore { name, initial: *initial });
        }
        planned
    }

    /// Defines `cb.NAME` or `sem.NAME`; without an index, as broken.
    fn name_index(
        &mut self,
        kind: &str,
        name: Option<&Spanned<String>>,
        names: &mut Vec<String>,
        index: Option<usize>,
    ) -> Outcome<()> {
        let Some(name) = name else { return Ok(()) };
        self.check_name(kind, name)?;
        if names.contains(name.get_ref()) {
            return self.fail(name.span(), format!("two [[{kind}]] are named \"{}\"", name.get_ref()));
        }
        names.push(name.get_ref().clone());
        let name = format!("{kind}.{}", name.get_ref());
        match index {
            Some(index) => self.globals.set(name, index),
            None => self.globals.set_broken(name),
        }
        Ok(())
    }

    fn roles(&mut self, file: &ProgramFile, board: BoardLayout) -> Vec<PlannedRole> {
        let roles = &file.roles;
        if let Some(extra) = roles.get(MAX_ROLES) {
            let message = format!("{} roles; a program has at most {MAX_ROLES}", roles.len());
            self.wrong.add(self.source.error(extra.span(), message));
        } else if roles.is_empty() && !file.broken.roles {
            let message = "the program has no roles; give at least one [[roles]] with a kernel";
            self.wrong.add(self.source.error(file.name.span(), message));
        }
        let labels: Vec<String> = (0..roles.len()).map(|role| file.role_name(role)).collect();
        for (i, label) in labels.iter().enumerate() {
            if labels[..i].contains(label) {
                self.wrong.add(self.source.error(roles[i].span(), format!("two roles are named \"{label}\"")));
            }
        }
        let cores = self.cores(file, &labels, board);
        let mut planned = Vec::new();
        for ((role, name), cores) in roles.iter().zip(labels).zip(cores) {
            let kernels = self.kernels(role, &name);
            planned.push(PlannedRole { name, cores, kernels });
        }
        planned
    }

    /// The cores of each role. When they cannot be dealt out, each has the board's first worker as
    /// a stand-in, for the check of its arguments.
    fn cores(&mut self, file: &ProgramFile, labels: &[String], board: BoardLayout) -> Vec<Vec<NocXy>> {
        let stand_in = || vec![board.workers()[..1].to_vec(); file.roles.len()];
        if file.broken.roles {
            return stand_in();
        }
        let choice = |(role, label)| {
            let role: &Spanned<RoleDecl> = role;
            let label: &String = label;
            Choice { role: label, cores: role.get_ref().cores.get_ref() }
        };
        let choices: Vec<_> = file.roles.iter().zip(labels).map(choice).collect();
        if choices.is_empty() {
            return Vec::new();
        }
        let together = |a, b| file.run_together(a, b);
        let assigned = cores::assign(board, &choices, together)
            .map_err(|e| self.source.error(file.roles[e.role].get_ref().cores.span(), e.message));
        self.wrong.keep(assigned).unwrap_or_else(stand_in)
    }

    fn kernels(&mut self, role: &Spanned<RoleDecl>, name: &str) -> Vec<PlannedKernel> {
        let (span, role) = (role.span(), role.get_ref());
        let mut kernels: Vec<PlannedKernel> = Vec::new();
        let decls = [&role.brisc, &role.ncrisc, &role.trisc0, &role.trisc1, &role.trisc2];
        for (processor, kernel) in Processor::ALL.into_iter().zip(decls) {
            let Some(kernel) = kernel else { continue };
            let planned = self.kernel(processor, kernel.get_ref());
            let has_args = |k: &PlannedKernel| !k.args.is_empty();
            if has_args(&planned) && kernels.iter().any(|k| has_args(k) && k.set() == planned.set()) {
                let message = "the kernels of trisc0, trisc1 and trisc2 share their args; give them in one place";
                self.wrong.add(self.source.error(kernel.span(), format!("role \"{name}\": {message}")));
            }
            kernels.push(planned);
        }
        if kernels.is_empty() {
            let message = format!("role \"{name}\" has no kernel; give brisc, ncrisc, trisc0, trisc1 or trisc2");
            self.wrong.add(self.source.error(span, message));
        }
        kernels
    }

    fn kernel(&mut self, processor: Processor, decl: &KernelDecl) -> PlannedKernel {
        let label = decl.elf.get_ref().clone();
        let failed =
            |e: &dyn std::fmt::Display| self.source.error(decl.elf.span(), format!("{}: {e}", processor.name()));
        let image = self
            .source
            .kernel(&label)
            .map_err(|e| failed(&e))
            .and_then(|elf| KernelImage::load(&label, elf, processor).map_err(|e| failed(&e)));
        let image = self.wrong.keep(image).map(Arc::new);
        PlannedKernel { processor, label, image, args: self.args("args", &decl.args) }
    }

    fn args(&mut self, kind: &str, values: &[Spanned<Value>]) -> Vec<Arg> {
        if let Some(extra) = values.get(MAX_ARGS) {
            let message = format!("{kind} has {} values; expected at most {MAX_ARGS}", values.len());
            self.wrong.add(self.source.error(extra.span(), message));
        }
        let mut args = Vec::new();
        for value in values.iter().take(MAX_ARGS) {
            let arg = self.parse(value);
            args.extend(self.wrong.keep(arg));
        }
        args
    }
}
