// What a cycle does behind a download during which something else became due: it selects again, and never replaces what it did
// not compare itself with.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { CycleRequest } from '../../../src/agent/cycle/cycle-request.js';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import { withoutTurn } from '../../../src/agent/cycle/without-turn.js';
import { emptyRecord, type MoveResult } from '../../../src/agent/job/cycle-result.js';
import { pause } from '../../../src/agent/select/pause.js';
import { recordRefusals } from '../../../src/agent/state/refusals.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

/** @param beside what other jobs do in each wait for the network, by its number */
async function pullWith(
  test: TestHost,
  beside: (wait: number) => void | Promise<void>,
  more: Partial<CycleRequest> = {},
): Promise<CycleResult> {
  let waits = 0;
  const yieldTurn: CycleRequest['yieldTurn'] = async (wait) => {
    const value = await wait();
    waits += 1;
    await beside(waits);
    return value;
  };
  const { signal } = new AbortController();
  const request = { cycle: 'c-turns', trigger: 'pull', force: 'no', signal, yieldTurn } as const;
  return (await syncCycle(test.host, { ...request, ...more })).result;
}

async function withReleases(count: number, options: Parameters<typeof testHost>[0] = {}): Promise<TestHost> {
  const test = testHost({ bundles: [{ name: 'access', bake: { forMs: 0, restarts: 2 } }], ...options });
  for (let serial = 1; serial <= count; serial++) {
    await test.publish('access', { f: `${serial}` }, { serial });
    if (serial < count) assert.equal((await test.pull()).exitCode, 0);
  }
  return test;
}

/** Makes another generation the active one, as a rollback does. */
function activate({ host }: TestHost, generation: number): void {
  const { current } = host.paths;
  const link = fs.readlinkSync(current).replace(/\d+$/, String(generation));
  fs.rmSync(current);
  fs.symlinkSync(link, current);
}

describe('a cycle behind its download', () => {
  it('replaces the generation that became active meanwhile, and says so', async () => {
    using test = await withReleases(3);
    // The waits: refresh, delegated roles, download.
    const result = await pullWith(test, (wait) => (wait === 3 ? activate(test, 1) : undefined));
    assert.deepEqual([result.outcome, result.fromGeneration, test.read('access/f')], ['activated', 1, '3']);
  });

  it('activates nothing where the host was paused meanwhile', async () => {
    using test = await withReleases(2);
    const result = await pullWith(test, (wait) => {
      if (wait === 3) pause(test.host, { by: 'anna', reason: 'exam' });
    });
    assert.deepEqual([result.outcome, result.problems[0]?.code], ['deferred', 'ACTIVATION_PAUSED']);
    assert.equal(test.read('access/f'), '1');
  });

  it('is not ended for another job once it has moved policy', async () => {
    using test = await withReleases(1);
    const { host } = test;
    const interrupt = AbortSignal.abort();
    const request = { signal: new AbortController().signal, interrupt };
    const record = emptyRecord();
    await rejectsCode(
      'INTERRUPTED',
      withoutTurn({ host, record }, request, async () => 'value'),
    );
    record.moves.push({ outcome: 'rolled-back' } as MoveResult);
    assert.equal(await withoutTurn({ host, record }, request, async () => 'value'), 'value');
  });

  it('goes on by force in a pause that began meanwhile', async () => {
    using test = await withReleases(2);
    const beside = (wait: number): void => {
      if (wait === 3) pause(test.host, { by: 'anna', reason: 'exam' });
    };
    const result = await pullWith(test, beside, { trigger: 'force', force: 'yes' });
    assert.deepEqual([result.outcome, test.read('access/f')], ['activated', '2']);
  });

  it('ends with GENERATION_CHANGED where another one became active in each of four downloads', async () => {
    using test = await withReleases(3);
    let active = 2;
    const result = await pullWith(test, () => {
      active = active === 2 ? 1 : 2;
      activate(test, active);
    });
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [7, 'GENERATION_CHANGED']);
    assert.equal(result.changed, false);
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
    assert.equal((await test.pull()).outcome, 'activated');
  });
});

