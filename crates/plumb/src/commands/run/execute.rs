//! The run itself: a session with its engine, its observer and its result.

use std::ffi::CString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_io::clock::StampClock;
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::event::EventFolder;
use plumb_io::system_tree::SystemTree;
use plumb_load::profile::flags::{
    EngineChoice, ErrorFormat, Invocation, OnError, OutputFormat, ProgressStyle, RunOptions,
};
use plumb_load::profile::model::{RawProfile, ResultFormat, TimeSpan};
use plumb_load::result::model::RunResult;
use plumb_load::result::verify::VerifyResult;
use plumb_load::result::{json, text, xml};
use plumb_load::session::{self, Overwrite, SessionEnd, SessionOptions, VerifyOptions, wake_up};
use plumb_sys::bus_error::LastWill;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use super::beside::Beside;
use super::console::Console;
use super::events::Events;
use super::keep::Keeper;
use super::outputs::Outputs;
use super::spaces::{SpaceOpener, Spaces};
use crate::commands::{StdoutError, version};
use crate::message::Printer;
use crate::progress::{Progress, Style};

/// Runs the workload and prints its result. `program` is what the report calls the command.
pub(super) fn execute(
    program: &str,
    command_line: String,
    invocation: &Invocation,
    printer: Printer,
) -> ExitCode {
    let options = &invocation.options;
    let is_diskspd = program.ends_with("diskspd");
    end_with_the_study();
    let outputs = match Outputs::open(invocation) {
        Ok(outputs) => outputs,
        Err(error) => {
            printer.error(&error);
            return error.status().into();
        }
    };
    let format = stdout_format(invocation);
    let events = match Events::open(&invocation.profile.synchronization, &EventFolder::of_user()) {
        Ok(events) => events,
        Err(error) => {
            printer.error(&error);
            return ExitCode::FAILURE;
        }
    };
    let tree = SystemTree::default();
    let keeper = match Keeper::open(invocation, &tree) {
        Ok(keeper) => keeper,
        Err(error) => {
            printer.error(&error);
            return ExitCode::FAILURE;
        }
    };
    explain_bus_errors(&invocation.profile, &outputs, printer);
    let signalled = catch_signals(printer);
    let is_signalled = || signalled.load(Ordering::Relaxed);
    // With a document on standard output nothing else is there (D-20).
    let notes: Box<dyn Write> = match format {
        OutputFormat::Text => Box::new(io::stdout()),
        OutputFormat::Xml | OutputFormat::Json => Box::new(io::stderr()),
    };
    let mut console = Console {
        printer,
        progress: Progress::on_stderr(progress_style(options, is_diskspd)),
        notes,
        verbose: invocation.profile.verbose,
        beside: Beside::new(invocation, &tree),
        events: &events,
        signalled: &is_signalled,
        told: false,
    };
    // Both take some time, and each sleeps through most of it.
    let stamps = invocation.profile.time_spans.iter().any(TimeSpan::stamps_latency);
    let sleeper = stamps.then(|| std::thread::spawn(|| wake_up::measure(wake_up::BEFORE)));
    let (clock, _) = StampClock::new();
    let wake_ups = sleeper.and_then(|sleeper| sleeper.join().expect("it only sleeps").ok());
    let named = options.destroy.clone();
    let session_options = SessionOptions {
        command_line,
        tool: version::tool(),
        batch: options.batch,
        open_loop: options.open_loop(),
        truth: options.truth.then_some(clock),
        wake_ups,
        poll: options.poll,
        verify: options.verify.then(|| VerifyOptions { state: options.verify_state.clone() }),
        continue_on_error: options.on_error == OnError::Continue,
        overwrite: if is_diskspd { Overwrite::Files(named) } else { Overwrite::Named(named) },
        opens_no_target: engine(options).has_no_target(),
    };
    // Without targets there is no pool to start.
    let spaces = match session_options.opens_no_target {
        true => Ok(Spaces::default()),
        false => Spaces::open(&invocation.profile, (printer, options.accept_older), &is_signalled),
    };
    let spaces = match spaces {
        Ok(spaces) => spaces,
        Err(failure) => {
            printer.error(failure.diagnostic());
            return failure.status().into();
        }
    };
    let ladder = Ladder::new(engine(options), ladder_options(options));
    let opener = SpaceOpener { ladder, spaces: &spaces };
    let profile = &invocation.profile;
    let mut outcome = session::run(profile, &session_options, &opener, &clock, &tree, &mut console);
    console.progress.clear();
    console.beside.add_to(&mut outcome.result);
    outcome.result.spaces = spaces.end(printer);
    let result = &outcome.result;
    for failure in result.time_spans.iter().flat_map(|span| &span.failures) {
        printer.failure(&failure.class, &failure.text);
    }
    if let SessionEnd::Refused(_) = outcome.end {
        return ExitCode::from(3);
    }
    // Files get the result even if nobody reads standard output.
    let objects = (options.error_format == ErrorFormat::Json).then_some(printer);
    let printed = print(result, format, is_diskspd, objects);
    let written = outputs.write(result);
    let mut is_lost = false;
    if let Err(source) = printed
        && source.kind() != io::ErrorKind::BrokenPipe
    {
        printer.error(&StdoutError { source });
        is_lost = true;
    }
    if let Err(error) = written {
        printer.error(&error);
        is_lost = true;
    }
    match keeper.map(|keeper| keeper.keep(result, &tree)) {
        Some(Ok(id)) => printer.note(&format!("stored as {id}")),
        Some(Err(error)) => {
            printer.error(&error);
            is_lost = true;
        }
        None => {}
    }
    if outcome.end == SessionEnd::Mismatched {
        let verified = result.time_spans.iter().filter_map(|span| span.verify.as_ref());
        for complaint in verified.filter_map(VerifyResult::complaint) {
            printer.failure("mismatch", &complaint);
        }
        return ExitCode::FAILURE;
    }
    if outcome.end == SessionEnd::Failed {
        // DISKSPD's last words; who wants objects has them already.
        if options.error_format == ErrorFormat::Text {
            let gap = if format == OutputFormat::Xml { "\n" } else { "" };
            printer.report(&format!("{gap}Error generating I/O requests"));
        }
        return ExitCode::FAILURE;
    }
    if is_lost { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A run of a study ends with it: a load that nobody waits for would disturb the next.
fn end_with_the_study() {
    let parent = std::env::var(plumb_study::study::PARENT).ok().and_then(|pid| pid.parse().ok());
    let Some(parent) = parent else { return };
    // Where the kernel cannot do it, the run ends by itself.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    if getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        std::process::exit(1);
    }
}

/// Memory mapped targets can end the process at any touch; then it is to say why, and to leave no file that
/// nobody will fill.
fn explain_bus_errors(profile: &RawProfile, outputs: &Outputs, printer: Printer) {
    let targets = profile.time_spans.iter().flat_map(|span| &span.targets);
    let mut mapped: Vec<String> = targets
        .filter(|target| target.memory_mapped)
        .map(|target| format!("'{}'", target.path))
        .collect();
    mapped.dedup();
    if mapped.is_empty() {
        return;
    }
    let text = format!(
        "a memory mapped target (-Sm) cannot be reached any more: {}; there is no result\n\
         help: it was truncated, its file system is full, or its device fails; without -Sm such I/O is \
         counted as failed",
        mapped.join(", ")
    );
    let words = printer.words_of_failure("mapping-lost", &text);
    let file = |path: &Path| CString::new(path.as_os_str().as_bytes()).ok();
    let files = outputs.unfinished().filter_map(file).collect();
    if let Err(errno) = plumb_sys::bus_error::explain(LastWill { words, files }) {
        printer
            .warning(&format!("a mapped target that fails will end the run in silence: {errno}"));
    }
}

/// Ctrl-C, SIGTERM and a terminal that goes away set a flag; the second one does what it would have done without us (spec 6.14).
fn catch_signals(printer: Printer) -> Arc<AtomicBool> {
    let signalled = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let second = flag::register_conditional_default(signal, Arc::clone(&signalled));
        let first = flag::register(signal, Arc::clone(&signalled));
        if let Err(error) = second.and(first) {
            printer.warning(&format!("signal {signal} will end the run without a result: {error}"));
        }
    }
    // The default would end the process without a word; without it the write fails, and says so.
    if let Err(error) = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false))) {
        printer
            .warning(&format!("a limit on the size of files may end the run in silence: {error}"));
    }
    signalled
}

