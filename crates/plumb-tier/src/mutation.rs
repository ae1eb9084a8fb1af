//! Rules that tests can switch off, to prove that the checker notices.
//!
//! Outside of tests [`active`] is a constant `false`, and nothing of this is in the program.

macro_rules! rules {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule of the engine that can be broken on purpose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Mutation {
            $($(#[$doc])* $name,)*
        }

        impl Mutation {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

rules! {
    // Journal.
    /// A commit is reported when the frame was written, not when it was flushed.
    CommitUnflushed,
    /// A commit is reported when one copy has it.
    CommitFirstCopy,
    /// Replay reads on into remains of an earlier run: neither chain nor epoch are looked at.
    RemainsAccepted,
    /// The checkpoint page is written without waiting for the pages that it names.
    CheckpointEarly,
    /// Superblocks are mended beside the one copy that is newest, and not beside two that are alike.
    LoneCopyKept,
    /// Two copies of a superblock that may lie in a disk's cache alone are kept, and those below them are written over (LAY-2).
    UnflushedPairKept,
    /// Copies of a superblock that are all alike are taken for durable, whichever the update before wrote last (LAY-2).
    AlikeAreSure,
    /// An update of superblocks begins with the half that the last one, which failed in the other half, left whole (LAY-2).
    SpoiltHalfKept,
    /// A disk that has a generation in one copy, which others confirm, counts as one that has it without them.
    LoneCopyHasIt,
    /// Pages that a checkpoint replaces are free as soon as an index page names others.
    IndexInPlace,
    /// The ring is written over although no checkpoint freed it.
    RingOverrun,
    /// A place counts as up to date once its extent leaves it, and not when the record of that is durable.
    VacatedUpToDate,
    /// A checkpoint leaves out the open extents.
    CheckpointForgetsOpen,
    /// A checkpoint leaves out which disks are away.
    CheckpointForgetsLost,
    /// A checkpoint leaves out first writes that are not settled.
    CheckpointForgetsFirst,
    /// The loss of disks may use the room of the ring that starts need.
    LastRoomUsed,
    /// A standstill is asked for without anything to do in it.
    StandsForEver,
    /// What begins behind a standstill counts from before it.
    StandsOutOfTime,
    /// A flush that fails while metadata is written is not remembered of a disk that has data, too.
    FlushForgotten,
    /// A disk is named as one that has journal and tree without a copy of them.
    CopyNamedFirst,
    // Mirror and checksums.
    /// A write is acknowledged when the first copy has it.
    AckFirstCopy,
    /// In-place writes begin before the intent is durable.
    NoIntent,
    /// The loss of a disk marks only the extent whose write failed.
    LossMarksOne,
    /// The loss of a disk is not made durable before the acknowledgement.
    LossUnrecorded,
    /// Reads take stale copies.
    ReadStale,
    /// A write counts slots that it holds and will not use.
    SlotsMiscounted,
    /// FLUSH leaves out the second disk.
    FlushOneDisk,
    /// Overlapping writes are not kept apart.
    NoRangeLock,
    /// A block whose first write is not durable is overwritten in place.
    OverwriteTentative,
    /// Checksums are committed without flushing the data first.
    CommitBeforeFlush,
    /// The copies of a log are not flushed before the journal says that it is durable.
    LogUnflushed,
    /// FUA is acknowledged like any write.
    FuaIgnored,
    /// A freed slot is handed out before the record that freed it is durable.
    SlotReusedEarly,
    /// A first write is acknowledged before its checksum record is written.
    AckBeforeCrcFirst,
    /// Extents are closed while their writes are not durable.
    CloseEarly,
    /// Blocks are not verified when they are read.
    ReadUnverified,
    /// A returned disk is taken for in sync.
    ReturnUnsynced,
    /// A place whose copy failed is taken for up to date, because its disk is needed.
    FailedCopyTrusted,
    /// The last copy that is in sync is taken for stale because its disk is away.
    LastCopyMarked,
    /// A first write that no copy took stays in the journal.
    FailedFirstKept,
    /// An extent closes although a write over old content failed on all copies of a block.
    FailedOverwriteClosed,
    /// A copy is taken for equal to the others although its disk did not take what would have made it so.
    UnequalTrusted,
    /// The last copies of an extent that are in sync are marked where they could not be made equal.
    LastEqualMarked,
    /// What a read takes again, because it began anew, is counted again.
    CountedTwice,
    /// Whoever copies an extent does not learn that blocks of it were settled.
    MoveForgetsSettled,
    /// Whoever waits for a block to be settled goes on after the next standstill, whatever was done in it.
    SettledOnce,
    /// What a crash left on one disk before it was away is taken for a part that went on.
    LeftoverIsFork,
    /// What a crash left on a disk that was away already, under which nobody served, is taken for a part that went on.
    UnservedIsSplit,
    /// A start forgets the lists of voters that others may still go by.
    ListsForgotten,
    /// Older lists of voters are in force until all new voters have the generation, though half of those on them have it.
    ToldListsKept,
    /// A disk that left with a generation that the others may lack is not asked.
    LeaverUnseen,
    /// First writes that a start could not confirm are written over in place.
    UnconfirmedOverwritten,
    /// What a start confirmed is not durable when it cannot make a checkpoint.
    ConfirmedInMemory,
    /// What no copy of a log has is lost, whatever its home holds.
    HomeUnasked,
    /// What nobody has of a log holds its tail.
    LineHeldByRot,
    /// What of a log cannot be read counts as what nobody has.
    UnreadGivenUp,
    /// Copies of a log that rot stay as they are.
    LogUnhealed,
    /// A run of blocks that no copy gives as a whole is lost, whichever copies have its blocks.
    RunsUndivided,
    /// A healed copy is not durable before its block may be written over.
    HealUnflushed,
    /// A copy is healed in an extent that is closed.
    HealUnopened,
    /// A copy whose write failed is out of date in memory only.
    FailedCopyUnrecorded,
    /// What lies where checksums are lost is read without a word.
    UnverifiedRead,
    /// A block whose checksum is lost is unwritten when a write over it does not come about.
    UnverifiedZeroed,
    /// What an operator accepts is taken before all copies have it durably.
    AcceptedUnflushed,
    /// Disks that are away do not miss what is accepted.
    AcceptedUnopened,
    /// A disk that gets its vote back gets journal and map later.
    VoteFirst,
    /// What a disk lacks of metadata and logs is copied from the first that has it, whatever it holds.
    RotCopied,
    /// Checksums that no checkpoint has written yet are dropped from memory.
    UnwrittenSumsDropped,
    /// A leaf of checksums that changes is written without those that are not in memory.
    RestOfLeafForgotten,
    /// A start leaves out who has journal and map before it knows whether it can read them without.
    LeftOutUnasked,
    /// A start that leaves a disk out settles what was open with little room left in the ring.
    CrowdedSettled,
    /// Who has no journal and map is not asked for a page that nobody else has.
    OthersUnasked,
    /// What is left of checksums that nobody has is written anew, and not asked for again.
    LostSumsDropped,
    /// Who had the last copy of an open extent gets no mark when another disk has it in sync.
    LastHolderUnmarked,
    /// A block that verifies nowhere is left out where a disk is brought up to date.
    LostLeftOut,
    /// What is decided late of a block is read before all copies have it durably.
    LateSettleUnflushed,
    /// What a start left for later is read and written before it is settled (RES-3).
    DeferredRead,
    /// A round closes extents that a start left for later.
    DeferredClosed,
    /// A log that is read again once a disk with it is back goes on, and copies of it that are away are taken for whole (WBC-1).
    ReturnedLogShared,
    /// What a start left for later is read before all copies have it durably.
    DeferredUnflushed,
    // Write-back cache.
    /// A block whose line is clean is written at its home, past the log.
    CleanWrittenDirectly,
    /// Records are written over that are still needed.
    LogOverrun,
    /// A record begins whether or not there are slots for all its copies.
    LogSlotsUnasked,
    /// The tail passes a record with one line that is not at home.
    TailPassesDirty,
    /// Finishing an old destage cleans a newer line.
    NewLineCleaned,
    /// A read does not hold its record.
    ReadUnpinned,
    /// A line is clean although its home was not flushed.
    HomeUnflushed,
    /// A write is acknowledged when one copy of the log has its record.
    LogFirstCopy,
    /// A write is acknowledged before its record is written.
    AckBeforeLog,
    /// An extent with live lines is unmapped.
    LinesUnmapped,
    /// Writes that wait for room in the log fail as soon as a disk hangs.
    RoomGivenUpEarly,
    /// They get all their time anew whenever a disk fails, also one that stays for what only it holds (WBC-4).
    RoomRenewed,
    /// Writes over live lines go home.
    LinesIgnored,
    /// A destage and a write of the same blocks are not kept apart.
    DestageUnlocked,
    /// Lines are clean, and the tail has passed them, before the journal says so durably.
    LogRoundEarly,
    // Rebuild.
    /// A rebuilt place is taken for in sync before anything was copied there.
    RebuiltUnmarked,
    /// A generation names the new disk before the marks on it are durable.
    RebuildMarksLate,
    // Moves.
    /// A move is committed while its new place is not durable.
    MoveUnflushed,
    /// What a request writes while its extent is copied is not copied again.
    MoveForgetsWrite,
    /// What a destage writes while its extent is copied is not copied again.
    MoveForgetsDestage,
    /// Writes are not held while the last blocks are copied.
    MoveUnheld,
    /// What is copied is not verified.
    MoveUnverified,
    /// The old place is somebody else's before the record that frees it is durable.
    MovedSlotReusedEarly,
    /// The old place is somebody else's while it is still read.
    MovedReadersIgnored,
    /// A start takes the blocks of a moved extent for unwritten.
    MovedSumsForgotten,
    /// What moves to another disk is taken for arrived, and was not copied.
    MoveUncopied,
    /// A move begins without a durable mark of what has not arrived.
    MoveUnmarked,
    /// A row changes, and the journal says nothing of its other copies.
    MarksImplied,
    // Recovery.
    /// Remains of an earlier run are read on from the log.
    LogRemainsAccepted,
    /// A log copy that missed records is still read.
    LogCopyKept,
    /// A log that a start has not read is closed where the last copy of it is lost.
    LogClosedUnread,
    /// Copies of the log are not made equal.
    LogCopiesDiffer,
    /// Data of the log's records is not verified at a start.
    LogDataUnverified,
    /// The log's epoch is not raised.
    LogEpochKept,
    /// A copy of the log on a disk that failed once and stayed is never made again.
    LogCopyForgotten,
    /// A returned copy of the log is taken for current.
    LogReturnUncopied,
    /// A returned copy of the log is current before it is durable.
    LogReturnUnflushed,
    /// A copy of the log that is current again is so in memory only.
    LogCurrentUnpublished,
    /// An extent that opens in the journal is not stale on disks that are away then.
    ReplayedOpenUnmarked,
    /// A start does not write down that a disk is here of which the journal says that it is away.
    DiskBackUnrecorded,
    /// A checkpoint leaves out the tails of logs.
    CheckpointForgetsTail,
    /// Copies that differ are left so.
    NoEqualise,
    /// A first write found on one copy is committed before the others hold it.
    ConfirmBeforeFlush,
    /// A first write found on one copy is committed though another one that is up to date does not hold it.
    ConfirmedUnheld,
    /// An unverified first write is taken for an interrupted overwrite.
    TentativeTrusted,
    /// What is mapped is out of date where all was once, though it lay nowhere then.
    UnmappedStayStale,
    /// A copy of trees that have grown, of which no checkpoint wrote the index pages, is taken for whole.
    GrownTreesCopied,
    /// What is asked of a disk while another one hangs shares the time of that one.
    TimeOutShared,
    /// Disks are given up by what the engine was told before it stood still.
    BlamedUnheard,
    /// A move of an extent that nobody writes to goes on copying what does not verify.
    QuietMovesOn,
    /// The tail of a cache's log passes what is superseded by records that were written behind the flush of its round.
    TailUnsealed,
    /// Copies of a cache's log that a start made equal are not flushed.
    LogRepairUnflushed,
    /// A disk that was asked for before it was taken offline comes back.
    OfflineOverruled,
    /// Slots that a disk does not answer have no others in their place.
    HungNotReplaced,
    /// A journal or log that cannot be read is taken to end there.
    UnreadEndsJournal,
    /// A disk that failed a flush of what nobody needs at once stays, and nothing is taken for durable for its sake (C10).
    UnflushedStays,
    /// A place is given up while what left it last could be back there after a crash.
    PlaceGivenUpEarly,
    /// A place that was emptied is given up, and the journal says nothing of the copies of its row.
    PlaceGivenUpUntold,
    /// The slot that a move gives back goes to the next move, whoever waits for it.
    WaitersPassedOver,
    /// Disks that fail are done without for the sake of a virtual disk that is only made now.
    UnmadeGains,
    /// Moves go on whose copy a failed flush was for (C10).
    MovesOutliveFlush,
    /// A frame that is damaged ends the journal, whatever those behind it say of it (JRN-1).
    RottenEnd,
    /// The pad at the ring's end is taken for the frame behind it, which then does not say that a start is one.
    PadIsFrame,
    /// Open extents are not examined.
    NoSettle,
    /// Journal copies are not made equal.
    JournalCopiesDiffer,
    /// The epoch is not raised.
    EpochKept,
    /// Only half of the voters are enough to start.
    HalfStarts,
    /// A disk that was put back as it had been before is taken for current.
    OldCopyTaken,
    /// Extents are opened however many are open.
    OpenWithoutLimit,
    /// Two extents may be open: no rule is broken.
    FewAreOpen,
    /// The same, and a start closes what is open and not settled.
    UndecidedClosed,
    /// A checkpoint names each place that is out of date by itself.
    MarksOneByOne,
    /// What could not be settled is tried again at each read.
    TriedEachTime,
    // Virtual disks beside each other.
    /// What is left of a cut range at the end of a long list is nobody's, not even a removed one's.
    RestOfCutDropped,
    /// A log of which no copy is here is taken for an empty one.
    LostLogTakenAsEmpty,
    /// A disk that holds the last copy of something of one virtual disk stays, and FLUSH fails for all.
    LastCopyHoldsAll,
    /// A copy of a log that is on a disk that was lost is no copy that is missed.
    LostLogUntold,
    /// Whoever is given up is told as rebuilt on others, whether they have room or not.
    NoRoomUntold,
    /// Heat ages by a clock that is behind what was kept.
    HourSetBack,
    // Disks.
    /// An I/O that moved fewer bytes than it was to is taken for done.
    ShortTaken,
}

#[cfg(test)]
impl Mutation {
    /// Rules whose absence the crash checker cannot be relied upon to see, and what does.
    pub(crate) const SEEN_ELSEWHERE: &[(Self, &str)] = &[
        (Self::LogSlotsUnasked, "many caches in one pool: torture/many_caches.rs"),
        (Self::PadIsFrame, "a start at the end of the ring: torture/ring_end.rs"),
        (Self::SlotsMiscounted, "more writes than slots: torture/few_slots.rs"),
        (Self::ShortTaken, "writes that end short on all copies: torture/short.rs"),
        (Self::DeferredUnflushed, "what was read after a start: torture/deferred.rs"),
        (
            Self::ReturnedLogShared,
            "a log whose disks come back one after the other: torture/half_done.rs",
        ),
        (
            Self::UnflushedPairKept,
            "superblocks whose flush failed, read back from the disk's cache: half.rs",
        ),
        (Self::AlikeAreSure, "updates of which any flush fails, all that there can be: half.rs"),
        (Self::SpoiltHalfKept, "updates that fail in a row, all that there can be: half.rs"),
        (Self::LoneCopyKept, "copies of a superblock, all that there can be: half.rs"),
        (Self::UnservedIsSplit, "what starts left that nobody served: torture/cells.rs"),
        (Self::ToldListsKept, "a disk that is lost while another one leaves: torture/leaving.rs"),
        (Self::VacatedUpToDate, "a discard of what a disk lacks: torture/vacated.rs"),
        (Self::LeaverUnseen, "histories in which a disk leaves: torture/leaving.rs"),
        (Self::LoneCopyHasIt, "superblocks that starts write in part: torture/parts.rs"),
        (Self::IndexInPlace, "trees of two levels: torture/wide.rs"),
        (Self::RemainsAccepted, "tests of the frames' format"),
        (Self::LogRemainsAccepted, "tests of the records' format"),
        (Self::ConfirmBeforeFlush, "crashes within starts: torture/starts.rs"),
        (Self::ConfirmedUnheld, "a history that was broken once: torture/tests.rs"),
        (Self::UnmappedStayStale, "what is mapped behind an older copy: torture/older_copies.rs"),
        (Self::BlamedUnheard, "an engine that stood still: torture/stalled.rs"),
        (Self::QuietMovesOn, "what is spoilt and moves: torture/faults.rs"),
        (Self::TailUnsealed, "properties of logs: properties.rs"),
        (Self::LogRepairUnflushed, "a log on disks without a journal: torture/log_elsewhere.rs"),
        (Self::OfflineOverruled, "disks that are taken offline: torture/offline.rs"),
        (Self::HungNotReplaced, "a disk that hangs with all slots: torture/hung_slots.rs"),
        (Self::FewAreOpen, "no rule: torture/undecided.rs"),
        (Self::UndecidedClosed, "starts behind starts: torture/undecided.rs"),
        (Self::MarksOneByOne, "a small ring and many extents: torture/full_journal.rs"),
        (Self::GrownTreesCopied, "virtual disks that are added: torture/grown.rs"),
        (Self::JournalCopiesDiffer, "what each copy leads to after a start: torture/starts.rs"),
        (
            Self::RoomRenewed,
            "a full cache before the last disk of its home, which fails: torture/faults.rs",
        ),
        (Self::FlushForgotten, "flushes that fail behind a generation: torture/hanging.rs"),
        (Self::LogClosedUnread, "a start that loses a log before it has read it: torture/apart.rs"),
        (Self::CopyNamedFirst, "a start from a copy that was made anew: torture/spread.rs"),
        (Self::StandsOutOfTime, "requests beside a resync of slow disks: torture/hanging.rs"),
        (Self::RoomGivenUpEarly, "a full cache beside a disk that hangs: torture/faults.rs"),
        (Self::MovedReadersIgnored, "the model of moves"),
        (Self::MoveUnverified, "a test that spoils what is moved"),
        (Self::MoveUnmarked, "histories in which a disk leaves: torture/leaving.rs"),
        (
            Self::MarksImplied,
            "a row that changes after both its disks were away: torture/last_copies.rs",
        ),
        (Self::MoveUncopied, "the same"),
        (
            Self::LastCopyMarked,
            "two disks that are away one after the other: torture/last_copies.rs",
        ),
        (Self::TimeOutShared, "starts whose disks hang: torture/unread.rs"),
        (Self::MovesOutliveFlush, "moves beside a flush that fails: torture/moved_unflushed.rs"),
        (Self::PlaceGivenUpEarly, "a move out of a disk that leaves: torture/leaving.rs"),
        (
            Self::PlaceGivenUpUntold,
            "a disk that is away while another one is emptied: torture/leaving.rs",
        ),
        (Self::WaitersPassedOver, "a first write beside moves: torture/waiting.rs"),
        (
            Self::UnmadeGains,
            "a virtual disk that is made beside flushes that fail: torture/apart.rs",
        ),
        (Self::UnflushedStays, "a history that broke a promise once: torture/tests.rs"),
        (Self::RottenEnd, "rot in all copies of a frame: torture/rotten_end.rs"),
        (Self::UnreadEndsJournal, "journals that cannot be read: torture/unread.rs"),
        (Self::FailedFirstKept, "a first write that fails: torture/last_copies.rs"),
        (Self::UnequalTrusted, "starts that cannot make copies equal: torture/half_done.rs"),
        (Self::SettledOnce, "several extents to settle at a time: torture/half_done.rs"),
        (Self::LastEqualMarked, "double faults at a start: torture/double_faults.rs"),
        (Self::HomeUnasked, "rot in logs: torture/log_rot.rs"),
        (Self::LineHeldByRot, "the same"),
        (Self::LogUnhealed, "the same"),
        (Self::UnreadGivenUp, "the same"),
        (Self::RunsUndivided, "blocks that rot on one disk each: torture/double_faults.rs"),
        (
            Self::MoveForgetsSettled,
            "a failed write while its extent moves: torture/double_faults.rs",
        ),
        (Self::UnverifiedRead, "lost pages of checksums: torture/unverified.rs"),
        (Self::UnverifiedZeroed, "the same"),
        (Self::AcceptedUnflushed, "the same"),
        (Self::AcceptedUnopened, "the same"),
        (Self::VoteFirst, "a disk that gets its vote back: torture/last_copies.rs"),
        (
            Self::LastHolderUnmarked,
            "disks of a mirror that are away one after the other: torture/apart.rs",
        ),
        (Self::LostLeftOut, "the same"),
        (Self::UnwrittenSumsDropped, "no room for checksums: torture/short_of_memory.rs"),
        (Self::RestOfLeafForgotten, "the same"),
        (Self::CrowdedSettled, "no room behind an older checkpoint: torture/spared.rs"),
        (Self::LeftOutUnasked, "rot and a disk that is away: torture/spared.rs"),
        (Self::OthersUnasked, "rot and a disk that is back: torture/spared.rs"),
        (Self::LostSumsDropped, "checksums that a disk that is away has: torture/spared.rs"),
        (Self::RotCopied, "rot while a pool serves: torture/live_rot.rs"),
        (Self::LeftoverIsFork, "a disk that comes back with what a crash left: torture/parts.rs"),
        (Self::ListsForgotten, "disks lost while others learn of it: torture/parts.rs"),
        (Self::CountedTwice, "a read beside the cache that begins anew: torture/half_done.rs"),
        (Self::LastRoomUsed, "a ring that is full: torture/full_journal.rs"),
        (Self::LogCopyForgotten, "a log whose disk lost its vote: torture/half_done.rs"),
        (Self::FailedOverwriteClosed, "an overwrite that fails: torture/half_done.rs"),
        (Self::UnconfirmedOverwritten, "starts that cannot flush: torture/last_copies.rs"),
        (Self::ConfirmedInMemory, "torture/confirmed.rs"),
        (Self::OpenWithoutLimit, "writes to many extents: torture/half_done.rs"),
        (Self::TriedEachTime, "reads of a bad sector after a crash: torture/half_done.rs"),
        (Self::RestOfCutDropped, "long lists of virtual disks: engine/ranges.rs"),
        (Self::LostLogTakenAsEmpty, "virtual disks without their logs: torture/apart.rs"),
        (Self::LastCopyHoldsAll, "the same"),
        (Self::HourSetBack, "a clock that is set right: torture/clock.rs"),
        (Self::NoRoomUntold, "disks that are given up without room: torture/faults.rs"),
        (Self::LostLogUntold, "health, solid-state disks that are lost: torture/faults.rs"),
        (Self::FailedCopyTrusted, "a disk that is needed and does not take what it lacks"),
        (Self::HealUnflushed, "rot while a pool serves: torture/live_rot.rs"),
        (Self::HealUnopened, "torture/left_out.rs, as the next ones"),
        (Self::FailedCopyUnrecorded, "the same"),
        (Self::LateSettleUnflushed, "the same"),
        (Self::ReplayedOpenUnmarked, "the same"),
        (Self::CheckpointForgetsLost, "the same"),
        (Self::CheckpointForgetsFirst, "the same"),
        (Self::LogReturnUnflushed, "the same"),
        (Self::DiskBackUnrecorded, "the same"),
        (Self::LogRoundEarly, "the same"),
        (Self::LogCurrentUnpublished, "a log whose disk lost its vote: torture/half_done.rs"),
    ];
}

#[cfg(any(test, feature = "mutations"))]
mod switch {
    use super::Mutation;
    use std::cell::Cell;

    thread_local! {
        static ACTIVE: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Whether the rule is broken on this thread.
    #[inline]
    #[must_use]
    pub fn active(mutation: Mutation) -> bool {
        ACTIVE.get() == Some(mutation)
    }

    /// Breaks a rule on this thread, or none.
    pub fn set(mutation: Option<Mutation>) {
        ACTIVE.set(mutation);
    }
}

#[cfg(any(test, feature = "mutations"))]
pub use switch::{active, set};

/// Whether the rule is broken: never.
#[cfg(not(any(test, feature = "mutations")))]
#[inline(always)]
#[must_use]
pub const fn active(_: Mutation) -> bool {
    false
}
