//! Programs of the kernel `functions`.

use crate::common::{folder, read_npy, run_text, write_npy};

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

/// As [`program`]; `wide`: Dst has 32 bits.
pub(crate) fn program_with(
    function: u32,
    numbers: [u32; 2],
    [from, to]: [&str; 2],
    operands: usize,
    side: u64,
    wide: bool,
) -> String {
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
    let ([x, y], wide) = (numbers, u32::from(wide));
    let cbs: Vec<_> = (0..3).map(|i| format!("\"cb.{}\"", names.get(i).unwrap_or(&"a"))).collect();
    text + &format!(
        "[[roles]]\ncores = 16\n[roles.ncrisc]\nelf = \"prebuilt:feed\"\n\
         args = [\"split.count(a.pages)\", {operands}, {}]\n\
         [roles.trisc0]\nelf = \"prebuilt:functions-unpack\"\n\
         args = [\"split.count(a.pages)\", {function}, {x}, {y}, \"a.format\", \"y.format\", {wide}, {}, \"cb.y\"]\n\
         [roles.trisc1]\nelf = \"prebuilt:functions-math\"\n[roles.trisc2]\nelf = \"prebuilt:functions-pack\"\n\
         [roles.brisc]\nelf = \"prebuilt:writer\"\n\
         args = [\"y.addr\", \"split.start(y.pages)\", \"split.count(y.pages)\", \"y.page_size\", \"cb.y\"]\n",
        feed.join(", "),
        cbs.join(", "),
    )
}
