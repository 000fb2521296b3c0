// A process that uses policy, as the soak starts it: a plain reader in a loop, a native worker, or a daemon that reads
// again at SIGHUP. Reads every file each time and tells the driver on stdout, one JSON object a line. Decides only
// what its own eyes have seen; whether an older serial was in order is the driver's to say.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectPolicy } from '../../../../src/sdk/policy-reader.js';
import { KnownReleases } from './known-releases.js';
import { type PolicyRead, readGeneration, readPolicy } from './read-policy.js';

export interface UserSettings {
  readonly kind: 'reader' | 'native' | 'daemon';
  readonly policy: string;
  readonly known: string;
  readonly graceMs: number;
  readonly socket: string;
  readonly pidFile: string;
}

export type UserLine =
  | { readonly type: 'count'; readonly reads: number; readonly files: number; readonly late: number }
  | { readonly type: 'violation'; readonly text: string }
  /** A bundle has a lower serial than at the reading before. */
  | { readonly type: 'lower'; readonly bundle: string; readonly from: number; readonly to: number };

const leastPauseMs = 25;
/** A reader may take a sixth of a processor, not more: it is not alone on the machine. */
const pausesPerReading = 5;
const countEveryMs = 500;
const longestThoughtMs = 400;

const settings = JSON.parse(process.argv[2] ?? '') as UserSettings;
const known = new KnownReleases(settings.known);
const count = { reads: 0, files: 0, late: 0 };
const serials = new Map<string, number>();

function notify(line: UserLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function note(read: PolicyRead): void {
  count.reads += 1;
  count.files += read.files;
  if (read.late) count.late += 1;
  for (const text of read.violations) notify({ type: 'violation', text: `${settings.kind}: ${text}` });
}

function follow(read: PolicyRead): void {
  for (const { bundle, serial, tainted } of read.bundles) {
    if (tainted || serial === 0) continue;
    const from = serials.get(bundle) ?? 0;
    if (serial < from) notify({ type: 'lower', bundle, from, to: serial });
    serials.set(bundle, serial);
  }
}

async function beReader(): Promise<void> {
  for (;;) {
    const startedMs = performance.now();
    const read = readPolicy(settings.policy, { known, graceMs: settings.graceMs });
    note(read);
    follow(read);
    await sleep(Math.max(leastPauseMs, (performance.now() - startedMs) * pausesPerReading));
  }
}

function beNative(): void {
  connectPolicy({
    socket: settings.socket,
    delays: { firstMs: 50, maxMs: 500 },
    onGeneration: async ({ path, bundle }) => {
      // A worker takes its time, so that a crash may come in between.
      await sleep(Math.random() * longestThoughtMs);
      note(readGeneration(path, { known, graceMs: settings.graceMs }));
      if (fs.existsSync(join(bundle('access'), 'nack'))) throw new Error('the policy asks for a nack');
    },
  });
}

function beDaemon(): void {
  process.on('SIGHUP', () => note(readPolicy(settings.policy, { known, graceMs: settings.graceMs })));
  fs.writeFileSync(settings.pidFile, `${process.pid}\n`);
}

known.refresh();
setInterval(() => {
  notify({ type: 'count', ...count });
  Object.assign(count, { reads: 0, files: 0, late: 0 });
}, countEveryMs);
// Nobody outlives the driver.
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.on('error', () => process.exit(0));
if (settings.kind === 'reader') await beReader();
else if (settings.kind === 'native') beNative();
else beDaemon();
