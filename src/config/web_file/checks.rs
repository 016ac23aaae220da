//! What types alone cannot refuse. Nothing of a value is repeated but what is
//! no secret by its nature.

use bcrypt::HashParts;

use super::{ClientAuth, HEADERS, TlsServer, TlsVersion, WebFile};
use crate::config::Secret;

/// The dearest hash that is taken: each step up takes twice as long, and 31
/// would take days. 16 takes seconds.
const MOST_COST: u32 = 16;

impl WebFile {
    pub fn check(&self) -> Result<(), String> {
        if let Some(tls) = self.tls() {
            check_tls(tls).map_err(|why| format!("tls_server_config: {why}"))?;
        }
        let headers = self.http_server_config.iter().filter_map(|http| http.headers.as_ref());
        for (name, value) in headers.flatten() {
            check_header(name, value)
                .map_err(|why| format!("http_server_config.headers: {why}"))?;
        }
        for (number, (name, hash)) in self.users().enumerate() {
            check_user(name, hash)
                .map_err(|why| format!("basic_auth_users, entry {}: {why}", number + 1))?;
        }
        if self.rate_limit().is_some_and(|(_, burst)| burst == 0) {
            return Err("rate_limit: burst is 0, so that nothing would ever be answered: give 1 \
                        or more, or interval: 0s for no limit"
                .to_owned());
        }
        Ok(())
    }
}

fn check_tls(tls: &TlsServer) -> Result<(), String> {
    for (given, name) in [
        ((tls.cert.is_some(), tls.cert_file.is_some()), "cert"),
        ((tls.key.is_some(), tls.key_file.is_some()), "key"),
    ] {
        match given {
            (true, true) => return Err(format!("{name} and {name}_file are both given: give one")),
            (false, false) => return Err(format!("one of {name} and {name}_file is missing")),
            _ => {}
        }
    }
    let has_authority = match (tls.client_ca.is_some(), tls.client_ca_file.is_some()) {
        (true, true) => {
            return Err("client_ca and client_ca_file are both given: give one".to_owned());
        }
        (one, other) => one || other,
    };
    let auth = tls.client_auth_type;
    if has_authority && auth == ClientAuth::NoClientCert {
        return Err("client_ca is given, and no client is asked for a certificate: give \
                    client_auth_type too, usually RequireAndVerifyClientCert"
            .to_owned());
    }
    if !has_authority && auth.verifies() {
        return Err("client_auth_type verifies certificates of clients, and no authority is \
                    given: give client_ca_file (every public authority is too many)"
            .to_owned());
    }
    if let Some(names) = &tls.client_allowed_sans {
        if !auth.requires() {
            return Err("client_allowed_sans needs a client_auth_type that makes every client \
                        show a certificate: RequireAndVerifyClientCert or RequireAnyClientCert"
                .to_owned());
        }
        if names.is_empty() {
            return Err("client_allowed_sans is empty: no client could come in".to_owned());
        }
    }
    for (version, name) in [(tls.min_version, "min_version"), (tls.max_version, "max_version")] {
        if version < TlsVersion::Tls12 {
            return Err(format!("{name}: TLS12 is the oldest that is spoken here"));
        }
    }
    if tls.min_version > tls.max_version {
        return Err("min_version is above max_version".to_owned());
    }
    let only_tls12 = tls.max_version == TlsVersion::Tls12;
    if let Some(suites) = tls.cipher_suites.as_ref().filter(|suites| !suites.is_empty())
        && only_tls12
        && suites.iter().all(|suite| suite.is_of_tls13())
    {
        return Err("cipher_suites has none of TLS 1.2, and max_version is TLS12".to_owned());
    }
    Ok(())
}

fn check_header(name: &str, value: &str) -> Result<(), String> {
    let Some((_, allowed)) = HEADERS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = HEADERS.iter().map(|(known, _)| *known).collect();
        return Err(format!("{name:?} cannot be set: one of {}", known.join(", ")));
    };
    if !value.is_empty() && !allowed.is_empty() && !allowed.contains(&value) {
        return Err(format!("{name} may be {}", allowed.join(" or ")));
    }
    http::HeaderValue::from_str(value)
        .map(|_| ())
        .map_err(|_| format!("{name} has a value that no header can have (a line break?)"))
}

fn check_user(name: &str, hash: &Secret) -> Result<(), String> {
    if name.is_empty() || name.contains(':') {
        return Err("a name is not empty and has no colon".to_owned());
    }
    let hash = hash.expose();
    let is_bcrypt = ["$2a$", "$2b$", "$2y$"].iter().any(|start| hash.starts_with(start));
    let parts: Option<HashParts> = hash.parse().ok().filter(|_| is_bcrypt && hash.len() == 60);
    let Some(parts) = parts else {
        return Err("this is no bcrypt hash ($2a$, $2b$ or $2y$ and 60 characters): make one \
                    with htpasswd -nBC 10 \"\" | tr -d ':\\n'"
            .to_owned());
    };
    if !(4..=MOST_COST).contains(&parts.get_cost()) {
        return Err(format!(
            "its cost is {}: from 4 to {MOST_COST} is taken, since each step doubles the time of \
             a login (10 takes about 70 ms)",
            parts.get_cost()
        ));
    }
    Ok(())
}
