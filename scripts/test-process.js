// Runs the compiled test files of one process and reports the result of each. Owns the process: its deadline, its
// group, which ends with it, and its output. When a shared process dies or hangs, each of its files runs again
// alone, so that the faulty file is named and the others have their results.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describeLateProcess, reportFlags } from './late-process.js';

const projectRoot = fileURLToPath(new URL('..', import.meta.url));
const reporter = fileURLToPath(new URL('./test-reporter.js', import.meta.url));
const preload = new URL('./test-preload.js', import.meta.url).href;
const groupEntry = fileURLToPath(new URL('./test-group.js', import.meta.url));
/**
 * Without a limit V8 takes up to a quarter of the memory of the machine before it collects, and a test that keeps
 * memory slows all the others down. The largest heap of a usual process is 200 MB. A flag and not NODE_OPTIONS, because
 * the programs that a test starts would inherit the variable.
 */
const maxHeapMegabytes = 1024;
/**
 * A small young generation stays in the cache of the processor. Without threads of its own for the collector and the compiler, a process
 * takes no time from the other test process. Together they save an eighth of the processor time (27.4 s, then 23.8 s for 201 cases).
 */
const collectorFlags = ['--max-semi-space-size=4', '--single-threaded'];
const maxOutputChars = 200_000;
/** A file system in memory, of which a container may have only a little. */
const memoryPath = '/dev/shm';
const leastMemoryBytes = 2 ** 30;
const lookMs = 500;
/** For the report of a late process. */
const reportMs = 10_000;
const running = new Set();

/**
 * @param {{ files: readonly string[], timeoutMs: number, isInMemory: boolean, hasHeapLimit: boolean, patterns?: readonly string[],
 *   caseText?: string }} unit
 * files that share a process, by their whole paths; how long each may take alone; whether their temporary files may be in
 * memory; whether the heap of the process is bounded; regular expressions, of which one must match the name of a case or its suite; the text
 * that names of cases must contain
 * @returns for each file its result: its events, the wall and CPU seconds, and `trouble` when it did not end well
 */
export async function runUnit(unit) {
  const { files } = unit;
  const run = await runProcess(unit);
  const [only, ...others] = files;
  if (others.length === 0) return [resultOf(only, run.events, run, run.trouble)];
  if (run.trouble !== undefined) return oneByOne(unit, run.trouble);
  // What no file owns, as the output of all of them, would be lost: the first one bears it.
  const ownerOf = (event) => (files.includes(event.file) ? event.file : only);
  return files.map((file) => {
    const events = run.events.filter((event) => ownerOf(event) === file);
    const output = file === only ? run.output : '';
    return resultOf(file, events, { output, cpuSeconds: run.cpuSeconds / files.length });
  });
}

async function oneByOne({ files, ...rest }, trouble) {
  const results = [];
  for (const file of files) results.push(...(await runUnit({ ...rest, files: [file] })));
  if (!results.some(({ trouble, events }) => trouble !== undefined || events.some(hasFailed)))
    results[0].trouble = `alone each file passes, but ${files.length} of them in one process: ${trouble}`;
  return results;
}

export function hasFailed({ kind, todo }) {
  return kind === 'fail' && todo === undefined;
}

function resultOf(file, events, { seconds, cpuSeconds, output }, trouble) {
  const top = events.filter(({ kind, nesting }) => (kind === 'pass' || kind === 'fail') && nesting === 0);
  const ownSeconds = top.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  return { file, events, seconds: seconds ?? ownSeconds, cpuSeconds, output, trouble };
}

