//! Boards by name or from a file: what `--board` takes.
//!
//! A file is a record over a kind of card that is known; `docs/card.md` describes it.

use crate::failure::{Failure, Outcome};
use crate::program::source::Source;
use std::path::Path;
use tilework_abi::board::{Board, BoardSpec, Harvesting, SPECS};
use tilework_abi::grid::{DIE_COLUMNS, DRAM_BANKS, ETHERNET_TILES, TENSIX_COLUMNS};
use toml::Spanned;

/// Letters of a board's name.
const NAME_LETTERS: usize = 32;

/// The board of a name or of a `.toml` file, for the command line.
///
/// # Errors
/// What was found and what was expected, as text.
pub fn parse(given: &str) -> Result<Board, String> {
    let read = || read(&Source::read(Path::new(given), "a board file")?);
    match BoardSpec::named(given) {
        Some(spec) => Ok(spec.board()),
        None if given.ends_with(".toml") => read().map_err(|failure| failure.to_string()),
        None => Err(format!("expected {} or a file (.toml)", names())),
    }
}

/// The board that a program for silicon sees: of a name as the card's firmware shows it, of a file
/// as the file says.
///
/// # Errors
/// As [`parse`].
pub fn parse_shown(given: &str) -> Result<Board, String> {
    let board = parse(given)?;
    Ok(if is_known(board) { board.by_firmware() } else { board })
}

/// Whether a board is a known kind as it is, which its name alone says.
pub fn is_known(board: Board) -> bool {
    BoardSpec::named(board.name()).is_some_and(|spec| spec.board() == board)
}

/// A file that says what a board is: [`read`] makes the same board of it.
pub fn text(board: Board) -> String {
    let of = board.harvesting();
    let units = |mask: u16, count: usize, number: &dyn Fn(usize) -> u8| {
        let numbers = (0..count).filter(|bit| mask >> bit & 1 != 0).map(|bit| number(bit).to_string());
        numbers.collect::<Vec<_>>().join(", ")
    };
    // There are fewer than 256 units of each kind.
    let same = |unit: usize| u8::try_from(unit).unwrap_or(u8::MAX);
    format!(
        "name = \"{}\"\nbase = \"{}\"\n\n[harvested]\ntensix_columns = [{}]\ndram_banks = [{}]\nethernet_channels = \
         [{}]\n",
        board.name(),
        board.spec().name,
        units(of.tensix, DIE_COLUMNS.len(), &|bit| DIE_COLUMNS[bit]),
        units(of.dram.into(), DRAM_BANKS, &same),
        units(of.ethernet, ETHERNET_TILES, &same),
    )
}

/// The names of all kinds.
fn names() -> String {
    SPECS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// The file as it is written.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct BoardFile {
    /// What reports call the board.
    name: Spanned<String>,
    /// The kind of card, by name.
    base: Option<Spanned<String>>,
    /// The kind of card, by product number.
    product: Option<Spanned<u32>>,
    /// What its chip lacks; what is not given is as the kind has it.
    #[serde(default)]
    harvested: Harvested,
}

/// The harvested units, by number.
#[derive(serde::Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Harvested {
    /// NoC 0 columns of Tensix tiles.
    tensix_columns: Option<Spanned<Vec<Spanned<u8>>>>,
    /// Physical DRAM banks.
    dram_banks: Option<Spanned<Vec<Spanned<u8>>>>,
    /// Ethernet channels.
    ethernet_channels: Option<Spanned<Vec<Spanned<u8>>>>,
}

