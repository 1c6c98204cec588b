//! Programs of the kernel `functions`.

use crate::common::{folder, read_npy, run_text, write_npy};
use tilework_abi::eltwise::{Function, Kind, Step, Word, flag, image, integer};

/// Runs a program with these inputs, and gives its output.
pub(crate) fn run<T: npyz::AutoSerialize + Copy, U: npyz::Deserialize>(
    text: &str,
    shape: &[u64],
    inputs: &[&[T]],
) -> Vec<U> {
    let folder = folder();
    let mut more = Vec::new();
    for (name, values) in ["a", "b", "c"].into_iter().zip(inputs) {
        let file = folder.path().join(format!("{name}.npy"));
        write_npy(&file, shape, values);
        more.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    run_text(folder.path(), text, &more.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    read_npy(&folder.path().join("out/y.npy")).1
}

/// The program of the kernel `functions` for a square of `side` elements a side: function, its
/// numbers, types of operands and result. Dst has 32 bits.
pub(crate) fn program(function: u32, numbers: [u32; 2], types: [&str; 2], operands: usize, side: u64) -> String {
    program_with(function, numbers, types, operands, side, true)
}

/// Formats of tiles by their names in program files.
const FORMATS: [(&str, u32); 8] =
    [("f32", 0), ("bf16", 5), ("bfp8", 6), ("i32", 8), ("u16", 9), ("i8", 14), ("u32", 24), ("u8", 30)];

/// Number of the format of this name.
fn format(name: &str) -> u32 {
    FORMATS.iter().find(|(known, _)| *known == name).unwrap().1
}

/// As [`program`]; `wide`: Dst has 32 bits.
pub(crate) fn program_with(
    function: u32,
    numbers: [u32; 2],
    types: [&str; 2],
    operands: usize,
    side: u64,
    wide: bool,
) -> String {
    let function = Function::of(function).unwrap();
    let [from, to] = types;
    // Integers of eight bits are calculated with as ones of 32 bits.
    let kind = match from {
        "u16" => integer::UINT16,
        "u32" => integer::UINT32,
        _ => integer::INT32,
    };
    let of_integers = matches!(function.kind(), Kind::IntegerUnary | Kind::IntegerBinary);
    let between = if matches!(from, "i8" | "u8") { "i32" } else { from };
    let mut steps = Vec::new();
    let cast = |slot, from, to| {
        let step = Step::new(Function::Typecast).of(slot, 0, 0).encode();
        if from != to { vec![step, format(from), format(to)] } else { Vec::new() }
    };
    for i in 0..operands as u32 {
        steps.push(Step::new(Function::Load).of(i, 0, 0).to(i).encode());
        if of_integers {
            steps.extend(cast(i, from, between));
        }
    }
    if function == Function::Typecast {
        steps.extend(cast(0, from, to));
    } else {
        let step = Step::new(function).of(0, 1, 2);
        steps.push(if of_integers { step.integers(kind) } else { step }.encode());
        steps.extend(&numbers[..function.numbers() as usize]);
    }
    if of_integers {
        steps.extend(cast(0, between, to));
    }
    steps.push(Step::new(Function::Store).encode());
    program_of(&steps, types, operands, side, wide)
}

/// The image of the math thread that has the functions of these steps.
pub(crate) fn image_of(steps: &[u32]) -> &'static str {
    let mut images = image::ALL;
    let mut at = 0;
    while at < steps.len() {
        let word = Word(steps[at]);
        images &= word.function().unwrap().images();
        at += 1 + word.numbers() as usize;
    }
    match images {
        _ if images & image::FUNCTIONS != 0 => "functions",
        _ if images & image::SPECIAL != 0 => "special",
        _ => "integers",
    }
}

/// The program file that runs these steps for each tile, with one result.
pub(crate) fn program_of(steps: &[u32], [from, to]: [&str; 2], operands: usize, side: u64, wide: bool) -> String {
    let names = &["a", "b", "c"][..operands];
    let buffer = |name: &str, usage: &str, dtype: &str| {
        let layout = "layout = \"tile\"";
        format!("[buffers.{name}]\nuse = \"{usage}\"\ndtype = \"{dtype}\"\n{layout}\nshape = [{side}, {side}]\n")
    };
    let mut text = "name = \"functions\"\n".to_owned();
    names.iter().for_each(|name| text += &buffer(name, "input", from));
    text += &buffer("y", "output", to);
    for (index, name) in names.iter().enumerate().map(|(i, name)| (i, *name)).chain([(16, "y")]) {
        text += &format!("[[cb]]\nname = \"{name}\"\nindex = {index}\npages = 2\npage_size = \"{name}.page_size\"\n");
    }
    let feed: Vec<_> = names
        .iter()
        .map(|n| format!("\"{n}.addr\", \"split.start({n}.pages)\", 0, \"{n}.page_size\", \"cb.{n}\""))
        .collect();
    let flags = if wide { flag::WIDE } else { 0 };
    let cbs: Vec<_> = names.iter().map(|n| format!("\"cb.{n}\", \"{n}.format\", 1, 1, ")).collect();
    let words: Vec<_> = steps.iter().map(u32::to_string).collect();
    text + &format!(
        "[[roles]]\ncores = 16\n[roles.ncrisc]\nelf = \"prebuilt:feed\"\n\
         args = [\"split.count(a.pages)\", {operands}, {}]\n\
         [roles.trisc0]\nelf = \"prebuilt:functions-unpack\"\n\
         args = [\"split.count(a.pages)\", 1, 1, {flags}, {operands}, 1, {}, {SEED}, {}\"cb.y\", \"y.format\", {}]\n\
         [roles.trisc1]\nelf = \"prebuilt:{}-math\"\n[roles.trisc2]\nelf = \"prebuilt:functions-pack\"\n\
         [roles.brisc]\nelf = \"prebuilt:writer\"\n\
         args = [\"y.addr\", \"split.start(y.pages)\", \"split.count(y.pages)\", \"y.page_size\", \"cb.y\"]\n",
        feed.join(", "),
        words.len(),
        cbs.concat(),
        words.join(", "),
        image_of(steps),
    )
}

/// Seed of random numbers.
const SEED: u32 = 1;
