//! Seeded generators of host I/O (spec 20). What they make is synthetic, and labelled so wherever it is shown.

use plumb_units::convert::{floor_u64, index, to_u64};
use plumb_units::{Nanos, parse_size};

use super::TraceIo;
use super::fit::{Class, can_be, ios_until_reused, zipf_classes};
use super::zipf::{Zipf, fit_theta, power_sums};
use crate::heat::{HostIo, HostIoKind};
use crate::random::Random;

/// Bytes of an extent of a generated space.
const EXTENT: u64 = 1 << 20;
const HOUR: u64 = 3_600_000_000_000;

/// Why a workload cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("workload '{spec}': {what}")]
#[diagnostic(code(plumb::trace::workload))]
pub struct WorkloadError {
    /// As it was given.
    pub spec: String,
    /// What is wrong.
    pub what: String,
    /// What to do.
    #[help]
    pub remedy: String,
}

/// Where the I/O goes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Uniform,
    /// Block after block, a share of them at random places.
    Sequential,
    /// Zipf over shuffled extents, of which a share changes place every hour.
    Zipf,
    /// A share of the space takes a share of the I/O.
    HotCold,
    /// The same, and the hot spot wanders.
    Moving,
    /// Zipf by day, little at night, when the whole space is read in order.
    Diurnal,
    /// 8 KiB, 30 % writes, zipf.
    Oltp,
    /// 512 KiB, whole tables in order.
    Olap,
    /// Disks of several kinds.
    Vms,
}

/// Name, kind, what it is.
const KINDS: [(&str, Kind, &str); 9] = [
    ("uniform", Kind::Uniform, "every block alike; reuse="),
    (
        "sequential",
        Kind::Sequential,
        "block after block, random=0 (percent) at random places instead",
    ),
    (
        "zipf",
        Kind::Zipf,
        "theta=0.99, or top1= and top10= (percent of I/O); change=0 (percent of extents an hour); reuse=",
    ),
    ("hotcold", Kind::HotCold, "space=10 (percent) takes io=90 (percent); reuse="),
    ("moving", Kind::Moving, "space=10 takes io=90, drift=100 (extents an hour)"),
    (
        "diurnal",
        Kind::Diurnal,
        "theta=0.99 from 8:00 to 18:00, a tenth of it at night, a scan from 2:00 to 4:00",
    ),
    ("oltp", Kind::Oltp, "8 KiB, 30 % writes, theta=0.99; reuse="),
    ("olap", Kind::Olap, "512 KiB, tables read in order, theta=0.9 over 64 tables"),
    ("vms", Kind::Vms, "disks=8: zipf, hot and cold, sequential in turn"),
];

/// What `reuse=` is.
pub const REUSE: &str = "reuse= (seconds) instead of rate: half of the I/Os come to an extent within so long of the one before on it";

/// The kinds of workloads: name and what else can be set.
#[must_use]
pub fn workload_kinds() -> Vec<(&'static str, &'static str)> {
    KINDS.iter().map(|(name, _, what)| (*name, *what)).collect()
}

/// I/Os per second that a workload can have.
const RATES: (f64, f64) = (1e-3, 1e7);

/// What the value of a setting must be.
fn range_of(key: &str) -> String {
    match key {
        "extents" => "name a whole number from 64 to 67108864".to_owned(),
        "rate" => format!("name a number of I/Os per second from {} to {}", RATES.0, RATES.1),
        "hours" => "name a number from 0.001 to 100000".to_owned(),
        "block" => "name a power of two from 512 to 1M".to_owned(),
        "seed" => "name a whole number below 2^64".to_owned(),
        "theta" => "name a number from 0 to 3".to_owned(),
        "reuse" => "name a number of seconds from 0.001 to 1000000000".to_owned(),
        "drift" => "name a number of extents per hour from 0 to 1000000000".to_owned(),
        "disks" => "name a whole number from 1 to 64".to_owned(),
        "space" => "name a percentage above 0 and below 100".to_owned(),
        _ => "name a percentage from 0 to 100".to_owned(),
    }
}

/// What is known of a workload that parameters are found by, and which of them are given.
#[derive(Debug, Default)]
struct Published {
    /// Shares of the I/O.
    top1: Option<f64>,
    top10: Option<f64>,
    /// Median of the re-reference interval, in seconds.
    reuse: Option<f64>,
    theta: bool,
    rate: bool,
}

