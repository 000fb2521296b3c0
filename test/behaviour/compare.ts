// `npm run behaviour -- OTHER_CHECKOUT [--record DIR] [--only PART]`: plays every story with this checkout and with the
// other one, and says where anything that can be seen from outside is not the same. Owns the command line and exit codes.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Misuse, openCheckout } from './checkout.js';
import { compareStory, type Ground, prepareCommon } from './compare-story.js';
import { writeRecordings } from './recording.js';
import { listStories, type Story } from './stories.js';

/** Stories at once. */
const lanes = 2;
const usage = 'usage: npm run behaviour -- OTHER_CHECKOUT [--record DIR] [--only PART-OF-A-NAME]';

interface Order {
  readonly other: string;
  readonly only: string;
  readonly record?: string;
}

interface Tally {
  stories: number;
  recordings: number;
  different: number;
}

async function main(): Promise<number> {
  const order = orderOf(process.argv.slice(2));
  const a = openCheckout(join(import.meta.dirname, '..', '..', '..'));
  const b = openCheckout(order.other);
  const stories = listStories(order.only);
  if (stories.length === 0) throw new Misuse(`no story is called ${order.only}`);
  const base = mkdtempSync(join(tmpdir(), 'wb-'));
  process.once('exit', () => rmSync(base, { recursive: true, force: true, maxRetries: 3 }));
  const { signal } = endedBySignals();
  const ground: Ground = { a, b, base, signal, startMs: Math.floor(Date.now() / 60_000) * 60_000 };
  await prepareCommon(ground);
  const tally = await compareAll(ground, stories, order.record);
  say(`A is ${a.directory}, B is ${b.directory}`);
  say(`${tally.stories} stories, ${tally.recordings} recordings, ${tally.different} stories differ`);
  return tally.different === 0 ? 0 : 1;
}

/** @returns what ends every story that runs, before this process ends with the code of the signal */
function endedBySignals(): AbortController {
  const controller = new AbortController();
  for (const [name, code] of [
    ['SIGHUP', 129],
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    process.once(name, () => {
      controller.abort();
      process.exit(code);
    });
  }
  return controller;
}

function orderOf(args: readonly string[]): Order {
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { record: { type: 'string' }, only: { type: 'string', default: '' } },
    });
    const [other, ...more] = positionals;
    if (other === undefined || more.length > 0) throw new Misuse(usage);
    const { record } = values;
    return { other, only: values.only, ...(record === undefined ? {} : { record }) };
  } catch (cause) {
    throw cause instanceof Misuse ? cause : new Misuse(usage);
  }
}

async function compareAll(ground: Ground, stories: readonly Story[], record?: string): Promise<Tally> {
  const tally: Tally = { stories: 0, recordings: 0, different: 0 };
  const waiting = [...stories];
  const lane = async (): Promise<void> => {
    for (let story = waiting.shift(); story !== undefined; story = waiting.shift()) {
      const startMs = performance.now();
      const { a, b, differences } = await compareStory(ground, story);
      if (record !== undefined) {
        writeRecordings(join(record, 'a'), story.name, a);
        writeRecordings(join(record, 'b'), story.name, b);
      }
      tally.stories += 1;
      tally.recordings += a.length;
      if (differences.length > 0) tally.different += 1;
      const verdict = differences.length === 0 ? 'same     ' : 'DIFFERENT';
      const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
      say(`${verdict} ${story.name}: ${a.length} recordings, ${seconds} s`);
      for (const line of differences) say(line);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return tally;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exit(error instanceof Misuse ? 2 : 1);
  },
);
