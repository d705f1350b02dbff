//! TLS, and a worker whose user may only pull, acknowledge and say that it is alive.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::hosts::{QueueWords, error_code, other_host, submitter};
use crate::batch::results::job_lines;
use crate::harness::{Fixture, NatsCluster, NatsVersion, need, program, run_to_completion};

/// What docs/batch.md says that a worker needs.
const USERS: &str = r#"
authorization { users: [
  { user: "submitter@example.com" },
  { user: "worker@example.com", permissions: {
    publish: ["$JS.API.STREAM.NAMES", "$JS.API.CONSUMER.MSG.NEXT.>", "$JS.ACK.>", "$KV.skillbox-workers.>"]
    subscribe: ["_INBOX.>", "skillbox.cancel.*"] } } ] }
"#;

/// Creates an authority, and a certificate of it for the server and for each user.
const CREATE_CERTIFICATES: &str = r#"
set -e
new_key="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new_key -keyout ca.key -out ca.pem -days 2 -subj /CN=authority
for each in server=IP:127.0.0.1 submitter=email:submitter@example.com worker=email:worker@example.com; do
    name=${each%%=*}
    openssl req $new_key -keyout $name.key -out $name.csr -subj /CN=$name
    printf 'subjectAltName=%s\nextendedKeyUsage=serverAuth,clientAuth\n' "${each#*=}" > $name.ext
    openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out $name.pem -days 2 -extfile $name.ext
done
"#;

fn create_certificates(directory: &Path) -> bool {
    let mut command = program("sh");
    command.args(["-c", CREATE_CERTIFICATES]).current_dir(directory);
    let created = run_to_completion(&mut command, b"", Duration::from_secs(60));
    need(
        created.status.success(),
        "openssl, which makes the certificates of the test",
    )
}

#[test]
fn a_worker_needs_only_to_pull_and_to_acknowledge() {
    let fixture = Fixture::new();
    let directory = fixture.path("certificates");
    fs::create_dir_all(&directory).unwrap();
    if !create_certificates(&directory) {
        return;
    }
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let tls = format!(
        "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify_and_map: true }}\n{USERS}",
        file("server.pem"),
        file("server.key"),
        file("ca.pem")
    );
    let Some(nats) = NatsCluster::start_with(NatsVersion::New, 1, fixture.root_dir(), &tls) else {
        return;
    };
    let queue = QueueWords::with_directory(&fixture, &nats.address_with("tls"));
    let authority = file("ca.pem");
    let certificate = |user: &str| [file(&format!("{user}.pem")), file(&format!("{user}.key"))];
    let as_user = |user: &str, args: &[&str]| {
        let [cert, key] = certificate(user);
        let tls = ["--queue-ca", &authority, "--queue-cert", &cert, "--queue-key", &key].map(str::to_owned);
        args.iter().map(|arg| (*arg).to_owned()).chain(tls).collect::<Vec<_>>()
    };
    let path = fixture.path("scratch/jobs.jsonl");
    fs::write(&path, job_lines(&[("one", "true"), ("two", "true")])).unwrap();
    let run = ["batch", "run", path.to_str().unwrap(), "--name", "tls", "--json"];

    let submit = as_user("submitter", &[&run[..], &["--detach"]].concat());
    let submitted = submitter(&fixture, &queue, &as_words(&submit)).run();
    assert_eq!(submitted.code, Some(0), "{}", submitted.describe());
    let work = as_user("worker", &["worker", "--exit-when-idle", "3", "--json"]);
    let worked = other_host(&fixture, &queue, "w1", &as_words(&work)).run();
    assert_eq!(
        (worked.code, &worked["finished"]),
        (Some(0), &json!(2)),
        "{}",
        worked.describe()
    );

    // A worker may not even look at the stream; the submitter may.
    let status = |user: &str| {
        let args = as_user(user, &["batch", "status", "tls", "--json"]);
        other_host(&fixture, &queue, "w2", &as_words(&args)).run()
    };
    assert_eq!(error_code(&status("worker")), "queue_unreachable");
    assert_eq!(status("submitter")["ok"], json!(2));
    // Without a certificate nobody connects.
    let bare = ["batch", "status", "tls", "--json", "--queue-ca", &authority];
    assert_eq!(
        error_code(&other_host(&fixture, &queue, "w2", &bare).run()),
        "queue_unreachable"
    );
}

fn as_words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}
