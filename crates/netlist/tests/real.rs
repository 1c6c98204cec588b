//! The real netlists are read into the types correctly.

mod common;

use common::real_netlists;
use tilework_netlist::types::{Dim, InstructionKind, OpKind, QueueId, Tm, Value};
use tilework_netlist::{Arch, Checked, Options, check, read};

#[test]
fn every_valid_netlist_is_read() {
    let files = real_netlists("");
    assert!(files.is_empty() || files.len() >= 23, "{} netlists only", files.len());
    for (name, text) in &files {
        if let Err(diagnostics) = read(name, text) {
            panic!("{name} is refused:\n{diagnostics}");
        }
    }
}

/// Pointers that wrap too early, more inputs than a queue holds, pointers that stay: none of these.
#[test]
fn no_valid_netlist_is_warned_of_its_pointers() {
    for (name, text) in real_netlists("") {
        let found = check(&name, &text, &Options::default()).diagnostics;
        let codes: Vec<u16> = found.list().iter().map(|d| d.code.number).collect();
        assert!(!codes.iter().any(|code| [226, 619, 620].contains(code)), "{name}:\n{found}");
    }
}

/// The codes of each netlist that must be refused, according to its comment or its name.
const INVALID: [(&str, &[u16]); 9] = [
    ("default_invalid_netlist.yaml", &[6]),
    // "produced by non matmul/reduce op in schedule 0 and consumed by schedule 1, more than a
    // single macro block"
    ("netlist_fused_op_invalid_intermed_buffer_usage.yaml", &[513]),
    // The buffer is not freed; besides, there is no operation `sub`.
    ("netlist_fused_op_missing_pop_on_intermed.yaml", &[15, 512]),
    ("netlist_fused_op_with_bcast_invalid_input.yaml", &[514]),
    ("netlist_fused_op_with_bcast_invalid_mblock_r.yaml", &[514]),
    ("netlist_fused_op_with_invalid_dimensions.yaml", &[515]),
    ("netlist_fused_op_with_matmul_intermed_input_1.yaml", &[506]),
    ("netlist_fused_op_with_matmul_ublock_bcast_issue_1135.yaml", &[515]),
    ("netlist_ublock_cannot_fit_into_dest.yaml", &[211]),
];

#[test]
fn every_invalid_netlist_is_refused_for_its_reason() {
    for (name, text) in real_netlists("invalid") {
        let (_, reasons) = INVALID.iter().find(|(known, _)| *known == name).expect("a row for every file");
        if name.contains("cannot_fit_into_dest") {
            // Wormhole A0 has four times as many destination registers: there it fits.
            let options = Options { arch: Some(Arch::Wormhole), ..Options::default() };
            assert_eq!(check(&name, &text, &options).archs, [Arch::Wormhole]);
        }
        let Checked { netlist, diagnostics, .. } = check(&name, &text, &Options::default());
        assert!(netlist.is_none(), "{name} is accepted");
        let found: Vec<u16> = diagnostics.list().iter().map(|d| d.code.number).collect();
        for reason in *reasons {
            assert!(found.contains(reason), "{name} is refused for {found:?}, not for {reason}:\n{diagnostics}");
        }
    }
}

#[test]
fn a_real_netlist_arrives_in_the_types() {
    let files = real_netlists("");
    let Some((name, text)) = files.iter().find(|(name, _)| name == "netlist_matmul_with_bias.yaml") else { return };
    let netlist = read(name, text).unwrap();
    let op = &netlist.graphs[0].ops[0];
    let OpKind::Matmul(matmul) = &op.kind else { panic!("{:?}", op.kind) };
    assert_eq!((matmul.m_k, matmul.u_kt, matmul.bias), (2, 2, true));
    assert_eq!(op.inputs[2].tms, [Tm::Broadcast(Dim::R, 4)]);
    assert_eq!((op.at.line, op.at.column), (14, 5));
    let instructions = &netlist.programs[0].instructions;
    assert_eq!(instructions[2].kind, InstructionKind::Loop(Value::Variable("$c_num_loops".into())));
    let InstructionKind::Execute { settings, .. } = &instructions[3].kind else { panic!("{:?}", instructions[3]) };
    assert_eq!(
        settings.iter().map(|s| (s.queue, s.at.line)).collect::<Vec<_>>(),
        [(QueueId(0), 25), (QueueId(1), 26), (QueueId(2), 27)]
    );
    assert_eq!(instructions.len(), 7);
}
