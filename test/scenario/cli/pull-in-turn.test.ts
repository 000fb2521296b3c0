// A person's pull on a host without an agent, of a release that a worker group keeps waiting: nobody else would take it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { jsonOf } from '../../kit/cli/run-writ.js';

const app = { name: 'app', uses: ['dns-edge'], load: { run: ['true'] } };
const active = ({ paths }: InstalledHost): string =>
  readFileSync(`${paths.current}/dns-edge/block.rpz`, 'utf8');

describe('writ pull of what waits, without an agent', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('waits with it, and says what came of it; the history has both cycles', async () => {
    using host = copyHost(installed);
    host.configure({ workers: [{ ...app, settle: '1s' }] });
    const run = await host.writ('pull');
    assert.equal(run.exitCode, 0, run.stdout);
    assert.match(run.stdout, /^ACTIVATED/);
    assert.equal(active(host), 'version 2\n');
    const history = await host.writ('history', '--json');
    assert.match(history.stdout, /"outcome":"activated".*"outcome":"deferred"/s);
  });

  it('says at once what would take longer, until when, and that somebody has to come back', async () => {
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
    assert.equal(active(host), 'version 1\n');
  });
});
