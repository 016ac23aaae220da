//! What can go wrong with a server, before it is said which.

use std::error::Error;
use std::time::Duration;

use deadpool::managed::PoolError;
use tokio_postgres::error::SqlState;

use crate::store::StoreError;

#[derive(Debug)]
pub(super) enum Fault {
    Server(tokio_postgres::Error),
    /// What was waited for, and how long.
    TimedOut(&'static str, Duration),
    /// All connections were busy for too long.
    Busy,
    /// The password's file, and why it cannot be read.
    Password(String),
    /// What is there makes no sense.
    Damaged(String),
    /// It cannot be used as it is.
    Refused(String),
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(error)
    }
}

impl From<PoolError<Self>> for Fault {
    fn from(error: PoolError<Self>) -> Self {
        match error {
            PoolError::Backend(fault) => fault,
            PoolError::Timeout(_) => Self::Busy,
            error => Self::Refused(format!("no connection: {error:?}")),
        }
    }
}

impl Fault {
    /// Whether the connection can still be used, once it is rolled back.
    pub(super) fn spares_connection(&self) -> bool {
        match self {
            Self::Server(error) => !error.is_closed() && error.as_db_error().is_some(),
            Self::TimedOut(..) | Self::Busy | Self::Password(_) => false,
            Self::Damaged(_) | Self::Refused(_) => true,
        }
    }

    /// Whether the connection was lost before anything was done on it.
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Server(error) => {
                error.is_closed()
                    || error.as_db_error().is_some_and(|error| is_shutdown(error.code()))
            }
            _ => false,
        }
    }

    /// With the store it happened to.
    pub(super) fn of(self, store: &str) -> StoreError {
        let what = store.to_owned();
        match self {
            Self::Server(error) => server(what, &error),
            Self::TimedOut(thing, within) => StoreError::Unavailable {
                what,
                why: format!(
                    "it cannot be reached: {thing} did not come within {within:?} \
                     (storage.connect_timeout, storage.statement_timeout)"
                ),
            },
            Self::Busy => StoreError::Unavailable {
                what,
                why: "all connections are busy: the server is slow, or storage.pool_size is small"
                    .to_owned(),
            },
            Self::Password(why) => StoreError::Unavailable {
                what,
                why: format!("its password cannot be read from storage.password_file {why}"),
            },
            Self::Damaged(why) => StoreError::Unusable {
                what,
                why: format!("what it holds cannot be understood ({why}): restore a backup"),
            },
            Self::Refused(why) => StoreError::Unusable { what, why },
        }
    }
}

fn is_shutdown(code: &SqlState) -> bool {
    [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::CANNOT_CONNECT_NOW]
        .contains(code)
}

fn server(what: String, error: &tokio_postgres::Error) -> StoreError {
    let Some(answer) = error.as_db_error() else {
        let causes = causes(error);
        let hint = if causes.contains("certificate") {
            ": give the authority of its certificate as storage.tls_config.ca_file, and the name \
             in it as the host of the URL or as server_name"
        } else if causes.contains("password missing") {
            ": it wants a password: give storage.password_file, or PGPASSWORD in the environment"
        } else if causes.contains("server does not support TLS") {
            ": switch TLS on at the server, or say ?sslmode=disable in a network that you trust"
        } else {
            ""
        };
        return StoreError::Unavailable {
            what,
            why: format!("it cannot be reached: {causes}{hint}"),
        };
    };
    let (code, said) = (answer.code(), answer.message());
    let class = code.code().get(..2).unwrap_or_default();
    let hint = match code {
        _ if [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::UNIQUE_VIOLATION,
        ]
        .contains(code) =>
        {
            return StoreError::Contended { what, why: said.to_owned() };
        }
        _ if class == "28" => {
            "check the user of the URL, storage.password_file (or PGPASSWORD) and the server's \
             pg_hba.conf; the password is read again at the next try"
        }
        _ if *code == SqlState::QUERY_CANCELED => "it took longer than storage.statement_timeout",
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => {
            "it is a standby or read-only: give the primary"
        }
        _ if *code == SqlState::DISK_FULL => "make room on the server",
        _ if *code == SqlState::TOO_MANY_CONNECTIONS => {
            "raise max_connections of the server, or lower storage.pool_size"
        }
        _ if *code == SqlState::UNDEFINED_DATABASE => {
            return unusable(what, said, "make the database, or name another one in the URL");
        }
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            return unusable(
                what,
                said,
                "the user needs CREATE on the database, or to own the schema spark_exporter and \
                 its tables",
            );
        }
        _ if [
            SqlState::UNDEFINED_TABLE,
            SqlState::UNDEFINED_COLUMN,
            SqlState::INVALID_SCHEMA_NAME,
        ]
        .contains(code) =>
        {
            return unusable(
                what,
                said,
                "the schema spark_exporter is not as it was made: restore a backup, or drop it \
                 to begin anew, with counters from 0",
            );
        }
        _ if ["22", "42"].contains(&class) => return unusable(what, said, code.code()),
        _ => code.code(),
    };
    StoreError::Unavailable { what, why: format!("{said} ({hint})") }
}

fn unusable(what: String, said: &str, hint: &str) -> StoreError {
    StoreError::Unusable { what, why: format!("{said} ({hint})") }
}

/// An error with what is behind it, each once.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text
}
