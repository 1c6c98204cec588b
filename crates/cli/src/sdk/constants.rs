//! The constants of the C header that are no registers: names for values of `tilework_abi`.

use core::mem::{offset_of, size_of};
use tilework_abi::convert::u32_of;
use tilework_abi::kernel::Binding;
use tilework_abi::l1::{self, WORKER, bank_table};
use tilework_abi::msg::{LAUNCH_MSG_BYTES, LaunchMsg, RtaOffset};
use tilework_abi::noc::{self, atomic, ctrl, vc};
use tilework_abi::print::{self, Element, Type};
use tilework_abi::tensix::Processor;
use tilework_abi::{DRAM_ALIGN, L1_ALIGN, cb, stream};

/// A constant: its name in C, its value, what it is.
pub struct Constant {
    /// A macro.
    pub name: &'static str,
    /// Its value.
    pub value: u32,
    /// For the comment.
    pub what: &'static str,
}

macro_rules! constants {
    ($($(#[doc = $what:literal])+ $name:ident = $value:expr;)*) => {
        /// Every constant, in the order of the header.
        pub const CONSTANTS: &[Constant] = &[
            $(Constant { name: stringify!($name), value: $value, what: concat!($($what),+) }),*
        ];
    };
}

/// The binding as kernels are linked.
const LINKED: [u32; 6] = Binding::new(&WORKER, Processor::Brisc).words();

/// An element type in C: its code, above it its bits, and above them 1 when exponents are shared.
const fn element(element: Element) -> u32 {
    element.code() | element.bits() << 8 | (element.is_block() as u32) << 16
}

constants! {
    /// The cores of a tile.
    TW_BRISC = u32_of(Processor::Brisc.index());
    /// Data movement 1.
    TW_NCRISC = u32_of(Processor::Ncrisc.index());
    /// Unpack thread.
    TW_TRISC0 = u32_of(Processor::Trisc0.index());
    /// Math thread.
    TW_TRISC1 = u32_of(Processor::Trisc1.index());
    /// Pack thread.
    TW_TRISC2 = u32_of(Processor::Trisc2.index());
    /// The binding's words before the loader has written them.
    TW_LINKED_BINDING_0 = LINKED[0];
    /// The next.
    TW_LINKED_BINDING_1 = LINKED[1];
    /// The next.
    TW_LINKED_BINDING_2 = LINKED[2];
    /// The next.
    TW_LINKED_BINDING_3 = LINKED[3];
    /// The next.
    TW_LINKED_BINDING_4 = LINKED[4];
    /// The last.
    TW_LINKED_BINDING_5 = LINKED[5];
    /// Bytes of a launch message.
    TW_LAUNCH_BYTES = u32_of(LAUNCH_MSG_BYTES);
    /// Offset in the launch message: u32, the base from which its offsets count.
    TW_LAUNCH_KERNEL_CONFIG_BASE = u32_of(offset_of!(LaunchMsg, kernel_config_base));
    /// Likewise: u16, offset of semaphore 0.
    TW_LAUNCH_SEM_OFFSET = u32_of(offset_of!(LaunchMsg, sem_offset));
    /// Likewise: u16, offset of the configurations of circular buffers.
    TW_LAUNCH_LOCAL_CB_OFFSET = u32_of(offset_of!(LaunchMsg, local_cb_offset));
    /// Likewise: two u16 for each core, offsets of its arguments.
    TW_LAUNCH_RTA_OFFSET = u32_of(offset_of!(LaunchMsg, rta_offset));
    /// Bytes of these two.
    TW_RTA_OFFSET_BYTES = u32_of(size_of::<RtaOffset>());
    /// Within them: the core's own arguments.
    TW_RTA_OFFSET_UNIQUE = u32_of(offset_of!(RtaOffset, rta));
    /// Within them: the arguments that all cores share.
    TW_RTA_OFFSET_COMMON = u32_of(offset_of!(RtaOffset, crta));
    /// Offset in the launch message: u32, bit i is set if circular buffer i is configured.
    TW_LAUNCH_LOCAL_CB_MASK = u32_of(offset_of!(LaunchMsg, local_cb_mask));
    /// Likewise: u8, the NoC of BRISC.
    TW_LAUNCH_BRISC_NOC_ID = u32_of(offset_of!(LaunchMsg, brisc_noc_id));
    /// Likewise: u32, the host's number of the program.
    TW_LAUNCH_HOST_ASSIGNED_ID = u32_of(offset_of!(LaunchMsg, host_assigned_id));
    /// Offset in the bank table: u32, number of DRAM banks.
    TW_BANK_TABLE_DRAM_BANKS = bank_table::DRAM_BANKS;
    /// The number of DRAM banks if that word is zero.
    TW_BANK_TABLE_USUAL_BANKS = bank_table::SEED_BANKS;
    /// L1 address of a word to which atomics may return the old value.
    TW_ATOMIC_RETURN = l1::ATOMIC_RETURN;
    /// L1 address of the source of BRISC's small writes.
    TW_SCRATCH_WORD = l1::SCRATCH_WORD;
    /// Bytes from one core's to the next core's.
    TW_SCRATCH_STRIDE = L1_ALIGN;
    /// Bytes from one semaphore to the next.
    TW_SEMAPHORE_STRIDE = L1_ALIGN;
    /// Alignment of NoC transfers from and to L1.
    TW_L1_ALIGN = L1_ALIGN;
    /// Alignment of NoC reads of DRAM.
    TW_DRAM_ALIGN = DRAM_ALIGN;
    /// Circular buffers of a tile.
    TW_CB_COUNT = cb::COUNT;
    /// Bytes of a circular buffer's configuration.
    TW_CB_CONFIG_BYTES = u32_of(cb::CONFIG_BYTES);
    /// The counters of circular buffers count modulo this and one.
    TW_CB_COUNTER_MASK = cb::COUNTER_MASK;
    /// Bits of encoded coordinates.
    TW_XY_MASK = noc::NocXy::new(0x3F, 0x3F).encode();
    /// Bytes from NIU 0's registers to NIU 1's.
    NIU_STRIDE = noc::NIU_SPAN;
    /// Bytes from one request initiator's registers to the next one's.
    NIU_REQUEST_INITIATOR_STRIDE = noc::CMD_BUF_STRIDE;
    /// Bytes from one overlay stream's registers to the next one's.
    OVERLAY_STREAM_STRIDE = stream::STRIDE;
    /// Largest payload of one request.
    NOC_MAX_PACKET_BYTES = noc::MAX_PACKET_BYTES;
    /// `NOC_CTRL`: read.
    NOC_CTRL_CMD_RD = ctrl::CMD_RD;
    /// `NOC_CTRL`: atomic.
    NOC_CTRL_CMD_AT = ctrl::CMD_AT;
    /// `NOC_CTRL`: write.
    NOC_CTRL_CMD_WR = ctrl::CMD_WR;
    /// `NOC_CTRL`: `NOC_AT_LEN_BE` is a mask of bytes.
    NOC_CTRL_WR_BE = ctrl::WR_BE;
    /// `NOC_CTRL`: the data is `NOC_AT_DATA`; never to L1.
    NOC_CTRL_WR_INLINE = ctrl::WR_INLINE;
    /// `NOC_CTRL`: a response is wanted.
    NOC_CTRL_RESP_MARKED = ctrl::RESP_MARKED;
    /// `NOC_CTRL`: multicast to a rectangle.
    NOC_CTRL_BRCST = ctrl::BRCST;
    /// `NOC_CTRL`: more requests of the same transaction follow.
    NOC_CTRL_VC_LINKED = ctrl::VC_LINKED;
    /// `NOC_CTRL`: software chooses the virtual channel.
    NOC_CTRL_VC_STATIC = ctrl::VC_STATIC;
    /// `NOC_CTRL`: reserve the path of a multicast first.
    NOC_CTRL_PATH_RESERVE = ctrl::PATH_RESERVE;
    /// `NOC_CTRL`: position of the static virtual channel.
    NOC_CTRL_STATIC_VC_SHIFT = ctrl::STATIC_VC_SHIFT;
    /// `NOC_CTRL`: a multicast moves along Y first.
    NOC_CTRL_BRCST_XY = ctrl::BRCST_XY;
    /// `NOC_CTRL`: the sender is a recipient when it is inside the rectangle.
    NOC_CTRL_BRCST_SRC_INCLUDE = ctrl::BRCST_SRC_INCLUDE;
    /// Virtual channel of unicast requests.
    NOC_VC_UNICAST = vc::UNICAST;
    /// Virtual channel of multicast requests.
    NOC_VC_MULTICAST = vc::MULTICAST;
    /// `NOC_PACKET_TAG`: position of the transaction id, 4 bits.
    NOC_PACKET_TAG_TRID_SHIFT = noc::TAG_TRID_SHIFT;
    /// `NOC_AT_LEN_BE` of an atomic: add to a 32-bit word, whose position in 16 bytes is ORed in.
    NOC_ATOMIC_INCR32 = atomic::incr32(0);
    /// The ring of prints before the loader has written the core's.
    TW_LINKED_PRINT_RING = WORKER.prints.get();
    /// Words of a ring of prints.
    TW_PRINT_RING_WORDS = print::RING_WORDS;
    /// Bytes in front of them.
    TW_PRINT_HEADER_BYTES = print::HEADER_BYTES;
    /// Offset in a ring: u32, words ever written.
    TW_PRINT_WRITTEN = print::WRITTEN;
    /// Offset in a ring: u32, records ever written.
    TW_PRINT_RECORDS = print::RECORDS;
    /// Words of a record in front of its values.
    TW_PRINT_FRONT_WORDS = print::FRONT_WORDS;
    /// The upper byte of a record's last word.
    TW_PRINT_MARK = print::Head::MARK;
    /// Most elements of a tile or an array in a record.
    TW_PRINT_MAX_ELEMENTS = print::MAX_ELEMENTS;
    /// Type of a printed value: unsigned, 8 bits.
    TW_TYPE_U8 = Type::U8.code();
    /// Type of a printed value: unsigned, 16 bits.
    TW_TYPE_U16 = Type::U16.code();
    /// Type of a printed value: unsigned, 32 bits.
    TW_TYPE_U32 = Type::U32.code();
    /// Type of a printed value: unsigned, 64 bits.
    TW_TYPE_U64 = Type::U64.code();
    /// Type of a printed value: signed, 8 bits.
    TW_TYPE_I8 = Type::I8.code();
    /// Type of a printed value: signed, 16 bits.
    TW_TYPE_I16 = Type::I16.code();
    /// Type of a printed value: signed, 32 bits.
    TW_TYPE_I32 = Type::I32.code();
    /// Type of a printed value: signed, 64 bits.
    TW_TYPE_I64 = Type::I64.code();
    /// Type of a printed value: truth value.
    TW_TYPE_BOOL = Type::Bool.code();
    /// Type of a printed value: character.
    TW_TYPE_CHAR = Type::Char.code();
    /// Type of a printed value: binary32.
    TW_TYPE_F32 = Type::F32.code();
    /// Element type: binary32.
    TW_F32 = element(Element::F32);
    /// Element type: binary16.
    TW_F16 = element(Element::F16);
    /// Element type: shared exponent of 5 bits, 8 bits each.
    TW_BFP8 = element(Element::Bfp8);
    /// Element type: shared exponent of 5 bits, 4 bits each.
    TW_BFP4 = element(Element::Bfp4);
    /// Element type: bfloat16.
    TW_BF16 = element(Element::Bf16);
    /// Element type: shared exponent of 8 bits, 8 bits each.
    TW_BFP8_B = element(Element::Bfp8B);
    /// Element type: shared exponent of 8 bits, 4 bits each.
    TW_BFP4_B = element(Element::Bfp4B);
    /// Element type: signed, 32 bits.
    TW_I32 = element(Element::I32);
    /// Element type: unsigned, 16 bits.
    TW_U16 = element(Element::U16);
    /// Element type: shared exponent of 5 bits, 2 bits each.
    TW_BFP2 = element(Element::Bfp2);
    /// Element type: signed, 8 bits.
    TW_I8 = element(Element::I8);
    /// Element type: shared exponent of 8 bits, 2 bits each.
    TW_BFP2_B = element(Element::Bfp2B);
    /// Element type: unsigned, 32 bits.
    TW_U32 = element(Element::U32);
    /// Element type: unsigned, 8 bits.
    TW_U8 = element(Element::U8);
}