/// A workload to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSpec {
    kind: Kind,
    /// Extents of 1 MiB.
    extents: u32,
    /// I/Os per second, in the mean.
    rate: f64,
    hours: f64,
    /// Share of writes.
    writes: f64,
    block: u64,
    seed: u64,
    theta: f64,
    change: f64,
    space: f64,
    io: f64,
    drift: f64,
    disks: u32,
    random: f64,
    fitted: Vec<FittedShare>,
}

/// A published share of the I/O, and what the law that comes nearest to all of them gives in its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FittedShare {
    /// Of the hottest so many percent of the extents.
    pub percent: u64,
    /// The share that was published, of 1.
    pub asked: f64,
    /// The share that they take in what is generated.
    pub reached: f64,
}

impl WorkloadSpec {
    /// Reads `KIND[:KEY=VALUE,...]`. Every kind has `extents` (of 1 MiB), `rate` (I/Os per second), `hours`, `writes`
    /// (percent), `block` (bytes, or 8K) and `seed`.
    ///
    /// # Errors
    /// An unknown kind or key, or a value that cannot be.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let refuse =
            |what: String, remedy: String| WorkloadError { spec: text.to_owned(), what, remedy };
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((_, kind, _)) = KINDS.iter().find(|(known, ..)| *known == name) else {
            let names: Vec<&str> = KINDS.iter().map(|(name, ..)| *name).collect();
            return Err(refuse(
                format!("there is no kind '{name}'"),
                format!("kinds: {}", names.join(", ")),
            ));
        };
        let mut spec = Self::of(*kind);
        let mut published = Published::default();
        let mut given = Vec::new();
        for pair in rest.split(',').filter(|pair| !pair.is_empty()) {
            let usual = format!(
                "every kind takes extents, rate, hours, writes, block and seed; {name}: {}",
                KINDS.iter().find(|(known, ..)| *known == name).map_or("", |(.., what)| what)
            );
            let Some((key, value)) = pair.split_once('=') else {
                return Err(refuse(format!("'{pair}' is no KEY=VALUE"), usual));
            };
            if !spec.has(key) {
                return Err(refuse(format!("{name} has no setting '{key}'"), usual));
            }
            if given.contains(&key) {
                return Err(refuse(
                    format!("{key} is given twice"),
                    "leave one of them out".to_owned(),
                ));
            }
            given.push(key);
            if spec.set(key, value, &mut published).is_none() {
                let remedy = range_of(key);
                return Err(refuse(format!("{key} cannot be '{value}' for {name}"), remedy));
            }
        }
        spec.fit(&published).map_err(|(what, remedy)| refuse(what, remedy.to_owned()))?;
        Ok(spec)
    }

    /// Takes over what is published of a workload as parameters.
    fn fit(&mut self, published: &Published) -> Result<(), (String, &'static str)> {
        let tops = [(1, published.top1), (10, published.top10)];
        let given: Vec<(u64, f64)> =
            tops.into_iter().filter_map(|(percent, share)| Some((percent, share?))).collect();
        let ranks = self.ranks().unwrap_or(self.extents);
        let first = |percent: u64| (u64::from(ranks) * percent / 100).max(1);
        let tops: Vec<(u32, f64)> = given
            .iter()
            .map(|(percent, share)| (u32::try_from(first(*percent)).unwrap_or(u32::MAX), *share))
            .collect();
        if !tops.is_empty() && published.theta {
            let remedy = "give one or the other";
            return Err(("theta is what top1 and top10 are to tell".to_owned(), remedy));
        }
        if let [(_, one), (_, ten)] = given[..]
            && one > ten
        {
            let what = "the top 1 % take more than the top 10 %, who they belong to".to_owned();
            return Err((what, "correct either share"));
        }
        if let ([(_, one), (_, ten)], [(first, _), (tenth, _)]) = (&given[..], &tops[..]) {
            can_be((*first, *one), (*tenth, *ten), ranks)
                .map_err(|what| (what, "correct either share, or give one of them only"))?;
        }
        if !tops.is_empty() {
            self.theta = fit_theta(ranks, &tops).ok_or_else(|| {
                let names: Vec<String> =
                    given.iter().map(|(percent, _)| format!("the top {percent} %")).collect();
                let what = format!("no zipf gives {} that share", names.join(" and "));
                (what, "use a share above an equal one, and below 100")
            })?;
            let upto: Vec<u32> = tops.iter().map(|(top, _)| *top).chain([ranks]).collect();
            let sums = power_sums(&upto, self.theta);
            let shares = given.iter().zip(&sums);
            let reached = |((percent, asked), sum): (&(u64, f64), &f64)| FittedShare {
                percent: *percent,
                asked: *asked,
                reached: sum / sums[tops.len()],
            };
            self.fitted = shares.map(reached).collect();
        }
        let Some(seconds) = published.reuse else { return Ok(()) };
        if published.rate || self.change > 0.0 {
            let what = "reuse= tells the rate of a load that stays as it is".to_owned();
            return Err((what, "leave out reuse, or rate and change"));
        }
        let rate = ios_until_reused(&self.classes()) / seconds;
        if !(RATES.0..=RATES.1).contains(&rate) {
            let what =
                format!("it takes {rate:.4} I/Os per second for extents to be used again so soon");
            return Err((
                what,
                "give another reuse or other extents: rates lie between 0.001 and 10 million",
            ));
        }
        self.rate = rate;
        Ok(())
    }

    /// The shares that theta was found by, with those that it gives; none where it was given itself.
    #[must_use]
    pub fn fitted(&self) -> &[FittedShare] {
        &self.fitted
    }

    /// Over how many ranks its law goes, where it has one.
    fn ranks(&self) -> Option<u32> {
        match self.kind {
            Kind::Olap => Some(64),
            Kind::Vms => Some((self.extents / self.disks).max(1)),
            Kind::Zipf | Kind::Diurnal | Kind::Oltp => Some(self.extents),
            Kind::Uniform | Kind::Sequential | Kind::HotCold | Kind::Moving => None,
        }
    }

    /// The extents by how much of the I/O they take, where that does not change.
    fn classes(&self) -> Vec<Class> {
        let extents = f64::from(self.extents);
        match self.kind {
            Kind::Zipf | Kind::Oltp => zipf_classes(self.extents, self.theta),
            Kind::HotCold => {
                let hot = f64::from(self.hot());
                let class = |extents: f64, io: f64| Class { extents, share: io / extents };
                vec![class(hot, self.io), class(extents - hot, 1.0 - self.io)]
            }
            _ => vec![Class { extents, share: 1.0 / extents }],
        }
    }

    /// How many extents are hot, where some are.
    fn hot(&self) -> u32 {
        let hot = floor_u64(f64::from(self.extents) * self.space);
        u32::try_from(hot).unwrap_or(u32::MAX).clamp(1, self.extents - 1)
    }

    /// As a text which [`WorkloadSpec::parse`] reads as this, with all that was not given or was found by published figures.
    #[must_use]
    pub fn parameters(&self) -> String {
        let percent = |share: f64| (share * 1e11).round() / 1e9;
        let name = KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |kind| kind.0);
        let mut text = format!(
            "{name}:extents={},rate={},hours={},writes={},block={},seed={}",
            self.extents,
            self.rate,
            self.hours,
            percent(self.writes),
            self.block,
            self.seed
        );
        let mut add = |key: &str, value: f64| {
            if self.has(key) {
                text.push_str(&format!(",{key}={value}"));
            }
        };
        add("theta", self.theta);
        add("change", percent(self.change));
        add("space", percent(self.space));
        add("io", percent(self.io));
        add("drift", self.drift);
        add("disks", f64::from(self.disks));
        add("random", percent(self.random));
        text
    }

    fn of(kind: Kind) -> Self {
        let base = Self {
            kind,
            extents: 100_000,
            rate: 100.0,
            hours: 48.0,
            writes: 0.3,
            block: 8192,
            seed: 1,
            theta: 0.99,
            change: 0.0,
            space: 0.1,
            io: 0.9,
            drift: 100.0,
            disks: 8,
            random: 0.0,
            fitted: Vec::new(),
        };
        match kind {
            Kind::Sequential => Self { block: 256 << 10, ..base },
            Kind::Olap => Self { block: 512 << 10, writes: 0.0, theta: 0.9, ..base },
            _ => base,
        }
    }

    /// Whether its kind has such a setting.
    fn has(&self, key: &str) -> bool {
        match key {
            "extents" | "rate" | "hours" | "writes" | "block" | "seed" => true,
            "theta" | "top1" | "top10" => self.is_ranked(),
            "change" => self.kind == Kind::Zipf,
            "space" | "io" => matches!(self.kind, Kind::HotCold | Kind::Moving),
            "drift" => self.kind == Kind::Moving,
            "disks" => self.kind == Kind::Vms,
            "random" => self.kind == Kind::Sequential,
            "reuse" => {
                matches!(self.kind, Kind::Uniform | Kind::Zipf | Kind::HotCold | Kind::Oltp)
            }
            _ => false,
        }
    }

    fn is_ranked(&self) -> bool {
        matches!(self.kind, Kind::Zipf | Kind::Diurnal | Kind::Oltp | Kind::Olap | Kind::Vms)
    }

    fn set(&mut self, key: &str, value: &str, published: &mut Published) -> Option<()> {
        let number = |low: f64, high: f64| {
            value.parse::<f64>().ok().filter(|value| (low..=high).contains(value))
        };
        let percent = || number(0.0, 100.0).map(|percent| percent / 100.0);
        match key {
            "extents" => {
                self.extents = value.parse().ok().filter(|n| (64..=1 << 26).contains(n))?;
            }
            "rate" => {
                self.rate = number(RATES.0, RATES.1)?;
                published.rate = true;
            }
            "hours" => self.hours = number(1e-3, 1e5)?,
            "writes" => self.writes = percent()?,
            "block" => {
                let block = parse_size(value, 4096).ok()?;
                self.block = Some(block)
                    .filter(|block| (512..=EXTENT).contains(block) && block.is_power_of_two())?;
            }
            "seed" => self.seed = value.parse().ok()?,
            "theta" => {
                self.theta = number(0.0, 3.0)?;
                published.theta = true;
            }
            "top1" => published.top1 = Some(percent()?),
            "top10" => published.top10 = Some(percent()?),
            "reuse" => published.reuse = Some(number(1e-3, 1e9)?),
            "random" => self.random = percent()?,
            "change" => self.change = percent()?,
            "space" => {
                self.space = percent().filter(|space| *space > 0.0 && *space < 1.0)?;
            }
            "io" => self.io = percent()?,
            "drift" => self.drift = number(0.0, 1e9)?,
            "disks" => {
                self.disks = value.parse().ok().filter(|disks| (1..=64).contains(disks))?;
            }
            _ => return None,
        }
        Some(())
    }

    /// Bytes of the space that it works on.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.extents) * EXTENT
    }

    /// Hours that it goes on for.
    #[must_use]
    pub fn hours(&self) -> f64 {
        self.hours
    }

    /// The I/Os.
    #[must_use]
    pub fn generate(&self) -> Generator {
        Generator::new(self.clone())
    }
}

