//! A block of 4 KiB in four parts at once: the first is folded by multiplications of 256 bits, the three others go
//! through the processor's CRC instruction, and the four remainders are put together.
//!
//! The instruction takes 8 bytes each third of its latency with three streams, and leaves the multipliers and the
//! vector registers idle: 2176 bytes folded in the meantime cost next to nothing.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x, _mm_xor_si128,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_clmulepi64_epi128,
    _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_xor_si256, _mm256_zextsi128_si256,
};

use plumb_units::convert::low_u32;

/// Bits reversed, x^(n + 31) and x^(n - 33) modulo the polynomial: what moves 128 bits n bits further. The upper
/// constant is for the half that comes later.
const BY_128_BYTES: (i64, i64) = (0x0d3b_6092, 0x6992_cea2);
const BY_64_BYTES: (i64, i64) = (0x9e4a_ddf8, 0x740e_ef02);
const BY_32_BYTES: (i64, i64) = (0xba4f_c28e, 0x3da6_d0cb);
const BY_16_BYTES: (i64, i64) = (0x493c_7d27, 0xf20c_0dfe);

/// What is folded of a block, 128 bytes at a time.
const FOLDED: usize = 17 * 128;
/// What each of the three streams has of it, 40 bytes at a time.
const STREAM: usize = 640;
const STEPS: usize = 16;
const STEP: usize = STREAM / STEPS;
const BLOCK: usize = FOLDED + 3 * STREAM;

/// Bits reversed, x^(8 n - 33) modulo the polynomial: what moves a remainder n bytes further.
const BY_1_STREAM: i64 = 0x6b74_9fb2;
const BY_2_STREAMS: i64 = 0xdd66_cbbb;
const BY_3_STREAMS: i64 = 0xf486_42e9;

#[inline]
pub(super) fn is_here() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("vpclmulqdq")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("sse4.2")
}

/// The checksum of what `crc` is of, followed by `block`.
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
pub(super) fn append(crc: u32, block: &[u8; BLOCK]) -> u32 {
    let (folded, streams) = block.split_at(FOLDED);
    let (folded, _) = folded.as_chunks::<128>();
    let (streams, _) = streams.as_chunks::<STREAM>();
    let steps = |nth: usize| streams[nth].as_chunks::<STEP>().0;
    let (first, second, third) = (steps(0), steps(1), steps(2));

    let mut sums = load(&folded[0]);
    // The state is what would be added to the first bits.
    let before = _mm256_zextsi128_si256(_mm_cvtsi32_si128((!crc).cast_signed()));
    sums[0] = _mm256_xor_si256(sums[0], before);
    let by = _mm256_broadcastsi128_si256(constants(BY_128_BYTES));
    // Names for each, not an array of them: each is to have a register.
    let (mut state_1, mut state_2, mut state_3) = (0_u64, 0_u64, 0_u64);
    for step in 0..STEPS {
        let next = load(&folded[step + 1]);
        let (words_1, words_2, words_3) =
            (words(&first[step]), words(&second[step]), words(&third[step]));
        for nth in 0..STEP / 8 {
            if nth < 4 {
                sums[nth] = moved(sums[nth], by, next[nth]);
            }
            state_1 = _mm_crc32_u64(state_1, u64::from_le_bytes(words_1[nth]));
            state_2 = _mm_crc32_u64(state_2, u64::from_le_bytes(words_2[nth]));
            state_3 = _mm_crc32_u64(state_3, u64::from_le_bytes(words_3[nth]));
        }
    }
    let behind = shifted(remainder(sums), BY_3_STREAMS)
        ^ shifted(state_1, BY_2_STREAMS)
        ^ shifted(state_2, BY_1_STREAM)
        ^ state_3;
    !low_u32(behind)
}

fn words(part: &[u8; STEP]) -> &[[u8; 8]] {
    part.as_chunks().0
}

/// The state behind 128 bytes that have the same remainder as what was folded into them.
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
fn remainder([first, second, third, fourth]: [__m256i; 4]) -> u64 {
    let by = _mm256_broadcastsi128_si256(constants(BY_64_BYTES));
    let (even, odd) = (moved(first, by, third), moved(second, by, fourth));
    let by = _mm256_broadcastsi128_si256(constants(BY_32_BYTES));
    let sum = moved(even, by, odd);
    let by = constants(BY_16_BYTES);
    let last = _mm256_castsi256_si128(sum);
    let low = _mm_clmulepi64_si128::<0x00>(last, by);
    let high = _mm_clmulepi64_si128::<0x11>(last, by);
    let last = _mm_xor_si128(_mm_xor_si128(low, high), _mm256_extracti128_si256::<1>(sum));
    let state = _mm_crc32_u64(0, _mm_cvtsi128_si64(last).cast_unsigned());
    _mm_crc32_u64(state, _mm_extract_epi64::<1>(last).cast_unsigned())
}

/// The state that follows when as many zero bytes come behind `state` as `by` stands for.
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
fn shifted(state: u64, by: i64) -> u64 {
    let state = _mm_cvtsi64_si128(state.cast_signed());
    let moved = _mm_clmulepi64_si128::<0x00>(state, _mm_cvtsi64_si128(by));
    _mm_crc32_u64(0, _mm_cvtsi128_si64(moved).cast_unsigned())
}

#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
fn constants((high, low): (i64, i64)) -> __m128i {
    _mm_set_epi64x(high, low)
}

/// Twice 16 bytes, moved on by what `by` says, and `next` added.
#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
fn moved(sum: __m256i, by: __m256i, next: __m256i) -> __m256i {
    let low = _mm256_clmulepi64_epi128::<0x00>(sum, by);
    let high = _mm256_clmulepi64_epi128::<0x11>(sum, by);
    _mm256_xor_si256(_mm256_xor_si256(low, next), high)
}

#[target_feature(enable = "avx2,vpclmulqdq,pclmulqdq,sse4.2")]
fn load(chunk: &[u8; 128]) -> [__m256i; 4] {
    let (parts, _) = chunk.as_chunks::<32>();
    // SAFETY: the pointer leads to 32 bytes of an array; it need not be aligned.
    let part = |nth: usize| unsafe { _mm256_loadu_si256(parts[nth].as_ptr().cast()) };
    [part(0), part(1), part(2), part(3)]
}
