// Which paths a delegation is about: patterns of `*` and `?` and nothing else, or beginnings of digests. Seen from
// outside: a role that may speak for a path is asked, one that may not is not.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Delegation } from '../../../kit/repository/simulated-metadata.js';
import { type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

interface Row {
  readonly pattern: string;
  /** As `bundle/channel`; the path that is looked for is `bundle/channel.tar.br`. */
  readonly asked: readonly string[];
  readonly notAsked: readonly string[];
}

const rows: readonly Row[] = [
  {
    pattern: 'dns/stable.tar.br',
    asked: ['dns/stable'],
    notAsked: ['dns/canary', 'dns2/stable', 'x-dns/stable'],
  },
  { pattern: 'dns-*/*', asked: ['dns-edge/stable', 'dns-/x'], notAsked: ['dns/stable', 'web/dns-x'] },
  { pattern: '*/*.tar.br', asked: ['a/b'], notAsked: [] },
  { pattern: '*', asked: [], notAsked: ['a/b'] },
  { pattern: '**', asked: [], notAsked: ['a/b'] },
  { pattern: '**/*', asked: ['a/b'], notAsked: [] },
  { pattern: '*/*/*', asked: [], notAsked: ['a/b'] },
  {
    pattern: 'releases/*/*',
    asked: ['releases/x/v1', 'releases/y/v1'],
    notAsked: ['releases/v1', 'releases/x/y/v1'],
  },
  {
    pattern: 'dns-?/*',
    asked: ['dns-1/stable', 'dns-\u{1f511}/stable'],
    notAsked: ['dns-/stable', 'dns-12/stable'],
  },
  { pattern: '?ns/s*e.tar.br', asked: ['dns/stable', 'ens/se'], notAsked: ['/ns/stable', 'dns/stabler'] },
  { pattern: 'DNS/*', asked: ['DNS/x'], notAsked: ['dns/x'] },
  { pattern: '', asked: [], notAsked: ['a/b'] },
  { pattern: 'dns/', asked: [], notAsked: ['dns/stable'] },
  { pattern: '/dns/*', asked: [], notAsked: ['dns/stable'] },
  // What a shell, or a library for shells, would make more of.
  { pattern: '{dns,web}/*', asked: ['{dns,web}/x'], notAsked: ['dns/x', 'web/x'] },
  { pattern: '!(dns)/*', asked: ['!(dns)/x'], notAsked: ['web/x', 'dns/x'] },
  { pattern: '!dns/*', asked: ['!dns/x'], notAsked: ['web/x'] },
  { pattern: '#dns/*', asked: ['#dns/x'], notAsked: ['dns/x'] },
  { pattern: '+(d|n)/*', asked: [], notAsked: ['d/x', 'dn/x'] },
  { pattern: '[dw]ns/*', asked: ['[dw]ns/x'], notAsked: ['dns/x'] },
  { pattern: '*/*', asked: ['.hidden/x', 'dns/.x', '../x'], notAsked: [] },
  { pattern: 'dns\\*/*', asked: ['dns\\1/x'], notAsked: ['dns*/x'] },
  { pattern: 'd.s/*', asked: ['d.s/x'], notAsked: ['dns/x'] },
  { pattern: '^dns/*$', asked: [], notAsked: ['dns/x'] },
];

describe('patterns of a delegation', () => {
  for (const { pattern, asked, notAsked } of rows) {
    it(`${pattern || '(empty)'} is about ${asked.join(', ') || 'nothing here'}`, async () => {
      for (const path of asked) assert.equal(await isAsked({ paths: [pattern] }, path), true, path);
      for (const path of notAsked) assert.equal(await isAsked({ paths: [pattern] }, path), false, path);
    });
  }

  it('are alternatives to each other, and none is about nothing', async () => {
    const paths = ['dns/*', 'web/*'];
    assert.equal(await isAsked({ paths }, 'dns/x'), true);
    assert.equal(await isAsked({ paths }, 'web/x'), true);
    assert.equal(await isAsked({ paths }, 'mail/x'), false);
    assert.equal(await isAsked({ paths: [] }, 'dns/x'), false);
  });

  it('are matched in bounded time, also when they are crafted', async () => {
    const paths = Array.from({ length: 100 }, () => `${'*a'.repeat(500)}b/*`);
    assert.equal(await isAsked({ paths }, `${'a'.repeat(1000)}/x`), false);
  });

  it('have to match on every level: a role cannot give away what it was not given', async () => {
    using bench = trustBench();
    const { repository } = bench;
    repository.delegate('targets', { name: 'dns', paths: ['dns-*/*'] });
    repository.delegate('dns', { name: 'edge', paths: ['*/*'] });
    for (const bundle of ['dns-edge', 'web']) {
      repository.addRelease({ bundle, channel: 'stable' }, Buffer.from(bundle), { listedBy: 'edge' });
      repository.addRelease({ bundle, channel: 'canary' }, Buffer.from(bundle), { listedBy: 'dns' });
    }
    repository.publish();
    await bench.refresh();
    bench.asked();
    for (const channel of ['stable', 'canary']) {
      assert.equal(await bench.client.target('web', channel), undefined);
      assert.deepEqual(bench.asked(), []);
    }
    assert.equal((await bench.client.target('dns-edge', 'stable'))?.vouchedBy.role, 'edge');
    assert.equal((await bench.client.target('dns-edge', 'canary'))?.vouchedBy.role, 'dns');
  });
});

describe('digest prefixes of a delegation', () => {
  it('match paths with a digest that begins so', async () => {
    const digest = createHash('sha256').update('dns/stable.tar.br').digest('hex');
    for (const length of [1, 2, 3, 8, 64]) {
      const path_hash_prefixes = ['fffffff', digest.slice(0, length)];
      assert.equal(await isAsked({ path_hash_prefixes }, 'dns/stable'), true);
    }
    assert.equal(await isAsked({ path_hash_prefixes: [flipFirst(digest)] }, 'dns/stable'), false);
    assert.equal(await isAsked({ path_hash_prefixes: [] }, 'dns/stable'), false);
  });

  it('spread many bundles over bins, each asked for its own alone', async () => {
    using bench = trustBench();
    const { repository } = bench;
    const bins = '0123456789abcdef'.split('');
    for (const bin of bins) repository.delegate('targets', { name: `bin-${bin}`, path_hash_prefixes: [bin] });
    const bundles = Array.from({ length: 12 }, (_, at) => `bundle-${at}`);
    for (const bundle of bundles) {
      repository.addRelease({ bundle, channel: 'stable' }, Buffer.from(bundle), { listedBy: binOf(bundle) });
    }
    repository.publish();
    await bench.refresh();
    for (const bundle of bundles) {
      const found = await bench.client.target(bundle, 'stable');
      assert.equal(found?.vouchedBy.role, binOf(bundle));
    }
    const { root, timestamp, snapshot, targets, ...stored } = bench.stored();
    assert.deepEqual([root, timestamp, snapshot, targets], [1, 2, 2, 2]);
    assert.deepEqual(Object.keys(stored), [...new Set(bundles.map(binOf))].sort());
  });

  function binOf(bundle: string): string {
    const digest = createHash('sha256').update(`${bundle}/stable.tar.br`).digest('hex');
    return `bin-${digest.slice(0, 1)}`;
  }
});

/** Whether a role with this delegation is asked about `bundle/channel`. */
async function isAsked(delegation: Omit<Delegation, 'name'>, path: string): Promise<boolean> {
  using bench: TrustBench = trustBench();
  bench.repository.delegate('targets', { name: 'team', ...delegation });
  bench.repository.publish();
  assert.equal(await bench.refresh(), 'trusted');
  bench.asked();
  const slash = path.lastIndexOf('/');
  await bench.client.target(path.slice(0, slash), path.slice(slash + 1));
  return bench.asked().includes('1.team.json');
}

function flipFirst(digest: string): string {
  return `${digest.startsWith('0') ? '1' : '0'}${digest.slice(1)}`;
}
