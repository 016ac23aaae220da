//! Why a watch broke, in a word for a label and in words for a person.

use std::time::Duration;

use kube::runtime::watcher;

/// Words of the `reason` label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Unreachable,
    Timeout,
    Unauthorized,
    Forbidden,
    NotFound,
    Expired,
    Unavailable,
    Refused,
    Malformed,
    TooMany,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::Expired => "expired",
            Self::Unavailable => "unavailable",
            Self::Refused => "refused",
            Self::Malformed => "malformed",
            Self::TooMany => "too_many",
        }
    }
}

/// The longest message kept of a server's.
const MESSAGE: usize = 400;

/// What went wrong, and when it is tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub reason: Reason,
    pub message: String,
    pub retry_in: Duration,
}

impl Failure {
    pub(super) fn of(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_in: Duration::ZERO }
    }
}

impl From<&watcher::Error> for Failure {
    fn from(error: &watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => error.into(),
            watcher::Error::WatchError(status) => from_server(status.code, &status.message),
            watcher::Error::NoResourceVersion => {
                Self::of(Reason::Malformed, "an answer without a resourceVersion")
            }
        }
    }
}

impl From<&kube::Error> for Failure {
    fn from(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => from_server(status.code, &status.message),
            kube::Error::Auth(_) => credentials(),
            kube::Error::SerdeError(_)
            | kube::Error::FromUtf8(_)
            | kube::Error::LinesCodecMaxLineLengthExceeded => {
                Self::of(Reason::Malformed, "an answer that is not understood")
            }
            kube::Error::Service(cause) => {
                let mut cause: &(dyn std::error::Error + 'static) = cause.as_ref();
                loop {
                    // What a command of the kubeconfig file printed, and
                    // tokens with it, is in the words of these.
                    if cause.is::<kube::client::AuthError>()
                        || matches!(cause.downcast_ref(), Some(kube::Error::Auth(_)))
                    {
                        return credentials();
                    }
                    match cause.source() {
                        Some(inner) => cause = inner,
                        None => break unreachable(cause),
                    }
                }
            }
            kube::Error::HyperError(error) => innermost(error),
            kube::Error::ReadEvents(error) => innermost(error),
            _ => Self::of(Reason::Refused, "the request could not be made"),
        }
    }
}

fn innermost(error: &(dyn std::error::Error + 'static)) -> Failure {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    unreachable(cause)
}

fn unreachable(cause: &(dyn std::error::Error + 'static)) -> Failure {
    let timed_out = cause
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::TimedOut);
    let reason = if timed_out { Reason::Timeout } else { Reason::Unreachable };
    Failure::of(reason, cut(&cause.to_string()))
}

fn credentials() -> Failure {
    Failure::of(
        Reason::Unauthorized,
        "the credentials for the API server cannot be had: its token file cannot be read, or the \
         command of the kubeconfig file fails",
    )
}

fn from_server(code: u16, message: &str) -> Failure {
    let reason = match code {
        401 => Reason::Unauthorized,
        403 => Reason::Forbidden,
        404 => Reason::NotFound,
        410 => Reason::Expired,
        429 | 500..=599 => Reason::Unavailable,
        _ => Reason::Refused,
    };
    let hint = match reason {
        Reason::Forbidden => "; give its account list and watch",
        Reason::Unauthorized => "; its token is not taken",
        _ => "",
    };
    Failure::of(reason, format!("HTTP {code}: {}{hint}", cut(message)))
}

/// One line, not too long.
fn cut(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    text.chars().take(MESSAGE).map(clean).collect()
}

#[cfg(test)]
mod tests {
    use kube::core::Status;

    use super::*;

    fn api(code: u16, message: &str) -> Failure {
        let status = Status { code, message: message.to_owned(), ..Status::default() };
        Failure::from(&watcher::Error::InitialListFailed(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn what_the_server_says_becomes_a_word() {
        for (code, reason) in [
            (401, Reason::Unauthorized),
            (403, Reason::Forbidden),
            (404, Reason::NotFound),
            (410, Reason::Expired),
            (429, Reason::Unavailable),
            (503, Reason::Unavailable),
            (400, Reason::Refused),
        ] {
            assert_eq!(api(code, "x").reason, reason);
        }
        let failure = api(403, "pods is forbidden:\nUser \"x\" cannot list");
        assert!(failure.message.contains("pods is forbidden: User \"x\""), "{failure:?}");
        assert!(failure.message.contains("list and watch"), "{failure:?}");
        assert!(api(500, &"x".repeat(10_000)).message.len() < 500);
    }

    #[test]
    fn a_broken_connection_is_told_by_its_cause() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "refused");
        let failure = Failure::from(&kube::Error::Service(Box::new(refused)));
        assert_eq!((failure.reason, failure.message.as_str()), (Reason::Unreachable, "refused"));
        let late = std::io::Error::new(std::io::ErrorKind::TimedOut, "late");
        assert_eq!(Failure::from(&kube::Error::ReadEvents(late)).reason, Reason::Timeout);
    }

    #[test]
    fn what_a_credential_command_printed_is_never_repeated() {
        let error = kube::client::AuthError::AuthExec("token: hunter2".to_owned());
        let failure = Failure::from(&kube::Error::Service(Box::new(error)));
        assert_eq!(failure.reason, Reason::Unauthorized);
        assert!(!failure.message.contains("hunter2"), "{failure:?}");
    }
}
