// A process that uses policy in a soak: a reader in a loop, a native worker, or a daemon that reads again at SIGHUP. Reads
// every file each time and reports to the driver on stdout, one JSON object a line. Reports only what it has read; the driver
// decides whether a lower serial was expected.
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
  /** A bundle has a lower serial than at the last reading. */
  | { readonly type: 'lower'; readonly bundle: string; readonly from: number; readonly to: number };

const leastPauseMs = 25;
/** Limits a reader to a sixth of a processor, because the machine runs other processes too. */
const pausesPerReading = 5;
const countEveryMs = 500;
const maxAcknowledgeDelayMs = 400;

const settings = JSON.parse(process.argv[2] ?? '') as UserSettings;
const known = new KnownReleases(settings.known);
const count = { reads: 0, files: 0, late: 0 };
const serials = new Map<string, number>();

function report(line: UserLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function note(read: PolicyRead): void {
  count.reads += 1;
  count.files += read.files;
  if (read.late) count.late += 1;
  for (const text of read.violations) report({ type: 'violation', text: `${settings.kind}: ${text}` });
}

function follow(read: PolicyRead): void {
  for (const { bundle, serial, tainted } of read.bundles) {
    if (tainted || serial === 0) continue;
    const from = serials.get(bundle) ?? 0;
    if (serial < from) report({ type: 'lower', bundle, from, to: serial });
    serials.set(bundle, serial);
  }
}

async function runReader(): Promise<void> {
  for (;;) {
    const startedMs = performance.now();
    const read = readPolicy(settings.policy, { known, graceMs: settings.graceMs });
    note(read);
    follow(read);
    await sleep(Math.max(leastPauseMs, (performance.now() - startedMs) * pausesPerReading));
  }
}

function runNativeWorker(): void {
  connectPolicy({
    socket: settings.socket,
    delays: { firstMs: 50, maxMs: 500 },
    onGeneration: async ({ path, bundle }) => {
      // Delays the acknowledgement, so that a crash can happen before it.
      await sleep(Math.random() * maxAcknowledgeDelayMs);
      note(readGeneration(path, { known, graceMs: settings.graceMs }));
      if (fs.existsSync(join(bundle('access'), 'nack'))) throw new Error('the policy asks for a nack');
    },
  });
}

function runDaemon(): void {
  process.on('SIGHUP', () => note(readPolicy(settings.policy, { known, graceMs: settings.graceMs })));
  fs.writeFileSync(settings.pidFile, `${process.pid}\n`);
}

known.refresh();
setInterval(() => {
  report({ type: 'count', ...count });
  Object.assign(count, { reads: 0, files: 0, late: 0 });
}, countEveryMs);
// The process must not outlive the driver.
process.stdin.on('end', () => process.exit(0)).resume();
process.stdout.on('error', () => process.exit(0));
if (settings.kind === 'reader') await runReader();
else if (settings.kind === 'native') runNativeWorker();
else runDaemon();
