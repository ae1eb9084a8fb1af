//! The thread that owns an engine, and the bounded ring by which requests reach it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_io::{Bell, FlushQueue, OpenQueueError, QueueSpec};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::SpaceFile;
use super::client::{Ends, SpaceClient};
use crate::core::{Counters, Halt};
use crate::engine::{Engine, Request};
use crate::format::Config;

/// Requests in the ring, at most: whoever finds it full waits.
const RING: usize = 1024;
/// How long to wait for devices while requests may arrive, where nobody can end the wait.
const GLANCE: Nanos = Nanos(20_000);
/// How often to look after what goes by the clock.
const TICK: Duration = Duration::from_millis(10);

/// A request on its way to the owner.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) session: u32,
    pub(super) slot: u32,
    pub(super) request: Request,
    pub(super) buffer: Vec<u8>,
}

/// Its answer on the way back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) slot: u32,
    pub(super) result: i32,
    pub(super) buffer: Vec<u8>,
}

/// What reaches the owner.
#[derive(Debug)]
pub(super) enum Message {
    Join { session: u32, answers: SyncSender<Answer> },
    Leave { session: u32 },
    Ask(Ask),
    Stop,
}

/// How the owner is told that there is something for it while it waits for its devices.
#[derive(Debug)]
pub(super) struct Doorbell {
    bell: Option<Bell>,
    /// The owner waits in its queue, or is about to.
    waits: AtomicBool,
}

impl Doorbell {
    fn new(bell: Option<Bell>) -> Self {
        Self { bell, waits: AtomicBool::new(false) }
    }

    /// After a message was put into the ring.
    pub(super) fn ring(&self) {
        // Either this sees that the owner waits, or the owner, which looks into the ring once more before it
        // does, sees the message.
        fence(Ordering::SeqCst);
        if let Some(bell) = &self.bell
            && self.waits.load(Ordering::Relaxed)
            && self.waits.swap(false, Ordering::Relaxed)
        {
            bell.ring();
        }
    }

    /// The owner is about to wait: it has to look into the ring once more.
    fn begin_wait(&self) {
        self.waits.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn end_wait(&self) {
        self.waits.store(false, Ordering::Relaxed);
    }
}

/// How a server ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEnd {
    /// What happened to data meanwhile.
    pub counters: Counters,
    /// Requests that came from other threads.
    pub forwarded: u64,
    /// The configuration at the end: disks that were lost are missing in it.
    pub config: Config,
    /// Why it could not end cleanly; the next start recovers.
    pub halt: Option<Halt>,
}

/// An engine on a thread of its own.
#[derive(Debug)]
pub struct SpaceServer {
    thread: Option<JoinHandle<ServerEnd>>,
    asks: SyncSender<Message>,
    doorbell: Arc<Doorbell>,
    forwarded: Arc<AtomicU64>,
    sessions: AtomicU32,
    config: Config,
    engine: String,
}

impl SpaceServer {
    /// Starts an engine on a new thread: `start` is called there.
    ///
    /// # Errors
    /// What `start` fails with.
    ///
    /// # Panics
    /// When no thread can be started.
    pub fn spawn<Q, E, F>(start: F) -> Result<Self, E>
    where
        Q: FlushQueue + 'static,
        E: Send + 'static,
        F: FnOnce() -> Result<Engine<Q>, E> + Send + 'static,
    {
        Self::spawn_watched(start, None)
    }