/// The I/Os of a workload: an iterator that ends after its hours.
#[derive(Debug)]
pub struct Generator {
    spec: WorkloadSpec,
    random: Random,
    /// Exact time, for intervals shorter than a nanosecond add up.
    now: f64,
    hour: u64,
    zipf: Option<Zipf>,
    /// Extent of each rank.
    places: Vec<u32>,
    /// Bytes up to which each stream has come.
    streams: Vec<u64>,
}

/// What one I/O is.
struct Draw {
    volume: u32,
    kind: HostIoKind,
    offset: u64,
    len: u64,
}

impl Generator {
    fn new(spec: WorkloadSpec) -> Self {
        let mut random = Random::new(spec.seed);
        let ranks = spec.ranks();
        let zipf = ranks.map(|ranks| Zipf::new(ranks, spec.theta));
        let mut places: Vec<u32> = (0..ranks.unwrap_or(spec.extents)).collect();
        shuffle(&mut places, &mut random);
        let streams = vec![u64::MAX; index(spec.disks)];
        Self { spec, random, now: 0.0, hour: 0, zipf, places, streams }
    }

    fn chance(&mut self) -> f64 {
        self.random.below(1 << 52) as f64 / (1_u64 << 52) as f64
    }

    fn hour_of_day(&self) -> u64 {
        self.hour % 24
    }

