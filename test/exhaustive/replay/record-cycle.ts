// Runs a cycle of the real program under strace and translates its system calls to a recording of disk changes. Proves that
// the recording is complete: all changes together must produce exactly the real directory.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { loadConfig } from '../../../src/agent/config/load-config.js';
import { listGenerations } from '../../../src/agent/generations/generations.js';
import { readHistory } from '../../../src/agent/job/history.js';
import { hostPaths } from '../../../src/agent/state/paths.js';
import { sealed } from '../../../src/agent/state/sealed-json.js';
import type { AgentConfig } from '../../../src/core/config/config.js';
import { readBootId } from '../../../src/platform/process/boot-id.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type DiskRecording, differences, imageOf, openRecording } from '../power/disk-image.js';
import { type FileOperation, operationsOf, readingCalls } from './recorded-operations.js';
import { type Expectation, makeWorld, type ReplayCycle, type ReplayWorld } from './replay-cycles.js';
import { parseTrace } from './system-calls.js';

export interface RecordedCycle extends Disposable {
  readonly name: string;
  /** The configuration of the recorded host. */
  readonly config: AgentConfig;
  readonly expectation: Expectation;
  readonly recording: DiskRecording;
  /** The number of system calls that changed the disk, with flushes. */
  readonly operations: number;
  /**
   * After this many changes the result must not be lost: the swap is durable and workers are notified next. Without a
   * swap: after the acknowledgement.
   */
  readonly swappedAt: number;
  /** After this many changes the command has reported its result to its caller. */
  readonly acknowledgedAt: number;
  /** Ids of the cycles in the history, with the recorded one if it changed anything. */
  readonly notified: readonly string[];
  /** The greatest generation number at the end of the cycle. */
  readonly newestGeneration: number;
  /** Epoch milliseconds. */
  readonly recordedAtMs: number;
}

/** The strictest usual umask: a mode that only a permissive umask makes right is found. */
const umask = 0o077;
/** The id of an earlier boot, because a power cut changes the boot. As long as a real id, so that no length changes. */
const earlierBoot = '00000000-1111-2222-3333-444444444444';

export async function recordCycle(cycle: ReplayCycle): Promise<RecordedCycle> {
  const dir = tempDir();
  try {
    const world = makeWorld(dir);
    return await recordIn(world, cycle, await cycle.prepare(world));
  } catch (error) {
    dir[Symbol.dispose]();
    throw error;
  }
}

/** Records in a prepared world; disposing of the recording removes the world. */
export async function recordIn(
  world: ReplayWorld,
  { name, argv }: Pick<ReplayCycle, 'name' | 'argv'>,
  expectation: Expectation,
): Promise<RecordedCycle> {
  forgetBoot(world.disk);
  const follow = openRecording(world.disk);
  const operations = (await trace(world, argv)).map(inEarlierBoot);
  const recording = follow(operations);
  const { config } = loadConfig(world.configPath);
  requireNoHole(imageOf(recording, recording.changes.keys(), new Map()), world.disk);
  return {
    name,
    config,
    expectation,
    recording,
    operations: operations.filter(({ kind }) => kind !== 'open' && kind !== 'acknowledged').length,
    swappedAt: swapOf(recording),
    acknowledgedAt: answerOf(recording.changes),
    notified: cycleIdsInHistory(config),
    newestGeneration: Math.max(...listGenerations(hostPaths(config))),
    recordedAtMs: Date.now(),
    [Symbol.dispose]: () => world.dir[Symbol.dispose](),
  };
}

function cycleIdsInHistory(config: AgentConfig): string[] {
  const entries = readHistory(hostPaths(config), { limit: 10 });
  return entries.map(({ result }) => result.cycle);
}

async function trace(world: ReplayWorld, argv: readonly string[]): Promise<FileOperation[]> {
  const path = world.dir.join('trace');
  const strace = ['strace', '-f', '-yy', '-xx', '-s', '100000000', '-o', path];
  const filter = ['-e', `trace=!${readingCalls.join(',')}`];
  const under = ['sh', '-c', `umask 0${umask.toString(8)}; exec "$@"`, 'sh', ...strace, ...filter];
  const run = await runWritProcess([...argv, '--json', '--config', world.configPath], { under, cwd: '/' });
  assert.equal(run.exitCode, 0, `${run.stdout}${run.stderr}`);
  const calls = parseTrace(fs.readFileSync(path, 'latin1'));
  const operations = operationsOf(calls, { root: world.disk, umask, acknowledgement: '"outcome"' });
  assert.ok(
    operations.some(({ kind }) => kind === 'acknowledged'),
    'the record has the moment of the answer',
  );
  return operations;
}

/** Changes the prepared disk as if an earlier boot had written it. */
function forgetBoot(disk: string): void {
  const path = `${disk}/lib/writ/ledger.json`;
  if (!fs.existsSync(path)) return;
  fs.writeFileSync(path, asOfEarlierBoot(fs.readFileSync(path, 'utf8')));
}

function inEarlierBoot(operation: FileOperation): FileOperation {
  if (operation.kind !== 'write') return operation;
  return { ...operation, bytes: Buffer.from(asOfEarlierBoot(operation.bytes.toString('latin1')), 'latin1') };
}

/** Updates the digest at the end of a ledger for another boot id. */
function asOfEarlierBoot(text: string): string {
  if (!text.includes(readBootId())) return text;
  const { digest, ...ledger } = JSON.parse(text.replaceAll(readBootId(), earlierBoot)) as { digest: string };
  assert.match(digest, /^sha256:/);
  return sealed(ledger);
}

function requireNoHole(image: Parameters<typeof differences>[0], disk: string): void {
  forgetBoot(disk);
  assert.deepEqual(differences(image, disk), [], 'the record makes the directory that is there');
}

/** The number of changes up to the flush that makes the last swap of `current` durable, or up to the report. */
function swapOf({ changes }: DiskRecording): number {
  const swap = changes.findLastIndex(({ label }) => /^rename .*\/policy\/current$/.test(label));
  if (swap < 0) return answerOf(changes);
  const flush = changes.findIndex(({ label }, index) => index > swap && /^fsync .*\/policy$/.test(label));
  assert.ok(flush > swap, 'a swap is flushed');
  return flush + 1;
}

function answerOf(changes: DiskRecording['changes']): number {
  return changes.findIndex(({ kind }) => kind === 'acknowledged') + 1;
}
