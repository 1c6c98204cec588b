//! The checks that make a [`Plan`] out of a program file: every buffer gets its shape, every role
//! its cores, every kernel its ELF file, and every refusal its place in the file.

use super::cores::{self, Choice};
use super::expr::{Expr, ExprError};
use super::kernels;
use super::plan::{Arg, Plan, PlannedBuffer, PlannedCb, PlannedKernel, PlannedRole};
use super::schema::{BufferDecl, KernelDecl, Layout, Location, ProgramFile, Use, Value};
use super::scope::Globals;
use super::source::Source;
use super::storage;
use crate::array::{self, Array, shape_text};
use crate::failure::{Failure, Outcome};
use std::collections::BTreeMap;
use std::ops::Range;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN};
use tilework_dtype::DType;
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
    pub fn new(source: Source, file: ProgramFile, board: Board, inputs: &BTreeMap<String, Array>) -> Outcome<Self> {
        let needs_array = |_: &BufferDecl| true;
        Self::with(source, file, board, inputs, needs_array)
    }

    /// Checks a program that is not to be run: an input whose shape the file states needs no array.
    pub fn without_arrays(
        source: Source,
        file: ProgramFile,
        board: Board,
        inputs: &BTreeMap<String, Array>,
    ) -> Outcome<Self> {
        let needs_array = |decl: &BufferDecl| decl.shape.is_none() && decl.like.is_none();
        Self::with(source, file, board, inputs, needs_array)
    }

    fn with(
        source: Source,
        file: ProgramFile,
        board: Board,
        inputs: &BTreeMap<String, Array>,
        needs_array: impl Fn(&BufferDecl) -> bool,
    ) -> Outcome<Self> {
        let mut planner = Planner { source: &source, globals: Globals::new(board) };
        planner.input_names(&file, inputs, needs_array)?;
        let buffers = planner.buffers(&file, inputs)?;
        let cbs = planner.cbs(&file)?;
        let semaphores = planner.semaphores(&file)?;
        let roles = planner.roles(&file, board)?;
        let common = &file.common_args;
        let common_args = [
            planner.args("common_args.brisc", &common.brisc)?,
            planner.args("common_args.ncrisc", &common.ncrisc)?,
            planner.args("common_args.trisc", &common.trisc)?,
        ];
        let globals = planner.globals;
        let name = file.name.into_inner();
        Ok(Self { name, board, buffers, cbs, semaphores, roles, common_args, source, globals })
    }
}

struct Planner<'a> {
    source: &'a Source,
    globals: Globals,
}

/// A dot would make two names look like one, and names starting like these belong to the
/// expressions themselves.
const RESERVED: [&str; 10] = ["core", "next", "prev", "first", "last", "split", "board", "dram", "cb", "sem"];

