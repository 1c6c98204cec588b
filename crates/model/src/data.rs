//! How a model is written as data (serde): names in one spelling.
//!
//! Fields have the schema's names. Values of enumerations, and the members of unions (key `kind`),
//! are in lower case with underscores, as the compiler writes them in its text: `row_major`,
//! `hifi4`, `bf16`, where the schema has `RowMajor`, `HiFi4`, `BFloat16`.

use serde::{Serialize, Serializer};

/// Element types, whose names in the compiler's text do not follow from those in the schema.
const ELEMENT_TYPES: [(&str, &str); 19] = [
    ("Float32", "f32"),
    ("Float16", "f16"),
    ("BFloat16", "bf16"),
    ("BFP_Float8", "bfp_f8"),
    ("BFP_BFloat8", "bfp_bf8"),
    ("BFP_Float4", "bfp_f4"),
    ("BFP_BFloat4", "bfp_bf4"),
    ("BFP_Float2", "bfp_f2"),
    ("BFP_BFloat2", "bfp_bf2"),
    ("UInt32", "u32"),
    ("UInt16", "u16"),
    ("UInt8", "u8"),
    ("Int32", "si32"),
    ("Float64", "f64"),
    ("Int64", "si64"),
    ("UInt64", "u64"),
    ("Int16", "si16"),
    ("Int8", "si8"),
    ("Bool", "bool"),
];

/// Words with inner capitals.
const WORDS: [(&str, &str); 5] =
    [("HiFi", "Hifi"), ("LoFi", "Lofi"), ("MoE", "Moe"), ("SwiGLU", "Swiglu"), ("AdamW", "Adamw")];

/// The name in data of an enumeration's value or a union's member, from its name in the schema.
pub fn name(of_schema: &str) -> String {
    if let Some((_, name)) = ELEMENT_TYPES.iter().find(|(schema, _)| *schema == of_schema) {
        return (*name).to_owned();
    }
    let words = WORDS.iter().fold(of_schema.to_owned(), |text, (word, one)| text.replace(word, one));
    let letters: Vec<char> = words.chars().collect();
    let mut name = String::new();
    for (i, &letter) in letters.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| letters[i]);
        let word_follows = letters.get(i + 1).is_some_and(char::is_ascii_lowercase);
        let starts = letter.is_ascii_uppercase()
            && before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_alphanumeric() && word_follows);
        if starts {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

/// A member of a union: its name as `kind`, then its fields.
#[derive(Serialize)]
struct Member<'a, T> {
    kind: String,
    #[serde(flatten)]
    fields: &'a T,
}

/// Writes a member of a union.
pub(crate) fn member<T: Serialize, S: Serializer>(kind: &str, fields: &T, serializer: S) -> Result<S::Ok, S::Error> {
    Member { kind: name(kind), fields }.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::name;
    use crate::ttnn::OpKind;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_those_of_the_compilers_text() {
        for (schema, expected) in [
            ("Matmul", "matmul"),
            ("RowMajor", "row_major"),
            ("BFP_BFloat8", "bfp_bf8"),
            ("DRAM", "dram"),
            ("L1Small", "l1_small"),
            ("HiFi4", "hifi4"),
            ("NDSharded", "nd_sharded"),
            ("RISCV_0", "riscv_0"),
            ("Wormhole_b0", "wormhole_b0"),
            ("Conv2d", "conv2d"),
            ("DistributedRMSNorm", "distributed_rms_norm"),
            ("NLPCreateQKVHeadsDecode", "nlp_create_qkv_heads_decode"),
            ("PrepareMoEComputeW0W1Weights", "prepare_moe_compute_w0w1_weights"),
            ("MatmulMultiCoreReuseMultiCast1DProgramConfig", "matmul_multi_core_reuse_multi_cast1d_program_config"),
            ("DM_DEDICATED_NOC", "dm_dedicated_noc"),
        ] {
            assert_eq!(name(schema), expected);
        }
    }

    #[test]
    fn kinds_of_operations_keep_their_difference() {
        let names: BTreeSet<String> = OpKind::ALL.iter().map(|kind| name(kind.name())).collect();
        assert_eq!(names.len(), OpKind::ALL.len());
    }
}
