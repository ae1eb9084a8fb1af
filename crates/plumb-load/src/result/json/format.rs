//! How documents are laid out: an object's members on lines of their own, a list of objects likewise,
//! a list of anything else on one line, however long.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// Two blanks per level.
#[derive(Debug, Default)]
pub(super) struct Layout {
    open: Vec<Container>,
    /// The start of a list element whose kind is not known yet.
    pending: Option<Element>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Container {
    EmptyObject,
    Object,
    /// On one line so far.
    List,
    ListOfObjects,
}

#[derive(Debug, Clone, Copy)]
enum Element {
    First,
    Further,
}

impl Layout {
    fn line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        let depth = self.open.iter().filter(|open| **open != Container::List).count();
        write!(writer, "\n{:width$}", "", width = 2 * depth)
    }

    /// A list element that needs no line of its own.
    fn inline<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        match self.pending.take() {
            Some(Element::Further) => writer.write_all(b", "),
            Some(Element::First) | None => Ok(()),
        }
    }
}

macro_rules! inline_numbers {
    ($($method:ident $kind:ty),+ $(,)?) => {$(
        fn $method<W: ?Sized + Write>(&mut self, writer: &mut W, value: $kind) -> io::Result<()> {
            self.inline(writer)?;
            write!(writer, "{value}")
        }
    )+};
}

impl Formatter for Layout {
    inline_numbers! {
        write_bool bool, write_i8 i8, write_i16 i16, write_i32 i32, write_i64 i64, write_i128 i128,
        write_u8 u8, write_u16 u16, write_u32 u32, write_u64 u64, write_u128 u128,
        write_number_str &str,
    }

    fn write_null<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inline(writer)?;
        writer.write_all(b"null")
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        self.inline(writer)?;
        // `{:?}`: the shortest text that reads back as the same number.
        write!(writer, "{value:?}")
    }

    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        self.inline(writer)?;
        write!(writer, "{value:?}")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inline(writer)?;
        writer.write_all(b"\"")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.inline(writer)?;
        self.open.push(Container::List);
        writer.write_all(b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.pending = Some(if first { Element::First } else { Element::Further });
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(Container::ListOfObjects) {
            self.line(writer)?;
        }
        writer.write_all(b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if let Some(element) = self.pending.take() {
            if let Element::Further = element {
                writer.write_all(b",")?;
            }
            if let Some(list) = self.open.last_mut() {
                *list = Container::ListOfObjects;
            }
            self.line(writer)?;
        }
        self.open.push(Container::EmptyObject);
        writer.write_all(b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if let Some(object) = self.open.last_mut() {
            *object = Container::Object;
        }
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        if self.open.pop() == Some(Container::Object) {
            self.line(writer)?;
        }
        writer.write_all(b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn lists_of_numbers_stay_on_one_line() {
        let value = json!({
            "a": {"b": [[1, 2, 3], [4, 5.5, null]], "c": []},
            "d": [{"e": "x", "f": [true, "y"]}, {"g": {}}],
        });
        let mut out = Vec::new();
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, Layout::default());
        value.serialize(&mut serializer).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(
            text,
            r#"{
  "a": {
    "b": [[1, 2, 3], [4, 5.5, null]],
    "c": []
  },
  "d": [
    {
      "e": "x",
      "f": [true, "y"]
    },
    {
      "g": {}
    }
  ]
}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&text).expect("JSON"), value);
    }
}