    /// How busy it is now, as a share of the rate.
    fn activity(&self) -> f64 {
        match (self.spec.kind, self.hour_of_day()) {
            (Kind::Diurnal, 8..18 | 2..4) => 1.0,
            (Kind::Diurnal, _) => 0.1,
            _ => 1.0,
        }
    }

    /// A new hour: a share of the extents changes place.
    fn next_hour(&mut self) {
        self.hour += 1;
        let count = floor_u64(f64::from(self.spec.extents) * self.spec.change);
        if count == 0 {
            return;
        }
        // Who changes place does so with the others that do: a cycle through distinct ranks.
        let ranks = to_u64(self.places.len());
        let mut chosen = std::collections::BTreeSet::new();
        while to_u64(chosen.len()) < count.min(ranks) {
            chosen.insert(plumb_units::convert::to_usize(self.random.below(ranks)));
        }
        let mut cycle: Vec<usize> = chosen.into_iter().collect();
        shuffle(&mut cycle, &mut self.random);
        for pair in cycle.windows(2) {
            self.places.swap(pair[0], pair[1]);
        }
    }

    /// A random block within an extent.
    fn within(&mut self, extent: u64) -> u64 {
        extent * EXTENT + self.random.below(EXTENT / self.spec.block) * self.spec.block
    }

