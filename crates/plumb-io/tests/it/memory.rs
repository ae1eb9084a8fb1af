//! Memory that is refused is explained.

use plumb_io::engine::Choice;
use plumb_io::{BufferPlacement, OpenQueueError, QueueMode, QueueSpec};

use crate::drive::{ladder, spec, with};

fn refusal(spec: QueueSpec) -> (String, String) {
    match with(&ladder(Choice::Null), spec, |queue| queue.facts()) {
        Err(error @ OpenQueueError::Memory { .. }) => {
            let text = error.to_string();
            let OpenQueueError::Memory { remedy, .. } = error else {
                unreachable!("matched above")
            };
            (text, remedy)
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn large_pages_that_are_not_there_name_the_setting() {
    let mut spec = spec(1 << 16, QueueMode::Asynchronous, vec![]);
    spec.placement = BufferPlacement::LargePages;
    // More than any machine sets aside: 2^16 slots of 4 GiB.
    spec.regions[0].lanes[0].bytes = u32::MAX;
    let (text, remedy) = refusal(spec);
    assert!(text.contains("Cannot allocate memory"), "{text}");
    assert!(remedy.contains("nr_hugepages") && remedy.contains("-l"), "{remedy}");
}

#[test]
fn too_many_buffers_name_the_options() {
    let mut spec = spec(1 << 16, QueueMode::Asynchronous, vec![]);
    spec.regions[0].lanes[0].bytes = u32::MAX;
    let (text, remedy) = refusal(spec);
    assert!(text.starts_with("cannot get 281"), "{text}");
    assert!(remedy.contains("-o"), "{remedy}");
}

#[test]
fn separation_that_is_refused_is_told() {
    let mut spec = spec(1, QueueMode::Asynchronous, vec![]);
    spec.placement = BufferPlacement::Separated(1 << 60);
    let facts = with(&ladder(Choice::Null), spec, |queue| queue.facts()).expect("plain buffers");
    assert_eq!(facts.buffer_separation, 0);
    assert!(facts.dropped[0].contains("-bsp"), "{facts:?}");
}
