//! Errors of object stores in words that a person can act on. A signed URL,
//! a token or a key is in none of them: of what a store says only its code
//! and first words are repeated.

use super::{FilesError, FilesErrorKind, STALL};
use crate::config::{RemoteLocation, Service};
use crate::fetch::text::glance;

/// What was asked for: rights to list and to read are two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    Listing,
    Reading,
}

/// How a place and its files are called.
#[derive(Debug, Clone)]
pub(super) struct Naming {
    service: Service,
    bucket: String,
    root: String,
}

impl Naming {
    pub(super) fn of(location: &RemoteLocation) -> Self {
        Self {
            service: location.scheme().service(),
            bucket: location.authority().to_owned(),
            root: location.to_string(),
        }
    }

    pub(super) fn display(&self, path: &str) -> String {
        if path.is_empty() { self.root.clone() } else { format!("{}/{path}", self.root) }
    }

    pub(super) fn other(&self, path: &str, message: String) -> FilesError {
        FilesError { place: self.display(path), kind: FilesErrorKind::Other, message }
    }

    pub(super) fn stalled(&self, path: &str) -> FilesError {
        self.other(
            path,
            format!(
                "{} did not answer for {} s; check the endpoint, the network and the proxy",
                self.service.name(),
                STALL.as_secs()
            ),
        )
    }

    pub(super) fn error(
        &self,
        path: &str,
        doing: Doing,
        error: &object_store::Error,
    ) -> FilesError {
        use object_store::Error;
        let text = error.to_string();
        // Of a listing all errors are `Generic`: there the status tells.
        let status = |status: &str| text.contains(&format!("status code: {status} "));
        let kind = match error {
            Error::NotFound { .. } => FilesErrorKind::NotFound,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                FilesErrorKind::Denied
            }
            _ if status("404") => FilesErrorKind::NotFound,
            _ if status("401") || status("403") => FilesErrorKind::Denied,
            _ => FilesErrorKind::Other,
        };
        let cause = innermost(error);
        let code = between(&text, "<Code>", "</Code>").unwrap_or_default();
        let said = match (code, between(&text, "<Message>", "</Message>")) {
            ("", _) => without_queries(&cause),
            (code, None) => code.to_owned(),
            (code, Some(message)) => format!("{code}: {message}"),
        };
        let said = glance(said.as_bytes());
        let hint = self.hint(kind, doing, code, &text);
        let message = if hint.is_empty() { said } else { format!("{said}; {hint}") };
        FilesError { place: self.display(path), kind, message }
    }

    fn hint(&self, kind: FilesErrorKind, doing: Doing, code: &str, text: &str) -> String {
        let bucket = &self.bucket;
        match code {
            "NoSuchBucket" | "ContainerNotFound" => {
                return format!("there is no {bucket}: check the name, and the endpoint");
            }
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidToken"
            | "ExpiredToken"
            | "AuthenticationFailed" => {
                return "check the credentials (object_store of the cluster, or the environment) \
                        and the clock"
                    .to_owned();
            }
            "PermanentRedirect"
            | "AuthorizationHeaderMalformed"
            | "IllegalLocationConstraintException" => {
                return "set object_store.options.aws_region to the region of the bucket"
                    .to_owned();
            }
            _ => {}
        }
        // Where no credentials are given the crate asks the machine's
        // metadata service for some.
        if text.contains("169.254.169.254") || text.contains("metadata.google.internal") {
            return format!(
                "no credentials were found, and this machine has no role of its own: {}",
                self.credentials()
            );
        }
        if text.contains("redirect without LOCATION") {
            return "set object_store.options.aws_region to the region of the bucket".to_owned();
        }
        match (kind, doing) {
            (FilesErrorKind::NotFound, Doing::Listing) => {
                format!("check that {bucket} exists, and the endpoint")
            }
            (FilesErrorKind::NotFound, Doing::Reading) => "it is not there (any more)".to_owned(),
            (FilesErrorKind::Denied, _) => format!(
                "the credentials need the right to {}",
                match (self.service, doing) {
                    (Service::S3, Doing::Listing) => format!("list: s3:ListBucket on {bucket}"),
                    (Service::S3, Doing::Reading) => format!("read: s3:GetObject on {bucket}/*"),
                    (Service::Gcs, Doing::Listing) => {
                        format!("list: storage.objects.list on {bucket}")
                    }
                    (Service::Gcs, Doing::Reading) => {
                        format!("read: storage.objects.get on {bucket}")
                    }
                    _ => format!("list and read blobs (Storage Blob Data Reader) on {bucket}"),
                }
            ),
            (FilesErrorKind::Other, _) => {
                "check the endpoint, the network and the proxy".to_owned()
            }
        }
    }

    fn credentials(&self) -> &'static str {
        match self.service {
            Service::Gcs => {
                "give GOOGLE_APPLICATION_CREDENTIALS, or object_store.options.google_service_account"
            }
            Service::Azure => {
                "give AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or object_store of \
                 the cluster"
            }
            _ => "give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or object_store of the cluster",
        }
    }
}

