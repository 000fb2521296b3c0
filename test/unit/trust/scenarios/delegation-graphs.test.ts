// In which order a host asks delegated roles about a path, and where it stops asking. A graph is a list of edges
// `delegator > role`; `!` behind a role is terminating, `?` is a delegation of other paths. The order is seen in the
// requests: a role is fetched when the search comes to it, and no other is.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { refusalOf, type TrustBench, trustBench } from '../../../kit/trust/trust-bench.js';

interface Graph {
  readonly name: string;
  readonly edges: string;
  /** Roles in the order of the search for a path that none of them lists. */
  readonly visited: string;
}

const graphs: readonly Graph[] = [
  { name: 'one role', edges: 't>a', visited: 'a' },
  { name: 'two beside each other', edges: 't>b t>a', visited: 'b a' },
  { name: 'two, and one below the second', edges: 't>a t>b b>c', visited: 'a b c' },
  { name: 'two below the first come before the second', edges: 't>a t>b a>c a>d', visited: 'a c d b' },
  { name: 'a chain below the first comes before the second', edges: 't>a t>b a>c c>d', visited: 'a c d b' },
  {
    name: 'terminating: its brothers and its uncles are not asked',
    edges: 't>a t>b a>c! a>d',
    visited: 'a c',
  },
  { name: 'terminating: its own children are asked', edges: 't>a t>b a>c! c>d', visited: 'a c d' },
  { name: 'terminating at the top', edges: 't>a! t>b a>c', visited: 'a c' },
  { name: 'terminating for other paths ends nothing', edges: 't>a!? t>b', visited: 'b' },
  { name: 'a branch of other paths is not entered', edges: 't>a? t>b a>c', visited: 'b' },
  { name: 'a branch of other paths further down', edges: 't>a t>b a>c? c>d', visited: 'a b' },
  { name: 'a circle', edges: 't>a t>b b>c c>d d>b', visited: 'a b c d' },
  { name: 'a role that delegates to itself', edges: 't>a a>a a>b', visited: 'a b' },
  { name: 'a diamond is asked once, on the first way', edges: 't>a t>b b>c a>c', visited: 'a c b' },
  { name: 'a diamond whose first way has other paths', edges: 't>a t>b b>c a>c?', visited: 'a b c' },
  { name: 'nobody', edges: 't>a? t>b?', visited: '' },
];

describe('the search for a path', () => {
  for (const { name, edges, visited } of graphs) {
    it(`visits (${visited}) of ${edges}: ${name}`, async () => {
      using bench = benchWith(edges);
      assert.equal(await bench.refresh(), 'trusted');
      bench.asked();
      assert.equal(await bench.client.target('bundle', 'stable'), undefined);
      assert.deepEqual(bench.asked(), requestsFor(visited));
      const { root, timestamp, snapshot, targets, ...delegated } = bench.stored();
      assert.deepEqual([root, timestamp, snapshot, targets], [1, 2, 2, 2]);
      assert.deepEqual(Object.keys(delegated), visited.split(' ').filter(Boolean).sort());
    });
  }

  it('requests no visited role again, in the same process or after a restart', async () => {
    using bench = benchWith('t>a t>b a>c');
    await bench.refresh();
    await bench.client.target('bundle', 'stable');
    for (const restarted of [false, true]) {
      if (restarted) bench.restart();
      await bench.refresh();
      bench.asked();
      assert.equal(await bench.client.target('bundle', 'stable'), undefined);
      assert.equal(await bench.client.target('bundle', 'canary'), undefined);
      assert.deepEqual(bench.asked(), []);
    }
  });

  it('asks a role again when the snapshot names a newer one, and no other', async () => {
    using bench = benchWith('t>a t>b a>c');
    await bench.refresh();
    await bench.client.target('bundle', 'stable');
    bench.repository.signedOf('c').version = 2;
    bench.repository.publish();
    await bench.refresh();
    bench.asked();
    await bench.client.target('bundle', 'stable');
    assert.deepEqual(bench.asked(), ['2.c.json']);
    assert.equal(bench.stored()['c'], 2);
  });

  it('ends with the first role in the order that lists the path', async () => {
    for (const [listed, found, visited] of [
      ['b c d', 'c', 'a c'],
      ['b d', 'd', 'a c d'],
      ['b', 'b', 'a c d b'],
      ['targets b', 'targets', ''],
    ] as const) {
      using bench = benchWith('t>a t>b a>c a>d');
      for (const role of listed.split(' ')) addRelease(bench, role);
      bench.repository.publish();
      await bench.refresh();
      bench.asked();
      const target = await bench.client.target('bundle', 'stable');
      assert.equal(target?.vouchedBy.role, found);
      assert.equal(target?.release.revision, found);
      assert.deepEqual(bench.asked(), requestsFor(visited));
      assert.deepEqual(Buffer.from(target?.vouchedBy.bytes ?? []), served(bench, found));
    }
  });

  it('returns the files of the delegation chain, from the top-level targets down', async () => {
    using bench = benchWith('t>a a>b b>c');
    addRelease(bench, 'c');
    bench.repository.publish();
    await bench.refresh();
    const chain = (await bench.client.target('bundle', 'stable'))?.vouchedBy.chain ?? [];
    assert.deepEqual(
      chain.map(({ role }) => role),
      ['targets', 'a', 'b', 'c'],
    );
    for (const { role, bytes } of chain) assert.deepEqual(Buffer.from(bytes), served(bench, role));
  });
});

