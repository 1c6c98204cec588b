//! Plans from program files: what is placed where, and what is refused.

use super::*;
use crate::array::Array;
use crate::program::schema::ProgramFile;
use std::collections::BTreeMap;
use tilework_runtime::{Blocking, QueueId};

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

/// A scratch buffer of 128 x 96 words with these fields, in a program.
fn in_memory(fields: &str) -> String {
    let head = "name = \"t\"\n[buffers.b]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [128, 96]";
    format!("{head}\n{fields}\n{ROLE}")
}

/// The field of shards.
fn shard(by: &str, shape: &str, grid: &str) -> String {
    format!("memory = \"sharded\"\nshard = {{ by = \"{by}\", shape = {shape}, grid = {grid} }}")
}

#[test]
fn memories_and_shards() {
    let home = |fields: &str| plan_with(&in_memory(fields), &[]).map(|mut plan| plan.buffers.remove(0));
    let pages = "page_size = 64\n";
    let name = |fields: &str| home(&format!("{pages}{fields}")).unwrap().home.name();
    assert_eq!(name(""), "dram");
    assert_eq!(name("memory = \"dram\""), "dram");
    assert_eq!(name("location = \"l1\""), "l1");
    assert_eq!(name("memory = \"l1\""), "l1-interleaved");

    // Rows of a shard are pages; the width is padded to whole shards. Column 8 has no workers.
    let buffer = home(&shard("block", "[64, 40]", "[[[7, 2], [11, 3]]]")).unwrap();
    assert_eq!((buffer.page_size, buffer.pages, buffer.bytes), (160, 3 * 128, 160 * 3 * 128));
    let Home::Sharded(shards) = &buffer.home else { panic!("{:?}", buffer.home) };
    assert_eq!(shards.layout, TensorMemoryLayout::BlockSharded);
    assert_eq!(shards.spec.tensor_shard_spec.grid.to_string(), "(6,0)-(8,1)");
    assert_eq!((shards.spec.page_shape, shards.spec.tensor2d_shape_in_pages), ([1, 40], [128, 3]));
    let buffer = home(&format!("layout = \"tile\"\n{}", shard("height", "[64, 96]", "[[1, 2], [1, 3]]"))).unwrap();
    assert_eq!((buffer.page_size, buffer.pages), (4096, 12));
    assert_eq!(crate::program::storage::numbers(&buffer).last(), Some(&("shard_pages", 6)));
}

