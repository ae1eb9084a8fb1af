use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;

use plumb_units::Nanos;

use super::*;
use crate::heat::{HostIo, HostIoKind};
use crate::random::Random;

fn read(
    format: TraceFormat,
    strictness: Strictness,
    text: &[u8],
) -> Result<(Vec<TraceIo>, TraceSummary), TraceError> {
    let mut reader =
        TraceReader::new(Cursor::new(text), Path::new("t.csv"), format, strictness, None);
    let ios = reader.by_ref().collect::<Result<Vec<_>, _>>()?;
    Ok((ios, reader.end()?))
}

/// I/Os as `time volume R|W offset+len`.
fn shown(ios: &[TraceIo]) -> Vec<String> {
    let word = |io: &TraceIo| {
        let kind = if io.io.kind == HostIoKind::Read { 'R' } else { 'W' };
        format!("{} {} {kind} {}+{}", io.at.0, io.volume, io.io.offset, io.io.len)
    };
    ios.iter().map(word).collect()
}

#[track_caller]
fn check(format: TraceFormat, text: &str, wanted: &[&str]) -> TraceSummary {
    let (ios, summary) = read(format, Strictness::Strict, text.as_bytes()).expect("a good trace");
    assert_eq!(shown(&ios), wanted);
    summary
}

