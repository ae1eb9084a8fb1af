//! `plumb pool`: pools of disks, made, shown, extended, destroyed.

mod disks;
mod settings;

use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_tier::MediaType;
use plumb_tier::pool::{self, DiskWish, Emulated, PoolWish};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use serde_json::json;

use super::space::report::{self, Reply};

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("pool")
        .about("Pools of disks for virtual disks")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(new())
        .subcommand(
            Command::new("list")
                .about("List the pools of this machine")
                .arg(report::json_option())
                .after_help("Exit status: 0, or 3 when nothing can be told of one of them."),
        )
        .subcommand(
            Command::new("show")
                .about("Show pools, their disks and their health; starts and changes nothing")
                .args([report::pool_argument().required(false), report::json_option()])
                .after_help(
                    "Exit status without POOL: 0, or 3 when nothing can be told of one of them.",
                ),
        )
        .subcommand(
            Command::new("add-disk")
                .about("Bring a disk into a pool")
                .args([
                    report::pool_argument(),
                    disk("disk").value_name("DISK").required(true).help("A block device or a file"),
                    media(),
                    destroy("What DISK holds may be lost: its path again"),
                    report::json_option(),
                ])
                .after_help("For example:\n  plumb pool add-disk tank /dev/disk/by-id/nvme-3"),
        )
        .subcommand(settings::command())
        .subcommand(disks::remove_command())
        .subcommand(disks::replace_command())
        .subcommand(
            Command::new("import")
                .about("Find a pool on disks that this machine does not know yet")
                .args([
                    disk("disk").value_name("DISK").num_args(1..).required(true).help("Its disks"),
                    report::json_option(),
                ]),
        )
        .subcommand(
            Command::new("remove")
                .alias("rm")
                .about("Destroy a pool: its disks are free again")
                .args([
                    report::pool_argument(),
                    destroy("What the pool holds may be lost: its name again"),
                    report::json_option(),
                ])
                .after_help("For example:\n  plumb pool remove tank --destroy tank"),
        )
}

pub(crate) use settings::in_words as settings_in_words;

pub(super) fn disk(name: &'static str) -> Arg {
    Arg::new(name).value_parser(value_parser!(PathBuf)).value_hint(ValueHint::AnyPath)
}

pub(super) fn destroy(help: &'static str) -> Arg {
    let argument = Arg::new("destroy").long("destroy").value_name("WHAT").action(ArgAction::Append);
    argument.value_parser(value_parser!(PathBuf)).help(help)
}

pub(super) fn media() -> Arg {
    Arg::new("media")
        .long("media")
        .value_name("MEDIA")
        .value_parser(["ssd", "hdd"])
        .help("What it is, if not what the kernel says")
}

fn new() -> Command {
    let of_media = |name: &'static str, help: &'static str| {
        disk(name).long(name).value_name("DISK").action(ArgAction::Append).help(help)
    };
    Command::new("new")
        .about("Make a pool of disks")
        .long_about(
            "Make a pool of block devices or files. A disk that holds anything recognisable, or that \
             somebody uses, is not taken; what may be lost is named with --destroy. Disks are opened so \
             that no other program can write to them.",
        )
        .args([
            report::new_name("pool", "POOL", "Its name"),
            disk("disk").value_name("DISK").num_args(0..).help("Disks whose kind the kernel knows"),
            of_media("ssd", "A solid-state disk"),
            of_media("hdd", "A rotating disk"),
            Arg::new("file-size")
                .long("file-size")
                .value_name("SIZE")
                .value_parser(report::size)
                .help("Make files of that size for disks that do not exist"),
            Arg::new("slab")
                .long("slab")
                .value_name("SIZE")
                .value_parser(report::size)
                .help("What space is given out in, 16M to 1G [default: by the smallest disk]"),
            Arg::new("emulate")
                .long("emulate")
                .value_name("MODEL")
                .value_parser(Emulated::ALL.map(Emulated::name))
                .action(ArgAction::Append)
                .help("Slow its disks of a kind down to that model, whenever this machine uses it"),
            destroy("What this disk holds may be lost: its path again"),
            report::json_option(),
        ])
        .after_help(
            "For example:\n  plumb pool new tank /dev/nvme1n1 /dev/nvme2n1\n  \
             plumb pool new demo --file-size 2G --ssd a.img --ssd b.img --hdd c.img --hdd d.img\n  \
             plumb pool new slow --file-size 2G --ssd a.img --hdd b.img --emulate sas-ssd-200 --emulate sas-10k-300",
        )
}

