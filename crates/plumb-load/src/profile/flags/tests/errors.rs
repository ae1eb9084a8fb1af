//! What an error shows.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;

use super::super::{ErrorFormat, parse};
use super::{Scene, error, workload};

/// The command line as shown, and the mark under it.
fn check(line: &str, mark: &str) {
    let tokens: Vec<_> = line.split_whitespace().map(OsString::from).collect();
    check_tokens(&tokens, &format!("p {line}"), mark);
}

fn check_tokens(tokens: &[OsString], marked: &str, mark: &str) {
    let error = parse(tokens, &mut Scene::default()).expect_err(marked);
    let text = error.to_text("p");
    let lines: Vec<_> = text.lines().collect();
    let blank = lines.iter().position(|line| line.is_empty()).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(lines[blank + 1].strip_prefix("  "), Some(marked), "{text}");
    assert_eq!(lines[blank + 2].strip_prefix("  "), Some(mark), "{text}");
}

#[test]
fn a_report_says_what_where_and_what_instead() {
    assert_eq!(
        error("-b4K -t0 f").to_text("plumb run"),
        "error: -t needs a positive integer\n\
         incorrectly provided option: '-t0'\n\
         \n  plumb run -b4K -t0 f\n                   ^\n\
         \nhelp: write a number from 1, as in -t4"
    );
    assert_eq!(
        error("--threads -4 f").to_text("plumb run"),
        "error: --threads needs a positive integer\n\
         incorrectly provided option: '--threads -4'\n\
         \n  plumb run --threads -4 f\n                      ^^\n\
         \nhelp: write a number from 1, as in --threads=4"
    );
}

/// The part of an ASCII line that is marked; what is missing is marked behind the token.
fn check_part(line: &str, part: &str) {
    let error = error(line);
    let token = error.token.as_deref().unwrap_or_else(|| panic!("{line}: {error}"));
    assert_eq!(&token[error.span.clone()], part, "{line}");
    let text = error.to_text("p");
    let mut lines = text.lines().skip_while(|line| !line.is_empty()).skip(1);
    let (shown, mark) = (lines.next().expect("the line"), lines.next().expect("the mark"));
    let start = mark.find('^').expect("a mark");
    let marked = shown.get(start..mark.len()).unwrap_or_default();
    assert_eq!(marked.trim(), part, "{text}");
    assert!(shown[..start].ends_with(&token[..error.span.start]), "{text}");
}

#[test]
fn the_mark_is_under_the_offending_characters() {
    for (line, part) in [
        ("-c30KB f", "B"),
        ("-c30Q f", "Q"),
        ("-B1M:5mx f", "x"),
        ("-B1Mx:5m f", "x"),
        ("-B1M: f", ""),
        ("-b f", ""),
        ("-rdpct10/10:5/x f", "x"),
        ("-rdpct10/101 f", "101"),
        ("-rdabs10/1G:5/4Q f", "Q"),
        ("-rdabs10/0 f", "0"),
        ("-a1,300 f", "300"),
        ("-a1,7-4 f", "7-4"),
        ("-a1, f", ","),
        ("-a1- f", ""),
        ("-Suwb f", "b"),
        ("-acxs f", "x"),
        ("-acpE f", "E"),
        ("-u5x f", "x"),
        ("-u70000 f", "70000"),
        ("-z12x4 f", "x4"),
        ("-Z1MB,a f", "B"),
        ("-ysa/b f", "/"),
        ("-g10x f", "x"),
        ("-frsx f", "x"),
        ("-Rjson f", "json"),
        ("--threads=0 f", "0"),
        ("--affinity 1,2x f", "x"),
        ("--bypass-io neither f", "neither"),
        ("--unbuffered --bypass-io full --bypass-io full f", "full"),
        ("--latency=1 f", "1"),
        ("--duration= f", ""),
        ("--lateny=3 f", "lateny"),
        ("--cached --unbuffered f", "--unbuffered"),
        ("-r -s f", "-s"),
        ("f -r", "-r"),
        ("- f", "-"),
    ] {
        check_part(line, part);
    }
}

#[test]
fn wide_and_narrow_characters_move_the_mark() {
    check("-c5ü f", "     ^");
    check("–c5–x f", "     ^^");
    check("-c5日本 f", "     ^^^^");
    check("-ysé/日 f", "      ^");
    check("-yse\u{301}/ f", "      ^");
    check("-ys日/ f", "       ^");
    check("-b4K –t0 f", "         ^");
}