#[test]
fn memories_that_cannot_be_are_refused() {
    let of = |fields: &str, reason: &str| refused(&in_memory(fields), reason);
    of("page_size = 64\nmemory = \"l2\"", "unknown variant `l2`, expected one of `dram`, `l1`, `sharded`");
    of(
        "page_size = 64\nlocation = \"l1\"\nmemory = \"l1\"",
        "buffer \"b\" has a memory and a location; give one of them",
    );
    of(
        "memory = \"sharded\"",
        "buffer \"b\" is sharded; give shard = { by = ..., shape = [rows, columns], grid = [...] }",
    );
    let rows = "shard = { by = \"height\", shape = [32, 96], grid = [[1, 2]] }";
    of(&format!("page_size = 64\n{rows}"), "buffer \"b\" has shards; give memory = \"sharded\"");
    of(&format!("memory = \"l1\"\npage_size = 64\n{rows}"), "buffer \"b\" has shards; give memory = \"sharded\"");
    of(&shard("rows", "[32, 96]", "[[1, 2]]"), "unknown variant `rows`, expected one of `height`, `width`, `block`");
    of(&shard("height", "[32]", "[[1, 2]]"), "buffer \"b\": a shard of 1 dimensions, expected [rows, columns]");
    of(&shard("height", "[32, 0]", "[[1, 2]]"), "a side of a shard is 0; expected 1 to 4294967295");
    of(&shard("height", "[32, 96]", "[[8, 2]]"), "buffer \"b\": core (8, 2) of its grid is no worker of a p100");
    of(&shard("height", "[32, 96]", "[[1, 2], [[1, 1], [1, 2]]]"), "core (1, 1) of its grid is no worker");
    of(&shard("height", "[32, 96]", "[[1, 3], [[1, 2], [1, 4]]]"), "buffer \"b\": cores of its grid overlap");
    of(&shard("height", "[32, 96]", "\"all\""), "invalid type: string \"all\"");
    of(&shard("height", "[32, 97]", "[[1, 2]]"), "page_size is 388; expected a multiple of 16");
    of(
        &format!("page_size = 64\n{}", shard("height", "[32, 96]", "[[1, 2]]")),
        "page_size is 64; a page of shards is a row of a shard, 384",
    );
    let field = shard("height", "[32, 96]", "[[1, 2]]").replace(" }", ", orientation = \"diagonal\" }");
    of(&field, "unknown variant `diagonal`, expected `row` or `column`");
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
        (
            "[[launch]]\ntimes = 1\n",
            "[]",
            "10:1: unknown field `times`, expected one of `name`, `roles`, `repeat`, `values`",
        ),
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

/// Two buffers that move, two roles on the same core that run in turn, and steps.
fn stepped(steps: &str) -> Result<Plan, String> {
    plan_with(&(STEPPED.to_owned() + steps), &[("x", u32_array(&[10, 16]))])
}

const STEPPED: &str = "name = \"t\"
[buffers.x]
use = \"input\"
dtype = \"u32\"
page_size = 64
[buffers.y]
use = \"output\"
like = \"x\"
page_size = 64
[buffers.s]
use = \"scratch\"
dtype = \"u32\"
shape = [16]
page_size = 64
location = \"l1\"
[[roles]]
name = \"a\"
cores = [[1, 2]]
brisc = { elf = \"prebuilt:empty\", args = [1] }
[[roles]]
name = \"b\"
cores = 2
brisc = { elf = \"prebuilt:empty\", args = [2, \"core.count\"] }
[[launch]]
name = \"first\"
roles = [\"a\"]
[[launch]]
roles = [\"b\"]
repeat = 2
";

const STEPS: &str = "[[queue]]\nwrite = \"x\"\n[[queue]]\nlaunch = \"first\"\nblocking = true\n\
    [[queue]]\nlaunch = \"launch1\"\n[[queue]]\nread = \"y\"\n[[queue]]\nwrite = \"y\"\nfrom = \"x\"\n\
    [[queue]]\nread = \"y\"\nname = \"copy\"\n[[queue]]\nrecord = \"all\"\n[[queue]]\nwait = \"copy\"\n\
    [[queue]]\nsynchronize = \"all\"\n";

#[test]
fn launches_run_their_roles_and_steps_are_kept_in_order() {
    let plan = stepped(STEPS).unwrap();
    let roles = |launch| plan.launched(launch).map(|role| role.name.as_str()).collect::<Vec<_>>();
    assert_eq!([roles(0), roles(1), roles(2)], [["a"], ["b"], ["b"]]);
    assert_eq!((plan.launch_name(0), plan.launch_name(2)), ("t.first".to_owned(), "t.launch1".to_owned()));
    // They share the first worker, because they never run together.
    assert_eq!((plan.roles[0].cores[0], plan.roles[1].cores.len()), (plan.roles[1].cores[0], 2));
    assert_eq!(plan.cores(), 2);
    let arguments = plan.arguments(&[0, 0, 0]).unwrap();
    assert_eq!(arguments[0].per_core[0], [[1]]);
    assert_eq!(arguments[2].per_core[0], [[2, 2], [2, 2]]);
    let steps: Vec<_> = plan.steps.iter().map(|step| (step.step.action(), step.step.name(&plan.buffers))).collect();
    assert_eq!(steps[..3], [("write", "x"), ("launch", "first"), ("launch", "launch1")]);
    assert_eq!(steps[3..6], [("read", "y"), ("write", "x"), ("read", "copy")]);
    assert_eq!(steps[6..], [("record", "all"), ("wait", "copy"), ("synchronize", "all")]);
    assert!(
        matches!(&plan.steps[1].step, Step::Launch { launches, blocking: Blocking::Yes, .. } if *launches == (0..1))
    );
    assert!(
        matches!(&plan.steps[2].step, Step::Launch { launches, blocking: Blocking::No, .. } if *launches == (1..3))
    );
    assert_eq!(plan.outputs(), [("y", 1), ("copy", 1)]);
}

/// Each mistake by itself, in place of the step that the line of the file begins.
#[test]
fn wrong_steps_are_refused_at_their_place() {
    let line = STEPPED.lines().count() + 1;
    for (step, at, message) in [
        ("write = \"z\"", "1:9", "no buffer \"z\"; there are: x, y, s"),
        ("write = \"s\"", "1:9", "buffer \"s\" is the same range of every core: it cannot be moved"),
        ("write = \"y\"", "1:9", "buffer \"y\" is no input; give from = \"INPUT\""),
        ("write = \"x\"\nfrom = \"y\"", "2:8", "no input \"y\"; there are: x"),
        ("launch = \"third\"", "1:10", "no launch \"third\"; there are: first, launch1"),
        ("read = \"s\"", "1:8", "buffer \"s\" is the same range of every core"),
        ("read = \"y\"\nname = \"../y\"", "2:8", "read name \"../y\": expected a word"),
        ("record = \"a b\"", "1:10", "event name \"a b\": expected a word"),
        ("wait = \"y\"", "1:8", "no event or read \"y\" before this step; there are: none"),
        ("synchronize = \"all\"", "1:15", "no event or read \"all\" before this step; there are: none"),
        (
            "from = \"x\"",
            "0:1",
            "a step without an action; give one of write, launch, read, record, wait, synchronize, \
          trace, replay, release",
        ),
        ("read = \"y\"\nwrite = \"x\"", "1:8", "a step has write and read; give each its own step"),
        ("read = \"y\"\nfrom = \"x\"", "2:8", "\"from\" belongs to write, but this step has read"),
        ("write = \"x\"\nname = \"n\"", "2:8", "\"name\" belongs to read, but this step has write"),
        (
            "record = \"e\"\nblocking = true",
            "2:12",
            "\"blocking\" belongs to write, launch, read, replay, but this step",
        ),
        ("write = \"x\"\nblocking = 1", "2:12", "invalid type: integer `1`, expected a boolean"),
        ("lane = 2", "1:1", "unknown field `lane`, expected one of `write`, `launch`, `read`"),
        ("write = \"x\"\nqueue = 2", "2:9", "no queue 2; a device has queue 0 and, if a step names it, queue 1"),
        ("write = \"x\"\nqueue = -1", "2:9", "no queue -1; "),
        ("replay = \"t\"\nqueue = 1", "2:9", "\"queue\" belongs to write, launch, read, record, wait, trace, but"),
        ("replay = \"t\"", "1:10", "no trace \"t\" before this step; there are: none"),
        ("release = \"t\"", "1:11", "no trace \"t\" before this step; there are: none"),
        ("release = \"t\"\nqueue = 1", "2:9", "\"queue\" belongs to write, launch, read, record, wait, trace, but"),
        ("release = \"t\"\ntimes = 2", "2:9", "\"times\" belongs to replay, but this step has release"),
        ("release = \"t\"\nblocking = true", "2:12", "\"blocking\" belongs to write, launch, read, replay, but this"),
        ("trace = \"a b\"\nlaunches = [\"first\"]", "1:9", "trace name \"a b\": expected a word"),
        ("trace = \"t\"", "1:9", "a trace without launches; give launches = [\"NAME\"]"),
        ("trace = \"t\"\nlaunches = []", "2:12", "a trace without launches"),
        ("trace = \"t\"\nlaunches = [\"third\"]", "2:13", "no launch \"third\"; there are: first, launch1"),
        ("trace = \"t\"\nlaunches = [\"first\"]", "2:13", "launch \"first\" has not run before its capture; add {"),
        ("write = \"x\"\nlaunches = [\"first\"]", "2:12", "\"launches\" belongs to trace, but this step has write"),
        ("write = \"x\"\ntimes = 2", "2:9", "\"times\" belongs to replay, but this step has write"),
    ] {
        let found = stepped(&format!("[[queue]]\n{step}\n{STEPS}")).map(|_| ()).unwrap_err();
        let (row, column) = at.split_once(':').unwrap();
        let place = format!("program.toml:{}:{column}: {message}", line + row.parse::<usize>().unwrap());
        assert!(found.starts_with(&place), "{found}\nexpected {place}");
        assert_eq!(found.matches("program.toml:").count(), 1, "{found}");
    }
}

#[test]
fn traces_and_queues_of_steps_are_kept() {
    let traced = "[[queue]]\ntrace = \"t\"\nlaunches = [\"first\", \"launch1\"]\nqueue = 1\n\
        [[queue]]\nreplay = \"t\"\ntimes = 7\nblocking = true\n";
    let plan = stepped(&format!("{STEPS}{traced}")).unwrap();
    let [.., trace, replay] = plan.steps.as_slice() else { panic!() };
    let launches = vec![("first".to_owned(), 0..1), ("launch1".to_owned(), 1..3)];
    assert_eq!(trace.step, Step::Trace { name: "t".into(), launches });
    assert_eq!(replay.step, Step::Replay { trace: "t".into(), times: 7, blocking: Blocking::Yes });
    // A replay is of its trace's queue, the host's own steps of none.
    let queues: Vec<_> = plan.steps.iter().map(|step| step.queue.map(QueueId::number)).collect();
    assert_eq!(queues[7..], [Some(0), None, Some(1), Some(1)]);
    assert_eq!((plan.queues, plan.device().queues), (2, 2));
    let workers = |plan: &Plan| plan.at().workers().len();
    let one = stepped(STEPS).unwrap();
    assert_eq!((one.queues, workers(&one) - workers(&plan)), (1, 2), "the other queue's tiles are no workers");

    let refused = |more: &str| stepped(&format!("{STEPS}{traced}[[queue]]\n{more}")).map(|_| ()).unwrap_err();
    let released = "release = \"t\"\n";
    let plan = stepped(&format!("{STEPS}{traced}[[queue]]\n{released}")).unwrap();
    let last = plan.steps.last().unwrap();
    assert_eq!((&last.step, last.queue), (&Step::Release { trace: "t".into() }, Some(QueueId::SECOND)));
    for late in ["replay", "release"] {
        let found = refused(&format!("{released}[[queue]]\n{late} = \"t\""));
        assert!(found.contains(": trace \"t\" is released before this step"), "{found}");
    }
    let found = refused(&format!("{released}[[queue]]\ntrace = \"t\"\nlaunches = [\"first\"]"));
    assert!(found.contains(": two traces are named \"t\""), "{found}");
    let found = refused("replay = \"u\"");
    assert!(found.contains(": no trace \"u\" before this step; there are: t"), "{found}");
    let found = refused("trace = \"t\"\nlaunches = [\"first\"]");
    assert!(found.contains(": two traces are named \"t\""), "{found}");
    for times in ["0", "-1", "1000001"] {
        let found = refused(&format!("replay = \"t\"\ntimes = {times}"));
        assert!(found.contains(&format!(":9: times = {times}; expected 1 to 1000000")), "{found}");
    }
}

#[test]
fn what_no_step_moves_or_runs_is_refused() {
    let without = |step: &str, by: &str| stepped(&STEPS.replacen(step, by, 1)).map(|plan| plan.steps.len());
    assert_eq!(without("[[queue]]\nread = \"y\"\n[[queue]]", "[[queue]]"), Ok(8), "the other read is enough");
    let message = without("launch = \"first\"", "launch = \"launch1\"").unwrap_err();
    assert!(message.starts_with("program.toml:24:1: launch \"first\" is run by no step"), "{message}");
    let found = stepped("[[queue]]\nrecord = \"e\"\n").map(|_| ()).unwrap_err();
    for message in [
        "2:10: input \"x\" is written by no step; add { write = \"x\" }",
        "6:10: output \"y\" is read by no step; add { read = \"y\" }",
        "24:1: launch \"first\" is run by no step; add { launch = \"first\" }",
        "27:1: launch \"launch1\" is run by no step",
    ] {
        assert!(found.contains(message), "{found}\nexpected {message}");
    }
    let one = format!("{}[[queue]]\nwrite = \"x\"\n", with_args("[]"));
    let found = plan_with(&one, &[("x", u32_array(&[1]))]).map(|_| ()).unwrap_err();
    assert!(found.starts_with("program.toml:1:8: launch \"launch0\" is run by no step"), "{found}");
    let two = format!("{STEPS}[[queue]]\nrecord = \"copy\"\n");
    assert!(stepped(&two).map(|_| ()).unwrap_err().contains(": two reads or events are named \"copy\""));
    let other = STEPPED.replace("like = \"x\"", "dtype = \"u32\"\nshape = [160]");
    let found = plan_with(&(other + STEPS), &[("x", u32_array(&[10, 16]))]).map(|_| ()).unwrap_err();
    assert!(found.contains("the array of \"x\" is u32 (10, 16), buffer \"y\" takes u32 (160,)"), "{found}");
    let many = format!("{STEPS}{}", "[[queue]]\nwrite = \"x\"\n".repeat(1024));
    assert!(stepped(&many).map(|_| ()).unwrap_err().contains("1033 steps; a program has at most 1024"));
}

#[test]
fn wrong_roles_of_launches_are_refused_at_their_place() {
    let refused = |from: &str, to: &str, message: &str| {
        let text = STEPPED.replace(from, to) + STEPS;
        let found = plan_with(&text, &[("x", u32_array(&[10, 16]))]).map(|_| ()).unwrap_err();
        assert!(found.starts_with(&format!("program.toml:{message}")), "{found}\nexpected {message}");
    };
    refused("roles = [\"a\"]", "roles = [\"c\"]", "16:1: role \"a\" runs in no launch");
    refused("roles = [\"b\"]", "roles = [\"b\", \"c\"]", "28:15: no role \"c\"; the program has a, b");
    refused("roles = [\"b\"]", "roles = [\"b\", \"b\"]", "28:15: role \"b\" is given twice");
    refused("roles = [\"b\"]", "roles = []", "20:1: role \"b\" runs in no launch");
    refused("roles = [\"b\"]", "roles = \"b\"", "28:9: invalid type: string \"b\", expected a sequence");
    refused("repeat = 2", "name = \"first\"", "29:8: two launches are named \"first\"");
    refused("name = \"first\"", "name = \"1st\"", "25:8: launch name \"1st\": expected a word");
    // Two roles that run together cannot share a core.
    let shared = STEPPED.replace("cores = 2", "cores = [[1, 2]]");
    let with =
        |text: &str| plan_with(&(text.to_owned() + STEPS), &[("x", u32_array(&[10, 16]))]).map(|plan| plan.cores());
    assert_eq!(with(&shared), Ok(1));
    let message = with(&shared.replace("roles = [\"b\"]", "")).unwrap_err();
    assert!(
        message.starts_with("program.toml:22:9: core (1, 2) of role \"b\" already belongs to role \"a\""),
        "{message}"
    );
}
