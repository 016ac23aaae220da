//! The way of one signal to its back end.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::http::HeaderMap;
use bytes::Bytes;
use jiff::Timestamp;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::answer::{Again, Answer, Failure, Reason, Taken};
use super::grpc::Grpc;
use super::headers::Headers;
use super::http::Http;
use super::retry::{Backoff, LONGEST_ASKED};
use super::trouble::Trouble;
use super::{Request, Sent};
use crate::config::otlp::{Destination, Protocol, Signal};
use crate::telemetry::Telemetry;
use crate::telemetry::events::{
    OtlpAccepted, OtlpAttemptFailed, OtlpPartlyAccepted, OtlpRecovered, OtlpRequestFailed,
    OtlpStarted,
};

/// Why nothing can be sent at all: a certificate or key that is none, or
/// cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    #[error("{} cannot be sent by OTLP: {why}", signal.as_str())]
    Unusable { signal: Signal, why: String },
}

/// Sends the requests of one signal, one after the other. Nothing in it is
/// ever shown: it holds secrets.
pub struct Sender {
    signal: Signal,
    request_size: usize,
    timeout: Duration,
    headers: Headers,
    way: Way,
    state: Mutex<State>,
    telemetry: Arc<Telemetry>,
}

enum Way {
    Http(Http),
    Grpc(Grpc),
}

#[derive(Default)]
struct State {
    trouble: Trouble,
    /// The back end asked to be left alone until then.
    not_before: Option<Instant>,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").field("signal", &self.signal).finish_non_exhaustive()
    }
}

impl Sender {
    /// Connects with the first request. An error names the file that cannot
    /// be used.
    pub fn new(
        signal: Signal,
        destination: &Destination,
        telemetry: Arc<Telemetry>,
    ) -> Result<Self, SenderError> {
        let unusable = |why| SenderError::Unusable { signal, why };
        let headers = Headers::of(destination).map_err(unusable)?;
        let way = match destination.protocol {
            Protocol::HttpProtobuf => Way::Http(Http::new(signal, destination).map_err(unusable)?),
            Protocol::Grpc => Way::Grpc(Grpc::new(signal, destination).map_err(unusable)?),
        };
        OtlpStarted {
            signal: signal.as_str(),
            protocol: destination.protocol.as_str(),
            endpoint: destination.endpoint.clone(),
        }
        .emit(&telemetry);
        Ok(Self {
            signal,
            request_size: destination.request_size,
            timeout: destination.timeout,
            headers,
            way,
            state: Mutex::default(),
            telemetry,
        })
    }

    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The most that [`Request::body`] may have.
    pub fn request_size(&self) -> usize {
        self.request_size
    }

    /// Sends, and again where the specification says so, until then at most.
    pub async fn send(&self, request: &Request, until: Instant) -> Sent {
        if request.body.len() > self.request_size {
            let message = format!(
                "not sent: it has {} bytes, otlp.request_size is {}",
                request.body.len(),
                self.request_size
            );
            return self.failed(request, Sent::Refused, Reason::TooLarge, message);
        }
        let not_before = self.state().not_before;
        if let Some(not_before) = not_before.filter(|at| *at > Instant::now()) {
            if not_before >= until {
                let message = "not sent: it asked to be left alone for longer".to_owned();
                return self.failed(request, Sent::GivenUp, Reason::Unavailable, message);
            }
            sleep_until(not_before).await;
        }
        let body = match &self.way {
            Way::Http(http) => http.prepare(&request.body).await,
            Way::Grpc(_) => request.body.clone(),
        };
        let mut backoff = Backoff::new();
        loop {
            let deadline =
                Instant::now().checked_add(self.timeout).map_or(until, |at| at.min(until));
            let failure = match self.attempt(body.clone(), deadline).await {
                Answer::Taken(taken) => return self.taken(request, taken),
                Answer::Failed(failure) => failure,
            };
            let Failure { reason, again, message } = failure;
            if again == Again::Never {
                self.attempt_failed(reason, message.clone(), None);
                return self.failed(request, Sent::Refused, reason, message);
            }
            let now = Instant::now();
            let wait = match again {
                Again::After(asked) => {
                    let wait = backoff.wait(Some(asked));
                    self.state().not_before = Some(now + asked.min(LONGEST_ASKED));
                    wait
                }
                _ => backoff.wait(None),
            };
            let next = now + wait;
            let in_time = next < until;
            self.attempt_failed(reason, message.clone(), in_time.then_some(wait));
            if !in_time {
                return self.failed(request, Sent::GivenUp, reason, message);
            }
            sleep_until(next).await;
        }
    }

