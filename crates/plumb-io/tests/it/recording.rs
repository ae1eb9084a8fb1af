//! A recording queue tells what it was asked.

use plumb_io::engine::Choice;
use plumb_io::stack::{Recorded, RecordingOpener};
use plumb_io::{Done, QueueMode, Slot};
use plumb_units::Nanos;

use crate::drive::{BLOCK, ladder, op, spec, with};

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