/// Writes a result in one of its formats.
pub(super) fn write(
    result: &RunResult,
    format: OutputFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        OutputFormat::Text => text::write(result, out),
        OutputFormat::Xml => xml::write(result, out),
        OutputFormat::Json => json::write(result, out),
    }
}

/// Prints the result on standard output; as diskspd, what only Plumb knows goes to standard error,
/// as a note if that holds objects.
fn print(
    result: &RunResult,
    format: OutputFormat,
    is_diskspd: bool,
    objects: Option<Printer>,
) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    if is_diskspd && format != OutputFormat::Json {
        match format {
            OutputFormat::Xml => xml::write_diskspd(result, &mut out)?,
            _ => text::write_diskspd(result, &mut out)?,
        }
        out.flush()?;
        let mut own = Vec::new();
        text::open_loop::write(result, &mut own)?;
        text::verify::write(result, &mut own)?;
        text::plausibility::write(result, &mut own)?;
        return match objects {
            Some(printer) => {
                printer.note(String::from_utf8_lossy(&own).trim());
                Ok(())
            }
            None => io::stderr().lock().write_all(&own),
        };
    }
    write(result, format, &mut out)?;
    out.flush()
}

/// What standard output gets: JSON if asked for, else what the profile says.
fn stdout_format(invocation: &Invocation) -> OutputFormat {
    match (invocation.options.json, invocation.profile.result_format) {
        (true, _) => OutputFormat::Json,
        (_, ResultFormat::Xml) => OutputFormat::Xml,
        (_, ResultFormat::Text) => OutputFormat::Text,
    }
}

/// A bar on a terminal, plain lines elsewhere; none unless asked as diskspd, or beside errors for programs.
fn progress_style(options: &RunOptions, is_diskspd: bool) -> Style {
    let asked = options.progress_style;
    if asked == ProgressStyle::Auto && options.error_format == ErrorFormat::Json {
        return Style::Silent;
    }
    match (Style::of(asked), asked) {
        (Style::Silent, ProgressStyle::Auto) if !is_diskspd => Style::Plain,
        (_, ProgressStyle::Auto) if is_diskspd => Style::Silent,
        (style, _) => style,
    }
}

fn ladder_options(options: &RunOptions) -> LadderOptions {
    let mut ladder = LadderOptions::default();
    ladder.uring.poll = options.poll;
    ladder.uring.submit_thread = options.submit_thread;
    ladder
}

fn engine(options: &RunOptions) -> Choice {
    match options.engine {
        EngineChoice::Auto => Choice::Auto,
        EngineChoice::Uring => Choice::Uring,
        EngineChoice::Aio => Choice::Aio,
        EngineChoice::Threads => Choice::Threads,
        EngineChoice::Sync => Choice::Sync,
        EngineChoice::Null => Choice::Null,
        EngineChoice::Nop => Choice::Nop,
        EngineChoice::NopFile => Choice::NopFile,
    }
}
