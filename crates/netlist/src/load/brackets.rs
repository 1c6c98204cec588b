//! A fast reader of lists and maps in brackets, which are taken out of the text before the YAML
//! parser sees it.
//!
//! Nearly all of a netlist's text is plain words between commas in brackets, for which a general
//! parser does far more than is needed: it took half of the time of a check. So a bracketed value
//! after a key or a dash that extends to the end of the line and holds plain words only is read
//! here, and the parser gets the same text with empty brackets in its place. Everything else is
//! left to the parser: quotes, tags, values of several words, empty values, a comma before the last
//! bracket. Both read the same meaning (the tests of this module compare them).

/// Kinds of tokens in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A list begins.
    List,
    /// A map begins. It has no width for a lone `key: value` in a list.
    Map,
    /// A key or a value.
    Word,
    /// The last list or map ends.
    End,
}

/// A token with its byte range in the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// The contents of one pair of brackets that was taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Brackets {
    /// Index of the opening bracket in the short text.
    pub at: usize,
    /// How many bytes have been taken out up to the end of this bracket.
    shift: usize,
    /// Index of the token after its last one.
    last: usize,
}

/// A text whose brackets have been emptied.
pub(crate) struct Short {
    pub text: String,
    pub parts: Vec<Brackets>,
    tokens: Vec<Token>,
}

impl Short {
    /// Takes out what can be read here. `None` if there is nothing, or if the text is not ASCII, so
    /// that byte and character indices differ.
    pub(crate) fn of(text: &str) -> Option<Self> {
        if !text.is_ascii() || u32::try_from(text.len()).is_err() {
            return None;
        }
        let mut short = Self { text: String::new(), parts: Vec::new(), tokens: Vec::new() };
        let (mut line, mut copied, mut shift) = (0, 0, 0);
        while line < text.len() {
            let open = bracket(text.as_bytes(), line);
            let known = short.tokens.len();
            let mut reader = Scanner { text: text.as_bytes(), at: open.unwrap_or(line), tokens: &mut short.tokens };
            match open.filter(|_| reader.collection(0).is_some() && reader.ends_line()) {
                Some(open) => {
                    let end = reader.at;
                    short.text.push_str(&text[copied..=open]);
                    copied = end - 1;
                    shift += end - open - 2;
                    let at = short.text.len() - 1;
                    short.parts.push(Brackets { at, shift, last: short.tokens.len() });
                    line = end;
                }
                None => short.tokens.truncate(known),
            }
            line = text[line..].find('\n').map_or(text.len(), |end| line + end + 1);
        }
        short.text.push_str(&text[copied..]);
        (!short.parts.is_empty()).then_some(short)
    }

    /// The tokens of one pair of brackets, without the closing one.
    pub(crate) fn tokens(&self, part: usize) -> &[Token] {
        let first = part.checked_sub(1).map_or(0, |before| self.parts[before].last);
        &self.tokens[first..self.parts[part].last]
    }

    /// Converts an index in the short text into one in the whole text. `near` is a guess of how
    /// many brackets precede it.
    pub(crate) fn index(&self, index: usize, near: usize) -> usize {
        let behind = |part: usize| self.parts.get(part).is_some_and(|part| part.at < index);
        let before = match near {
            0 if !behind(0) => 0,
            near if near > 0 && behind(near - 1) && !behind(near) => near,
            _ => self.parts.partition_point(|part| part.at < index),
        };
        index + before.checked_sub(1).map_or(0, |last| self.parts[last].shift)
    }
}

/// Characters of plain words. None of them is special in YAML, except a dash at the start.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128u8 {
        word[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'+' | b'-' | b'/');
        byte += 1;
    }
    word
};

/// Deepest nesting that is read here.
const DEPTH: usize = 32;

