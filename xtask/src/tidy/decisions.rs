//! Decisions: numbered records, and one line for every dependency.

use super::Complaint;
use super::layers::dependencies;
use super::tree::Tree;

const FOLDER: &str = "docs/decisions/";
const DEPENDENCIES: &str = "docs/decisions/dependencies.md";
const SECTIONS: &[&str] = &["## Context", "## Choice", "## Cost"];

/// `NNNN-title.md`, each number once, each with its context, choice and cost.
pub(super) fn shape(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut previous = 0;
    let records = tree.texts_with(".md").filter(|(path, _)| *path != DEPENDENCIES);
    for (path, text) in records {
        let Some(name) = path.strip_prefix(FOLDER) else { continue };
        let number = name.split_once('-').and_then(|(number, _)| number.parse::<u32>().ok());
        let is_named = number.is_some_and(|number| name.starts_with(&format!("{number:04}-")));
        match number.filter(|_| is_named) {
            None => complaints.push(Complaint::file(path, "its name should be NNNN-title.md")),
            Some(number) if number <= previous => {
                complaints.push(Complaint::file(path, format!("{number:04} is taken")));
            }
            Some(number) => previous = number,
        }
        let mut sections = SECTIONS.iter().peekable();
        for line in text.lines() {
            sections.next_if(|section| line == **section);
        }
        if let Some(section) = sections.next() {
            complaints
                .push(Complaint::file(path, format!("`{section}` is missing or out of place")));
        }
    }
    complaints
}

/// Every dependency has a line `` | `name` | why | alternative | ``, and every line a dependency.
pub(super) fn dependencies_explained(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let text = tree.text(DEPENDENCIES).unwrap_or_default();
    let explained: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| Some((index, line.strip_prefix("| `")?.split_once('`')?.0)))
        .collect();
    let mut used = Vec::new();
    for (path, manifest) in tree.texts().filter(|(path, _)| path.ends_with("Cargo.toml")) {
        for dependency in dependencies(manifest) {
            let name = dependency.name;
            if name == "plumb" || name.starts_with("plumb-") {
                continue;
            }
            let known = explained.iter().any(|(_, known)| *known == name) || used.contains(&name);
            if !known {
                let what = format!("{name} has no line in {DEPENDENCIES}: why, and what else");
                complaints.push(Complaint::line(path, dependency.line, what));
            }
            used.push(name);
        }
    }
    for (index, name) in explained {
        if !used.iter().any(|used| used == name) {
            let what = format!("{name} is no dependency any more: remove the line");
            complaints.push(Complaint::line(DEPENDENCIES, index, what));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn records_are_numbered_and_complete() {
        let good = "# A\n\n## Context\n\n## Choice\n\n## Cost\n";
        check(
            shape,
            &[
                ("docs/decisions/0001-a.md", good),
                ("docs/decisions/0003-b.md", good),
                ("docs/decisions/0003-c.md", good),
                ("docs/decisions/0004-d.md", "## Context\n## Cost\n## Choice\n"),
                ("docs/decisions/5-e.md", good),
                ("docs/decisions/dependencies.md", ""),
                ("docs/guide/first-run.md", ""),
            ],
            &[
                "docs/decisions/0003-c.md: 0003 is taken",
                "docs/decisions/0004-d.md: `## Cost` is missing or out of place",
                "docs/decisions/5-e.md: its name should be NNNN-title.md",
            ],
        );
    }

    #[test]
    fn a_dependency_without_a_line_and_a_line_without_a_dependency_are_refused() {
        check(
            dependencies_explained,
            &[
                ("Cargo.toml", "[workspace.dependencies]\nserde = \"1\"\nplumb-io = \"1\"\n"),
                ("crates/plumb-io/Cargo.toml", "[dev-dependencies]\nleft-pad = \"1\"\n"),
                (DEPENDENCIES, "| crate | why |\n|---|---|\n| `serde` | x |\n| `gone` | y |\n"),
            ],
            &[
                "crates/plumb-io/Cargo.toml:2: left-pad has no line",
                "docs/decisions/dependencies.md:4: gone is no dependency",
            ],
        );
    }
}
