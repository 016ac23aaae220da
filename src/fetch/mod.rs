//! Bytes in: the one HTTP client through which all of Spark's servers are
//! asked, and [`files`], wherever event logs lie.
//!
//! The client only ever sends GET, follows no redirect (Spark's API sends none: one
//! means a proxy or a login page, and our credentials are not for them),
//! keeps at most a few requests in flight per server, and reads every body
//! as a stream with a limit on its decompressed size; what must lie in a file
//! first goes to a [`Spool`]. [`crate::rest`] and
//! [`crate::discover`] say what to ask; `watch` says when, and reads
//! [`HttpClient::statistics`].

mod answer;
mod body;
mod client;
mod credentials;
mod decode;
mod error;
pub mod files;
mod request;
mod spool;
mod statistics;
mod text;
mod tls;

pub(crate) use answer::{innermost, last_cause, retry_after};
pub use client::HttpClient;
pub(crate) use credentials::read as read_secret;
pub use decode::Elements;
pub use error::{ClientError, FetchError, FetchErrorKind};
pub use request::{FetchLimits, Request, Timeouts};
pub use spool::{Spool, SpoolError};
pub use statistics::{EndpointCounts, Meter};
pub(crate) use tls::{AlwaysHost, Tls};
