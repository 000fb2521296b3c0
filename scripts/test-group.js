// The process that several test files share: loads one after the other. A file that cannot be loaded is named, and the
// others run; one that ends the process is found by scripts/test-process.js, which runs each alone then.
import { appendFileSync } from 'node:fs';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';

const files = process.argv.slice(2);
let startCases;
const loaded = new Promise((resolve) => {
  startCases = resolve;
});
// Each case waits for this one: the loading of further files blocks the process for seconds where the machine is busy, and a
// server of the first cases would answer its clients too late. scripts/test-reporter.js leaves it out.
test('the files are loaded', () => loaded);
// For scripts/test-reporter.js: cases of the first files may end before the last ones are loaded.
globalThis.writTestFilesToLoad = files.length;
for (const file of files) {
  try {
    await import(pathToFileURL(file).href);
  } catch (error) {
    const line = {
      kind: 'fail',
      file,
      path: ['the file cannot be loaded'],
      nesting: 0,
      isSuite: false,
      ms: 0,
    };
    appendFileSync(process.env.WRIT_TEST_EVENTS, `${JSON.stringify({ ...line, error: inspect(error) })}\n`);
    process.exitCode = 1;
  }
  globalThis.writTestFilesToLoad--;
}
startCases();