/// Number of the bad line, what is said, and the remedy.
#[track_caller]
fn refuses(format: TraceFormat, text: &str, line: u64, words: &str) {
    match read(format, Strictness::Strict, text.as_bytes()) {
        Err(TraceError::Line { path, line: found, what, remedy }) => {
            assert_eq!(path, Path::new("t.csv"));
            assert_eq!(found, line, "{what}");
            assert!(what.contains(words), "{what}");
            assert!(remedy.contains(format.name()) && remedy.contains("--lenient"), "{remedy}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn server_traces_are_read() {
    let text = "128166372003061629,usr,0,Read,7014609920,24576,41286\n\
                128166372016382155,usr,1,Write,2517696,4096,703\n\
                \n# a remark\n\
                128166372026382245,usr,0,Write,0,512\n";
    let summary = check(
        TraceFormat::Msr,
        text,
        &["0 0 R 7014609920+24576", "1332052600 1 W 2517696+4096", "2332061600 0 W 0+512"],
    );
    assert_eq!(summary.volumes, ["usr.0", "usr.1"]);
    assert_eq!((summary.ios, summary.lines, summary.bad), (3, 5, 0));
    assert_eq!(summary.duration, Nanos(2_332_061_600));
}

#[test]
fn cloud_traces_are_read() {
    check(
        TraceFormat::Alibaba,
        "device_id,opcode,offset,length,timestamp\n419,W,8792731648,16384,1577808000000044\n\
         725,R,59110326272,360448,1577808000000068\n",
        &["0 0 W 8792731648+16384", "24000 1 R 59110326272+360448"],
    );
    check(
        TraceFormat::Tencent,
        "1538323200,12910952,128,0,1063\n1538323201,6265688,8,1,1078\n",
        &["0 0 R 6610407424+65536", "1000000000 1 W 3208032256+4096"],
    );
}

/// Times of whole seconds say nothing of what comes when within one: its I/Os are spread over it, and that is told.
#[test]
fn ios_of_a_whole_second_do_not_come_at_once() {
    let line = |second: &str, block: u32| format!("{second},{},8,0,1283\n", block * 8);
    let times = |text: &str| {
        let (ios, summary) =
            read(TraceFormat::Tencent, Strictness::Strict, text.as_bytes()).expect("a good trace");
        let offsets: Vec<u64> = ios.iter().map(|io| io.io.offset >> 12).collect();
        assert!(offsets.is_sorted(), "in the order of the file: {offsets:?}");
        assert_eq!(ios.last().map(|io| io.at), Some(summary.duration));
        let times: Vec<u64> = ios.iter().map(|io| io.at.0 / 1_000_000).collect();
        (times, summary.spread, summary.out_of_order)
    };
    let mut text = String::new();
    for (block, second) in (0..).zip(["7", "7", "7", "7", "8", "10", "9", "11", "11"]) {
        text.push_str(&line(second, block));
    }
    let wanted = vec![0, 250, 500, 750, 1000, 3000, 3500, 4000, 4500];
    assert_eq!(times(&text), (wanted, 8, 1));
    // Where there are fractions after all, they count.
    let text = ["7", "7", "7.3", "7.3", "7.9"].map(|second| line(second, 0)).concat();
    assert_eq!(times(&text), (vec![0, 150, 300, 300, 900], 2, 0));
    // Other formats have times of their own.
    let (ios, summary) =
        read(TraceFormat::Alibaba, Strictness::Strict, b"1,W,0,512,0\n1,W,0,512,0\n")
            .expect("good");
    assert_eq!((ios[1].at, summary.spread), (Nanos::ZERO, 0));
}

#[test]
fn transaction_traces_are_read() {
    check(
        TraceFormat::Spc,
        "0,20941264,8192,W,0.551706,Alpha/NT\n0,20939840,8192,w,0.554041\n1,3436288,15872,r,1.011732\n",
        &[
            "0 0 W 10721927168+8192",
            "2335000 0 W 10721198080+8192",
            "460026000 1 R 1759379456+15872",
        ],
    );
}

#[test]
fn traces_with_processes_are_read() {
    check(
        TraceFormat::Fiu,
        "89966590487300 1026 apache2 508928 8 W 6 0 531e779e1a2b3c4d\n\
         89966590500000 7 kworker u8 2 508936 16 R 6 1 00ff\n",
        &["0 0 W 260571136+4096", "12700 1 R 260575232+8192"],
    );
}

#[test]
fn what_blkparse_prints_is_read_up_to_its_summary() {
    let text = "  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]\n\
                  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
                  8,0    3        3     0.000002197   697  P   N [kjournald]\n\
                  8,0    1        4     0.500000000   700  Q  RA 100 + 16 [cat]\n\
                  8,0    1        5     0.600000000   700  Q   D 100 + 16 [fstrim]\n\
                  8,0    1        6     0.600000000   700  Q FWS [sync]\n\
                CPU0 (8,0):\n Reads Queued:           0,        0KiB\n";
    check(TraceFormat::Blkparse, text, &["0 0 W 114426880+4096", "499998171 0 R 51200+8192"]);
}

/// A trace that was recorded without the events that count has lines of the right shape: what is missing is said.
#[test]
fn a_trace_of_later_steps_is_told_as_such() {
    let text = "8,0 3 1 0.000000000 697 D W 223490 + 8 [kjournald]\n8,0 3 2 0.000100000 0 C W 223490 + 8 [0]\n";
    let error = read(TraceFormat::Blkparse, Strictness::Strict, text.as_bytes());
    let Err(TraceError::Empty { remedy, .. }) = error else { panic!("none is queued") };
    for words in ["its 2 lines", "only Q", "blktrace -d DEVICE -a queue"] {
        assert!(remedy.contains(words), "{remedy}");
    }
    assert!(!remedy.contains("a line of format"), "{remedy}");
}

#[test]
fn a_bad_line_is_told_with_its_number_and_what_to_do() {
    let good = "419,W,8192,4096,1577808000000044\n";
    for (bad, words) in [
        ("419,W,8192,4096", "4 fields"),
        ("419,X,8192,4096,1577808000000045", "\"X\""),
        ("419,W,-1,4096,1577808000000045", "the offset is \"-1\""),
        ("419,W,8192,0,1577808000000045", "the size is 0"),
        ("419,W,8192,99999999999,1577808000000045", "not 1 byte to 1 GiB"),
        ("419,W,18446744073709551615,4096,1577808000000045", "beyond 64 PiB"),
        ("419,W,8192,4096,99999999999999999999", "the timestamp"),
        ("419,W,8192,4096,18446744073709551615", "too large"),
        ("vm,W,8192,4096,1577808000000045", "the device"),
    ] {
        refuses(TraceFormat::Alibaba, &format!("{good}\n{bad}\n{good}"), 3, words);
        let lenient = format!("{good}{bad}\n{good}");
        let (ios, summary) =
            read(TraceFormat::Alibaba, Strictness::Lenient, lenient.as_bytes()).expect("lenient");
        assert_eq!((ios.len(), summary.bad), (2, 1));
        assert!(summary.faults[0].starts_with("line 2: "), "{:?}", summary.faults);
    }
    refuses(TraceFormat::Msr, "1,a,0,Read,0,512,1\n2,a,0,Fetch,0,512,1\n", 2, "\"Fetch\"");
    refuses(TraceFormat::Msr, "1,,0,Read,0,512,1\n", 1, "no name");
    refuses(TraceFormat::Tencent, "1538323200,1,8,2,1\n", 1, "\"2\"");
    refuses(TraceFormat::Spc, "0,1,512,w,1.5s\n", 1, "\"1.5s\"");
    refuses(TraceFormat::Spc, "0,1,512,w,-1\n", 1, "\"-1\"");
    refuses(TraceFormat::Fiu, "1 2 p 3 4 W 5 6\n", 1, "8 fields");
    refuses(TraceFormat::Blkparse, "8:0 3 1 0.0 697 Q W 1 + 8\n", 1, "\"8:0\"");
    let long = "x".repeat(20_000);
    refuses(TraceFormat::Spc, &long, 1, "longer than 16 KiB");
}

/// Names of columns are the first line and no other; what has no digits further on is a bad line.
#[test]
fn names_of_columns_stand_in_the_first_line_alone() {
    let good = "419,W,8192,4096,1577808000000044\n";
    let names = "device_id,opcode,offset,length,timestamp\n";
    check(TraceFormat::Alibaba, &format!("{names}{good}"), &["0 0 W 8192+4096"]);
    refuses(TraceFormat::Alibaba, &format!("{good}{names}"), 2, "the device");
    for no_names in ["the end\n", "device_id,opcode,offset\n"] {
        refuses(TraceFormat::Alibaba, &format!("{no_names}{good}"), 1, "fields");
    }
    refuses(TraceFormat::Alibaba, &format!("{names}{names}{good}"), 2, "the device");
    refuses(TraceFormat::Msr, "1,a,0,Read,0,512,1\nthe end\n", 2, "fields");
}

/// The largest I/O and the last byte that a trace may name, in every format that has them.
#[test]
fn sizes_and_offsets_are_taken_up_to_their_bounds() {
    let line = |offset: u64, size: u64| format!("1,a,0,Read,{offset},{size},1\n");
    check(TraceFormat::Msr, &line(0, 1 << 30), &["0 0 R 0+1073741824"]);
    refuses(TraceFormat::Msr, &line(0, (1 << 30) + 1), 1, "not 1 byte to 1 GiB");
    check(TraceFormat::Msr, &line((1 << 56) - 512, 512), &["0 0 R 72057594037927424+512"]);
    refuses(TraceFormat::Msr, &line((1 << 56) - 511, 512), 1, "beyond 64 PiB");
    // In sectors: what overflows in bytes is no offset.
    refuses(TraceFormat::Tencent, "1,36028797018963968,8,0,1\n", 1, "too large");
    // More decimals than nanoseconds.
    check(
        TraceFormat::Spc,
        "0,1,512,w,1.0000000019\n0,1,512,w,2.5\n",
        &["0 0 W 512+512", "1499999999 0 W 512+512"],
    );
}

/// A time stamp of another clock, or in another unit, would be years of nothing.
#[test]
fn a_pause_of_more_than_a_year_is_a_bad_line() {
    let trace = |seconds: u64| format!("0,1,512,w,1\n0,1,512,w,{}\n0,1,512,w,2\n", 1 + seconds);
    let year = 366 * 86_400;
    check(
        TraceFormat::Spc,
        &trace(1),
        &["0 0 W 512+512", "1000000000 0 W 512+512", "1000000000 0 W 512+512"],
    );
    refuses(TraceFormat::Spc, &trace(year + 86_400), 2, "367 days after that of the I/O before");
    let lenient = read(TraceFormat::Spc, Strictness::Lenient, trace(year + 86_400).as_bytes());
    let (ios, summary) = lenient.expect("it is left out");
    assert_eq!((ios.len(), summary.bad, summary.duration), (2, 1, Nanos::from_secs(1)));
    let whole = read(TraceFormat::Spc, Strictness::Strict, trace(year).as_bytes());
    assert_eq!(whole.expect("a year").0.len(), 3);
}

#[test]
fn a_trace_without_ios_and_a_volume_that_is_not_there_are_refused() {
    let Err(TraceError::Empty { remedy, .. }) = read(TraceFormat::Spc, Strictness::Strict, b"\n\n")
    else {
        panic!("it is empty");
    };
    assert!(remedy.contains("ASU,LBA"), "{remedy}");
    // Bad lines only: of another format, most likely.
    let error = read(TraceFormat::Spc, Strictness::Lenient, b"1,W,0,512,9\n1,W,0,512,x\n");
    let Err(TraceError::Empty { remedy, .. }) = error else { panic!("none is good") };
    assert!(
        remedy.starts_with("2 bad lines were left out, the first: line 1: ")
            && remedy.contains("ASU,LBA"),
        "{remedy}"
    );
    let text = "419,W,8192,4096,1\n420,W,0,4096,2\n419,W,0,4096,5\n";
    let only = |name: &str| {
        let input = Cursor::new(text);
        let (format, strict) = (TraceFormat::Alibaba, Strictness::Strict);
        let mut reader =
            TraceReader::new(input, Path::new("t"), format, strict, Some(name.to_owned()));
        let ios: Vec<TraceIo> = reader.by_ref().map(|io| io.expect("good")).collect();
        reader.end().map(|_| shown(&ios))
    };
    assert_eq!(only("419").expect("it is there"), ["0 0 W 8192+4096", "4000 0 W 0+4096"]);
    let error = only("421").expect_err("there is none");
    assert_eq!(error.to_string(), "t has no I/O on volume '421'");
    let TraceError::Empty { remedy, .. } = error else { panic!("{error}") };
    assert!(remedy.contains("419, 420"), "{remedy}");
}

#[test]
fn time_does_not_go_back() {
    let (ios, summary) =
        read(TraceFormat::Alibaba, Strictness::Strict, b"1,W,0,512,9\n1,W,0,512,5\n1,W,0,512,11\n")
            .expect("a good trace");
    assert_eq!(ios.iter().map(|io| io.at.0).collect::<Vec<_>>(), [0, 0, 2000]);
    assert_eq!(summary.out_of_order, 1);
}

/// Each I/O that is earlier than the one before counts, and is at that one's time; not only what is before the first.
#[test]
fn times_between_the_first_and_the_last_are_out_of_order_too() {
    let (ios, summary) = read(
        TraceFormat::Alibaba,
        Strictness::Strict,
        b"1,W,0,512,5\n1,W,0,512,20\n1,W,0,512,10\n1,W,0,512,25\n",
    )
    .expect("a good trace");
    assert_eq!(ios.iter().map(|io| io.at.0).collect::<Vec<_>>(), [0, 15_000, 15_000, 20_000]);
    assert_eq!((summary.out_of_order, summary.duration), (1, Nanos(20_000)));
}

/// A record whose checksum is right may say what cannot be all the same: of another writer's.
#[test]
fn records_that_cannot_be_are_refused() {
    let record = |len: u64, offset: u64| {
        let io = HostIo { kind: HostIoKind::Write, offset, len };
        let mut writer = TraceWriter::new(Vec::new(), false).expect("memory");
        writer.add(&TraceIo { at: Nanos(1), volume: 0, io }).expect("memory");
        writer.end().expect("memory")
    };
    let found = |bytes: &[u8]| read(TraceFormat::Plumb, Strictness::Strict, bytes);
    for (len, offset) in [(1, 0), (1 << 30, (1 << 56) - (1 << 30))] {
        let (ios, _) = found(&record(len, offset)).expect("it can be");
        assert_eq!((ios[0].io.len, ios[0].io.offset), (len, offset));
    }
    let mut turned = record(512, 0);
    turned[32 + 24] = 2;
    let crc = crate::format::checksum::crc(0, &turned[32..60]).to_le_bytes();
    turned[60..].copy_from_slice(&crc);
    for bytes in [record(0, 0), record((1 << 30) + 1, 0), record(512, (1 << 56) - 511), turned] {
        match found(&bytes) {
            Err(TraceError::Line { line: 2, what, .. }) => {
                assert!(what.contains("cannot be"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}

/// What a spreadsheet puts before a text is no part of its first line, and of no other.
#[test]
fn a_byte_order_mark_begins_a_text() {
    let line = "1.5,usr,0,Read,0,4096,1\n".replace("1.5", "128166372003061629");
    let marked = format!("\u{feff}{line}{line}");
    let (found, summary) =
        read(TraceFormat::Msr, Strictness::Strict, marked.as_bytes()).expect("a good trace");
    assert_eq!((found.len(), summary.bad, summary.lines), (2, 0, 2));
    let within = format!("{line}\u{feff}{line}");
    let (found, summary) =
        read(TraceFormat::Msr, Strictness::Lenient, within.as_bytes()).expect("one is good");
    assert_eq!((found.len(), summary.bad), (1, 1));
}

#[test]
fn own_traces_round_trip_and_stay_synthetic() {
    let spec =
        WorkloadSpec::parse("vms:extents=4096,hours=0.01,disks=3,seed=5").expect("a workload");
    let ios: Vec<TraceIo> = spec.generate().collect();
    let mut writer = TraceWriter::new(Vec::new(), true).expect("memory");
    ios.iter().for_each(|io| writer.add(io).expect("memory"));
    let bytes = writer.end().expect("memory");
    assert!(is_binary(&bytes) && !is_binary(b"1,2"));
    assert_eq!(bytes.len(), 32 * (ios.len() + 1));
    let (found, summary) =
        read(TraceFormat::Plumb, Strictness::Strict, &bytes).expect("a good trace");
    assert!(summary.synthetic && summary.volumes.len() == 3);
    let times =
        |ios: &[TraceIo]| ios.iter().map(|io| (io.at.0 - ios[0].at.0, io.io)).collect::<Vec<_>>();
    assert_eq!(times(&found), times(&ios));

    let mut bad = bytes.clone();
    bad[32 * 7 + 9] ^= 1;
    match read(TraceFormat::Plumb, Strictness::Strict, &bad) {
        Err(TraceError::Line { line: 8, what, .. }) => assert!(what.contains("checksum"), "{what}"),
        other => panic!("{other:?}"),
    }
    let (found, summary) = read(TraceFormat::Plumb, Strictness::Lenient, &bad).expect("lenient");
    assert_eq!((found.len(), summary.bad), (ios.len() - 1, 1));
    let cut = read(TraceFormat::Plumb, Strictness::Strict, &bytes[..bytes.len() - 1]);
    assert!(matches!(cut, Err(TraceError::Line { what, .. }) if what.contains("within a record")));
    let foreign = read(TraceFormat::Plumb, Strictness::Lenient, &[7; 64]);
    assert!(
        matches!(foreign, Err(TraceError::Line { line: 1, .. })),
        "no header, nothing to be lenient about"
    );
}

#[test]
fn workloads_are_what_they_are_called() {
    let made =
        |text: &str| WorkloadSpec::parse(text).expect("a workload").generate().collect::<Vec<_>>();
    let share = |ios: &[TraceIo], is: &dyn Fn(&TraceIo) -> bool| {
        ios.iter().filter(|io| is(io)).count() as f64 / ios.len() as f64
    };
    for (name, _) in workload_kinds() {
        let text = format!("{name}:extents=4096,hours=5,rate=2,seed=3");
        let ios = made(&text);
        assert_eq!(ios, made(&text), "{name}: a seed is a trace");
        assert!(ios.windows(2).all(|pair| pair[0].at <= pair[1].at), "{name}");
        assert!(ios.iter().all(|io| io.io.offset + io.io.len <= 4096 << 20), "{name}");
        assert!(ios.last().is_some_and(|io| io.at > Nanos::from_secs(4 * 3600)), "{name}");
        let count = ios.len() as f64 / 36_000.0;
        assert!(name == "diurnal" || (count - 1.0).abs() < 0.03, "{name}: {count}");
    }
    let hot = made("moving:extents=1000,hours=1,rate=20,space=5,io=95,drift=0");
    assert!((share(&hot, &|io| io.io.offset < 50 << 20) - 0.95).abs() < 0.01);
    let mixed = made("sequential:extents=640,hours=1,rate=20,random=25,block=64K");
    let follows = |pair: &[TraceIo]| pair[0].io.offset + pair[0].io.len == pair[1].io.offset;
    let following = mixed.windows(2).filter(|pair| follows(pair)).count() as f64;
    // Both of a pair are of the stream.
    assert!((following / mixed.len() as f64 - 0.5625).abs() < 0.01, "{following}");
    let writes = made("oltp:extents=1000,hours=1,rate=20");
    assert!((share(&writes, &|io| io.io.kind == HostIoKind::Write) - 0.3).abs() < 0.01);
    let olap = made("olap:extents=6400,hours=1,rate=20");
    let in_order = |pair: &[TraceIo]| pair[0].io.offset + pair[0].io.len == pair[1].io.offset;
    assert!(olap.windows(2).filter(|pair| in_order(pair)).count() * 100 > olap.len() * 99);
    // Who was hot in the first hour is cold where much changes, and hot where nothing does.
    for (change, low, high) in [(0, 0.8, 1.0), (100, 0.0, 0.2)] {
        let ios = made(&format!("zipf:extents=1000,hours=2,rate=50,change={change},top10=80"));
        let hour = |nth: u64| {
            let mut counts = vec![0_u32; 1000];
            ios.iter().filter(|io| io.at.0 / 3_600_000_000_000 == nth).for_each(|io| {
                counts[plumb_units::convert::to_usize(io.io.offset >> 20)] += 1;
            });
            let mut order: Vec<usize> = (0..1000).collect();
            order.sort_by_key(|extent| std::cmp::Reverse(counts[*extent]));
            order[..50].to_vec()
        };
        let (first, second) = (hour(0), hour(1));
        let kept = first.iter().filter(|extent| second.contains(extent)).count() as f64 / 50.0;
        assert!((low..=high).contains(&kept), "{change} %: {kept}");
    }
}

#[test]
fn what_is_beyond_its_device_is_a_bad_line() {
    let text = "7,R,0,4096,10\n7,W,1044480,4096,20\n7,W,1044480,8192,30\n8,R,0,512,40\n";
    let companion = Capacities::read(&b"device_id,capacity\n7,1048576\n"[..], Path::new("s.csv"));
    let companion = companion.expect("a companion");
    let reader = |strictness| {
        TraceReader::new(
            text.as_bytes(),
            Path::new("t.csv"),
            TraceFormat::Alibaba,
            strictness,
            None,
        )
        .with_capacities(Some(companion.clone()))
    };
    match reader(Strictness::Strict).find_map(Result::err) {
        Some(TraceError::Line { line: 3, what, .. }) => {
            assert!(what.contains("beyond the 1048576 bytes of device 7"), "{what}");
        }
        other => panic!("{other:?}"),
    }
    let mut lenient = reader(Strictness::Lenient);
    assert_eq!(lenient.by_ref().filter(Result::is_ok).count(), 2);
    let summary = lenient.end().expect("two I/Os");
    assert_eq!(summary.bad, 2);
    assert_eq!(summary.faults[1], "line 4: device 8 has no capacity");
}

/// Spec 20: shares, share of writes and re-reference interval as they are published.
#[test]
fn published_figures_become_parameters_and_the_workload_has_them() {
    for text in [
        "uniform:extents=2000,reuse=300,hours=3",
        "hotcold:extents=2000,reuse=60,hours=1,space=20,io=80",
        "zipf:extents=2000,reuse=120,hours=4,top1=25,writes=65",
        "oltp:extents=2000,reuse=120,hours=4",
    ] {
        let spec = WorkloadSpec::parse(text).expect("a workload");
        let seconds: f64 = text
            .split("reuse=")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .and_then(|word| word.parse().ok())
            .expect("it is given");
        let ios: Vec<TraceIo> = spec.generate().collect();
        let (mut last, mut waits) = (HashMap::new(), Vec::new());
        for io in &ios {
            let before = last.insert(io.io.offset >> 20, io.at);
            // An extent of which nothing is seen again counts as one that waits without end, as does the first of one.
            waits.push(before.map_or(f64::INFINITY, |before| io.at.since(before).as_secs_f64()));
        }
        let again = &mut waits[ios.len() / 2..];
        again.sort_by(f64::total_cmp);
        let median = again[again.len() / 2];
        assert!((median / seconds - 1.0).abs() < 0.05, "{text}: {median} in {}", spec.parameters());
        if text.contains("top1=25") {
            let mut counts = HashMap::new();
            ios.iter().for_each(|io| *counts.entry(io.io.offset >> 20).or_insert(0_u32) += 1);
            let mut counts: Vec<u32> = counts.into_values().collect();
            counts.sort_unstable_by(|one, other| other.cmp(one));
            let top: u32 = counts[..20].iter().sum();
            let share = f64::from(top) / ios.len() as f64;
            assert!((share - 0.25).abs() < 0.01, "{share}");
            let writes = ios.iter().filter(|io| io.io.kind == HostIoKind::Write).count();
            assert!((writes as f64 / ios.len() as f64 - 0.65).abs() < 0.02);
        }
    }
    for (name, _) in workload_kinds() {
        let spec = WorkloadSpec::parse(&format!("{name}:extents=4096,writes=7,block=64K"))
            .expect("a workload");
        assert_eq!(WorkloadSpec::parse(&spec.parameters()).as_ref(), Ok(&spec), "{name}");
    }
    let fitted =
        WorkloadSpec::parse("zipf:extents=5000,top1=30,top10=60,reuse=90").expect("a workload");
    let again = WorkloadSpec::parse(&fitted.parameters()).expect("its own parameters");
    assert_eq!(again.parameters(), fitted.parameters());
    assert!(again.fitted().is_empty(), "theta is given there");
}

/// Two shares are rarely those of one law: what the law gives is known, and is what is generated.
#[test]
fn the_shares_that_are_reached_stand_beside_those_that_are_asked_for() {
    let text = "zipf:extents=2000,top1=35,top10=70,hours=1";
    let spec = WorkloadSpec::parse(text).expect("a workload");
    let shown: Vec<String> = spec
        .fitted()
        .iter()
        .map(|one| format!("{} {:.0} {:.1}", one.percent, 100.0 * one.asked, 100.0 * one.reached))
        .collect();
    assert_eq!(shown, ["1 35 38.2", "10 70 66.8"]);
    assert!(WorkloadSpec::parse("zipf:theta=1").is_ok_and(|spec| spec.fitted().is_empty()));
    // Tables are ranked, and not their extents.
    let tables = WorkloadSpec::parse("olap:top10=50").expect("a workload");
    assert!((tables.fitted()[0].reached - 0.5).abs() < 1e-6, "{tables:?}");
}

#[test]
fn workloads_that_cannot_be_are_refused_with_a_remedy() {
    for (text, words) in [
        ("pareto", "'pareto'"),
        ("zipf:theta", "KEY=VALUE"),
        ("zipf:theta=x", "theta"),
        ("zipf:speed=1", "zipf has no setting 'speed'"),
        ("uniform:theta=1", "uniform has no setting 'theta'"),
        ("zipf:theta=4", "theta cannot be '4' for zipf"),
        ("hotcold:space=0", "space cannot be '0' for hotcold"),
        ("moving:space=100", "space cannot be '100' for moving"),
        ("zipf:extents=0", "extents"),
        ("zipf:block=3000", "block"),
        ("zipf:hours=nan", "hours"),
        ("zipf:writes=101", "writes"),
        ("zipf:top1=0.5", "top 1 %"),
        ("zipf:top1=20,top10=15", "more than the top 10 %"),
        ("zipf:extents=2000,top1=2,top10=70", "the top 10 % take 20.0 % at most"),
        ("zipf:top1=35,top10=36", "at least"),
        ("zipf:top1=20,theta=1", "theta is what"),
        ("zipf:reuse=60,rate=5", "reuse= tells the rate"),
        ("zipf:reuse=60,change=1", "reuse= tells the rate"),
        ("uniform:reuse=1000000000,extents=64", "I/Os per second"),
        ("zipf:rate=5,rate=6", "rate is given twice"),
        ("vms:reuse=60", "vms has no setting 'reuse'"),
    ] {
        let error = WorkloadSpec::parse(text).expect_err(text);
        assert!(error.what.contains(words) && !error.remedy.is_empty(), "{error:?}");
    }
}

#[test]
fn damaged_traces_never_panic() {
    let mut random = Random::new(17);
    let samples: [&[u8]; 5] = [
        b"\x00128166372003061629,usr,0,Read,7014609920,24576,41286\n128166372016382155,usr,1,Write,1,4096,703\n",
        b"\x01419,W,8792731648,16384,1577808000000044\n725,R,59110326272,360448,1577808000000068\n",
        b"\x000,20941264,8192,W,0.551706\n0,20939840,8192,w,0.554041\n",
        b"\x0189966590487300 1026 apache2 508928 8 W 6 0 531e\n",
        b"\x00  8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n",
    ];
    for _ in 0..4000 {
        let nth = plumb_units::convert::to_usize(random.below(5));
        let mut bytes = samples[nth].to_vec();
        for _ in 0..=random.below(4) {
            let at = plumb_units::convert::to_usize(
                random.below(plumb_units::convert::to_u64(bytes.len())),
            );
            match random.below(3) {
                0 => bytes[at] = random.next().to_le_bytes()[0],
                1 => bytes.insert(at, b"9,. \n-+"[plumb_units::convert::to_usize(random.below(7))]),
                _ => drop(bytes.remove(at)),
            }
            if bytes.is_empty() {
                break;
            }
        }
        fuzz_trace(&bytes);
    }
    fuzz_trace(&[]);
}
