//! What `cargo xtask bench` was asked for.

use std::path::PathBuf;

use super::target::Kind;

pub(super) const USAGE: &str = "\
usage: cargo xtask bench [options]

  --targets LIST    of null,nop,nop-file,cached,loop,ext4 (default: all)
  --depths LIST     queue depths (default: 1,4,32,128)
  --repeats N       interleaved runs of each tool, at least 7 (default: 7)
  --seconds N       length of a run (default: 2)
  --decide N        instead of tables: of each goal pairs of ours and its peer until their interval leaves the goal to one side,
                    for N seconds at most
  --plumb FILE      a binary of ours to measure instead of this tree's release build
  --previous REV    also measure ourselves as of that commit
  --fio FILE        fio, unless it is on PATH
  --tio FILE        fio's t/io_uring; without it those rows are skipped
  --folder DIR      where the files are put (default: target/xtask/bench)
  --json FILE       writes every sample
";

/// Fewest repeats of which a ratio is said.
const REPEATS_MIN: usize = 7;

#[derive(Debug, PartialEq)]
pub(super) struct Options {
    pub(super) targets: Vec<Kind>,
    pub(super) depths: Vec<u32>,
    pub(super) repeats: usize,
    pub(super) seconds: u32,
    /// How long each goal may take, in seconds.
    pub(super) decide: Option<u64>,
    pub(super) plumb: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) fio: Option<String>,
    pub(super) tio: Option<String>,
    pub(super) folder: Option<PathBuf>,
    pub(super) json: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// What was not understood.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut options = Self {
            targets: Kind::ALL.to_vec(),
            depths: vec![1, 4, 32, 128],
            repeats: REPEATS_MIN,
            seconds: 2,
            decide: None,
            plumb: None,
            previous: None,
            fio: None,
            tio: None,
            folder: None,
            json: None,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("`{}` needs a value\n\n{USAGE}", pair[0]));
            };
            options.set(name, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let text = || Some(value.to_owned());
        let bad = |what: &str| format!("{name} {value}: {what}");
        match name {
            "--targets" => {
                let kind =
                    |name| Kind::named(name).ok_or(bad("of null,nop,nop-file,cached,loop,ext4"));
                self.targets = value.split(',').map(kind).collect::<Result<_, _>>()?;
            }
            "--depths" => {
                let depth = |depth: &str| match depth.parse() {
                    Ok(depth @ 1..) => Ok(depth),
                    _ => Err(bad("numbers from 1 on, with commas between")),
                };
                self.depths = value.split(',').map(depth).collect::<Result<_, _>>()?;
            }
            "--repeats" => match value.parse() {
                Ok(repeats @ REPEATS_MIN..) => self.repeats = repeats,
                _ => return Err(bad("at least 7: fewer say nothing about the spread")),
            },
            "--seconds" => match value.parse() {
                Ok(seconds @ 1..) => self.seconds = seconds,
                _ => return Err(bad("a number from 1 on")),
            },
            "--decide" => match value.parse() {
                Ok(seconds @ 1..) => self.decide = Some(seconds),
                _ => return Err(bad("seconds, from 1 on")),
            },
            "--plumb" => self.plumb = text(),
            "--previous" => self.previous = text(),
            "--fio" => self.fio = text(),
            "--tio" => self.tio = text(),
            "--folder" => self.folder = Some(value.into()),
            "--json" => self.json = Some(value.into()),
            _ => return Err(format!("`{name}` is no option\n\n{USAGE}")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, want: Result<(usize, &[u32], &[Kind]), &str>) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (Options::parse(&words), want) {
            (Ok(got), Ok((repeats, depths, targets))) => {
                assert_eq!((got.repeats, &*got.depths, &*got.targets), (repeats, depths, targets));
            }
            (Err(got), Err(want)) => assert!(got.starts_with(want), "{got}"),
            (got, want) => panic!("{line}: {got:?}, not {want:?}"),
        }
    }

    #[test]
    fn options_are_understood_or_refused() {
        check("", Ok((7, &[1, 4, 32, 128], &Kind::ALL)));
        check("--repeats 9 --depths 4 --targets nop,loop", Ok((9, &[4], &[Kind::Nop, Kind::Loop])));
        check("--repeats 5", Err("--repeats 5: at least 7"));
        check("--decide 0", Err("--decide 0: "));
        check("--decide 240 --depths 32", Ok((7, &[32], &Kind::ALL)));
        check("--depths 0", Err("--depths 0: "));
        check("--targets disk", Err("--targets disk: "));
        check("--json", Err("`--json` needs a value"));
        check("--fast 1", Err("`--fast` is no option"));
    }
}