/// Does what the subcommand says.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap requires one");
    let reply = match name {
        "new" => make(matches),
        "list" => list(),
        "show" => show(matches),
        "set" => settings::run(matches),
        "add-disk" => add_disk(matches),
        "remove-disk" => disks::remove(matches),
        "replace-disk" => disks::replace(matches),
        "import" => import(matches),
        "remove" => remove(matches),
        other => unreachable!("clap let {other} pass"),
    };
    report::print(reply, matches.get_flag("json"))
}

fn make(matches: &ArgMatches) -> report::Outcome {
    let many = |name: &str| matches.get_many::<PathBuf>(name).into_iter().flatten().cloned();
    let named: Vec<PathBuf> = many("destroy").collect();
    let wish = |media: Option<MediaType>| {
        let named = named.clone();
        move |path: PathBuf| DiskWish { destroy: named.contains(&path), path, media }
    };
    let disks = many("disk")
        .map(wish(None))
        .chain(many("ssd").map(wish(Some(MediaType::Ssd))))
        .chain(many("hdd").map(wish(Some(MediaType::Hdd))));
    let disks: Vec<DiskWish> = disks.collect();
    let registry = report::registry();
    let name = report::text(matches, "pool");
    // What cannot be is known before a file is made for it.
    if registry.has(&name)? {
        return Err(pool::RegistryError::Exists { name }.into());
    }
    let made = match matches.get_one::<u64>("file-size") {
        Some(&bytes) => make_files(&disks, bytes)?,
        None => Vec::new(),
    };
    let models = matches.get_many::<String>("emulate").into_iter().flatten();
    let emulated = models.filter_map(|name| Emulated::named(name)).collect();
    let slab_bytes = matches.get_one("slab").copied();
    let wish = PoolWish { name, disks, slab_bytes, emulated };
    match pool::make(&registry, &wish) {
        Ok(pool) => report::pool(&registry, &pool),
        Err(error) => {
            for path in made {
                // Best effort: the error that led here is the one to report.
                let _ = std::fs::remove_file(path);
            }
            Err(error.into())
        }
    }
}

/// Makes files where there is nothing; which ones.
fn make_files(disks: &[DiskWish], bytes: u64) -> Result<Vec<PathBuf>, report::Failure> {
    let mut made: Vec<PathBuf> = Vec::new();
    for disk in disks.iter().filter(|disk| !disk.path.exists()) {
        match make_file(&disk.path, bytes) {
            Ok(()) => made.push(disk.path.clone()),
            Err(source) => {
                // Best effort: the error that led here is the one to report.
                made.iter().for_each(|path| drop(std::fs::remove_file(path)));
                return Err(report::FileError { path: disk.path.clone(), source }.into());
            }
        }
    }
    Ok(made)
}

/// Makes a file of `bytes` that has its size from the moment that it has its name, so that a program that is killed
/// leaves none that is empty. Where the file system has no files without names (`O_TMPFILE`) it is empty for a moment.
fn make_file(path: &Path, bytes: u64) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let nameless = rustix::fs::open(folder.unwrap_or(Path::new(".")), flags, Mode::from(0o666));
    if let Ok(nameless) = nameless {
        rustix::fs::ftruncate(&nameless, bytes)?;
        let of_process = format!("/proc/self/fd/{}", nameless.as_raw_fd());
        let named =
            rustix::fs::linkat(CWD, of_process.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW);
        match named {
            // No /proc, or links are not to be had.
            Err(Errno::NOENT | Errno::XDEV | Errno::PERM | Errno::OPNOTSUPP) => {}
            other => return Ok(other?),
        }
    }
    let file = std::fs::File::create_new(path)?;
    file.set_len(bytes).inspect_err(|_| drop(std::fs::remove_file(path)))
}

