//! Mends what DISKSPD writes into XML without escaping it (spec 8).

use std::borrow::Cow;

/// The document with `<` and `>` in attribute values and stray `&` escaped: an unknown power scheme is
/// `Name="<unknown>"`, and a path with `&` stands as it is.
pub(super) fn escape_stray(text: &str) -> Cow<'_, str> {
    if !text.contains('&') && !text.contains("\"<") {
        return Cow::Borrowed(text);
    }
    let mut mended = String::with_capacity(text.len() + 64);
    let (mut in_tag, mut in_value) = (false, false);
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' if in_tag => {
                in_value = !in_value;
                continue;
            }
            b'<' if in_value => "&lt;",
            b'>' if in_value => "&gt;",
            b'&' if !is_reference(&text[at..]) => "&amp;",
            b'<' => {
                in_tag = true;
                continue;
            }
            b'>' => {
                in_tag = false;
                continue;
            }
            _ => continue,
        };
        mended.push_str(&text[copied..at]);
        mended.push_str(escape);
        copied = at + 1;
    }
    mended.push_str(&text[copied..]);
    Cow::Owned(mended)
}

/// Whether the text starts with a reference that XML knows without a document type.
fn is_reference(text: &str) -> bool {
    if ["&amp;", "&lt;", "&gt;", "&quot;", "&apos;"].iter().any(|known| text.starts_with(known)) {
        return true;
    }
    let Some(number) = text.strip_prefix("&#") else { return false };
    let Some(end) = number.bytes().take(10).position(|byte| byte == b';') else { return false };
    let is_made_of =
        |digits: &str, of: fn(&u8) -> bool| !digits.is_empty() && digits.as_bytes().iter().all(of);
    match number[..end].strip_prefix('x') {
        Some(hexadecimal) => is_made_of(hexadecimal, u8::is_ascii_hexdigit),
        None => is_made_of(&number[..end], u8::is_ascii_digit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_paths_that_were_not_escaped_are() {
        for (text, want) in [
            ("<P Name=\"<unknown>\" Guid=\"\"/>", "<P Name=\"&lt;unknown&gt;\" Guid=\"\"/>"),
            (
                "<Path>a&b &amp; &#38; &#x26; &#zz; \"x\"</Path>",
                "<Path>a&amp;b &amp; &#38; &#x26; &amp;#zz; \"x\"</Path>",
            ),
            ("<A b=\"&\"/>", "<A b=\"&amp;\"/>"),
            ("nothing to do", "nothing to do"),
            ("&#", "&amp;#"),
            ("&#xxxxxé", "&amp;#xxxxxé"),
        ] {
            assert_eq!(escape_stray(text), want);
        }
    }
}
