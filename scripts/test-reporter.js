// A reporter of node:test for scripts/run-tests.js: one JSON line for each case or suite that ended or was left out,
// each diagnostic, and the end of all. Writes to the file itself, at once: what a process that dies has come to is not lost.
import { appendFileSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';

/** Its one case waits until all files are loaded. */
const groupEntry = fileURLToPath(new URL('./test-group.js', import.meta.url));

/** What node:test says of every process; scripts/run-tests.js counts itself. */
const ownCounts = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

/** Of what test/kit/assert/long-case.ts leaves out. */
const longReason = 'long';

/** The time from the last case to the end of the process, where a case has failed. */
const endDelayMs = 1_000;

/** What Node 20 says of the cases that a name pattern leaves out; newer ones do not mention them. */
const leftOut = 'test name does not match pattern';

// biome-ignore lint/style/noDefaultExport: node:test takes no other
export default async function* report(events) {
  /** The names around what runs, and the file of the outermost: a kit may define the case itself. */
  const around = [];
  const outermost = { open: 0, hasFailed: false };
  for await (const { type, data } of events) {
    if (data.file === groupEntry) continue;
    count(outermost, type, data);
    if (type === 'test:start') around.splice(data.nesting, around.length, data);
    const file = around[0]?.file ?? data.file;
    if (type === 'test:diagnostic' && !(data.nesting === 0 && ownCounts.test(data.message)))
      write({ kind: 'diagnostic', file, text: data.message });
    if ((type !== 'test:pass' && type !== 'test:fail') || data.skip === leftOut) continue;
    const path = [...around.slice(0, data.nesting).map(({ name }) => name), data.name];
    const kind = data.skip === longReason ? 'long' : type.slice('test:'.length);
    write({ kind, file, path, ...described(data) });
  }
  write({ kind: 'end', cpuSeconds: cpuSeconds() });
}

/**
 * A failed case may not have closed a child or a server, so that the process does not end. Without this end the run would wait for
 * the deadline, and the error of the case would be lost with the process. After passed cases alone the deadline applies.
 */
function count(outermost, type, { nesting }) {
  if (nesting > 0) return;
  if (type === 'test:enqueue') outermost.open++;
  if (type !== 'test:pass' && type !== 'test:fail') return;
  outermost.open--;
  outermost.hasFailed ||= type === 'test:fail';
  if (!outermost.hasFailed) return;
  setTimeout(() => {
    if (outermost.open > 0 || globalThis.writTestFilesToLoad > 0) return;
    write({ kind: 'end', cpuSeconds: cpuSeconds() });
    process.exit(1);
  }, endDelayMs).unref();
}

function described({ nesting, skip, todo, details }) {
  const { error } = details;
  return {
    nesting,
    isSuite: details.type === 'suite',
    ms: details.duration_ms,
    // `false` where nothing is skipped, or nothing said.
    ...(skip === undefined || skip === false ? {} : { skip: skip === true ? '' : skip }),
    ...(todo === undefined || todo === false ? {} : { todo: true }),
    // A suite that fails for one of its cases has nothing to add.
    ...(error === undefined || error.failureType === 'subtestsFailed'
      ? {}
      : { error: inspect(error.cause ?? error) }),
  };
}

/** Of this process and of its children that have ended. */
function cpuSeconds() {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / 100;
}

function write(line) {
  appendFileSync(process.env.WRIT_TEST_EVENTS, `${JSON.stringify(line)}\n`);
}
