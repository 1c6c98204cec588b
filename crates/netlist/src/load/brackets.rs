//! Lists and maps in brackets, taken out of a text before the YAML parser sees it.
//!
//! Nearly all of a netlist's text stands in brackets, plain words between commas, for which a
//! general parser does far more than is needed: it took half of the time of a check. So what a
//! line's key or dash is followed by, when it is in brackets, goes to its end and holds plain words
//! only, is read here, and the parser gets the same text with empty brackets in its place.
//! Everything else stays for the parser: quotes, tags, words of several, empty values, a comma
//! before the last bracket. What is read here means the same there (the tests of this module
//! compare both).

/// What the text in brackets consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A list begins.
    List,
    /// A map begins; of a pair that stands in a list alone it has no width.
    Map,
    /// A key or a value.
    Word,
    /// The last list or map ends.
    End,
}

/// One of them, with its first byte and the one behind it. Indices are those of the whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    pub kind: Kind,
    pub start: u32,
    pub end: u32,
}

/// What was taken out of one pair of brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index of the bracket in the short text.
    pub at: usize,
    /// How much longer the whole text is from behind this bracket on.
    shift: usize,
    /// Its tokens end before this one.
    last: usize,
}

/// A text without what stands in brackets.
pub struct Short {
    pub text: String,
    pub parts: Vec<Part>,
    tokens: Vec<Token>,
}

impl Short {
    /// `None`: there is nothing to take out, or indices of bytes are not those of characters.
    pub fn of(text: &str) -> Option<Self> {
        if !text.is_ascii() || u32::try_from(text.len()).is_err() {
            return None;
        }
        let mut short = Self { text: String::new(), parts: Vec::new(), tokens: Vec::new() };
        let (mut line, mut copied, mut shift) = (0, 0, 0);
        while line < text.len() {
            let open = bracket(text.as_bytes(), line);
            let known = short.tokens.len();
            let mut reader = Reader { text: text.as_bytes(), at: open.unwrap_or(line), tokens: &mut short.tokens };
            match open.filter(|_| reader.collection(0).is_some() && reader.ends_line()) {
                Some(open) => {
                    let end = reader.at;
                    short.text.push_str(&text[copied..=open]);
                    copied = end - 1;
                    shift += end - open - 2;
                    let at = short.text.len() - 1;
                    short.parts.push(Part { at, shift, last: short.tokens.len() });
                    line = end;
                }
                None => short.tokens.truncate(known),
            }
            line = text[line..].find('\n').map_or(text.len(), |end| line + end + 1);
        }
        short.text.push_str(&text[copied..]);
        (!short.parts.is_empty()).then_some(short)
    }

    /// The tokens of a part, without the last bracket.
    pub fn tokens(&self, part: usize) -> &[Token] {
        let first = part.checked_sub(1).map_or(0, |before| self.parts[before].last);
        &self.tokens[first..self.parts[part].last]
    }

    /// The index in the whole text of one in the short text; `near`: how many parts are before
    /// it, probably.
    pub fn index(&self, index: usize, near: usize) -> usize {
        let behind = |part: usize| self.parts.get(part).is_some_and(|part| part.at < index);
        let before = match near {
            0 if !behind(0) => 0,
            near if near > 0 && behind(near - 1) && !behind(near) => near,
            _ => self.parts.partition_point(|part| part.at < index),
        };
        index + before.checked_sub(1).map_or(0, |last| self.parts[last].shift)
    }
}

/// Characters of plain words. None of them has a meaning of its own for YAML, except a dash
/// at the start.
const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        word[byte] =
            (byte as u8).is_ascii_alphanumeric() || matches!(byte as u8, b'_' | b'.' | b'$' | b'+' | b'-' | b'/');
        byte += 1;
    }
    word
};

/// Lists and maps inside one another that are read here.
const DEPTH: usize = 32;

/// The bracket behind the key, or behind the dash, that a line begins with.
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

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    tokens: &'a mut Vec<Token>,
}

/// Each reads what its name says, or gives `None` for what is left to the parser.
impl Reader<'_> {
    fn next(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn token(&mut self, kind: Kind, start: usize, end: usize) {
        // No text is longer than 32 bits can count.
        self.tokens.push(Token { kind, start: start as u32, end: end as u32 });
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

    /// A bracket and the blanks behind it, which count as a part of it for the parser, too.
    fn bracket(&mut self, kind: Kind) {
        let start = self.at;
        self.at += 1;
        self.blanks();
        self.token(kind, start, self.at);
    }

    /// An item of a list; `key: value` is a map of its own there.
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
        let pair = Token { kind: Kind::Map, start: start as u32, end: start as u32 };
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
