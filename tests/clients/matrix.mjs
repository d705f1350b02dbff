// Drives the TypeScript SDK of the Model Context Protocol through the actions of the client matrix.
//
// usage: matrix.mjs 1|2 ADDRESS, where 1 or 2 is the major version of the SDK. Prints one line of JSON for each action.

import { createHash } from "node:crypto";

const [version, address] = process.argv.slice(2);
// The characters of a result that may reach a model, whatever the run wrote.
const MAX_MODEL_TEXT = 20 << 10;
// Without progress, a request times out after 60 seconds by default; with `resetTimeoutOnProgress`, a run may take longer.
const OPTIONS = { resetTimeoutOnProgress: true, onprogress: () => {} };
const TABLE = "a,b\n1,2\n";
const MEGABYTE =
  "import os; rows = open('/workspace/work/inputs/table.csv').read(); " +
  "open(os.environ['OUTPUT_DIR'] + '/large.csv', 'w').write(rows * 131072)";

async function load() {
  if (version === "1") {
    const { Client } = await import("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return { Client, StreamableHTTPClientTransport };
  }
  return import("@modelcontextprotocol/client");
}

const { Client, StreamableHTTPClientTransport } = await load();
const client = new Client({ name: "matrix", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(address)));

function call(args, options = OPTIONS, name = "skill_run") {
  const request = { name, arguments: { skill: "python-math", ...args } };
  return version === "1" ? client.callTool(request, undefined, options) : client.callTool(request, options);
}

function textOf(result) {
  return result.content.map((block) => block.text ?? block.uri).join("\n");
}

function check(condition, text) {
  if (!condition) throw new Error(text);
}

const actions = {
  async list() {
    const names = (await client.listTools()).tools.map((tool) => tool.name);
    check(names.includes("skill_run"), names.join());
  },
  async load() {
    check(textOf(await call({}, OPTIONS, "skill_load")).includes("python-math"), "no instructions");
  },
  async files() {
    const content = Buffer.from(TABLE).toString("base64");
    const result = await call({
      argv: ["python3", "-c", MEGABYTE],
      inputs: [{ from: `data:text/csv;base64,${content}`, to: "inputs/table.csv" }],
      output_files: ["out/*"],
    });
    check(textOf(result).length <= MAX_MODEL_TEXT, `${textOf(result).length} characters reach the model`);
    const link = result.content.find((block) => block.type === "resource_link");
    const whole = (await client.readResource({ uri: link.uri })).contents[0].text;
    const digest = (text) => createHash("sha256").update(text).digest("hex");
    check(digest(whole) === digest(TABLE.repeat(131072)), `${whole.length} characters`);
  },
  async refusal() {
    const result = await call({ command: "true", cwd: "../.." });
    check(result.isError && textOf(result).includes("hint: ") && result.structuredContent.error.code, textOf(result));
  },
  async cancel() {
    const abort = new AbortController();
    const run = call({ command: "touch $WORK_DIR/begun; sleep 611" }, { ...OPTIONS, signal: abort.signal });
    const ended = run.then(() => "ended", () => "cancelled");
    await new Promise((resolve) => setTimeout(resolve, 3000));
    abort.abort();
    check((await ended) === "cancelled", "the call ended by itself");
    // A session runs one command at a time: this one starts when the cancelled one has ended.
    const text = textOf(await call({ command: "ls $WORK_DIR; echo after" }));
    check(text.includes("begun") && text.includes("after"), text);
  },
  async silence() {
    let notifications = 0;
    // Shorter than the run: the call survives because the server reports progress.
    const options = { timeout: 7000, resetTimeoutOnProgress: true, onprogress: () => (notifications += 1) };
    const text = textOf(await call({ command: "sleep 10; echo awake" }, options));
    check(text.includes("awake") && notifications >= 2, `${notifications} notifications, ${text}`);
  },
};

for (const [action, run] of Object.entries(actions)) {
  let reason = "";
  try {
    await run();
  } catch (error) {
    reason = String(error.stack ?? error);
  }
  console.log(JSON.stringify({ action, ok: reason === "", reason }));
}
await client.close();
process.exit(0);
