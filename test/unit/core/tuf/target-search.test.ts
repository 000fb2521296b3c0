import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import {
  matchesPath,
  maxListedBytes,
  maxListedRoles,
  maxOtherBytes,
  maxVisitedRoles,
  searchTarget,
  visitRoles,
} from '../../../../src/core/tuf/target-search.js';
import type { DelegatedRole, ParsedFile } from '../../../../src/core/tuf/tuf-metadata.js';

/** `A: x` lists the target x; `A > B(*.txt)!` delegates to B, terminating. */
type Graph = Readonly<
  Record<string, { targets?: string[]; roles?: Partial<DelegatedRole>[]; bytes?: number }>
>;

const to = (name: string, more: Partial<DelegatedRole> = {}): Partial<DelegatedRole> => ({ name, ...more });
const end = { terminating: true };

function fileOf(name: string, graph: Graph): ParsedFile<'targets'> {
  const { targets = [], roles = [], bytes = 1 } = graph[name] ?? {};
  const entry = { length: name.length, hashes: { sha256: '00' } };
  const whole = roles.map((role) =>
    role.path_hash_prefixes === undefined ? { paths: ['*'], ...role } : role,
  );
  const delegations = {
    keys: {},
    roles: whole.map((role) => ({ keyids: [], threshold: 1, name: '', ...role })),
  };
  const signed = { targets: Object.fromEntries(targets.map((path) => [path, entry])), delegations };
  return { name, role: 'targets', signed, bytes: { length: bytes } } as unknown as ParsedFile<'targets'>;
}

/** @returns the roles asked for, in order, and the way to the role that lists the path */
function search(graph: Graph, path = 'x'): { asked: string[]; way: string[] | undefined } {
  const steps = searchTarget(fileOf('targets', graph), path);
  const asked: string[] = [];
  let step = steps.next();
  while (step.done !== true) {
    const { delegator, role } = step.value;
    asked.push(`${delegator.name}>${role.name}`);
    step = steps.next(fileOf(role.name, graph));
  }
  return { asked, way: step.value?.chain.map(({ name }) => name) };
}

describe('searchTarget', () => {
  it('visits no role if the top-level targets list the path', () => {
    const graph = { targets: { targets: ['x'], roles: [to('A')] } };
    assert.deepEqual(search(graph), { asked: [], way: ['targets'] });
  });

  it('returns the entry with its chain of delegations', () => {
    const graph = { targets: { roles: [to('A')] }, A: { roles: [to('B')] }, B: { targets: ['x'] } };
    assert.deepEqual(search(graph), { asked: ['targets>A', 'A>B'], way: ['targets', 'A', 'B'] });
    const found = searchTarget(fileOf('targets', { targets: { targets: ['x'] } }), 'x').next();
    assert.deepEqual(found.done && [found.value?.path, found.value?.file.length], ['x', 7]);
  });

  it('searches depth first, in the order of the delegations', () => {
    const graph = {
      targets: { roles: [to('A'), to('B'), to('C')] },
      A: { roles: [to('D'), to('E')] },
      C: { roles: [to('F')] },
    };
    const { asked, way } = search(graph);
    assert.deepEqual(asked, ['targets>A', 'A>D', 'A>E', 'targets>B', 'targets>C', 'C>F']);
    assert.equal(way, undefined);
  });

  it('prefers an earlier delegation to a shorter chain', () => {
    const graph = {
      targets: { roles: [to('A'), to('B')] },
      A: { roles: [to('C')] },
      B: { targets: ['x'] },
      C: { targets: ['x'] },
    };
    assert.deepEqual(search(graph).way, ['targets', 'A', 'C']);
  });

  it('ends after the subtree of a matching terminating delegation', () => {
    const graph = {
      targets: { roles: [to('A', end), to('B')] },
      A: { roles: [to('C'), to('D')] },
      B: { targets: ['x'] },
    };
    assert.deepEqual(search(graph), { asked: ['targets>A', 'A>C', 'A>D'], way: undefined });
  });

  it('ends the whole search at a terminating delegation deep in the tree', () => {
    const graph = {
      targets: { roles: [to('A'), to('B')] },
      A: { roles: [to('C', end), to('D')] },
      B: { targets: ['x'] },
    };
    assert.deepEqual(search(graph).asked, ['targets>A', 'A>C']);
  });

  it('ignores terminating delegations that do not cover the path', () => {
    const graph = {
      targets: { roles: [to('A', { ...end, paths: ['y'] }), to('B')] },
      B: { targets: ['x'] },
    };
    assert.deepEqual(search(graph), { asked: ['targets>B'], way: ['targets', 'B'] });
  });

  it('visits no role with a delegation that does not cover the path, at any level', () => {
    const graph = {
      targets: { roles: [to('A', { paths: ['a/*'] })] },
      A: { targets: ['b/x'], roles: [to('B', { paths: ['b/*'] })] },
      B: { targets: ['a/x', 'b/x'] },
    };
    assert.deepEqual(search(graph, 'b/x'), { asked: [], way: undefined });
    assert.deepEqual(search(graph, 'a/x'), { asked: ['targets>A'], way: undefined });
  });

  it('visits a role once in a search, so that it ends in a circle of delegations', () => {
    const circle = {
      targets: { roles: [to('A')] },
      A: { roles: [to('B'), to('A')] },
      B: { roles: [to('A')] },
    };
    assert.deepEqual(search(circle).asked, ['targets>A', 'A>B']);
    const diamond = {
      targets: { roles: [to('A'), to('B')] },
      A: { roles: [to('C')] },
      B: { roles: [to('C'), to('D')] },
    };
    assert.deepEqual(search(diamond).asked, ['targets>A', 'A>C', 'targets>B', 'B>D']);
  });

  it('treats constructor as a name like any other', () => {
    assert.equal(search({ targets: { roles: [] } }, 'constructor').way, undefined);
    const graph = { targets: { roles: [to('__proto__')] } };
    assert.deepEqual(search(graph).asked, ['targets>__proto__']);
  });

  it('visits as many roles as other clients do, and throws if there are more', () => {
    const names = Array.from({ length: maxVisitedRoles }, (_, index) => `role-${index}`);
    const last = names.at(-1)!;
    const graph: Graph = { targets: { roles: names.map((name) => to(name)) }, [last]: { targets: ['x'] } };
    assert.deepEqual(search(graph).way, ['targets', last]);
    const unlisted: Graph = { targets: graph['targets']! };
    assert.equal(search(unlisted).way, undefined, 'all were asked: it is really not there');
    const wide: Graph = { ...graph, targets: { roles: [to('first'), ...names.map((name) => to(name))] } };
    assert.throws(() => search(wide), { code: 'DELEGATION_LIMIT' });
    const deep: Record<string, Graph[string]> = { targets: { roles: [to('d0')] } };
    for (let depth = 0; depth < 100; depth += 1) deep[`d${depth}`] = { roles: [to(`d${depth + 1}`)] };
    assert.throws(() => search(deep), { code: 'DELEGATION_LIMIT' });
  });

  it('reads one role of any size and small ones, and throws if the others are too large', () => {
    const graph = (bytes: number): Graph => ({
      targets: { roles: [to('great'), to('a'), to('b')] },
      great: { bytes: 100 * maxOtherBytes },
      a: { bytes: maxOtherBytes / 2 },
      b: { bytes, targets: ['x'] },
    });
    assert.deepEqual(search(graph(maxOtherBytes / 2)).way, ['targets', 'b']);
    const facts = {
      target: 'x',
      expected: maxOtherBytes,
      of: 'bytes of delegated roles beside the greatest',
    };
    assert.throws(() => search(graph(maxOtherBytes / 2 + 1)), { code: 'DELEGATION_LIMIT', facts });
  });
});

