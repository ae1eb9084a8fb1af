//! What is written is read back: for generated profiles.

use super::super::distribution::with_tail;
use super::super::model::{
    AffinityEntry, AffinityTraversal, BufferSeparation, BypassIo, CacheMode, Distribution,
    DistributionKind, DistributionRange, EfficiencyOrder, Etw, FlushType, GroupOrder, IoRing,
    PrecreateFiles, ProcessorOrder, RawProfile, ResultFormat, RingBatch, Target, ThreadTarget,
    Throughput, ThroughputUnit, TimeSpan, WriteContent,
};
use super::{read, write};

#[test]
fn a_written_profile_is_read_back_as_it_was() {
    for seed in 0..2000 {
        let profile = profile(&mut Draws(seed));
        let text = write(&profile, 0);
        match read(&text) {
            Ok(back) => assert_eq!(back, profile, "seed {seed}: {text}"),
            Err(violation) => panic!("seed {seed}: {violation}\n{text}"),
        }
        assert_eq!(write(&profile, 3).replace("\n      ", "\n").trim_start(), text, "seed {seed}");
    }
}

/// A small generator of even draws (SplitMix64).
struct Draws(u64);

impl Draws {
    fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`.
    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.any() % u64::from(end)).expect("below a u32")
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 1
    }

    /// Small, ordinary and extreme numbers.
    fn u64(&mut self) -> u64 {
        match self.below(4) {
            0 => self.below(3).into(),
            1 => 1 << self.below(64),
            2 => u64::MAX - u64::from(self.below(2)),
            _ => self.any() >> self.below(64),
        }
    }

    fn u32(&mut self) -> u32 {
        u32::try_from(self.u64() & u64::from(u32::MAX)).expect("32 bits")
    }

    fn maybe<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.yes() { Some(value(self)) } else { None }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let count = u32::try_from(choices.len()).expect("a short list");
        choices[plumb_units::convert::index(self.below(count))]
    }

    fn list<T>(&mut self, longest: u32, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(longest + 1)).map(|_| item(self)).collect()
    }

    fn path(&mut self) -> String {
        let parts = ["a", " ", "<", "&", "]]>", "'\"", "\u{e9}", "\r\n", "\t", "*1", "&amp;", "#1"];
        self.list(6, |draws| draws.one_of(&parts)).concat()
    }
}

fn profile(draws: &mut Draws) -> RawProfile {
    let time_spans = (0..=draws.below(3)).map(|_| time_span(draws)).collect();
    RawProfile {
        verbose: draws.yes(),
        verbose_stats: draws.yes(),
        progress: draws.u32(),
        result_format: draws.one_of(&[ResultFormat::Text, ResultFormat::Xml]),
        experiment_flags: draws.u32(),
        precreate: draws.maybe(|draws| {
            draws.one_of(&[
                PrecreateFiles::UseMaxSize,
                PrecreateFiles::OnlyConstantSizes,
                PrecreateFiles::OnlyConstantOrZeroSizes,
            ])
        }),
        etw: draws.maybe(etw),
        time_spans,
        ..RawProfile::default()
    }
}

fn etw(draws: &mut Draws) -> Etw {
    Etw {
        process: draws.yes(),
        thread: draws.yes(),
        image_load: draws.yes(),
        disk_io: draws.yes(),
        memory_page_faults: draws.yes(),
        memory_hard_faults: draws.yes(),
        network: draws.yes(),
        registry: draws.yes(),
        use_paged_memory: draws.yes(),
        use_perf_timer: draws.yes(),
        use_system_timer: draws.yes(),
        use_cycles_counter: draws.yes(),
    }
}

fn time_span(draws: &mut Draws) -> TimeSpan {
    TimeSpan {
        duration: draws.u32(),
        warmup: draws.u32(),
        cooldown: draws.u32(),
        rand_seed: draws.u32(),
        thread_count: draws.u32(),
        request_count: draws.u32(),
        io_bucket_duration: draws.u32(),
        random_write_data: draws.yes(),
        disable_affinity: draws.yes(),
        completion_routines: draws.yes(),
        measure_latency: draws.yes(),
        calculate_iops_std_dev: draws.yes(),
        affinity: affinity(draws),
        affinity_traversal: draws.maybe(traversal),
        buffer_separation: draws.maybe(|draws| {
            draws.one_of(&[BufferSeparation::PdeCacheLine, BufferSeparation::SystemDefault])
        }),
        completion_depth: draws.maybe(Draws::u32),
        io_ring: draws.maybe(|draws| IoRing {
            batch: match draws.yes() {
                true => RingBatch::Ios(1 + draws.below(65536)),
                false => RingBatch::Percent(1 + draws.below(100)),
            },
            registered_buffers: draws.yes(),
        }),
        targets: (0..=draws.below(3)).map(|_| target(draws)).collect(),
    }
}

/// With a whole group in the list, processors stay below 64: masks count others on in the next group.
fn affinity(draws: &mut Draws) -> Vec<AffinityEntry> {
    let with_groups = draws.yes();
    draws.list(6, |draws| {
        let group = u16::try_from(draws.one_of(&[0, 0, 1, 65535])).expect("16 bits");
        let processor = u8::try_from(draws.below(if with_groups { 64 } else { 256 }));
        let processor = Some(processor.expect("8 bits")).filter(|_| !with_groups || draws.yes());
        AffinityEntry { group, processor }
    })
}

fn traversal(draws: &mut Draws) -> AffinityTraversal {
    AffinityTraversal {
        order: draws.one_of(&[ProcessorOrder::Cpu, ProcessorOrder::CoreAware]),
        group: draws.one_of(&[GroupOrder::Fill, GroupOrder::Span]),
        efficiency: draws.one_of(&[
            EfficiencyOrder::PFirst,
            EfficiencyOrder::FillPFirst,
            EfficiencyOrder::EFirst,
            EfficiencyOrder::FillEFirst,
            EfficiencyOrder::Unordered,
        ]),
    }
}

fn target(draws: &mut Draws) -> Target {
    let random_ratio = draws.one_of(&[0, 1, 50, 99, 100]);
    Target {
        path: draws.path(),
        block_size: draws.u32().max(1),
        alignment: draws.u64().max(1),
        random_ratio,
        interlocked: random_ratio == 0 && draws.yes(),
        base_file_offset: draws.u64(),
        max_file_size: draws.u64(),
        file_size: draws.maybe(Draws::u64),
        request_count: draws.u32(),
        threads_per_file: draws.u32(),
        thread_stride: draws.u64(),
        write_ratio: draws.below(101),
        throughput: Throughput {
            value: draws.u32(),
            unit: draws.one_of(&[ThroughputUnit::BytesPerMilli, ThroughputUnit::Iops]),
        },
        burst_size: draws.u32(),
        think_time: draws.u32(),
        sequential_scan: draws.yes(),
        random_access: draws.yes(),
        temporary_file: draws.yes(),
        use_large_pages: draws.yes(),
        cache: draws.one_of(&[CacheMode::Cached, CacheMode::NoOsCache, CacheMode::NoLocalCache]),
        write_through: draws.yes(),
        memory_mapped: draws.yes(),
        flush: draws.maybe(|draws| {
            draws.one_of(&[
                FlushType::ViewOfFile,
                FlushType::NonVolatileMemory,
                FlushType::NonVolatileMemoryNoDrain,
            ])
        }),
        bypass_io: draws.maybe(|draws| draws.one_of(&[BypassIo::Partial, BypassIo::Full])),
        write_content: match draws.below(3) {
            0 => WriteContent::Sequential,
            1 => WriteContent::Zero,
            _ => WriteContent::Random {
                size: draws.u64(),
                file: Some(draws.path()).filter(|path| !path.is_empty()),
            },
        },
        parallel_async: draws.yes(),
        io_priority: 1 + draws.below(3),
        weight: draws.u32(),
        distribution: if random_ratio > 0 { draws.maybe(distribution) } else { None },
        thread_targets: draws
            .list(3, |draws| ThreadTarget { thread: draws.u32(), weight: draws.u32() }),
    }
}

fn distribution(draws: &mut Draws) -> Distribution {
    let kind = draws.one_of(&[DistributionKind::Percent, DistributionKind::Absolute]);
    let ranges = (0..=draws.below(3)).map(|_| DistributionRange {
        io: draws.below(26),
        size: match kind {
            DistributionKind::Percent => 1 + u64::from(draws.below(20)),
            DistributionKind::Absolute => draws.u64(),
        },
    });
    let ranges = ranges.collect();
    Distribution { kind, ranges: with_tail(kind, ranges) }
}
