// A flushed ruleset of nftables: no process dies of it, and only a repeated probe detects it. The real
// agent, the real nft, in a network namespace of its own.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { describe, it } from 'node:test';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

const options = { timeout: 240_000, ...needs('unshare', 'util-linux'), ...needs('nft', 'nftables') };

const rules = `table inet writ
delete table inet writ
table inet writ {
  comment "policy @writ.serial@"
  chain input {
    type filter hook input priority 0
    tcp dport 23 drop
  }
}
`;

interface Namespace extends Disposable {
  /** Runs a command in the namespace. */
  readonly inside: (...command: string[]) => [string, ...string[]];
}

/** @returns undefined if this user cannot create a network namespace */
async function networkNamespace(): Promise<Namespace | undefined> {
  const holder: ChildProcess = spawn('unshare', ['-n', 'sleep', '60'], { stdio: 'ignore' });
  const inside = (...command: string[]): [string, ...string[]] => [
    'nsenter',
    `--net=/proc/${holder.pid}/ns/net`,
    ...command,
  ];
  let isOver = false;
  holder.once('exit', () => {
    isOver = true;
  });
  const own = execFileSync('readlink', ['/proc/self/ns/net'], { encoding: 'utf8' });
  const isApart = (): boolean =>
    execFileSync('readlink', [`/proc/${holder.pid}/ns/net`], { encoding: 'utf8' }) !== own;
  await until(() => isOver || isApart());
  if (isOver) return undefined;
  return { inside, [Symbol.dispose]: () => void holder.kill() };
}

describe('real nftables with a repeated probe', options, () => {
  it('is not confirmed within one interval of a flush, and confirmed again once it was notified', async (context) => {
    using apart = await networkNamespace();
    if (apart === undefined) return context.skip('no network namespace for this user');
    using dir = tempDir();
    const everyMs = 30_000;
    const listed = apart.inside(
      'sh',
      '-c',
      'nft list table inet writ | grep -q "policy {serial}$1"',
      'ask',
      '"',
    );
    const site = agentSite(dir, {
      workers: [
        {
          name: 'firewall',
          uses: ['dns-edge'],
          reset: { run: apart.inside('nft', '-f', '{current}/dns-edge/rules.nft'), confirms: true },
          probe: { run: listed, every: '30s', sandbox: 'off' },
        },
      ],
    });
    await site.repository.publish({ 'rules.nft': rules }, { stamp: ['rules.nft'] });
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    const healthOf = async () => judgeHostHealth(await agent.status());
    assert.equal((await agent.status()).confirmed, true);
    const nft = (...args: string[]): string => {
      const [program, ...rest] = apart.inside('nft', ...args);
      return execFileSync(program, rest, { encoding: 'utf8' });
    };
    nft('flush', 'ruleset');
    await site.clock.advance(everyMs);
    await until(async () => (await healthOf()).level === 'warning');
    const { findings } = await healthOf();
    assert.deepEqual([findings[0]?.code, (await agent.status()).confirmed], ['PROBE_CHANGED', false]);
    await until(async () => {
      await site.clock.advance(5000);
      return (await healthOf()).level === 'ok';
    });
    assert.match(nft('list', 'ruleset'), /policy 1"[\s\S]*tcp dport 23 drop/);
    assert.equal((await agent.status()).confirmed, true);
  });
});
