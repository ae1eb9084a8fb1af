//! The page: one file, no network, readable on paper and by a screen reader, with and without script.

use std::fmt::Write as _;

use super::chart::{self, Layer};
use super::page::{Block, Data, Headline, Plot, Report, Section, Table, Tile};

const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");
const UPLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../../assets/uplot/LICENSE");

/// Rows of a table that are shown before it is unfolded.
const ROWS_SHOWN: usize = 60;

/// The whole file.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut page = Page { out: String::new(), lives: Vec::new() };
    let title = escape(&report.title);
    page.add(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <script>document.documentElement.classList.add(\"opening\");</script>\n\
         <style>\n{UPLOT_STYLE}\n{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#findings\">Skip to the findings</a>\n<header>\n<p class=\"brand\">Plumb</p>\n\
         <h1>{title}</h1>\n</header>\n<main>\n"
    ));
    page.tiles(&report.tiles);
    page.findings(&report.findings);
    page.facts(&report.facts);
    page.contents(&report.sections);
    for section in &report.sections {
        page.section(section);
    }
    page.add("</main>\n<footer>\n<p>Plots are drawn by Plumb; with script also by uPlot, so that they can be zoomed: drag to zoom, double-click to go back.</p>\n");
    page.add(&format!(
        "<details><summary>Licence of uPlot</summary><pre>{}</pre></details>\n</footer>\n",
        escape(UPLOT_LICENCE)
    ));
    let lives = serde_json::to_string(&page.lives).expect("numbers are JSON").replace("</", "<\\/");
    page.add(&format!(
        "<script type=\"application/json\" id=\"live\">{lives}</script>\n<script>{UPLOT}</script>\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n"
    ));
    page.out
}

/// Text as it stands in HTML and in attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Control characters have no place in a page.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

struct Page {
    out: String,
    lives: Vec<serde_json::Value>,
}

impl Page {
    fn add(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn tiles(&mut self, tiles: &[Tile]) {
        if tiles.is_empty() {
            return;
        }
        self.add("<ul class=\"tiles\" aria-label=\"Key figures\">\n");
        for tile in tiles {
            let [name, value, note, link] =
                [&tile.name, &tile.value, &tile.note, &tile.link].map(|text| escape(text));
            self.add(&format!(
                "<li><a href=\"#{link}\"><span class=\"name\">{name}</span> <strong>{value}</strong> \
                 <span class=\"note\">{note}</span></a></li>\n"
            ));
        }
        self.add("</ul>\n");
    }

    fn findings(&mut self, findings: &[Headline]) {
        self.add("<section id=\"findings\" aria-labelledby=\"findings-title\">\n<h2 id=\"findings-title\">Findings</h2>\n");
        if findings.is_empty() {
            self.add("<p>Nothing could be found.</p>\n");
        } else {
            self.add("<ul class=\"findings\">\n");
            for finding in findings {
                let word = finding.tone.word();
                let class = if word.is_empty() { "plain".to_owned() } else { word.to_lowercase() };
                let word = match word {
                    "" => String::new(),
                    word => format!("<strong class=\"word\">{word}</strong> "),
                };
                let links: Vec<String> = finding
                    .evidence
                    .iter()
                    .map(|(words, id)| format!("<a href=\"#{}\">{}</a>", escape(id), escape(words)))
                    .collect();
                let text = escape(&finding.text);
                let links = links.join(", ");
                self.add(&format!(
                    "<li class=\"{class}\">{word}{text} <span class=\"evidence\">({links})</span></li>\n"
                ));
            }
            self.add("</ul>\n");
        }
        self.add("</section>\n");
    }

    fn facts(&mut self, facts: &[(String, String)]) {
        if facts.is_empty() {
            return;
        }
        self.add("<section aria-labelledby=\"facts-title\">\n<h2 id=\"facts-title\">What was measured</h2>\n<dl class=\"facts\">\n");
        for (name, value) in facts {
            self.add(&format!("<div><dt>{}</dt><dd>{}</dd></div>\n", escape(name), escape(value)));
        }
        self.add("</dl>\n</section>\n");
    }

    fn contents(&mut self, sections: &[Section]) {
        if sections.len() < 2 {
            return;
        }
        self.add("<nav aria-label=\"Contents\">\n<ul>\n");
        for section in sections {
            let line = format!(
                "<li><a href=\"#{}\">{}</a></li>\n",
                escape(&section.id),
                escape(&section.title)
            );
            self.add(&line);
        }
        self.add("</ul>\n</nav>\n");
    }

    fn section(&mut self, section: &Section) {
        let (id, title) = (escape(&section.id), escape(&section.title));
        self.add(&format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{title}</h2>\n"
        ));
        for block in &section.blocks {
            match block {
                Block::Paragraph(text) => self.add(&format!("<p>{}</p>\n", escape(text))),
                Block::List(lines) => {
                    let items: String =
                        lines.iter().map(|line| format!("<li>{}</li>\n", escape(line))).collect();
                    self.add(&format!("<ul class=\"notes\">\n{items}</ul>\n"));
                }
                Block::Plot(plot) => self.plot(plot),
                Block::Table(table) => self.table(table),
                Block::Folded { id, heading, text } => {
                    let id = match id.as_str() {
                        "" => String::new(),
                        id => format!(" id=\"{}\"", escape(id)),
                    };
                    self.add(&format!(
                        "<details{id}><summary>{}</summary><pre>{}</pre></details>\n",
                        escape(heading),
                        escape(text)
                    ));
                }
            }
        }
        self.add("</section>\n");
    }

