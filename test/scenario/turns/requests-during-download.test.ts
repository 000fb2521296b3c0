// Requests that end a download early, or do not: each is done at once, the bytes stay, and the cycle begins again behind it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { ControlAnswer, HistoryEntry } from '../../../src/core/protocol/control-protocol.js';
import type { VerifyResult } from '../../../src/core/status/verify-report.js';
import type { AgentInProcess } from '../../kit/agent/agent-in-process.js';
import { active, zone } from '../../kit/agent/agent-with-release.js';
import {
  large,
  passUntil,
  type SlowDownload,
  sentBytes,
  slowDownload,
} from '../../kit/agent/slow-download.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { noise } from '../../kit/delta/difference-bench.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** Of the requests for files, from the download of release 3 on. */
const rangesIn = ({ front }: SlowDownload): (string | undefined)[] =>
  front.files.slice(2).map(({ range }) => range);
const rest = `bytes=${sentBytes}-`;

function damage({ site }: SlowDownload): void {
  const path = fs.realpathSync(`${site.paths.current}/dns-edge/block.rpz`);
  fs.chmodSync(path, 0o644);
  fs.writeFileSync(path, 'damaged\n');
}

const isWait = (one: ControlAnswer): one is ControlAnswer & { readonly type: 'cycle.awaited' } =>
  one.type === 'cycle.awaited';

async function outcomesIn(agent: AgentInProcess): Promise<string[]> {
  const entries = await agent.ask({ type: 'history', limit: 20 });
  return entries
    .filter((one): one is HistoryEntry => one.type === 'history.entry')
    .map(({ result }) => result.outcome);
}

describe('a request during a download', () => {
  it('repairs damaged policy, and the download resumes behind the repair', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    damage(stage);
    const answers = await agent.ask({ type: 'verify', repair: true, by: 'anna' });
    const { outcome, repair } = answers.at(-1) as VerifyResult;
    assert.deepEqual([outcome, repair?.outcome], ['repaired', 'activated']);
    const end = await pulled;
    assert.deepEqual([end.outcome, end.fromGeneration], ['activated', repair?.generation]);
    assert.equal(active(stage.site), large['block.rpz']);
    assert.deepEqual(rangesIn(stage), [undefined, rest]);
  });

  it('of the agent itself repairs damaged policy too', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir, { scrub: { every: '10m' } });
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    damage(stage);
    await passUntil(stage.site, () => active(stage.site) !== 'damaged\n');
    assert.equal((await pulled).outcome, 'activated');
    assert.deepEqual(rangesIn(stage), [undefined, rest]);
  });

  it('reports damage without a repair, and ends no download', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    damage(stage);
    const answers = await agent.ask({ type: 'verify', repair: false, by: 'anna' });
    assert.equal((answers.at(-1) as VerifyResult).outcome, 'damaged');
    stage.front.release();
    assert.equal((await pulled).outcome, 'activated');
    assert.deepEqual(rangesIn(stage), [undefined]);
  });

  it('reloads the same configuration, and one cycle answers the reload and the pull', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const answers = await agent.ask({ type: 'reload', by: 'ben' });
    assert.ok(answers.some(({ type }) => type === 'reloaded'));
    const ended = answers.find((one) => one.type === 'step.finished');
    assert.deepEqual(ended && [ended.step, ended.verdict], ['fetch', 'warn']);
    const [reloaded, end] = [answers.at(-1) as CycleResult, await pulled];
    assert.deepEqual([end.outcome, end.cycle], ['activated', reloaded.cycle]);
    assert.deepEqual(rangesIn(stage), [undefined, rest]);
  });

  it('reports a mistake in the configuration, and ends no download', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    stage.site.configure({ poll: 'often' });
    await rejectsCode('CONFIG_INVALID', agent.ask({ type: 'reload', by: 'ben' }));
    stage.front.release();
    assert.equal((await pulled).outcome, 'activated');
    assert.deepEqual(rangesIn(stage), [undefined]);
  });

  it('pulls by force in place of the cycle without force, which its own answers', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const forced = await agent.pull('force');
    assert.deepEqual([forced.outcome, forced.trigger], ['activated', 'force']);
    assert.equal((await pulled).cycle, forced.cycle);
    assert.deepEqual(rangesIn(stage), [undefined, rest]);
  });

  it('pulls behind the download, which it reports at once', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const asked = agent.ask({ type: 'pull', force: false, by: 'ben' });
    await agent.status();
    stage.front.release();
    const answers = await asked;
    const { cycle } = await pulled;
    const [wait] = answers.filter(isWait);
    assert.deepEqual([answers[0], wait?.cycle, wait?.step], [wait, cycle, 'fetch']);
    assert.ok((wait?.doneBytes ?? 0) > 0 && (wait?.doneBytes ?? 0) <= sentBytes);
    assert.ok((wait?.totalBytes ?? 0) > sentBytes);
    assert.equal((answers.at(-1) as CycleResult).outcome, 'unchanged');
    assert.deepEqual(rangesIn(stage), [undefined]);
  });

  it('is no failure of the cycle that it ends', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    stage.front.endNext({ bytes: sentBytes / 2, by: 'silence' });
    const reloaded = agent.ask({ type: 'reload', by: 'ben' });
    await until(() => stage.front.files.at(-1)?.sentBytes === sentBytes / 2);
    const { last, problems, downloading } = await agent.status();
    assert.deepEqual([last?.outcome, problems], ['activated', []]);
    assert.ok(downloading);
    assert.deepEqual(await outcomesIn(agent), ['activated', 'activated']);
    stage.front.release();
    await Promise.all([reloaded, pulled]);
    assert.deepEqual(await outcomesIn(agent), ['activated', 'activated', 'activated']);
  });

  it('resumes the difference that it ended', longCase, async () => {
    using dir = tempDir();
    const base = noise('base', 300_000);
    const third = { 'block.rpz': base, 'more.rpz': noise('more', 300_000) };
    await using stage = await slowDownload(dir, {}, { second: { 'block.rpz': base }, third });
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    await agent.ask({ type: 'reload', by: 'ben' });
    assert.equal((await pulled).outcome, 'activated');
    const [first, second] = stage.front.files.slice(-2);
    assert.match(first?.path ?? '', /delta/);
    assert.deepEqual([second?.path, second?.range], [first?.path, rest]);
  });
});

