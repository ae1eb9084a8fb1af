//! Findings of the steps that search no curve: threads, files, latency without load, and the first run.

use serde_json::{Value, json};

use super::doubt::{ASSUMED, Contradiction};
use super::findings::{Study, middle, numbers};
use super::options::Step;
use super::planner::{apart, split_candidates};
use crate::compare::{self, Metric, Verdict};
use crate::decision::{self, ChoiceMade, HOLM, Rule};
use crate::stats::describe::mean;
use crate::study::Setting;
use crate::study::best::Noise;
use crate::study::findings::{Finding, Table};
use crate::study::record::weakest;
use crate::study::sweep_findings::{rates, told as told_with_mark};

impl Study<'_> {
    pub(super) fn pair(&self) -> Option<Finding> {
        let best = self.choices.pair.as_ref()?;
        let pairs = &self.choices.pairs;
        let label =
            |index: usize| format!("t{} o{}", pairs[index].threads, pairs[index].outstanding);
        let tested: Vec<usize> = (0..pairs.len())
            .filter(|index| !rates(&pairs[*index], self.runs).0.is_empty())
            .collect();
        let reason = format!(
            "of {} ways to split N = {}, {} of them run, {} has the fewest threads among those that are not \
             worse than the best and were not seen to give 5 % less",
            pairs.len(),
            pairs[best.chosen].total_outstanding(),
            tested.len(),
            label(best.chosen)
        );
        let reason = match best.moved {
            None => reason,
            Some(moved) => format!(
                "of {} ways to split N = {}, {} of them run, it had the fewest threads among those that were not worse than the \
                 best; with the runs that came later {} has",
                pairs.len(),
                pairs[best.chosen].total_outstanding(),
                tested.len(),
                label(moved)
            ),
        };
        let candidates = split_candidates(pairs, self.runs);
        let doubt = best.doubt(&candidates);
        let mut reason = if doubt.is_empty() { reason } else { format!("{reason}; {doubt}") };
        let is_single = best.is_single;
        let set: Vec<String> = best.set.iter().map(|index| label(*index)).collect();
        reason.push_str(&format!("; most has {}, not worse: {}", label(best.best), set.join(", ")));
        let standings = best.standings(&candidates);
        if !standings.is_empty() {
            reason.push_str(&format!("; {standings}"));
        }
        if is_single {
            reason.push_str(&format!("; {}", best.reservations(&candidates, &[])));
        }
        let contradictions: Vec<(usize, Contradiction)> = tested
            .iter()
            .filter_map(|index| Some((*index, self.contradiction(&pairs[*index])?)))
            .collect();
        // A choice that rests on runs which contradict each other is none.
        let is_unclear = best.is_unclear || contradictions.iter().any(|(at, _)| *at == best.chosen);
        for (index, found) in &contradictions {
            reason.push_str(&format!("; of {} {}", label(*index), found.told()));
        }
        let flags = [("single_runs", is_single), ("runs_differ", !contradictions.is_empty())];
        let mut decision = decision::of_choice(&ChoiceMade {
            id: "random-2".to_owned(),
            verdict: if is_unclear { "unclear" } else { best.verdict() },
            value: label(best.chosen),
            best: label(best.best),
            set,
            how: HOLM,
            reason: reason.clone(),
            flags: flags.into_iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| flag).collect(),
            deviation: (best.noise.deviation, best.noise.freedom, best.noise.told()),
        });
        let irreproducible = contradictions.iter().filter(|(_, found)| found.is_irreproducible);
        let irreproducible: Vec<Value> = irreproducible
            .map(|(index, found)| json!({ "setting": label(*index), "iops": found.iops }))
            .collect();
        decision.insert("irreproducible".to_owned(), json!(irreproducible));
        let rows = tested
            .iter()
            .map(|index| {
                let (iops, _) = rates(&pairs[*index], self.runs);
                let off = best.standing[*index].0.exp_m1() * 100.0;
                vec![
                    json!(pairs[*index].threads),
                    json!(pairs[*index].outstanding),
                    // As they are judged.
                    json!(mean(&iops.iter().map(|iops| iops.ln()).collect::<Vec<_>>()).exp()),
                    json!(off),
                    json!((*index != best.best).then(|| best.standing[*index].1.exp_m1() * 100.0)),
                    json!(best.set.contains(index)),
                ]
            })
            .collect();
        let columns = ["t", "o", "iops [1/s]", "off best [%]", "± [%]", "in the best set"];
        Some(Finding {
            id: "random-2".to_owned(),
            title: "Threads for small random I/O".to_owned(),
            sentence: match is_unclear {
                true => format!("Use {}, not certain yet: {reason}.", label(best.chosen)),
                false => format!("Use {}: {reason}.", label(best.chosen)),
            },
            step: Step::RandomTwo.keyword().to_owned(),
            decision,
            runs: numbers(self.runs, pairs),
            table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows }),
        })
    }

    /// 2.5: each number of files against the one with most throughput, two by two.
    pub(super) fn files(&self) -> Option<Finding> {
        let settings: Vec<Setting> = [1, 2, 4].map(|files| self.options.random(files)).to_vec();
        let level = |iops: &[f64]| mean(&iops.iter().map(|x| x.ln()).collect::<Vec<_>>());
        let measured: Vec<(&Setting, Vec<f64>, f64)> = settings
            .iter()
            .filter_map(|setting| {
                let iops = rates(setting, self.runs).0;
                // What is ranked is what is printed.
                let level = level(&iops);
                (!iops.is_empty()).then_some((setting, iops, level.exp()))
            })
            .collect();
        let chosen = self.choices.files;
        if measured.len() < 2 {
            return None;
        }
        let (best, best_iops, _) =
            measured.iter().max_by(|a, b| level(&a.1).total_cmp(&level(&b.1)))?;
        let metric = Metric::named("iops", true);
        let against = |base: &[f64], other: &[f64]| {
            Some(compare::judge(compare::of_runs(base, other)?, &metric))
        };
        let is_in_set = |(setting, iops, _): &&(&Setting, Vec<f64>, f64)| {
            setting.files == best.files
                || against(iops, best_iops).is_none_or(|found| found.verdict != Verdict::Better)
        };
        let set: Vec<String> =
            measured.iter().filter(is_in_set).map(|(s, ..)| s.files.to_string()).collect();
        let own = measured.iter().find(|(setting, ..)| setting.files == chosen)?;
        // What the chosen number could still lose against another one.
        let unclear: Vec<(u32, Option<u64>)> = measured
            .iter()
            .filter(|(setting, ..)| setting.files != chosen)
            .filter_map(|(setting, iops, _)| Some((setting.files, against(&own.1, iops)?)))
            .filter(|(_, found)| {
                found.verdict == Verdict::Unclear && found.interval.1 >= metric.delta
            })
            .map(|(files, found)| (files, found.needed))
            .collect();
        let each: Vec<String> = measured
            .iter()
            .map(|(setting, _, iops)| format!("{}: {iops:.0} I/Os per second", setting.files))
            .collect();
        let logs = |iops: &[f64]| iops.iter().map(|x| x.ln()).collect();
        let noise =
            Noise::pooled(&measured.iter().map(|(_, iops, _)| logs(iops)).collect::<Vec<_>>());
        let mut reason = format!(
            "{}; most with {}, not worse with {}; more files are taken only where they are better by 2 % and more than noise",
            each.join(", "),
            best.files,
            set.join(", ")
        );
        if measured.iter().any(|(_, iops, _)| iops.len() == 1) {
            reason.push_str("; unconfirmed: single runs");
        }
        if let Some((_, needed)) = unclear.iter().max_by_key(|(_, needed)| *needed) {
            let others: Vec<String> = unclear.iter().map(|(files, _)| files.to_string()).collect();
            reason.push_str(&format!(
                "; runs of one setting differ by {:.1} % (SD), which cannot tell whether {} would be better: \
                 {} would",
                noise.map_or(f64::NAN, |noise| noise.deviation * 100.0),
                others.join(" or "),
                match needed {
                    Some(needed) => format!("{needed} runs of each"),
                    None => "more runs alone hardly".to_owned(),
                },
            ));
        }
        let told = noise.map_or("not measured".to_owned(), |noise| noise.told());
        let mut decision = decision::of_choice(&ChoiceMade {
            id: "pretest-2".to_owned(),
            verdict: if unclear.is_empty() { "best" } else { "unclear" },
            value: chosen.to_string(),
            best: best.files.to_string(),
            set,
            how: "numbers of files than which the one with most throughput is not better by 2 % and its 95 % interval, \
                  two by two",
            reason: reason.clone(),
            flags: Vec::new(),
            deviation: (
                noise.map_or(f64::NAN, |noise| noise.deviation),
                noise.map_or(f64::NAN, |noise| noise.freedom),
                told,
            ),
        });
        decision.insert("rule".to_owned(), Rule::Files.keyword().into());
        let columns =
            ["files", "runs", "iops [1/s]", "most is off it [%]", "low [%]", "high [%]", "most is"];
        let row = |(setting, iops, level): &(&Setting, Vec<f64>, f64)| {
            let mut row = vec![json!(setting.files), json!(iops.len()), json!(level)];
            let found = against(iops, best_iops).filter(|_| setting.files != best.files);
            row.extend(match found {
                Some(found) => [
                    json!(found.effect * 100.0),
                    json!(found.interval.0 * 100.0),
                    json!(found.interval.1 * 100.0),
                    json!(found.verdict.keyword()),
                ],
                None => [(); 4].map(|()| Value::Null),
            });
            row
        };
        let rows = measured.iter().map(row).collect();
        let word = if chosen == 1 { "1 file" } else { &format!("{chosen} files") };
        let doubt = if unclear.is_empty() { "" } else { ", not certain yet" };
        Some(Finding {
            id: "pretest-2".to_owned(),
            title: "Number of files".to_owned(),
            sentence: format!("Use {word}{doubt}: {reason}."),
            step: Step::PretestTwo.keyword().to_owned(),
            decision,
            runs: numbers(self.runs, &settings),
            table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows }),
        })
    }

    /// 2.10: latency without queueing.
    pub(super) fn alone(&self) -> Option<Finding> {
        let settings = &apart(&self.choices.random, self.options)[2..];
        let mut lines = Vec::new();
        let mut first = None;
        for setting in settings {
            let Some(mean) = middle(self.runs, setting, |s| s.latency_ms) else { continue };
            let percentile = |percent: f64| {
                middle(self.runs, setting, |summary| Some(summary.percentile(percent)?.ms))
            };
            // The run that has fewest says how far they can be relied on.
            let own = self.runs.iter().filter(|run| run.setting == *setting);
            let own = own.filter_map(|run| run.usable());
            let cell = |percent: f64| {
                let (count, spread) = weakest(own.clone(), percent);
                told_with_mark(&json!(percentile(percent)), percent, count.unwrap_or(0), spread)
            };
            let (p50, p50_on) = cell(50.0);
            let (p99, p99_on) = cell(99.0);
            let (p99_9, p99_9_on) = cell(99.9);
            let said = p99.as_f64().map(|ms| with_mark(ms, p99_on.as_str()));
            let said = said.map(|said| format!(", one in a hundred more than {said}"));
            first = first.or(Some((mean, said)));
            let iops = middle(self.runs, setting, |s| Some(s.iops));
            lines.push(vec![
                json!(setting.outstanding),
                json!(iops),
                json!(mean),
                p50,
                p50_on,
                p99,
                p99_on,
                p99_9,
                p99_9_on,
            ]);
        }
        let (mean, p99) = first?;
        let evidence: Vec<Value> = settings
            .iter()
            .filter_map(|setting| {
                let own = self.runs.iter().filter(|run| run.setting == *setting);
                let means: Vec<f64> = own.filter_map(|run| run.usable()?.latency_ms).collect();
                (!means.is_empty()).then(|| {
                    json!({ "name": format!("avg_lat_ms of o{}", setting.outstanding), "value": means,
                            "arithmetic": "mean of each run; the median of these is told" })
                })
            })
            .collect();
        let count = rates(&settings[0], self.runs).0.len();
        let faster = self.faster_with_more(&settings[0], mean);
        let mut sentence =
            format!("One I/O at a time takes {mean:.3} ms on average{}", p99.unwrap_or_default());
        match &faster {
            Some(faster) => sentence.push_str(&format!(
                ", not certain yet: {} takes {:.3} ms with more of them outstanding, which a queue does not explain",
                faster.setting.short(),
                faster.ms
            )),
            None => sentence.push_str(": what the device needs without any queue"),
        }
        sentence.push_str(if count == 1 { "; it rests on one run." } else { "." });
        let verdict = if faster.is_some() { "unclear" } else { "measured" };
        let mut decision = decision::plain(Rule::Figure, "latency-alone", verdict, &sentence);
        let flags = [("single_run", count == 1), ("faster_with_more", faster.is_some())];
        let flags: Vec<&str> =
            flags.into_iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| flag).collect();
        decision.insert("flags".to_owned(), json!(flags));
        let mut evidence = evidence;
        evidence.extend(faster.as_ref().map(|faster| {
            json!({ "name": format!("avg_lat_ms of {}", faster.setting.short()), "value": faster.ms,
                    "arithmetic": format!("lowest of more outstanding I/Os; {:.1} % or less below {mean:.3} would be noise",
                                          faster.noise * 100.0) })
        }));
        decision.insert("value".to_owned(), json!(mean));
        decision.insert("evidence".to_owned(), json!(evidence));
        let columns = [
            "o",
            "iops [1/s]",
            "avg_lat [ms]",
            "p50 [ms]",
            "p50 rests on",
            "p99 [ms]",
            "p99 rests on",
            "p99.9 [ms]",
            "p99.9 rests on",
        ];
        Some(Finding {
            id: "latency-alone".to_owned(),
            title: "Latency without load".to_owned(),
            sentence,
            step: Step::Latency.keyword().to_owned(),
            decision,
            runs: numbers(self.runs, settings),
            table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows: lines }),
        })
    }

    /// The setting of the same kind of I/O with more outstanding that has the lowest mean latency, where that lies below what
    /// one alone takes by more than noise: by max(3 %, 3·σ·√(1/n + 1/m)), ln L differing by as much as ln X at the same N.
    fn faster_with_more(&self, alone: &Setting, ms: f64) -> Option<Faster<'_>> {
        let kind = |s: &Setting| (s.access, s.block_bytes, s.write_percent, s.rate);
        let has_more = |s: &&Setting| {
            kind(s) == kind(alone) && s.total_outstanding() > alone.total_outstanding()
        };
        let all = self.runs.iter().map(|run| &run.setting).filter(has_more);
        let of = |setting| Some((setting, middle(self.runs, setting, |s| s.latency_ms)?));
        let (setting, lowest) = all.filter_map(of).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let sigma = self.choices.noise.map_or(ASSUMED, |noise| noise.deviation);
        let count = |setting| rates(setting, self.runs).0.len().max(1) as f64;
        let error = sigma * (1.0 / count(alone) + 1.0 / count(setting)).sqrt();
        let noise = f64::max(0.03, 3.0 * error);
        ((ms / lowest).ln() > noise).then_some(Faster { setting, ms: lowest, noise })
    }

    /// 2.4: the first run, explained.
    pub(super) fn first(&self) -> Option<Finding> {
        let setting = self.options.random(1);
        let run = self.runs.iter().find(|run| run.setting == setting && run.usable().is_some())?;
        let summary = run.usable()?;
        let threads = f64::from(setting.threads);
        let mut sentence = format!(
            "{}: {:.0} I/Os per second, {:.1} MiB/s in all, about {:.0} per thread",
            setting.short(),
            summary.iops,
            summary.mib_per_s,
            summary.iops / threads
        );
        if let Some(ms) = summary.latency_ms {
            sentence.push_str(&format!(", {ms:.3} ms on average"));
        }
        sentence.push('.');
        if let Some(residual) = summary.residual {
            sentence.push_str(&format!(
                " Rate times latency is {:+.2} % off the {} outstanding I/Os.",
                residual * 100.0,
                setting.total_outstanding()
            ));
        }
        if let Some(half) = summary.half_width {
            sentence.push_str(&format!(
                " Inside this run the mean is known within ±{:.2} %; another run may differ by more.",
                half * 100.0
            ));
        }
        let mut decision = decision::plain(Rule::Figure, "pretest-1", "measured", &sentence);
        decision.insert("value".to_owned(), json!(summary.iops));
        decision.insert("flags".to_owned(), json!(summary.flags));
        decision.insert("evidence".to_owned(), json!([
            { "name": "residual", "value": summary.residual, "arithmetic": "X·L/N − 1" },
            { "name": "write_share", "value": summary.write_share, "arithmetic": "achieved" },
            { "name": "cpu_us_per_io", "value": summary.cpu_us_per_io, "arithmetic": "of the whole machine" },
        ]));
        Some(Finding {
            id: "pretest-1".to_owned(),
            title: "The first run, explained".to_owned(),
            sentence,
            step: Step::PretestOne.keyword().to_owned(),
            decision,
            runs: vec![run.run],
            table: None,
        })
    }
}

