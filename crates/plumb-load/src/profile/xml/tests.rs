use super::super::error::ErrorClass;
use super::super::model::{AffinityEntry, RingBatch, WriteContent};
use super::*;

/// A profile around the children of a time span and of a target.
fn document(span: &str, target: &str) -> String {
    format!(
        "<Profile>\n<TimeSpans>\n<TimeSpan>\n{span}<Targets>\n<Target>\n{target}<Path>disk</Path>\n\
         </Target>\n</Targets>\n</TimeSpan>\n</TimeSpans>\n</Profile>\n"
    )
}

/// Reads a document; `want` is the class, a part of the message and a part of the help.
fn check_error(document: &str, want: (ErrorClass, &str, &str)) {
    let violation = read(document).expect_err(document);
    assert_eq!(violation.class, want.0, "{violation}");
    assert!(violation.message.contains(want.1), "{violation}");
    assert!(violation.help.contains(want.2), "{}", violation.help);
}

#[test]
fn errors_name_place_element_value_and_what_is_allowed() {
    let schema = ErrorClass::Schema;
    let in_target = |target: &str| document("", target);
    check_error(
        &in_target("<Blocksize>1</Blocksize>"),
        (schema, "line 6, column 1: element <Blocksize> is not allowed in <Target>", "<BlockSize>"),
    );
    check_error(
        &in_target("<BlockSize>64K</BlockSize>"),
        (schema, "line 6, column 1: '64K' in <BlockSize> is not an unsigned", "write 65536"),
    );
    check_error(
        &in_target("  <WriteRatio>101</WriteRatio>"),
        (schema, "line 6, column 3: '101' in <WriteRatio> is out of range", "from 0 to 100"),
    );
    check_error(
        &in_target("<Throughput unit=\"MB\">1</Throughput>"),
        (schema, "unit='MB' is not allowed on <Throughput>", "BPMS, IOPS"),
    );
    check_error(
        &in_target("<BlockSize><b/></BlockSize>"),
        (schema, "element <b> is not allowed in <BlockSize>", "holds a value"),
    );
    check_error(&in_target("word"), (schema, "text 'word' between the elements", "remove it"));
    let long = in_target(&format!("<IOPriority>{}</IOPriority>", "9".repeat(5000)));
    check_error(&long, (schema, "...' in <IOPriority> is out of range", "from 0 to 4294967295"));
    check_error(
        "<Profile xmlns=\"urn:x\"><TimeSpans/></Profile>",
        (schema, "the root element is <Profile>", "without a namespace"),
    );
    check_error(
        "<Profile>\n <!-- é --><TimeSpans>",
        (ErrorClass::NotWellFormed, "line 2, column", "mend"),
    );
    check_error(
        "<!-- x -->\n <!DOCTYPE Profile [<!ENTITY a \"b\">]><Profile>&a;</Profile>",
        (schema, "line 2, column 2: a document type declaration", "remove it"),
    );
}

#[test]
fn the_schema_of_the_whole_document_comes_before_its_meaning() {
    let target = "<StrideSize>1</StrideSize><Random>1</Random>";
    let meaningless = document("", target);
    check_error(&meaningless, (ErrorClass::SeqRandConflict, "<StrideSize> and <Random>", ""));
    let both = document("", &format!("{target}<Weight>x</Weight>"));
    check_error(&both, (ErrorClass::Schema, "<Weight>", ""));
}

#[test]
fn values_may_have_blanks_and_comments_around_them() {
    let text = document(
        "<Duration>\t1<!-- x -->2 </Duration><IoRing/>",
        "<DisableOSCache> 1 </DisableOSCache><WriteBufferContent><Pattern>random</Pattern>\
         <RandomDataSource><SizeInBytes>70000</SizeInBytes><FilePath/></RandomDataSource>\
         </WriteBufferContent>",
    );
    let profile = read(&text).expect("a profile");
    let span = &profile.time_spans[0];
    assert_eq!(span.duration, 12);
    assert_eq!(span.io_ring.map(|ring| ring.batch), Some(RingBatch::Percent(25)));
    let random_fill = WriteContent::Random { size: 70000, file: None };
    assert_eq!(span.targets[0].write_content, random_fill);
}

#[test]
fn masks_are_hexadecimal_octal_or_decimal() {
    let masked = |mask: &str| {
        let text =
            document(&format!("<Affinity><Group Group=\"1\" Mask=\"{mask}\"/></Affinity>"), "");
        read(&text).map(|profile| profile.time_spans[0].affinity.clone())
    };
    let entries = |processors: &[u8]| -> Vec<AffinityEntry> {
        let of = |processor: &u8| AffinityEntry { group: 1, processor: Some(*processor) };
        processors.iter().map(of).collect()
    };
    for (mask, processors) in [
        ("0x52", [1, 4, 6].as_slice()),
        ("0X8000000000000001", &[0, 63]),
        ("012", &[1, 3]),
        ("12", &[2, 3]),
    ] {
        assert_eq!(masked(mask), Ok(entries(processors)), "{mask}");
    }
    let whole = vec![AffinityEntry { group: 1, processor: None }];
    for mask in ["0", "0x0", "00"] {
        assert_eq!(masked(mask), Ok(whole.clone()), "{mask}");
    }
    for bad in ["", "0x", "+1", "-1", "08", "1f", "18446744073709551616", "0x 1", "all"] {
        let class = masked(bad).map_err(|violation| violation.class);
        assert_eq!(class, Err(ErrorClass::Affinity), "{bad}");
    }
}

#[test]
fn profiles_come_in_utf_8_and_utf_16() {
    let text = document("", "");
    let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(bytes).collect()
    };
    let want = read(&text).expect("a profile");
    for bytes in [
        text.clone().into_bytes(),
        format!("\u{feff}{text}").into_bytes(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
    ] {
        assert_eq!(decode(&bytes).and_then(|text| read(&text)), Ok(want.clone()));
    }
    for bad in [&b"<Profile>\xff</Profile>"[..], b"\xff\xfe<", b"\xff\xfe\x00\xd8"] {
        let violation = decode(bad).expect_err("no text");
        assert_eq!(violation.class, ErrorClass::NotWellFormed);
    }
}

#[test]
fn documents_that_cost_the_parser_too_much_are_refused_at_once() {
    let attributes: String = (0..200_000).map(|number| format!(" a{number}=\"\"")).collect();
    let namespaces: String =
        (0..50_000).map(|number| format!("<a xmlns:n{number}=\"u{number}\">")).collect();
    let deep = "<a>".repeat(500_000);
    let large = " ".repeat(17 << 20);
    let many = document("", &"<a/>".repeat(2_000_000));
    let start = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec;
    for (document, part) in [
        (format!("<Profile{attributes}/>"), "attributes in one tag"),
        (namespaces, "namespace declarations"),
        (deep, "not well-formed"),
        (large, "at most 16777216 are read"),
        (many, "nodes"),
    ] {
        let violation = read(&document).expect_err(part);
        assert!(violation.message.contains(part), "{part}: {violation}");
    }
    // Time of this thread, whatever else runs; an attack costs hours.
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime).tv_sec - start;
    assert!(spent < 20, "{spent} s");
}