async function runProcess({ files, timeoutMs, isInMemory, hasHeapLimit, patterns = [], caseText }) {
  const scratch = mkdtempSync(join(isInMemory && hasMemory() ? memoryPath : tmpdir(), 'writ-tests-'));
  // Tests start programs as another user, which reads these files.
  chmodSync(scratch, 0o755);
  const eventsPath = join(scratch, 'events.ndjson');
  writeFileSync(eventsPath, '');
  const startedMs = performance.now();
  try {
    const entry = files.length === 1 ? files : [groupEntry, ...files];
    const chosen = caseText === undefined ? patterns : [escaped(caseText)];
    const pattern = chosen.map((text) => `--test-name-pattern=${text}`);
    const heap = hasHeapLimit ? [`--max-old-space-size=${maxHeapMegabytes}`] : [];
    const flags = [...heap, ...collectorFlags, ...reportFlags(scratch), '--import', preload];
    const argv = [...flags, '--test-reporter', reporter, ...pattern, ...entry];
    const env = { ...process.env, WRIT_TEST_EVENTS: eventsPath, ...(isInMemory ? { TMPDIR: scratch } : {}) };
    const { output, end } = await waitFor(argv, env, { timeoutMs, files: files.length, scratch });
    const events = linesOf(eventsPath);
    const last = events.at(-1)?.kind === 'end' ? events.pop() : undefined;
    return {
      events,
      output,
      seconds: (performance.now() - startedMs) / 1000,
      cpuSeconds: last?.cpuSeconds ?? 0,
      trouble: troubleOf({ end, events, hasEnded: last !== undefined }),
    };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** A place that the caller has named wins: the tests are to run on that file system. */
function hasMemory() {
  if (process.env.TMPDIR !== undefined || !existsSync(memoryPath)) return false;
  const { bavail, bsize } = statfsSync(memoryPath);
  return bavail * bsize >= leastMemoryBytes;
}

function troubleOf({ end, events, hasEnded }) {
  if (end.late !== undefined) {
    // A failed case may have left a child, so that the process does not end. Its error is printed here, because alone it may pass.
    const failed = events.filter((event) => hasFailed(event) && event.error !== undefined);
    const errors = failed.map((event) => `\n      ${nameOf(event)}: ${event.error}`).join('');
    const after = failed.length === 0 ? '' : `; before, there failed: ${errors}`;
    const state = end.state.map((line) => `\n      ${line}`).join('');
    return `${end.late}; the last that did: ${nameOf(events.at(-1))}${after}${state}`;
  }
  if (end.signal !== null) return `it died of ${end.signal}`;
  if (!hasEnded) return `it ended with ${end.exitCode} before its tests did`;
  if (end.exitCode !== 0 && !events.some(hasFailed))
    return `it ended with ${end.exitCode}, and no test failed`;
  return undefined;
}

/** @returns the last case of a process that hung: the fault is in the code after this case */
function nameOf(event) {
  return event?.path === undefined ? 'none' : `${event.file}: ${event.path.join(' > ')}`;
}

/** node:test takes a regular expression. */
function escaped(text) {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

function linesOf(path) {
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}

function waitFor(argv, env, limits) {
  // A group of its own, so that processes that a test has left end with it.
  const stdio = ['ignore', 'pipe', 'pipe'];
  // Tests name files of the checkout by their paths in it, wherever the runner was started.
  const child = spawn(process.execPath, argv, { cwd: projectRoot, env, stdio, detached: true });
  running.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output = `${output}${text}`.slice(-maxOutputChars);
    });
  const lateness = watchProgress(env.WRIT_TEST_EVENTS, limits);
  let late;
  let state = [];
  const timer = setInterval(async () => {
    if (late !== undefined) return;
    late = lateness();
    if (late === undefined) return;
    try {
      state = await describeLateProcess(child.pid, { directory: limits.scratch, waitMs: reportMs });
    } finally {
      killGroup(child);
    }
  }, lookMs);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', async (exitCode, signal) => {
      clearInterval(timer);
      killGroup(child);
      running.delete(child);
      // A process of another group may keep the output open for ever.
      await Promise.race([once(child, 'close'), sleep(1000, undefined, { ref: false })]);
      resolve({ output, end: { exitCode, signal, late, state } });
    });
  });
}

/**
 * Each file has a deadline. For files that share a process the slow one is unknown, but no case of any of
 * them may use the whole deadline.
 */
function watchProgress(eventsPath, { timeoutMs, files }) {
  const startedMs = performance.now();
  let last = { size: 0, atMs: startedMs };
  return () => {
    const { size } = statSync(eventsPath);
    const nowMs = performance.now();
    if (size !== last.size) last = { size, atMs: nowMs };
    if (nowMs - startedMs > timeoutMs * files) return `it did not end within ${(timeoutMs * files) / 1000} s`;
    if (files > 1 && nowMs - last.atMs > timeoutMs) return `nothing ended in it for ${timeoutMs / 1000} s`;
    return undefined;
  };
}

/** For the end of the runner itself. */
export function killAll() {
  for (const child of running) killGroup(child);
}

function killGroup({ pid }) {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
