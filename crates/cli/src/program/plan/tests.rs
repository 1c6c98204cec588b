//! Plans from program files: what is placed where, and what is refused.

use super::*;
use crate::array::Array;
use crate::program::schema::ProgramFile;
use std::collections::BTreeMap;

fn u32_array(shape: &[u64]) -> Array {
    let bytes = crate::array::array_bytes(DType::U32, shape).unwrap();
    Array { dtype: DType::U32, shape: shape.to_vec(), data: vec![0; bytes as usize] }
}

fn plan_with(text: &str, inputs: &[(&str, Array)]) -> Result<Plan, String> {
    let source = Source::of(text);
    let file = ProgramFile::parse(&source).map_err(|e| e.to_string())?;
    let inputs: BTreeMap<_, _> = inputs.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect();
    Plan::new(source, file, Board::P100, &inputs).map_err(|e| e.to_string())
}

const X: &str = "[buffers.x]\nuse = \"input\"\ndtype = \"u32\"\npage_size = 64\n";

fn with_args(args: &str) -> String {
    format!("name = \"t\"\n{X}[[roles]]\ncores = 3\nbrisc = {{ elf = \"prebuilt:empty\", args = {args} }}\n")
}

fn arguments(args: &str) -> Result<Vec<Vec<u32>>, String> {
    let plan = plan_with(&with_args(args), &[("x", u32_array(&[10, 16]))])?;
    plan.arguments(&[0x1000]).map(|a| a[0].per_core[0].clone()).map_err(|e| e.to_string())
}

#[test]
fn uneven_shares_come_out_of_the_split() {
    let args =
        arguments("[\"x.addr\", \"split.start(x.pages)\", \"split.count(x.pages)\", \"core.index\", -1]").unwrap();
    assert_eq!(args, [[0x1000, 0, 4, 0, u32::MAX], [0x1000, 4, 3, 1, u32::MAX], [0x1000, 7, 3, 2, u32::MAX]]);
}

#[test]
fn an_error_in_an_argument_has_its_line_and_column() {
    let message = arguments("[1, \"x.adr + 1\"]").unwrap_err();
    let head = "program.toml:8:47: role \"role0\", BRISC, args[1]: unknown name \"x.adr\"; known here: board.workers";
    assert!(message.starts_with(head), "{message}");
    let message = arguments("[\"1 +\"]").unwrap_err();
    assert!(message.starts_with("program.toml:8:47: the expression ends too early"), "{message}");
    let message = arguments("[\"x.bytes * 0x1_0000_0000\"]").unwrap_err();
    assert!(message.contains("does not fit the 32 bits of an argument word"), "{message}");
    let message = arguments("[1.5]").unwrap_err();
    assert!(message.contains("floating point `1.5`, expected an integer or an expression in a string"), "{message}");
}

#[test]
fn roles_follow_each_other_in_the_argument_lists() {
    let text = "name = \"t\"\n[common_args]\nncrisc = [\"board.workers\"]\n\
        [[roles]]\nname = \"a\"\ncores = [[2, 2]]\nbrisc = { elf = \"prebuilt:empty\", args = [\"core.x\"] }\n\
        [[roles]]\nname = \"b\"\ncores = 2\nncrisc = { elf = \"prebuilt:empty\", args = [7, \"core.y\"] }\n";
    let plan = plan_with(text, &[]).unwrap();
    let args = plan.arguments(&[]).unwrap().remove(0);
    assert_eq!(args.per_core[0], [vec![2], vec![], vec![]]);
    assert_eq!(args.per_core[1], [vec![], vec![7, 2], vec![7, 3]]);
    assert_eq!(args.common, [vec![], vec![118], vec![]]);
}

#[test]
fn trisc_kernels_share_one_list_of_arguments() {
    let role = |second: &str| {
        format!(
            "name = \"t\"\n[[roles]]\ncores = 1\ntrisc0 = {{ elf = \"prebuilt:empty\", args = [5] }}\n\
             trisc1 = {{ elf = \"prebuilt:empty\"{second} }}\n"
        )
    };
    assert_eq!(plan_with(&role(""), &[]).unwrap().arguments(&[]).unwrap()[0].per_core[2], [[5]]);
    assert!(plan_with(&role(", args = [6]"), &[]).unwrap_err().contains("share their args"));
}

