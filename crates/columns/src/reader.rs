//! LEB128 numbers and texts with their length before them.

use crate::damage::{Result, damaged};

/// Reads what the writers below wrote.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8]> {
        let (bytes, rest) = self
            .0
            .split_at_checked(length)
            .ok_or_else(|| damaged("a column ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    pub fn number(&mut self) -> Result<u32> {
        let mut value = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.bytes(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| damaged("a number is too large"));
            }
        }
        Err(damaged("a number does not end"))
    }

    pub fn text(&mut self) -> Result<String> {
        let length = self.number()? as usize;
        let bytes = self.bytes(length)?.to_vec();
        String::from_utf8(bytes).map_err(|_| damaged("a text is not UTF-8"))
    }
}

pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

pub(crate) fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u32);
    bytes.extend_from_slice(text.as_bytes());
}
