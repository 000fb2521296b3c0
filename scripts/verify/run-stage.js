// Runs the commands of one stage, with their output on this terminal. Owns their process groups: what a stage leaves running ends with it.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const running = new Set();
/** After SIGTERM: what a command has started in groups of its own, only the command itself can end. */
const killDelayMs = 10_000;

/**
 * @param {import('./stages.js').Stage} stage
 * @param {{ tools: string, part?: string, endsAtMs?: number }} options `tools`: the directory that .ci/install-tools has filled;
 *   `part`, as '3/6', of a stage that has parts; `endsAtMs`, by performance.now(): a command that runs longer is killed
 * @returns {Promise<{ seconds: number, failure?: string }>} `failure`: which command failed, and how; left out if all passed
 */
export async function runStage(stage, { tools, part, endsAtMs = Number.POSITIVE_INFINITY }) {
  const startedMs = performance.now();
  const env = environmentOf(stage, tools);
  let failure;
  for (const command of stage.commands) {
    const argv = [...asRoot(stage, env), ...command, ...(part === undefined ? [] : ['--part', part])];
    failure = await runCommand(argv, { env, endsAtMs });
    if (failure !== undefined) break;
  }
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  return { seconds, ...(failure === undefined ? {} : { failure }) };
}

/** For the end of the runner itself. */
export function killStages() {
  for (const child of running) signalGroup(child, 'SIGTERM');
}

function environmentOf(stage, tools) {
  const newest = stage.usesNewestNode ? [join(tools, 'lts/node_modules/.bin')] : [];
  const path = [...newest, process.env.PATH, join(tools, 'hadolint/bin')].join(':');
  // A program that is missing fails its tests: a stage must not pass because they were skipped.
  const needs = { WRIT_TEST_REQUIRE_REAL: '1', WRIT_TEST_PYTHONPATH: join(tools, 'kubernetes') };
  return { ...process.env, PATH: path, ...needs };
}

/** sudo starts with an environment of its own. */
function asRoot({ needsRoot }, env) {
  if (!needsRoot || process.getuid() === 0) return [];
  const kept = ['PATH', 'CI', 'WRIT_TEST_REQUIRE_REAL', 'WRIT_TEST_SEED', 'WRIT_TEST_PYTHONPATH'];
  return [
    'sudo',
    'env',
    ...kept.filter((name) => env[name] !== undefined).map((name) => `${name}=${env[name]}`),
  ];
}

async function runCommand(argv, { env, endsAtMs }) {
  const [program, ...args] = argv;
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
    detached: true,
  });
  running.add(child);
  let isLate = false;
  let killTimer;
  const leftMs = Math.min(Math.max(endsAtMs - performance.now(), 0), 2 ** 31 - 1);
  const timer = setTimeout(() => {
    isLate = true;
    signalGroup(child, 'SIGTERM');
    killTimer = setTimeout(() => signalGroup(child, 'SIGKILL'), killDelayMs);
  }, leftMs);
  try {
    const [exitCode, signal] = await once(child, 'exit');
    if (isLate) return `${argv.join(' ')}: killed, because the time of the whole was over`;
    return exitCode === 0 ? undefined : `${argv.join(' ')}: ${signal ?? `exit ${exitCode}`}`;
  } catch (error) {
    return `${argv.join(' ')}: ${error.message}`;
  } finally {
    clearTimeout(timer);
    clearTimeout(killTimer);
    signalGroup(child, 'SIGKILL');
    running.delete(child);
  }
}

function signalGroup({ pid }, signal) {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}
