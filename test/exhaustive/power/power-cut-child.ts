// A separate program: runs one cycle of a host on a mounted image, and copies the image after every labelled operation and at
// the acknowledgement. Each copy is a power cut at that moment. Prints the list of cuts.

import * as childProcess from 'node:child_process';
import { type spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { runSync } from '../../../src/agent/cycle/sync-cycle.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { closeHost, lockHost, openHost } from '../../../src/agent/startup/open-host.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { FileOperation } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { copyImage } from './loop-volume.js';

export interface CutOptions {
  readonly configPath: string;
  readonly command: 'pull' | 'rollback';
  /** The mounted image. */
  readonly image: string;
  /** Directory for the copies. */
  readonly copies: string;
  /** A file on the image that an unrelated process writes and flushes before a cut. */
  readonly foreignFile: string;
  /** The cuts before which that process flushes: none, each, or the cut with this number. */
  readonly foreign: 'none' | 'each' | number;
  /** `skipped`: no flush reaches the file system, to show that the method detects it. */
  readonly flushes: 'kept' | 'skipped';
}

export interface Cut {
  readonly op: string;
  readonly path: string;
  /** The copy. Successive cuts share one when nothing was written out between them. */
  readonly copy: string;
}

/** The name of the last cut: the command has reported its result. */
export const acknowledgedOp = 'acknowledged';

function cutter({ image, copies, foreign, foreignFile }: CutOptions): {
  cuts: Cut[];
  cut: (operation: FileOperation) => void;
} {
  const cuts: Cut[] = [];
  let copy = '';
  let copiedAt = 0n;
  const cut = ({ op, path }: FileOperation): void => {
    const isChosen = foreign === 'none' || foreign === 'each' || foreign === cuts.length;
    // When one cut is selected, the others are only counted.
    if (!isChosen) return void cuts.push({ op, path, copy: '' });
    if (foreign !== 'none') flushForeign(foreignFile);
    const { mtimeNs } = fs.statSync(image, { bigint: true });
    // Two changes within one tick of the kernel's clock may have one time: copy a recently changed image again.
    const isFresh = BigInt(Date.now()) * 1_000_000n - mtimeNs < 20_000_000n;
    if (mtimeNs !== copiedAt || isFresh) {
      copy = `${copies}/${cuts.length}.img`;
      copyImage(image, copy);
      copiedAt = mtimeNs;
    }
    cuts.push({ op, path, copy });
  };
  return { cuts, cut };
}

function flushForeign(path: string): void {
  const { status } = spawnSync('sh', ['-c', 'echo unrelated >>"$0" && sync "$0"', path]);
  if (status !== 0) throw new Error(`${path} could not be flushed`);
}

/** As with eatmydata: every flush succeeds without effect. */
function skipFlushes(): void {
  const { default: files } = fs as unknown as { default: { fsyncSync: () => void } };
  files.fsyncSync = () => undefined;
  const { default: children } = childProcess as unknown as { default: { spawn: typeof spawn } };
  const real = children.spawn;
  const without = (program: string, ...rest: unknown[]): unknown =>
    (real as (...all: unknown[]) => unknown)(program === 'sync' ? 'true' : program, ...rest);
  children.spawn = without as typeof spawn;
  syncBuiltinESMExports();
}

async function runCycle(options: CutOptions): Promise<Cut[]> {
  const { cuts, cut } = cutter(options);
  const { config } = loadConfig(options.configPath);
  const observer = { after: cut };
  const parts = { clock: systemClock, log: silentLog(), version: 'test', observer };
  const lock = await lockHost(config, parts, { holder: 'pull', waitMs: 0 });
  const host = await openHost(config, parts);
  const { signal } = new AbortController();
  const asked = { by: 'test', signal, onEvent: () => undefined };
  await startHost(host, { cycle: newCycleId(), signal });
  const end =
    options.command === 'pull'
      ? await runSync(host, { trigger: 'pull', ...asked })
      : await rollBack(host, asked);
  createRecorder().record(host, end, { by: 'test' });
  if (end.result.exitCode !== 0) throw new Error(JSON.stringify(end.result));
  cut({ op: acknowledgedOp, path: '' });
  await closeHost(host);
  lock.release();
  return cuts;
}

if (process.argv[1] === import.meta.filename) {
  const options = JSON.parse(process.argv[2] ?? '') as CutOptions;
  if (options.flushes === 'skipped') skipFlushes();
  process.stdout.write(`${JSON.stringify(await runCycle(options))}\n`);
}