#[test]
fn a_shape_can_follow_from_the_board_and_from_other_buffers() {
    let text = format!(
        "name = \"t\"\n{X}[buffers.y]\nuse = \"output\"\nlike = \"x\"\ndtype = \"i16\"\npage_size = 128\n\
         [buffers.s]\nuse = \"scratch\"\nlocation = \"l1\"\ndtype = \"u8\"\nshape = [2, \"x.page_size\", \"board.workers\"]\n\
         page_size = 16\n[[roles]]\ncores = 1\nbrisc = {{ elf = \"prebuilt:empty\" }}\n"
    );
    let plan = plan_with(&text, &[("x", u32_array(&[5, 7]))]).unwrap();
    let shapes: Vec<_> = plan.buffers.iter().map(|b| (b.dtype, b.shape.clone(), b.bytes, b.pages)).collect();
    assert_eq!(shapes[0], (DType::U32, vec![5, 7], 140, 3));
    assert_eq!(shapes[1], (DType::I16, vec![5, 7], 70, 1));
    assert_eq!(shapes[2], (DType::U8, vec![2, 64, 118], 15104, 944));
}

/// A role that runs anywhere.
const ROLE: &str = "[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";

/// Checks that a program is refused with a reason and its place in the file.
#[track_caller]
fn refused(text: &str, reason: &str) {
    let message = plan_with(text, &[]).map(|_| ()).unwrap_err();
    assert!(message.contains(reason), "{message}\nexpected: {reason}");
    assert!(message.starts_with("program.toml:"), "{message}");
}

#[test]
fn a_buffer_that_does_not_fit_is_refused_with_its_place() {
    let role = ROLE;
    let buffer = |fields: &str| format!("name = \"t\"\n[buffers.b]\n{fields}\n{role}");
    refused(
        &buffer("use = \"scratch\"\ndtype = \"u32\"\nshape = [1]\npage_size = 48"),
        "page_size is 48; expected a multiple of 64",
    );
    refused(
        &buffer("use = \"scratch\"\ndtype = \"u32\"\nshape = [1]\npage_size = 0"),
        "page_size is 0; expected 1 to 1048576",
    );
    refused(
        &buffer("use = \"scratch\"\ndtype = \"u33\"\nshape = [1]\npage_size = 64"),
        "unknown variant `u33`, expected one of `u8`",
    );
    refused(&buffer("use = \"scratch\"\nshape = [1]\npage_size = 64"), "has no dtype");
    refused(&buffer("use = \"output\"\ndtype = \"u8\"\npage_size = 64"), "has no shape");
    refused(
        &buffer("use = \"scratch\"\nlike = \"c\"\npage_size = 64"),
        "is like \"c\", which is no earlier buffer; earlier ones: none",
    );
    refused(
        &buffer("use = \"output\"\ndtype = \"u8\"\nshape = [1]\npage_size = 64\nlocation = \"l1\""),
        "only scratch buffers can be in L1",
    );
    refused(
        &buffer("use = \"scratch\"\ndtype = \"u8\"\nshape = [4294967296, 4294967296, 4294967296]\npage_size = 64"),
        "is larger than 4294967296 bytes",
    );
    refused(
        &buffer("use = \"scratch\"\ndtype = \"u8\"\nshape = [\"b.pages\"]\npage_size = 64"),
        "unknown name \"b.pages\"",
    );
    refused(
        &format!("name = \"t\"\n[buffers.core]\nuse = \"scratch\"\npage_size = 64\n{role}"),
        "is taken by expressions",
    );
    refused(&format!("name = \"t\"\n[buffers.\"a.b\"]\nuse = \"scratch\"\npage_size = 64\n{role}"), "expected a word");
}

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    let role = ROLE;
    refused("name = \"t\"\nroles = []\n", "the program has no roles");
    refused("name = \"t\"\n[[roles]]\ncores = 1\n", "role \"role0\" has no kernel");
    refused(&format!("name = \"t\"\n{}", role.repeat(5)), "5 roles; a program has at most 4");
    refused(
        "name = \"t\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:nothing\" }\n",
        "there are accumulate-math, accumulate-pack, accumulate-unpack, attention-math",
    );
    let cb = |index: &str, n: usize| {
        let one = format!("[[cb]]\nindex = {index}\npages = 1\npage_size = 16\n");
        format!("name = \"t\"\n{}{role}", one.repeat(n))
    };
    refused(&cb("32", 1), "the index of a circular buffer is 32; expected 0 to 31");
    refused(&cb("3", 2), "circular buffer 3 is declared twice");
    refused(&cb("0", 33), "33 circular buffers; a core has 32");
    refused(
        &format!("name = \"t\"\n{}{role}", "[[semaphores]]\n".repeat(17)),
        "17 semaphores; a program has at most 16",
    );
    refused(
        &format!("name = \"t\"\n[[cb]]\nname = \"a\"\nindex = 0\npages = 0\npage_size = 16\n{role}"),
        "pages of a circular buffer is 0",
    );
}

