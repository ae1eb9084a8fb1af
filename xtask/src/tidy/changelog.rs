//! The shape of CHANGELOG.md.

use super::Complaint;
use super::tree::Tree;

const FILE: &str = "CHANGELOG.md";
const PARTS: &[&str] = &["Added", "Changed", "Fixed", "Format"];

/// Newest version first; in each Added, Changed, Fixed, Format, in this order; items in each.
pub(super) fn shape(tree: &Tree) -> Vec<Complaint> {
    let Some(text) = tree.text(FILE) else {
        return vec![Complaint::file(FILE, "there is none")];
    };
    let mut reader = Reader::default();
    for (index, line) in text.lines().enumerate() {
        if let Err(what) = reader.line(index, line) {
            reader.complaints.push(Complaint::line(FILE, index, what));
        }
    }
    reader.close_part();
    if reader.versions == 0 {
        reader.complaints.push(Complaint::file(FILE, "it names no version and no `## Unreleased`"));
    }
    reader.complaints
}

#[derive(Default)]
struct Reader {
    complaints: Vec<Complaint>,
    versions: usize,
    previous: Option<Vec<u64>>,
    /// Place of the part in [`PARTS`], its line, and how many items it has.
    part: Option<(usize, usize, usize)>,
}

impl Reader {
    fn line(&mut self, index: usize, line: &str) -> Result<(), String> {
        if let Some(version) = line.strip_prefix("## ") {
            self.close_part();
            self.part = None;
            self.versions += 1;
            self.version(version)
        } else if let Some(part) = line.strip_prefix("### ") {
            self.close_part();
            let place = PARTS.iter().position(|known| *known == part.trim());
            let place = place.ok_or(format!("`{part}`: only {}", PARTS.join(", ")))?;
            let out_of_order = self.part.is_some_and(|(before, ..)| before >= place);
            self.part = Some((place, index, 0));
            if out_of_order {
                return Err(format!("`{part}`: the order is {}", PARTS.join(", ")));
            }
            Ok(())
        } else if line.starts_with("- ") {
            let part = self.part.as_mut().ok_or("an item under no heading".to_owned())?;
            part.2 += 1;
            Ok(())
        } else {
            Ok(())
        }
    }

    /// `Unreleased`, or `1.2.3 - 2031-05-28`.
    fn version(&mut self, text: &str) -> Result<(), String> {
        if text == "Unreleased" {
            let first = self.versions == 1;
            return if first { Ok(()) } else { Err("Unreleased comes first".to_owned()) };
        }
        let shape = || format!("`{text}`: write `Unreleased` or `1.2.3 - YYYY-MM-DD`");
        let (number, date) = text.split_once(" - ").ok_or_else(shape)?;
        let is_date = date.len() == 10
            && date.char_indices().all(|(place, c)| match place {
                4 | 7 => c == '-',
                _ => c.is_ascii_digit(),
            });
        let number: Option<Vec<u64>> = number.split('.').map(|part| part.parse().ok()).collect();
        let number = number.filter(|parts| parts.len() == 3 && is_date).ok_or_else(shape)?;
        let newer = self.previous.as_ref().is_some_and(|previous| *previous <= number);
        self.previous = Some(number);
        if newer { Err("the newest version comes first".to_owned()) } else { Ok(()) }
    }

    fn close_part(&mut self) {
        if let Some((place, index, 0)) = self.part {
            let what = format!("nothing under {}", PARTS[place]);
            self.complaints.push(Complaint::line(FILE, index, what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_good_one_passes() {
        let text = "# Changelog\n\n## Unreleased\n\n### Added\n\n- a\n  more\n\n### Fixed\n\n- b\n\n\
                    ## 0.2.0 - 2031-05-28\n\n### Format\n\n- c\n\n## 0.1.9 - 2031-01-02\n";
        check(shape, &[(FILE, text)], &[]);
    }

    #[test]
    fn each_fault_is_found() {
        check(shape, &[], &["CHANGELOG.md: there is none"]);
        check(shape, &[(FILE, "# Changelog\n")], &["CHANGELOG.md: it names no version"]);
        let text = "## 0.1.0 - 2031-01-02\n## 0.2.0 - 2031-01-02\n## next\n## 0.0.1 - 2.1.2031\n\
                    - item\n### Removed\n### Fixed\n- x\n### Added\n## Unreleased\n### Added\n- y\n";
        check(
            shape,
            &[(FILE, text)],
            &[
                "CHANGELOG.md:2: the newest version comes first",
                "CHANGELOG.md:3: `next`: write",
                "CHANGELOG.md:4: `0.0.1 - 2.1.2031`: write",
                "CHANGELOG.md:5: an item under no heading",
                "CHANGELOG.md:6: `Removed`: only",
                "CHANGELOG.md:9: `Added`: the order is",
                "CHANGELOG.md:9: nothing under Added",
                "CHANGELOG.md:10: Unreleased comes first",
            ],
        );
    }
}
