// `writ pull --wait` as an init container runs it: a repository that appears late, is refused, or is unreachable.
import assert from 'node:assert/strict';
import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';

let installed: InstalledHost;
before(async () => {
  installed = await installHost();
});
after(() => installed[Symbol.dispose]());

/** A host that never had a policy. */
function newHost(): InstalledHost {
  const host = copyHost(installed);
  for (const place of ['state', 'run']) rmSync(host.dir.join(place), { recursive: true });
  copyFileSync(`${host.repository}/metadata/1.root.json`, host.dir.join('root.json'));
  host.configure({ root: host.dir.join('root.json') });
  return host;
}

const hiddenPath = (host: InstalledHost): string => `${host.repository}.hidden`;
const waitArgs = (host: InstalledHost, time: string): string[] => [
  ...['pull', '--wait', time, '--config', host.config],
];

describe('writ pull --wait', longCase, () => {
  it('retries without an agent until the repository exists', async () => {
    using host = newHost();
    renameSync(host.repository, hiddenPath(host));
    await using pull = startWrit(waitArgs(host, '60s'));
    await pull.waitForStderr(/no verified policy is active yet: failed \[\w+\]; next try in/);
    renameSync(hiddenPath(host), host.repository);
    const run = await pull.ended;
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^ACTIVATED generation \d+ \(dns-edge 2/);
  });

  it('sends its pulls to the agent when one runs', async () => {
    using host = newHost();
    renameSync(host.repository, hiddenPath(host));
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    await using pull = startWrit(waitArgs(host, '60s'));
    await pull.waitForStderr(/no verified policy is active yet/);
    renameSync(hiddenPath(host), host.repository);
    const run = await pull.ended;
    assert.equal(run.exitCode, 0, run.stderr);
    assert.ok(!run.stderr.includes('no agent is running'));
  });

  it('exits with the code of the refusal after the timeout, and prints how long it waited', async () => {
    using host = newHost();
    host.configure({ bundles: [{ name: 'dns-edge', checks: [{ name: 'never', run: ['false'] }] }] });
    const run = await host.writ('pull', '--wait', '1s');
    assert.equal(run.exitCode, 3, run.stdout);
    assert.match(run.stdout, /^REJECTED /);
    assert.match(run.stdout, /No verified policy became active within 1 s, in \d pulls?\./);
  });

  it('exits 0 with the active policy and the failed pull when the server is unreachable', async () => {
    using host = copyHost(installed);
    host.configure({ repository: 'http://127.0.0.1:9/' });
    const run = await host.writ('pull', '--wait', '1m', '--json');
    const { outcome, pull, generation } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome, generation], [0, 'active', 1], run.stdout);
    assert.deepEqual(pull, { outcome: 'failed', exitCode: 1 });
  });

  it('fails without a retry when the root is missing', async () => {
    using host = newHost();
    host.configure({ root: host.dir.join('nowhere.json') });
    const run = await host.writ('pull', '--wait', '1h');
    assert.equal(run.exitCode, 2, run.stdout);
    assert.match(run.stdout, /ROOT_MISSING/);
  });

  it('exits 2 for a --wait that is not a duration', async () => {
    using host = copyHost(installed);
    assert.equal((await host.writ('pull', '--wait', 'long')).exitCode, 2);
  });
});
