//! CRC-32C (Castagnoli), as fast as the processor can.
//!
//! Where it multiplies 512 bits without carries at a time, data is folded: four accumulators of 64 bytes, each
//! multiplied by x^2048 and added to the 64 bytes that lie 256 further on, until one is left [Gopal et al., "Fast
//! CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009]. A block of 4 KiB then costs a third of what
//! the processor's own CRC instruction takes for it. Elsewhere the crate `crc32c` does it.

/// The checksum of what `crc` is of, followed by `bytes`; `crc` is 0 for nothing.
#[inline]
#[must_use]
pub fn append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if wide::is_here() {
        // SAFETY: the processor has what the function is compiled for (asked just now).
        return unsafe { wide::append(crc, bytes) };
    }
    crc32c::crc32c_append(crc, bytes)
}

/// The checksum of `bytes`.
#[inline]
#[must_use]
pub fn checksum(bytes: &[u8]) -> u32 {
    append(0, bytes)
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128,
        _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
        _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
        _mm512_loadu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    use plumb_units::convert::low_u32;

    /// Bits reversed, x^(n + 31) and x^(n - 33) modulo the polynomial: what moves 128 bits n bits further. The
    /// upper constant is for the half that comes later.
    const BY_256_BYTES: (i64, i64) = (0xb9e0_2b86, 0xdcb1_7aa4);
    const BY_64_BYTES: (i64, i64) = (0x9e4a_ddf8, 0x740e_ef02);
    const BY_16_BYTES: (i64, i64) = (0x493c_7d27, 0xf20c_0dfe);
    /// All three inputs added.
    const XOR: i32 = 0x96;

    #[inline]
    pub(super) fn is_here() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
            && is_x86_feature_detected!("sse4.2")
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    pub(super) fn append(crc: u32, bytes: &[u8]) -> u32 {
        let (chunks, rest) = bytes.as_chunks::<256>();
        let mut crc = u64::from(!crc);
        if let Some((first, others)) = chunks.split_first() {
            crc = fold(low_u32(crc), first, others);
        }
        let (words, rest) = rest.as_chunks::<8>();
        for word in words {
            crc = _mm_crc32_u64(crc, u64::from_le_bytes(*word));
        }
        let mut crc = low_u32(crc);
        for byte in rest {
            crc = _mm_crc32_u8(crc, *byte);
        }
        !crc
    }

    /// The state after 256 bytes and more, from the state before them.
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    fn fold(state: u32, first: &[u8; 256], others: &[[u8; 256]]) -> u64 {
        let mut sums = load(first);
        // The state is what would be added to the first bits.
        let before = _mm512_zextsi128_si512(_mm_cvtsi32_si128(state.cast_signed()));
        sums[0] = _mm512_xor_si512(sums[0], before);
        let by = _mm512_broadcast_i32x4(constants(BY_256_BYTES));
        for chunk in others {
            for (sum, next) in sums.iter_mut().zip(load(chunk)) {
                *sum = moved(*sum, by, next);
            }
        }
        let by = _mm512_broadcast_i32x4(constants(BY_64_BYTES));
        let [mut sum, rest @ ..] = sums;
        for next in rest {
            sum = moved(sum, by, next);
        }
        let by = constants(BY_16_BYTES);
        let mut last = _mm512_extracti32x4_epi32::<0>(sum);
        for next in [
            _mm512_extracti32x4_epi32::<1>(sum),
            _mm512_extracti32x4_epi32::<2>(sum),
            _mm512_extracti32x4_epi32::<3>(sum),
        ] {
            let low = _mm_clmulepi64_si128::<0x00>(last, by);
            let high = _mm_clmulepi64_si128::<0x11>(last, by);
            last = _mm_xor_si128(_mm_xor_si128(low, high), next);
        }
        // 16 bytes are left that have the same remainder.
        let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(last).cast_unsigned());
        _mm_crc32_u64(state, _mm_extract_epi64::<1>(last).cast_unsigned())
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    fn constants((high, low): (i64, i64)) -> __m128i {
        _mm_set_epi64x(high, low)
    }

    /// 4 times 16 bytes, moved on by what `by` says, and `next` added.
    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    fn moved(sum: __m512i, by: __m512i, next: __m512i) -> __m512i {
        let low = _mm512_clmulepi64_epi128::<0x00>(sum, by);
        let high = _mm512_clmulepi64_epi128::<0x11>(sum, by);
        _mm512_ternarylogic_epi64::<XOR>(low, high, next)
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    fn load(chunk: &[u8; 256]) -> [__m512i; 4] {
        let (parts, _) = chunk.as_chunks::<64>();
        // SAFETY: the pointer leads to 64 bytes of an array; it need not be aligned.
        let part = |nth: usize| unsafe { _mm512_loadu_si512(parts[nth].as_ptr().cast()) };
        [part(0), part(1), part(2), part(3)]
    }
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
}
