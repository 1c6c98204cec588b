//! Device prints of a kernel that SFPI's compiler has built with the headers of the wheel `ttnn`
//! 0.81.1: its sections `.device_print_strings` (strings.bin) and `.device_print_strings_info`
//! (info.bin). The kernel:
//!
//! ```cpp
//! uint8_t small = 3; uint32_t large = 500; int16_t negative = -2; float half = 1.5f;
//! int64_t wide = -5000000000LL; bool yes = true;
//! DEVICE_PRINT("{} of {}: {} at {:#06x}\\n", small, large, negative, i);
//! DEVICE_PRINT("half {} {:.3f}, wide {:>14}|, {} {{ok}}\\n", half, half, wide, yes);
//! DEVICE_PRINT("{1} before {0:<5}|, mode {2}, {3}\\n", i, large + i, Mode::Busy, bf16_t(0x3FC0));
//! ```

use tilework_abi::tensix::Processor;
use tilework_prints::device_print::{Buffer, HEADER_BYTES, Record, Texts, WPOS};

const STRINGS: &[u8] = include_bytes!("device_print/strings.bin");
const INFO: &[u8] = include_bytes!("device_print/info.bin");
/// Addresses of the sections in the file.
const STRINGS_AT: u32 = 0x640_0000;
const INFO_AT: u32 = 0x650_0000;

/// A record as `begin_message_write` and `serialize_arguments` store it for NCRISC: the header,
/// and values with the largest first.
fn record(text: u32, values: &[&[u8]]) -> Vec<u8> {
    let mut values = values.concat();
    values.resize(values.len().next_multiple_of(4), 0);
    let header = 1 | 1 << 1 | (values.len() as u32) << 6 | text << 16;
    [header.to_le_bytes().to_vec(), values].concat()
}

#[test]
fn prints_of_a_kernel_that_was_built_by_the_real_compiler() {
    let texts = Texts::read((INFO_AT, INFO), (STRINGS_AT, STRINGS)).unwrap();
    // The compiler orders the entries; the lines tell which print each is.
    let number = |line: u32| (0..3_u16).find(|&at| texts.get(at).unwrap().line == line).unwrap();
    let lines: Vec<u32> = {
        let mut lines: Vec<u32> = (0..3).map(|at| texts.get(at).unwrap().line).collect();
        lines.sort_unstable();
        lines
    };
    let (i, large, half) = (10_u32.to_le_bytes(), 500_u32.to_le_bytes(), 1.5_f32.to_le_bytes());
    let values: [&[&[u8]]; 3] = [
        &[&large, &i, &(-2_i16).to_le_bytes(), &[3]],
        &[&(-5_000_000_000_i64).to_le_bytes(), &half, &half, &[1]],
        &[&i, &510_u32.to_le_bytes(), &1_u32.to_le_bytes(), &0x3FC0_u16.to_le_bytes()],
    ];
    let mut buffer = Buffer::default();
    let mut end = 0;
    let mut shown = Vec::new();
    for (line, values) in lines.iter().zip(values) {
        let bytes = record(number(*line).into(), values);
        buffer.store(HEADER_BYTES + end, &bytes);
        end += bytes.len() as u32;
        for record in buffer.store(WPOS, &end.to_le_bytes()) {
            let Record::Print { core, by_kernel: true, text: Some(text), values } = record else {
                panic!("{record:?}")
            };
            assert_eq!(core, Some(Processor::Ncrisc));
            let text = texts.get(text).unwrap();
            assert!(text.file.ends_with("kernel_includes.hpp"), "{}", text.file);
            shown.push(texts.show(text, &values));
        }
    }
    let expected = [
        r"3 of 500: -2 at 0x000a\n",
        r"half 1.5 1.500, wide    -5000000000|, true {ok}\n",
        r"510 before 10   |, mode Mode(1), 1.5\n",
    ];
    assert_eq!(shown, expected);
}
