// A worker that refuses everything blocks a host. An operator repairs it, runs `writ resume` and pulls: the earlier refusals must
// not cause a move away from the active generation. Real agent, real program as the worker.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

interface Blocked {
  readonly site: WritSite;
  readonly active: () => string;
  /** Makes the worker accept each policy from now on. */
  repairWorker(): void;
  /** Activates version 2. Then the worker refuses version 3, and the restore with another text. */
  block(): Promise<void>;
}

/** Texts that differ in words, because refusals that differ only in numbers count as the same. */
const versions = ['zero', 'one', 'two', 'three'] as const;

async function siteWithVersionZero(dir: TempDir, confirms: object): Promise<Blocked> {
  const [script, fault] = [dir.join('reset.sh'), dir.join('fault')];
  fs.writeFileSync(
    script,
    `#!/bin/sh\nif test -e ${fault}; then cat "$WRIT_GENERATION_DIR/dns-edge/block.rpz"; exit 1; fi\n`,
    { mode: 0o755 },
  );
  const group = { name: 'dns', uses: ['dns-edge'], reset: { run: [script], ...confirms } };
  const site = writSite(dir, { sandbox: 'off', workers: [group] });
  await site.repository.publish({ 'block.rpz': 'version zero\n' });
  return {
    site,
    active: () => fs.readFileSync(join(site.state, 'policy/current/dns-edge/block.rpz'), 'utf8'),
    repairWorker: () => fs.rmSync(fault),
    block: async () => {
      for (const version of [1, 2, 3]) {
        if (version === 3) fs.writeFileSync(fault, '');
        await site.repository.publish({ 'block.rpz': `version ${versions[version]}\n` });
        const { outcome } = await site.json('pull');
        assert.equal(outcome, version === 3 ? 'blocked' : 'activated');
      }
    },
  };
}

describe('a block that an operator ended', () => {
  for (const [kind, confirms] of [
    ['confirms', { confirms: true }],
    ['only accepts', {}],
  ] as const)
    for (const by of ['agent', 'pull'] as const)
      it(`keeps the active generation, and notifies the worker that refused it (it ${kind}, ${by})`, async () => {
        using dir = tempDir();
        const { site, active, repairWorker, block } = await siteWithVersionZero(dir, confirms);
        await using _agent = by === 'agent' ? await site.agent() : undefined;
        await block();
        const before = (await site.json('status'))['generation'];
        repairWorker();
        assert.equal((await site.writ('resume')).exitCode, 0);
        await site.writ('pull');
        assert.equal(active(), 'version two\n');
        const { workers, generation } = await site.json('status');
        const [worker] = workers as readonly { readonly state: string; readonly notified?: number }[];
        assert.deepEqual(
          [generation, worker?.state, worker?.notified],
          [before, kind === 'confirms' ? 'confirmed' : 'notified', before],
        );
        assert.equal((await site.json('pull', '--force'))['outcome'], 'activated');
        assert.equal(active(), 'version three\n');
      });
});
