//! CRC-32C (Castagnoli), as fast as the processor can.
//!
//! Where it multiplies 512 bits without carries at a time, data is folded [Gopal et al., "Fast CRC Computation for
//! Generic Polynomials Using PCLMULQDQ", 2009]: a block of 4 KiB then costs a third of what the processor's own CRC
//! instruction takes for it. Where it multiplies 256 bits, half of a block is folded while the CRC instruction goes
//! through the other half, for the two need different parts of the processor: half of what either takes alone.
//! Elsewhere the crate `crc32c` does it.

#[cfg(target_arch = "x86_64")]
mod streams;
#[cfg(target_arch = "x86_64")]
mod wide;

/// The checksum of what `crc` is of, followed by `bytes`; `crc` is 0 for nothing.
#[inline]
#[must_use]
pub fn append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if wide::is_here() {
        // SAFETY: the processor has what the function is compiled for (asked just now).
        return unsafe { wide::append(crc, bytes) };
    }
    #[cfg(target_arch = "x86_64")]
    if streams::is_here() {
        let (blocks, rest) = bytes.as_chunks();
        let crc = blocks.iter().fold(crc, |crc, block| {
            // SAFETY: as above.
            unsafe { streams::append(crc, block) }
        });
        return crc32c::crc32c_append(crc, rest);
    }
    crc32c::crc32c_append(crc, bytes)
}

/// The checksum of `bytes`.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    append(0, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, from the definition.
    fn slow(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
            })
        })
    }

    #[test]
    fn checksums_are_those_of_the_definition() {
        // RFC 3720, B.4.
        assert_eq!(checksum(b"123456789"), 0xe306_9283);
        assert_eq!(checksum(&[0; 32]), 0x8a91_36aa);
        let bytes: Vec<u8> =
            (0..9000_u32).map(|nth| nth.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        for start in [0, 1, 7, 64] {
            for len in [0, 1, 8, 15, 255, 256, 257, 511, 512, 768, 1000, 4096, 4103, 8191] {
                let part = &bytes[start..start + len];
                assert_eq!(checksum(part), slow(part), "{len} bytes from {start}");
                let (head, tail) = part.split_at(len / 3);
                assert_eq!(append(checksum(head), tail), slow(part), "{len} bytes in two parts");
            }
        }
    }

    /// The one that is preferred here is tested above; this one wherever it could be.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_block_in_streams_has_the_checksum_of_the_definition() {
        if !streams::is_here() {
            return;
        }
        let bytes: Vec<u8> =
            (0..4100_u32).map(|nth| nth.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        for start in 0..4 {
            let (block, _) = bytes[start..].as_chunks().0.split_first().expect("4096 bytes");
            for before in [&[][..], b"before"] {
                let whole = [before, block].concat();
                // SAFETY: the processor has what the function is compiled for (asked above).
                let crc = unsafe { streams::append(checksum(before), block) };
                assert_eq!(crc, slow(&whole), "from {start}, after {} bytes", before.len());
            }
        }
    }
}