/// Index of the bracket after the key or dash at the start of a line.
fn bracket(text: &[u8], line: usize) -> Option<usize> {
    let blanks = |mut at: usize| {
        while text.get(at) == Some(&b' ') {
            at += 1;
        }
        at
    };
    let mut at = blanks(line);
    let first = at;
    while text.get(at) == Some(&b'-') && text.get(at + 1) == Some(&b' ') {
        at = blanks(at + 1);
    }
    let key = at;
    while text.get(at).is_some_and(|byte| WORD[usize::from(*byte)]) {
        at += 1;
    }
    if at > key {
        if text.get(at) != Some(&b':') || text.get(at + 1) != Some(&b' ') {
            return None;
        }
        at = blanks(at + 1);
    }
    (at > first && matches!(text.get(at), Some(b'[' | b'{'))).then_some(at)
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    tokens: &'a mut Vec<Token>,
}

/// Each method reads what its name says, or returns `None` if that is left to the parser.
/// A byte's place in the text; no text is longer than 32 bits can count.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

impl Scanner<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn token(&mut self, kind: Kind, start: usize, end: usize) {
        self.tokens.push(Token { kind, start: place(start), end: place(end) });
    }

    /// Blanks, line ends and comments, as [`super::flow`] sees them.
    fn blanks(&mut self) {
        loop {
            match self.next() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                Some(b'#') if self.text[self.at - 1].is_ascii_whitespace() => {
                    while self.next().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn collection(&mut self, depth: usize) -> Option<()> {
        let (kind, last) = if self.next()? == b'[' { (Kind::List, b']') } else { (Kind::Map, b'}') };
        if depth == DEPTH {
            return None;
        }
        self.bracket(kind);
        while self.next()? != last {
            match kind {
                Kind::List => self.item(depth)?,
                _ => {
                    self.word()?;
                    self.value(depth)?;
                }
            }
            self.blanks();
            match self.next()? {
                b',' => {
                    self.at += 1;
                    self.blanks();
                    self.next().filter(|next| *next != last)?;
                }
                next if next == last => {}
                _ => return None,
            }
        }
        if depth == 0 {
            self.at += 1;
        } else {
            self.bracket(Kind::End);
        }
        Some(())
    }

    /// A bracket and the blanks after it, which the parser counts as part of it as well.
    fn bracket(&mut self, kind: Kind) {
        let start = self.at;
        self.at += 1;
        self.blanks();
        self.token(kind, start, self.at);
    }

    /// An item of a list; `key: value` there is a map of one pair.
    fn item(&mut self, depth: usize) -> Option<()> {
        if matches!(self.next()?, b'[' | b'{') {
            return self.collection(depth + 1);
        }
        let (index, start) = (self.tokens.len(), self.at);
        self.word()?;
        if self.next()? != b':' {
            return Some(());
        }
        self.value(depth)?;
        self.blanks();
        let pair = Token { kind: Kind::Map, start: place(start), end: place(start) };
        self.tokens.insert(index, pair);
        self.token(Kind::End, self.at, self.at);
        Some(())
    }

    /// A colon and a value.
    fn value(&mut self, depth: usize) -> Option<()> {
        if self.next()? != b':' || !matches!(self.text.get(self.at + 1)?, b' ' | b'\n' | b'\r' | b'\t') {
            return None;
        }
        self.at += 1;
        self.blanks();
        if matches!(self.next()?, b'[' | b'{') { self.collection(depth + 1) } else { self.word() }
    }

    fn word(&mut self) -> Option<()> {
        let start = self.at;
        while WORD[usize::from(self.next()?)] {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        let plain = match word {
            [] => false,
            [b'-', second, ..] => second.is_ascii_alphanumeric() || *second == b'.',
            [b'-'] => false,
            _ => true,
        };
        self.token(Kind::Word, start, self.at);
        plain.then_some(())
    }

    /// Whether only blanks or a comment follow up to the end of the line.
    fn ends_line(&self) -> bool {
        let rest = &self.text[self.at..];
        let blanks = rest.iter().take_while(|byte| **byte == b' ').count();
        match rest.get(blanks) {
            None | Some(b'\n') => true,
            Some(b'#') => blanks > 0,
            Some(b'\r') => rest.get(blanks + 1) == Some(&b'\n'),
            Some(_) => false,
        }
    }
}