    /// The same, with somebody who looks at the engine ten times a second and at the end.
    ///
    /// # Errors
    /// What `start` fails with.
    ///
    /// # Panics
    /// When no thread can be started.
    pub fn spawn_watched<Q, E, F>(start: F, watch: Option<Watch<Q>>) -> Result<Self, E>
    where
        Q: FlushQueue + 'static,
        E: Send + 'static,
        F: FnOnce() -> Result<Engine<Q>, E> + Send + 'static,
    {
        let (asks, inbox) = sync_channel(RING);
        let (told, started) = sync_channel(1);
        let forwarded = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&forwarded);
        let named = std::thread::Builder::new().name("plumb-space".to_owned());
        let thread = named.spawn(move || {
            let config = Config::default();
            let none =
                ServerEnd { counters: Counters::default(), forwarded: 0, config, halt: None };
            match start() {
                Ok(engine) => {
                    let doorbell = Arc::new(Doorbell::new(engine.bell()));
                    let below = engine.facts().engine;
                    let facts = (engine.config().clone(), below, Arc::clone(&doorbell));
                    // Nobody waits for it if the spawner is gone; then its ring is gone as well.
                    let _ = told.send(Ok(facts));
                    let mut end = Owner::new(engine, inbox, doorbell, watch).serve();
                    end.forwarded = count.load(Ordering::Relaxed);
                    end
                }
                Err(error) => {
                    let _ = told.send(Err(error));
                    none
                }
            }
        });
        let thread = thread.expect("the system has room for one more thread");
        let (config, below, doorbell) = started.recv().expect("it says how it started")?;
        Ok(Self {
            thread: Some(thread),
            asks,
            doorbell,
            forwarded,
            sessions: AtomicU32::new(0),
            config,
            engine: format!("space+{below}"),
        })
    }

    /// The configuration when it was started.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Requests that came from other threads so far.
    #[must_use]
    pub fn forwarded(&self) -> u64 {
        self.forwarded.load(Ordering::Relaxed)
    }

    /// A queue to its virtual disks for the calling thread.
    ///
    /// # Errors
    /// When memory is refused.
    pub fn client(
        &self,
        files: Vec<SpaceFile>,
        spec: &QueueSpec,
    ) -> Result<SpaceClient, OpenQueueError> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        // One answer per slot: the owner never waits for a client.
        let (answers, inbox) = sync_channel(index(spec.depth.max(1)));
        // A server that is gone fails the first request.
        let _ = self.asks.send(Message::Join { session, answers });
        self.doorbell.ring();
        let ends = Ends {
            session,
            asks: self.asks.clone(),
            doorbell: Arc::clone(&self.doorbell),
            answers: inbox,
            forwarded: Arc::clone(&self.forwarded),
            engine: self.engine.clone(),
        };
        SpaceClient::open(ends, files, spec)
    }

    /// Ends the engine; `None` if its thread panicked.
    pub fn stop(mut self) -> Option<ServerEnd> {
        self.end()
    }

    fn end(&mut self) -> Option<ServerEnd> {
        let thread = self.thread.take()?;
        // A thread that has ended needs no word.
        let _ = self.asks.send(Message::Stop);
        self.doorbell.ring();
        thread.join().ok()
    }
}

impl Drop for SpaceServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// The owner's side.
struct Owner<Q> {
    engine: Engine<Q>,
    inbox: Receiver<Message>,
    doorbell: Arc<Doorbell>,
    sessions: BTreeMap<u32, SyncSender<Answer>>,
    /// Of each client of the engine: session, slot and length of what it does.
    serving: Vec<(u32, u32, u32)>,
    free: Vec<u32>,
    began: Instant,
    stop: bool,
    /// Told now and then how it is, and at the end.
    watch: Option<Watch<Q>>,
    watched: Instant,
}

/// Looks at an engine between two polls; the second argument is whether it is about to end.
pub type Watch<Q> = Box<dyn FnMut(&mut Engine<Q>, bool) + Send>;

/// How often.
const WATCH_EVERY: Duration = Duration::from_millis(100);

