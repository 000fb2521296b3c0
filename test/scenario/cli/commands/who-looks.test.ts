// What root, a member of the group that may look, and anybody else hear of an agent that lives, is dead or hangs, with the
// socket of the group there, left behind or absent: in health, status and doctor. Never better than the truth.
import assert from 'node:assert/strict';
import { chmodSync, chownSync, copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { StatusReport } from '../../../../src/core/status/status.js';
import { runCommand } from '../../../../src/platform/process/run-command.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
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

/** Exit codes of health and status, and what doctor says of the agent: told by whom. */
const told = {
  agent: '0 agent, 0, ok',
  file: '0 file, 0, ok',
  doubt: '1 file, 0, warn',
  gone: '1 disk, 0, warn',
  ended: '1 file, 0, warn',
  lost: '3 -, 0, warn',
  unknown: '3 -, 1, warn',
  hung: '2 -, 1, FAIL',
} as const;

/** Agent, socket of the group, status.json. */
const cells: readonly (readonly [string, Readonly<Record<User, keyof typeof told>>])[] = [
  ['alive there fresh', { root: 'agent', member: 'agent', other: 'file' }],
  ['alive stale fresh', { root: 'agent', member: 'doubt', other: 'file' }],
  ['alive absent fresh', { root: 'agent', member: 'file', other: 'file' }],
  ['dead stale fresh', { root: 'gone', member: 'doubt', other: 'file' }],
  ['dead stale old', { root: 'lost', member: 'unknown', other: 'unknown' }],
  ['dead stale ended', { root: 'gone', member: 'ended', other: 'ended' }],
  ['dead absent fresh', { root: 'gone', member: 'file', other: 'file' }],
  ['dead absent old', { root: 'lost', member: 'unknown', other: 'unknown' }],
  ['dead absent ended', { root: 'gone', member: 'ended', other: 'ended' }],
  ['hung there fresh', { root: 'hung', member: 'hung', other: 'file' }],
  ['hung there old', { root: 'hung', member: 'hung', other: 'unknown' }],
  ['hung stale fresh', { root: 'hung', member: 'doubt', other: 'file' }],
  ['hung stale old', { root: 'hung', member: 'unknown', other: 'unknown' }],
  ['hung absent fresh', { root: 'hung', member: 'file', other: 'file' }],
  ['hung absent old', { root: 'hung', member: 'unknown', other: 'unknown' }],
];

/** Puts a cell on the disk. @returns the path of its configuration */
async function place(host: InstalledHost, name: string, ends: FakeAgent[]): Promise<string> {
  const [agent, door, word] = name.split(' ') as [string, string, keyof typeof ages];
  const run = host.dir.join(name.replaceAll(' ', '-'));
  mkdirSync(run);
  chmodSync(run, 0o755);
  const state = word === 'ended' ? 'stop' : 'run';
  const report = statusReport({ atMs: Date.now() - ages[word], agent: state, trust: [], workers: [] });
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
  if (door === 'there') await listen(read, 0o660);
  if (door === 'stale') {
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
async function look(user: User, configs: readonly string[]): Promise<string[]> {
  const script = `
    const { runWrit, jsonOf } = await import(at('test/kit/cli/run-writ.js'));
    const { systemClock } = await import(at('src/platform/time/clock.js'));
    // An agent that hangs never answers: its ten seconds may be short.
    const short = (ms, signal) => systemClock.sleep(ms === 10_000 ? 200 : ms, signal);
    const look = async (config) => {
      const clock = config.includes('/hung-') ? { ...systemClock, sleep: short } : systemClock;
      const run = (name) => runWrit([name, '--json', '--config', config], { clock });
      const [health, status, doctor] = await Promise.all(['health', 'status', 'doctor'].map(run));
      const agent = jsonOf(doctor).findings.find(({ check }) => check === 'agent');
      const source = jsonOf(health).source ?? '-';
      return \`\${health.exitCode} \${source}, \${status.exitCode}, \${agent.state}\`;
    };
    console.log(JSON.stringify(await Promise.all(${JSON.stringify(configs)}.map(look))));
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

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can become somebody else' };

describe('who looks at a host', asRoot, () => {
  it('hears the truth, or that it is not known, and nothing better', async () => {
    using installed = await installHost();
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    const ends: FakeAgent[] = [];
    await using _ends = { [Symbol.asyncDispose]: () => endAll(ends) };
    const configs: string[] = [];
    for (const [name] of cells) configs.push(await place(host, name, ends));
    for (const user of Object.keys(users) as User[]) {
      const heard = await look(user, configs);
      const of = (said: readonly string[]) => cells.map(([name], at) => `${name}: ${said[at]}`);
      const expected = cells.map(([, by]) => told[by[user]]);
      assert.deepEqual(of(heard), of(expected), user);
    }
  });
});