fn list() -> report::Outcome {
    let registry = report::registry();
    let names = registry.names()?;
    let (replies, status) =
        report::of_all(&registry, &names, |found| report::pool(&registry, found));
    let mut text = String::new();
    for (name, reply) in &replies {
        let health = reply.json["health"].as_str().unwrap_or("");
        let why = ["error", "cause"].iter().find_map(|key| reply.json[*key].as_str());
        let why = why.map(|why| format!(": {why}"));
        text.push_str(&format!("{name}: {health}{}\n", why.unwrap_or_default()));
    }
    if names.is_empty() {
        text.push_str("no pools; `plumb pool new` makes one\n");
    }
    let pools: Vec<_> = replies.into_iter().map(|(_, reply)| reply.json).collect();
    Ok(Reply { json: json!({ "pools": pools }), text, status })
}

fn show(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    if let Some(name) = matches.get_one::<String>("pool") {
        return report::pool(&registry, &registry.find(name)?);
    }
    let names = registry.names()?;
    let (replies, status) =
        report::of_all(&registry, &names, |found| report::pool(&registry, found));
    let text: Vec<String> = replies.iter().map(|(_, reply)| reply.text.clone()).collect();
    let pools: Vec<_> = replies.into_iter().map(|(_, reply)| reply.json).collect();
    Ok(Reply { json: json!({ "pools": pools }), text: text.join("\n"), status })
}

fn add_disk(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let found = registry.find(&report::text(matches, "pool"))?;
    pool::add_disk(&registry, &found, &wish(matches, "disk"))?;
    report::pool(&registry, &registry.find(&found.name)?)
}

/// The disk that an argument names, with what is said about it.
pub(super) fn wish(matches: &ArgMatches, name: &str) -> DiskWish {
    let path = matches.get_one::<PathBuf>(name).expect("clap requires it").clone();
    let named = matches.get_many::<PathBuf>("destroy").into_iter().flatten().any(|it| *it == path);
    let media = matches.get_one::<String>("media").map(|media| match media.as_str() {
        "hdd" => MediaType::Hdd,
        _ => MediaType::Ssd,
    });
    DiskWish { path, media, destroy: named }
}

fn import(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let disks = matches.get_many::<PathBuf>("disk").into_iter().flatten();
    let disks = disks.map(std::path::absolute).collect::<Result<Vec<_>, _>>();
    let disks = disks.map_err(|source| report::FileError { path: PathBuf::new(), source })?;
    let found = pool::import(&registry, disks)?;
    let mut reply = report::pool(&registry, &found)?;
    let look = pool::look(Some(found.id), &found.disks)?;
    let store = pool::TieringStore::of(&registry, &found);
    let tiered = look.config.vdisks.iter().filter(|own| !own.is_removed() && own.tiers.len() > 1);
    let without: Vec<&str> =
        tiered.filter(|own| !store.knows(own.id)).map(|own| own.name.as_str()).collect();
    if !without.is_empty() {
        reply.text.push_str(&format!(
            "  pins, heat and reports stay on the machine where they were made: here {} begins without them\n",
            without.join(", ")
        ));
    }
    reply.json["without_pins_and_heat"] = json!(without);
    Ok(reply)
}

fn remove(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let found = registry.find(&report::text(matches, "pool"))?;
    let named = matches.get_many::<PathBuf>("destroy").into_iter().flatten();
    let sure = named.map(PathBuf::as_path).any(|it| it == std::path::Path::new(&found.name));
    let away = pool::destroy(&registry, &found, sure)?;
    let mut text = format!("pool {} is gone\n", found.name);
    for disk in &away {
        text.push_str(&format!(
            "disk {} was not reached, or holds nothing of that pool: if it does, it still says that it belongs to it\n",
            disk.display()
        ));
    }
    let away: Vec<String> = away.iter().map(|path| path.display().to_string()).collect();
    Ok(Reply { json: json!({ "removed": found.name, "not_reached": away }), text, status: 0 })
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_file_for_a_disk_is_never_seen_without_its_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("disk.img");
        let (over, seen) = (AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|threads| {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    if std::fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
                        seen.store(true, Ordering::Relaxed);
                    }
                }
            });
            for _ in 0..3_000 {
                make_file(&path, 1 << 20).expect("it can be made");
                std::fs::remove_file(&path).expect("it is there");
            }
            over.store(true, Ordering::Relaxed);
        });
        assert!(!seen.load(Ordering::Relaxed), "a killed program would leave an empty file");
        make_file(&path, 4096).expect("it can be made");
        let again = make_file(&path, 8192).map_err(|error| error.kind());
        assert_eq!(again, Err(ErrorKind::AlreadyExists));
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), 4096);
    }
}
