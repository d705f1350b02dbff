//! Generated scripts that hold the value of a secret and try every way to bring it out of the run.
//!
//! The number of scripts is small in the normal run; `SKILLBOX_SECRET_SCRIPTS=1000` runs them all.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::support::{VALUE, assert_not_on_disk, env_secret, find_form, forms, with_config};
use crate::harness::{Answer, Fixture};
use crate::trust::repetitions;

const DEFAULT_SCRIPTS: usize = 48;

/// Where a script gets the value from.
const SOURCES: [&str; 8] = [
    "value = os.environ['TOKEN']",
    "value = open('/proc/self/environ', 'rb').read().split(b'TOKEN=')[1].split(b'\\0')[0].decode()",
    "value = subprocess.run(['printenv', 'TOKEN'], stdout=subprocess.PIPE).stdout.decode()[:-1]",
    "value = subprocess.run('printf %s \"$TOKEN\"', shell=True, stdout=subprocess.PIPE).stdout.decode()",
    "value = subprocess.run(['bash', '-c', 'cat /proc/$PPID/environ'], stdout=subprocess.PIPE).stdout\
     .split(b'TOKEN=')[1].split(b'\\0')[0].decode()",
    "open('/tmp/copy', 'w').write(os.environ['TOKEN']); value = open('/tmp/copy').read()",
    // The memory of another process.
    "child = subprocess.Popen(['sleep', '60'])\ndata = b''\nwhile b'TOKEN=' not in data: \
     data = open(f'/proc/{child.pid}/environ', 'rb').read()\n\
     value = data.split(b'TOKEN=')[1].split(b'\\0')[0].decode(); child.kill()",
    // The arguments of another process.
    "child = subprocess.Popen(['sh', '-c', 'sleep 60; true', os.environ['TOKEN']])\nwhile True:\n \
     words = open(f'/proc/{child.pid}/cmdline', 'rb').read().split(b'\\0')\n if words[0] == b'sh': break\n\
     value = words[3].decode(); child.kill()",
];

/// How a script writes the value.
const ENCODINGS: [&str; 15] = [
    "value",
    "base64.b64encode(value.encode()).decode()",
    "base64.b64encode(b'x' + value.encode() + b'yz').decode()",
    "base64.b64encode(b'xy' + value.encode()).decode().rstrip('=')",
    "base64.urlsafe_b64encode(value.encode() + b'\\xff').decode()",
    "'\\n'.join(textwrap.wrap(base64.b64encode((value * 3).encode()).decode(), 20))",
    "value.encode().hex()",
    "value.encode().hex().upper()",
    "value.encode().hex(' ')",
    "urllib.parse.quote(value, safe='')",
    "urllib.parse.quote_plus(value)",
    "''.join(f'%{byte:02x}' for byte in value.encode())",
    "json.dumps({'token': value})",
    "''.join(f'\\\\u{ord(c):04x}' for c in value)",
    "repr({'a': [value], 'b': value.encode()}) + f'https://user:{value}@host.test/'",
];

/// Where a script writes it to.
const SINKS: [&str; 11] = [
    "sys.stdout.write(text)",
    "sys.stderr.write(text)",
    // In pieces, each of its own write.
    "[(os.write(1, c.encode()), time.sleep(0.0005)) for c in text]",
    "[os.write(2, text.encode()[i:i + 3]) for i in range(0, len(text.encode()), 3)]",
    "open(os.environ['OUTPUT_DIR'] + '/leak.txt', 'w').write('before ' + text + ' after')",
    "open(os.environ['OUTPUT_DIR'] + '/leak.bin', 'wb').write(b'\\0\\xff' + text.encode())",
    "open(os.environ['OUTPUT_DIR'] + '/' + text.replace('/', '_')[:200], 'w').write('x')",
    "raise RuntimeError(text)",
    "sys.exit(text)",
    // Around the place where the middle of a long output is left out.
    "sys.stdout.write('x' * (32768 - len(text) // 2) + text + 'y' * 40000 + text)",
    "os.execvp('bash', ['bash', '-xc', f': {__import__(\"shlex\").quote(text)}; no-such-command-{text[:40]!r}'])",
];

/// The script with this number. Every combination of two of the three parts occurs in 1,000 numbers.
fn script(number: usize) -> String {
    let source = SOURCES[number % SOURCES.len()];
    let encoding = ENCODINGS[(number / SOURCES.len() + number) % ENCODINGS.len()];
    let sink = SINKS[(number / 7 + number) % SINKS.len()];
    format!(
        "import base64, hashlib, json, os, subprocess, sys, textwrap, time, urllib.parse\n{source}\n\
         os.write(2, hashlib.sha256(value.encode()).hexdigest().encode() + b'\\n')\ntext = {encoding}\n{sink}\n"
    )
}

fn run(fixture: &Fixture, number: usize, is_secret: bool) -> Answer {
    let script = script(number);
    let globs = json!({"globs": ["out/**"], "inline": true, "inline_binary": true});
    if !is_secret {
        let request = json!({"argv": ["python3", "-c", script], "env": {"TOKEN": VALUE}, "outputs": globs});
        return fixture.request(request).run();
    }
    let flags: &[&str] = &["--secret", "TOKEN", "--log", "debug"];
    // For people, the output is that of the events.
    let invocation = if number.is_multiple_of(2) {
        let request = json!({"argv": ["python3", "-c", script], "outputs": globs});
        fixture.request(request).with_args(flags)
    } else {
        let args = [
            "run",
            "probe",
            "--output",
            "out/**",
            "--",
            "python3",
            "-c",
            script.as_str(),
        ];
        fixture.command(&args).with_args(flags)
    };
    with_config(fixture, invocation, &env_secret("")).run()
}

#[test]
fn no_form_of_the_value_leaves_a_run() {
    let fixture = Fixture::new();
    let forms = forms(VALUE);
    let scripts = repetitions("SKILLBOX_SECRET_SCRIPTS", DEFAULT_SCRIPTS);
    let digest: String = Sha256::digest(VALUE).iter().map(|byte| format!("{byte:02x}")).collect();
    for number in 0..scripts {
        let answer = run(&fixture, number, true);
        let printed = [answer.process.stdout.as_slice(), &answer.process.stderr].concat();
        let text = String::from_utf8_lossy(&printed);
        assert_eq!(
            find_form(&printed, &forms),
            None,
            "{number}: {}\n{text}",
            script(number)
        );
        // The script did what it should: it had the value.
        assert!(text.contains(&digest), "{number}: {}\n{text}", script(number));
    }
    assert_not_on_disk(&fixture.path("state"), &forms);
}

/// The same scripts with the same value, which is no secret here.
#[test]
fn the_scripts_bring_out_a_value_that_is_no_secret() {
    let fixture = Fixture::new();
    let forms = forms(VALUE);
    let scripts = 30;
    for number in 0..scripts {
        let answer = run(&fixture, number, false);
        let mut texts = Vec::new();
        collect_texts(answer.json(), &mut texts);
        assert!(
            find_form(&texts, &forms).is_some(),
            "{number}: {}\n{}",
            script(number),
            answer.describe()
        );
    }
}

/// Every text of a report, and the data that it has in base64.
fn collect_texts(value: &Value, texts: &mut Vec<u8>) {
    match value {
        Value::String(text) => {
            texts.extend_from_slice(text.as_bytes());
            texts.push(0);
            texts.extend(STANDARD.decode(text).unwrap_or_default());
        }
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| collect_texts(field, texts)),
        _ => {}
    }
}
