//! Tests of the trust crate through its public interface.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod audit_forgery;
mod audit_forward;
mod audit_log;
mod audit_tampering;
mod decision_cases;
mod decision_properties;
mod fixture;
mod signature_peers;
mod signature_tampering;
