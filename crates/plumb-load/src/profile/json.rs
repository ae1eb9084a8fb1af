//! The normalised profile (spec 2): every key, sizes in bytes, what holds rather than what was typed.

use serde_json::{Value, json};

use super::model::{
    AffinityTraversal, BufferSeparation, BypassIo, CacheMode, Distribution, DistributionKind,
    EfficiencyOrder, Etw, FlushType, GroupOrder, IoRing, PrecreateFiles, ProcessorOrder,
    RawProfile, ResultFormat, RingBatch, Target, Throughput, ThroughputUnit, TimeSpan,
    WriteContent,
};

/// The profile with every key of spec 2; defaults are filled in.
#[must_use]
pub fn normalised(profile: &RawProfile) -> Value {
    let events = &profile.synchronization;
    json!({
        "Verbose": profile.verbose,
        "VerboseStats": profile.verbose_stats,
        "Progress": profile.progress,
        "ResultFormat": match profile.result_format {
            ResultFormat::Text => "text",
            ResultFormat::Xml => "xml",
        },
        "ProfileOnly": profile.profile_only,
        "ExperimentFlags": profile.experiment_flags,
        "PrecreateFiles": profile.precreate.map(|policy| match policy {
            PrecreateFiles::UseMaxSize => "UseMaxSize",
            PrecreateFiles::OnlyConstantSizes => "CreateOnlyFilesWithConstantSizes",
            PrecreateFiles::OnlyConstantOrZeroSizes => "CreateOnlyFilesWithConstantOrZeroSizes",
        }),
        "ETW": profile.etw.as_ref().map(etw),
        "Synchronization": {
            "StartedEvent": events.started_event,
            "FinishedEvent": events.finished_event,
            "StartWaitEvent": events.start_wait_event,
            "StopEvent": events.stop_event,
        },
        "TimeSpans": profile.time_spans.iter().map(time_span).collect::<Vec<_>>(),
    })
}

fn etw(etw: &Etw) -> Value {
    etw.fields().iter().map(|&(name, on)| (name.to_owned(), Value::Bool(on))).collect()
}

fn time_span(span: &TimeSpan) -> Value {
    let affinity = span.affinity.iter();
    json!({
        "Duration": span.duration,
        "Warmup": span.warmup,
        "Cooldown": span.cooldown,
        "RandSeed": span.rand_seed,
        "ThreadCount": span.thread_count,
        "RequestCount": span.request_count,
        "IoBucketDuration": span.io_bucket_duration,
        "RandomWriteData": span.random_write_data,
        "DisableAffinity": span.disable_affinity,
        "CompletionRoutines": span.completion_routines,
        "MeasureLatency": span.measure_latency,
        "CalculateIopsStdDev": span.calculate_iops_std_dev,
        "Affinity": affinity
            .map(|entry| json!({"Group": entry.group, "Processor": entry.processor}))
            .collect::<Vec<_>>(),
        "AffinityTraversal": traversal(span.effective_traversal()),
        "BufferSeparation": match span.effective_buffer_separation() {
            BufferSeparation::PdeCacheLine => "PDECacheLine",
            BufferSeparation::SystemDefault => "SystemDefault",
        },
        "CompletionDepth": span.effective_completion_depth(),
        "IoRing": span.io_ring.map(io_ring),
        "Targets": span.targets.iter().map(target).collect::<Vec<_>>(),
    })
}

fn traversal(traversal: AffinityTraversal) -> Value {
    json!({
        "Order": match traversal.order {
            ProcessorOrder::Cpu => "Cpu",
            ProcessorOrder::CoreAware => "CoreAware",
        },
        "Group": match traversal.group {
            GroupOrder::Fill => "Fill",
            GroupOrder::Span => "Span",
        },
        "Efficiency": match traversal.efficiency {
            EfficiencyOrder::PFirst => "PFirst",
            EfficiencyOrder::FillPFirst => "FillPFirst",
            EfficiencyOrder::EFirst => "EFirst",
            EfficiencyOrder::FillEFirst => "FillEFirst",
            EfficiencyOrder::Unordered => "Unordered",
        },
    })
}

fn io_ring(ring: IoRing) -> Value {
    let (batch, percent) = match ring.batch {
        RingBatch::Ios(count) => (count, false),
        RingBatch::Percent(percent) => (percent, true),
    };
    json!({"IoRingBatchSize": batch, "Percent": percent, "UseRegBuffer": ring.registered_buffers})
}

fn target(target: &Target) -> Value {
    let random = target.random_ratio > 0;
    let threads = target.thread_targets.iter();
    json!({
        "Path": target.path,
        "BlockSize": target.block_size,
        "BaseFileOffset": target.base_file_offset,
        "MaxFileSize": target.max_file_size,
        "RequestCount": target.request_count,
        "BurstSize": target.burst_size,
        "ThinkTime": target.think_time,
        "ThreadStride": target.thread_stride,
        "WriteRatio": target.write_ratio,
        "ThreadsPerFile": target.threads_per_file,
        "IOPriority": target.io_priority,
        "Weight": target.weight,
        "RandomRatio": target.random_ratio,
        "Random": random.then_some(target.alignment),
        "StrideSize": (!random).then_some(target.alignment),
        "InterlockedSequential": target.interlocked,
        "SequentialScan": target.sequential_scan,
        "RandomAccess": target.random_access,
        "TemporaryFile": target.temporary_file,
        "UseLargePages": target.use_large_pages,
        "DisableOSCache": target.cache == CacheMode::NoOsCache,
        "DisableLocalCache": target.cache == CacheMode::NoLocalCache,
        "WriteThrough": target.write_through,
        "MemoryMappedIo": target.memory_mapped,
        "ParallelAsyncIO": target.parallel_async,
        "BypassIO": target.bypass_io.map(|bypass| match bypass {
            BypassIo::Partial => "Partial",
            BypassIo::Full => "Full",
        }),
        "FlushType": target.flush.map(|flush| match flush {
            FlushType::ViewOfFile => "ViewOfFile",
            FlushType::NonVolatileMemory => "NonVolatileMemory",
            FlushType::NonVolatileMemoryNoDrain => "NonVolatileMemoryNoDrain",
        }),
        "WriteBufferContent": write_content(&target.write_content),
        "FileSize": target.file_size,
        "Throughput": {
            "Value": target.throughput.value,
            "Unit": match target.throughput.unit {
                ThroughputUnit::BytesPerMilli => "BPMS",
                ThroughputUnit::Iops => "IOPS",
            },
        },
        "ThroughputBytesPerMillisecond": bytes_per_milli(target.throughput, target.block_size),
        "ThreadTargets": threads
            .map(|entry| json!({"Thread": entry.thread, "Weight": entry.weight}))
            .collect::<Vec<_>>(),
        "Distribution": target.distribution.as_ref().map(distribution),
    })
}

