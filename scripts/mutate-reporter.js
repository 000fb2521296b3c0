// A reporter of node:test for scripts/mutate.js: one JSON line for each case that ended, with how it failed, and for
// each suite that was skipped. Writes to the file itself, at once: a run that is forced to its end would cut off what
// a stream still has.
import { appendFileSync } from 'node:fs';

/** The message of Node 20 for cases that a name pattern excludes; newer versions do not report them. */
const leftOut = 'test name does not match pattern';

// biome-ignore lint/correctness/useYield: a reporter is a generator, and this one has nothing for stdout
// biome-ignore lint/style/noDefaultExport: node:test takes no other
export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { name, skip, details } = data;
    const isSuite = details.type === 'suite';
    if (skip === leftOut || (isSuite && skip === undefined)) continue;
    const { failureType, cause } = details.error ?? {};
    const message = String(cause?.message ?? cause ?? '').split('\n')[0];
    const line = JSON.stringify({
      name,
      isSuite,
      hasPassed: type === 'test:pass',
      skip,
      failureType,
      message,
    });
    appendFileSync(process.env.WRIT_MUTATE_EVENTS, `${line}\n`);
  }
}
