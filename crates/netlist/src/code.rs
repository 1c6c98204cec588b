//! Codes of netlist errors and warnings.
//!
//! Codes are stable: a code is never reused for another mistake and never removed.
//! docs/netlist-errors.md has the same list.

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
    BAD_EXPRESSION 22 "bad-expression" "Not a regular expression, or one too large.";
    CONTROL_CHARACTER 23 "control-character" "A name or value has a character that a terminal obeys or hides.";
    BUFFER_COUNT 101 "buffer-count" "A queue has not one buffer for each place of its grid.";
    TILE_SHAPE 102 "tile-shape" "There are no tiles of this shape, or not on this architecture.";
    PORTS 103 "ports" "The NoC ports of a queue are wrong.";
    OTHER_NETLIST 104 "other-netlist" "A queue is filled by another netlist.";
    ALIAS_KIND 105 "alias-kind" "Only a ram can show the memory of another ram, not its own and not that of an alias.";
    ALIAS_MEMORY 106 "alias-memory" "An alias names other memory than the ram that it shows.";
    ALIAS_SIZE 107 "alias-size" "An alias holds another number of elements, or its entries are not whole entries of the ram.";
    PRODUCER_TILE 108 "producer-tile" "A queue and the operation that fills it have different tiles.";
    PRODUCER_SHAPE 109 "producer-shape" "A queue's entry has another shape than the result of the operation that fills it.";
    PRODUCER_FORMAT 110 "producer-format" "A queue has another format than the operation that fills it.";
    UNUSED_QUEUE 111 "unused-queue" "Nothing reads a queue that the host fills.";
    UNTILIZED_QUEUE 112 "untilized-queue" "What writes rows instead of tiles must feed one queue of one buffer, which nothing else reads.";
    ARCH_NOT_LISTED 113 "arch-not-listed" "The netlist is not written for the architecture that is asked for.";
    ATTRIBUTE_PLACE 201 "attribute-place" "An attribute that belongs to other operations.";
    SPLICE 202 "splice" "The pieces of a splice are wrong.";
    INPUT_ARITY 203 "input-arity" "An operation has too many or too few inputs.";
    INPUT_FORMAT 204 "input-format" "An operation reads a format other than the one that its input has.";
    INPUT_SHAPE 205 "input-shape" "The shape of an input, after its TMs, does not fit the operation.";
    CROSS_GRAPH 206 "cross-graph" "An operation reads one of another graph in a way that only a queue allows.";
    INPUT_COUNT 207 "input-count" "Graphs that read a queue take different numbers of inputs.";
    FORK_NAME 208 "fork-name" "A forked input is not a queue that the operation reads, or its partner is not in the graph.";
    CORE_OVERLAP 209 "core-overlap" "Two operations of a graph use the same core.";
    OUTSIDE_GRID 210 "outside-grid" "An operation lies outside the grid of cores of the architecture.";
    DST_CAPACITY 211 "dst-capacity" "A micro block does not fit the destination registers.";
    BLOCK_ORDER 212 "block-order" "The operation needs its micro blocks row by row.";
    BROADCAST_MISSING 213 "broadcast-missing" "A kernel broadcast needs a broadcast among the TMs of its input.";
    BROADCAST_FACTOR 214 "broadcast-factor" "A kernel broadcast must hold whole micro blocks.";
    GRADIENT 215 "gradient" "Accumulation of gradients is not possible here.";
    UNTILIZE 216 "untilize" "The result of this operation cannot be written as rows.";
    SPARSE 217 "sparse" "A sparse matmul has wrong inputs or attributes.";
    EMBEDDING 218 "embedding" "An embedding has wrong indices or blocks.";
    TILIZER 219 "tilizer" "A tilizer has TMs or other blocks than its input.";
    DEPTHWISE 220 "depthwise" "A depthwise product has wrong inner blocks.";
    UNUSED_RESULT 221 "unused-result" "Nothing reads the result of an operation.";
    CYCLE 222 "cycle" "Operations of a graph wait for one another in a circle.";
    VECTOR_THREAD 223 "vector-thread" "The architecture runs the vector unit on the math thread only.";
    RELU_RANGE 224 "relu-range" "The ReLU does not fit the output format.";
    TINY_TILE 225 "tiny-tile" "Small tiles are not possible here.";
    INPUT_ROOM 226 "input-room" "A graph takes more inputs than a queue holds that nothing frees meanwhile.";
    ACCUMULATOR 301 "accumulator" "The architecture or the operation cannot accumulate in this format.";
    EXPONENT_MIX 302 "exponent-mix" "Formats with exponents of different widths meet.";
    INTERMEDIATE 303 "intermediate" "The format cannot hold intermediate results.";
    GRADIENT_FORMAT 304 "gradient-format" "Output and intermediate format of a gradient must be the same.";
    REDUCE_FORMAT 305 "reduce-format" "A reduction cannot convert formats in this way.";
    SPLICE_FORMAT 306 "splice-format" "The inputs of a splice have different formats.";
    INTEGER_FORMAT 307 "integer-format" "Integer and other formats meet.";
    INTEGER_FIDELITY 308 "integer-fidelity" "Integer arithmetic needs the highest fidelity.";
    REQUANTIZATION 309 "requantization" "A matmul cannot change the scale of its result here.";
    QUANTIZATION 310 "quantization" "A quantisation has wrong formats.";
    UINT16 311 "uint16" "UInt16 is for the indices of topk only.";
    TOPK_FORMAT 312 "topk-format" "The indices that topk gives have another format than those that it gets.";
    ROUNDING 313 "stochastic-rounding" "Stochastic rounding is not possible here.";
    UNPACK_FORMAT 314 "unpack-format" "With 32-bit accumulation the input must be Float32 on this architecture.";
    UNTILIZE_FORMAT 315 "untilize-format" "This format cannot be written as rows.";
    TILE_BYTES 316 "tile-bytes" "A tile of this shape and format is not a multiple of 32 bytes.";
    L1_ACCUMULATION 317 "l1-accumulation" "Accumulation in L1 is not possible here.";
    TM_PLACE 401 "tm-place" "A TM is not possible in this place.";
    TM_DIVIDE 402 "tm-divide" "A TM cannot cut or join this shape evenly.";
    FUSED_NESTING 501 "fused-nesting" "A fused operation holds another one, or an operation that cannot be fused.";
    FUSED_EMPTY 502 "fused-empty" "A fused operation has no schedule, or a schedule no step.";
    FUSED_INPUTS 503 "fused-inputs" "A fused operation has another number of inputs than the operation that uses it.";
    FUSED_OPERAND 504 "fused-operand" "A step uses an input or intermediate buffer that the fused operation does not have.";
    FUSED_LAST 505 "fused-last" "A matmul or reduction is not the last step of its schedule.";
    FUSED_MATMUL_INPUT 506 "fused-matmul-input" "The second operand of a matmul in several blocks must be an input.";
    FUSED_TARGET 507 "fused-target" "A step cannot write there.";
    FUSED_DEST 508 "fused-dest" "The destination registers are read where nothing put anything, or not read where something did.";
    FUSED_DEST_KIND 509 "fused-dest-kind" "A step of this kind cannot use the destination registers.";
    FUSED_POP 510 "fused-pop" "A step frees what it does not read, or twice.";
    FUSED_LIVE 511 "fused-live" "An intermediate buffer is read or freed while it is empty, or written while it is full.";
    FUSED_LEFT 512 "fused-left" "An intermediate buffer is not freed.";
    FUSED_ACROSS 513 "fused-across" "An intermediate buffer of several blocks is read in another schedule.";
    FUSED_BROADCAST 514 "fused-broadcast" "A broadcast is not possible at this operand of a step.";
    FUSED_DIMS 515 "fused-dims" "The blocks of a step do not fit its operands.";
    FUSED_OUTPUT 516 "fused-output" "The output of a fused operation is missing or has other blocks than the operation that uses it.";
    FUSED_INTEGER 517 "fused-integer" "Integer arithmetic of a fused operation has wrong formats or steps.";
    FUSED_ARITY 518 "fused-arity" "A step has too many or too few operands.";
    STATIC_SETTING 601 "static-setting" "A setting that must be constant is a variable.";
    SETTINGS_MISSING 602 "settings-missing" "A queue needs settings where its graph is executed, and has none.";
    SETTINGS_STRANGER 603 "settings-stranger" "Settings of a queue that the graph does not use.";
    POINTER_MISSING 604 "pointer-missing" "Settings of a queue lack a pointer.";
    POINTER_FORBIDDEN 605 "pointer-forbidden" "Settings of a queue have a pointer that this kind of queue does not have.";
    EPILOGUE 606 "epilogue" "A queue that an operation fills cannot have an epilogue.";
    AUTOINC 607 "autoinc" "The local and the global read pointer advance differently.";
    ZERO 608 "zero" "Zeroing needs a prologue.";
    PARAM_FIRST 609 "param-first" "Parameters are not declared by the first instruction.";
    SHADOW 610 "shadow" "A variable is declared twice.";
    UNDECLARED 611 "undeclared" "A variable is used before it is declared or set.";
    LOOP_BALANCE 612 "loop-balance" "A loop has no end, or an end no loop.";
    LOOP_COUNT 613 "loop-count" "A loop must run at least once.";
    ALLOCATION 614 "allocation" "A queue is allocated twice, or freed without being allocated.";
    WRAP 615 "wrap" "An increment cannot wrap at zero or less.";
    CONSTANT 616 "constant" "A variable that its name calls constant is changed.";
    UNEXECUTED 617 "unexecuted" "No program executes a graph.";
    AFTER_END 618 "after-end" "Instructions behind the end of a program.";
    WRAP_ENTRIES 619 "wrap-entries" "A pointer wraps at the entries of a queue, not at twice as many.";
    POINTER_FIXED 620 "pointer-fixed" "No program moves the global read pointer of a queue whose local one goes on.";
    ALIGNMENT 701 "alignment" "A buffer's address is not aligned.";
    DRAM_CHANNEL 702 "dram-channel" "The architecture has no such DRAM channel.";
    DRAM_RANGE 703 "dram-range" "A buffer ends beyond its DRAM channel.";
    DRAM_OVERLAP 704 "dram-overlap" "Two buffers share memory.";
    L1_CAPACITY 705 "l1-capacity" "The buffers of an operation do not fit a core's memory.";
}
