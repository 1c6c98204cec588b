//! The bracket reader against the parser, on the same text.

use super::*;
use proptest::prelude::*;

type Read = for<'t> fn(&'t str, Budget, &mut Diagnostics) -> Option<Node<'t>>;

/// Tree and findings of the bracket reader and of the parser alone.
fn both(text: &str) -> [Option<(Node<'_>, Vec<Diagnostic>)>; 2] {
    [with_brackets as Read, by_parser].map(|read| {
        let mut sink = Diagnostics::new("");
        read(text, Budget::default(), &mut sink).map(|root| (root, sink.list().to_vec()))
    })
}

#[test]
fn brackets_are_read_as_the_parser_reads_them() {
    for text in [
        "a: {b: [1, -2], c: {}, d: [ ]}\n",
        "a:  [x,\n  y , # ]\n {z: 1.5}\t]  # end\nb: {c: d}",
        "- {a: 0x1f}\n- - [q, $v, +1]\r\n- [.5, -.5]\n",
        "a: [broadcast: {r: 2} , transpose, pad: [1, 1, 0],hslice: 4]\nb: c\n",
        "a:\n- [1, 2]\n- b:   {c: d, c: d}\n  e: {\n}\n",
        "a: {b: 1, b: 2}\nc: {d: 1}\nc: {e: 1}\n",
    ] {
        let [short, whole] = both(text);
        assert!(short.is_some(), "{text:?}");
        assert_eq!(short, whole, "{text:?}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_the_parser() {
    for text in [
        "a: [b c]\n",
        "a: ['b', \"c\"]\n",
        "a: {b: , c}\n",
        "a: [b, ]\n",
        "a: {b:c}\n",
        "a: [b: c, d]: e\n",
        "a: [-]\n",
        "a: [1] 2\n",
        "a: [1]# c\n",
        "a: [1,#b\n2]\n",
        "a: [ä]\n",
        "[a]: b\n",
        "a: {b: *c}\n",
        "a: &b [c]\n",
        "a: [b: {c: d}: e]\n",
    ] {
        assert!(Short::of(text).is_none(), "{text:?}");
    }
}

#[test]
fn brackets_in_texts_and_texts_that_are_broken_are_left_to_the_parser() {
    for text in ["a: |\n  b: [c]\nd: [e]\n", "a: 'x\n  b: [c]\n'\n", "a: [b]\n  c: [d]\n", "a: [b]\nc: [\n"] {
        assert!(both(text)[0].is_none(), "{text:?}");
    }
}

/// Lists and maps in all places where they may occur.
const LINES: &str = "a: [b, {c: 1}, d: [2]] # e\nf:\n  g:   {h: [i],\n   j: {k: l}}\n  m: n\no:\n- [p, -1]\n- - {q: r}\n- s: []\n  t: {}\n";

/// Pieces that may be inserted.
const PIECES: [&str; 20] = [
    "", " ", "\n", "\n  ", "\r\n", "\t", ",", ":", ": ", "[", "]", "{", "}", "-", "- ", "#", " # ", "'", "x", "a: |\n ",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// A text with changed, inserted or deleted characters is either read alike or left
    /// to the parser.
    #[test]
    fn changed_text_is_read_alike(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..2usize, 0..PIECES.len()), 0..4),
    ) {
        let mut text = String::from(LINES);
        for (at, less, piece) in edits {
            let at = at.index(text.len());
            text.replace_range(at..(at + less).min(text.len()), PIECES[piece]);
        }
        let [short, whole] = both(&text);
        if short.is_some() {
            prop_assert_eq!(short, whole);
        }
    }

    /// Valid lists and maps in any layout.
    #[test]
    fn any_layout_is_read_alike(
        words in proptest::collection::vec(
            prop_oneof![Just("["), Just("{"), Just("]"), Just("]"), Just("x"), Just("-1.5"), Just("$a"), Just("k: v"), Just("k: [")],
            0..40,
        ),
        gaps in proptest::collection::vec(prop_oneof![Just(""), Just(" "), Just("\n"), Just(" # c, [\n  "), Just("\t")], 1..8),
    ) {
        let text = layout(&words, &gaps);
        let [short, whole] = both(&text);
        prop_assert!(short.is_some());
        prop_assert_eq!(short, whole);
    }
}

/// A text with a list of these words, brackets in balance and every map with keys of its own.
fn layout(words: &[&str], gaps: &[&str]) -> String {
    let mut text = String::from("top: [");
    // For each open one: whether it is a map, and its number of items.
    let mut open = vec![(false, 0)];
    let mut gap = gaps.iter().cycle();
    for word in words {
        let (map, held) = open[open.len() - 1];
        if *word == "]" {
            if open.len() > 1 {
                open.pop();
                text += gap.next().unwrap();
                text += if map { "}" } else { "]" };
            }
            continue;
        }
        let word = if map { word.strip_prefix("k: ").unwrap_or(word) } else { word };
        let count = open.len() - 1;
        open[count].1 += 1;
        text += if held > 0 { "," } else { "" };
        text += gap.next().unwrap();
        text += &if map { format!("k{held}: {word}") } else { word.to_owned() };
        match word.chars().last() {
            Some('[') => open.push((false, 0)),
            Some('{') => open.push((true, 0)),
            _ => {}
        }
    }
    for (map, _) in open.into_iter().rev() {
        text += gap.next().unwrap();
        text += if map { "}" } else { "]" };
    }
    text + " # end\nother: [1]\n"
}
