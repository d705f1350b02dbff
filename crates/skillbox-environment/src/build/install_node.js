// Installs packages of Node into an environment. Runs inside the sandbox of a build; reads its task from stdin.
// Install scripts are off, so no code of a package runs here.
const { execFileSync, spawnSync } = require("child_process");
const fs = require("fs");
const path = require("path");

const ENV = "/workspace/stage/env";
const WORK = "/workspace/work";

function fail(message) {
  console.error("skillbox: " + message);
  process.exit(3);
}

function findNpm() {
  for (const directory of process.env.PATH.split(":")) {
    const file = path.join(directory, "npm");
    if (fs.existsSync(file)) return fs.realpathSync(file);
  }
  return fail("npm, which installs packages, is not visible in the sandbox");
}

function configuration(task) {
  const lines = ["registry=" + task.registry];
  for (const [scope, registry] of Object.entries(task.scopes)) lines.push(`${scope}:registry=${registry}`);
  if (task.certificates) {
    fs.writeFileSync(WORK + "/ca.pem", task.certificates);
    lines.push("cafile=" + WORK + "/ca.pem");
  }
  fs.writeFileSync(WORK + "/npmrc", lines.join("\n") + "\n");
  fs.writeFileSync(WORK + "/empty-npmrc", "");
}

function install(npm, task) {
  fs.mkdirSync(ENV, { recursive: true });
  fs.writeFileSync(ENV + "/package.json", JSON.stringify(task.manifest));
  if (task.lock) fs.writeFileSync(ENV + "/package-lock.json", JSON.stringify(task.lock));
  const installed = spawnSync(
    process.execPath,
    [
      npm, task.lock ? "ci" : "install", "--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--no-progress",
      "--no-update-notifier", "--install-links=false", "--fetch-retries=2", "--fetch-timeout=30000",
      "--cache=" + WORK + "/npm-cache", "--userconfig=" + WORK + "/npmrc", "--globalconfig=" + WORK + "/empty-npmrc",
    ],
    { cwd: ENV, stdio: ["ignore", "inherit", "inherit"] },
  );
  if (installed.status !== 0) process.exit(installed.status || 1);
}

function packages() {
  const hidden = ENV + "/node_modules/.package-lock.json";
  if (!fs.existsSync(hidden)) return [];
  const lock = JSON.parse(fs.readFileSync(hidden, "utf8"));
  // It has addresses, which differ between hosts with different mirrors.
  fs.unlinkSync(hidden);
  return Object.entries(lock.packages).map(([place, found]) => ({
    name: place.replace(/^node_modules\//, ""),
    version: found.version || "",
    hash: found.integrity || "",
  }));
}

const task = JSON.parse(fs.readFileSync(0, "utf8"));
const npm = findNpm();
configuration(task);
install(npm, task);
const installed = packages();
for (const file of ["package.json", "package-lock.json"]) fs.rmSync(path.join(ENV, file), { force: true });
const report = process.report.getReport().header;
fs.writeFileSync(
  WORK + "/result.json",
  JSON.stringify({
    packages: installed,
    interpreter: {
      version: "node " + process.version,
      build: "abi " + process.versions.modules,
      path: process.execPath,
    },
    platform: `${process.platform} ${process.arch} glibc ${report.glibcVersionRuntime || ""}`,
    tool: "npm " + execFileSync(process.execPath, [npm, "--version"]).toString().trim(),
  }),
);
