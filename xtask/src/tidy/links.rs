//! Links between documents.

use super::Complaint;
use super::tree::Tree;

/// Complains about relative links to files and headings that do not exist.
pub(super) fn dead(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts_with(".md") {
        for (index, link) in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            if let Err(what) = follow(tree, path, link) {
                complaints.push(Complaint::line(path, index, what));
            }
        }
    }
    complaints
}

fn follow(tree: &Tree, from: &str, link: &str) -> Result<(), String> {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        from.to_owned()
    } else {
        resolve(from, file).ok_or(format!("`{link}` leads out of the repository"))?
    };
    if !tree.exists(&target) {
        return Err(format!("`{link}` leads nowhere: there is no {target}"));
    }
    let known = heading.is_empty()
        || tree.text(&target).is_some_and(|text| headings(text).any(|slug| slug == heading));
    if known { Ok(()) } else { Err(format!("`{link}`: {target} has no such heading")) }
}

/// The path from the root; `None` when it leads above it.
fn resolve(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// `[text](link)` outside of code, with its line from 0.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (index, line) in prose(text) {
        let mut rest = line;
        while let Some(begin) = rest.find("](") {
            rest = &rest[begin + 2..];
            let Some(end) = rest.find(')') else { break };
            found.push((index, rest[..end].trim()));
            rest = &rest[end..];
        }
    }
    found
}

/// The anchors of a document's headings.
fn headings(text: &str) -> impl Iterator<Item = String> {
    prose(text).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        title.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Lines that are neither in a fenced block nor indented as code.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn dead_links_are_refused() {
        let text = "# One: two!\n[a](b.md) [c](../README.md#plumb)\n```\n[no](no.md)\n```\n\
                    [d](missing.md) [e](#one-two) [f](#three)\n[g](../../out.md) [h](https://x.invalid/)\n";
        check(
            dead,
            &[("docs/a.md", text), ("docs/b.md", ""), ("README.md", "# Plumb\n[docs](docs)\n")],
            &[
                "docs/a.md:6: `missing.md` leads nowhere: there is no docs/missing.md",
                "docs/a.md:6: `#three`: docs/a.md has no such heading",
                "docs/a.md:7: `../../out.md` leads out",
            ],
        );
    }
}
