//! Reads results back: DISKSPD's and Plumb's, text and XML, and turns them into tables (spec 7, 8,
//! 12.1, 15.10, 15.11).
//!
//! Reading is tolerant where programs differ (layouts of DISKSPD 2.0 to 2.3, line ends, lines that were
//! printed before the document, names that were written unescaped) and strict with numbers: one that is
//! no number is an error with its place, never a zero.

mod decode;
mod error;
mod folder;
mod model;
mod read_own;
mod read_profile;
mod read_text;
mod read_xml;
mod repair;
mod rows;
mod sizes;
mod tables;

pub use decode::read;
pub use error::{ConvertError, ImportError};
pub use folder::{ConvertReport, Skipped, process_folder};
pub use model::{
    ByDirection, CpuPercents, Figures, ForeignEpoch, ImportedCpu, ImportedResult, ImportedSize,
    ImportedSpan, ImportedSubmission, ImportedTarget, ImportedThread, Interval, IntervalLatency,
    IoCount, LatencyBucket, PathLatency, PowerScheme,
};
pub use read_text::{read_text, read_texts};
pub use read_xml::read_xml;
pub use rows::json_rows;

/// Reads any bytes as results and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_result(bytes: &[u8]) {
    match read(bytes) {
        Ok(results) => {
            let rows: usize = results.iter().map(|result| json_rows(result).len()).sum();
            assert!(rows >= results.len());
            assert!(rows <= bytes.len(), "{rows} rows from {} bytes", bytes.len());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests;