#[test]
fn what_does_not_show_is_written_out() {
    let tokens = |tokens: &[&str]| tokens.iter().map(OsString::from).collect::<Vec<_>>();
    check_tokens(&tokens(&["-c5\tK", "a b", ""]), "p '-c5\\tK' 'a b' ''", "      ^^^");
    check_tokens(&tokens(&["-\u{1b}[2J"]), "p -\\u{1b}[2J", "  ^^^^^^^^^^");
    let error = parse(&tokens(&["-t0\n"]), &mut Scene::default()).expect_err("-t0");
    assert_eq!(error.to_text("p").lines().nth(1), Some("incorrectly provided option: '-t0\\n'"));
}

#[test]
fn a_long_line_is_cut_around_the_mark() {
    let line = format!("{} -t0 {}", "-b4K ".repeat(50), "file ".repeat(50));
    let text = error(&line).to_text("plumb run");
    let shown = text.lines().find(|line| line.contains("-t0 ")).expect("the line");
    assert!(shown.starts_with("  ...") && shown.ends_with("..."), "{shown}");
    assert!(shown.len() < 140, "{shown}");
    let mark = text.lines().find(|line| line.trim() == "^").expect("the mark");
    assert_eq!(shown.find("-t0 ").map(|start| start + 2), mark.find('^'));
}

#[test]
fn bytes_that_are_no_text_are_an_error() {
    for (bytes, class, span) in [
        (&b"-\xff"[..], "unknown-option", 1..4),
        (b"a\xf0\x9f", "no-target", 1..4),
        (b"--threads=\xff", "unknown-option", 10..13),
    ] {
        let tokens = [OsString::from("-t0"), OsString::from_vec(bytes.to_vec())];
        let error = parse(&tokens, &mut Scene::default()).expect_err("no text");
        let place = (error.class.keyword(), error.token_index, error.span.clone());
        assert_eq!(place, (class, Some(1), span));
    }
}

#[test]
fn helps_say_what_to_type() {
    for (line, help) in [
        ("--lateny f", "did you mean --latency?"),
        ("--iodepth=4 f", "did you mean --outstanding?"),
        ("--nothing-like-it f", "--help lists all options"),
        ("-random f", "long names take two dashes: did you mean --random?"),
        ("-threads=4 f", "long names take two dashes: did you mean --threads?"),
        ("-H f", "letters are case sensitive; -h is --disable-all-cache"),
        ("-q f", "--help lists all options"),
        ("-b 4K f", "the value belongs into the same token: -b4K"),
        ("-t 8 f", "the value belongs into the same token: -t8"),
        ("-w 30 -d1 f", "the value belongs into the same token: -w30"),
        ("--random=s50 f", "-rs50 is an option of its own: --random-percent=<pct>"),
        ("--affinity=aE f", "write --affinity=<list>"),
        ("--affinity=E f", "-aE is an option of its own: --affinity-fill-e"),
        (
            "--duration f",
            "name a file or device after the options; 'f' was taken as the value of --duration",
        ),
        ("-t4", "name a file or device after the options"),
    ] {
        assert_eq!(error(line).help, help, "{line}");
    }
}

#[test]
fn every_rule_that_is_broken_is_listed() {
    let error = error("-F4 -t2 -i10 -x -g5 f");
    assert_eq!(error.class.keyword(), "thread-conflict");
    assert_eq!(error.message.lines().count(), 3, "{}", error.message);
    // The mark is under an option of the first of them.
    assert_eq!((error.token.as_deref(), error.token_index), (Some("-t2"), Some(1)));
    assert_eq!(error.exit_code, 3);
}

#[test]
fn json_is_asked_for_anywhere_on_the_line() {
    for line in [
        "--error-format=json -t0 f",
        "-t0 --error-format json f",
        "-t0 --nope --error-format=json f",
        "-q --error-format=text --error-format=json",
    ] {
        let error = error(line);
        assert_eq!(error.format, ErrorFormat::Json, "{line}");
        let object: serde_json::Value =
            serde_json::from_str(&error.render("p")).expect("one JSON object");
        let keys: Vec<_> = object.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["error_class", "help", "message", "token"]);
    }
    // Behind a target it is an option out of order, behind -- it is a target.
    for line in ["f --error-format=json", "-t0 -- --error-format=json", "-t0 f"] {
        assert_eq!(error(line).format, ErrorFormat::Text, "{line}");
    }
}