impl Planner<'_> {
    fn fail<T>(&self, span: Range<usize>, message: impl std::fmt::Display) -> Outcome<T> {
        Err(self.source.error(span, message))
    }

    fn check_name(&self, what: &str, name: &Spanned<String>) -> Outcome<()> {
        let text = name.get_ref();
        let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && text.len() <= 64;
        if !word {
            let expected = "a word of at most 64 letters, digits and \"_\" that starts with a letter";
            return self.fail(name.span(), format!("{what} name {text:?}: expected {expected}"));
        }
        if RESERVED.contains(&text.as_str()) {
            return self.fail(name.span(), format!("{what} name {text:?} is taken by expressions; choose another"));
        }
        Ok(())
    }

    fn parse(&self, value: &Spanned<Value>) -> Outcome<Arg> {
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
        self.source.error(self.source.inside(span, text, error.at.clone()), error)
    }

    /// A number that is the same for the whole program, within limits.
    fn number(&self, what: &str, value: &Spanned<Value>, limits: std::ops::RangeInclusive<i64>) -> Outcome<u64> {
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
        &self,
        file: &ProgramFile,
        inputs: &BTreeMap<String, Array>,
        needs_array: impl Fn(&BufferDecl) -> bool,
    ) -> Outcome<()> {
        let declared: Vec<_> =
            file.buffers.0.iter().filter(|(_, decl)| *decl.get_ref().usage.get_ref() == Use::Input).collect();
        if let Some(unknown) = inputs.keys().find(|given| !declared.iter().any(|(n, _)| n.get_ref() == *given)) {
            let names: Vec<&str> = declared.iter().map(|(name, _)| name.get_ref().as_str()).collect();
            let known =
                if names.is_empty() { "it has none".to_owned() } else { format!("it has {}", names.join(", ")) };
            let message = format_args!(": the program has no input of that name; {known}");
            return Err(crate::inputs::wrong(unknown, message));
        }
        let missing = |decl: &BufferDecl, name: &str| needs_array(decl) && !inputs.contains_key(name);
        if let Some((missing, _)) = declared.iter().find(|(name, decl)| missing(decl.get_ref(), name.get_ref())) {
            let name = missing.get_ref();
            let message = format!("no array for input \"{name}\"; give one with --input {name}=FILE.npy");
            return self.fail(missing.span(), message);
        }
        Ok(())
    }

    fn buffers(&mut self, file: &ProgramFile, inputs: &BTreeMap<String, Array>) -> Outcome<Vec<PlannedBuffer>> {
        let mut planned: Vec<PlannedBuffer> = Vec::new();
        for (name, decl) in &file.buffers.0 {
            self.check_name("buffer", name)?;
            if planned.len() == MAX_BUFFERS {
                return self.fail(name.span(), format!("more than {MAX_BUFFERS} buffers"));
            }
            let buffer = self.buffer(name, decl, &planned, inputs.get(name.get_ref()))?;
            for (field, value) in storage::numbers(&buffer) {
                self.globals.set(format!("{}.{field}", buffer.name), value);
            }
            planned.push(buffer);
        }
        Ok(planned)
    }

    fn buffer(
        &self,
        name: &Spanned<String>,
        decl: &Spanned<BufferDecl>,
        earlier: &[PlannedBuffer],
        input: Option<&Array>,
    ) -> Outcome<PlannedBuffer> {
        let (label, span, decl) = (name.get_ref(), name.span(), decl.get_ref());
        let usage = *decl.usage.get_ref();
        if usage != Use::Scratch && decl.location == Location::L1 {
            return self.fail(
                decl.usage.span(),
                format!("buffer \"{label}\": only scratch buffers can be in L1; inputs and outputs are in DRAM"),
            );
        }
        let (dtype, shape) = self.geometry(label, span.clone(), decl, earlier, input)?;
        let layout = self.layout(label, decl, earlier, dtype, &shape)?;
        let bytes = storage::bytes(dtype, layout, &shape);
        let Some(bytes) = bytes.filter(|&n| n <= array::MAX_FILE_BYTES) else {
            let message = format!(
                "buffer \"{label}\" of shape {} is larger than {} bytes",
                shape_text(&shape),
                array::MAX_FILE_BYTES
            );
            return self.fail(span, message);
        };
        let tile = dtype.tile_bytes() as u64;
        let (page_size, page_span) = match (&decl.page_size, layout) {
            (Some(own), _) => (self.number("page_size", own, 1..=MAX_PAGE_SIZE)?, own.span()),
            (None, Layout::Tile) => (tile, span.clone()),
            (None, Layout::Row) => {
                return self.fail(span, format!("buffer \"{label}\" has no page_size; only tiles have a usual one"));
            }
        };
        if layout == Layout::Tile && page_size != tile {
            let message = format!("buffer \"{label}\": page_size is {page_size}; a page of tiles is a tile, {tile}");
            return self.fail(page_span, message);
        }
        let align = u64::from(if decl.location == Location::Dram { DRAM_ALIGN } else { L1_ALIGN });
        if !page_size.is_multiple_of(align) {
            let message = format!("buffer \"{label}\": page_size is {page_size}; expected a multiple of {align}");
            return self.fail(page_span, message);
        }
        let (Ok(pages), Ok(page_size)) = (u32::try_from(bytes.div_ceil(page_size)), u32::try_from(page_size)) else {
            return self.fail(page_span, format!("buffer \"{label}\" has more than 2^32 pages"));
        };
        let (name, location) = (label.clone(), decl.location);
        Ok(PlannedBuffer { name, usage, dtype, layout, shape, bytes, page_size, pages, location })
    }

    /// The order of a buffer's elements: its own, or that of the buffer it is like.
    fn layout(
        &self,
        label: &str,
        decl: &BufferDecl,
        earlier: &[PlannedBuffer],
        dtype: DType,
        shape: &[u64],
    ) -> Outcome<Layout> {
        let model = decl.like.as_ref().and_then(|like| earlier.iter().find(|b| b.name == *like.get_ref()));
        let (layout, span) = match (&decl.layout, &decl.like) {
            (Some(own), _) => (*own.get_ref(), own.span()),
            (None, Some(like)) => (model.map_or(Layout::Row, |model| model.layout), like.span()),
            (None, None) => (Layout::Row, decl.usage.span()),
        };
        match storage::refuse(dtype, layout, shape) {
            Some(why) => self.fail(span, format!("buffer \"{label}\": {why}")),
            None => Ok(layout),
        }
    }

    /// The element type and shape of a buffer: its own, those of the buffer it is like, or those of
    /// the input array.
    fn geometry(
        &self,
        label: &str,
        span: Range<usize>,
        decl: &BufferDecl,
        earlier: &[PlannedBuffer],
        input: Option<&Array>,
    ) -> Outcome<(DType, Vec<u64>)> {
        let (mut dtype, mut shape) = (None, None);
        if let Some(like) = &decl.like {
            let Some(model) = earlier.iter().find(|b| b.name == *like.get_ref()) else {
                let known: Vec<_> = earlier.iter().map(|b| b.name.as_str()).collect();
                let message = format!(
                    "buffer \"{label}\" is like \"{}\", which is no earlier buffer; earlier ones: {}",
                    like.get_ref(),
                    if known.is_empty() { "none".into() } else { known.join(", ") }
                );
                return self.fail(like.span(), message);
            };
            (dtype, shape) = (Some(model.dtype), Some(model.shape.clone()));
        }
        if let Some(own) = &decl.dtype {
            dtype = Some(own.get_ref().0);
        }
        if let Some(own) = &decl.shape {
            if own.get_ref().len() > array::MAX_DIMENSIONS {
                return self.fail(own.span(), format!("more than {} dimensions", array::MAX_DIMENSIONS));
            }
            let dimension = |d| self.number("a dimension", d, 0..=i64::MAX);
            shape = Some(own.get_ref().iter().map(dimension).collect::<Outcome<Vec<_>>>()?);
        }
        let Some(dtype) = dtype else {
            return self
                .fail(span, format!("buffer \"{label}\" has no dtype; give dtype, or like = an earlier buffer"));
        };
        if let Some(array) = input {
            if array.dtype != storage::array_dtype(dtype) {
                let (found, wanted) = (array.dtype.name(), storage::array_dtype(dtype).name());
                let message = format!("input \"{label}\": the array has dtype {found}, the program expects {wanted}");
                return self.fail(span, message);
            }
            let expected = shape.get_or_insert_with(|| array.shape.clone());
            if *expected != array.shape {
                let message = format!(
                    "input \"{label}\": the array has shape {}, the program expects {}",
                    shape_text(&array.shape),
                    shape_text(expected)
                );
                return self.fail(span, message);
            }
        }
        match shape {
            Some(shape) => Ok((dtype, shape)),
            None => {
                self.fail(span, format!("buffer \"{label}\" has no shape; give shape, or like = an earlier buffer"))
            }
        }
    }

    fn cbs(&mut self, file: &ProgramFile) -> Outcome<Vec<PlannedCb>> {
        let most = i64::from(tilework_abi::cb::COUNT);
        if file.cb.len() > tilework_abi::cb::COUNT as usize {
            let message = format!("{} circular buffers; a core has {most}", file.cb.len());
            return self.fail(file.cb[tilework_abi::cb::COUNT as usize].span(), message);
        }
        let mut planned: Vec<PlannedCb> = Vec::new();
        let mut names = Vec::new();
        for decl in &file.cb {
            let cb = decl.get_ref();
            let index = self.number("the index of a circular buffer", &cb.index, 0..=most - 1)?;
            let index = u8::try_from(index).expect("the number is below 32");
            if planned.iter().any(|p| p.index == index) {
                return self.fail(cb.index.span(), format!("circular buffer {index} is declared twice"));
            }
            let pages = self.number("pages of a circular buffer", &cb.pages, 1..=0xFFFF)?;
            let page_size = self.number("page_size of a circular buffer", &cb.page_size, 1..=MAX_PAGE_SIZE)?;
            if page_size % u64::from(L1_ALIGN) != 0 {
                let message =
                    format!("page_size of circular buffer {index} is {page_size}; expected a multiple of {L1_ALIGN}");
                return self.fail(cb.page_size.span(), message);
            }
            self.name_index("cb", cb.name.as_ref(), &mut names, index.into())?;
            let small = |n: u64| u32::try_from(n).expect("the limits of both are below 2^32");
            planned.push(PlannedCb { index, pages: small(pages), page_size: small(page_size) });
        }
        Ok(planned)
    }

    fn semaphores(&mut self, file: &ProgramFile) -> Outcome<Vec<u32>> {
        const MOST: usize = MAX_SEMAPHORES;
        let mut names = Vec::new();
        for (id, decl) in file.semaphores.iter().enumerate() {
            if id >= MOST {
                let message = format!("{} semaphores; a program has at most {MOST}", file.semaphores.len());
                return self.fail(decl.span(), message);
            }
            self.name_index("sem", decl.get_ref().name.as_ref(), &mut names, id)?;
        }
        Ok(file.semaphores.iter().map(|s| s.get_ref().initial).collect())
    }

    /// Defines `cb.NAME` or `sem.NAME`.
    fn name_index(
        &mut self,
        kind: &str,
        name: Option<&Spanned<String>>,
        names: &mut Vec<String>,
        index: usize,
    ) -> Outcome<()> {
        let Some(name) = name else { return Ok(()) };
        self.check_name(kind, name)?;
        if names.contains(name.get_ref()) {
            return self.fail(name.span(), format!("two [[{kind}]] are named \"{}\"", name.get_ref()));
        }
        names.push(name.get_ref().clone());
        self.globals.set(format!("{kind}.{}", name.get_ref()), index);
        Ok(())
    }

    fn roles(&mut self, file: &ProgramFile, board: Board) -> Outcome<Vec<PlannedRole>> {
        match file.roles.as_slice() {
            [] => {
                return self
                    .fail(file.name.span(), "the program has no roles; give at least one [[roles]] with a kernel");
            }
            roles if roles.len() > MAX_ROLES => {
                let message = format!("{} roles; a program has at most {MAX_ROLES}", roles.len());
                return self.fail(roles[MAX_ROLES].span(), message);
            }
            _ => {}
        }
        let label = |i: usize| match &file.roles[i].get_ref().name {
            Some(name) => name.get_ref().clone(),
            None => format!("role{i}"),
        };
        let labels: Vec<String> = (0..file.roles.len()).map(label).collect();
        for (i, label) in labels.iter().enumerate() {
            if labels[..i].contains(label) {
                return self.fail(file.roles[i].span(), format!("two roles are named \"{label}\""));
            }
        }
        let choices: Vec<_> = file
            .roles
            .iter()
            .zip(&labels)
            .map(|(role, label)| Choice { role: label, cores: role.get_ref().cores.get_ref() })
            .collect();
        let cores = cores::assign(board, &choices)
            .map_err(|e| self.source.error(file.roles[e.role].get_ref().cores.span(), e.message))?;
        let mut planned = Vec::new();
        for ((role, name), cores) in file.roles.iter().zip(labels).zip(cores) {
            let span = role.span();
            let role = role.get_ref();
            let mut kernels: Vec<PlannedKernel> = Vec::new();
            for (processor, kernel) in
                Processor::ALL.into_iter().zip([&role.brisc, &role.ncrisc, &role.trisc0, &role.trisc1, &role.trisc2])
            {
                if let Some(kernel) = kernel {
                    let planned = self.kernel(processor, kernel.get_ref())?;
                    let has_args = |k: &PlannedKernel| !k.args.is_empty();
                    if has_args(&planned) && kernels.iter().any(|k| has_args(k) && k.set() == planned.set()) {
                        let message =
                            "the kernels of trisc0, trisc1 and trisc2 share their args; give them in one place";
                        return self.fail(kernel.span(), format!("role \"{name}\": {message}"));
                    }
                    kernels.push(planned);
                }
            }
            if kernels.is_empty() {
                return self.fail(
                    span,
                    format!("role \"{name}\" has no kernel; give brisc, ncrisc, trisc0, trisc1 or trisc2"),
                );
            }
            planned.push(PlannedRole { name, cores, kernels });
        }
        Ok(planned)
    }

    fn kernel(&self, processor: Processor, decl: &KernelDecl) -> Outcome<PlannedKernel> {
        let label = decl.elf.get_ref().clone();
        let elf = kernels::load(self.source.folder(), &label)
            .map_err(|e| self.source.error(decl.elf.span(), format!("{}: {e}", processor.name())))?;
        Ok(PlannedKernel { processor, label, elf, args: self.args("args", &decl.args)? })
    }

    fn args(&self, kind: &str, values: &[Spanned<Value>]) -> Outcome<Vec<Arg>> {
        if let Some(extra) = values.get(MAX_ARGS) {
            let message = format!("{kind} has {} values; expected at most {MAX_ARGS}", values.len());
            return self.fail(extra.span(), message);
        }
        values.iter().map(|v| self.parse(v)).collect()
    }
}