/// The board that a file says.
///
/// # Errors
/// A file that says no board.
pub fn read(source: &Source) -> Outcome<Board> {
    let file: BoardFile = source.toml()?;
    let spec = kind(source, &file)?;
    let whole = spec.board().harvesting();
    let column = |x: u8| DIE_COLUMNS.iter().position(|&column| column == x);
    let below = |count: usize| move |unit: u8| (usize::from(unit) < count).then_some(usize::from(unit));
    let of = &file.harvested;
    let (tensix, dram, ethernet) = (&of.tensix_columns, &of.dram_banks, &of.ethernet_channels);
    let columns = format!("a column of Tensix tiles: one of {TENSIX_COLUMNS:?}");
    let masks = (
        mask(source, tensix, whole.tensix, column, "harvested.tensix_columns", &columns)?,
        mask(source, dram, whole.dram.into(), below(DRAM_BANKS), "harvested.dram_banks", "a bank from 0 to 7")?,
        mask(
            source,
            ethernet,
            whole.ethernet,
            below(ETHERNET_TILES),
            "harvested.ethernet_channels",
            "a channel from 0 to 13",
        )?,
    );
    // Banks are below eight, so their mask has eight bits.
    let harvesting = Harvesting { tensix: masks.0, dram: masks.1.to_le_bytes()[0], ethernet: masks.2 };
    let at = tensix.as_ref().or(dram.as_ref()).map_or(file.name.span(), Spanned::span);
    // The name lives as long as the process, which reads one board or two.
    let name = name(source, &file.name)?.to_owned().leak();
    Board::harvested(spec, name, harvesting).map_err(|error| source.error(at, format!("harvested: {error}")))
}

/// The name, of which reports can make one word.
fn name<'a>(source: &Source, name: &'a Spanned<String>) -> Outcome<&'a str> {
    let text = name.get_ref();
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.is_empty() || text.len() > NAME_LETTERS || !text.chars().all(good) {
        let expected = format!("1 to {NAME_LETTERS} of the letters a-z, A-Z, 0-9, '-', '_' and '.'");
        return Err(source.error(name.span(), format!("name is {text:?}, expected {expected}")));
    }
    if BoardSpec::named(text).is_some() {
        return Err(source.error(name.span(), format!("name is {text:?}, which is a known board's; expected another")));
    }
    Ok(text)
}

/// The kind of card that a file is about.
fn kind(source: &Source, file: &BoardFile) -> Outcome<&'static BoardSpec> {
    let unknown = |span, field: &str, found: String, known: String| -> Failure {
        source.error(span, format!("{field} is {found}, expected one of {known}"))
    };
    match (&file.base, &file.product) {
        (Some(base), None) => BoardSpec::named(base.get_ref())
            .ok_or_else(|| unknown(base.span(), "base", format!("{:?}", base.get_ref()), names())),
        (None, Some(product)) => BoardSpec::of_product(*product.get_ref()).ok_or_else(|| {
            let known = SPECS.iter().flat_map(|spec| spec.products).map(|id| format!("{id:#x}"));
            let known = known.collect::<Vec<_>>().join(", ");
            unknown(product.span(), "product", format!("{:#x}", product.get_ref()), known)
        }),
        _ => {
            let message = "expected either base (a board's name) or product (its number), found both or neither";
            Err(source.error(file.name.span(), message))
        }
    }
}

