//! The parser of hosts, compared with those of Python and of the crate `url`: a text that skillbox takes for a host must
//! be the same host for everyone.

use skillbox_model::Host;

use crate::harness::{need, program};

/// Parts of authorities that parsers disagree about.
const PARTS: [&str; 34] = [
    "a.example",
    "b.example",
    "xn--bcher-kva.example",
    "B\u{fc}cher.example",
    "localhost",
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0177.1",
    "2130706433",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[fe80::1%25eth0]",
    "1.2.3.4.",
    "@",
    ":",
    ".",
    "..",
    "/",
    "\\",
    "?",
    "#",
    "%2e",
    "%00",
    " ",
    "\t",
    "*.",
    "-",
    "_",
    "\u{3002}",
    "\u{ff0e}",
    ":80",
    ":080",
    ":65536",
];

#[test]
fn accepted_authorities_are_the_same_host_for_other_parsers() {
    let mut texts: Vec<String> = PARTS.iter().map(|part| (*part).to_owned()).collect();
    for first in PARTS {
        texts.extend(PARTS.iter().map(|second| format!("{first}{second}")));
        texts.extend(PARTS.iter().map(|second| format!("a.example{first}{second}")));
    }
    let accepted: Vec<(&String, String, u16)> = texts
        .iter()
        .filter_map(|text| {
            let (host, port) = Host::parse_authority(text).ok()?;
            Some((text, host.to_string(), port.unwrap_or(80)))
        })
        .collect();
    assert!(accepted.len() > 50, "{}", accepted.len());
    for (text, host, port) in &accepted {
        let url = url::Url::parse(&format!("http://{text}/")).unwrap_or_else(|error| panic!("{text}: {error}"));
        let theirs = url.host_str().unwrap().trim_end_matches('.');
        assert_eq!(
            (theirs, url.port_or_known_default()),
            (host.as_str(), Some(*port)),
            "{text}"
        );
    }
    let script = "import json, sys, urllib.parse\n\
                  for text in json.load(sys.stdin):\n  \
                    url = urllib.parse.urlsplit('http://' + text + '/')\n  \
                    print(json.dumps([url.hostname, url.port or 80]))";
    let texts: Vec<&String> = accepted.iter().map(|(text, ..)| *text).collect();
    let Some(printed) = run_python(script, &serde_json::to_string(&texts).unwrap()) else {
        return;
    };
    for ((text, host, port), line) in accepted.iter().zip(printed.lines()) {
        let (theirs, their_port): (String, u16) = serde_json::from_str(line).unwrap();
        let ours = host.trim_start_matches('[').trim_end_matches(']');
        assert_eq!((theirs.trim_end_matches('.'), their_port), (ours, *port), "{text}");
    }
    assert_eq!(printed.lines().count(), accepted.len());
}

fn run_python(script: &str, input: &str) -> Option<String> {
    use std::io::Write;
    use std::process::Stdio;

    let path = std::path::Path::new("/usr/bin/python3");
    if !need(path.exists(), "python3") {
        return None;
    }
    let mut command = program(path);
    command
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}