    fn ranked(&mut self) -> u64 {
        let rank = self.zipf.as_ref().map_or(0, |zipf| zipf.draw(&mut self.random));
        u64::from(self.places[index(rank)])
    }

    fn hot_or_cold(&mut self) -> u64 {
        let (extents, hot) = (u64::from(self.spec.extents), u64::from(self.spec.hot()));
        let place = match self.chance() < self.spec.io {
            true => self.random.below(hot),
            false => hot + self.random.below(extents - hot),
        };
        match self.spec.kind {
            Kind::Moving => {
                let drifted = floor_u64(self.now / HOUR as f64 * self.spec.drift);
                (place + drifted) % extents
            }
            _ => u64::from(self.places[plumb_units::convert::to_usize(place)]),
        }
    }

    /// The next piece of a stream over `extents` from `first` on; it begins anew at its end.
    fn streamed(&mut self, stream: usize, first: u64, extents: u64, len: u64) -> u64 {
        let (start, end) = (first * EXTENT, (first + extents) * EXTENT);
        let at = Some(self.streams[stream]).filter(|at| (start..end).contains(at)).unwrap_or(start);
        self.streams[stream] = at + len;
        at
    }

    fn draw(&mut self) -> Draw {
        let kind =
            if self.chance() < self.spec.writes { HostIoKind::Write } else { HostIoKind::Read };
        let (extents, len) = (u64::from(self.spec.extents), self.spec.block);
        let (mut volume, mut kind, mut len) = (0, kind, len);
        let offset = match self.spec.kind {
            Kind::Uniform => {
                let extent = self.random.below(extents);
                self.within(extent)
            }
            Kind::Sequential => match self.chance() < self.spec.random {
                true => {
                    let extent = self.random.below(extents);
                    self.within(extent)
                }
                false => self.streamed(0, 0, extents, len),
            },
            Kind::Zipf | Kind::Oltp => {
                let extent = self.ranked();
                self.within(extent)
            }
            Kind::HotCold | Kind::Moving => {
                let extent = self.hot_or_cold();
                self.within(extent)
            }
            Kind::Diurnal if (2..4).contains(&self.hour_of_day()) => {
                (kind, len) = (HostIoKind::Read, 256 << 10);
                self.streamed(0, 0, extents, len)
            }
            Kind::Diurnal => {
                let extent = self.ranked();
                self.within(extent)
            }
            Kind::Olap => self.table(len),
            Kind::Vms => {
                let disk = self.random.below(u64::from(self.spec.disks));
                volume = u32::try_from(disk).unwrap_or(0);
                self.of_disk(volume, len)
            }
        };
        Draw { volume, kind, offset, len }
    }

    /// A piece of the table that is being read; then one by its rank.
    fn table(&mut self, len: u64) -> u64 {
        let size = (u64::from(self.spec.extents) / 64).max(1);
        let at = self.streams[0];
        if at == u64::MAX || at.is_multiple_of(size * EXTENT) {
            let table = self.ranked();
            self.streams[0] = table * size * EXTENT;
        }
        let at = self.streams[0];
        self.streams[0] = at + len;
        at
    }

    fn of_disk(&mut self, disk: u32, len: u64) -> u64 {
        let size = u64::from(self.spec.extents / self.spec.disks).max(1);
        match disk % 3 {
            0 => {
                let extent = self.ranked();
                self.within(extent)
            }
            1 => {
                let hot = (size / 10).max(1);
                let extent = match self.chance() < 0.9 {
                    true => self.random.below(hot),
                    false => self.random.below(size),
                };
                self.within(extent)
            }
            _ => self.streamed(index(disk), 0, size, len),
        }
    }
}

/// Fisher and Yates.
fn shuffle<T>(items: &mut [T], random: &mut Random) {
    for nth in (1..items.len()).rev() {
        items.swap(nth, plumb_units::convert::to_usize(random.below(to_u64(nth + 1))));
    }
}

impl Iterator for Generator {
    type Item = TraceIo;

    fn next(&mut self) -> Option<TraceIo> {
        let rate = self.spec.rate * self.activity();
        let wait = -(1.0 - self.chance()).ln() / rate * 1e9;
        self.now += wait;
        while floor_u64(self.now) / HOUR > self.hour {
            self.next_hour();
        }
        if self.now > self.spec.hours * HOUR as f64 {
            return None;
        }
        let Draw { volume, kind, offset, len } = self.draw();
        let io = HostIo { kind, offset, len };
        Some(TraceIo { at: Nanos(floor_u64(self.now)), volume, io })
    }
}
