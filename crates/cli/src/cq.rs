//! `tilework cq decode`.

use crate::answer::Answer;
use crate::exec_buffer::{ExecBuffers, Executes, Places};
use crate::failure::{Failure, Outcome};
use crate::files;
use serde::ser::{Serialize, Serializer};
use std::io::{Result, Write};
use std::path::Path;
use tilework_cq::{DecodeError, decode_stream};

/// Budget of a capture in bytes: sixteen times the issue region. The help of the command and
/// `docs/report.md` state it.
const MAX_CAPTURE_BYTES: u64 = 1 << 30;

/// The records of a file up to the first bad byte. The fields are those of the JSON form, in their
/// order.
#[derive(serde::Serialize)]
struct CaptureReport {
    file: String,
    /// Bytes of the file, and of its good records.
    bytes: usize,
    good_bytes: usize,
    /// Dispatch commands in the records.
    commands: u64,
    /// How many records there are.
    count: u64,
    records: Records,
}

/// Bytes that hold records, and where their exec buffers are. They are decoded as they are written:
/// a capture can be large.
struct Records(Vec<u8>, Places);

#[derive(serde::Serialize)]
struct RecordView {
    offset: usize,
    bytes: usize,
    /// Dispatch commands in it.
    commands: usize,
    /// The record as `cq decode` prints it.
    text: String,
    /// Of an `EXEC_BUF`: the records that it executes. Null if the capture does not have them,
    /// absent if they are those of the one before it with the same address.
    #[serde(skip_serializing_if = "Option::is_none")]
    executes: Option<Option<Vec<String>>>,
}

impl Serialize for Records {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut buffers = ExecBuffers::new(&self.1);
        serializer.collect_seq(decode_stream(&self.0).map_while(std::result::Result::ok).map(|record| RecordView {
            offset: record.offset,
            bytes: record.size,
            commands: record.inner.len(),
            text: record.to_string(),
            executes: match buffers.next(&record) {
                Executes::Nothing | Executes::Same => None,
                Executes::Unknown => Some(None),
                Executes::Records(texts) => Some(Some(texts)),
            },
        }))
    }
}

/// Decodes the records of a file up to the first bad byte.
pub fn decode(file: &Path) -> Outcome<Answer> {
    let bytes = files::read_within(file, MAX_CAPTURE_BYTES, "an issue region or capture")?;
    let (mut count, mut commands, mut bad) = (0, 0, None);
    let (mut decoder, mut places) = (decode_stream(&bytes), Places::default());
    for record in decoder.by_ref() {
        match record {
            Ok(record) => {
                places.add(&record);
                count += 1;
                commands += record.inner.len() as u64;
            }
            Err(error) => bad = Some(error),
        }
    }
    let good_bytes = decoder.offset();
    let file_name = file.display().to_string();
    let report = CaptureReport {
        file: file_name,
        bytes: bytes.len(),
        good_bytes,
        commands,
        count,
        records: Records(bytes, places),
    };
    let failure = bad.map(|error| broken(file, &error, &report));
    let whole = failure.is_none();
    let answer = Answer::new(report, move |report, out| {
        report.text(out)?;
        if whole {
            report.say_counts();
        }
        Ok(())
    });
    Ok(answer.failing(failure))
}

fn broken(file: &Path, error: &DecodeError, report: &CaptureReport) -> Failure {
    let CaptureReport { good_bytes, commands, count, .. } = report;
    let good = format!("{count} records ({commands} dispatch commands, {good_bytes} bytes) before it are good");
    let message = format!("{}: {error}\n{good}", file.display());
    Failure::failed("capture", message).of_file(file).with("offset", error.offset).with("command", error.context)
}

impl CaptureReport {
    fn text(&self, out: &mut dyn Write) -> Result<()> {
        let mut buffers = ExecBuffers::new(&self.records.1);
        decode_stream(&self.records.0).flatten().try_for_each(|record| {
            writeln!(out, "{record}")?;
            match buffers.next(&record) {
                Executes::Nothing => Ok(()),
                Executes::Unknown => writeln!(out, "            > not in this capture"),
                Executes::Same => writeln!(out, "            > as above"),
                Executes::Records(texts) => texts
                    .iter()
                    .flat_map(|text| text.lines())
                    .try_for_each(|line| writeln!(out, "            > {line}")),
            }
        })
    }

    /// The counts, beside the records: on standard error.
    fn say_counts(&self) {
        let Self { bytes, good_bytes, commands, count, .. } = self;
        let said = format!("{count} records, {commands} dispatch commands, {good_bytes} of {bytes} bytes");
        let _ = writeln!(std::io::stderr(), "{said}");
    }
}
