//! The set `cmdline`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::PathBuf;

use plumb_load::profile::flags::{
    CommandLineError, Invocation, Parsed, Surroundings, fuzz_command_line, parse,
};
use plumb_load::profile::json::normalised;
use plumb_load::profile::model::ResultFormat;
use serde_json::Value;

use super::report::{Set, folder};

/// Profiles are read from the folder of the cases; every event exists.
struct CaseFolder(PathBuf);

impl Surroundings for CaseFolder {
    fn create_event(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn signal_event(&mut self, _name: &str) -> io::Result<()> {
        Ok(())
    }

    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>> {
        fs::read(self.0.join(path))
    }

    fn uptime_millis(&mut self) -> u64 {
        0
    }
}

fn cases() -> Vec<Value> {
    let path = folder().join("cmdline.jsonl");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a case is a JSON object")).collect()
}

fn arguments(case: &Value) -> Vec<OsString> {
    let args = case["args"].as_array().expect("args is a list");
    args.iter().map(|arg| arg.as_str().expect("an argument is a string").into()).collect()
}

#[test]
fn command_lines_read_as_in_the_cases() {
    let mut set = Set::new("cmdline");
    for case in cases() {
        let id = case["id"].as_str().expect("a case has an id");
        let parsed = parse(&arguments(&case), &mut CaseFolder(folder()));
        set.case(id, judge(&case, parsed));
    }
    set.finish();
}

fn judge(case: &Value, parsed: Result<Parsed, CommandLineError>) -> Result<(), String> {
    match parsed {
        Err(error) => {
            let class = case["error_class"].as_str();
            same("error class", Some(error.class.keyword()), class)
                .and_then(|()| exits_with(case, error.exit_code, false))
                .map_err(|reason| format!("{reason} ({error})"))
        }
        Ok(Parsed::Run(invocation)) => run(case, &invocation),
        Ok(Parsed::Usage { exit_code }) => {
            same("action", Some("usage"), case["action"].as_str())?;
            exits_with(case, exit_code, exit_code == 0)
        }
        Ok(Parsed::Version) => {
            same("action", Some("version"), case["action"].as_str())?;
            exits_with(case, 0, true)
        }
        Ok(Parsed::SystemInfo(format)) => {
            let format = match format {
                ResultFormat::Text => "text",
                ResultFormat::Xml => "xml",
            };
            same("action", Some("system-info"), case["action"].as_str())?;
            same("format", Some(format), case["format"].as_str())?;
            exits_with(case, 0, true)
        }
        Ok(Parsed::SignalledEvent { .. }) => {
            same("action", Some("signal-event"), case["action"].as_str())?;
            exits_with(case, 1, false)
        }
    }
}

fn same(what: &str, got: Option<&str>, want: Option<&str>) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{what} {got:?}, not {want:?}")) }
}

fn exits_with(case: &Value, code: u8, ok: bool) -> Result<(), String> {
    if case["ok"] != ok {
        return Err(format!("ok is {ok}, not {}", case["ok"]));
    }
    match case["exit_code"].as_u64() {
        Some(want) if want == u64::from(code) => Ok(()),
        want => Err(format!("exit code {code}, not {want:?}")),
    }
}

fn run(case: &Value, invocation: &Invocation) -> Result<(), String> {
    if case["ok"] != true || case["profile"].is_null() {
        let want = [&case["error_class"], &case["action"]].map(Value::to_string).join(" ");
        return Err(format!("accepted, but expected was {want}"));
    }
    let profile = normalised(&invocation.profile);
    match case["pins"].as_str() {
        Some("full") => full(&profile, &case["profile"])?,
        Some("listed") => listed(&profile, &case["profile"], "profile")?,
        other => return Err(format!("unknown pins {other:?}")),
    }
    warnings(case, &invocation.warnings)
}

fn full(got: &Value, want: &Value) -> Result<(), String> {
    listed(got, want, "profile")?;
    if got == want { Ok(()) } else { Err(format!("more keys than expected: {got}")) }
}