    fn plot(&mut self, plot: &Plot) {
        let (id, title) = (escape(&plot.id), escape(&plot.title));
        let sentence = escape(&plot.sentence);
        let drawing = chart::svg(&plot.chart, &format!("{}. {}", plot.title, plot.sentence));
        self.add(&format!(
            "<figure id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h3 id=\"{id}-title\">{title}</h3>\n\
             <figcaption>{sentence}</figcaption>\n"
        ));
        self.legend(plot);
        self.add(&format!("<div class=\"still\" tabindex=\"0\" role=\"group\" aria-label=\"{title}\">{drawing}</div>\n"));
        if let Some(mut live) = chart::live(&plot.chart) {
            live["id"] = plot.id.clone().into();
            self.lives.push(live);
        }
        let csv = escape(&plot.data.csv());
        self.add(&format!(
            "<details class=\"data\"><summary>Data of this plot, CSV</summary>\
             <pre class=\"csv\" data-name=\"{id}.csv\">{csv}</pre></details>\n</figure>\n"
        ));
    }

    fn legend(&mut self, plot: &Plot) {
        let mut items = String::new();
        for layer in &plot.chart.layers {
            let (name, tone, kind) = match layer {
                Layer::Line { name, tone, .. } => (name, *tone, "line"),
                Layer::Dots { name, tone, .. } => (name, *tone, "dots"),
                Layer::Between { name, tone, .. } | Layer::Strip { name, tone, .. } => {
                    (name, *tone, "area")
                }
                Layer::Cells { name, .. } => (name, 1, "area"),
                Layer::Bars { parts, .. } => {
                    for (name, tone) in parts {
                        let name = escape(name);
                        write!(items, "<li class=\"t{tone} area\">{name}</li>")
                            .expect("a string takes it");
                    }
                    continue;
                }
                _ => continue,
            };
            let name = escape(name);
            write!(items, "<li class=\"t{tone} {kind}\">{name}</li>").expect("a string takes it");
        }
        if !items.is_empty() {
            self.add(&format!("<ul class=\"legend\">{items}</ul>\n"));
        }
    }

    fn table(&mut self, table: &Table) {
        let (id, caption) = (escape(&table.id), escape(&table.caption));
        self.add(&format!("<div class=\"table\" id=\"{id}\" tabindex=\"0\" role=\"group\" aria-label=\"{caption}\">\n"));
        let (first, rest) = table.data.rows.split_at(table.data.rows.len().min(ROWS_SHOWN));
        self.rows(&caption, &table.data, first);
        if !rest.is_empty() {
            self.add(&format!("<details><summary>{} more rows</summary>\n", rest.len()));
            self.rows(&format!("{caption}, continued"), &table.data, rest);
            self.add("</details>\n");
        }
        self.add("</div>\n");
    }

    fn rows(&mut self, caption: &str, data: &Data, rows: &[Vec<String>]) {
        let is_number = |text: &String| {
            text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || "–-+(".contains(c))
        };
        let numeric: Vec<bool> = (0..data.columns.len())
            .map(|place| {
                place > 0 && data.rows.iter().all(|row| row.get(place).is_none_or(is_number))
            })
            .collect();
        let class = |place: usize| {
            if numeric.get(place).copied().unwrap_or(false) { " class=\"n\"" } else { "" }
        };
        let heads: String = data
            .columns
            .iter()
            .enumerate()
            .map(|(place, name)| format!("<th scope=\"col\"{}>{}</th>", class(place), escape(name)))
            .collect();
        self.add(&format!(
            "<table><caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
        ));
        for row in rows {
            let mut cells = String::new();
            for (place, text) in row.iter().enumerate() {
                let text = escape(text);
                let cell = match place {
                    0 => format!("<th scope=\"row\">{text}</th>"),
                    _ => format!("<td{}>{text}</td>", class(place)),
                };
                cells.push_str(&cell);
            }
            self.add(&format!("<tr>{cells}</tr>\n"));
        }
        self.add("</tbody></table>\n");
    }
}