/// Every rule that options of a line can break together, and the token that is pointed at.
#[test]
fn lines_that_contradict_themselves_have_a_mark() {
    for (line, token) in [
        ("-n -a0 f", "-n"),
        ("-F4 -t2 f", "-t2"),
        ("-i10 f", "-i10"),
        ("-j10 f", "-j10"),
        ("-x -g5 f", "-g5"),
        ("-x -oc4 f", "-oc4"),
        ("-u -x f", "-u"),
        ("-Sm -oc4 f", "-oc4"),
        ("-Nv f", "-Nv"),
        ("-x -Sm f", "-Sm"),
        ("-Sm -h f", "-Sm"),
        ("-Sm --disable-all-cache f", "-Sm"),
        ("-Sy f", "-Sy"),
        ("-SY f", "-SY"),
        ("-SbY f", "-SbY"),
        ("-Suy -w5 f", "-Suy"),
        ("--bypass-io partial f", "--bypass-io"),
        ("-rdpct50/50 f", "-rdpct50/50"),
        ("-rdabs10/1K -r f", "-rdabs10/1K"),
        ("-rdabs60/1G:50/1G -r f", "-rdabs60/1G:50/1G"),
        ("-rdpct60/50:60/50 -r f", "-rdpct60/50:60/50"),
        ("-rdpct60/60:30/60 -r f", "-rdpct60/60:30/60"),
        ("-rdpct100/100:0/5 -r f", "-rdpct100/100:0/5"),
        ("-rdpct100/50 -r f", "-rdpct100/50"),
        ("--random --distribution=pct100/50 f", "--distribution=pct100/50"),
        ("-B2G -f1G f", "-f1G"),
        ("-T1M f", "-T1M"),
        ("-r -T1M -t2 f", "-T1M"),
        ("-r -p f", "-p"),
        ("-si -T1M -t2 f", "-T1M"),
        ("-Z1K f", "-Z1K"),
        ("-o70000 f", "-o70000"),
        ("-F2 -O70000 f", "-O70000"),
        ("-F2 -O2 -g5 f", "-g5"),
    ] {
        let error = error(line);
        assert_eq!(error.token.as_deref(), Some(token), "{line}: {error}");
        let text = error.to_text("p");
        assert!(text.contains(&format!("incorrectly provided option: '{token}'")), "{text}");
        assert!(text.lines().any(|line| line.trim_start().starts_with('^')), "{text}");
        assert_eq!(error.to_json()["token"], token, "{line}");
    }
}

#[test]
fn processors_that_are_not_there_have_a_mark() {
    let topology = Topology::read(&SystemTree::default());
    for (line, class, token) in [
        ("-a0 -a255 -a0 f", "not-online", Some("-a255")),
        ("-ag900 f", "no-group", Some("-ag900")),
        ("--affinity=0,255 f", "not-online", Some("--affinity=0,255")),
        ("--affinity 255 f", "not-online", Some("--affinity")),
    ] {
        let error = workload(line).check_processors(&topology).expect_err(line);
        assert_eq!((error.token.as_deref(), error.exit_code), (token, 3), "{line}: {error}");
        assert_eq!(error.to_json()["error_class"], class, "{line}");
        assert!(error.to_text("p").contains("\nhelp: "), "{line}");
    }
    for line in ["f", "-n f"] {
        assert!(workload(line).check_processors(&topology).is_ok(), "{line}");
    }
}

#[test]
fn conflicts_of_caching_name_what_was_typed() {
    for (line, message) in [
        ("-Shw f", "-S: w conflicts with h before it"),
        ("-Suu f", "-S: u is there twice"),
        ("-h -Sh f", "-S: h conflicts with -h before it"),
        ("-Sh -h f", "-h conflicts with -Sh before it"),
        ("-h -h f", "-h conflicts with -h before it"),
        ("-Suw -Sb f", "-S: b conflicts with -Suw before it"),
        ("-Sw -Suw f", "-S: w conflicts with -Sw before it"),
        ("-Su -Sm f", "-S: m conflicts with -Su before it"),
        ("--disable-all-cache -Sw f", "-S: w conflicts with --disable-all-cache before it"),
        ("--cached -Su f", "-S: u conflicts with --cached before it"),
    ] {
        assert_eq!(error(line).message, message, "{line}");
    }
}
