//! Reports of long studies: how long they take, how large they are, and how they open in a real browser, headless.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use plumb_study::study::{StudyFolder, SweepOptions, Told, sweep_findings};

use crate::spent::{self, Spent};
use crate::sweeps::Bench;

/// Seconds until a report of 500 runs is ready, and of processor time of what its window shows.
const READY_MOST_S: f64 = 1.0;
/// Times that each of them is opened, and made: what is asserted is of the middle one.
const OPENINGS: usize = 5;
const MAKINGS: u32 = 3;
/// Bytes of a report of 500 runs.
const BYTES_MOST: u64 = 3_000_000;
/// Seconds that its analysis may take.
const ANALYSED_MOST_S: f64 = 2.0;
/// Seconds that its report may take.
const REPORTED_MOST_S: f64 = 3.0;
/// The window that most pages are opened in.
const WINDOW: &str = "1440,900";
/// What a drawing is in a document on paper.
const FIGURE: &[u8] = b"/S /Figure";

/// A browser may take this long to open a page on a machine that has much else to do.
const TOLD_MOST: Duration = Duration::from_secs(300);

/// Goes to the page when the browser has started, and that is known here: what that takes is not the page's.
const START: &str = r#"<!doctype html><script>
const go = () => { location = "watched.html"; };
const tell = () => {
  const image = new Image();
  image.onload = image.onerror = go;
  image.src = "http://127.0.0.1:PORT/started";
};
addEventListener("load", () => requestAnimationFrame(() => setTimeout(tell)));
</script>"#;

/// What scripts in [`told_by`] begin with: `ready` waits for the page's own script, `frame` for the next picture.
const WORDS: &str = r#"
const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
const ready = async () => {
  while (!document.documentElement.dataset.ready) await frame();
  return Number(document.documentElement.dataset.ready);
};
const isDrawn = (figure) => figure.querySelector(".uplot") !== null;
"#;

/// When the page was ready, and how many plots were drawn by then.
const OPENING: &str =
    r#"ready().then((ms) => tell(ms, document.querySelectorAll(".uplot").length));"#;

/// Goes to every eighth plot: how many were drawn when they were seen, how many were looked at, how many were drawn
/// before, and how many there are. Then follows a link to the last section: how far from the top of the
/// window that is. Last: how many sections are not laid out, and so unseen by screen readers, after a while.
const SCROLLING: &str = r#"
ready().then(async () => {
  const figures = [...document.querySelectorAll("figure")].filter((figure) => figure.querySelector(".live"));
  const before = figures.filter(isDrawn).length;
  const seen = figures.filter((_, n) => n % 8 === 0);
  for (const figure of seen) {
    figure.scrollIntoView();
    for (let wait = 0; wait < 100 && !isDrawn(figure); wait += 1) await frame();
  }
  const drawn = seen.filter(isDrawn).length;
  const last = [...document.querySelectorAll("main > section")].at(-1);
  location.hash = last.id;
  for (let wait = 0; wait < 20; wait += 1) await frame();
  const opening = () => document.documentElement.classList.contains("opening");
  for (let wait = 0; wait < 1000 && opening(); wait += 1) await frame();
  const left = document.querySelectorAll("main > section:not(.laid)").length;
  tell(drawn, seen.length, before, figures.length, Math.round(last.getBoundingClientRect().top), left);
});
"#;

/// The browser, without a window.
fn chromium(folder: &Path, page: &Path) -> Command {
    let mut command = Command::new("chromium");
    command
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .arg("--disable-dev-shm-usage")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .env("HOME", folder);
    command
}

/// Whether there is a browser; says that `test` is skipped where there is none.
fn is_there(test: &str) -> bool {
    let is_there = Command::new("chromium").arg("--version").output().is_ok();
    if !is_there {
        println!("skipped {test}: no chromium");
    }
    is_there
}

/// What a page told of itself, and what it took the browser.
struct Opening {
    numbers: Vec<f64>,
    /// From the browser's start being over until the page told something; the processor time is that of the thread that
    /// runs the page's scripts, lays it out and says what to paint.
    page: Spent,
    /// Processor time of all threads and processes of the browser meanwhile.
    browser_s: f64,
}