fn write_content(content: &WriteContent) -> Value {
    let (pattern, source) = match content {
        WriteContent::Sequential => ("sequential", None),
        WriteContent::Zero => ("zero", None),
        WriteContent::Random { size, file } => {
            ("random", Some(json!({"SizeInBytes": size, "FilePath": file})))
        }
    };
    json!({"Pattern": pattern, "RandomDataSource": source})
}

/// A limit as whole bytes per millisecond, for people; pacing keeps the exact fraction (D-04).
fn bytes_per_milli(throughput: Throughput, block_size: u32) -> u64 {
    match throughput.unit {
        ThroughputUnit::BytesPerMilli => throughput.value.into(),
        ThroughputUnit::Iops => u64::from(throughput.value) * u64::from(block_size) / 1000,
    }
}

fn distribution(distribution: &Distribution) -> Value {
    let ranges = distribution.ranges.iter();
    json!({
        "Type": match distribution.kind {
            DistributionKind::Percent => "Percent",
            DistributionKind::Absolute => "Absolute",
        },
        "Ranges": ranges
            .map(|range| json!({"IO": range.io, "Size": range.size}))
            .collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::model::{AffinityEntry, DistributionRange, ThreadTarget};
    use super::*;

    fn with_target(target: Target) -> Value {
        let span = TimeSpan { targets: vec![target], ..TimeSpan::default() };
        let profile = RawProfile { time_spans: vec![span], ..RawProfile::default() };
        normalised(&profile)["TimeSpans"][0]["Targets"][0].take()
    }

    #[test]
    fn every_key_of_the_spec_is_there() {
        let profile = RawProfile {
            time_spans: vec![TimeSpan { targets: vec![Target::default()], ..TimeSpan::default() }],
            ..RawProfile::default()
        };
        let value = normalised(&profile);
        let keys = |value: &Value| value.as_object().expect("an object").len();
        assert_eq!(keys(&value), 10);
        assert_eq!(keys(&value["TimeSpans"][0]), 18);
        assert_eq!(keys(&value["TimeSpans"][0]["Targets"][0]), 33);
    }

    #[test]
    fn alignment_is_random_or_stride() {
        let mut target = Target { alignment: 4096, ..Target::default() };
        let value = with_target(target.clone());
        assert_eq!((&value["Random"], &value["StrideSize"]), (&Value::Null, &json!(4096)));
        target.random_ratio = 1;
        let value = with_target(target);
        assert_eq!((&value["Random"], &value["StrideSize"]), (&json!(4096), &Value::Null));
    }

    #[test]
    fn limits_are_floored() {
        let throughput = Throughput { value: 1, unit: ThroughputUnit::Iops };
        let mut target = Target { block_size: 512, throughput, ..Target::default() };
        let value = with_target(target.clone());
        assert_eq!(value["ThroughputBytesPerMillisecond"], 0);
        assert_eq!(value["Throughput"], json!({"Value": 1, "Unit": "IOPS"}));
        target.throughput.value = u32::MAX;
        let value = with_target(target);
        assert_eq!(value["ThroughputBytesPerMillisecond"], u64::from(u32::MAX) * 512 / 1000);
    }

    #[test]
    fn lists_and_optional_parts_keep_their_shape() {
        let ranges = vec![DistributionRange { io: 90, size: 10 }];
        let value = with_target(Target {
            write_content: WriteContent::Random { size: 7, file: Some("x".into()) },
            thread_targets: vec![ThreadTarget { thread: 3, weight: 0 }],
            distribution: Some(Distribution { kind: DistributionKind::Percent, ranges }),
            ..Target::default()
        });
        assert_eq!(
            value["WriteBufferContent"],
            json!({"Pattern": "random", "RandomDataSource": {"SizeInBytes": 7, "FilePath": "x"}})
        );
        assert_eq!(value["ThreadTargets"], json!([{"Thread": 3, "Weight": 0}]));
        assert_eq!(
            value["Distribution"],
            json!({"Type": "Percent", "Ranges": [{"IO": 90, "Size": 10}]})
        );

        let span = TimeSpan {
            affinity: vec![AffinityEntry { group: 1, processor: None }],
            io_ring: Some(IoRing { batch: RingBatch::Ios(8), registered_buffers: false }),
            ..TimeSpan::default()
        };
        let value = time_span(&span);
        assert_eq!(value["Affinity"], json!([{"Group": 1, "Processor": null}]));
        assert_eq!(
            value["IoRing"],
            json!({"IoRingBatchSize": 8, "Percent": false, "UseRegBuffer": false})
        );
        assert_eq!(etw(&Etw::default()).as_object().map(serde_json::Map::len), Some(12));
    }
}
