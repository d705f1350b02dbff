//! Answers the questions for names that a run asks, without asking anyone.

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use skillbox_model::HostName;

use crate::allow_list::AllowList;
use crate::denial::Denial;
use crate::name_table::{MAX_NAMES, NameTable};

/// The largest question that is read. A name has at most 255 bytes.
pub(crate) const MAX_QUESTION_BYTES: usize = 1232;

/// How long clients may remember an address. It stays the same for the whole run.
const TTL_SECONDS: u32 = 60;

/// The answer to a question, and the denial to report.
pub(crate) struct DnsAnswer {
    pub bytes: Vec<u8>,
    pub denied: Option<(String, Denial)>,
}

/// Answers one question; none if the bytes are no question.
pub(crate) fn answer(question: &[u8], allowed: &AllowList, names: &NameTable) -> Option<DnsAnswer> {
    if question.len() > MAX_QUESTION_BYTES {
        return None;
    }
    let question = Message::from_vec(question).ok()?;
    let metadata = &question.metadata;
    if metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(metadata.id, metadata.op_code);
    reply.metadata.recursion_desired = metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.add_queries(question.queries.iter().cloned());
    let mut denied = None;
    match question.queries.as_slice() {
        [query] if metadata.op_code == OpCode::Query && query.query_class() == DNSClass::IN => {
            match resolve(query.name(), allowed, names) {
                Ok(address) => {
                    if query.query_type() == RecordType::A {
                        let record = Record::from_rdata(query.name().clone(), TTL_SECONDS, RData::A(A(address)));
                        reply.add_answer(record);
                    }
                }
                Err(denial) => {
                    reply.metadata.response_code = ResponseCode::NXDomain;
                    denied = denial.map(|denial| (readable(query.name()), denial));
                }
            }
        }
        _ => reply.metadata.response_code = ResponseCode::Refused,
    }
    Some(DnsAnswer {
        bytes: reply.to_vec().ok()?,
        denied,
    })
}

/// The address of a name, or why it has none. Questions that clients ask by themselves are no denials.
fn resolve(name: &Name, allowed: &AllowList, names: &NameTable) -> Result<std::net::Ipv4Addr, Option<Denial>> {
    let text = readable(name);
    let is_reverse = text.ends_with(".in-addr.arpa") || text.ends_with(".ip6.arpa");
    let parsed = HostName::parse(&text).ok().filter(|_| name.is_fqdn());
    match parsed {
        Some(name) if allowed.allows_name(&name) => {
            names.address_of(&name).ok_or(Some(Denial::TooManyNames(MAX_NAMES)))
        }
        _ if is_reverse => Err(None),
        _ => Err(Some(Denial::NameNotAllowed(text))),
    }
}

/// The name as text, without the final dot. Bytes that names of hosts cannot have are escaped with backslashes, so the
/// text of such a name is not the text of a host.
fn readable(name: &Name) -> String {
    let text = name.to_ascii();
    text.strip_suffix('.').map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use hickory_proto::op::Query;
    use proptest::prelude::*;
    use skillbox_model::HostPort;

    use super::*;

    fn allowed() -> AllowList {
        let rules = ["api.example.com:8443", "*.example.org", "10.0.0.1:80"];
        AllowList::new(rules.iter().map(|rule| HostPort::parse(rule).unwrap().into()).collect())
    }

    fn ask(name: Name, kind: RecordType) -> (ResponseCode, Vec<RData>, Option<Denial>) {
        let mut question = Message::query();
        question.add_query(Query::query(name, kind));
        let answered = answer(&question.to_vec().unwrap(), &allowed(), &NameTable::default()).unwrap();
        let reply = Message::from_vec(&answered.bytes).unwrap();
        assert_eq!(
            (reply.metadata.id, &reply.queries),
            (question.metadata.id, &question.queries)
        );
        let data = reply.answers.iter().map(|record| record.data.clone()).collect();
        (
            reply.metadata.response_code,
            data,
            answered.denied.map(|(_, denial)| denial),
        )
    }

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    #[test]
    fn allowed_names_have_an_address_and_no_other_record() {
        let address = RData::A(A(Ipv4Addr::new(127, 64, 0, 1)));
        for text in ["api.example.com.", "API.eXample.COM.", "a.example.org."] {
            assert_eq!(
                ask(name(text), RecordType::A),
                (ResponseCode::NoError, vec![address.clone()], None)
            );
            for kind in [
                RecordType::AAAA,
                RecordType::TXT,
                RecordType::HTTPS,
                RecordType::ANY,
                RecordType::MX,
            ] {
                assert_eq!(ask(name(text), kind), (ResponseCode::NoError, vec![], None));
            }
        }
    }

    #[test]
    fn other_names_do_not_exist_and_are_denials() {
        let labels = |label: &[u8]| Name::from_labels([label, b"example", b"org"]).unwrap();
        for name in [
            name("evil.example."),
            name("example.org."),
            name("a.b.example.org."),
            name("x.api.example.com."),
            name("."),
            labels(b"a.b"),
            labels(b"a b"),
            labels(b"\xff\x00"),
            labels(b"*"),
            labels(&[b'a'; 63]).append_domain(&name("evil.example.")).unwrap(),
        ] {
            let (code, data, denial) = ask(name.clone(), RecordType::TXT);
            assert_eq!((code, data), (ResponseCode::NXDomain, vec![]), "{name}");
            assert!(matches!(denial, Some(Denial::NameNotAllowed(_))), "{name}");
        }
        let reverse = ask(name("1.0.64.127.in-addr.arpa."), RecordType::PTR);
        assert_eq!(reverse, (ResponseCode::NXDomain, vec![], None));
    }

    #[test]
    fn bytes_that_are_no_question_have_no_answer() {
        let none = |bytes: &[u8]| answer(bytes, &allowed(), &NameTable::default()).is_none();
        assert!(none(b"") && none(b"x") && none(&[0; 11]) && none(&[0; 2000]));
        let reply = Message::response(1, OpCode::Query).to_vec().unwrap();
        assert!(none(&reply));
    }

    proptest! {
        #[test]
        fn no_bytes_crash_the_server(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = answer(&bytes, &allowed(), &NameTable::default());
        }
    }
}