/// Objects match if every listed key does; lists have equal length and match element by element.
fn listed(got: &Value, want: &Value, place: &str) -> Result<(), String> {
    match (got, want) {
        (Value::Object(got), Value::Object(want)) => want.iter().try_for_each(|(key, want)| {
            let place = format!("{place}.{key}");
            listed(got.get(key).ok_or(format!("{place} is missing"))?, want, &place)
        }),
        (Value::Array(got), Value::Array(want)) if got.len() == want.len() => {
            let mut pairs = got.iter().zip(want).enumerate();
            pairs.try_for_each(|(n, (got, want))| listed(got, want, &format!("{place}[{n}]")))
        }
        _ if got == want => Ok(()),
        _ => Err(format!("{place} is {got}, not {want}")),
    }
}

/// The cases' words for a warning, and a part of ours by which it is known.
const WARNINGS: [(&str, &str); 5] = [
    ("several threads without -T or -si: pattern is not sequential", "several threads without"),
    ("typographic dash read as -", "typographic dash"),
    ("-si is ignored with a single thread", "-si is ignored"),
    ("-p has no effect with -o1", "-p has no effect"),
    ("-l takes precedence over -bsp for the IO buffers", "-l takes precedence over -bsp"),
];

/// Warnings of the kinds that the cases know must be just the listed ones, one line each.
fn warnings(case: &Value, got: &[String]) -> Result<(), String> {
    let listed = case["warnings"].as_array().map_or(&[][..], Vec::as_slice);
    for gist in listed {
        if !WARNINGS.iter().any(|(known, _)| gist == known) {
            return Err(format!("unknown warning {gist}"));
        }
    }
    for (gist, part) in WARNINGS {
        let count = got.iter().filter(|warning| warning.contains(part)).count();
        let want = listed.iter().filter(|listed| *listed == gist).count();
        if count != want {
            return Err(format!("{count} warnings '{gist}', not {want}: {got:?}"));
        }
    }
    Ok(())
}

/// Marsaglia's xorshift: enough to mutate with, and the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let limit = u64::try_from(limit).expect("a length");
        usize::try_from(self.0 % limit).expect("below a length")
    }

    fn choice<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// What is put between the bytes of a token.
const SPLINTERS: [&[u8]; 22] = [
    b"-",
    b"--",
    b"=",
    b",",
    b":",
    b"/",
    b"g",
    b"i",
    b"p",
    b"99999999999999999999",
    b"-1",
    b"0",
    b"4294967296",
    b"\xe2\x80\x93",
    b"\xe2\x80\x94",
    b"\xff",
    b"\xf0\x9f\x92\xbe",
    b"e\xcc\x81",
    b" ",
    b"\n",
    b"\x1b[2J",
    b"K",
];

#[test]
fn mutated_command_lines_never_panic() {
    let lines: Vec<Vec<Vec<u8>>> = cases()
        .iter()
        .map(|case| arguments(case).into_iter().map(OsString::into_encoded_bytes).collect())
        .collect();
    let tokens: Vec<&Vec<u8>> = lines.iter().flatten().collect();
    let mut random = Random(0x5eed_0f91);
    for round in 0..20_000 {
        let mut line = random.choice(&lines).clone();
        for _ in 0..=random.below(3) {
            mutate(&mut line, &tokens, &mut random);
        }
        let bytes = line.join(&0);
        let outcome = std::panic::catch_unwind(|| fuzz_command_line(&bytes));
        assert!(outcome.is_ok(), "round {round}: {:?}", String::from_utf8_lossy(&bytes));
    }
}

fn mutate(line: &mut Vec<Vec<u8>>, tokens: &[&Vec<u8>], random: &mut Random) {
    let place = random.below(line.len() + 1);
    match random.below(8) {
        0 => line.insert(place, (*random.choice(tokens)).clone()),
        1 if place < line.len() => drop(line.remove(place)),
        2 if place < line.len() => line.insert(place, line[place].clone()),
        3 if place < line.len() => line.swap(0, place),
        4 => line.insert(place, random.choice(&SPLINTERS).to_vec()),
        _ if place < line.len() => bytes(&mut line[place], random),
        _ => {}
    }
}

fn bytes(token: &mut Vec<u8>, random: &mut Random) {
    let place = random.below(token.len() + 1);
    match random.below(4) {
        0 if place < token.len() => token[place] ^= 1 << random.below(8),
        1 => token.truncate(place),
        2 if place < token.len() => drop(token.remove(place)),
        _ => drop(token.splice(place..place, random.choice(&SPLINTERS).iter().copied())),
    }
    // A zero byte separates tokens and is in none.
    token.retain(|byte| *byte != 0);
}