describe('matchesPath', () => {
  const role: DelegatedRole = { name: 'bin', keyids: [], threshold: 1 };
  const hex = createHash('sha256').update('a/ä.txt', 'utf8').digest('hex');

  it('matches prefixes of the digest of the path', () => {
    for (const length of [1, 2, 8, 64]) {
      const path_hash_prefixes = ['zz', hex.slice(0, length)];
      assert.equal(matchesPath({ ...role, path_hash_prefixes }, 'a/ä.txt'), true);
      assert.equal(matchesPath({ ...role, path_hash_prefixes }, 'A/ä.txt') && length > 4, false);
    }
    assert.equal(matchesPath({ ...role, path_hash_prefixes: [] }, 'a/ä.txt'), false);
    assert.equal(matchesPath({ ...role, path_hash_prefixes: [hex.slice(1, 5)] }, 'a/ä.txt'), false);
  });

  it('matches any of the patterns', () => {
    assert.equal(matchesPath({ ...role, paths: ['b/*', 'a/*'] }, 'a/x'), true);
    assert.equal(matchesPath({ ...role, paths: ['b/*'] }, 'a/x'), false);
    assert.equal(matchesPath({ ...role, paths: [] }, 'a/x'), false);
    assert.equal(matchesPath(role, 'a/x'), false);
  });
});

describe('visitRoles', () => {
  const names = (graph: Graph): string[] => {
    const visit = visitRoles(fileOf('targets', graph));
    const seen: string[] = [];
    let step = visit.next();
    while (step.done !== true) {
      seen.push(`${step.value.delegator.name}>${step.value.role.name}`);
      step = visit.next(fileOf(step.value.role.name, graph));
    }
    return seen;
  };

  it('visits each role once, whatever paths it covers, also in a circle', () => {
    const graph = {
      targets: { roles: [to('A', { paths: [] }), to('B', end)] },
      A: { roles: [to('C'), to('B')] },
      C: { roles: [to('A')] },
    };
    assert.deepEqual(names(graph), ['targets>A', 'targets>B', 'A>C']);
    assert.deepEqual(names({}), []);
  });

  it('throws if there are too many roles', () => {
    const roles = Array.from({ length: maxListedRoles }, (_, index) => to(`r${index}`));
    assert.equal(names({ targets: { roles } }).length, maxListedRoles);
    assert.throws(() => names({ targets: { roles: [...roles, to('more')] } }), { code: 'DELEGATION_LIMIT' });
    const three = {
      targets: { roles: roles.slice(0, 3) },
      r0: { bytes: 1e9 },
      r1: { bytes: maxListedBytes },
    };
    assert.throws(() => names(three), { code: 'DELEGATION_LIMIT' });
  });
});