describe('the bound of a search', () => {
  const fan = (count: number): string => Array.from({ length: count }, (_, at) => `t>r${at + 1}`).join(' ');

  it('is 32 roles: a target in the 60th matching delegation is refused clearly, not called unknown', async () => {
    using bench = benchWith(fan(60));
    addRelease(bench, 'r60');
    bench.repository.publish();
    await bench.refresh();
    bench.asked();
    const refusal = await refusalOf(bench.client.target('bundle', 'stable'));
    assert.equal(refusal?.code, 'DELEGATION_LIMIT');
    assert.equal(refusal?.facts['target'], 'bundle/stable.tar.br');
    assert.equal(bench.asked().length, 32);
  });

  it('includes the 32nd role, also at the end of a chain', async () => {
    const chain = Array.from({ length: 31 }, (_, at) => `r${at + 1}>r${at + 2}`).join(' ');
    for (const edges of [fan(60), `t>r1 ${chain}`]) {
      using bench = benchWith(edges);
      addRelease(bench, 'r32');
      bench.repository.publish();
      await bench.refresh();
      assert.equal((await bench.client.target('bundle', 'stable'))?.vouchedBy.role, 'r32');
    }
  });

  it('does not count delegations with other paths', async () => {
    using bench = benchWith(`${fan(60).replaceAll(/(r\d+)/g, '$1?')} t>last`);
    addRelease(bench, 'last');
    bench.repository.publish();
    await bench.refresh();
    assert.equal((await bench.client.target('bundle', 'stable'))?.vouchedBy.role, 'last');
  });
});

function benchWith(edges: string): TrustBench {
  const bench = trustBench();
  for (const edge of edges.split(' ')) {
    const [, delegator = '', name = '', mark = ''] = /^(\w+)>(\w+)([!?]*)$/.exec(edge) ?? [];
    bench.repository.delegate(delegator === 't' ? 'targets' : delegator, {
      name,
      paths: mark.includes('?') ? ['elsewhere/*'] : ['*/*'],
      terminating: mark.includes('!'),
    });
  }
  bench.repository.publish();
  return bench;
}

/** The revision names the role that signed the entry. */
function addRelease({ repository }: TrustBench, role: string): void {
  const release = { bundle: 'bundle', channel: 'stable', revision: role };
  repository.addRelease(release, Buffer.from(role), { listedBy: role });
}

function requestsFor(visited: string): string[] {
  return visited
    .split(' ')
    .filter(Boolean)
    .map((role) => `1.${role}.json`);
}

function served({ repository }: TrustBench, role: string): Buffer {
  return repository.file(repository.nameOf(role));
}
