"""An S3 server for the tests: moto, with three additions.

Prints one line of JSON (endpoint, bucket, keys) when it is ready, and ends at the end of its standard input.

- moto checks whether an object exists and then stores it, in two steps. In S3 this is atomic, which `If-None-Match`
  needs, so a lock serializes writes here.
- Access keys are checked: one user has access, all others are denied.
- `/_control/` lets a test cause failures (failed parts, lost responses, damaged objects), and returns the number of
  unfinished uploads.
"""

import json
import logging
import sys
import threading
import urllib.parse

import boto3
from moto import settings
from moto.core import DEFAULT_ACCOUNT_ID
from moto.core.responses import ActionAuthenticatorMixin
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Response

BUCKET = "skillbox-tests"


class Server:
    def __init__(self):
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.write_lock = threading.Lock()
        self.failing_part = None
        self.responses_to_lose = 0

    def __call__(self, environ, start_response):
        path, method = environ["PATH_INFO"], environ["REQUEST_METHOD"]
        query = dict(urllib.parse.parse_qsl(environ["QUERY_STRING"]))
        if path.startswith("/_control/"):
            return self.control(path.removeprefix("/_control/"), query)(environ, start_response)
        if method in ("GET", "HEAD"):
            return self.moto(environ, start_response)
        if self.failing_part is not None and int(query.get("partNumber", "0")) >= self.failing_part:
            return Response("failed on request of a test", 500)(environ, start_response)
        with self.write_lock:
            answer = Response.from_app(self.moto, environ)
        if self.responses_to_lose > 0 and "HTTP_IF_NONE_MATCH" in environ:
            self.responses_to_lose -= 1
            # The object is stored, but the client gets an error.
            answer = Response("response lost on request of a test", 500)
        return answer(environ, start_response)

    def control(self, what, query):
        if what == "fail_parts":
            self.failing_part = int(query["from"])
        elif what == "lose_answers":
            self.responses_to_lose = int(query["count"])
        elif what == "uploads":
            return Response(str(len(backend().buckets[BUCKET].multiparts)))
        elif what == "damage":
            content = backend().get_object(BUCKET, query["key"]).value
            backend().put_object(BUCKET, query["key"], b"?" * len(content))
        else:
            return Response("no such control", 404)
        return Response("ok")


def backend():
    return s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


def prepare(endpoint):
    """Creates a bucket, and a user with access to it; keys are checked from then on."""

    def client(service):
        return boto3.client(
            service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x"
        )

    client("s3").create_bucket(Bucket=BUCKET)
    iam = client("iam")
    iam.create_user(UserName="skillbox")
    allow = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allow]}
    iam.put_user_policy(UserName="skillbox", PolicyName="all", PolicyDocument=json.dumps(policy))
    keys = iam.create_access_key(UserName="skillbox")["AccessKey"]
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    ActionAuthenticatorMixin.request_count = 0
    return {
        "endpoint": endpoint,
        "bucket": BUCKET,
        "access_key_id": keys["AccessKeyId"],
        "secret_access_key": keys["SecretAccessKey"],
    }


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, Server(), threaded=True, request_handler=Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps(prepare(f"http://127.0.0.1:{server.server_port}")), flush=True)
    sys.stdin.read()


main()
