// `writ reload` as a service manager calls it: its exit code shows the outcome of the configuration and of the pull with it.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';

describe('writ reload', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('reports whether the configuration is in use, and how the pull with it ended', longCase, async () => {
    using host = copyHost(installed);
    host.configure({ poll: { every: '1d' } });
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    const refusing = { name: 'dns-edge', checks: [{ name: 'never', run: ['false'] }] };
    host.configure({ bundles: [{ name: 'dns-edge', channel: 'other' }] });
    const unknown = await host.writ('reload', '--json');
    assert.deepEqual([unknown.exitCode, jsonOf(unknown)['configuration']], [1, 'in-use'], unknown.stdout);
    host.configure({ bundles: [refusing], policy: host.dir.join('elsewhere') });
    const moved = await host.writ('reload', '--json');
    assert.deepEqual([moved.exitCode, jsonOf(moved)['code']], [2, 'CONFIG_INVALID']);
    assert.equal(jsonOf(moved)['configuration'], undefined);
    host.configure({ bundles: [refusing, refusing] });
    assert.equal((await host.writ('reload')).exitCode, 2);
    host.configure({});
    const well = await host.writ('reload', '--json');
    const { exitCode, trigger, type } = jsonOf(well);
    assert.deepEqual(
      [well.exitCode, exitCode, trigger, type],
      [0, 0, 'reload', 'reload.result'],
      well.stdout,
    );
    const [, line] = (await host.writ('reload')).stdout.split('\n');
    assert.equal(line, '  The configuration was read again and is in use.');
  });

  it('retries a refused release when the configuration differs, and not when the file is the same', async () => {
    using host = copyHost(installed);
    const tries = host.dir.join('tries');
    const checks = [{ name: 'never', run: ['sh', '-c', `echo >> ${tries}; false`] }];
    const configure = (every: string): void =>
      host.configure({ poll: { every }, bundles: [{ name: 'dns-edge', checks }], sandbox: 'off' });
    configure('1d');
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    await host.writ('pull');
    const before = readFileSync(tries, 'utf8').length;
    const same = await host.writ('reload', '--json');
    assert.deepEqual([same.exitCode, jsonOf(same)['code']], [3, 'REMEMBERED_REFUSAL'], same.stdout);
    assert.equal(readFileSync(tries, 'utf8').length, before);
    configure('2d');
    const changed = await host.writ('reload', '--json');
    assert.deepEqual([changed.exitCode, jsonOf(changed)['code']], [3, 'CHECK_FAILED'], changed.stdout);
    assert.equal(readFileSync(tries, 'utf8').length, before + 1);
  });

  it(
    'is the next step in status, health and doctor when the file differs from the configuration in use',
    longCase,
    async () => {
      using host = copyHost(installed);
      host.configure({ poll: { every: '1d' } });
      await using agent = startWrit(['agent', '--config', host.config]);
      await agent.waitForStderr(/"state":"run"/);
      const codes = async (): Promise<unknown[]> => {
        const { problems } = jsonOf(await host.writ('status', '--json')) as { problems: { code: string }[] };
        return problems.map(({ code }) => code);
      };
      assert.deepEqual(await codes(), []);
      host.configure({ poll: { every: '2d' } });
      assert.deepEqual(await codes(), ['CONFIG_CHANGED']);
      assert.match(
        (await host.writ('status')).stdout,
        /CONFIG_CHANGED .* is not what the agent has read\n.*Next: `writ reload`/,
      );
      const health = await host.writ('health');
      assert.match(health.stdout, /^WARNING .*\[CONFIG_CHANGED\]/);
      const { findings } = jsonOf(await host.writ('doctor', '--json')) as {
        findings: Record<string, unknown>[];
      };
      const [found] = findings.filter(({ code }) => code === 'CONFIG_CHANGED');
      assert.deepEqual([found?.['check'], found?.['state']], ['configuration', 'warn']);
      assert.equal(found?.['next'], `writ reload --config ${host.config}`);
      await host.writ('reload');
      assert.deepEqual(await codes(), []);
    },
  );

  it('does not check the active release again, in contrast to a forced pull', longCase, async () => {
    using host = copyHost(installed);
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    await host.writ('pull');
    host.configure({ bundles: [{ name: 'dns-edge', checks: [{ name: 'never', run: ['false'] }] }] });
    assert.equal((await host.writ('reload')).exitCode, 0);
    assert.equal(jsonOf(await host.writ('verify', '--json'))['outcome'], 'intact');
    const forced = jsonOf(await host.writ('pull', '--force', '--json'));
    assert.deepEqual(
      [forced['outcome'], forced['code'], forced['generation']],
      ['rejected', 'CHECK_FAILED', 2],
    );
  });

  it('exits 1 with AGENT_UNREACHABLE when no agent runs', async () => {
    using host = copyHost(installed);
    const run = await host.writ('reload', '--json');
    const { code, hint } = jsonOf(run);
    assert.deepEqual(
      [run.exitCode, code, hint],
      [1, 'AGENT_UNREACHABLE', `writ agent --config ${host.config}`],
    );
  });

  it('names the installed unit as the next step, as status does, and otherwise the program', async () => {
    using host = copyHost(installed);
    const unitFolders = [host.dir.join('units')];
    const linesIn = async () => {
      const run = (command: string) => runWrit([command, '--json', '--config', host.config], { unitFolders });
      return [jsonOf(await run('reload'))['hint'], jsonOf(await run('status'))['next']];
    };
    const program = `writ agent --config ${host.config}`;
    assert.deepEqual(await linesIn(), [program, program]);
    mkdirSync(host.dir.join('units'));
    writeFileSync(host.dir.join('units', 'writ-agent.service'), '');
    const unit = 'sudo systemctl start writ-agent';
    assert.deepEqual(await linesIn(), [unit, unit]);
  });
});