/// The mask of a list of units; `otherwise` when there is no list.
fn mask(
    source: &Source,
    list: &Option<Spanned<Vec<Spanned<u8>>>>,
    otherwise: u16,
    bit: impl Fn(u8) -> Option<usize>,
    field: &str,
    expected: &str,
) -> Outcome<u16> {
    let Some(list) = list else { return Ok(otherwise) };
    let mut mask = 0;
    for unit in list.get_ref() {
        let number = *unit.get_ref();
        let Some(bit) = bit(number) else {
            return Err(source.error(unit.span(), format!("{field} names {number}, expected {expected}")));
        };
        if mask & 1 << bit != 0 {
            return Err(source.error(unit.span(), format!("{field} names {number} twice, expected it once")));
        }
        mask |= 1 << bit;
    }
    Ok(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(text: &str) -> Result<Board, String> {
        read(&Source::of(text)).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_file_says_what_a_card_lacks() {
        let found = board("name = 'lab-7'\nbase = 'p150'\n[harvested]\ntensix_columns = [10, 16]\ndram_banks = [3]");
        let found = found.unwrap();
        let expected = Harvesting { tensix: 1 << 13 | 1 << 1, dram: 1 << 3, ethernet: 1 << 5 | 1 << 8 };
        assert_eq!((found.name(), found.spec().name, found.harvesting()), ("lab-7", "p150", expected));
        assert_eq!((found.worker_columns().len(), found.dram().banks().len()), (12, 7));
        // Nothing given: as the kind. Everything there: empty lists.
        assert!(board("name = 'x'\nproduct = 0x46").unwrap().has_chip_of(Board::P300));
        let all =
            "name = 'x'\nbase = 'p100'\nharvested = {tensix_columns = [], dram_banks = [], ethernet_channels = []}";
        assert_eq!(board(all).unwrap().harvesting(), Harvesting::NONE);
    }

    #[test]
    fn the_text_of_a_board_says_the_same_board() {
        let files = [
            "name = 'lab-7'\nbase = 'p150'\n[harvested]\ntensix_columns = [10, 16]\ndram_banks = [3]",
            "name = 'x'\nbase = 'p100'\nharvested = {tensix_columns = [], dram_banks = [], ethernet_channels = []}",
        ];
        for file in files {
            let found = board(file).unwrap();
            assert_eq!(board(&text(found)), Ok(found), "{}", text(found));
            assert!(!is_known(found));
        }
        assert!(is_known(Board::P100));
    }

    #[test]
    fn every_mistake_names_file_place_field_found_and_expected() {
        let columns: Vec<_> = TENSIX_COLUMNS.iter().map(u8::to_string).collect();
        let whole = format!("name = 'x'\nbase = 'p150'\nharvested.tensix_columns = [{}]", columns.join(", "));
        let cases = [
            ("name = 'x'", ":1:8: expected either base"),
            ("name = 'x'\nbase = 'p150'\nproduct = 65", ":1:8: expected either base"),
            ("name = 'x'\nbase = 'p200'", ":2:8: base is \"p200\", expected one of p100, p150, p300"),
            ("name = 'x'\nproduct = 1", ":2:11: product is 0x1, expected one of 0x43, 0x36, 0x41"),
            ("name = 'x'\nproduct = -1", ":2:11: invalid value: integer `-1`, expected u32"),
            ("name = ''\nbase = 'p150'", ":1:8: name is \"\", expected 1 to 32"),
            ("name = 'a b'\nbase = 'p150'", ":1:8: name is \"a b\", expected"),
            ("name = 'p100'\nbase = 'p150'", ":1:8: name is \"p100\", which is a known board's"),
            ("name = 'x'\nbase = 'p150'\ncolumns = 3", ":3:1: unknown field `columns`, expected one of"),
            (
                "name = 'x'\nbase = 'p150'\nharvested.tensix_columns = [3, 8]",
                ":3:32: harvested.tensix_columns names 8, expected a column of Tensix tiles: one of [1, 2,",
            ),
            (
                "name = 'x'\nbase = 'p150'\nharvested.dram_banks = [8]",
                ":3:25: harvested.dram_banks names 8, expected a bank from 0 to 7",
            ),
            (
                "name = 'x'\nbase = 'p150'\nharvested.dram_banks = [2, 3]",
                ":3:24: harvested: more than one DRAM bank is harvested, at most one may be",
            ),
            (
                "name = 'x'\nbase = 'p150'\nharvested.ethernet_channels = [1, 1]",
                ":3:35: harvested.ethernet_channels names 1 twice, expected it once",
            ),
            (
                "name = 'x'\nbase = 'p150'\nharvested.ethernet_channels = [300]",
                ":3:32: invalid value: integer `300`, expected u8",
            ),
            (&whole, ":3:28: harvested: all Tensix columns are harvested, at least one must work"),
            ("name = ", ":1:8: "),
        ];
        for (text, expected) in cases {
            let message = board(text).unwrap_err();
            assert!(message.starts_with(&format!("program.toml{expected}")), "{text:?}: {message}");
        }
    }

    #[test]
    fn a_name_stands_for_what_firmware_shows_and_a_file_for_what_it_says() {
        assert_eq!(parse_shown("p150"), Ok(Board::P150.by_firmware()));
        assert_eq!(parse_shown("p100"), Ok(Board::P100));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("whole.toml");
        std::fs::write(&file, "name = 'whole'\nbase = 'p150'").unwrap();
        assert!(parse_shown(file.to_str().unwrap()).unwrap().has_chip_of(Board::P150));
    }

    #[test]
    fn a_name_that_is_no_board_is_refused() {
        assert_eq!(parse("p300"), Ok(Board::P300));
        assert_eq!(parse("n150").unwrap_err(), "expected p100, p150, p300 or a file (.toml)");
        assert!(parse("no-such-file.toml").unwrap_err().contains("no-such-file.toml"));
    }
}
