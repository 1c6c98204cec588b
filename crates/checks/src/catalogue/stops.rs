//! Ways in which a run ends before its time: the classes of faults, deadlocks, exhausted budgets.
//!
//! They are no findings and no policy turns them off. They have rows here so that what a report
//! names can be looked up in one place.

use super::rows;

rows! { Stop;
    UNDEFINED_BEHAVIOUR "undefined-behaviour" Certain "Fault: the documents say that anything may happen"
        about "The chip's documents leave open what this does: a load from no memory, an instruction that does not \
            exist, a register in a mode that is forbidden. Nothing after it would mean anything, so the run ends."
        repair "The message has core, pc, source line and address, and what to read. Change the instruction or what \
            leads to it.";
    UNPREDICTABLE_VALUE_USED "unpredictable-value-used" Certain "Fault: a value is used that the documents leave open"
        about "The instruction is defined, but its operand has no value that the documents promise."
        repair "Set the register or memory that the message names before it is used.";
    NON_CONTRACTUAL_BEHAVIOUR "non-contractual-behaviour" Certain "Fault: it works on this chip, but nothing promises it"
        about "The chip is seen to do something here, and no document says that it will."
        repair "Use the documented way to the same result.";
    UNSUPPORTED_FUNCTIONALITY "unsupported-functionality" Certain "Fault: the chip does not have this"
        about "The instruction, mode or address belongs to another chip."
        repair "Use what this chip has; the message names what is missing.";
    UNIMPLEMENTED_FUNCTIONALITY "unimplemented-functionality" Certain "Fault: the simulator does not have this yet"
        about "The chip can do this. The simulator cannot, and says so instead of giving a wrong result."
        repair "Go another way for now; please report what is missing.";
    MISSING_SPECIFICATION "missing-specification" Certain "Fault: no document says what happens"
        about "The documents do not mention this case."
        repair "Use a case that is documented.";
    DEADLOCK "deadlock" Certain "Nothing can move any more"
        about "Every core waits, and nothing is in flight that could end a wait. The simulator knows this at once, \
            without a time-out. The report follows who waits for whom from the host on, and names the words that each \
            core waits for and who could write them."
        wrong "cb.wait_front(2);                     // the producer pushes one page and ends"
        right "cb.wait_front(1);"
        repair "Begin at the end of the chain: the last one waits for something that nobody will do, or for the \
            beginning of a circle.";
    BUDGET "budget" Certain "The run has used up its cycles"
        about "Some core still executes, so that this is no deadlock: an endless loop, or a long program. The report \
            names the cores that execute, with their lines."
        repair "Look at the loop that the report names, or give more cycles (--max-cycles).";
}
