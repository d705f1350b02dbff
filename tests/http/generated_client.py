"""A round trip with the client that openapi-python-client generates, in the package `skillbox_client`."""

import sys

from skillbox_client import Client
from skillbox_client.api.runs import delete_run, get_run, get_run_file, start_run
from skillbox_client.models import EndedRun, Error, ErrorCode, InputSpec, RefusedRun, StartRun

client = Client(base_url=sys.argv[1], timeout=60)
run = StartRun(
    skill="python-math",
    command="rev $WORK_DIR/inputs/word > $OUTPUT_DIR/drow; printf '\\377\\376' > $OUTPUT_DIR/raw",
    inputs=[InputSpec(from_="data:text/plain,word", to="inputs/word")],
    output_files=["out/*"],
)
ended = start_run.sync(client=client, body=run, wait=60)
assert isinstance(ended, EndedRun), ended
assert ended.exit_code == 0, ended
assert [file.name for file in ended.output_files] == ["out/drow", "out/raw"], ended.output_files
assert ended.output_files[0].sha256.startswith("sha256:"), ended.output_files
content = get_run_file.sync(id=ended.run_id, path="out/raw", client=client)
assert content.payload.read() == b"\xff\xfe", content
assert isinstance(get_run.sync(id=ended.run_id, client=client), EndedRun)

refused = start_run.sync(client=client, body=StartRun(skill="none", command="true"), wait=60)
assert isinstance(refused, Error), refused
assert refused.error.code == ErrorCode.UNKNOWN_SKILL, refused
queued = start_run.sync(client=client, body=StartRun(skill="none", command="true"))
shown = get_run.sync(id=queued.run_id, client=client, wait=60)
assert isinstance(shown, RefusedRun), shown

assert isinstance(delete_run.sync(id=ended.run_id, client=client), EndedRun)
gone = get_run.sync_detailed(id=ended.run_id, client=client)
assert gone.status_code == 410 and gone.parsed.error.code == ErrorCode.RUN_GONE, gone