impl<Q: FlushQueue> Owner<Q> {
    fn new(
        engine: Engine<Q>,
        inbox: Receiver<Message>,
        doorbell: Arc<Doorbell>,
        watch: Option<Watch<Q>>,
    ) -> Self {
        let clients = engine.clients();
        Self {
            engine,
            inbox,
            doorbell,
            sessions: BTreeMap::new(),
            serving: vec![(0, 0, 0); index(clients)],
            free: (0..clients).rev().collect(),
            began: Instant::now(),
            stop: false,
            watch,
            watched: Instant::now(),
        }
    }

    fn busy(&self) -> bool {
        self.free.len() < self.serving.len()
    }

    fn serve(mut self) -> ServerEnd {
        loop {
            self.take_waiting();
            if self.stop && !self.busy() {
                break;
            }
            self.poll();
            let answered = self.answer();
            self.look();
            if !answered && self.engine.in_flight() == 0 {
                // Only a request or time can bring anything about.
                let nap = if self.busy() { Duration::from_micros(100) } else { TICK };
                if self.free.is_empty() {
                    std::thread::sleep(nap);
                    continue;
                }
                match self.inbox.recv_timeout(nap) {
                    Ok(message) => self.take(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => self.stop = true,
                }
            }
        }
        if let Some(watch) = &mut self.watch {
            // What was asked for since it looked last is begun, and ends with a result as all that goes on.
            watch(&mut self.engine, false);
            let began = self.began;
            self.engine.end_optimizations(|| began.elapsed().into());
            watch(&mut self.engine, true);
        }
        let counters = self.engine.counters();
        let config = self.engine.config().clone();
        let halt = self.engine.shut_down().err();
        ServerEnd { counters, forwarded: 0, config, halt }
    }

    /// Lets the engine work, and waits for its devices until one of them answers, a request arrives, or it is
    /// time to look at the clock.
    fn poll(&mut self) {
        let now = self.began.elapsed().into();
        if self.engine.in_flight() == 0 {
            self.engine.poll(now, Nanos::ZERO);
        } else if self.doorbell.bell.is_none() {
            self.engine.poll(now, GLANCE);
        } else {
            // Without a free client no request could be taken: then there is nothing to be woken for.
            if !self.free.is_empty() {
                self.doorbell.begin_wait();
                self.take_waiting();
            }
            self.engine.poll(now, TICK.into());
            self.doorbell.end_wait();
        }
    }

    /// Lets the watch look, if it is time.
    fn look(&mut self) {
        let Some(watch) = &mut self.watch else { return };
        if self.watched.elapsed() >= WATCH_EVERY {
            self.watched = Instant::now();
            watch(&mut self.engine, false);
        }
    }

    /// Takes requests as long as there are free clients.
    fn take_waiting(&mut self) {
        while !self.free.is_empty() {
            match self.inbox.try_recv() {
                Ok(message) => self.take(message),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    self.stop = true;
                    return;
                }
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Join { session, answers } => {
                self.sessions.insert(session, answers);
            }
            Message::Leave { session } => {
                self.sessions.remove(&session);
            }
            Message::Stop => self.stop = true,
            Message::Ask(mut ask) => {
                // One is free: nothing is taken otherwise.
                let Some(client) = self.free.pop() else { return };
                self.serving[index(client)] = (ask.session, ask.slot, ask.request.len);
                self.engine.swap_buffer(client, &mut ask.buffer);
                self.engine.submit(client, ask.request);
            }
        }
    }

    /// Sends what is finished; whether there was something.
    fn answer(&mut self) -> bool {
        let mut any = false;
        while let Some((client, outcome)) = self.engine.pop() {
            any = true;
            let (session, slot, len) = self.serving[index(client)];
            let mut buffer = Vec::new();
            self.engine.swap_buffer(client, &mut buffer);
            self.free.push(client);
            let result = match outcome {
                Ok(()) => len.cast_signed(),
                Err(errno) => -errno.0,
            };
            if let Some(answers) = self.sessions.get(&session) {
                // A client that is gone wants no answer.
                let _ = answers.try_send(Answer { slot, result, buffer });
            }
        }
        any
    }
}
