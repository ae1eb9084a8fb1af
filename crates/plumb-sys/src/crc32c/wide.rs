//! By multiplications of 512 bits: four accumulators of 64 bytes, each multiplied by x^2048 and added to the 64
//! bytes that lie 256 further on, until one is left.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u8, _mm_crc32_u64, _mm_cvtsi32_si128,
    _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4,
    _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32, _mm512_loadu_si512,
    _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
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
