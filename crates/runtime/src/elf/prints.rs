//! The prints of a kernel's file: its texts, and the words that the loader stores for them.

use super::ElfError;
use object::{Object, ObjectSection};
use std::sync::Arc;
use tilework_abi::l1::MemoryMap;
use tilework_abi::print::{self, BINDING_SYMBOL, BINDING_WORDS, Binding, SECTION};
use tilework_abi::tensix::Processor;
use tilework_prints::{Texts, device_print};

/// What a kernel that prints has of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelPrints {
    section: Vec<u8>,
    texts: Arc<Texts>,
    /// Where in the image the loader stores the words of its [`Binding`].
    binding: Option<usize>,
}

impl KernelPrints {
    /// Reads those of file `name`; `None` for a kernel that does not print. `offset_of` finds so
    /// many bytes of an address in the image.
    pub(super) fn read(
        name: &str,
        data: &[u8],
        offset_of: impl Fn(u32, usize) -> Option<usize>,
    ) -> Result<Option<Self>, ElfError> {
        let wrong = |found: String| ElfError::new(name, format!("section {SECTION}"), found, "texts of prints");
        let file = object::File::parse(data).map_err(|e| wrong(e.to_string()))?;
        let section = match file.section_by_name(SECTION) {
            Some(section) => section.data().map_err(|e| wrong(e.to_string()))?.to_vec(),
            None => Vec::new(),
        };
        let texts = Texts::read(&section).map_err(|e| wrong(e.to_string()))?;
        let binding = match tilework_lines::address_of(data, BINDING_SYMBOL) {
            None => None,
            Some(address) => Some(offset_of(address, 4 * BINDING_WORDS).ok_or_else(|| {
                let expected = format!("{} bytes of the image", 4 * BINDING_WORDS);
                ElfError::new(name, format!("symbol {BINDING_SYMBOL}"), format!("{address:#x}"), expected)
            })?),
        };
        if binding.is_none() && section.is_empty() {
            return Ok(None);
        }
        Ok(Some(Self { section, texts: Arc::new(texts), binding }))
    }

    /// The bytes of the texts.
    pub(super) fn section(&self) -> &[u8] {
        &self.section
    }
    /// The texts.
    pub(crate) fn texts(&self) -> &Arc<Texts> {
        &self.texts
    }

    /// Stores in the image which ring is the core's, and the kernel's number.
    pub(super) fn bind(
        &self,
        name: &str,
        image: &mut [u8],
        map: &MemoryMap,
        core: Processor,
        number: u32,
    ) -> Result<(), ElfError> {
        let Some(at) = self.binding else { return Ok(()) };
        let Some(ring) = print::ring(map, core) else {
            let expected = "a kernel that does not print: this firmware's memory map leaves no room for records";
            return Err(ElfError::new(name, format!("symbol {BINDING_SYMBOL}"), "prints", expected));
        };
        let Binding { ring, kernel } = Binding { ring: ring.get(), kernel: number };
        for (place, word) in image[at..].chunks_exact_mut(4).zip([ring, kernel]) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        Ok(())
    }
}

/// Sections of the texts of tt-metal's device prints.
const DEVICE_STRINGS: &str = ".device_print_strings";
const DEVICE_INFO: &str = ".device_print_strings_info";

/// The texts of the device prints of file `name`, if it has any.
///
/// # Errors
/// Sections that are not such texts.
pub(crate) fn device_texts(name: &str, data: &[u8]) -> Result<Option<Arc<device_print::Texts>>, ElfError> {
    let wrong = |found: String| ElfError::new(name, format!("section {DEVICE_INFO}"), found, "texts of device prints");
    let file = object::File::parse(data).map_err(|e| wrong(e.to_string()))?;
    let [info, strings] = [DEVICE_INFO, DEVICE_STRINGS].map(|name| file.section_by_name(name));
    let (Some(info), Some(strings)) = (info, strings) else { return Ok(None) };
    let section = |section: &object::Section<'_, '_>| {
        let address = u32::try_from(section.address()).map_err(|_| wrong("an address beyond 32 bits".into()))?;
        Ok((address, section.data().map_err(|e| wrong(e.to_string()))?.to_vec()))
    };
    let ((at, info), (strings_at, strings)) = (section(&info)?, section(&strings)?);
    let texts = device_print::Texts::read((at, &info), (strings_at, &strings)).map_err(|e| wrong(e.to_string()))?;
    Ok(Some(Arc::new(texts)).filter(|texts| !texts.is_empty()))
}
