//! Runs to keep.

use plumb_store::{NewRun, Origin, Summary};
use serde_json::json;

/// A run with a label and a figure.
pub(crate) fn run(label: &str, iops: f64) -> NewRun {
    NewRun {
        origin: Origin::Run,
        label: (!label.is_empty()).then(|| label.to_owned()),
        summary: Summary { iops: Some(iops), ..Summary::default() },
        arguments: Some(vec!["-b4K".to_owned(), "f".to_owned()]),
        working_folder: Some("/data".to_owned()),
        environment: (json!({ "kernel": "6.12" }), json!(null)),
        result: json!({ "schema_version": 1, "big": vec![1; 2000] }),
    }
}