/// Opens a page in real time in a window of that size: `script` is put at its end and calls `tell`.
fn opened(page: &Path, size: &str, script: &str) -> Opening {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let folder = tempfile::tempdir().expect("a folder");
    let [start, watched] = ["start.html", "watched.html"].map(|name| folder.path().join(name));
    let text = fs::read_to_string(page).expect("a page");
    let tell = format!(
        "<script>const tell = (...all) => {{ new Image().src = \"http://127.0.0.1:{port}/\" + all.join(); }};\n\
         {WORDS}{script}</script>\n</body>"
    );
    fs::write(&watched, text.replace("</body>", &tell)).expect("written");
    fs::write(&start, START.replace("PORT", &port.to_string())).expect("written");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let stream = stream.expect("the page calls");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a request");
            sender.send((line, stream)).expect("it is waited for");
        }
    });
    let mut browser = chromium(folder.path(), &start);
    let mut browser =
        browser.arg(format!("--window-size={size}")).spawn().expect("it can be started");
    let opening = watched_until_told(&browser, &receiver);
    browser.kill().expect("it is ours");
    browser.wait().expect("it ends");
    opening.expect("the page tells in time")
}

/// Watches the browser from the call of the page that starts it to that of the page itself.
fn watched_until_told(
    browser: &Child,
    calls: &Receiver<(String, TcpStream)>,
) -> Result<Opening, mpsc::RecvTimeoutError> {
    let look = || spent::below(browser.id(), "--type=renderer");
    let (started, mut stream) = calls.recv_timeout(TOLD_MOST)?;
    assert!(started.starts_with("GET /started"), "{started}");
    let watch = spent::Watch::begun();
    let before = look();
    stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").expect("it waits");
    drop(stream);
    let (line, _stream) = calls.recv_timeout(TOLD_MOST)?;
    let (browser_s, page_s) = spent::added(&before, &look());
    let page = Spent { processor_s: page_s, ..watch.ended(browser_s) };
    let numbers = line.trim_start_matches("GET /").split(' ').next().expect("a path").split(',');
    let number = |number: &str| number.parse().unwrap_or_else(|_| panic!("numbers: {line}"));
    Ok(Opening { numbers: numbers.map(number).collect(), page, browser_s })
}

/// The numbers that a page tells of itself.
fn told_by(page: &Path, size: &str, script: &str) -> Vec<f64> {
    opened(page, size, script).numbers
}

/// The analysis of a finished sweep, from its journal to its findings.
fn analyse(study: &Path) {
    let name = study.file_name().and_then(|name| name.to_str()).expect("a name");
    let folder = StudyFolder::view(study.parent().expect("a folder"), name).expect("a study");
    let plan = folder.plan().expect("a plan");
    let options: SweepOptions = serde_json::from_value(plan.request).expect("a sweep");
    let sweep = options.plan().expect("a plan");
    let runs = folder.runs().expect("runs");
    let told = Told { study: name, runs_exhaustive: plan.runs_exhaustive, ..Told::default() };
    let findings = sweep_findings(&sweep, &runs, told);
    assert!(findings.runs >= 500 && !findings.findings.is_empty());
}

/// The times in the data of a plot over time, which `text` begins with.
fn seconds_of(text: &str) -> Vec<f64> {
    let data = text.split("</pre>").next().expect("it ends");
    let times = data.lines().skip(1).filter_map(|line| line.split(',').next());
    times.map(|time| time.parse().expect("seconds")).collect()
}

/// Checks how long analysis and report of a finished sweep of 500 runs take, and how large the page is; where that is.
fn reported_in_time(bench: &Bench, id: &str) -> PathBuf {
    let journal = fs::read_to_string(bench.study(id).join("journal.ndjson")).expect("runs");
    assert!(journal.lines().count() >= 500, "{} runs", journal.lines().count());
    let analysed = spent::by_thread(MAKINGS, || analyse(&bench.study(id)));
    let reported =
        spent::by_command(MAKINGS, || bench.command(&format!("report {id} -o again.html")));
    // Both and the start of a process, with everything on disk.
    let told = spent::by_command(MAKINGS, || bench.command(&format!("sweep --resume {id}")));
    let page = bench.study(id).join("report.html");
    let bytes = fs::metadata(&page).expect("a page").len();
    println!("{id}: {bytes} bytes");
    analysed.is_within(ANALYSED_MOST_S, "the analysis");
    reported.is_within(REPORTED_MOST_S, "the report");
    told.is_within(ANALYSED_MOST_S + REPORTED_MOST_S, "both");
    assert!(bytes < BYTES_MOST, "{bytes} bytes");
    page
}

