//! Tables as Parquet files: flat columns of doubles, plain, uncompressed, one row group.
//!
//! Written by hand (decision 0045). The layout, by the Apache Parquet format 2.10:
//!
//! ```text
//! PAR1 | a data page per column: header (Thrift), levels, values | footer (Thrift) | its length | PAR1
//! ```
//!
//! Columns are optional doubles: what is not known is null, never 0. Definition levels are one bit wide and
//! written as bit-packed runs of the RLE hybrid, values little-endian.

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, units included.
    pub name: String,
    /// A value per row.
    pub values: Vec<Option<f64>>,
}

const MAGIC: &[u8] = b"PAR1";

/// `Type::DOUBLE`.
const DOUBLE: i32 = 5;
/// `FieldRepetitionType::OPTIONAL`.
const OPTIONAL: i32 = 1;
/// `Encoding::PLAIN`.
const PLAIN: i32 = 0;
/// `Encoding::RLE`.
const RLE: i32 = 3;

/// The bytes of a file with those columns.
///
/// # Panics
/// When columns differ in length, or there is none.
#[must_use]
pub fn file(columns: &[Column]) -> Vec<u8> {
    let rows = columns.first().expect("a table has columns").values.len();
    assert!(columns.iter().all(|column| column.values.len() == rows), "columns of one length");
    let mut out = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for column in columns {
        let offset = out.len();
        let page = page(column);
        let header = page_header(page.len(), rows);
        out.extend_from_slice(&header);
        out.extend_from_slice(&page);
        chunks.push((offset, out.len() - offset));
    }
    let footer = footer(columns, rows, &chunks);
    out.extend_from_slice(&footer);
    let length = u32::try_from(footer.len()).expect("a footer is small");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

/// Levels and values.
fn page(column: &Column) -> Vec<u8> {
    let mut levels = Vec::new();
    let groups = column.values.len().div_ceil(8);
    // A bit-packed run: its groups of eight, shifted, the lowest bit set.
    varint(&mut levels, u64::try_from(groups).expect("it fits") << 1 | 1);
    for group in column.values.chunks(8) {
        let bits = group.iter().enumerate().map(|(bit, value)| u8::from(value.is_some()) << bit);
        levels.push(bits.fold(0, |all, bit| all | bit));
    }
    let mut page = u32::try_from(levels.len()).expect("a page is small").to_le_bytes().to_vec();
    page.extend_from_slice(&levels);
    for value in column.values.iter().flatten() {
        page.extend_from_slice(&value.to_le_bytes());
    }
    page
}

fn page_header(bytes: usize, rows: usize) -> Vec<u8> {
    let mut header = Struct::default();
    header.i32(1, 0); // DATA_PAGE
    header.i32(2, number(bytes));
    header.i32(3, number(bytes));
    header.structure(5, |page| {
        page.i32(1, number(rows));
        page.i32(2, PLAIN);
        page.i32(3, RLE);
        page.i32(4, RLE);
    });
    header.end()
}

fn footer(columns: &[Column], rows: usize, chunks: &[(usize, usize)]) -> Vec<u8> {
    let mut meta = Struct::default();
    meta.i32(1, 1);
    meta.list(2, columns.len() + 1, |list| {
        let mut root = Struct::default();
        root.string(4, "schema");
        root.i32(5, number(columns.len()));
        list.extend(root.end());
        for column in columns {
            let mut leaf = Struct::default();
            leaf.i32(1, DOUBLE);
            leaf.i32(3, OPTIONAL);
            leaf.string(4, &column.name);
            list.extend(leaf.end());
        }
    });
    meta.i64(3, rows);
    meta.list(4, 1, |list| {
        let mut group = Struct::default();
        group.list(1, columns.len(), |list| {
            for (column, (offset, bytes)) in columns.iter().zip(chunks) {
                list.extend(chunk(column, rows, *offset, *bytes));
            }
        });
        group.i64(2, chunks.iter().map(|(_, bytes)| bytes).sum());
        group.i64(3, rows);
        list.extend(group.end());
    });
    meta.string(6, "plumb");
    meta.end()
}

fn chunk(column: &Column, rows: usize, offset: usize, bytes: usize) -> Vec<u8> {
    let mut chunk = Struct::default();
    chunk.i64(2, offset);
    chunk.structure(3, |meta| {
        meta.i32(1, DOUBLE);
        meta.numbers(2, &[PLAIN, RLE]);
        meta.strings(3, &[&column.name]);
        meta.i32(4, 0); // UNCOMPRESSED
        meta.i64(5, rows);
        meta.i64(6, bytes);
        meta.i64(7, bytes);
        meta.i64(9, offset);
    });
    chunk.end()
}

fn number(value: usize) -> i32 {
    i32::try_from(value).expect("a table of a run is below 2 GiB")
}

/// A struct of Thrift's compact protocol, as it grows.
#[derive(Default)]
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

/// Types of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    fn field(&mut self, id: u8, kind: u8) {
        // Ids ascend by less than 16: the short form.
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    fn i32(&mut self, id: u8, value: i32) {
        self.field(id, I32);
        zigzag(&mut self.bytes, value.into());
    }

    fn i64(&mut self, id: u8, value: usize) {
        self.field(id, I64);
        zigzag(&mut self.bytes, i64::try_from(value).expect("it fits"));
    }

    fn string(&mut self, id: u8, text: &str) {
        self.field(id, BINARY);
        binary(&mut self.bytes, text);
    }

    fn structure(&mut self, id: u8, fill: impl FnOnce(&mut Self)) {
        self.field(id, STRUCT);
        let mut inner = Self::default();
        fill(&mut inner);
        self.bytes.extend(inner.end());
    }

    fn list(&mut self, id: u8, count: usize, fill: impl FnOnce(&mut Vec<u8>)) {
        self.field(id, LIST);
        list_header(&mut self.bytes, count, STRUCT);
        fill(&mut self.bytes);
    }

    fn numbers(&mut self, id: u8, values: &[i32]) {
        self.field(id, LIST);
        list_header(&mut self.bytes, values.len(), I32);
        for value in values {
            zigzag(&mut self.bytes, (*value).into());
        }
    }

    fn strings(&mut self, id: u8, texts: &[&str]) {
        self.field(id, LIST);
        list_header(&mut self.bytes, texts.len(), BINARY);
        for text in texts {
            binary(&mut self.bytes, text);
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn list_header(out: &mut Vec<u8>, count: usize, kind: u8) {
    match u8::try_from(count) {
        Ok(count @ 0..15) => out.push(count << 4 | kind),
        _ => {
            out.push(0xF0 | kind);
            varint(out, u64::try_from(count).expect("it fits"));
        }
    }
}

fn binary(out: &mut Vec<u8>, text: &str) {
    varint(out, u64::try_from(text.len()).expect("it fits"));
    out.extend_from_slice(text.as_bytes());
}

fn zigzag(out: &mut Vec<u8>, value: i64) {
    varint(out, (value << 1 ^ value >> 63).cast_unsigned());
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let low = u8::try_from(value & 0x7F).expect("seven bits");
        value >>= 7;
        if value == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, values: &[Option<f64>]) -> Column {
        Column { name: name.to_owned(), values: values.to_vec() }
    }

    /// Read back by pyarrow 26.0.1 when it was committed: two columns, three rows, one null.
    const READ_BY_PYARROW: &str = include_str!("parquet/two-columns.hex");

    #[test]
    fn the_file_is_the_one_that_other_readers_took() {
        let columns = [
            column("t_s", &[Some(0.0), Some(1.0), Some(2.0)]),
            column("iops", &[Some(1.5), None, Some(-3.0)]),
        ];
        let hex: String = file(&columns).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, READ_BY_PYARROW.trim());
    }

    #[test]
    fn values_and_nulls_are_counted_right_for_any_length() {
        for rows in [0, 1, 7, 8, 9, 300] {
            let values: Vec<Option<f64>> =
                (0..rows).map(|row| (row % 3 != 0).then(|| f64::from(row))).collect();
            let page = page(&column("x", &values));
            let levels = usize::try_from(u32::from_le_bytes([page[0], page[1], page[2], page[3]]))
                .expect("small");
            let known = values.iter().flatten().count();
            assert_eq!(page.len(), 4 + levels + 8 * known, "{rows}");
            let bits: u32 = page[4 + levels - values.len().div_ceil(8)..4 + levels]
                .iter()
                .map(|byte| byte.count_ones())
                .sum();
            assert_eq!(usize::try_from(bits).expect("small"), known, "{rows}");
        }
    }

    #[test]
    #[should_panic(expected = "one length")]
    fn columns_of_different_lengths_are_no_table() {
        let _ = file(&[column("a", &[None]), column("b", &[])]);
    }
}