describe('a server that sends each file as a whole', () => {
  it('has its download ended for another configuration again and again', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir, {}, { ranges: false });
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const before = stage.front.files.length;
    stage.front.endNext({ bytes: sentBytes, by: 'silence' });
    const first = agent.ask({ type: 'reload', by: 'ben' });
    // A case that failed before waits for nothing more.
    first.catch(() => undefined);
    await until(() => stage.front.files.length > before && stage.front.files.at(-1)?.sentBytes === sentBytes);
    stage.site.configure({ repository: stage.site.repository.url });
    const second = await agent.ask({ type: 'reload', by: 'carol' });
    assert.equal((second.at(-1) as CycleResult).outcome, 'activated');
    await first;
    assert.equal((await pulled).outcome, 'activated');
  });

  it('has its download ended by one request, and not again', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir, {}, { second: zone(2), ranges: false });
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const before = stage.front.files.length;
    stage.front.endNext({ bytes: sentBytes, by: 'silence' });
    const first = agent.ask({ type: 'reload', by: 'ben' });
    // A case that failed before waits for nothing more.
    first.catch(() => undefined);
    await until(() => stage.front.files.length > before && stage.front.files.at(-1)?.sentBytes === sentBytes);
    damage(stage);
    const again = agent.ask({ type: 'reload', by: 'ben' });
    const second = agent.ask({ type: 'verify', repair: true, by: 'carol' });
    const forced = agent.ask({ type: 'pull', force: true, by: 'dora' });
    await agent.status();
    stage.front.release();
    assert.equal((await second).find(isWait)?.resumable, false);
    await Promise.all([first, again, forced]);
    assert.equal((await pulled).outcome, 'activated');
  });
});