/// Checks that a page opens at once; how many plots the script has drawn by then.
fn opens_in_time(page: &Path, size: &str) -> f64 {
    let mut drawn = 0.0;
    let mut openings: Vec<Spent> = Vec::new();
    for _ in 0..OPENINGS {
        let Opening { numbers, page, browser_s } = opened(page, size, OPENING);
        let [ready_ms, plots] = numbers[..] else { panic!("two numbers") };
        drawn = plots;
        let wall_s = ready_ms / 1000.0;
        println!("ready after {wall_s} s: {page:.2?}, the whole browser {browser_s:.2} s");
        openings.push(Spent { wall_s, ..page });
    }
    Spent::median(&openings).is_within(READY_MOST_S, &format!("opening {}", page.display()));
    drawn
}

/// A page on paper.
fn printed(page: &Path) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let paper = folder.path().join("out.pdf");
    let mut browser = chromium(folder.path(), page);
    browser.arg("--no-pdf-header-footer").arg(format!("--print-to-pdf={}", paper.display()));
    assert!(browser.status().expect("it can be started").success());
    let paper = fs::read(paper).expect("it is printed");
    assert!(paper.starts_with(b"%PDF"));
    paper
}

#[test]
fn a_long_report_opens_at_once_in_a_browser() {
    let bench = Bench::with("max-iops = 20000\nlatency-us = 500\n");
    bench
        .call("sweep f --simulate DEVICE --vary o=1..50 --repetitions 10 --full-length --id long")
        .ends_with(0);
    let page = reported_in_time(&bench, "long");
    let text = fs::read_to_string(&page).expect("a page");
    let times: Vec<Vec<f64>> = text.split("-seconds.csv\">").skip(1).map(seconds_of).collect();
    assert!(!times.is_empty() && times.iter().all(|times| times.len() >= 30), "{times:?}");
    for times in &times {
        assert!(times.is_sorted_by(|a, b| a < b) && times[0] > 0.0, "{times:?}");
    }

    assert!(text.contains("The best setting"));
    if is_there("a_long_report_opens_at_once_in_a_browser") {
        assert!(opens_in_time(&page, "1440,12000") > 0.0, "uPlot drew");
        let paper = printed(&page);
        assert!(paper.len() > 20_000, "{} bytes", paper.len());
    }
}

#[test]
fn the_report_of_a_cross_product_is_small_and_made_in_time() {
    // 512 settings, a curve for each 4 of them, and the reference 53 times.
    let bench = Bench::with("max-iops = 60000\nlatency-us = 500\n");
    bench
        .call(
            "sweep f --simulate DEVICE --vary access=random,interlocked --vary w=0,10,25,100 \
             --vary b=4K,8K,64K,512K --vary o=1,4,16,64 --vary t=1,2,4,8 --repetitions 1 --full-length --id cross",
        )
        .ends_with(0);
    let page = reported_in_time(&bench, "cross");
    if !is_there("the_report_of_a_cross_product_is_small_and_made_in_time") {
        return;
    }
    opens_in_time(&page, WINDOW);
    let [drawn, seen, before, all, top, left] = told_by(&page, WINDOW, SCROLLING)[..] else {
        panic!("six numbers")
    };
    assert!(
        all > 100.0 && before < all / 4.0,
        "{before} of {all} were drawn before they were near"
    );
    assert!(drawn >= seen && seen > 10.0, "{drawn} of {seen} were drawn when they were seen");
    assert!((0.0..60.0).contains(&top), "a link leads {top} px from the top");
    assert!(left < 0.5, "{left} sections are not laid out");

    // Each drawing is a figure of the document on paper, and its strokes take place.
    let paper = printed(&page);
    let text = fs::read_to_string(&page).expect("a page");
    let figures = paper.windows(FIGURE.len()).filter(|bytes| *bytes == FIGURE).count();
    assert!(figures >= text.matches("<svg ").count(), "{figures} on paper");
    assert!(paper.len() > 2 * text.len(), "{} bytes", paper.len());
}