/// What began it: the words around it name URLs.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner.trim())
}

/// URLs without their query, which may be signed.
pub(super) fn without_queries(text: &str) -> String {
    let words = text.split(' ').map(|word| match word.split_once('?') {
        Some((before, _)) if before.contains("://") || before.starts_with('/') => before,
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naming(location: &str) -> Naming {
        match location.parse().expect("a location") {
            crate::config::Location::Remote(location) => Naming::of(&location),
            crate::config::Location::Path(_) => panic!("a path"),
        }
    }

    fn denied(body: &str) -> object_store::Error {
        object_store::Error::PermissionDenied { path: "logs".to_owned(), source: body.into() }
    }

    #[test]
    fn a_refusal_names_the_right_that_is_missing() {
        let body =
            "403 Forbidden: <Error><Code>AccessDenied</Code><Message>Access Denied</Message>";
        for (place, doing, words) in [
            ("s3://b/x", Doing::Listing, "s3:ListBucket on b"),
            ("s3a://b/x", Doing::Reading, "s3:GetObject on b/*"),
            ("gs://b", Doing::Listing, "storage.objects.list"),
            ("gs://b", Doing::Reading, "storage.objects.get"),
            ("az://c", Doing::Reading, "Storage Blob Data Reader"),
        ] {
            let error = naming(place).error("", doing, &denied(body));
            assert_eq!(error.kind, FilesErrorKind::Denied);
            let text = error.to_string();
            assert!(text.contains(words) && text.contains("AccessDenied: Access Denied"), "{text}");
            assert!(text.starts_with(&format!("cannot read {place}")), "{text}");
        }
    }

    #[test]
    fn a_signed_url_is_in_no_error() {
        let source = "Error performing GET https://a.blob.core.windows.net/c?comp=list&sig=hunter2 \
                      in 3ms - connection reset";
        let generic = object_store::Error::Generic { store: "Azure", source: source.into() };
        let error = naming("az://c").error("x", Doing::Reading, &generic);
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(error.to_string().contains("https://a.blob.core.windows.net/c"), "{error}");
    }

    #[test]
    fn a_refused_listing_is_told_by_its_status() {
        for (status, kind) in [
            ("403 Forbidden", FilesErrorKind::Denied),
            ("404 Not Found", FilesErrorKind::NotFound),
            ("400 Bad Request", FilesErrorKind::Other),
        ] {
            let source = format!("Server returned non-2xx status code: {status}: <Code>X</Code>");
            let error = object_store::Error::Generic { store: "S3", source: source.into() };
            assert_eq!(naming("s3://b").error("", Doing::Listing, &error).kind, kind);
        }
    }

    #[test]
    fn no_credentials_and_a_wrong_region_are_told_apart() {
        let text = |message: &str| {
            let source = message.to_owned().into();
            let error = object_store::Error::Generic { store: "S3", source };
            naming("s3://b").error("", Doing::Listing, &error).to_string()
        };
        let nobody = text("Error performing PUT http://169.254.169.254/latest/api/token in 1s");
        assert!(nobody.contains("AWS_ACCESS_KEY_ID"), "{nobody}");
        let elsewhere = text("301: <Error><Code>PermanentRedirect</Code></Error>");
        assert!(elsewhere.contains("aws_region"), "{elsewhere}");
    }
}
