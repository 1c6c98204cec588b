//! The codes of everything that can be wrong with a netlist.
//!
//! A code is for ever: it is neither given to another mistake nor taken away. docs/netlist-errors.md is the same list.

use std::fmt;

/// A class of mistakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code {
    /// Its number.
    pub number: u16,
    /// Its short name.
    pub name: &'static str,
    /// What it is about, in one sentence.
    pub about: &'static str,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "N{:04}", self.number)
    }
}

macro_rules! codes {
    ($($constant:ident $number:literal $name:literal $about:literal;)*) => {
        $(#[doc = $about] pub const $constant: Code = Code { number: $number, name: $name, about: $about };)*
        /// All codes, by number.
        pub const ALL: &[Code] = &[$($constant),*];
    };
}

codes! {
    YAML_SYNTAX 1 "yaml-syntax" "The file is not YAML.";
    YAML_BUDGET 2 "yaml-budget" "The file is too large, too deep or has too many values.";
    YAML_ALIAS 3 "yaml-alias" "Aliases and merge keys are not read.";
    YAML_DOCUMENTS 4 "yaml-documents" "The file has more than one document.";
    DUPLICATE_KEY 5 "duplicate-key" "A map has the same key twice.";
    NOT_A_NETLIST 6 "not-a-netlist" "The file is empty or has none of a netlist's sections.";
    TEMPLATE 7 "template" "The file is a template: it has placeholders that something else replaces.";
    MISSING_SECTION 8 "missing-section" "A section that every netlist has is missing or empty.";
    UNKNOWN_SECTION 9 "unknown-section" "A section that the language does not have.";
    UNKNOWN_FIELD 10 "unknown-field" "A field that the language does not have in this place.";
    MISSING_FIELD 11 "missing-field" "A field that must be given is missing.";
    WRONG_KIND 12 "wrong-kind" "A list, a map or a single value was expected, and something else is there.";
    BAD_NUMBER 13 "bad-number" "Not a number, or one outside its range.";
    BAD_FLAG 14 "bad-flag" "Not true or false.";
    UNKNOWN_VALUE 15 "unknown-value" "Not one of the names that are possible here.";
    WRONG_COUNT 16 "wrong-count" "A list has too many or too few items.";
    TOO_LARGE 17 "too-large" "A size or count is so large that nothing could hold it.";
    DUPLICATE_NAME 18 "duplicate-name" "Two things that are found by name have the same one.";
    UNKNOWN_NAME 19 "unknown-name" "Nothing in the netlist has this name.";
    UNUSED_FIELD 20 "unused-field" "A field has no meaning beside the others.";
    OPERAND_INDEX 21 "operand-index" "A field speaks of an input that is not there.";
    BUFFER_COUNT 101 "buffer-count" "A queue has not one buffer for each place of its grid.";
    TILE_SHAPE 102 "tile-shape" "There are no tiles of this shape, or not on this architecture.";
    PORTS 103 "ports" "The NoC ports of a queue are wrong.";
    OTHER_NETLIST 104 "other-netlist" "A queue is filled by another netlist.";
    ATTRIBUTE_PLACE 201 "attribute-place" "An attribute that belongs to other operations.";
    SPLICE 202 "splice" "The pieces of a splice are wrong.";
    TM_PLACE 401 "tm-place" "A TM is not possible in this place.";
    FUSED_NESTING 501 "fused-nesting" "A fused operation holds another one.";
    FUSED_EMPTY 502 "fused-empty" "A fused operation has no schedule, or a schedule no step.";
    STATIC_SETTING 601 "static-setting" "A setting that must be constant is a variable.";
}