#[test]
fn arrays_must_match_the_program() {
    let text = with_args("[]");
    let refused = |text: &str, inputs: &[(&str, Array)], reason: &str| {
        let message = plan_with(text, inputs).map(|_| ()).unwrap_err();
        assert!(message.contains(reason), "{message}\nexpected: {reason}");
    };
    refused(&text, &[], "no array for input \"x\"; give one with --input x=FILE.npy");
    refused(&text, &[("z", u32_array(&[1]))], "--input z: the program has no input of that name; it has x");
    let mut other = u32_array(&[4]);
    other.dtype = DType::F32;
    refused(&text, &[("x", other)], "input \"x\": the array has dtype f32, the program expects u32");
    let shaped = text.replace("page_size = 64", "shape = [4, 16]\npage_size = 64");
    refused(
        &shaped,
        &[("x", u32_array(&[4, 15]))],
        "input \"x\": the array has shape (4, 15), the program expects (4, 16)",
    );
}

fn launched(launches: &str, args: &str) -> Result<Vec<Vec<u32>>, String> {
    let text = with_args(args) + launches;
    let plan = plan_with(&text, &[("x", u32_array(&[10, 16]))])?;
    let launches = plan.arguments(&[0x1000]).map_err(|e| e.to_string())?;
    Ok(launches.into_iter().map(|launch| launch.per_core[0][0].clone()).collect())
}

#[test]
fn arguments_differ_from_launch_to_launch() {
    let launches = "[[launch]]\nvalues = { step = 7, to = \"x.addr\" }\n\
        [[launch]]\nrepeat = \"x.pages / 5\"\nvalues = { to = 0, step = \"launch.index * 10\" }\n";
    let found = launched(launches, "[\"launch.index\", \"launch.count\", \"launch.step + 1\", \"launch.to\"]");
    assert_eq!(found, Ok(vec![vec![0, 3, 8, 0x1000], vec![1, 3, 11, 0], vec![2, 3, 21, 0]]));
    assert_eq!(launched("", "[\"launch.index\", \"launch.count\"]"), Ok(vec![vec![0, 1]]));
}

#[test]
fn wrong_launches_are_refused_at_their_place() {
    let refused = |launches: &str, args: &str| launched(launches, args).unwrap_err();
    for (launches, args, message) in [
        ("[[launch]]\nrepeat = 0\n", "[]", "10:10: repeat of a launch is 0; expected 1 to 1024"),
        ("[[launch]]\nrepeat = 1000\n[[launch]]\nrepeat = 25\n", "[]", "11:1: more than 1024 launches"),
        ("[[launch]]\nvalues = { a = 1 }\n[[launch]]\n", "[]", "11:1: this launch has no value \"a\"; the first has"),
        ("[[launch]]\n[[launch]]\nvalues = { a = 1 }\n", "[]", "11:12: the first launch has no value \"a\""),
        ("[[launch]]\nvalues = { index = 1 }\n", "[]", "10:12: \"launch.index\" has a meaning of its own"),
        ("[[launch]]\nvalues = { a = \"1 / (launch.index)\" }\n", "[]", "10:17: launch.a: 1 / 0: division by zero"),
        (
            "[[launch]]\nvalues = { a = \"core.index\" }\n",
            "[]",
            "10:17: launch.a: \"core.index\" differs from core to core",
        ),
        (
            "[[launch]]\nvalues = { a = 1 }\n",
            "[\"launch.b\"]",
            "8:44: role \"role0\", BRISC, args[0]: unknown name \"launch.b\"",
        ),
        ("[[launch]]\ntimes = 1\n", "[]", "10:1: unknown field `times`, expected `repeat` or `values`"),
        (
            "[[cb]]\nindex = 0\npages = \"launch.count\"\npage_size = 64\n",
            "[]",
            "11:10: \"launch.count\" differs from launch to launch",
        ),
    ] {
        let found = refused(launches, args);
        assert!(found.starts_with(&format!("program.toml:{message}")), "{found}\nexpected {message}");
        assert_eq!(found.matches("program.toml:").count(), 1, "{found}");
    }
}
