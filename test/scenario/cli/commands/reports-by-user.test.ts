// The reports of health, status and doctor for root, a member of the group of the read socket, and any other user. The
// agent runs, is dead or hangs; the read socket exists, is stale or is absent. No report is better than the real state.
import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { runCommand } from '../../../../src/platform/process/run-command.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { scriptArgv } from '../../../kit/cli/child-script.js';
import { type FakeAgent, fakeAgent } from '../../../kit/cli/fake-agent.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { leaveStaleSocket } from '../../../kit/disk/stale-socket.js';
import { readableCheckout } from '../../../kit/sources/readable-checkout.js';

const group = 65_534;
const users = {
  root: [],
  member: ['setpriv', '--reuid=65534', '--regid=65533', `--groups=${group}`],
  other: ['setpriv', '--reuid=65534', '--regid=65533', '--clear-groups'],
} as const;
type User = keyof typeof users;

const ages = { fresh: 5000, old: 181_000, ended: 5000 } as const;

/** Exit code and source of health, exit code of status, and the finding of doctor about the agent. */
const reports = {
  agent: '0 agent, 0, ok',
  file: '0 file, 0, ok',
  suspect: '1 file, 0, warn',
  dead: '1 disk, 0, warn',
  ended: '1 file, 0, warn',
  lost: '3 -, 0, warn',
  unknown: '3 -, 1, warn',
  hung: '2 -, 1, FAIL',
} as const;

/** The states of the agent, the read socket and status.json, with the report for each user. */
const cells: readonly (readonly [string, Readonly<Record<User, keyof typeof reports>>])[] = [
  ['alive there fresh', { root: 'agent', member: 'agent', other: 'file' }],
  ['alive stale fresh', { root: 'agent', member: 'suspect', other: 'file' }],
  ['alive absent fresh', { root: 'agent', member: 'file', other: 'file' }],
  ['dead stale fresh', { root: 'dead', member: 'suspect', other: 'file' }],
  ['dead stale old', { root: 'lost', member: 'unknown', other: 'unknown' }],
  ['dead stale ended', { root: 'dead', member: 'ended', other: 'ended' }],
  ['dead absent fresh', { root: 'dead', member: 'file', other: 'file' }],
  ['dead absent old', { root: 'lost', member: 'unknown', other: 'unknown' }],
  ['dead absent ended', { root: 'dead', member: 'ended', other: 'ended' }],
  ['hung there fresh', { root: 'hung', member: 'hung', other: 'file' }],
  ['hung there old', { root: 'hung', member: 'hung', other: 'unknown' }],
  ['hung stale fresh', { root: 'hung', member: 'suspect', other: 'file' }],
  ['hung stale old', { root: 'hung', member: 'unknown', other: 'unknown' }],
  ['hung absent fresh', { root: 'hung', member: 'file', other: 'file' }],
  ['hung absent old', { root: 'hung', member: 'unknown', other: 'unknown' }],
];

/** Writes the files of a cell. @returns the path of its configuration */
async function writeCell(host: InstalledHost, name: string, ends: FakeAgent[]): Promise<string> {
  const [agent, socket, age] = name.split(' ') as [string, string, keyof typeof ages];
  const run = host.dir.join(name.replaceAll(' ', '-'));
  mkdirSync(run);
  chmodSync(run, 0o755);
  const state = age === 'ended' ? 'stop' : 'run';
  const report = statusReport({ atMs: Date.now() - ages[age], agent: state, trust: [], workers: [] });
  const listen = async (path: string, mode: number): Promise<void> => {
    const alive = { path, answer: () => [statusReport({ ...report, atMs: Date.now() })] };
    const hangs = { path, answer: () => [], afterwards: 'hang' } as const;
    ends.push(await fakeAgent(agent === 'alive' ? alive : hangs));
    chmodSync(path, mode);
    chownSync(path, 0, group);
  };
  const [control, read] = [join(run, 'agent.sock'), join(run, 'read.sock')];
  if (agent === 'dead') await leaveStaleSocket(control);
  else await listen(control, 0o600);
  if (socket === 'there') await listen(read, 0o660);
  if (socket === 'stale') {
    await leaveStaleSocket(read);
    chmodSync(read, 0o660);
    chownSync(read, 0, group);
  }
  writeFileSync(join(run, 'status.json'), JSON.stringify(report satisfies StatusReport));
  host.configure({ run, read: { group } });
  const config = host.dir.join(`${name.replaceAll(' ', '-')}.yaml`);
  copyFileSync(host.config, config);
  return config;
}

/** Runs all three commands for each configuration in one process of this user. */
async function reportsFor(user: User, configs: readonly string[]): Promise<string[]> {
  const script = `
    const { runWrit, jsonOf } = await import(at('test/kit/cli/run-writ.js'));
    const { systemClock } = await import(at('src/platform/time/clock.js'));
    // An agent that hangs never answers, so the test shortens its timeout of ten seconds.
    const short = (ms, signal) => systemClock.sleep(ms === 10_000 ? 200 : ms, signal);
    const reportOf = async (config) => {
      const clock = config.includes('/hung-') ? { ...systemClock, sleep: short } : systemClock;
      const run = (name) => runWrit([name, '--json', '--config', config], { clock });
      const [health, status, doctor] = await Promise.all(['health', 'status', 'doctor'].map(run));
      const agent = jsonOf(doctor).findings.find(({ check }) => check === 'agent');
      const source = jsonOf(health).source ?? '-';
      return \`\${health.exitCode} \${source}, \${status.exitCode}, \${agent.state}\`;
    };
    console.log(JSON.stringify(await Promise.all(${JSON.stringify(configs)}.map(reportOf))));
  `;
  const [program, ...rest] = [...users[user], ...scriptArgv(script, readableCheckout())];
  const env = { PATH: process.env['PATH'] ?? '' };
  const limits = { timeoutMs: 90_000, maxOutputBytes: 100_000 };
  const result = await runCommand({ argv: [program ?? '', ...rest], env, cwd: '/', ...limits });
  assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
  return JSON.parse(result.kind === 'exited' ? result.stdout : '[]') as string[];
}

async function endAll(agents: readonly FakeAgent[]): Promise<void> {
  await Promise.all(agents.map((one) => one[Symbol.asyncDispose]()));
}

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can become another user' };

describe('a user of a host', { ...asRoot, ...longCase }, () => {
  it('reports the state of the agent or unknown, and never a better state', async () => {
    using installed = await installHost();
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    const ends: FakeAgent[] = [];
    await using _ends = { [Symbol.asyncDispose]: () => endAll(ends) };
    const configs: string[] = [];
    for (const [name] of cells) configs.push(await writeCell(host, name, ends));
    for (const user of Object.keys(users) as User[]) {
      const actual = await reportsFor(user, configs);
      const named = (texts: readonly string[]) => cells.map(([name], at) => `${name}: ${texts[at]}`);
      const expected = cells.map(([, by]) => reports[by[user]]);
      assert.deepEqual(named(actual), named(expected), user);
    }
  });
});
