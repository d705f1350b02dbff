// A round trip with the types that openapi-typescript generates, and openapi-fetch.

import createClient from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

declare const process: { argv: string[]; exit(code: number): never };
const client = createClient<paths>({ baseUrl: process.argv[2]! });

function fail(...words: unknown[]): never {
  console.error(...words);
  process.exit(1);
}

async function start(body: components["schemas"]["StartRun"], wait?: number) {
  return client.POST("/v1/runs", { body, params: { query: { wait } } });
}

const { data: run } = await start(
  {
    skill: "python-math",
    command: "rev $WORK_DIR/inputs/word > $OUTPUT_DIR/drow; printf '\\377\\376' > $OUTPUT_DIR/raw",
    inputs: [{ from: "data:text/plain,word", to: "inputs/word" }],
    output_files: ["out/*"],
  } as components["schemas"]["StartRun"],
  60,
);
// The status tells the states apart: without this check, `output_files` does not compile.
if (run?.status !== "ended") fail("not ended", run);
if (run.exit_code !== 0 || run.output_files.length !== 2) fail(run);
const { data: raw } = await client.GET("/v1/runs/{id}/files/{path}", {
  params: { path: { id: run.run_id, path: "out/raw" } },
  parseAs: "arrayBuffer",
});
if (!raw || new Uint8Array(raw as unknown as ArrayBuffer)[0] !== 0xff) fail("content", raw);

const { error } = await start({ skill: "none", command: "true" } as components["schemas"]["StartRun"], 60);
const unknownSkill: components["schemas"]["ErrorCode"] = "unknown_skill";
if (error?.error.code !== unknownSkill) fail(error);

await client.DELETE("/v1/runs/{id}", { params: { path: { id: run.run_id } } });
const { error: gone, response } = await client.GET("/v1/runs/{id}", { params: { path: { id: run.run_id } } });
if (response.status !== 410 || gone?.error.code !== "run_gone") fail(response.status, gone);
