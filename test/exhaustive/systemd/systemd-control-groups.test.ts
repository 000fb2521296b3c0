// Commands of an agent with delegated control groups: the kernel limits all processes of a command together, and the end of a
// command by the memory limit is no verdict.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bootSystemd, needsControllers } from '../../kit/programs/booted-systemd.js';
import type { BootedSystemd } from '../../kit/programs/machine-boot.js';
import { installUsers, machineWithWrit } from '../../kit/programs/machine-with-writ.js';

const agent = 'writ-agent.service';

/** Each process is far below the limit, all of them together exceed it. */
const eat = 'head -c 30000000 /dev/zero | tail -c 30000000';
const script = `
case "$(cat "$1"/dns-edge/ask)" in
  memory) for i in 1 2 3 4 5 6; do (${eat} | wc -c) & done; wait; exit 0 ;;
  processes) for i in $(seq 40); do sleep 3 & done 2>&1; wait; exit 0 ;;
  where) cat /proc/self/cgroup; exit 1 ;;
esac
`;
const check = {
  name: 'ask',
  run: ['sh', '-c', script, 'sh', '{candidate}'],
  timeout: '60s',
  memory: '64MB',
  processes: 16,
};

interface Pulled {
  readonly outcome: string;
  readonly bundles: readonly { readonly problem?: { readonly code: string; readonly facts: object } }[];
}

async function pull(machine: BootedSystemd): Promise<{ outcome: string; code?: string; text: string }> {
  const { stdout, stderr } = await machine.run('writ', 'pull', '--json');
  const { outcome, bundles } = JSON.parse(stdout) as Pulled;
  const problem = bundles[0]?.problem;
  const text = `${stderr}${JSON.stringify(problem?.facts)}`;
  return { outcome, text, ...(problem === undefined ? {} : { code: problem.code }) };
}

describe('control groups that systemd delegates', { timeout: 300_000, ...needsControllers() }, () => {
  it('limit all processes of a command together', async (t) => {
    using dir = tempDir();
    const { disk, repository, configure } = machineWithWrit(dir);
    configure({ sandbox: 'required', bundles: [{ name: 'dns-edge', checks: [check] }] });
    await repository.publish({ ask: 'nothing\n' });
    await using machine = await bootSystemd(disk);
    await installUsers(machine);
    await machine.ok('systemctl', 'start', 'writ-server.service', agent);
    const pid = await machine.show(agent, 'MainPID');
    const groups = async (): Promise<string[]> => {
      const found = await machine.ok('find', '/sys/fs/cgroup/system.slice/writ-agent.service', '-type', 'd');
      return found.split('\n').map((path) => path.split('/').at(-1) ?? '');
    };

    await t.test('the agent moves to its own group, and reports the limits in force', async () => {
      const status = JSON.parse(await machine.ok('writ', 'status', '--json')) as {
        sandbox: { memory: string; processes: string };
      };
      const { memory, processes } = status.sandbox;
      assert.deepEqual([memory, processes], ['each-command', 'each-command']);
      assert.match(await machine.ok('cat', `/proc/${pid}/cgroup`), /^0::.*\/writ-agent\.service\/agent$/m);
      assert.deepEqual((await groups()).sort(), ['agent', 'writ-agent.service']);
    });

    await t.test('a command runs in its own group, which is removed afterwards', async () => {
      await repository.publish({ ask: 'where\n' });
      const { outcome, text } = await pull(machine);
      assert.equal(outcome, 'rejected', text);
      assert.match(text, /writ-agent\.service\/hook-[0-9a-f]{8}/);
      assert.deepEqual((await groups()).sort(), ['agent', 'writ-agent.service']);
    });

    await t.test(
      'a command beyond its memory limit gives no verdict, and does not end the agent',
      async () => {
        await repository.publish({ ask: 'memory\n' });
        const { outcome, code, text } = await pull(machine);
        assert.deepEqual([outcome, code], ['failed', 'CHECK_BROKEN'], text);
        assert.equal(await machine.show(agent, 'MainPID'), pid);
        assert.deepEqual((await groups()).sort(), ['agent', 'writ-agent.service']);
      },
    );

    await t.test('a command starts no more processes than its limit', async () => {
      await repository.publish({ ask: 'processes\n' });
      const { outcome, text } = await pull(machine);
      assert.match(text, /fork|Resource temporarily unavailable/i, `${outcome}: ${text}`);
    });

    await t.test('a reload, a restart and a stop work as without control groups', async () => {
      await repository.publish({ ask: 'nothing at all\n' });
      await machine.ok('systemctl', 'reload', agent);
      await machine.becomes(agent, 'StatusText', /^generation \d+ \(dns-edge 5\) is active/);
      await machine.ok('systemctl', 'restart', agent);
      assert.match(
        await machine.ok('cat', `/proc/${await machine.show(agent, 'MainPID')}/cgroup`),
        /writ-agent\.service(?:\/agent)?$/m,
      );
      await machine.ok('systemctl', 'stop', agent);
      assert.equal(await machine.show(agent, 'Result'), 'success');
    });
  });
});
