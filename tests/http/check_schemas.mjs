// Compiles the schemas of tool definitions with ajv in strict mode, which refuses unknown formats and keywords.

import { readFileSync } from "node:fs";
import Ajv2020 from "ajv/dist/2020.js";

const problems = [];
const note = (...words) => problems.push(words.join(" "));
const ajv = new Ajv2020.default({ strict: true, logger: { log: note, warn: note, error: note } });
let count = 0;
for (const path of process.argv.slice(2)) {
  for (const tool of JSON.parse(readFileSync(path, "utf8"))) {
    for (const key of ["inputSchema", "outputSchema"].filter((key) => tool[key])) {
      const validate = ajv.compile(tool[key]);
      count += 1;
      if (key === "outputSchema" && !validate({ error: { code: "busy", message: "x" } })) note(tool.name, "refuses errors");
    }
  }
}
if (problems.length || count < 20) {
  console.error(count, problems.join("\n"));
  process.exit(1);
}
