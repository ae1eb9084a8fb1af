//! A recording queue tells what it was asked.

use plumb_io::clock::StampClock;
use plumb_io::conformance::{Subject, TargetKind, check};
use plumb_io::engine::Choice;
use plumb_io::stack::{Recorded, RecordingOpener};
use plumb_io::{BufferPlacement, Done, QueueMode, Slot};
use plumb_units::Nanos;

use crate::drive::{BLOCK, ladder, op, spec, with};
use crate::files::{self, How};

#[test]
fn everything_is_recorded_in_order() {
    let opener = RecordingOpener::new(ladder(Choice::Null));
    let used = with(&opener, spec(2, QueueMode::Asynchronous, vec![]), |queue| {
        queue.push(op(1, 4));
        queue.submit_and_wait(1, Nanos(5)).expect("nothing can fail");
        queue.look();
        while queue.pop().is_some() {}
        assert_eq!(queue.facts().engine, "null+recording");
    });
    used.expect("a little memory");
    with(&opener, spec(1, QueueMode::Asynchronous, vec![]), |_| ()).expect("a little memory");
    let expected = vec![
        Recorded::Push(op(1, 4)),
        Recorded::Submit { wanted: 1, timeout: Nanos(5) },
        Recorded::Pop(Done { slot: Slot(1), result: BLOCK.cast_signed() }),
    ];
    assert_eq!(opener.records(), [expected, vec![]]);
}

#[test]
fn a_recorded_queue_keeps_all_promises() {
    check(&Subject {
        name: "recording",
        opener: &RecordingOpener::new(ladder(Choice::Null)),
        clock: &StampClock::monotonic(),
        file: &|_, wish| files::file(wish, How::Buffered),
        engine: "null+recording",
        target: TargetKind::None,
        mode: QueueMode::Asynchronous,
        placement: BufferPlacement::System,
        register_buffers: false,
        measures_latency: true,
    });
}
