//! What tells one exporter from others: `service.instance.id`.

use std::net::SocketAddr;

/// The host and the port it serves at. In a container the host is the
/// container or pod, so the id stays as long as that does.
pub fn instance(listening: SocketAddr) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .map(|host| host.trim().to_owned())
        .filter(|host| !host.is_empty());
    format!("{}:{}", host.as_deref().unwrap_or("localhost"), listening.port())
}
