//! ARCHITECTURE.md: each invariant names the test that holds it.

use super::Complaint;
use super::links::prose;
use super::tree::Tree;

const FILE: &str = "ARCHITECTURE.md";
const SECTION: &str = "## Invariants";

/// Each item under "Invariants" names, in backticks, at least one test that exists.
pub(super) fn tested(tree: &Tree) -> Vec<Complaint> {
    let Some(text) = tree.text(FILE) else {
        return vec![Complaint::file(FILE, "there is none")];
    };
    let items = items(text);
    if items.is_empty() {
        return vec![Complaint::file(FILE, format!("no item under `{SECTION}`"))];
    }
    let mut complaints = Vec::new();
    for (index, item) in items {
        let mut tests = tests(&item).peekable();
        if tests.peek().is_none() {
            complaints.push(Complaint::line(FILE, index, "names no test: end it with `Test: …`"));
        }
        for test in tests {
            let head = format!("fn {test}(");
            if !tree.texts_with(".rs").any(|(_, code)| code.contains(&head)) {
                complaints.push(Complaint::line(FILE, index, format!("there is no test `{test}`")));
            }
        }
    }
    complaints
}

/// The list items of the section, each joined to one line, with their first line from 0.
fn items(text: &str) -> Vec<(usize, String)> {
    let mut items: Vec<(usize, String)> = Vec::new();
    let section = prose(text).skip_while(|(_, line)| *line != SECTION).skip(1);
    for (index, line) in section.take_while(|(_, line)| !line.starts_with("## ")) {
        if let Some(item) = line.strip_prefix("- ") {
            items.push((index, item.to_owned()));
        } else if let Some((_, item)) = items.last_mut().filter(|_| line.starts_with("  ")) {
            item.push(' ');
            item.push_str(line.trim());
        }
    }
    items
}

/// The names in backticks after `Test:` or `Tests:`.
fn tests(item: &str) -> impl Iterator<Item = &str> {
    let list = item.split_once("Test:").or(item.split_once("Tests:")).map_or("", |(_, rest)| rest);
    // Names are in every second piece; a path of modules may come before a name.
    list.split('`').skip(1).step_by(2).map(|name| name.rsplit("::").next().unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;

    #[test]
    fn an_invariant_without_a_test_is_refused() {
        let text = "# A\n\n## Invariants\n\n- One\n  thing. Test: `a::one_holds`.\n- Two.\n\
                    - Three. Tests: `one_holds`, `three_holds`.\n\n## More\n- Four.\n";
        check(
            super::tested,
            &[("ARCHITECTURE.md", text), ("a.rs", "    fn one_holds() {")],
            &[
                "ARCHITECTURE.md:7: names no test",
                "ARCHITECTURE.md:8: there is no test `three_holds`",
            ],
        );
        check(super::tested, &[("ARCHITECTURE.md", "# A\n")], &["ARCHITECTURE.md: no item"]);
        check(super::tested, &[], &["ARCHITECTURE.md: there is none"]);
    }
}