    async fn attempt(&self, body: Bytes, deadline: Instant) -> Answer {
        let headers: HeaderMap = match timeout_at(deadline, self.headers.read()).await {
            Ok(Ok(headers)) => headers,
            Ok(Err(message)) => {
                // It may be being rotated just now.
                let message = format!("not sent: {message}");
                return Answer::Failed(Failure {
                    reason: Reason::Settings,
                    again: Again::Backoff,
                    message,
                });
            }
            Err(_) => return timed_out(),
        };
        let answer = match &self.way {
            Way::Http(http) => http.attempt(body, &headers, deadline).await,
            Way::Grpc(grpc) => grpc.attempt(body, &headers, deadline).await,
        };
        if let Answer::Failed(Failure { reason: Reason::Timeout, .. }) = answer {
            // A connection that nobody answers on may be dead without our
            // being told (a NAT that forgot it): the next attempt makes a
            // new one.
            match &self.way {
                Way::Http(http) => http.wear_out(),
                Way::Grpc(grpc) => grpc.wear_out(),
            }
        }
        answer
    }

    fn taken(&self, request: &Request, taken: Taken) -> Sent {
        let signal = self.signal.as_str();
        // A back end that rejects more than it got cannot count.
        let rejected = taken.rejected.min(request.items);
        let (recovered, told) = {
            let mut state = self.state();
            state.not_before = None;
            let objects = rejected > 0 || !taken.said.is_empty();
            let told = if objects {
                Some(state.trouble.objected(rejected > 0, &taken.said))
            } else {
                state.trouble.no_objection();
                None
            };
            (state.trouble.taken(), told)
        };
        if let Some(after) = recovered {
            OtlpRecovered { signal, after }.emit(&self.telemetry);
        }
        OtlpAccepted {
            signal,
            items: request.items - rejected,
            bytes: request.body.len() as u64,
            at: Timestamp::now(),
        }
        .emit(&self.telemetry);
        if let Some(told) = told {
            OtlpPartlyAccepted { signal, rejected, message: taken.said, told }
                .emit(&self.telemetry);
        }
        Sent::Accepted { rejected }
    }

    fn attempt_failed(&self, reason: Reason, message: String, retry_in: Option<Duration>) {
        let (signal, reason) = (self.signal.as_str(), reason.as_str());
        OtlpAttemptFailed { signal, reason, message, retry_in }.emit(&self.telemetry);
    }

    fn failed(&self, request: &Request, sent: Sent, reason: Reason, message: String) -> Sent {
        let outcome = if sent == Sent::Refused { "refused" } else { "given_up" };
        let told = self.state().trouble.failed(outcome, reason);
        OtlpRequestFailed {
            signal: self.signal.as_str(),
            outcome,
            items: request.items,
            reason: reason.as_str(),
            message,
            told,
        }
        .emit(&self.telemetry);
        sent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// No answer in the time that one attempt has.
pub(super) fn timeout() -> Failure {
    Failure {
        reason: Reason::Timeout,
        again: Again::Backoff,
        message: "no answer in time (otlp.timeout)".to_owned(),
    }
}

pub(super) fn timed_out() -> Answer {
    Answer::Failed(timeout())
}
