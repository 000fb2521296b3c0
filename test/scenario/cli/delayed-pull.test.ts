// A pull by a user on a host without an agent, of a release that an activation delay holds: no agent would activate it later.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';

const app = { name: 'app', uses: ['dns-edge'], load: { run: ['true'] } };
const activeText = ({ paths }: InstalledHost): string =>
  readFileSync(`${paths.current}/dns-edge/block.rpz`, 'utf8');

describe('writ pull of a release with an activation delay, without an agent', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it(
    'waits until the activation delay ends and activates the release; the history has both cycles',
    longCase,
    async () => {
      using host = copyHost(installed);
      host.configure({ workers: [{ ...app, settle: '1s' }] });
      const run = await host.writ('pull');
      assert.equal(run.exitCode, 0, run.stdout);
      assert.match(run.stdout, /^ACTIVATED/);
      assert.equal(activeText(host), 'version 2\n');
      const history = await host.writ('history', '--json');
      assert.match(history.stdout, /"outcome":"activated".*"outcome":"deferred"/s);
    },
  );

  it('exits 8 without a wait for a longer delay, with its end and a hint to pull again', async () => {
    using host = copyHost(installed);
    host.configure({ workers: [{ ...app, settle: '10m' }] });
    const beganMs = Date.now();
    const run = await host.writ('pull', '--json');
    const { code, hint, problems } = jsonOf(run);
    assert.deepEqual([run.exitCode, code], [8, 'ACTIVATION_PACED']);
    const [problem] = problems as { facts: { untilMs: number } }[];
    const waitMs = (problem?.facts.untilMs ?? 0) - beganMs;
    assert.ok(waitMs >= 600_000 && waitMs < 660_000, `${waitMs}`);
    assert.match(String(hint), /No agent runs here.*writ pull/);
    assert.equal(activeText(host), 'version 1\n');
  });
});
