// An Azure Blob server for the tests: Azurite, with one container.
//
// Started as `node azurite.mjs NODE_MODULES`. Prints one line of JSON (endpoint, container, account, key) when it is
// ready, and ends at the end of its standard input. The account and its key are the defaults of Azurite.

import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import path from "node:path";
import readline from "node:readline";

const account = "devstoreaccount1";
const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const container = "skillbox-tests";

async function createContainer(endpoint) {
  const headers = { "x-ms-date": new Date().toUTCString(), "x-ms-version": "2021-08-06" };
  const signed = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
  const resource = `/${account}/${account}/${container}\nrestype:container`;
  const text = `PUT${"\n".repeat(12)}${signed.join("")}${resource}`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text).digest("base64");
  const Authorization = `SharedKey ${account}:${signature}`;
  const url = `${endpoint}/${container}?restype=container`;
  const answer = await fetch(url, { method: "PUT", headers: { ...headers, Authorization } });
  if (!answer.ok) throw new Error(`no container: ${answer.status} ${await answer.text()}`);
}

const program = path.join(process.argv[2], "azurite/dist/src/blob/main.js");
const options = ["--inMemoryPersistence", "--blobPort", "0", "--skipApiVersionCheck", "--disableTelemetry"];
const azurite = spawn(process.execPath, [program, ...options], { stdio: ["ignore", "pipe", "inherit"] });
azurite.on("exit", (code) => process.exit(code ?? 1));
process.stdin.on("end", () => azurite.kill()).resume();

for await (const line of readline.createInterface({ input: azurite.stdout })) {
  const at = line.match(/successfully listen(?:ing|s) (?:at|on) (http:\S+)/);
  if (at) {
    const endpoint = `${at[1]}/${account}`;
    await createContainer(endpoint);
    console.log(JSON.stringify({ endpoint, container, account, key }));
  }
}
