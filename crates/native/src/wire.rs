//! The messages between the two processes: little-endian numbers, and bytes after their length.
//! Both sides are this crate, but the second has run foreign code when it answers: what comes back
//! is read with bounds.

use std::io::{self, Read, Write};

/// A tensor that is passed to a function, in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Its dimensions.
    pub shape: Vec<u64>,
    /// Its elements.
    pub bytes: Vec<u8>,
}

/// A call of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The shared library.
    pub library: Vec<u8>,
    /// The function's name in it.
    pub function: String,
    /// What it takes.
    pub operands: Vec<Operand>,
    /// Bytes of each result.
    pub results: Vec<u64>,
}

/// Limit of operands and results of a call, of dimensions, and of the bytes of a name or message.
const MAX_COUNT: u64 = 1 << 16;
/// Limit of the bytes of a library or tensor.
const MAX_BYTES: u64 = 1 << 34;

impl Call {
    /// Writes the call.
    pub fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        bytes(to, &self.library)?;
        bytes(to, self.function.as_bytes())?;
        number(to, self.operands.len() as u64)?;
        for operand in &self.operands {
            number(to, operand.shape.len() as u64)?;
            operand.shape.iter().try_for_each(|&length| number(to, length))?;
            bytes(to, &operand.bytes)?;
        }
        number(to, self.results.len() as u64)?;
        self.results.iter().try_for_each(|&length| number(to, length))?;
        to.flush()
    }

    /// Reads a call.
    pub fn read(from: &mut dyn Read) -> io::Result<Self> {
        let library = read_bytes(from, MAX_BYTES)?;
        let function = String::from_utf8(read_bytes(from, MAX_COUNT)?).map_err(io::Error::other)?;
        let operands = read_list(from, |from| {
            let shape = read_list(from, read_number)?;
            Ok(Operand { shape, bytes: read_bytes(from, MAX_BYTES)? })
        })?;
        Ok(Self { library, function, operands, results: read_list(from, read_number)? })
    }
}

/// What comes back: the results, or why there are none.
pub type Answer = Result<Vec<Vec<u8>>, String>;

/// Writes an answer.
pub fn write_answer(to: &mut dyn Write, answer: &Answer) -> io::Result<()> {
    match answer {
        Ok(results) => {
            number(to, 0)?;
            number(to, results.len() as u64)?;
            results.iter().try_for_each(|result| bytes(to, result))?;
        }
        Err(why) => {
            number(to, 1)?;
            let length = why.floor_char_boundary(why.len().min(MAX_COUNT as usize));
            bytes(to, &why.as_bytes()[..length])?;
        }
    }
    to.flush()
}

/// Reads an answer of results of these sizes.
pub fn read_answer(from: &mut dyn Read, sizes: &[u64]) -> io::Result<Answer> {
    match read_number(from)? {
        0 => {
            let count = read_number(from)?;
            if count != sizes.len() as u64 {
                return Err(io::Error::other(format!("{count} results instead of {}", sizes.len())));
            }
            let result = |&size: &u64| match read_bytes(from, size)? {
                result if result.len() as u64 == size => Ok(result),
                result => Err(io::Error::other(format!("a result of {} bytes instead of {size}", result.len()))),
            };
            sizes.iter().map(result).collect::<io::Result<_>>().map(Ok)
        }
        1 => Ok(Err(String::from_utf8_lossy(&read_bytes(from, MAX_COUNT)?).into_owned())),
        other => Err(io::Error::other(format!("an answer of kind {other}"))),
    }
}

fn number(to: &mut dyn Write, number: u64) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())
}

fn bytes(to: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    number(to, bytes.len() as u64)?;
    to.write_all(bytes)
}

fn read_number(from: &mut dyn Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn read_bytes(from: &mut dyn Read, limit: u64) -> io::Result<Vec<u8>> {
    let length = read_number(from)?;
    if length > limit {
        return Err(io::Error::other(format!("{length} bytes, the limit is {limit}")));
    }
    let mut bytes = Vec::new();
    match from.take(length).read_to_end(&mut bytes)? as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn read_list<T>(from: &mut dyn Read, one: impl Fn(&mut dyn Read) -> io::Result<T>) -> io::Result<Vec<T>> {
    match read_number(from)? {
        count @ ..=MAX_COUNT => (0..count).map(|_| one(from)).collect(),
        count => Err(io::Error::other(format!("a list of {count}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        let operand = |shape: &[u64], bytes: &[u8]| Operand { shape: shape.to_vec(), bytes: bytes.to_vec() };
        Call {
            library: vec![1, 2, 3],
            function: "add".into(),
            operands: vec![operand(&[2, 1], &[9; 8]), operand(&[], &[7; 4])],
            results: vec![8, 0],
        }
    }

    #[test]
    fn a_call_and_its_answer_are_read_as_they_were_written() {
        let mut written = Vec::new();
        call().write(&mut written).unwrap();
        assert_eq!(Call::read(&mut &written[..]).unwrap(), call());
        for answer in [Ok(vec![vec![5; 8], vec![]]), Err("no such function".to_owned())] {
            let mut written = Vec::new();
            write_answer(&mut written, &answer).unwrap();
            assert_eq!(read_answer(&mut &written[..], &[8, 0]).unwrap(), answer);
        }
    }

    #[test]
    fn what_is_cut_or_of_another_size_is_an_error() {
        let mut written = Vec::new();
        call().write(&mut written).unwrap();
        for length in 0..written.len() {
            assert!(Call::read(&mut &written[..length]).is_err(), "{length} bytes");
        }
        let mut answer = Vec::new();
        write_answer(&mut answer, &Ok(vec![vec![0; 8]])).unwrap();
        for sizes in [&[4_u64][..], &[8, 8], &[], &[16]] {
            assert!(read_answer(&mut &answer[..], sizes).is_err(), "{sizes:?}");
        }
    }
}