describe('a refresh during a download', () => {
  const two = [
    { name: 'access', bake: { forMs: 0, restarts: 2 } },
    { name: 'zones', bake: { forMs: 0, restarts: 2 } },
  ];

  /** Streams of archives wait for `open` once they are closed. */
  function gate() {
    let opened = Promise.resolve();
    let open = (): void => undefined;
    let reach = (): void => undefined;
    const reached = new Promise<void>((resolve) => {
      reach = resolve;
    });
    const source = (inner: RepositorySource): RepositorySource => ({
      ...inner,
      stream: async function* (path, options) {
        reach();
        const ended = new Promise<never>((_, reject) => {
          options.signal?.addEventListener('abort', () => reject(options.signal?.reason), { once: true });
        });
        ended.catch(() => undefined);
        await Promise.race([opened, ended]);
        yield* inner.stream(path, options);
      },
    });
    return {
      source,
      reached,
      open: () => open(),
      close: () => {
        opened = new Promise((resolve) => {
          open = resolve;
        });
      },
    };
  }

  it('ends it for the withdrawal of what another bundle uses, and both are brought', async () => {
    const door = gate();
    using test = testHost({ bundles: two, source: door.source });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.publish('zones', { z: '1' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    await test.publish('access', { f: '2' }, { serial: 2 });
    door.close();
    let isPublished = false;
    const waitForRefresh = async (signal: AbortSignal): Promise<void> => {
      await door.reached;
      if (isPublished) {
        door.open();
        await once(signal, 'abort');
        return;
      }
      isPublished = true;
      await test.publish('zones', { z: '2' }, { serial: 2, withdrawn: [1] });
    };
    const openLater = (wait: number): void => (wait > 2 ? door.open() : undefined);
    const { outcome, bundles } = await pullWith(test, openLater, { waitForRefresh });
    assert.deepEqual([outcome, bundles.map(({ toSerial }) => toSerial)], ['activated', [2, 2]]);
    assert.deepEqual([test.read('access/f'), test.read('zones/z')], ['2', '2']);
  });

  it('goes on with it at a withdrawal to a release that this host remembers as refused', async () => {
    const door = gate();
    using test = testHost({ bundles: two, source: door.source });
    await test.publish('access', { f: '1' }, { serial: 1 });
    for (const serial of [1, 2, 3]) {
      await test.publish('zones', { z: `${serial}` }, { serial });
      assert.equal((await test.pull()).outcome, 'activated');
      const release = test.host.client.knownTarget('zones', 'stable')?.release;
      if (serial === 2 && release !== undefined)
        recordRefusals(test.host, [release], { code: 'WORKER_REFUSED', message: 'no', facts: {} });
    }
    await test.publish('access', { f: '2' }, { serial: 2 });
    door.close();
    let refreshes = 0;
    const waitForRefresh = async (signal: AbortSignal): Promise<void> => {
      await door.reached;
      refreshes += 1;
      if (refreshes === 1) await test.publish('zones', { z: '2' }, { serial: 2, withdrawn: [3] });
      else {
        door.open();
        await once(signal, 'abort');
      }
    };
    const { outcome } = await pullWith(test, () => undefined, { waitForRefresh });
    assert.deepEqual([outcome, test.read('access/f'), test.read('zones/z')], ['activated', '2', '3']);
    const [, zones] = (await test.pull()).bundles;
    assert.equal(zones?.problem?.code, 'REMEMBERED_REFUSAL');
  });

  it('counts as refused during the download where the role of a team is refused', async () => {
    const door = gate();
    using test = testHost({ bundles: two, source: door.source });
    const { repository } = test;
    const { signed } = repository.delegate('targets', { name: 'team', paths: ['zones/*'] });
    await test.publish('access', { f: '1' }, { serial: 1 });
    door.close();
    let refreshes = 0;
    const waitForRefresh = async (ended: AbortSignal): Promise<void> => {
      await door.reached;
      refreshes += 1;
      if (refreshes === 1) {
        signed.version += 1;
        repository.signers.set('team', repository.keys.timestamp);
        repository.publish();
        return;
      }
      door.open();
      await once(ended, 'abort');
    };
    const codes: (string | undefined)[] = [];
    const onRefreshed: CycleRequest['onRefreshed'] = (attempt) => void codes.push(attempt?.error?.code);
    await pullWith(test, () => undefined, { waitForRefresh, onRefreshed });
    assert.deepEqual([codes, test.read('access/f')], [[undefined, 'SIGNATURE_WRONG_KEY'], '1']);
  });

  it('goes on with it where the repository cannot be asked', async () => {
    const door = gate();
    using test = await withReleases(2, { source: door.source });
    door.close();
    let refreshes = 0;
    const waitForRefresh = async (): Promise<void> => {
      refreshes += 1;
      if (refreshes === 1) test.repository.withhold('timestamp.json');
      if (refreshes === 3) door.open();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const begun: string[] = [];
    const onEvent: CycleRequest['onEvent'] = (event) => {
      if (event.type === 'step.started') begun.push(event.step);
    };
    const { outcome } = await pullWith(test, () => undefined, { waitForRefresh, onEvent });
    assert.deepEqual([outcome, begun.filter((step) => step === 'fetch').length], ['activated', 1]);
    assert.ok(refreshes >= 3);
  });
});
