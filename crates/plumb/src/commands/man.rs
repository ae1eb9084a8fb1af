//! `plumb man`: the manual pages.

mod load_page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use clap_mangen::Man;

use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let page = Arg::new("page")
        .value_name("PAGE")
        .help("Which page to print: plumb, plumb-run, ... [default: plumb]");
    let folder = Arg::new("dir")
        .long("dir")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .conflicts_with("page")
        .help("Write every page into a folder instead");
    Command::new("man").about("Print the manual pages").args([page, folder]).after_help(
        "For example:\n  plumb man plumb-run | man -l -\n  plumb man --dir /usr/local/share/man/man1",
    )
}

/// A manual page.
struct Page {
    /// Without the section.
    name: String,
    roff: Vec<u8>,
}

/// Prints one page or writes them all.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let outcome = match matches.get_one::<PathBuf>("dir") {
        Some(folder) => write_all(folder),
        None => {
            let name = matches.get_one::<String>("page").map_or("plumb", String::as_str);
            one(name).map(|page| super::print(&String::from_utf8_lossy(&page.roff)))
        }
    };
    outcome.unwrap_or_else(|error| {
        Printer::on_stderr().error(&error);
        ExitCode::FAILURE
    })
}

fn one(name: &str) -> Result<Page, ManError> {
    let pages = pages();
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    let remedy = format!("the pages are {}", names.join(", "));
    let found = pages.into_iter().find(|page| {
        page.name == name || page.name.strip_prefix("plumb-").is_some_and(|short| short == name)
    });
    found.ok_or_else(|| ManError::NoPage { name: name.to_owned(), remedy })
}

fn write_all(folder: &Path) -> Result<ExitCode, ManError> {
    let failed = |path: PathBuf| move |source| ManError::Write { path, source };
    fs::create_dir_all(folder).map_err(failed(folder.to_owned()))?;
    for page in pages() {
        let path = folder.join(format!("{}.1", page.name));
        fs::write(&path, &page.roff).map_err(failed(path))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every page: plumb, its commands, and DISKSPD's name for `run`.
fn pages() -> Vec<Page> {
    let mut plumb = super::command();
    plumb.build();
    let mut pages = vec![page("plumb".to_owned(), plumb.clone())];
    for subcommand in plumb.get_subcommands() {
        let name = format!("plumb-{}", subcommand.get_name());
        pages.push(match subcommand.get_name() {
            "run" => Page { name: name.clone(), roff: load_page::roff().into_bytes() },
            "diskspd" => Page { name: name.clone(), roff: b".so man1/plumb-run.1\n".to_vec() },
            _ => page(name.clone(), subcommand.clone()),
        });
        for inner in subcommand.get_subcommands() {
            pages.push(page(format!("{name}-{}", inner.get_name()), inner.clone()));
        }
    }
    pages.push(Page { name: "diskspd".to_owned(), roff: b".so man1/plumb-run.1\n".to_vec() });
    pages
}

fn page(name: String, command: Command) -> Page {
    let mut roff = Vec::new();
    let rendered = Man::new(command).title(name.to_uppercase()).render(&mut roff);
    rendered.expect("writing to memory works");
    Page { name, roff }
}

/// Why there is no page.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum ManError {
    #[error("there is no manual page `{name}`")]
    #[diagnostic(code(plumb::man::no_page))]
    NoPage {
        name: String,
        #[help]
        remedy: String,
    },
    #[error("cannot write {}", path.display())]
    #[diagnostic(
        code(plumb::man::write),
        help("name a folder that you may write to: --dir FOLDER")
    )]
    Write { path: PathBuf, source: io::Error },
}