/// A setting with more outstanding I/Os whose mean latency is lower than that of one alone.
struct Faster<'a> {
    setting: &'a Setting,
    /// Mean latency in milliseconds; the median over its runs.
    ms: f64,
    /// By how much less, as a share, it might be by chance.
    noise: f64,
}

/// A percentile with its mark, which is never left out: in brackets where fewer than ten I/Os lie above it (5.4).
fn with_mark(ms: f64, mark: Option<&str>) -> String {
    let Some(mark) = mark else { return format!("{ms:.3} ms (mark unknown)") };
    // What it rests on, and what is said of its episodes.
    let (on, episodes) = mark.split_at(mark.find("; ").unwrap_or(mark.len()));
    match on {
        "good" => format!("{ms:.3} ms ({on}{episodes})"),
        _ if on.starts_with("weak") => format!("[{ms:.3} ms] ({on} above it{episodes})"),
        _ => format!("{ms:.3} ms ({on} above it{episodes})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_percentile_is_said_without_its_mark() {
        let check = |count: u64, wanted: &str| {
            let (ms, on) = told_with_mark(&json!(0.6464), 99.0, count, Some((60, 60)));
            let said = ms.as_f64().map_or("-".to_owned(), |ms| with_mark(ms, on.as_str()));
            assert_eq!(said, wanted, "{count} I/Os");
        };
        check(20_000, "0.646 ms (good)");
        check(2_000, "0.646 ms (fair: 20 I/Os above it)");
        check(400, "[0.646 ms] (weak: 4 I/Os above it)");
        check(100, "-");
        assert_eq!(with_mark(0.6464, None), "0.646 ms (mark unknown)");
        let short = told_with_mark(&json!(0.6464), 99.0, 2_000, Some((8, 8))).1;
        let said = with_mark(0.6464, short.as_str());
        assert_eq!(said, "0.646 ms (fair: 20 I/Os above it; episodes not told: 8 intervals)");
        let few = told_with_mark(&json!(0.6464), 99.0, 20_000, Some((2, 60))).1;
        let said = with_mark(0.6464, few.as_str());
        assert_eq!(said, "0.646 ms (good; few episodes: in 2 of 60 intervals)");
    }
}
